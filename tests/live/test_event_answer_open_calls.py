"""Calls that Gemini CLI makes and does not write into its log before they are over."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.clients import state_folder
from ctxmgr.live.watcher import HookedSessions
from tests.live.scene import SILENT, hooked

NOW = 1_800_000_000.0
SESSION = "aa94ee62-eeef-4598-93e8-5fe8b91568bb"
AGO = 1800.0


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log that ends with what the model asked for half an hour ago; the hook was told of the session."""
    moment = datetime.fromtimestamp(NOW - AGO, UTC).isoformat().replace("+00:00", "Z")
    head: dict[str, Any] = {
        "sessionId": SESSION,
        "projectHash": "4ae8",
        "startTime": moment,
        "lastUpdated": moment,
        "kind": "main",
    }
    said: dict[str, Any] = {"id": "m1", "timestamp": moment, "type": "user", "content": [{"text": "Make the test pass."}]}
    asked: dict[str, Any] = {
        "id": "m2",
        "timestamp": moment,
        "type": "gemini",
        "content": "",
        "thoughts": [],
        "model": "gemini-2.5-pro",
    }
    path = tmp_path / "session-2027-01-15T08-00-aa94ee62.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (head, said, asked)))
    _tell(path, "BeforeAgent", prompt="Make the test pass.")
    return path


def _tell(log: Path, name: str, **fields: Any) -> str:
    """Have the hook told of an event, and return what it says to the agent."""
    shared = {"session_id": SESSION, "transcript_path": str(log), "cwd": str(log.parent)}
    return hooked("gemini", {**shared, "hook_event_name": name, **fields}).context


def _shell(command: str) -> dict[str, Any]:
    return {"tool_name": "run_shell_command", "tool_input": {"command": command}}


def _noted() -> list[Path]:
    return sorted(Path(state_folder()).glob("*.open"))


def _age(log: Path, seconds: float = AGO) -> None:
    """Have all that was noted, and the log, be of so long ago."""
    moment = datetime.fromtimestamp(NOW - seconds, UTC).isoformat().replace("+00:00", "Z")
    for path in _noted():
        path.write_text(json.dumps({**json.loads(path.read_text()), "timestamp": moment}))
    for path in (log, *Path(state_folder()).iterdir()):
        os.utime(path, (NOW - seconds, NOW - seconds))


@pytest.mark.requirement("LV-hang")
def test_a_call_that_the_log_does_not_show_is_found_to_hang(log: Path) -> None:
    """The watcher sees it though the log ends before it, and the agent is told with what comes back."""
    assert _tell(log, "BeforeTool", **_shell("npm run dev")) == ""
    _age(log)
    sessions = HookedSessions(lambda: NOW)

    (raised,) = sessions.tick()
    assert (raised.event, raised.session, raised.finding and raised.finding.kind) == ("raised", SESSION, "hung")
    assert sessions.tick() == []

    answer = {"llmContent": "Output: stopped", "returnDisplay": "stopped"}
    told = _tell(log, "AfterTool", **_shell("npm run dev"), tool_response=answer)
    assert "Your call has not returned for 30 min" in told
    assert "npm run dev" in told
    assert "Make the test pass." in told
    assert _noted() == []


def test_calls_beside_one_another_are_noted_each(log: Path) -> None:
    """What is over is forgotten alone; a new word of the person forgets all, and so does the end."""
    for command in ("make a", "make b", "make c"):
        _tell(log, "BeforeTool", **_shell(command))
    assert len(_noted()) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in _noted())
    _tell(log, "AfterTool", **_shell("make b"), tool_response={"llmContent": "done"})
    assert sorted(json.loads(path.read_text())["toolCalls"][0]["args"]["command"] for path in _noted()) == ["make a", "make c"]
    _tell(log, "BeforeAgent", prompt="Do something else.")
    assert _noted() == []
    _tell(log, "BeforeTool", **_shell("make a"))
    _tell(log, "SessionEnd", reason="exit")
    assert _noted() == []


def test_a_call_that_was_given_up_is_no_hang(log: Path) -> None:
    """A person ended it: the log went on, and no hook was told."""
    _tell(log, "BeforeTool", **_shell("npm run dev"))
    _age(log)
    os.utime(log, (NOW - AGO + 60, NOW - AGO + 60))

    assert [each for each in HookedSessions(lambda: NOW).tick() if each.finding and each.finding.members] == []


def test_a_call_of_great_length_is_not_noted(log: Path) -> None:
    """A call that writes a file does not hang, and its content stays out of the state."""
    assert _tell(log, "BeforeTool", tool_name="write_file", tool_input={"content": "x" * 70_000}) == ""
    assert _noted() == []


def test_settings_that_refuse_calls_refuse_none_where_the_client_knows_no_refusal(log: Path) -> None:
    """Gemini CLI is told alone: before a call it hears nothing, also where the mode is to deny."""
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "ctxmgr" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[live]\nmode = "deny"\n')
    shared = {"session_id": SESSION, "transcript_path": str(log), "cwd": str(log.parent)}
    event = {**shared, "hook_event_name": "BeforeTool", **_shell("make")}
    for _ in range(4):
        assert hooked("gemini", event) == SILENT
