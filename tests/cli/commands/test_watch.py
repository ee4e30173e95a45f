"""``watch``: one line for each thing found, commands run on it, exit codes asked for, and an orderly end."""

from __future__ import annotations

import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ctxmgr.cli.commands.watch import Hook, Show, Watcher
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.terminal import Printer
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.history.live.record_sources import Batch, Follower, LogTail, Sight
from ctxmgr.log import ids
from ctxmgr.log.codec import Record
from ctxmgr.log.journal import Journal
from ctxmgr.store import open_store
from ctxmgr.types.finding import Finding
from tests import builders as b
from tests.cli.console import LIMIT, command, make_history, process, run
from tests.history.live_world import Clock, Tape, spin

FIXTURES = Path(__file__).parents[3] / "fixtures" / "demo"
CLAUDE = FIXTURES / "claude-code/projects/-home-dev-invoice-tool/7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"
LOOP = b.steps("s", ["Bash:ls -> same"] * 3)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Path of a log that holds a loop."""
    place = tmp_path / "run.jsonl"
    append(place, LOOP)
    return place


def append(place: Path, records: Iterable[Record]) -> None:
    """Write records to a log."""
    with Journal(place) as journal:
        journal.append(list(records))


def rows(out: str) -> list[dict[str, Any]]:
    """Return the JSON objects of an output, one a line."""
    return [json.loads(line) for line in out.splitlines()]


def found() -> Finding:
    """Return a finding."""
    board = BlackboardHistory(None, Tape(), on_loop="report")
    spin(board)
    return board.findings()[0]


def events(out: str) -> list[tuple[str, str | None]]:
    """Return each row's event and the severity of its finding."""
    return [(row["event"], row["finding"] and row["finding"]["severity"]) for row in rows(out)]


def test_a_log_of_our_own(log: Path) -> None:
    """What lasts in a log is told in one line each, where and why; nothing else is written."""
    append(log, [b.build("sessionEnd", "s", b.at(9), outcome="completed")])
    ran = run("watch", str(log), "--once")

    assert (ran.code, ran.err) == (0, "")
    first, second = ran.out.splitlines()
    assert "LOOP repetition  coder in s @0..@2" in first
    assert "3 times" in first
    assert second.endswith("ended  s  completed")


def test_a_log_that_cannot_be_read_is_refused(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would ever be found in it, so a watch of it would be silent for ever."""

    def refuse(path: Path) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("ctxmgr.cli.commands.watch.open_regular", refuse)
    ran = run("watch", str(log))

    assert ran.code == Exit.STORE
    assert f"can't read {log}: Permission denied" in ran.err


def test_json_has_one_object_a_line(log: Path) -> None:
    """Each row has the same keys first; a look that finds nothing new still gives a sign of life for each session."""
    ran = run("watch", str(log), "--once", "--json")

    assert events(ran.out) == [("raised", "loop"), ("raised", "hung"), ("heartbeat", None)]
    assert all(list(row)[:5] == ["schema", "ts", "event", "session", "finding"] for row in rows(ran.out))
    assert {row["schema"] for row in rows(ran.out)} == {"ctxmgr/1"}
    assert rows(ran.out)[-1]["entries"] == 3
    assert rows(ran.out)[0]["finding"]["evidence"]["indexes"]["members"] == [0, 1, 2]


def test_a_foreign_log() -> None:
    """The log of another agent is followed through its importer."""
    ran = run("watch", str(CLAUDE), "--once", "--json", "--exit-on", "loop")

    assert ran.code == Exit.LOOP
    assert rows(ran.out)[0]["session"] == CLAUDE.stem
    assert rows(ran.out)[0]["finding"]["kind"] == "cycle"


def test_a_session_of_a_store(tmp_path: Path) -> None:
    """A session is named by id, prefix or ``--session``; a store by ``--store`` or as the target; else the latest."""
    place = str(make_history(tmp_path / "history.db"))
    exported = str(tmp_path / "history.jsonl")
    run("export", "--all-sessions", "--store", place, "-o", exported)
    for arguments in (["looping", "--store", place], ["loop", "--store", exported], [place, "-s", "looping"],
                      [exported, "-s", "looping"]):  # fmt: skip
        ran = run("watch", *arguments, "--once", "--json", "--exit-on", "loop")
        assert (ran.code, rows(ran.out)[0]["session"]) == (Exit.LOOP, "looping")
    latest = run("watch", "--store", place, "--once", "--json")

    assert events(latest.out) == [("ended", None), ("heartbeat", None)]
    assert {row["session"] for row in rows(latest.out)} == {"healthy"}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.jsonl"], Exit.NOT_FOUND, "no log at nowhere.jsonl"),
        (["nobody"], Exit.NOT_FOUND, "no session 'nobody'"),
        (["--store", "{tmp}/none.db"], Exit.NOT_FOUND, "no store at"),
        (["{tmp}/text.jsonl"], Exit.USAGE, "not a log of a known format"),
        (["--every", "0"], Exit.USAGE, "--every 0 is no time"),
        (["--every", "nan"], Exit.USAGE, "--every nan is no time"),
        (["--exit-on", "loop,crash"], Exit.USAGE, "--exit-on 'crash' is unknown"),
        (["--exec", "'half"], Exit.USAGE, "No closing quotation"),
        (["--exec", " "], Exit.USAGE, "--exec needs a command"),
    ],
)
def test_what_cannot_be_watched(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    """What is wrong with the arguments is said in one message, with its exit code, before anything is followed."""
    (tmp_path / "text.jsonl").write_text("hello\nworld\n")
    given = [argument.format(tmp=tmp_path) for argument in arguments]
    if "--store" not in given:
        given += ["--store", str(make_history(tmp_path / "history.db"))]
    ran, as_json = run("watch", *given, "--once"), run("watch", *given, "--once", "--json")

    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
    assert (as_json.code, message in json.loads(as_json.out)["error"]["message"]) == (code, True)


def test_a_store_without_history(tmp_path: Path) -> None:
    """An empty store has nothing to follow."""
    place = str(tmp_path / "history.db")
    run("record", "--store", place, given="")

    assert run("watch", "--store", place, "--once").code == Exit.NOT_FOUND


@pytest.mark.parametrize(
    ("wanted", "after", "code"),
    [("loop", 3, 10), ("hung", 3, 0), ("hung", 500, 11), ("loop,hung", 3, 10), ("loop,hung", 500, 12), ("warn", 500, 0)],
)
def test_exit_on(log: Path, wanted: str, after: float, code: int) -> None:
    """The first finding of a wanted severity ends the watch, with the exit code that ``detect`` would have."""
    clock = Clock()
    clock.at += after
    watcher = Watcher(Follower(LogTail(log), {}, clock), show()[0], exit_on=frozenset(wanted.split(",")))

    assert watcher.run(1, once=True) == code


def show(*, as_json: bool = True) -> tuple[Show, io.StringIO]:
    """Return what shows, and where it writes lines for people."""
    out = io.StringIO()
    return Show(Printer(out, out, terminal=False), as_json=as_json, clock=Clock()), out


def test_it_looks_again_and_again(tmp_path: Path) -> None:
    """Between two looks it waits for the given time; what comes meanwhile is told at the next look, and its end ends it."""
    log, clock = tmp_path / "run.jsonl", Clock()
    end = b.build("sessionEnd", "s", b.at(9), outcome="failed")
    steps = [LOOP[:2], LOOP[2:4], LOOP[4:6], b.steps("s", ["Bash:ls -> new"], start=3), [end]]
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        clock.at += seconds
        append(log, steps.pop(0))

    shown, out = show(as_json=False)
    code = Watcher(Follower(LogTail(log), {}, clock), shown, until_end=True, pause=pause).run(2.5)

    assert (code, waits, steps) == (0, [2.5] * 5, [])
    assert [line.split()[1:3] for line in out.getvalue().splitlines()] == [
        ["✗", "LOOP"], ["over", "loop"], ["ended", "s"],
    ]  # fmt: skip


def test_the_end_of_a_hang_is_said_in_one_word() -> None:
    """A hang is of the kind and of the severity "hung"; a loop has both."""
    for severity, kind, said in (("hung", "hung", "over  hung of "), ("loop", "cycle", "over  loop cycle of ")):
        shown, out = show(as_json=False)
        shown.sight(Sight("over", "s", found().model_copy(update={"severity": severity, "kind": kind, "resolved": "progress"})))
        assert said in out.getvalue()


def test_signs_of_life(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In JSON a minute without a row brings a sign of life; for people nothing is written."""
    clock = Clock()
    clock.at += 4
    for as_json in (True, False):
        shown = Show(Printer(io.StringIO(), io.StringIO(), terminal=False), as_json=as_json, clock=clock)
        watcher = Watcher(Follower(LogTail(log), {}, clock), shown)
        for _ in range(5):
            watcher.look()
            clock.at += 20

    assert events(capsys.readouterr().out) == [("raised", "loop"), ("heartbeat", None)]


CATCH = (
    "import os, sys; given = [sys.stdin.read(), os.environ['CTXMGR_FINDING'], os.environ['CTXMGR_SESSION']]; "
    "open(sys.argv[1], 'a').write('\\n'.join(given) + '\\n')"
)


def test_exec_gets_the_finding(log: Path, tmp_path: Path) -> None:
    """The command gets the finding as JSON on its stdin and in its environment, and the session; its output is no data."""
    caught = tmp_path / "caught by it"
    ran = process("watch", str(log), "--once", "--json", "--exit-on", "loop",
                  "--exec", f"{shlex.quote(sys.executable)} -c \"{CATCH}; print('noise')\" '{caught}'")  # fmt: skip

    given = caught.read_text().splitlines()
    assert ran.code in (Exit.LOOP, Exit.LOOP_AND_HUNG)
    assert json.loads(given[0]) == json.loads(given[1]) == rows(ran.out)[0]["finding"]
    assert given[2] == "s"
    assert "noise" not in ran.out
    assert "noise" in ran.err


def test_recorded_text_never_becomes_part_of_the_command(tmp_path: Path) -> None:
    """Whatever a log holds, the command runs as it was given, through no shell."""
    log, caught = tmp_path / "run.jsonl", tmp_path / "caught"
    evil = "$(touch owned); `touch owned` && touch owned | {finding} %s \0 \ud800"
    records = [{**record, "session": evil, "agent": evil} for record in b.steps("s", [f"{evil}:{evil} -> same"] * 3)]
    append(log, records)
    hook = f'{shlex.quote(sys.executable)} -c "{CATCH}" {caught} $HOME *'
    ran = process("watch", str(log), "--once", "--exec", hook, folder=tmp_path, env={"PYTHONPATH": str(FIXTURES.parents[1])})

    assert ran.err == ""
    assert json.loads(caught.read_text().splitlines()[0])["scope"]["agent"] == evil
    assert caught.read_text().splitlines()[2].startswith("$(touch owned); `touch owned`")
    assert not (tmp_path / "owned").exists()
    assert "\x00" not in ran.out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([sys.executable, "-c", "raise SystemExit(3)"], "ended with 3"),
        (["/no/such/command"], "could not be run: No such file or directory"),
        ([sys.executable, "-c", "import os; os.close(0)"], ""),
    ],
)
def test_a_failing_command_is_said_and_no_more(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """That the command failed, or is not there, or does not read, is told on stderr; the watch goes on."""
    Hook(argv).run(Sight("raised", "s", found()))

    err = capsys.readouterr().err
    assert message in err
    assert bool(message) == bool(err)


def test_a_command_that_hangs_is_ended(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that takes too long is ended and told of."""
    monkeypatch.setattr("ctxmgr.cli.commands.watch._HOOK_SECONDS", 0.05)
    Hook([sys.executable, "-c", "import signal; signal.pause()"]).run(Sight("raised", "s", found()))

    assert "took longer than 0.05 s and was ended" in capsys.readouterr().err


def test_a_huge_finding_still_runs_the_command(tmp_path: Path) -> None:
    """A finding that is too large for the environment is whole on stdin and short there."""
    caught = tmp_path / "caught"
    large = found().model_copy(update={"members": ["x" * 36] * 10_000})
    Hook([sys.executable, "-c", CATCH, str(caught)]).run(Sight("raised", "s" * 200_000, large))

    whole, short, session = caught.read_text().splitlines()
    assert len(json.loads(whole)["members"]) == 10_000
    assert json.loads(short)["id"] == large.id
    assert len(session) == 100_000


def test_lines_are_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes and line ends in what was recorded reach neither the line nor the JSON raw."""
    finding = found().model_copy(update={"reason": "\x1b[31mred\nline\u202e \x7f"})
    for as_json in (False, True):
        shown, out = show(as_json=as_json)
        shown.sight(Sight("raised", "s\x1b]0;x\x07", finding))
        shown.sight(Sight("over", "s", finding.model_copy(update={"resolved": "\x1b[0m"})))
        shown.sight(Sight("ended", "s", None, "\x1b[0m", 2))
        text = out.getvalue() + capsys.readouterr().out
        assert len(text.splitlines()) == 3
        assert not {"\x1b", "\x07", "\x7f", "\u202e"} & set(text)
    assert "2" in text


@pytest.mark.cases(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_orderly_end(log: Path, number: int, code: int) -> None:
    """Ctrl-C and SIGTERM end the watch with their exit codes, what was told before is complete, and nothing is said."""
    with subprocess.Popen(
        command("watch", str(log), "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ)
    ) as running:
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())
        running.send_signal(number)
        out, err = running.communicate(timeout=LIMIT)

    assert first["event"] == "raised"
    assert all(json.loads(line) for line in out.splitlines())
    assert (running.returncode, err) == (code, b"")


def test_sigterm_while_a_server_is_asked(server_url: str, admin: psycopg.Connection[Any]) -> None:
    """The question is cancelled, so that the connection can give back what the watch holds; the exit code tells of SIGTERM."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    held = "SELECT count(*) FROM ctxmgr.lease WHERE expires > extract(epoch FROM clock_timestamp())"
    with closing(open_store(server_url, create=True)) as store:
        store.append([record | {"ts": ids.now()} for record in LOOP])
    with subprocess.Popen(
        command("watch", "--service", "--store", server_url, "--every", "0.01"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        until(lambda: admin.execute(held.encode()).fetchall() == [(2,)])
        with admin.transaction():
            admin.execute("LOCK TABLE ctxmgr.session")
            until(lambda: bool(admin.execute(waiting).fetchall()))
            running.send_signal(signal.SIGTERM)
            _, err = running.communicate(timeout=LIMIT)
    assert (running.returncode, err) == (143, b"")
    assert admin.execute(held.encode()).fetchall() == [(0,)]


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + LIMIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_reader_that_goes_away_ends_it(log: Path) -> None:
    """``ctxmgr watch | head`` ends in order."""
    with subprocess.Popen(
        command("watch", str(log), "--json", "--every", "0.01"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        append(log, b.steps("s", [f"Bash:{number % 2} -> same{number % 2}" for number in range(8)], start=3))
        assert (running.wait(LIMIT), running.stderr.read()) == (0, b"")


def test_what_the_source_gives_is_shown_at_once(tmp_path: Path) -> None:
    """A row is written out as soon as it is known, whatever the output is."""

    class Flushing(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    class Once:
        def poll(self) -> Batch | None:
            return None

    out = Flushing()
    before, sys.stdout = sys.stdout, out
    try:
        Watcher(Follower(Once()), Show(Printer(out, out, terminal=False), as_json=True)).look()
    finally:
        sys.stdout = before

    assert out.flushed == 1


def test_a_person_is_told_that_it_follows(log: Path) -> None:
    """At a terminal it says at once what it follows, how to end it and what to do next; a program is told nothing of it."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command("watch", str(log)), stdin=theirs, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        assert running.stdout is not None
        running.stdout.readline()  # what is said at the start was said before
        shown = os.read(ours, 4096)
        running.send_signal(signal.SIGINT)
        assert running.wait(LIMIT) == Exit.INTERRUPTED
    os.close(ours)

    text = "".join(shown.decode("utf-8").split())  # a terminal breaks a long path anywhere
    assert text.startswith(f"Following{log};Ctrl-Cendsit.Whenitisstuck:ctxmgrrecover")
    assert "Following" not in process("watch", str(log), "--once").err


def test_who_follows_the_hooks_is_told_so_at_once() -> None:
    """While no session hangs nothing else is shown."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command("watch", "--hooked"), stdin=theirs, stdout=subprocess.PIPE, stderr=theirs) as running:
        os.close(theirs)
        shown = os.read(ours, 4096)
        running.send_signal(signal.SIGINT)
        assert running.wait(LIMIT) == Exit.INTERRUPTED
    os.close(ours)

    assert shown.startswith(b"Following all sessions of clients that call ctxmgr; Ctrl-C ends it.")


@pytest.mark.parametrize("suffix", ["db", "sqlite", "sqlite3"])
def test_a_store_of_each_suffix_is_watched(suffix: str, tmp_path: Path) -> None:
    """A database is no log, whichever of its usual names it has."""
    place = make_history(tmp_path / f"h.{suffix}")
    ran = run("watch", str(place), "--once", "--json")
    assert [row["event"] for row in rows(ran.out)] == ["ended", "heartbeat"]
