"""A database whose sums are one chain over all sessions is read as it is, and goes on with a chain for each session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.log.anchor import load
from ctxmgr.store import open_store
from ctxmgr.store.engine import schema
from ctxmgr.types.query import Filters
from tests.cli.console import run
from tests.store.common_chain import VERSION, fill, former_database, records

_BROKEN = {
    "changed": "UPDATE record SET body = replace(body, 'x4', 'y4') WHERE seq = 5",
    "removed": "DELETE FROM record WHERE seq = 5",
    "cut": "DELETE FROM entry WHERE seq = 9; DELETE FROM record WHERE seq = 9",
    "stripped": "UPDATE record SET sum = NULL WHERE seq = 5",
    "all stripped": "UPDATE record SET sum = NULL",
    "forged": "INSERT INTO record (seq, session, kind, id, body, sum) SELECT 10, 1, 'x', 'f', body, sum FROM record LIMIT 1",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Name a database."""
    return tmp_path / "run.db"


def _kinds(place: Path, *, readonly: bool = True) -> list[tuple[str, int]]:
    with closing(open_store(str(place), readonly=readonly)) as store:
        return [(item.kind, item.offset) for item in store.examine().damaged]


def test_reading_leaves_it_as_it_is(place: Path) -> None:
    """Queries and ``verify`` answer from the version before; no byte of the file changes, and no anchor is made."""
    former_database(place)
    before = place.read_bytes()

    with closing(open_store(str(place), readonly=True)) as store:
        assert store.sessions.count() == 3
        assert store.queries.entries(1, Filters(), 0, None)[1] == 3
        assert store.examine().damaged == []
    for command in (["list", "--session", "a"], ["sessions"], ["verify"], ["doctor"], ["search", "x4"]):
        assert run(*command, "--store", str(place)).code == 0, command

    assert place.read_bytes() == before


def test_no_record_is_rewritten_and_both_chains_are_checked(place: Path) -> None:
    """What was recorded before the migration and behind it is verified, and the seam between them."""
    before = former_database(place)

    with closing(open_store(str(place))) as store:
        engine = store.engine
        assert (engine.schema_version(), records(engine)) == (schema.LATEST, before)
        fill(store, 9)
        assert store.examine().damaged == []
        for seq in (2, 7, 9, 10, 12, 14):  # first ones, last ones and others of both chains
            engine.execute("UPDATE record SET body = body || ' ' WHERE seq = :seq", {"seq": seq})
            assert [(item.kind, item.offset) for item in store.examine().damaged] == [("altered", seq)]
            engine.execute("UPDATE record SET body = rtrim(body) WHERE seq = :seq", {"seq": seq})
        assert store.examine().damaged == []
    assert _kinds(place) == []


@pytest.mark.parametrize("change", _BROKEN)
def test_what_was_broken_before_stays_broken(place: Path, change: str) -> None:
    """A migration makes nothing green: what the old chain tells, it tells before, behind, and when others went on."""
    former_database(place, _BROKEN[change])
    told = _kinds(place)
    assert told

    open_store(str(place)).close()
    assert _kinds(place) == told
    with closing(open_store(str(place))) as store:
        fill(store, 30)
    assert _kinds(place)[: len(told)] == told or change == "cut"
    assert _kinds(place)


def test_an_anchor_from_before_counts(place: Path) -> None:
    """What an anchor knew of the common chain is compared after the migration, and the next one knows all sessions."""
    former_database(place)
    anchored = load(str(place))
    assert anchored is not None
    assert (anchored.length, anchored.ends_digest) == (9, "")
    assert _kinds(place) == []
    with closing(open_store(str(place))) as store:
        assert store.examine().damaged == []
        fill(store, 9)
    anchored = load(str(place))
    assert anchored is not None
    assert (anchored.length, len(anchored.ends_digest)) == (18, 16)
    assert _kinds(place) == []


_KILLED = """
import os, signal, sys
from ctxmgr.store import open_store
from ctxmgr.store.engine import schema
name, script = schema.SCRIPTS[-1]
statements, dies_at = schema._statements(script), int(sys.argv[2])
run = schema._runner
def runner(text):
    def stepwise(db):
        for number, statement in enumerate(statements):
            if number == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            db.execute(statement)
    return stepwise if text == script else run(text)
schema._runner = runner
store = open_store(sys.argv[1])
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.cases(1)
@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_a_kill_in_the_middle_changes_nothing(place: Path, step: int) -> None:
    """Killed before any statement, the database is of the version before, and is read; behind the last, it is migrated."""
    before = former_database(place)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(place), str(step)], cwd=Path(__file__).parents[3], env=dict(os.environ), check=False
    )
    assert killed.returncode == -signal.SIGKILL

    with closing(open_store(str(place), readonly=True)) as store:
        assert store.engine.schema_version() == (VERSION if step < 3 else schema.LATEST)
        assert (records(store.engine), store.examine().damaged) == (before, [])
    with closing(open_store(str(place))) as store:
        fill(store, 9)
        assert store.engine.schema_version() == schema.LATEST
        assert store.examine().damaged == []


def test_a_database_that_is_too_old_is_not_read(place: Path) -> None:
    """What no reader knows any more says what to run; it is not changed."""
    former_database(place, f"PRAGMA user_version = {schema.READABLE - 1}")
    before = place.read_bytes()

    assert run("list", "--store", str(place)).code == 5
    assert place.read_bytes() == before
