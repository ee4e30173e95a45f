"""The watcher: calls that hang and silence in the sessions that hooks told of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.clients import CLIENTS, SESSION_SUFFIX, WATCHER_LOCK, SessionFile, read_rows, state_folder
from ctxmgr.clients.claude_code import CLIENT
from ctxmgr.errors import Busy
from ctxmgr.live.event_answer import WATCH
from ctxmgr.live.installation import hook_command
from ctxmgr.live.watcher import INTERRUPT, HookedSessions, only_watcher
from tests.cli.console import process, run
from tests.live.scene import SILENT, batch, hooked, settings, write_log

NOW = 1_800_000_000.0
PROMPT = {"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}


def _aged(path: Path, seconds: float) -> None:
    os.utime(path, (NOW - seconds, NOW - seconds))


def _session(folder: Path, *, ago: float = 1800.0, finished: bool = False) -> Path:
    """Write a session whose last call came back only if ``finished``, and have the hook told of it so long ago."""
    log = folder / "s.jsonl"
    write_log(log, [("ls", "a.py"), ("npm run dev", "listening")])
    rows: list[dict[str, Any]] = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for place, row in enumerate(rows):
        row["timestamp"] = datetime.fromtimestamp(NOW - ago - 10 + place, UTC).isoformat().replace("+00:00", "Z")
    log.write_text("".join(json.dumps(row) + "\n" for row in (rows if finished else rows[:-1])))
    assert hooked("claude-code", {**PROMPT, "transcript_path": str(log), "cwd": str(folder)}) == SILENT
    _aged(log, ago)
    for path in Path(state_folder()).iterdir():
        _aged(path, ago)
    return log


def _sessions() -> HookedSessions:
    return HookedSessions(lambda: NOW)


def _until(happened: Any) -> None:
    end = time.monotonic() + 30
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)
    assert happened()


@pytest.mark.requirement("LV-hang")
def test_a_call_that_hangs_is_told_to_a_person_and_to_the_agent_once(tmp_path: Path) -> None:
    """The user's command gets it while it hangs; the agent hears cause and next step at its next event, and only then."""
    noticed = tmp_path / "noticed"
    writing = f"import os, sys; open({str(noticed)!r}, 'w').write(os.environ['CTXMGR_SESSION'] + ' ' + sys.stdin.read())"
    settings(f'[live]\nexec = ["{sys.executable}", "-c", "{writing}"]\n')
    log = _session(tmp_path)
    sessions = _sessions()

    (raised,) = sessions.tick()
    assert (raised.event, raised.session, raised.finding and raised.finding.kind) == ("raised", "s", "hung")
    assert sessions.tick() == []
    _until(lambda: noticed.exists() and noticed.read_text().endswith("\n"))
    assert noticed.read_text().startswith("s Claude Code in ")
    assert "npm run dev" in noticed.read_text()
    assert noticed.read_text().endswith(f"\n{INTERRUPT}\n")

    call = {"tool_name": "Bash", "tool_input": {"command": "npm run dev"}, "tool_use_id": "toolu_1", "tool_response": "stopped"}
    said = hooked("claude-code", batch(call, log)).context
    assert said.startswith("[ctxmgr] This was noted while nothing came back: Your call has not returned for 30 min")
    assert "Next step: Start it in the background" in said
    assert hooked("claude-code", batch(call, log)) == SILENT

    os.utime(log, (NOW, NOW))
    (over,) = sessions.tick()
    assert (over.event, over.finding and over.finding.resolved) == ("over", "progress")


@pytest.mark.requirement("LV-hang")
def test_the_agent_is_told_with_the_words_of_the_person_who_ended_the_call(tmp_path: Path) -> None:
    """After an interrupt the next thing that an agent reads is its user's word: what hung stands beside it."""
    log = _session(tmp_path)
    assert len(_sessions().tick()) == 1

    said = json.loads(hooked("claude-code", {**PROMPT, "transcript_path": str(log)}).out)["hookSpecificOutput"]
    assert said["hookEventName"] == "UserPromptSubmit"
    assert "npm run dev" in said["additionalContext"]


@pytest.mark.parametrize("text", ['mode = "watch"', 'quiet_kinds = ["hung"]', 'quiet_actions = ["Bash"]'])
def test_settings_keep_the_agent_untold(text: str, tmp_path: Path) -> None:
    """A mode that only watches tells no agent; a quiet kind or action tells nobody."""
    settings(f"[live]\n{text}\n")
    log = _session(tmp_path)

    assert len(_sessions().tick()) == (1 if "mode" in text else 0)
    assert hooked("claude-code", {**PROMPT, "transcript_path": str(log)}) == SILENT


@pytest.mark.requirement("LV-wait")
@pytest.mark.parametrize(
    ("client", "event"),
    [
        ("claude-code", {"hook_event_name": "Notification", "notification_type": "permission_prompt", "message": "May I?"}),
        ("claude-code", {"hook_event_name": "Notification", "message": "of an older version, which names no type"}),
        ("codex", {"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "rm x"}}),
        ("gemini", {"hook_event_name": "Notification", "notification_type": "ToolPermission"}),
    ],
)
def test_a_wait_for_a_person_is_noted(client: str, event: dict[str, str], tmp_path: Path) -> None:
    """Each client that tells of it has it in the session's file, and hears nothing."""
    begun = {"session_id": "s", "transcript_path": str(tmp_path / "s.jsonl"), "cwd": str(tmp_path)}
    name = "BeforeAgent" if client == "gemini" else "UserPromptSubmit"
    assert hooked(client, {**begun, "hook_event_name": name, "prompt": "Go on."}) == SILENT
    assert hooked(client, {**begun, **event}) == SILENT

    rows = read_rows(SessionFile(client, "s").path)
    assert [(row["kind"], row.get("type")) for row in rows] == [("session", None), ("event", "waiting")]


@pytest.mark.requirement("LV-wait")
def test_a_wait_for_a_person_is_no_hang(tmp_path: Path) -> None:
    """A call that waits for its user's permission may do so for an hour; other notifications are no wait."""
    log = _session(tmp_path)
    other = {"hook_event_name": "Notification", "notification_type": "auth_success"}
    path = Path(SessionFile("claude-code", "s").path)
    for event, found in ((other, 1), ({**other, "notification_type": "permission_prompt"}, 0)):
        hooked("claude-code", {"session_id": "s", "transcript_path": str(log), **event})
        rows = read_rows(str(path))
        for row in rows:
            row["ts"] = datetime.fromtimestamp(NOW - 1799, UTC).isoformat()
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        _aged(path, 1700)
        assert len(_sessions().tick()) == found


@pytest.mark.requirement("LV-wait")
def test_a_wait_is_imported_with_its_session_once(tmp_path: Path) -> None:
    """A session that is being hooked is one session in a store: its log, and between its records what the hooks noted."""
    log = _session(tmp_path)
    hooked("claude-code", {"session_id": "s", "hook_event_name": "Notification", "transcript_path": str(log)})
    store = str(tmp_path / "history.db")
    for grows in (False, True, True):
        if grows:
            with log.open("a") as stream:
                stream.write("\n")
        assert run("import", str(log), "--store", store).code == 0
    records = [json.loads(line) for line in run("export", "--store", store).out.splitlines()]

    assert len({row["session"] for row in records}) == 1
    assert [row["type"] for row in records if row["kind"] == "event"].count("waiting") == 1
    assert sum(row["kind"] == "entry" for row in records) == 2


def test_a_session_lives_until_its_end_or_until_its_process_is_gone(tmp_path: Path) -> None:
    """An end that the client tells, a process that was seen and is gone, and hours of nothing."""
    _session(tmp_path)
    path = Path(SessionFile("claude-code", "s").path)
    assert len(_sessions().living_sessions()) == 1
    assert _sessions().has_ended() is False
    assert HookedSessions(lambda: NOW + 7200).has_ended()
    assert HookedSessions(lambda: NOW - 10_000).has_ended(), "times in the future keep no watcher"

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as client:
        path.write_text(json.dumps({**read_rows(str(path))[0], "pid": client.pid}) + "\n")
        _aged(path, 60)
        sessions = _sessions()
        assert len(sessions.living_sessions()) == 1
    assert sessions.has_ended()
    assert not _sessions().has_ended(), "a shell that only started the hook is gone before anyone looks"

    hooked("claude-code", {"session_id": "s", "hook_event_name": "SessionEnd"})
    assert _sessions().has_ended()


@pytest.mark.parametrize("content", [b"", b"garbage\n", b"[]\n", b'{"v":1,"kind":"session"}\n', b"\xff\n" * 50_000])
def test_a_file_that_makes_no_sense_is_passed_over(content: bytes) -> None:
    """What lies beside the state is read with suspicion."""
    folder = Path(state_folder())
    folder.mkdir(parents=True)
    (folder / f"claude-code-0{SESSION_SUFFIX}").write_bytes(content)
    (folder / f"claude-code-1{SESSION_SUFFIX}").mkdir()
    (folder / f"claude-code-2{SESSION_SUFFIX}").symlink_to("/dev/zero")

    assert _sessions().tick() == []


@pytest.mark.cases(1)
@pytest.mark.parametrize("log", ["/nonexistent/s.jsonl", "/dev/zero", "\0", "/etc", "relative"])
def test_a_log_that_can_not_be_read_is_passed_over(log: str, tmp_path: Path) -> None:
    """The path comes from the client's event; the other sessions are watched all the same."""
    _session(tmp_path)
    hooked("claude-code", {**PROMPT, "session_id": "t", "transcript_path": log, "cwd": str(tmp_path)})
    _aged(Path(SessionFile("claude-code", "t").path), 1800)

    assert [sight.session for sight in _sessions().tick()] == ["s"]


def test_the_first_hook_starts_one_watcher_which_ends_by_itself(tmp_path: Path) -> None:
    """It is not waited for, a second one is refused, and it ends after the session did."""
    log = tmp_path / "s.jsonl"
    log.write_text("")
    event = {**PROMPT, "transcript_path": str(log), "cwd": str(tmp_path)}
    assert hooked("claude-code", event, CTXMGR_WATCH="on") == SILENT
    lock = Path(state_folder()) / WATCHER_LOCK
    _until(lambda: lock.exists() and lock.read_text().strip().isdigit())
    pid = int(lock.read_text())
    try:
        assert hooked("claude-code", event, CTXMGR_WATCH="on") == SILENT
        refused = process("watch", "--hooked", "--once")
        assert (refused.code, f"as process {pid}" in refused.err) == (7, True)
        hooked("claude-code", {"session_id": "s", "hook_event_name": "SessionEnd"})
        _until(lambda: not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text())
    finally:
        if Path(f"/proc/{pid}").exists():
            os.kill(pid, 9)


def test_the_watcher_is_one(tmp_path: Path) -> None:
    """Who holds the file is the watcher; switched off by a setting, none begins."""
    with only_watcher(), pytest.raises(Busy), only_watcher():
        pass
    _session(tmp_path)
    settings("[live]\nwatch = false\n")
    os.unlink(Path(state_folder()) / WATCHER_LOCK)
    subprocess.run([sys.executable, "-I", hook_command(CLIENT)[-2], WATCH], check=True, timeout=30)
    assert not (Path(state_folder()) / WATCHER_LOCK).exists()


@pytest.mark.parametrize("client", CLIENTS)
def test_odd_waits_and_ends_are_no_fault(client: str) -> None:
    """An end or a wait of a session that never began leaves no file."""
    for name in ("Notification", "PermissionRequest", "SessionEnd"):
        assert hooked(client, {"session_id": "s", "hook_event_name": name, "notification_type": 7}) == SILENT

    assert not Path(SessionFile(client, "s").path).exists()
