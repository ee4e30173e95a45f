"""Recovery with a real model over real HTTP: whatever the model says, the form of the answer holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.llm.histories import HISTORIES, History, write
from bench.llm.server import Server
from bench.llm.trial import MODES, Mode, Outcome, recover

pytestmark = pytest.mark.llm


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("history", HISTORIES, ids=[history.name for history in HISTORIES])
def test_a_recovery_is_valid_in_form(
    server: Server, history: History, mode: Mode, tmp_path: Path, outcomes: list[Outcome]
) -> None:
    """One continuation within the time limit, the model's or a marked fallback, and nothing else written."""
    outcome = recover(server, history, mode, write(tmp_path / "history.db", [history]))
    outcomes.append(outcome)

    assert outcome.faults == []
