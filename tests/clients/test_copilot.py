"""What only Copilot CLI does: arguments as a text, and events that name no log."""

from __future__ import annotations

import pytest

from tests.clients.test_all_contract import AFTER_EVENTS, client_named


@pytest.mark.parametrize("given", ["{echo", '{"a', "{" * 100_000, '{"a":' * 100_000, "plain"])
def test_arguments_that_are_no_json_are_the_text_they_are(given: str) -> None:
    """Copilot CLI sends arguments as a text; a shell's may begin with a brace."""
    event = client_named("copilot").event({**AFTER_EVENTS["copilot"], "toolArgs": given})
    assert event is not None
    assert [call.given for call in event.calls] == [given]


def test_the_log_of_copilot_is_sought_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events name no log."""
    monkeypatch.setenv("COPILOT_HOME", "/elsewhere")
    event = client_named("copilot").event(AFTER_EVENTS["copilot"])
    assert event is not None
    assert event.transcript == "/elsewhere/session-state/s/events.jsonl"
