"""Answers that are kept from one command to the next, for a history that has not changed since.

They lie in the user's cache folder, never beside the history: nothing that came with a checkout is believed. Each is kept
under a name with a mark of all that it follows from, and with a sum. What is damaged, or has another mark, is as if it was
not there. All of it may be deleted at any time.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32

from ctxmgr.base.paths import user_folder
from ctxmgr.errors import CtxmgrError
from ctxmgr.store.engine.disposable import cache_name, forget_others
from ctxmgr.store.engine.sqlite import MEMORY, SqliteEngine, remove_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxmgr.store.base import Store

    Kept = tuple[str, str, str]
    """A name, the mark of all that an answer follows from, and the answer as a text."""

MOST_BYTES = 1 << 28
"""Of one history's answers; when they would take more, all of them go."""

_LONGEST = 1 << 20
"""Characters of an answer that is kept."""

_PAGE = 4096
_WAIT_MS = 50
_STEM = "answers"
_TABLE = """CREATE TABLE IF NOT EXISTS kept (
  name TEXT PRIMARY KEY, mark TEXT NOT NULL, sum INTEGER NOT NULL, value TEXT NOT NULL)"""
_FIND = "SELECT mark, sum, value FROM kept WHERE name = :name"


class AnswerCache:
    """The kept answers about one history; none of its methods fails, whatever the state of the cache is.

    Args:
        store: the history.
    """

    def __init__(self, store: Store) -> None:
        self._engine: SqliteEngine | None = None
        path = getattr(store.engine, "path", MEMORY)
        # What an agent sees under the access rules is a part of the history that changes with them.
        usable = path != MEMORY and not store.engine.shared and not hasattr(store, "source")
        folder = os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", _STEM)
        self._place = os.path.join(folder, f"{_STEM}-{_name(path)}.db") if usable and _is_private(folder) else None

    def get(self, name: str, mark: str) -> str | None:
        """Return the answer that is kept under a name with this mark, or None."""
        try:
            engine = self._opened(make=False)
            rows = [] if engine is None else engine.query(_FIND, {"name": name})
        except (CtxmgrError, OSError):
            return None
        if not rows or rows[0][0] != mark or rows[0][1] != _sum(name, mark, rows[0][2]):
            return None
        return str(rows[0][2])

    def put(self, answers: Sequence[Kept]) -> None:
        """Keep answers, each in place of what was kept under its name."""
        rows = [(name, mark, _sum(name, mark, value), value) for name, mark, value in answers if len(value) <= _LONGEST]
        try:
            engine = self._opened(make=True) if rows else None
            if engine is None:
                return
            with engine.transaction():
                engine.execute(_TABLE)
                engine.many("INSERT OR REPLACE INTO kept (name, mark, sum, value) VALUES (?, ?, ?, ?)", rows)
        except (CtxmgrError, OSError):
            self._forget_if_full()

    def close(self) -> None:
        """Release the file."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _opened(self, *, make: bool) -> SqliteEngine | None:
        """Return the database, or None where nothing is kept yet and ``make`` is false, or nothing may be kept."""
        if self._engine is None and self._place is not None:
            there = os.path.exists(self._place)
            if not there and not make:
                return None
            self._engine = engine = SqliteEngine(self._place, disposable=True)
            for pragma in (f"busy_timeout = {_WAIT_MS}", f"max_page_count = {MOST_BYTES // _PAGE}"):
                engine.query(f"PRAGMA {pragma}")
            if not there:
                forget_others(os.path.dirname(self._place), _STEM)
        return self._engine

    def _forget_if_full(self) -> None:
        """Remove the file where it has reached its limit: what is asked next is kept again."""
        try:
            if self._place is not None and os.stat(self._place).st_size >= MOST_BYTES - (1 << 20):
                self.close()
                remove_database(self._place)
        except (CtxmgrError, OSError):
            return


def _name(path: str) -> str:
    return cache_name(os.fsencode(os.path.realpath(path)))


def _sum(name: str, mark: str, value: str) -> int:
    return crc32(f"{name}\n{mark}\n{value}".encode("utf-8", "surrogatepass"))


def _is_private(folder: str) -> bool:
    """Whether a folder is the user's own and no link, or can be made to be."""
    try:
        if not os.path.isdir(folder):
            from ctxmgr.base.paths import make_private_folder

            make_private_folder(folder)
        status = os.lstat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
