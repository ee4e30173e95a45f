"""``record``: wrapped commands with their output passed through, many kinds of events, and sessions of several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import builders as b
from tests.cli.console import LIMIT, command, lines, process, run
from tests.cli.test_record_input import rows

PYTHON = (sys.executable, "-c")


@pytest.fixture(autouse=True)
def store_in_use(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record into a database, and into a log."""
    monkeypatch.setenv("CTXMGR_STORE", str(store_path))


def test_a_wrapped_command_is_one_action(store_path: Path) -> None:
    """``record -- CMD`` records the command, its output, its exit code and the session's end as one action."""
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(int(sys.argv[1]))"
    good = process("record", "-s", "s", "--agent", "ci", "--", *PYTHON, script, "0")
    bad = process("record", "-s", "s", "--", *PYTHON, script, "3")

    assert (good, bad) == ((0, "out\n", "err\n"), (3, "out\n", "err\n"))
    first, second = rows("--kind", "entry")
    assert (first["agent"], first["status"], first["input"]["command"][-1]) == ("ci", "ok", "0")
    assert first["output"] == {"exitCode": 0, "stdout": "out\n", "stderr": "err\n"}
    assert (second["agent"], second["status"], second["error"]["type"]) == ("shell", "error", "exit 3")
    session = run("sessions", "--json").envelope["data"][0]
    assert [one["outcome"] for one in session["processes"]] == ["completed", "completed"]


def test_a_killed_command_ends_like_in_a_shell() -> None:
    """A command that a signal ended gives 128 and the signal's number, as shells do."""
    ran = process("record", "--", *PYTHON, "import os; os.kill(os.getpid(), 9)")

    assert (ran.code, rows("--kind", "entry")[0]["error"]["type"]) == (137, "exit 137")


def test_a_command_that_is_not_there() -> None:
    """What can't be run is a fault of usage, and recorded as an action that failed."""
    ran = run("record", "--json", "--", "no-such-command")

    assert (ran.code, ran.envelope["error"]["message"]) == (2, "can't run no-such-command: No such file or directory")
    assert [row["status"] for row in rows("--kind", "entry")] == ["error"]


def test_much_output_is_passed_on_whole() -> None:
    """A megabyte of output passes through byte for byte; its last 64 KiB are recorded, with the number left out."""
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096); sys.stdin.close()"
    ran = subprocess.run(command("record", "--", *PYTHON, script), capture_output=True, timeout=LIMIT, check=True)

    assert ran.stdout == bytes(range(256)) * 4096
    kept = rows("--kind", "entry")[0]["output"]["stdout"]
    assert kept.startswith("[983040 bytes left out]\n")


def test_output_comes_while_the_command_runs() -> None:
    """Output is passed on as it comes, not at the end."""
    script = "print('first', flush=True); input()"
    with subprocess.Popen(command("record", "--", *PYTHON, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == b"first\n"
        running.stdin.write(b"\n")
        running.stdin.close()
        assert running.wait(timeout=LIMIT) == 0


def test_ctrl_c_reaches_the_command_and_is_recorded() -> None:
    """Ctrl-C ends the wrapped command too, and the action is recorded as interrupted: code 130, no traceback."""
    script = "print('ready', flush=True); import time; time.sleep(600)"
    with subprocess.Popen(
        command("record", "--", *PYTHON, script), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        os.kill(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=LIMIT)

    assert (running.returncode, b"ctxmgr" in err) == (130, False)
    assert [row["status"] for row in rows("--kind", "entry")] == ["interrupted"]


@pytest.mark.requirement("US7-3", "US7-5")
def test_fifty_types_of_events_are_kept_and_found() -> None:
    """Events of fifty types recorded through the command are all stored, listed by type, and found beside entries."""
    kinds = [f"custom_{number}" for number in range(40)]
    kinds += ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "current_mode_update",
              "available_commands_update", "user_message_chunk", "NodeStreamDeltaEvent", "ToolCallEvent"]  # fmt: skip
    given = [b.event("s", number, kind, {"text": f"needle of {kind}"}) for number, kind in enumerate(kinds)]
    ran = run("record", "--json", given=lines(b.entry("s", 0, "Grep", {"pattern": "needle"}), *given))

    assert (len(set(kinds)), ran.envelope["data"]["added"]) == (50, 51)
    hits = run("search", "NEEDLE", "--max", "99", "--json").envelope["data"]
    assert [hit["row"]["id"] for hit in hits] == [b.entry_id("s", 0), *(event["id"] for event in given)]
    assert {hit["row"]["kind"] for hit in hits} == {"entry", "event"}
    for number in (0, 17, 39, 42):
        assert [row["id"] for row in rows("--event-type", kinds[number]) if row["id"] < "s-v0048"] == [f"s-v{number:04}"]
    assert {row["type"] for row in rows("--kind", "event")} == set(kinds[:48])


@pytest.mark.requirement("FR-026", "FR-013", "EC-6")
def test_a_session_keeps_its_processes_apart() -> None:
    """A session is mapped to every process that executed it, and each entry to its own."""
    for name in ("p1", "p2"):
        run("record", given=lines(b.build("session", "s", b.at(0), process=name), b.entry("s", int(name[1]), process=name)))

    assert [one["process"] for one in run("sessions", "--json").envelope["data"][0]["processes"]] == ["p1", "p2"]
    assert [row["process"] for row in rows("--kind", "entry")] == ["p1", "p2"]
