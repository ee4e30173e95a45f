"""A thread that syncs behind a writer: soon, once for many writes, and no longer than the writer is there."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from ctxmgr.log import sync_thread
from ctxmgr.log.sync_thread import Syncer


class Writer:
    """Counts how often it was synced."""

    def __init__(self) -> None:
        self.synced = 0
        self.came = threading.Event()

    def sync_from_thread(self) -> None:
        """Note that it was called."""
        self.synced += 1
        self.came.set()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for less than half a second."""
    monkeypatch.setattr(sync_thread, "SYNC_EVERY", 0.05)


def test_many_writes_are_one_sync_and_a_later_one_is_another() -> None:
    """What is written after a sync began wakes the thread again; without a write nothing is synced."""
    writer = Writer()
    syncer = Syncer(writer)
    assert not writer.came.wait(0.15)
    for number in (1, 2):
        for _ in range(100):
            syncer.note()
        assert writer.came.wait(30)
        writer.came.clear()
        assert (writer.synced, syncer.dirty) == (number, False)
    syncer.stop()


def test_what_was_stopped_syncs_no_more() -> None:
    """Stopping twice, or writing after it, is no fault."""
    writer = Writer()
    syncer = Syncer(writer)
    syncer.stop()
    syncer.stop()
    syncer.note()

    assert not writer.came.wait(0.2)


def test_a_forgotten_writer_can_go() -> None:
    """The thread does not keep it, though it still waits."""
    writer = Writer()
    syncer, gone = Syncer(writer), weakref.ref(writer)
    del writer
    gc.collect()

    assert gone() is None
    syncer.note()
