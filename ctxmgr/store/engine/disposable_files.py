"""Databases that may be deleted at any time, for all they hold follows from a history elsewhere: indexes and kept answers.

An index lies beside its log, in the cache folder, or in memory. Answers are kept from one command to the next for a history
that has not changed since (`AnswerCache`). They lie in the user's cache folder, never beside the history: nothing that came
with a checkout is believed. Each is kept under a name with a mark of all that it follows from, and with a sum. What is
damaged, or has another mark, is as if it was not there.
"""

from __future__ import annotations

import os
import stat
from binascii import crc32

from ctxmgr.base.paths import is_inside, user_folder
from ctxmgr.errors import CtxmgrError, Damaged
from ctxmgr.log.codec import digest
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.sqlite import MEMORY, SIDE_FILES, SqliteEngine, remove_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxmgr.store.engine.interface import Engine

    Kept = tuple[str, str, str]
    """A name, the mark of all that an answer follows from, and the answer as a text."""

BORN = "born"
"""Name of the row of ``state`` that tells one building of an index from the next: its places are good for that one alone.

A store has it from the first time on that a session is taken out of it, and each time with another value.
"""

BESIDE = ".ctxmgr-index"
"""Name of the folder for the indexes of the logs that lie beside it."""

_LAST_MARK = ".gitignore"
_MARKS = {
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# Indexes of logs, made by ctxmgr. They can be deleted.\n",
    _LAST_MARK: "*\n",
}
"""What tells other tools that a folder holds nothing of value: to backups (see bford.info/cachedir), and to git."""

_OLD = 7 * 86_400.0


def cache_name(identity: bytes) -> str:
    """Return the name of the file for what is identified so; it tells nothing of it."""
    return digest(identity)[:32]


def open_index_database(path: str) -> SqliteEngine:
    """Open or make the index of a log: beside it, in a folder of its own, else in the cache folder.

    Beside it only where both folders are the user's: nobody is left with files that they can't delete. Not where a link leads
    to the log, for who made the link would choose where the folder is made. The name of the
    index tells in which folder it was made, so that one that was unpacked or copied along with a log is never believed.

    Args:
        path: of the log, which is there.
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
    """Whether a log is a link, or lies behind one that leads out of the current folder."""
    inner = os.path.normpath(path)
    within = not os.path.isabs(inner) and inner.partition(os.sep)[0] != os.pardir
    return os.path.islink(inner) or (within and not is_inside(os.getcwd(), inner))


def _is_own_folder(above: str, folder: str) -> bool:
    """Whether indexes may be kept in the folder, which is made now if it can be."""
    if os.stat(above).st_uid != os.getuid():
        return False
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        from ctxmgr.log.journal import make_private_folder  # loads the masks, which reading does not need

        make_private_folder(folder)
        _mark(folder)
        return True
    # Whoever else may write into the folder could put an index there that says what he likes.
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        return False
    # Where it is missing, a process was killed before it had written all of them.
    if not os.path.lexists(os.path.join(folder, _LAST_MARK)):
        _mark(folder)
    return True


def _mark(folder: str) -> None:
    from ctxmgr.base.paths import replace_file

    for name, text in _MARKS.items():
        replace_file(os.path.join(folder, name), text.encode("ascii"))


def open_cache(stem: str, variant: str = "", *, source: str = "") -> SqliteEngine:
    """Open or make an index in the cache folder, migrated; readable by its owner alone.

    Args:
        stem: see `cache_name`.
        variant: tells several indexes of the same thing apart. A new one takes away those that nobody used for a week.
        source: what the variants are states of, see `cache_name`, where only the newest state is of use: a new one takes away
            the earlier ones of the same source at once. Whoever reads one of them reads on.
    """
    for folder in _folders():
        try:
            if not os.path.isdir(folder):
                from ctxmgr.log.journal import make_private_folder

                make_private_folder(folder)
            # In the common folder for temporary files somebody else may have taken the name first.
            if os.stat(folder).st_uid != os.getuid():
                continue
            return _open_in_folder(folder, stem, variant, source)
        except (OSError, CtxmgrError):
            continue
    return open_in_memory()  # nothing is writable: made anew each time


def _open_in_folder(folder: str, stem: str, variant: str, source: str = "") -> SqliteEngine:
    place = os.path.join(folder, "-".join(part for part in (stem, source, variant) if part) + ".db")
    if variant and not os.path.exists(place):
        forget_others(folder, stem)
        if source:
            forget_others(folder, f"{stem}-{source}", 0.0)
    return _usable(place)


def open_in_memory() -> SqliteEngine:
    """Return an index that ends with the process."""
    return bring_up_to_date(SqliteEngine(MEMORY, disposable=True))


def _folders() -> Iterator[str]:
    yield os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", "index")
    import tempfile

    yield os.path.join(tempfile.gettempdir(), f"ctxmgr-{os.getuid()}")


def forget_others(folder: str, stem: str, unused: float = _OLD) -> None:
    """Take away the indexes that nobody wrote to for so many seconds."""
    import time

    for name in os.listdir(folder):
        if not (name.startswith(f"{stem}-") and name.endswith(".db")):
            continue
        place = os.path.join(folder, name)
        try:
            # What was written last may stand in the write-ahead log alone.
            used = max(os.stat(place + suffix).st_mtime for suffix in SIDE_FILES if os.path.exists(place + suffix))
            if time.time() - used >= unused or not unused:
                remove_database(place)
        except OSError:  # somebody else's work, or gone meanwhile
            continue


def _usable(place: str) -> SqliteEngine:
    try:
        return bring_up_to_date(SqliteEngine(place, disposable=True))
    except Damaged:  # or of another version: it holds nothing that can't be had again
        remove_database(place)
        return bring_up_to_date(SqliteEngine(place, disposable=True))


def discard_if_damaged(engine: SqliteEngine) -> bool:
    """Remove an index in which SQLite's own check finds something wrong; return whether it was removed.

    The check sees what contradicts itself. A value that was changed where nothing else tells it is not seen.
    """
    try:
        sound = [str(row[0]) for row in engine.query("PRAGMA integrity_check(1)")] == ["ok"]
    except Damaged:
        sound = False
    if not sound:
        remove_database(engine.path)
    return not sound


def bring_up_to_date(engine: SqliteEngine) -> SqliteEngine:
    """Return an index, brought up to the newest schema; raises `Damaged` for one of an older version."""
    try:
        if 0 < int(engine.query("PRAGMA user_version")[0][0]) < schema.LATEST:
            raise Damaged(f"{engine.path} is of an older version", "it is made anew")
        engine.create(schema.LATEST, schema.make)
    except CtxmgrError:
        engine.close()
        raise
    return engine


MOST_BYTES = 1 << 28
"""Of one history's answers; when they would take more, all of them go."""

_LONGEST = 1 << 20
"""Characters of an answer that is kept."""

# SQLite's own size of a page, in which ``max_page_count`` is given.
_PAGE = 4096
_WAIT_MS = 50
_STEM = "answers"
_TABLE = """CREATE TABLE IF NOT EXISTS kept (
  name TEXT PRIMARY KEY, mark TEXT NOT NULL, sum INTEGER NOT NULL, value TEXT NOT NULL)"""
_FIND = "SELECT mark, sum, value FROM kept WHERE name = :name"


class AnswerCache:
    """The kept answers about one history; none of its methods fails, whatever the state of the cache is.

    Args:
        engine: that of the history.
        whole: the history is all that is recorded, not what an agent sees of it.
    """

    def __init__(self, engine: Engine, *, whole: bool) -> None:
        self._engine: SqliteEngine | None = None
        path = getattr(engine, "path", MEMORY)
        # What an agent sees under the access rules is a part of the history that changes with them.
        usable = path != MEMORY and not engine.shared and whole
        folder = os.path.join(user_folder(os.environ, "XDG_CACHE_HOME", ".cache"), "ctxmgr", _STEM)
        self._place = os.path.join(folder, f"{_STEM}-{_name(path)}.db") if usable and _is_private(folder) else None

    def get(self, name: str, mark: str) -> str | None:
        """Return the answer that is kept under a name with this mark, or None."""
        try:
            engine = self._open(make=False)
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
            engine = self._open(make=True) if rows else None
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

    def _open(self, *, make: bool) -> SqliteEngine | None:
        """Return the database, or None where nothing is kept yet and ``make`` is false, or nothing may be kept."""
        if self._engine is None and self._place is not None:
            there = os.path.exists(self._place)
            if not there and not make:
                return None
            self._engine = engine = SqliteEngine(self._place, disposable=True)
            # An answer is found anew sooner than it pays to wait. SQLite itself keeps to the size, see `_forget_if_full`.
            for pragma in (f"busy_timeout = {_WAIT_MS}", f"max_page_count = {MOST_BYTES // _PAGE}"):
                engine.query(f"PRAGMA {pragma}")
            if not there:
                forget_others(os.path.dirname(self._place), _STEM)
        return self._engine

    def _forget_if_full(self) -> None:
        """Remove the file where it has reached its limit: what is asked next is kept again."""
        try:
            # SQLite refuses the page that would pass the limit, so the file stays a little smaller.
            if self._place is not None and os.stat(self._place).st_size >= MOST_BYTES - (1 << 20):
                self.close()
                remove_database(self._place)
        except (CtxmgrError, OSError):
            return


def _name(path: str) -> str:
    return cache_name(os.fsencode(os.path.realpath(path)))


def _sum(name: str, mark: str, value: str) -> int:
    # Against damage, not against people: the folder is the user's own.
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
