"""Disposable indexes: SQLite files in the user's cache folder, or in memory where nothing can be written.

Whatever such a file holds follows from a history that lies elsewhere, so it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from ctxmgr.errors import CtxmgrError, Damaged
from ctxmgr.store import schema
from ctxmgr.store.sqlite import MEMORY, SqliteEngine

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from collections.abc import Iterator

BORN = "born"
"""Name of the row of ``state`` that tells one building of an index from the next: its places are good for that one alone."""

_OLD = 7 * 86_400.0
_SIDE_FILES = ("", "-wal", "-shm")


def cache_name(identity: bytes) -> str:
    """Return the name of the file for what is identified so; it tells nothing of it."""
    return hashlib.sha256(identity).hexdigest()[:32]


def open_cache(stem: str, variant: str = "") -> SqliteEngine:
    """Open or make an index, migrated; readable by its owner alone.

    Args:
        stem: see `cache_name`.
        variant: tells several indexes of the same thing apart. A new one takes away those that nobody used for a week.
    """
    name = f"{stem}-{variant}.db" if variant else f"{stem}.db"
    for folder in _folders():
        try:
            if not folder.exists():
                from ctxmgr.journal import make_private_folder  # loads the masks, which reading does not need

                make_private_folder(str(folder))
            if folder.stat().st_uid != os.getuid():
                continue
            if variant and not (folder / name).exists():
                _forget_others(folder, stem)
            return _usable(folder / name)
        except (OSError, CtxmgrError):
            continue
    return open_in_memory()  # nothing is writable: made anew each time


def open_in_memory() -> SqliteEngine:
    """Return an index that ends with the process."""
    return _prepared(SqliteEngine(MEMORY, disposable=True))


def _folders() -> Iterator[Path]:
    base = os.environ.get("XDG_CACHE_HOME")
    yield (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "ctxmgr" / "index"
    import tempfile

    yield Path(tempfile.gettempdir()) / f"ctxmgr-{os.getuid()}"


def _forget_others(folder: Path, stem: str) -> None:
    import time

    for place in folder.glob(f"{stem}-*.db"):
        with contextlib.suppress(OSError):
            used = max(Path(f"{place}{suffix}").stat().st_mtime for suffix in _SIDE_FILES if Path(f"{place}{suffix}").exists())
            if time.time() - used > _OLD:
                _remove(place)


def _usable(place: Path) -> SqliteEngine:
    try:
        return _prepared(SqliteEngine(str(place), disposable=True))
    except Damaged:  # or of another version: it holds nothing that can't be had again
        _remove(place)
        return _prepared(SqliteEngine(str(place), disposable=True))


def _remove(place: Path) -> None:
    for suffix in _SIDE_FILES:
        Path(f"{place}{suffix}").unlink(missing_ok=True)


def _prepared(engine: SqliteEngine) -> SqliteEngine:
    try:
        if 0 < int(engine.query("PRAGMA user_version")[0][0]) < schema.LATEST:
            raise Damaged(f"{engine.path} is of an older version", "it is made anew")
        engine.migrate(schema.LATEST, schema.apply)
    except CtxmgrError:
        engine.close()
        raise
    return engine
