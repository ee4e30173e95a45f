"""The battery that every client passes: it reads its own events, answers in its own shape, and says where its settings are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.clients import AFTER, BEFORE, CLIENTS, END, PERSON, Client, client, parse_event
from ctxmgr.live.installation import hook_command
from tests.live.scene import SILENT, hooked

_SHARED = {"session_id": "s", "transcript_path": "/home/dev/log.jsonl", "cwd": "/home/dev"}
_SHELL = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t1"}

AFTER_EVENTS: dict[str, dict[str, Any]] = {
    "claude-code": {**_SHARED, "hook_event_name": "PostToolBatch", "tool_calls": [{**_SHELL, "tool_response": "done"}]},
    "codex": {**_SHARED, **_SHELL, "hook_event_name": "PostToolUse", "tool_response": "done"},
    "gemini": {
        **_SHARED, "hook_event_name": "AfterTool", "tool_name": "Bash", "tool_input": {"command": "make"},
        "tool_response": {"llmContent": "done", "returnDisplay": "done in 3 s"},
    },
    "copilot": {
        "sessionId": "s", "timestamp": 1, "cwd": "/home/dev", "toolName": "Bash", "toolArgs": '{"command": "make"}',
        "toolResult": {"resultType": "success", "textResultForLlm": "done"},
    },
    "opencode": {"session": "s", "folder": "/home/dev", "fresh": 1, "calls": [
        {"action": "Bash", "input": {"command": "ls"}, "result": "a"},
        {"action": "Bash", "input": {"command": "make"}, "result": "done"},
    ]},
}  # fmt: skip
AFTER_EVENTS["pi"] = AFTER_EVENTS["opencode"]
OTHER_EVENTS: list[tuple[str, str, dict[str, Any]]] = [
    ("claude-code", BEFORE, {**_SHARED, **_SHELL, "hook_event_name": "PreToolUse"}),
    ("claude-code", PERSON, {**_SHARED, "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}),
    ("codex", BEFORE, {**_SHARED, **_SHELL, "hook_event_name": "PreToolUse"}),
    ("codex", PERSON, {**_SHARED, "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}),
    ("gemini", PERSON, {**_SHARED, "hook_event_name": "BeforeAgent", "prompt": "Go on."}),
    ("gemini", BEFORE, {**_SHARED, "hook_event_name": "BeforeTool", "tool_name": "Bash", "tool_input": {"command": "make"}}),
    ("copilot", PERSON, {"sessionId": "s", "prompt": "Go on."}),
    ("copilot", END, {"sessionId": "s", "timestamp": 1, "cwd": "/home/dev", "reason": "complete"}),
]


def client_named(name: str) -> Client:
    """Return the client of this name."""
    found = client(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", CLIENTS)
def test_what_was_called_is_read(name: str) -> None:
    """The event after a call holds its action, its input as an object, and its result as the model reads it."""
    found = parse_event(name, json.dumps(AFTER_EVENTS[name]).encode())

    assert found is not None
    event = found[1]
    assert (event.kind, event.session, event.folder) == (AFTER, "s", "/home/dev")
    assert [(call.action, call.given, call.result) for call in event.calls] == [("Bash", {"command": "make"}, "done")]


@pytest.mark.parametrize(("name", "kind", "fields"), OTHER_EVENTS)
def test_other_events_are_read(name: str, kind: str, fields: dict[str, Any]) -> None:
    """What is about to be called, and the words of a person."""
    found = parse_event(name, json.dumps(fields).encode())

    assert found is not None
    assert found[1].kind == kind
    assert len(found[1].calls) == (kind == BEFORE)
    assert hooked(name, fields) == SILENT


@pytest.mark.parametrize("name", CLIENTS)
def test_an_answer_is_small_and_holds_the_text(name: str) -> None:
    """What is told is one JSON object, in which nothing decides, stops or replaces anything."""
    found = parse_event(name, json.dumps(AFTER_EVENTS[name]).encode())
    assert found is not None
    said = json.dumps(client_named(name).tell(found[1], "[ctxmgr] Look."))

    assert "[ctxmgr] Look." in said
    assert not {"decision", "continue", "suppressOutput", "stopReason"} & set(json.loads(said))


@pytest.mark.parametrize("name", CLIENTS)
def test_settings_start_the_hook_by_absolute_paths(name: str, tmp_path: Path) -> None:
    """The file lies in the home or the project, and what it starts needs no search path and no shell of the user."""
    asked = client_named(name)
    command = hook_command(asked)
    path = asked.settings_file("user", str(tmp_path), os.environ)
    assert path is not None
    assert Path(path).is_relative_to(Path.home().parent)
    project = asked.settings_file("project", str(tmp_path), os.environ)
    assert project is None or Path(project).is_relative_to(tmp_path)

    text = asked.whole_file(command) or json.dumps([item for _, item in asked.entries(command)])
    assert command[0] in text
    assert "ctxmgr/live/hook.py" in text
    assert all(os.path.isabs(word) for word in (command[0], command[-2]))
    assert asked.least > (0,)
    assert asked.title
    assert asked.program


def test_names_that_are_no_client_are_none() -> None:
    """A name never becomes a module's name unless it is in the tuple."""
    for name in ("", "interface", "plugin", "../x", "os"):
        assert client(name) is None


@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/ctxmgr.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugins/ctxmgr.js"),
        ("pi", "PI_CODING_AGENT_DIR", "extensions/ctxmgr.js"),
    ],
)
def test_a_client_may_have_its_folder_elsewhere(name: str, variable: str, path: str, tmp_path: Path) -> None:
    """Hooks go where the client looks for them, which is where the importers find its logs; a relative folder is none."""
    asked, default = client_named(name), client_named(name).settings_file("user", "/p", {})
    assert asked.settings_file("user", "/p", {variable: str(tmp_path)}) == f"{tmp_path}/{path}"
    assert asked.settings_file("user", "/p", {variable: "here"}) == default
    assert asked.settings_file("project", "/p", {variable: str(tmp_path)}) == asked.settings_file("project", "/p", {})


def test_a_torn_line_of_a_session_is_passed_over(tmp_path: Path) -> None:
    """Also by a hook, in which the package `json` is not loaded."""
    path = tmp_path / "s.jsonl"
    path.write_text('{"v":1,"kind":"event"}\n{"v":1,"ki', encoding="utf-8")
    code = f"import sys\nfrom ctxmgr.clients import read_rows\nprint(read_rows({str(path)!r}), 'json' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("[{'v': 1, 'kind': 'event'}] False\n", "")
