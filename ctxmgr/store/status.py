"""The status of a store without reading its records: library, counts, damage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import Damaged
from ctxmgr.store.engine.schema import LATEST
from ctxmgr.store.engine.sqlite import is_sound, library_version, require_sound_library, sqlite
from ctxmgr.store.project_session import PROJECT

if TYPE_CHECKING:  # the store stands above this
    from ctxmgr.store.base import Store

MAX_FAULTS = 20
"""Largest number of faults in a status; ``verify`` lists all."""


@dataclass(frozen=True, slots=True)
class Library:
    """The SQLite library in use: its Python module, its version, and why it must not be used (None if it may)."""

    module: str
    version: str
    fault: Damaged | None


@dataclass(frozen=True, slots=True)
class Contents:
    """The size of a store, the version of its schema, and the latest version that this program knows."""

    sessions: int
    entries: int
    schema: int
    latest: int


def library() -> Library:
    """Return the SQLite library in use, and whether it is sound."""
    fault: Damaged | None = None
    if not is_sound(library_version()):
        try:
            require_sound_library()
        except Damaged as error:
            fault = error
    return Library(str(sqlite.__name__).partition(".")[0], str(sqlite.sqlite_version), fault)


def contents(store: Store) -> Contents:
    """Return the size and the schema version of a store.

    Raises:
        Damaged, Busy, StorageFailed: the store can't be read.
    """
    ((sessions, entries),) = store.engine.query(
        "SELECT count(*) FILTER (WHERE id <> :project), coalesce(sum(entries), 0) FROM session", {"project": PROJECT}
    )
    return Contents(int(sessions), int(entries), store.engine.schema_version(), _latest(store))


def _latest(store: Store) -> int:
    if not store.engine.shared:
        return LATEST
    from ctxmgr.store.engine import postgresql_schema

    return postgresql_schema.LATEST


def server_facts(store: Store) -> dict[str, Any]:
    """Return facts about a store's server: version, user, team, encryption, response time, clock difference, trigrams.

    Raises:
        Denied, Busy, StorageFailed: the server can't be queried.
    """
    # Leases and heartbeats use the server's clock, so users may need to know how far the local one is off.
    began = time.monotonic()
    ahead = store.engine.clock() - time.time()
    took = (time.monotonic() - began) * 1000
    version, user, encrypted, trigrams = store.engine.query(
        "SELECT current_setting('server_version'), current_user, "
        "(SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl), "
        "to_regclass('ctxmgr.search_text_trigrams') IS NOT NULL"
    )[0]
    return {
        "version": str(version), "user": str(user), "team": store.team(), "encrypted": encrypted, "trigrams": bool(trigrams),
        "milliseconds": round(took, 1), "clockAhead": round(ahead, 1),
    }  # fmt: skip


def quick_check(store: Store) -> list[str]:
    """Return the first `MAX_FAULTS` faults: the unreadable ranges of a log, or the damage that SQLite reports.

    Checksums are not verified, because that needs every record; `Store.verify` does it.
    """
    found = [f"{item.length:,} bytes at offset {item.offset:,}: {item.reason}" for item in store.damage()[:MAX_FAULTS]]
    try:
        found += store.engine.faults(MAX_FAULTS)
    except Damaged as error:
        found.append(error.message)
    return found[:MAX_FAULTS]
