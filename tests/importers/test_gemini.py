"""What the logs of Gemini CLI say in words of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.workspace import Workspace

BLOCKED = (
    "Command injection detected: command substitution syntax ($(), backticks, <() or >()) found in command arguments. "
    "On PowerShell, @() array subexpressions and $() subexpressions are also blocked. This is a security risk and the command "
    "was blocked."
)

COMMAND = 'git commit -m "$(cat m)"'


def log(place: Path, output: str, tool: str = "run_shell_command") -> Path:
    """Write a session in which a tool answered this three times, each of which the client calls a success."""
    moment = "2026-11-22T15:11:{:02}.000Z"
    rows: list[dict[str, object]] = [
        {"sessionId": "s", "projectHash": "h", "startTime": moment.format(0), "lastUpdated": moment.format(9), "kind": "main"},
        {"id": "u", "timestamp": moment.format(0), "type": "user", "content": [{"text": "Commit it."}]},
    ]
    for number in range(3):
        key = f"call{number}"
        answer = {"functionResponse": {"id": key, "name": tool, "response": {"output": output}}}
        call = {
            "id": key,
            "name": tool,
            "args": {"command": COMMAND},
            "status": "success",
            "result": [answer],
        }
        at = moment.format(number + 1)
        call["timestamp"] = at
        rows.append({"id": f"m{number}", "timestamp": at, "type": "gemini", "content": "", "toolCalls": [call]})
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return place


def test_a_command_that_the_client_blocks_has_failed_and_its_cause_is_told(tmp_path: Path) -> None:
    """The client calls it a success; it is a failure, and the next step does without substitution."""
    with Workspace.open(str(log(tmp_path / "session-1.jsonl", BLOCKED)), create=True, scratch=True) as workspace:
        entries = workspace.list(ListRequest()).entries
        (verdict,) = workspace.detect(DetectRequest()).verdicts

    assert [entry.status for entry in entries] == ["error"] * 3
    diagnosis = verdict.findings[-1].diagnosis
    assert diagnosis is not None
    assert "refuses each command that has a substitution" in diagnosis.cause
    assert diagnosis.next_step.startswith("Write it without one: run the inner command by itself")


@pytest.mark.parametrize(
    ("output", "tool"), [(f"Output: {BLOCKED}", "run_shell_command"), (BLOCKED, "read_file")], ids=["printed", "read"]
)
def test_what_only_quotes_that_refusal_is_a_success(output: str, tool: str, tmp_path: Path) -> None:
    """A command that prints the sentence ran, and a file may hold it."""
    with Workspace.open(str(log(tmp_path / "session-1.jsonl", output, tool)), create=True, scratch=True) as workspace:
        assert {entry.status for entry in workspace.list(ListRequest()).entries} == {"ok"}
