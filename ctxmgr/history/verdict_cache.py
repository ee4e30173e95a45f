"""Cache the verdicts on sessions in which nothing was recorded since they were judged.

A verdict is a function of a session's records, of the detection settings and of the program. The causes of unresolved
findings are also searched for in related sessions, so they depend on all records of the store. Verdicts that depend on the
clock are never cached: those on running sessions, and those for a given time. This module imports no detector.
"""

from __future__ import annotations

import os

from ctxmgr import __version__
from ctxmgr.log import fast_json
from ctxmgr.log.codec import digest
from ctxmgr.log.fast_json import cast
from ctxmgr.store.base import is_live
from ctxmgr.store.engine.disposable_files import AnswerCache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ctxmgr.store import Store

GONE_AFTER = 900.0
"""Seconds after a write to one of its files in which an imported session counts as running."""

STUCK = ("loop", "hung", "loop+hung")
"""Verdicts that require action by somebody."""

_CODE = ("detect", "diagnose", "history", "log", "store", "text", "types")
"""Packages whose code determines verdicts."""

_AT_ONCE = 500

OWN_FORMAT = "ctxmgr"
"""The name of our own format. It stands here because `history.formats` loads slowly."""


def is_running(store: Store, key: int, session: str) -> bool:
    """Whether a recorder has a session open, or an imported session probably goes on.

    An imported session goes on if both its last record and the time of one of its files are recent. The file's time alone is
    not enough, since a copy of a log is a new file. For a log of our own format the lock decides, as if it were read in place.
    """
    if store.is_live(session):
        return True
    last = store.sessions.last_moment(key)
    # A time in the future comes from another clock and says nothing.
    if last is None or not 0 <= store.clock() - last < GONE_AFTER:
        return False
    for name, _, form in store.imported.sources(session):
        if form == OWN_FORMAT:
            if is_live(name, session):
                return True
            continue
        try:
            if 0 <= store.clock() - os.stat(name).st_mtime < GONE_AFTER:
                return True
        except (OSError, ValueError):
            continue  # nobody writes to a missing file
    return False


class VerdictCache:
    """The cached answers about the sessions of one store under given settings.

    Args:
        store: the store with the sessions.
        settings: the ``detect`` table of the configuration.
    """

    def __init__(self, store: Store, settings: Mapping[str, Any]) -> None:
        self._store = store
        self._answers = AnswerCache(store.engine, whole=not hasattr(store, "source"))
        self._common = _common_mark(settings)
        self._marks: dict[int, tuple[str | None, str | None]] = {}
        self._places: dict[int, int] = {}
        self._waiting: list[tuple[str, str, str]] = []

    def row(self, key: int, session: str) -> dict[str, Any] | None:
        """Return the cached row of a session in the list of sessions, or None if the session must be judged."""
        return self._get("session", key, session)

    def keep_row(self, key: int, session: str, row: dict[str, Any]) -> None:
        """Cache the row of a session, unless it is running."""
        self._put("session", key, session, row)

    def verdict(self, key: int, session: str) -> dict[str, Any] | None:
        """Return the cached ``verdict`` and ``notes`` of a session, or None if the session must be judged."""
        return self._get("verdict", key, session)

    def keep_verdict(self, key: int, session: str, found: dict[str, Any]) -> None:
        """Cache the verdict on a session, unless it is running. With unresolved findings it depends on the whole store."""
        lasts = any(finding["resolved"] is None for finding in found["verdict"]["findings"])
        self._put("verdict", key, session, found, by_store=lasts)

    def continuation(self, key: int, session: str) -> dict[str, Any] | None:
        """Return the cached continuation as its JSON form, which is valid while nothing is recorded in the store, or None."""
        self._places[key] = self._store.sessions.last_record(None)[0]
        return self._get("continuation", key, session)

    def keep_continuation(self, key: int, session: str, told: dict[str, Any], records: int) -> None:
        """Cache a continuation. ``records`` is the number of records that the recovery itself has written."""
        added = self._store.sessions.last_record(None)[0] - self._places.pop(key)
        if key in self._marks and added == records:  # otherwise another process has written meanwhile
            self._marks[key] = None, self._make_mark(None)
            self._put("continuation", key, session, told, by_store=True)

    def close(self) -> None:
        """Write the new answers, and release the file."""
        self._flush()
        self._answers.close()

    def _get(self, kind: str, key: int, session: str) -> dict[str, Any] | None:
        self._marks.pop(key, None)
        if self._common is None or is_running(self._store, key, session):
            return None
        # Computed before the session is judged: if records come meanwhile, the mark of the verdict never recurs.
        by_session, by_store = kind != "continuation", kind != "session"
        marks = self._marks[key] = (self._make_mark(key) if by_session else None, self._make_mark(None) if by_store else None)
        for mark in marks:
            text = None if mark is None else self._answers.get(f"{kind} {session}", mark)
            if text is not None:
                try:
                    return cast("dict[str, Any]", fast_json.loads(text))
                except ValueError:
                    return None
        return None

    def _put(self, kind: str, key: int, session: str, value: dict[str, Any], *, by_store: bool = False) -> None:
        mark = self._marks.pop(key, (None, None))[by_store]
        # A session may have started to run again while it was judged.
        if mark is None or is_running(self._store, key, session):
            return
        try:
            self._waiting.append((f"{kind} {session}", mark, fast_json.dumps(value)))
        except (TypeError, ValueError):  # JSON can't represent it
            return
        if len(self._waiting) >= _AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        self._answers.put(self._waiting)
        self._waiting = []

    def _make_mark(self, scope: int | None) -> str | None:
        """Return a mark that stays equal until a record is added to a session, or to the store if ``scope`` is None."""
        place, total = self._store.sessions.last_record(scope)
        if self._common is None or total is None:  # without checksums, a changed history would not be recognised
            return None
        return f"{'store' if scope is None else 'session'} {place} {total} {self._common}"


def _common_mark(settings: Mapping[str, Any]) -> str | None:
    """Return a mark of the settings and the program's version; None for settings that JSON can't represent."""
    try:
        text = fast_json.dumps([__version__, _checkout_state(), settings])
    except (TypeError, ValueError, RecursionError):
        return None
    return digest(text.encode("utf-8", "surrogatepass"))[:16]


def _checkout_state() -> list[int]:
    """Return counts, times and sizes of a checkout's source files; nothing for an installed program, which has a version."""
    package = os.path.dirname(os.path.dirname(__file__))
    if not os.path.exists(os.path.join(os.path.dirname(package), "pyproject.toml")):
        return []
    count = times = sizes = 0
    folders = [os.path.join(package, name) for name in _CODE]
    while folders:
        with os.scandir(folders.pop()) as items:
            for item in items:
                if item.name.endswith((".py", ".toml")):
                    found = item.stat()
                    # Use sums, because a folder lists its files in any order.
                    count, times, sizes = count + 1, times + found.st_mtime_ns, sizes + found.st_size
                elif item.is_dir(follow_symlinks=False) and item.name != "__pycache__":
                    folders.append(item.path)
    return [count, times, sizes]


def worst_verdict(verdicts: Iterable[str]) -> str:
    """Return the worst of several verdicts. Loop and hung together are ``loop+hung``."""
    parts = {part for verdict in verdicts for part in verdict.split("+")}
    if {"loop", "hung"} <= parts:
        return "loop+hung"
    return next((part for part in ("loop", "hung", "warn") if part in parts), "healthy")
