"""``ship``, ``receive``, ``tap`` and ``mcp``: what they refuse before they begin, and what they answer when they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ctxmgr.cli.commands import connect
from ctxmgr.cli.commands.connect import show_progress
from ctxmgr.history.shipper import Progress
from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from ctxmgr.store.project_session import PROJECT
from tests import builders as b
from tests.cli.console import LIMIT, Ran, command, lines, process, run
from tests.cli.view_samples import draw

pytestmark = pytest.mark.usefixtures("empty_project")


@pytest.fixture
def log(empty_project: Path) -> Path:
    """Return a log of four records."""
    place = empty_project / "run.jsonl"
    assert run("record", "--store", str(place), given=lines(*b.steps("s", ["Bash:a", "Bash:b -> c"]))).code == 0
    return place


def test_what_was_shipped_is_told_and_known_the_next_time(log: Path) -> None:
    """A row for each log: from where to where, how much was new, and what is left; the second time nothing is added."""
    size, away = log.stat().st_size, str(log.with_name("away.db"))
    first, second = (run("ship", str(log), "--store", "away.db", "--json").envelope for _ in range(2))
    text = run("ship", "--status")

    (row,) = first["data"]
    assert (first["status"], row["source"], row["target"], row["unit"]) == ("ok", str(log), away, "bytes")
    assert (row["added"], row["known"], row["done"], row["size"], row["lag"]) == (4, 0, size, size, 0)
    assert (second["status"], second["data"][0]["added"], second["data"][0]["done"]) == ("ok", 4, size)
    with closing(open_store("away.db", readonly=True)) as store:
        assert store.sessions.entry_count(1) == 2
    assert (text.code, text.out.splitlines()[0]) == (0, f"{log} -> {away}: all shipped")
    assert "  in all 4 records added, 0 known already; last at 20" in text.out


def test_the_progress_is_told_without_contacting_a_store(log: Path) -> None:
    """Nothing is known at first; what was recorded since the last time counts as left."""
    nothing = run("ship", "--status")
    assert (nothing.code, nothing.out, "nothing was shipped from this machine yet" in nothing.err) == (0, "", True)
    assert run("ship", "--status", "--json").envelope["status"] == "empty"

    run("ship", str(log), "--store", "away.db")
    os.unlink("away.db")
    before = log.stat().st_size
    run("record", "--store", str(log), given=lines(b.entry("s", 9)))
    (row,) = run("ship", "--status", "--json").envelope["data"]
    assert (row["lag"], row["done"]) == (log.stat().st_size - before, before)
    assert not Path("away.db").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no store to ship to"),
        (("--store", "run.jsonl"), "run.jsonl can't be shipped to itself"),
        (("--store", "link.jsonl"), "link.jsonl can't be shipped to itself"),
        (("--store", "away.db", "--every", "0"), "--every"),
        (("--store", "away.db", "--every", "nan"), "--every"),
        (("--store", "away.db", "--status", "--follow"), "--status shows the progress once"),
    ],
)
def test_what_can_not_be_shipped_is_refused_before_anything_is_read(
    arguments: tuple[str, ...], message: str, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a target, to itself by whatever name, or at an interval that is none: a fault of usage, and no store is made."""
    monkeypatch.delenv("CTXMGR_STORE")
    Path("link.jsonl").symlink_to(log)
    before = log.read_bytes()
    ran = run("ship", str(log), *arguments, "--json")

    assert (ran.code, ran.envelope["error"]["kind"]) == (2, "invalid")
    assert message in ran.envelope["error"]["message"]
    assert log.read_bytes() == before
    assert not Path("away.db").exists()


@pytest.mark.parametrize("by", ["variable", "settings"])
def test_the_target_may_be_set(by: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no option names it, the environment does, and then the user's settings."""
    monkeypatch.delenv("CTXMGR_STORE")
    if by == "variable":
        monkeypatch.setenv("CTXMGR_STORE", str(log.with_name("set.db")))
    else:
        place = Path(os.environ["XDG_CONFIG_HOME"]) / "ctxmgr" / "config.toml"
        place.parent.mkdir(parents=True)
        place.write_text(f'store = "{log.with_name("set.db")}"\n')

    assert run("ship", str(log), "--json").envelope["data"][0]["target"] == str(log.with_name("set.db"))
    assert log.with_name("set.db").exists()


def test_a_store_that_is_away_is_told_and_remembered(log: Path) -> None:
    """The command fails as one that may be tried again; the progress keeps the reason and its time until a try succeeds."""
    ran = run("ship", str(log), "--store", "postgresql:///x?host=/nowhere/at/all", "--json")
    (row,) = (told := run("ship", "--status", "--json").envelope)["data"]

    assert (ran.code, ran.envelope["error"]["kind"], ran.envelope["error"]["retryable"]) == (5, "storage", True)
    assert "can't be reached" in ran.envelope["error"]["message"]
    assert (told["status"], row["added"], row["lag"]) == ("partial", 0, log.stat().st_size)
    assert "can't be reached" in row["error"]
    assert row["since"] is not None


def test_the_state_of_the_project_is_taken_along_only_where_that_is_wished(log: Path) -> None:
    """Rules and versions of another project would be granted there: they are left out, counted, and the option is named."""
    state: Record = {"v": 1, "kind": "event", "session": PROJECT, "id": "k", "ts": b.at(9), "type": "context", "data": {}}
    log.write_text(log.read_text() + lines(state))
    left, taken = run("ship", str(log), "--store", "a.db"), run("ship", str(log), "--store", "b.db", "--trust-project")

    assert f"{log}: 1 records of the project's own state were left out; --trust-project takes them along" in left.err
    assert "left out" not in taken.err


def test_each_row_says_what_is_left_and_why() -> None:
    """People see what is behind, in the unit of the source, and since when it fails."""
    behind = Progress("a.jsonl", "away", done=1_000, size=3_500, added=7, known=2, error="it is away", since="noon")
    drawn = draw(lambda out: show_progress(out, [behind, Progress("b.db", "away", done=4, size=5)]), width=100).splitlines()

    assert drawn[0] == "a.jsonl -> away: 2,500 of 3,500 bytes left"
    assert drawn[1] == "  in all 7 records added, 2 known already; last at no time yet"
    assert drawn[2] == "  failing since noon: it is away"
    assert drawn[3] == "b.db -> away: 1 of 5 records left"


def test_what_the_store_does_not_take_is_told_without_what_is_zero(log: Path) -> None:
    """A record that can't be stored is a warning with its reason, in `doctor` too; what is in an archive stands in its row."""
    odd: Record = {"v": 1, "kind": "entry", "session": "s", "id": "odd", "agent": 3, "action": None}
    log.write_text(log.read_text() + lines(odd))
    ran = run("ship", str(log), "--store", "away.db")
    (check,) = (row for row in run("doctor", "--json").envelope["data"] if row["name"] == "ship")

    assert f"{log}: 1 record can't be stored: " in ran.err
    assert "another content" not in ran.err
    assert (check["level"], "; 1 record can't be stored: " in check["finding"]) == ("warn", True)
    assert "the log keeps them" in check["hint"]
    moved = Progress("a.jsonl", "away", added=7, archived=1_300, archive="/srv/kept")
    assert "  in all 7 records added, 0 known already, 1,300 archived in /srv/kept; last" in draw(
        lambda out: show_progress(out, [moved])
    )


@contextmanager
def started(*arguments: str) -> Generator[subprocess.Popen[str]]:
    """Start a command that goes on running; it is gone at the end."""
    running = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def ended(running: subprocess.Popen[str], number: int) -> Ran:
    """Return how a command ends on a signal."""
    running.send_signal(number)
    out, err = running.communicate(timeout=LIMIT)
    return Ran(running.returncode, out, err)


@pytest.mark.cases(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_follows_ends_in_order(number: int, log: Path) -> None:
    """Ctrl-C and the signal of service managers end it with the answer, not with a trace; what came meanwhile is shipped."""
    with started("ship", str(log), "--follow", "--every", "0.05", "--store", "away.db", "--json") as running:
        _wait_for(2)
        run("record", "--store", str(log), given=lines(b.entry("s", 9)))
        _wait_for(3)
        ran = ended(running, number)

    assert (ran.code, ran.err) == (0, "")
    assert (ran.envelope["status"], ran.envelope["data"][0]["added"]) == ("ok", 5)


def _wait_for(entries: int) -> None:
    """Wait until so many entries have arrived."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        if Path("away.db").exists():
            with closing(open_store("away.db", readonly=True)) as store:
                if store.sessions.count() and store.sessions.entry_count(1) == entries:
                    return
        time.sleep(0.02)
    raise AssertionError("they never came")


@pytest.mark.parametrize("megabytes", ["0", "-1", "257"])
def test_a_body_that_no_memory_holds_is_refused(megabytes: str) -> None:
    """The limit is named before a port is opened."""
    ran = run("receive", "--port", "0", "--max-body", megabytes, "--store", "new.db", "--json")

    assert (ran.code, ran.envelope["error"]["kind"]) == (2, "invalid")
    assert ran.envelope["error"]["hint"] == "1 to 256 megabytes"


def _wait_until_caught(process_id: int) -> None:
    """Wait until a process handles SIGTERM: a moment passes between the lines that it says and that."""
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        status = Path(f"/proc/{process_id}/status").read_text()
        if int(status.partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.02)
    raise AssertionError("the signal is never handled")


@pytest.mark.cases(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_receiving_nothing_is_an_empty_answer(number: int) -> None:
    """It says where programs send to; ended by either signal it answers, with the store made and nothing in it."""
    with started("receive", "--port", "0", "--store", "new.db", "--json") as running:
        assert running.stderr is not None
        address, store = running.stderr.readline().split(" at ")[1].split(" into ")
        assert running.stderr.readline().strip() == (
            f"OTEL_EXPORTER_OTLP_ENDPOINT={address} OTEL_EXPORTER_OTLP_PROTOCOL=http/json"
        )
        _wait_until_caught(running.pid)
        ran = ended(running, number)

    assert store.startswith("new.db;")
    assert (ran.code, ran.envelope["status"], ran.envelope["next"]) == (0, "empty", [])
    assert ran.envelope["data"] == {"exports": 0, "spans": 0, "added": 0, "refused": {}}


@pytest.mark.parametrize(
    ("arguments", "message"), [((), "tap needs the command of an agent"), (("--", "/nonexistent/agent"), "/nonexistent/agent")]
)
def test_a_tap_without_an_agent_is_a_fault_of_usage(arguments: tuple[str, ...], message: str) -> None:
    """What an editor starts says on stderr what is missing; stdout belongs to the protocol and stays empty."""
    ran = process("tap", "--store", "new.db", *arguments)

    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.requirement("LV-tap")
def test_a_tap_ends_with_the_code_of_its_agent() -> None:
    """Also where nothing was said."""
    assert process("tap", "--store", "new.db", "--", sys.executable, "-c", "raise SystemExit(7)").code == 7


def test_without_the_extra_mcp_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing library is a fault of usage with the command that installs it, not a trace."""
    monkeypatch.setitem(sys.modules, "ctxmgr.mcp_server.server", None)
    ran = run("mcp")

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "ctxmgr: mcp needs the mcp extra\n  pip install 'ctxmgr-cli[mcp]'\n"


@pytest.mark.parametrize("given", ["", "a-token-of-my-own"])
def test_only_a_token_that_was_made_here_is_printed(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over HTTP there is always a token: that of the environment, which is not repeated, or a new one each time."""
    served: list[tuple[int, str]] = []

    def serve(_server: object, port: int, token: str) -> None:
        served.append((port, token))

    monkeypatch.setattr("ctxmgr.mcp_server.server.serve_http", serve)
    monkeypatch.setenv(connect.MCP_TOKEN, given)
    ran = [run("mcp", "--http", "8765", "--store", "new.db") for _ in range(2)]

    assert [port for port, _ in served] == [8765, 8765]
    if given:
        assert {token for _, token in served} == {given}
        assert {each.err for each in ran} == {"ctxmgr: http://127.0.0.1:8765/mcp\n"}
    else:
        told = [each.err.removeprefix("ctxmgr: http://127.0.0.1:8765/mcp, bearer token ").strip() for each in ran]
        assert told == [token for _, token in served]
        assert len(set(told)) == 2
        assert all(len(token) >= 32 for token in told)
