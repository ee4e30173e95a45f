"""Both kinds of store pass the battery for stores."""

from __future__ import annotations

from pathlib import Path

from ctxmgr.conformance import StoreConformance
from ctxmgr.store import Store, open_store


class TestDatabase(StoreConformance):
    def open(self, folder: Path, *, create: bool = False, readonly: bool = False) -> Store:
        """Open a SQLite file."""
        return open_store(str(folder / "history.db"), create=create, readonly=readonly)


class TestLog(StoreConformance):
    def open(self, folder: Path, *, create: bool = False, readonly: bool = False) -> Store:
        """Open a log of lines."""
        return open_store(str(folder / "history.jsonl"), create=create, readonly=readonly)
