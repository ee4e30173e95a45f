"""``install`` and ``uninstall``: what is shown before anything is changed, what is listed, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxmgr.clients import state_folder
from tests.cli.console import process, run
from tests.live.scene import SILENT, batch, hooked, settings, write_log
from tests.live.settings import settings_path

pytestmark = pytest.mark.usefixtures("empty_project")


def _client(folder: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    program = folder / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


@pytest.mark.parametrize(("said", "code"), [("2.1.330 (Claude Code)", 0), ("2.0.1 (Claude Code)", 2), ("no idea", 2)])
def test_the_client_is_asked_for_its_version(
    said: str, code: int, empty_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its command answers decides."""
    _client(empty_project, monkeypatch, said)
    assert run("install", "claude-code", "--yes", "--json").code == code


def test_the_command_shows_changes_and_lists(empty_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run changes nothing, nobody is asked without a terminal, and the list tells what is there."""
    _client(empty_project, monkeypatch, "2.1.330")
    path = settings_path("claude-code")
    path.write_text('{\n  "model": "opus"\n}\n')

    dry = run("install", "claude-code", "--dry-run")
    assert '+    "PostToolBatch": [' in dry.out
    assert path.read_text() == '{\n  "model": "opus"\n}\n'
    assert process("install", "claude-code").code == 2
    done = run("install", "claude-code", "--yes", "--json").envelope["data"][0]
    assert (done["installed"], done["changed"], done["version"]) == (True, True, "2.1.330")
    rows = {(row["client"], row["scope"]): row["installed"] for row in run("install", "--list", "--json").envelope["data"]}
    assert [key for key, installed in rows.items() if installed] == [("claude-code", "user")]
    assert run("uninstall", "claude-code", "--yes", "--json").envelope["data"][0]["changed"]
    assert path.read_text() == '{\n  "model": "opus"\n}\n'


def test_doctor_says_that_wrong_settings_silence_the_hook() -> None:
    """What applies in this folder is what its hook reads."""
    assert run("install", "claude-code", "--yes", "--client-version", "2.1.330").code == 0
    checks = [run("doctor", "--json").envelope["data"]]
    settings('[live]\nmode = "foo"\n')
    checks.append(run("doctor", "--json").envelope["data"])
    good, bad = (next(row for row in rows if row["name"] == "hook.claude-code") for rows in checks)

    assert (good["level"], bad["level"]) == ("ok", "warn")
    assert bad["finding"].endswith(", tells nobody anything while the settings are wrong")
    assert "live.mode must be advise, deny or watch" in bad["hint"]


def _state() -> list[str]:
    """Return the names of all files and folders of the state."""
    top = Path(state_folder()).parent
    return sorted(str(path.relative_to(top)) for path in top.rglob("*"))


def _one_call(log: Path) -> None:
    """Begin a session of Claude Code and make one call."""
    calls = write_log(log, [("ls", "a.py")])
    prompt = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Go.", "transcript_path": str(log)}
    assert hooked("claude-code", prompt) == hooked("claude-code", batch(calls[0], log)) == SILENT


def test_the_notes_of_hooks_go_with_the_last_installation(empty_project: Path) -> None:
    """While other settings start the hook they stay, and it is said why; then nothing is left, of other clients all is."""
    installing = ("install", "claude-code", "--yes", "--client-version", "2.1.330")
    assert (run(*installing).code, run(*installing, "--scope", "project").code) == (0, 0)
    _one_call(empty_project / "s.jsonl")

    kept = run("uninstall", "claude-code", "--yes", "--json").envelope["data"][0]
    assert kept["state"].endswith(".claude/settings.local.json still starts them")
    assert len(_state()) == 5
    dry = run("uninstall", "claude-code", "--scope", "project", "--dry-run")
    assert f"2 files about its sessions would be removed from {state_folder()}" in dry.err
    shown = run("uninstall", "claude-code", "--scope", "project", "--yes")
    assert f"2 files about its sessions were removed from {state_folder()}" in shown.err
    assert not Path(state_folder()).parent.exists()
    assert run("uninstall", "claude-code", "--yes", "--json").envelope["data"][0].get("state") is None

    _one_call(empty_project / "s.jsonl")
    other = Path(state_folder()) / "gemini-0123456789ab"
    other.touch()
    run("uninstall", "claude-code", "--yes")
    assert _state() == ["live", "live/gemini-0123456789ab"]


@pytest.mark.parametrize(
    "arguments", [("install",), ("install", "vim"), ("uninstall", "vim"), ("install", "codex", "--scope", "all")]
)
def test_what_is_not_known_is_named(arguments: tuple[str, ...]) -> None:
    """An unknown client or scope is a usage error that names the known ones."""
    ran = run(*arguments)
    assert ran.code == 2
    assert "codex" in ran.err or "project" in ran.err
