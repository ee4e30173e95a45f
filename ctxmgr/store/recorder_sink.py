"""The sink of the recorder when its target is a database."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import MAX_LINE, Record, decode, use_loaded_encoder
from ctxmgr.log.mask_prefilter import mask as mask_secrets
from ctxmgr.store import open_store
from ctxmgr.store.base import Store

if TYPE_CHECKING:
    from ctxmgr.store.server_store import LivenessThread

_PAGES = 4_000
"""Pages of 4 KB in the write-ahead log before an append moves them into the database, which takes milliseconds.

An entry touches about 16 pages, most of them repeatedly. With four times SQLite's default, each is moved a quarter as often.
"""

# Connections of the parent process that a child keeps alive, because SQLite forbids using or closing them there.
_inherited: list[Store] = []


class StoreSink:
    """Appends to a store, from any thread of a process. After a fork the child opens its own connection.

    Attributes:
        masked: function that returns encoded text in its stored form, with secrets masked.
    """

    def __init__(self, path: str, durability: str, mask: bool) -> None:
        self._path = path
        self._durability = durability
        self._mask = mask
        self.masked: Callable[[bytes], bytes] = mask_secrets if mask else bytes
        self._lock = threading.Lock()
        self._owner = 0
        self._store: Store | None = None
        self._heart: LivenessThread | None = None

    def append(self, records: Sequence[Record]) -> None:
        """Append the records in one transaction. When this returns, they survive a kill of the process.

        Raises:
            Conflict, InvalidInput, StorageFailed, Busy: nothing was written.
        """
        with self._lock:
            self._open().append(records)
            if self._heart is not None:
                self._heart.hear(records)

    def append_made(self, head: bytes, value: bytes, tail: bytes) -> None:
        """Append one encoded record in one transaction; see `ctxmgr.log.journal.Journal.append_made`.

        Raises:
            Conflict, InvalidInput, StorageFailed, Busy: nothing was written.
        """
        if len(head) + len(value) + len(tail) > MAX_LINE:
            raise InvalidInput(f"record is too long; the limit is {MAX_LINE:,} bytes")
        body = head + self.masked(value) + tail
        # Decode the masked bytes, so that no secret reaches the rows derived from the record.
        record = decode(body)
        with self._lock:
            self._open().append_encoded(record, body)

    def _open(self) -> Store:
        # After a fork, SQLite's locks still belong to the parent process, which opened the file.
        if self._store is not None and self._owner != os.getpid():
            _inherited.append(self._store)
            self._store = None
        if self._store is None:
            use_loaded_encoder()
            self._store = open_store(self._path, create=True, masked=self._mask, durable=self._durability == "os")
            self._owner = os.getpid()
            self._heart = None
            if self._store.engine.shared:
                from ctxmgr.store.server_store import LivenessThread

                self._heart = LivenessThread(self._store.engine, self._lock)
            if not self._store.engine.shared:
                self._store.engine.execute(f"PRAGMA wal_autocheckpoint = {_PAGES:d}")
        return self._store

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            store, heart = self._store, self._heart
            self._store = self._heart = None
            if store is not None and self._owner == os.getpid():
                if heart is not None:
                    heart.stop()
                store.close()


def open_sink(path: str, durability: str = "process", mask: bool = True) -> StoreSink:
    """Return a sink for the recorder; see `ctxmgr.recorder.Recorder`."""
    return StoreSink(path, durability, mask)
