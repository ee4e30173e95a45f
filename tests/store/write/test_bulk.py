"""A log that is indexed in blocks has the rows that it has when it is read line by line, whatever stands in it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.log import reader
from ctxmgr.log.reader import Line
from ctxmgr.store import open_store, worker_process
from ctxmgr.store.engine.disposable_files import BESIDE
from ctxmgr.store.log import log_rows, log_store
from ctxmgr.store.log.log_store import LogStore
from ctxmgr.store.write import deferred_indexes, log_parser
from tests import builders as b
from tests.store.bulk_logs import OTHERS, hostile, ordinary, sealed
from tests.store.workers import ROOT

_KILLED = """
import os, signal, sys
from ctxmgr.store.write import deferred_indexes as deferred
from ctxmgr.store.write import log_parser as gather
from ctxmgr.store.log import log_store as log_file
from ctxmgr.store.log import log_rows
from ctxmgr.store import open_store
log_rows._BLOCKS_FROM_BYTES, log_file._DEFER_FROM_BYTES, log_file._SLICE, gather._READ = 0, int(sys.argv[3]), 3, 1_500
told = []
def progress(done, total):
    told.append(done)
    if len(told) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
complete = deferred.complete
def complete_and_die(engine):
    complete(engine)
    os.kill(os.getpid(), signal.SIGKILL)
deferred.complete = complete_and_die
open_store(sys.argv[1], progress=progress)
"""

Rows = dict[str, list[Any]]
_NEVER = 1 << 60
_ODD = (b"\r\n", b"\0" * 900, b'{"v":1,"kind":"en', b'{"v":1,"kind":"odd","session":"s"}\n', b"\n", b" ")


def _rows(path: Path) -> Rows:
    """Return all rows of all tables of the index of a log, and what is damaged."""
    store = open_store(str(path), readonly=True)
    assert isinstance(store, LogStore)
    names = [str(row[0]) for row in store.engine.query("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows: Rows = {
        name: sorted(map(repr, store.engine.query(f"SELECT * FROM {name}"))) for name in names if name != "_sqlite_migrations"
    }
    assert deferred_indexes.stage(store.engine) in (None, deferred_indexes.TWICE)
    rows["state"] = [
        row for row in rows["state"] if not any(name in row for name in ("born", "anchor", deferred_indexes.STAGE))
    ]
    rows["damage"] = [(item.offset, item.length, item.reason) for item in store.damage()]
    rows["indexes"] = sorted(map(repr, store.engine.query("SELECT name, sql FROM sqlite_master WHERE type = 'index'")))
    rows["check"] = store.engine.query("PRAGMA integrity_check")
    store.close()
    return rows


def _forget(folder: Path) -> None:
    shutil.rmtree(folder / BESIDE, ignore_errors=True)


@pytest.fixture(params=[0, _NEVER], ids=["deferred", "at once"])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Rows, Rows]]:
    """Return what indexes a log in blocks and line by line; the log may grow in between."""

    def index(*pieces: bytes, together: int = 700) -> tuple[Rows, Rows]:
        path = tmp_path / "h.jsonl"
        found: list[Rows] = []
        for least in (0, _NEVER):
            monkeypatch.setattr(log_rows, "_BLOCKS_FROM_BYTES", least)
            monkeypatch.setattr(log_store, "_DEFER_FROM_BYTES", max(least, request.param))
            monkeypatch.setattr(log_parser, "_READ", together)
            _forget(tmp_path)
            whole, rows = b"", Rows()
            for piece in pieces:
                whole += piece
                path.write_bytes(whole)
                rows = _rows(path)
            found.append(rows)
        return found[0], found[1]

    return index


@pytest.mark.every(3)
@pytest.mark.parametrize("together", [100, 700, 5_000, 1 << 20])
def test_an_ordinary_log_has_the_same_rows(both: Callable[..., tuple[Rows, Rows]], together: int) -> None:
    """Entries, results and events of several sessions, in blocks of any size."""
    bodies = [ordinary(number, (b"s", b"s", b"t")[number // 7 % 3]) for number in range(900)]

    fast, slow = both(sealed(bodies)[0], together=together)

    assert fast == slow
    assert len(fast["line"]) == 900
    assert len(fast["milestone"]) > 10


def test_ordinary_lines_are_read_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of a journal goes the way of those that are read one by one, but those of rare kinds and of the project."""
    bodies = [ordinary(number) for number in range(900)]
    path = tmp_path / "h.jsonl"
    path.write_bytes(sealed([*bodies, OTHERS[0], *OTHERS[-10:]])[0])
    slowly: list[bytes] = []

    def records_of(raw: bytes, *rest: Any) -> Iterator[Line]:
        slowly.append(raw)
        return reader.read_records(raw, *rest)

    monkeypatch.setattr(log_rows, "_BLOCKS_FROM_BYTES", 0)
    monkeypatch.setattr(log_parser, "read_records", records_of)
    assert len(_rows(path)["line"]) == 901
    assert len(slowly) == 11


@pytest.mark.slow
def test_a_second_process_reads_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, both: Callable[..., tuple[Rows, Rows]]
) -> None:
    """What a second process reads ahead is written down as what is read here, in slices of any size."""
    monkeypatch.setattr(log_parser, "_SECOND_PROCESS_FROM", 0)
    monkeypatch.setattr(log_store, "_SLICE", 2)
    bodies = [body for number in range(9_000) for body in [ordinary(number), *hostile()[number : number + 1]]]

    fast, slow = both(sealed(bodies)[0])

    assert fast == slow


@pytest.mark.parametrize("whole", [0, 1, 3])
def test_a_lost_process_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, both: Callable[..., tuple[Rows, Rows]], whole: int
) -> None:
    """The rest of a log is read here when the second process ends before its time."""
    asked: list[tuple[object, ...]] = []

    @contextmanager
    def ending(function: str, *given: Any) -> Generator[Iterator[Any]]:
        def some() -> Iterator[Any]:
            yield from islice(log_parser.blocks(*given), whole)
            raise worker_process.ProcessLost("it was killed")

        asked.append((function, *given))
        yield some()

    monkeypatch.setattr(log_parser, "_SECOND_PROCESS_FROM", 0)
    monkeypatch.setattr(worker_process, "run_in_second_process", ending)
    fast, slow = both(sealed([ordinary(number) for number in range(50)])[0])

    assert fast == slow
    assert [item[0] for item in asked] == ["ctxmgr.store.write.log_parser:blocks"]


@pytest.mark.every(3)
@pytest.mark.parametrize("at", [1, 2, 7, 20, 99])
def test_a_killed_process_leaves_an_index_that_goes_on(
    request: pytest.FixtureRequest, tmp_path: Path, both: Callable[..., tuple[Rows, Rows]], at: int
) -> None:
    """Killed at any block, inside of a transaction, or when all is there but what was deferred: the next opening goes on."""
    least = str(request.node.callspec.params["both"])
    data = sealed([ordinary(number, (b"s", b"t")[number // 9 % 2]) for number in range(300)])[0]
    fast, slow = both(data)
    _forget(tmp_path)
    path = tmp_path / "h.jsonl"

    killed = subprocess.run([sys.executable, "-c", _KILLED, str(path), str(at), least], cwd=ROOT, check=False)
    rows = _rows(path)

    assert killed.returncode == (-signal.SIGKILL if at < 99 or least == "0" else 0)
    assert rows == fast == slow


def test_results_far_from_their_entries_are_joined(both: Callable[..., tuple[Rows, Rows]]) -> None:
    """Results blocks behind their entries, or before them, of the session or of another one with the same ids."""
    entries = [b'{"v":1,"kind":"entry","session":"%b","id":"f%d","agent":"a","action":"b"}' % (s, n)
               for s in (b"s", b"t") for n in range(40)]  # fmt: skip
    results = [b'{"v":1,"kind":"result","session":"%b","entry":"f%d","status":"%b"}' % (s, n, status)
               for s, status in ((b"t", b"error"), (b"s", b"ok")) for n in range(3, 50, 2)]  # fmt: skip
    bodies = [*results[:30], *map(ordinary, range(50)), *entries, *map(ordinary, range(50, 99)), *results[30:]]

    fast, slow = both(sealed(bodies)[0], together=500)

    assert fast == slow
    assert sum("'error'" in row for row in fast["entry"]) == 19


@pytest.mark.parametrize("far", [2, 40, 290])
def test_a_record_that_comes_twice_counts_once(both: Callable[..., tuple[Rows, Rows]], far: int) -> None:
    """In the same block, in the next one, or at the other end of the log; what comes behind it counts on."""
    bodies = [ordinary(number) for number in range(300)]
    bodies.insert(2 + far, bodies[2])

    fast, slow = both(sealed(bodies)[0], *[sealed([ordinary(number)])[0] for number in (301, 2)])

    assert fast == slow
    assert len(fast["line"]) == 301


def test_an_index_that_another_process_builds_is_completed_by_an_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that was open when another log took the place of its own goes on where that one's building was left."""
    path = tmp_path / "h.jsonl"
    path.write_bytes(sealed([ordinary(number) for number in range(5)])[0])
    store = open_store(str(path))
    path.write_bytes(sealed([ordinary(number, b"u") for number in range(400)])[0])
    for module, name, value in (
        (log_rows, "_BLOCKS_FROM_BYTES", 0),
        (log_store, "_DEFER_FROM_BYTES", 0),
        (log_store, "_SLICE", 2),
        (log_parser, "_READ", 999),
    ):
        monkeypatch.setattr(module, name, value)

    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(str(path), progress=interrupt)
    assert deferred_indexes.stage(store.engine) == deferred_indexes.BUILDING

    assert store.append([b.entry("u", 1)]).added == 1
    store.close()
    after = _rows(path)
    _forget(tmp_path)
    monkeypatch.setattr(log_rows, "_BLOCKS_FROM_BYTES", _NEVER)
    monkeypatch.setattr(log_store, "_DEFER_FROM_BYTES", _NEVER)
    assert _rows(path) == after


@pytest.mark.parametrize("most", [1, 10, 100])
def test_what_follows_many_records_is_indexed_at_once(
    monkeypatch: pytest.MonkeyPatch, both: Callable[..., tuple[Rows, Rows]], most: int
) -> None:
    """Only so many records wait for their indexes."""
    bodies = [*map(ordinary, range(200)), ordinary(3), ordinary(150)]
    monkeypatch.setattr(log_rows, "_MAX_DEFERRED", most)

    fast, slow = both(sealed(bodies)[0])

    assert fast == slow
    assert len(fast["line"]) == 200


@pytest.mark.parametrize("together", [300, 2_000, 1 << 20])
def test_hostile_lines_have_the_same_rows(both: Callable[..., tuple[Rows, Rows]], together: int) -> None:
    """All hostile lines in one log, each with a sum that follows, between ordinary ones."""
    bodies = [body for number, one in enumerate(hostile()) for body in (one, ordinary(number))]

    fast, slow = both(sealed(bodies)[0], together=together)

    assert fast == slow
    assert len(fast["damage"]) > 50


@pytest.mark.every(5)
@pytest.mark.parametrize("first", range(0, len(hostile()), 32))
def test_a_few_hostile_lines_have_the_same_rows(both: Callable[..., tuple[Rows, Rows]], first: int) -> None:
    """Few of them at a time among ordinary ones, so that what others do hides nothing."""
    few = hostile()[first : first + 32]
    bodies = [body for number, one in enumerate(few) for body in (*map(ordinary, range(3 * number, 3 * number + 3)), one)]

    fast, slow = both(sealed(bodies)[0])

    assert fast == slow


@pytest.mark.long
@given(data=st.data())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_log_has_the_same_rows(both: Callable[..., tuple[Rows, Rows]], data: st.DataObject) -> None:
    """Logs of any lines, sealed, unsealed, torn, wrongly sealed and repeated, that grow and are read in any blocks."""
    bodies = st.one_of(
        st.builds(ordinary, st.integers(0, 60), st.sampled_from([b"s", b"t"])),
        st.sampled_from(hostile()),
    )
    pieces: list[bytes] = []
    total = ""
    for _ in range(data.draw(st.integers(1, 3))):
        piece, total = sealed(data.draw(st.lists(bodies, max_size=25)), total)
        lines = piece.splitlines(keepends=True)
        for at in data.draw(st.lists(st.integers(0, len(lines)), max_size=3)):
            odd = data.draw(
                st.sampled_from(
                    [b"\r\n", b"\0" * 900, b'{"v":1,"kind":"en', b'{"v":1,"kind":"odd","session":"s"}\n', b"\n", b" "]
                )
            )
            lines.insert(at, odd)
        if lines and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(lines) - 1))
            lines.insert(at, data.draw(st.sampled_from([lines[at], lines[0], lines[at].replace(b'"a"', b'"z"')])))
        pieces.append(b"".join(lines))
    pieces[-1] = pieces[-1][: len(pieces[-1]) - data.draw(st.integers(0, 40))]

    fast, slow = both(*pieces, together=data.draw(st.sampled_from([64, 500, 4_000, 1 << 20])))

    assert fast == slow
