"""Indexes that are made after the rows: what comes twice, a kill and another process leave the index that a log has."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.store import log_rows, log_store, open_store
from ctxmgr.store.write import deferred_indexes, log_parser
from tests import builders as b
from tests.store.bulk_logs import NEVER, Rows, forget_index, indexed_rows, ordinary, sealed
from tests.store.workers import ROOT

_KILLED = """
import os, signal, sys
from ctxmgr.store.write import deferred_indexes as deferred
from ctxmgr.store.write import log_parser as gather
from ctxmgr.store import log_store as log_file
from ctxmgr.store import log_rows
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


@pytest.mark.cases(1)
@pytest.mark.parametrize("at", [1, 2, 7, 20, 99])
def test_a_killed_process_leaves_an_index_that_goes_on(
    request: pytest.FixtureRequest, tmp_path: Path, both: Callable[..., tuple[Rows, Rows]], at: int
) -> None:
    """Killed at any block, inside of a transaction, or when all is there but what was deferred: the next opening goes on."""
    least = str(request.node.callspec.params["both"])
    data = sealed([ordinary(number, (b"s", b"t")[number // 9 % 2]) for number in range(300)])[0]
    fast, slow = both(data)
    forget_index(tmp_path)
    path = tmp_path / "h.jsonl"

    killed = subprocess.run([sys.executable, "-c", _KILLED, str(path), str(at), least], cwd=ROOT, check=False)
    rows = indexed_rows(path)

    assert killed.returncode == (-signal.SIGKILL if at < 99 or least == "0" else 0)
    assert rows == fast == slow


@pytest.mark.cases(1)
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
    after = indexed_rows(path)
    forget_index(tmp_path)
    monkeypatch.setattr(log_rows, "_BLOCKS_FROM_BYTES", NEVER)
    monkeypatch.setattr(log_store, "_DEFER_FROM_BYTES", NEVER)
    assert indexed_rows(path) == after


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
