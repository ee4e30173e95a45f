"""Databases that may be deleted at any time, because they can be rebuilt from a history: indexes and cached answers.

An index lies beside its log, in the cache folder, or in memory. `AnswerCache` keeps answers from one command to the next, for
a history that has not changed. It lies in the user's cache folder, never beside the history, because files that come with a
checkout are not trusted. Each answer has a name, a mark of everything from which it was computed, and a checksum. An answer
that is damaged or has another mark is ignored.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32

from ctxmgr.base.paths import is_inside, make_private_folder, user_folder
from ctxmgr.errors import CtxmgrError, Damaged
from ctxmgr.log.codec import digest
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.sqlite import MEMORY, SIDE_FILES, SqliteEngine, remove_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxmgr.store.engine.interface import Engine

    Kept = tuple[str, str, str]
    """The name of an answer, the mark of everything from which it was computed, and its text."""

BORN = "born"
"""Name of the row in ``state`` that identifies one build of an index. Places in an index are valid for that build only.

A store gets the row when a session is first removed from it. Every further removal changes its value.
"""

BESIDE = ".ctxmgr-index"
"""Name of the folder that holds the indexes of the logs in its parent folder."""

_LAST_MARK = ".gitignore"
_MARKS = {
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# Indexes of logs, made by ctxmgr. They can be deleted.\n",
    _LAST_MARK: "*\n",
}
"""Files that mark a folder as disposable for backup programs (see bford.info/cachedir) and for git."""

_OLD = 7 * 86_400.0


def cache_name(identity: bytes) -> str:
    """Return a file name for an identity, as a digest that does not reveal it."""
    return digest(identity)[:32]


def open_index_database(path: str) -> SqliteEngine:
    """Open or create the index of a log: in a folder beside the log, else in the cache folder.

    The folder beside the log is used only if it and its parent belong to the user, so nobody gets files that they can't
    delete. It is not used behind a symbolic link, whose author could choose where the folder is created. The name of the index
    identifies the folder in which it was created, so an index that was unpacked or copied along with a log is not trusted.

    Args:
        path: the path of an existing log.
    """
    whole = os.path.realpath(path)
    above, name = os.path.split(whole)
    folder = os.path.join(above, BESIDE)
    try:
        if not _is_behind_link(path) and _is_own_folder(above, folder):
            status = os.lstat(folder)
            this = cache_name(b"%d %d" % (status.st_dev, status.st_ino))[:16]
            return _open_in_folder(folder, cache_name(os.fsencode(name))[:16], this)
    except (OSError, CtxmgrError):
        pass
    return open_cache(cache_name(os.fsencode(whole)))


def _is_behind_link(path: str) -> bool:
    """Whether a log is a symbolic link, or lies behind one that leads out of the current folder."""
    inner = os.path.normpath(path)
    within = not os.path.isabs(inner) and inner.partition(os.sep)[0] != os.pardir
    return os.path.islink(inner) or (within and not is_inside(os.getcwd(), inner))


def _is_own_folder(above: str, folder: str) -> bool:
    """Whether indexes may be kept in the folder. Create it if it is missing."""
    if os.stat(above).st_uid != os.getuid():
        return False
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        make_private_folder(folder)
        _mark(folder)
        return True
    # Other users who can write into the folder could put a forged index there.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        return False
    # If the last mark is missing, a process was killed before it had written all of them.
    if not os.path.lexists(os.path.join(folder, _LAST_MARK)):
        _mark(folder)
    return True


def _mark(folder: str) -> None:
    from ctxmgr.base.paths import replace_file

    for name, text in _MARKS.items():
        replace_file(os.path.join(folder, name), text.encode("ascii"))


def open_cache(stem: str, variant: str = "", *, source: str = "") -> SqliteEngine:
    """Open or create an index in the cache folder, with the newest schema. Only its owner can read it.

    Args:
        stem: the `cache_name` of what is indexed.
        variant: distinguishes several indexes of the same thing. Creating one removes those that were unused for a week.
        source: the `cache_name` of the history of which the variants are states, if only the newest state is of use. Creating
            one then removes the earlier ones of the same source at once. Processes that have one open can go on reading.
    """
    for folder in _folders():
        try:
            if not os.path.isdir(folder):
                make_private_folder(folder)
            # In the shared folder for temporary files another user may have taken the name first.
            if os.stat(folder).st_uid != os.getuid():
                continue
            return _open_in_folder(folder, stem, variant, source)
        except (OSError, CtxmgrError):
            continue
    return open_in_memory()  # no folder is writable, so each process builds its own


def _open_in_folder(folder: str, stem: str, variant: str, source: str = "") -> SqliteEngine:
    place = os.path.join(folder, "-".join(part for part in (stem, source, variant) if part) + ".db")
    if variant and not os.path.exists(place):
        forget_others(folder, stem)
        if source:
            forget_others(folder, f"{stem}-{source}", 0.0)
    return _usable(place)


def open_in_memory() -> SqliteEngine:
    """Return an index in memory, which ends with the process."""
    return bring_up_to_date(SqliteEngine(MEMORY, disposable=True))


def _folders() -> Iterator[str]:
    yield os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", "index")
    import tempfile

    yield os.path.join(tempfile.gettempdir(), f"ctxmgr-{os.getuid()}")


def forget_others(folder: str, stem: str, unused: float = _OLD) -> None:
    """Remove the indexes of a stem that were not written for ``unused`` seconds."""
    import time

    for name in os.listdir(folder):
        if not (name.startswith(f"{stem}-") and name.endswith(".db")):
            continue
        place = os.path.join(folder, name)
        try:
            # The last write may be in the write-ahead log only.
            used = max(os.stat(place + suffix).st_mtime for suffix in SIDE_FILES if os.path.exists(place + suffix))
            if time.time() - used >= unused or not unused:
                remove_database(place)
        except OSError:  # the file is another user's, or was removed meanwhile
            continue


def _usable(place: str) -> SqliteEngine:
    try:
        return bring_up_to_date(SqliteEngine(place, disposable=True))
    except Damaged:  # or of another version: everything in it can be rebuilt
        remove_database(place)
        return bring_up_to_date(SqliteEngine(place, disposable=True))


def discard_if_damaged(engine: SqliteEngine) -> bool:
    """Remove an index if SQLite's own check finds damage. Return whether it was removed.

    The check finds contradictions only. It misses a changed value that is stored nowhere else.
    """
    try:
        sound = [str(row[0]) for row in engine.query("PRAGMA integrity_check(1)")] == ["ok"]
    except Damaged:
        sound = False
    if not sound:
        remove_database(engine.path)
    return not sound


def bring_up_to_date(engine: SqliteEngine) -> SqliteEngine:
    """Create the newest schema in a blank index and return the engine. Raise `Damaged` for an older version."""
    try:
        if 0 < int(engine.query("PRAGMA user_version")[0][0]) < schema.LATEST:
            raise Damaged(f"{engine.path} is of an older version", "it is made anew")
        engine.create(schema.LATEST, schema.make)
    except CtxmgrError:
        engine.close()
        raise
    return engine


MOST_BYTES = 1 << 28
"""Largest size of one history's cached answers. When they reach it, all of them are removed."""

_LONGEST = 1 << 20
"""Largest number of characters in a cached answer."""

# SQLite's default page size, the unit of ``max_page_count``.
_PAGE = 4096
_WAIT_MS = 50
_STEM = "answers"
_TABLE = """CREATE TABLE IF NOT EXISTS kept (
  name TEXT PRIMARY KEY, mark TEXT NOT NULL, sum INTEGER NOT NULL, value TEXT NOT NULL)"""
_FIND = "SELECT mark, sum, value FROM kept WHERE name = :name"


class AnswerCache:
    """The cached answers about one history. No method raises, whatever the state of the cache is.

    Args:
        engine: the engine of the history.
        whole: whether the history is everything that is recorded, not what one agent may see of it.
    """

    def __init__(self, engine: Engine, *, whole: bool) -> None:
        self._engine: SqliteEngine | None = None
        path = getattr(engine, "path", MEMORY)
        # An agent's view depends on the access rules and would change with them, so it is not cached.
        usable = path != MEMORY and not engine.shared and whole
        folder = os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", _STEM)
        self._place = os.path.join(folder, f"{_STEM}-{_name(path)}.db") if usable and _is_private(folder) else None

    def get(self, name: str, mark: str) -> str | None:
        """Return the cached answer with this name and mark, or None."""
        try:
            engine = self._open(make=False)
            rows = [] if engine is None else engine.query(_FIND, {"name": name})
        except (CtxmgrError, OSError):
            return None
        if not rows or rows[0][0] != mark or rows[0][1] != _sum(name, mark, rows[0][2]):
            return None
        return str(rows[0][2])

    def put(self, answers: Sequence[Kept]) -> None:
        """Store answers. Each replaces the former one of its name."""
        rows = [(name, mark, _sum(name, mark, value), value) for name, mark, value in answers if len(value) <= _LONGEST]
        try:
            engine = self._open(make=True) if rows else None
            if engine is None:
                return
            with engine.transaction():
                engine.execute(_TABLE)
                engine.many("INSERT OR REPLACE INTO kept (name, mark, sum, value) VALUES (?, ?, ?, ?)", rows)
        except (CtxmgrError, OSError):
            self._forget_if_full()

    def close(self) -> None:
        """Close the file."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _open(self, *, make: bool) -> SqliteEngine | None:
        """Return the database; None if it does not exist and ``make`` is false, or if this history is not cached."""
        if self._engine is None and self._place is not None:
            there = os.path.exists(self._place)
            if not there and not make:
                return None
            self._engine = engine = SqliteEngine(self._place, disposable=True)
            # Computing an answer again takes less time than a long wait. SQLite enforces the size, see `_forget_if_full`.
            for pragma in (f"busy_timeout = {_WAIT_MS}", f"max_page_count = {MOST_BYTES // _PAGE}"):
                engine.query(f"PRAGMA {pragma}")
            if not there:
                forget_others(os.path.dirname(self._place), _STEM)
        return self._engine

    def _forget_if_full(self) -> None:
        """Remove the file if it has reached its limit, so that the next answers can be stored again."""
        try:
            # SQLite refuses the page that would exceed the limit, so a full file is a little smaller.
            if self._place is not None and os.stat(self._place).st_size >= MOST_BYTES - (1 << 20):
                self.close()
                remove_database(self._place)
        except (CtxmgrError, OSError):
            return


def _name(path: str) -> str:
    return cache_name(os.fsencode(os.path.realpath(path)))


def _sum(name: str, mark: str, value: str) -> int:
    # The checksum detects damage, not forgery, because the folder belongs to the user.
    return crc32(f"{name}\n{mark}\n{value}".encode("utf-8", "surrogatepass"))


def _is_private(folder: str) -> bool:
    """Whether a folder belongs to the user alone and is not a symbolic link. Create it if it is missing."""
    try:
        if not os.path.isdir(folder):
            make_private_folder(folder)
        status = os.lstat(folder)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
