"""Exit codes: every one that a command can end with comes from a real situation, and each is explained."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.cli.exits import MEANINGS, Exit
from ctxmgr.store import open_store
from ctxmgr.store.engine import sqlite
from tests.builders import event
from tests.cli.console import LIMIT, command, run

pytestmark = pytest.mark.usefixtures("history")


def _damaged(folder: Path) -> tuple[str, ...]:
    log = folder / "torn.jsonl"
    log.write_text('{"v":1,"kind":"entry","session":"s","id":"a"', encoding="utf-8")
    return ("verify", "--store", str(log))


def _not_a_store(folder: Path) -> tuple[str, ...]:
    place = folder / "text.db"
    place.write_text("no database at all, but longer than a header needs to be " * 20, encoding="utf-8")
    return ("list", "--store", str(place))


def _half_understood(folder: Path) -> tuple[str, ...]:
    known = '{"v":1,"kind":"event","session":"s","id":"%d","type":"message"}\n'
    (folder / "odd.jsonl").write_text(known % 1 + known % 2 + '{"v":1,"kind":"odd","session":"s"}\n', encoding="utf-8")
    return ("import", str(folder / "odd.jsonl"))


def _used_up(folder: Path) -> tuple[str, ...]:
    for attempt in range(2):
        assert run("recover", "-s", "looping").code == Exit.OK
        with closing(open_store(str(folder / "history.db"))) as store:
            store.append([event("looping", 800 + attempt, "usage", {})])
    return ("recover", "-s", "looping")


def _being_recovered(folder: Path) -> tuple[str, ...]:
    store = open_store(str(folder / "history.db"))
    assert store.leases.take("looping", "another", store.clock(), 60)
    store.close()
    return ("recover", "-s", "looping")


def _not_its_own(folder: Path) -> tuple[str, ...]:
    (folder / "plan.md").write_text("# Plan\n", encoding="utf-8")
    return ("artifact", "put", str(folder / "plan.md"), "--agent", "writer", "--as", "reader")


def _too_long_for_its_budget(folder: Path) -> tuple[str, ...]:
    (folder / "plan.md").write_text("a word " * 2_000, encoding="utf-8")
    assert run("artifact", "put", str(folder / "plan.md"), "--agent", "writer").code == Exit.OK
    assert run("context", "need", "add", "reader", "writer/*", "--need", "required").code == Exit.OK
    return ("context", "assemble", "reader", "--max-tokens", "100")


SITUATIONS: list[tuple[Exit, Callable[[Path], tuple[str, ...]]]] = [
    (Exit.OK, lambda _: ("list",)),
    (Exit.OK, lambda _: ("search", "nowhere to be found")),
    (Exit.OK, lambda _: ("detect", "-s", "healthy")),
    (Exit.OK, lambda _: ("detect", "--all-sessions", "--exit-zero")),
    (Exit.OK, lambda _: ("recover", "-s", "healthy", "--force")),
    (Exit.USAGE, lambda _: ("list", "--limit", "many")),
    (Exit.NOT_FOUND, lambda _: ("show", "@99")),
    (Exit.STORE, _damaged),
    (Exit.STORE, _not_a_store),
    (Exit.STORE, lambda folder: ("export", "-o", str(folder / "no" / "folder.jsonl"))),
    (Exit.DENIED, _not_its_own),
    (Exit.BUDGET, _too_long_for_its_budget),
    (Exit.PARTIAL, _half_understood),
    (Exit.LOOP, lambda _: ("detect", "-s", "looping")),
    (Exit.HUNG, lambda _: ("detect", "-s", "hung")),
    (Exit.LOOP_AND_HUNG, lambda _: ("detect", "--all-sessions")),
    (Exit.NEEDS_HUMAN, _used_up),
    (Exit.HEALTHY, lambda _: ("recover", "-s", "healthy")),
    (Exit.REFUSED, _being_recovered),
]


@pytest.mark.parametrize(("code", "situation"), SITUATIONS)
def test_every_code_has_its_situation(code: Exit, situation: Callable[[Path], tuple[str, ...]], tmp_path: Path) -> None:
    """A command ends with the code that stands for what happened."""
    assert run(*situation(tmp_path)).code == code


def test_a_locked_store_is_busy(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another process writes, a writing command gives up after its patience with code 7 and says it may be retried."""
    monkeypatch.setattr(sqlite, "BUSY_MS", 20)
    holder = open_store(str(history))
    with holder.engine.transaction():
        holder.engine.execute("UPDATE session SET entries = entries")
        ran = run("note", "add", "0", "-m", "x", "--json")
    holder.close()

    assert (ran.code, ran.envelope["error"]["kind"], ran.envelope["error"]["retryable"]) == (Exit.BUSY, "busy", True)
    assert run("note", "add", "0", "-m", "x").code == Exit.OK


def test_every_code_is_explained_and_reached() -> None:
    """Each exit code has a meaning in ``schema exits``, and a situation in this module."""
    explained = run("schema", "exits").envelope["data"]
    shown = {code for code, _ in SITUATIONS} | {Exit.BUSY, Exit.INTERRUPTED, Exit.TERMINATED, Exit.INTERNAL}

    assert explained == {str(int(code)): text for code, text in MEANINGS.items()}
    assert shown == set(Exit)


@pytest.mark.requirement("R-04", "US1-3", "US4-3", "EC-1")
@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (("list",), 0, "empty"), (("trace",), 0, "empty"), (("search", "x"), 0, "empty"), (("messages",), 0, "empty"),
        (("sessions",), 0, "empty"), (("detect", "--exit-zero"), 3, "error"),
        (("detect",), 3, "error"), (("note", "list"), 0, "empty"),
        (("snapshot", "list"), 0, "empty"), (("verify",), 3, "error"), (("show", "@0"), 3, "error"),
        (("note", "add", "0", "-m", "x"), 3, "error"), (("snapshot", "create", "0", "--summary", "x"), 3, "error"),
        (("recover",), 3, "error"),
        (("request", "--type", "introspect", "--from", "a", "--reason", "b", "--goal", "c"), 3, "error"),
    ],
)  # fmt: skip
def test_an_empty_history(arguments: tuple[str, ...], code: int, status: str, tmp_path: Path) -> None:
    """Queries of an empty history are empty answers; what judges, checks or needs an entry says that there is none."""
    place = tmp_path / "empty.db"
    open_store(str(place), create=True).close()
    ran = run(*arguments, "--json", "--store", str(place))

    assert (ran.code, ran.envelope["status"]) == (code, status)
    if code:
        assert ran.envelope["error"]["message"] == "No history available"


def test_ctrl_c_ends_with_its_code_and_whole_records(tmp_path: Path) -> None:
    """Ctrl-C ends a reading of stdin with code 130 and no traceback; whole lines before it are kept, none half."""
    log = tmp_path / "log.jsonl"
    with subprocess.Popen(
        command("record", "--store", str(log), "--session", "s"), stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as running:  # fmt: skip
        assert running.stdin is not None
        for number in range(250):
            running.stdin.write(b'{"v":1,"kind":"event","type":"message","id":"%d"}\n' % number)
        running.stdin.write(b'{"v":1,"kind":"ev')
        running.stdin.flush()
        while not log.exists() or log.read_bytes().count(b"\n") < 200:  # the first batch is written: it is reading
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=LIMIT)

    assert (running.returncode, out, err) == (Exit.INTERRUPTED, b"", b"")
    kept = [
        row["id"] for row in run("list", "--kind", "event", "--limit", "999", "--json", "--store", str(log)).envelope["data"]
    ]
    assert kept == [str(number) for number in range(len(kept))]
    assert run("verify", "--store", str(log)).code == Exit.OK


def test_the_module_and_the_command_are_one(tmp_path: Path) -> None:
    """``python -m ctxmgr`` and the installed ``ctxmgr`` give the same version and pass the same exit codes on."""
    installed = str(Path(sys.executable).with_name("ctxmgr"))
    for start in ([installed], command()):
        shown = subprocess.run([*start, "--version"], capture_output=True, text=True, check=False, timeout=LIMIT)
        wrong = subprocess.run([*start, "show", "@99"], capture_output=True, text=True, check=False, timeout=LIMIT)
        assert (shown.returncode, shown.stdout[:7], wrong.returncode, wrong.stdout) == (0, "ctxmgr ", 3, "")
