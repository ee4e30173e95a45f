"""What a store keeps about its own work: leases, and the files that were imported."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ctxmgr.store import Store
from ctxmgr.store.repositories.bookkeeping import FileState


@pytest.mark.only_files("a server goes by its own clock")
def test_a_lease_is_held_by_one(store: Store) -> None:
    """A lease keeps others out until it expires or is given back; its holder may take it again."""
    leases = store.leases
    assert leases.take("s", "a", 1000.0, 30)
    assert leases.take("s", "a", 1010.0, 30)

    assert not leases.take("s", "b", 1039.9, 30)
    assert leases.expiry("s", 1039.0) == 1040.0
    leases.release("s", "b")
    assert not leases.take("s", "b", 1039.9, 30)
    assert leases.take("other", "b", 1000.0, 30)
    assert leases.take("s", "b", 1040.0, 30)
    leases.release("s", "b")
    assert leases.expiry("s", 1041.0) is None
    assert leases.take("s", "a", 1041.0, 30)


@pytest.mark.only_files("a server goes by its own clock")
def test_a_lease_from_another_clock_does_not_hold_for_ever(store: Store) -> None:
    """A lease that lies further in the future than any we give is taken over."""
    assert store.leases.take("s", "a", 1_000_000.0, 30)

    assert store.leases.take("s", "b", 1000.0, 30)


def test_imported_files_are_remembered_by_their_state(store: Store, tmp_path: Path) -> None:
    """A file counts as read while size, time, inode and beginning are the same; sessions know their files."""
    place = tmp_path / "log\udcff.jsonl"
    place.write_text("one")
    os.utime(place, ns=(10**18, 10**18))
    state = FileState.read(place)
    assert not store.imported.is_unchanged(place, state)
    store.imported.remember(place, "x", state, "s", {"records": 1})

    assert store.imported.is_unchanged(place, FileState.read(place))
    assert store.imported.reports() == [{"records": 1}]
    assert [time for _, time, _ in store.imported.sources("s")] == [10**18]
    place.write_text("two")
    os.utime(place, ns=(10**18, 10**18))
    assert not store.imported.is_unchanged(place, FileState.read(place))
    place.write_text("one")
    assert not store.imported.is_unchanged(place, FileState.read(place))
