"""Clients with a plug-in that counts by itself: what it sends is a log, and nonsense is answered with nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.test_all_contract import AFTER_EVENTS, client_named
from tests.live.scene import SILENT, hooked


@pytest.mark.cases(1)
@pytest.mark.requirement("LV-told")
@pytest.mark.parametrize("name", ["opencode", "pi"])
def test_a_plug_in_is_told_from_what_it_sends(name: str) -> None:
    """Three rounds that a plug-in counted itself are confirmed without any log of the client."""
    calls = [
        {
            "action": "bash",
            "input": {"command": "make"},
            "result": "error: no rule",
            "failed": True,
            "at": 1_795_000_000_000 + n,
        }
        for n in range(3)
    ]
    event = {"session": "p#1", "folder": "/", "said": ["Build it."], "calls": calls, "fresh": 3}

    said = hooked(name, event)
    assert (said.code, said.err) == (0, b"")
    text = json.loads(said.out)["text"]
    assert text.startswith("[ctxmgr] You are going in circles: 3 times the same call")
    assert "> Build it." in text


@pytest.mark.parametrize("fresh", [0, -1, 4, 10**30, True, "3", None, 1.5])
def test_a_count_that_can_not_be_is_passed_over(fresh: object) -> None:
    """A plug-in that sends nonsense is answered with nothing."""
    event = {**AFTER_EVENTS["pi"], "fresh": fresh}
    assert hooked("pi", event) == SILENT


@pytest.mark.parametrize("name", ["opencode", "pi"])
@pytest.mark.parametrize("calls", [[1, {"action": "Bash", "result": "a"}], [{"action": "Bash", "result": "a"}, None, "x"]])
def test_calls_that_are_none_are_left_out(name: str, calls: list[object]) -> None:
    """What a plug-in sends beside a call keeps nobody from hearing of the call, nor of a silence."""
    asked = client_named(name)
    event = asked.event({"session": "s", "folder": "/", "calls": calls, "fresh": 1})
    assert event is not None
    assert [call.action for call in event.calls] == ["Bash"]
    assert (asked.log_content(event) or "").count('"kind":"entry"') == 1
    quiet = asked.event({"session": "s", "folder": "/", "calls": calls, "quiet": True})
    assert quiet is not None
    assert (asked.log_content(quiet) or "").count('"kind":"entry"') == 1


@pytest.mark.parametrize("name", ["opencode", "pi"])
@pytest.mark.parametrize("fields", [{}, {"calls": None}, {"calls": 5}, {"calls": []}])
def test_a_silence_without_calls_is_one(name: str, fields: dict[str, Any]) -> None:
    """Its log holds the session alone."""
    asked = client_named(name)
    quiet = asked.event({"session": "s", "quiet": True, **fields})
    assert quiet is not None
    assert (asked.log_content(quiet) or "").count("\n") == 1
