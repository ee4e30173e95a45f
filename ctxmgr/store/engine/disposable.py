"""Create and find disposable index databases: beside a log, in the cache folder, or in memory.

Whatever such a file holds follows from a history that lies elsewhere, so it may be deleted at any time.
"""

from __future__ import annotations

import os
import stat

from ctxmgr.base.paths import is_inside, user_folder
from ctxmgr.errors import CtxmgrError, Damaged
from ctxmgr.log.codec import digest
from ctxmgr.store.engine import schema
from ctxmgr.store.engine.sqlite import MEMORY, SIDE_FILES, SqliteEngine, remove_database

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BORN = "born"
"""Name of the row of ``state`` that tells one building of an index from the next: its places are good for that one alone."""

BESIDE = ".ctxmgr-index"
"""Name of the folder for the indexes of the logs that lie beside it."""

_MARKS = {
    ".gitignore": "*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# Indexes of logs, made by ctxmgr. They can be deleted.\n",
}
"""What tells other tools that a folder holds nothing of value: to git, and to backups (see bford.info/cachedir)."""

_OLD = 7 * 86_400.0


def cache_name(identity: bytes) -> str:
    """Return the name of the file for what is identified so; it tells nothing of it."""
    return digest(identity)[:32]


def open_beside(path: str) -> SqliteEngine:
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
        if not _is_led_to(path) and _is_own_beside(above, folder):
            status = os.lstat(folder)
            this = cache_name(b"%d %d" % (status.st_dev, status.st_ino))[:16]
            return _open_in(folder, cache_name(os.fsencode(name))[:16], this)
    except (OSError, CtxmgrError):
        pass
    return open_cache(cache_name(os.fsencode(whole)))


def _is_led_to(path: str) -> bool:
    """Whether a log is a link, or lies behind one that leads out of the current folder."""
    inner = os.path.normpath(path)
    within = not os.path.isabs(inner) and inner.partition(os.sep)[0] != os.pardir
    return os.path.islink(inner) or (within and not is_inside(os.getcwd(), inner))


def _is_own_beside(above: str, folder: str) -> bool:
    """Whether indexes may be kept in the folder, which is made now if it can be."""
    if os.stat(above).st_uid != os.getuid():
        return False
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        from ctxmgr.log.journal import make_private_folder  # loads the masks, which reading does not need

        make_private_folder(folder)
        for name, text in _MARKS.items():
            with open(os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
                file.write(text)
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


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
            if os.stat(folder).st_uid != os.getuid():
                continue
            return _open_in(folder, stem, variant, source)
        except (OSError, CtxmgrError):
            continue
    return open_in_memory()  # nothing is writable: made anew each time


def _open_in(folder: str, stem: str, variant: str, source: str = "") -> SqliteEngine:
    place = os.path.join(folder, "-".join(part for part in (stem, source, variant) if part) + ".db")
    if variant and not os.path.exists(place):
        forget_others(folder, stem)
        if source:
            forget_others(folder, f"{stem}-{source}", 0.0)
    return _usable(place)


def open_in_memory() -> SqliteEngine:
    """Return an index that ends with the process."""
    return prepared(SqliteEngine(MEMORY, disposable=True))


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
            used = max(os.stat(place + suffix).st_mtime for suffix in SIDE_FILES if os.path.exists(place + suffix))
            if time.time() - used >= unused or not unused:
                remove_database(place)
        except OSError:  # somebody else's work, or gone meanwhile
            continue


def _usable(place: str) -> SqliteEngine:
    try:
        return prepared(SqliteEngine(place, disposable=True))
    except Damaged:  # or of another version: it holds nothing that can't be had again
        remove_database(place)
        return prepared(SqliteEngine(place, disposable=True))


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


def prepared(engine: SqliteEngine) -> SqliteEngine:
    """Return an index, brought up to the newest schema; raises `Damaged` for one of an older version."""
    try:
        if 0 < int(engine.query("PRAGMA user_version")[0][0]) < schema.LATEST:
            raise Damaged(f"{engine.path} is of an older version", "it is made anew")
        engine.create(schema.LATEST, schema.make)
    except CtxmgrError:
        engine.close()
        raise
    return engine
