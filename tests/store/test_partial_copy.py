"""A part of a store in another one: how far it is goes with its records, and what waits is let go with what it waits for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ctxmgr.log import fast_json
from ctxmgr.store import Store, open_store
from ctxmgr.store.partial_copy import CopyProgress, PartialCopy
from tests.builders import write


@pytest.fixture
def whole() -> Iterator[Store]:
    """Open a store with two sessions."""
    opened = open_store(":memory:", create=True)
    write(opened, "s", ["Bash:a", "Bash:b"])
    write(opened, "t", ["Bash:c"])
    yield opened
    opened.close()


@pytest.fixture
def own() -> Iterator[Store]:
    """Open an empty store."""
    opened = open_store(":memory:", create=True)
    yield opened
    opened.close()


def copy(part: PartialCopy, session: str) -> None:
    """Copy what is new of a session."""
    with part.extend() as progress:
        for row in part.read_after(progress.place):
            if row.session == session:
                part.add(row.place, fast_json.json_object(fast_json.loads(row.body)))
            else:
                progress.hidden += 1
            progress.place = row.place
        part.write()


def test_only_what_is_new_is_read(whole: Store, own: Store) -> None:
    """Places stay, and what is hidden is counted; the next time begins behind the last place."""
    part = PartialCopy(whole.engine, own.engine)
    copy(part, "s")

    assert own.engine.query("SELECT seq FROM record ORDER BY seq") == [(1,), (2,), (3,), (4,)]
    assert (part.shows("s"), part.shows("t"), part.holds(4), part.holds(5)) == (True, False, True, False)
    progress = part.progress()
    assert progress is not None
    assert (progress.place, progress.hidden, part.last_copied(), part.is_behind(progress)) == (6, 2, 4, False)
    write(whole, "s", ["Bash:d"])
    assert part.is_behind(progress)
    assert [row.place for row in part.read_after(progress.place)] == [7, 8]


def test_a_fault_leaves_it_as_it_was(whole: Store, own: Store) -> None:
    """Records and progress are written together, or neither."""
    part = PartialCopy(whole.engine, own.engine)

    def fail() -> None:
        with part.extend() as progress:
            progress.place = 6
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert part.progress() == CopyProgress()


@pytest.mark.parametrize("told", ["", "x", "6 2", "six 2 mark", "6 2 mark", "6 2 mark more", "\ud800"])
def test_progress_of_another_store_counts_for_nothing(told: str, whole: Store, own: Store) -> None:
    """What was made of another store, or was changed, is copied anew from the beginning."""
    part = PartialCopy(whole.engine, own.engine)
    copy(part, "s")
    own.engine.execute(
        "UPDATE state SET value = :value WHERE name = 'extract'", {"value": told.encode("utf-8", "replace").decode()}
    )
    assert part.progress() is None

    copy(part, "t")
    assert (part.shows("s"), part.shows("t")) == (False, True)


def test_what_waits_is_let_go_once(whole: Store, own: Store) -> None:
    """By the session and the id that it waits for, in the order of the places."""
    part = PartialCopy(whole.engine, own.engine)
    with part.extend():
        rows = list(part.read_after(0))
        key = rows[0].key
        for row in (rows[1], rows[0], rows[1]):
            part.wait(row, "later")
        assert (part.has_waiting(), part.waits(rows[0].place), part.waits(rows[2].place)) == (True, True, False)
        assert part.release(key + 1, "later") == []
        assert [row.place for row in part.release(key, "later")] == [1, 2]
        assert (part.release(key, "later"), part.has_waiting()) == ([], False)
