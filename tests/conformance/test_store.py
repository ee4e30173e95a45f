"""Every kind of store passes the battery for stores: a database, a log, and one on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

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


class TestServer(StoreConformance):
    url: str

    @pytest.fixture(autouse=True)
    def empty_database(self, server_url: str) -> None:
        """Name an empty database, where a file would have a folder."""
        self.url = server_url

    def open(self, folder: Path, *, create: bool = False, readonly: bool = False) -> Store:
        """Open the store on the run's server."""
        return open_store(self.url, create=create, readonly=readonly)
