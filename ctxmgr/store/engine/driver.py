"""Load the SQLite driver, and check its library.

The SQLite of most systems (3.7.0 to 3.51.2) can corrupt a database in write-ahead mode when a log is restarted while
another process reads; fixed in 3.51.3, 3.50.7 and 3.44.6. A sound library is required, never assumed.
"""

from __future__ import annotations

import sys

from ctxmgr.errors import Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def driver() -> Any:
    """Return the driver: of pysqlite3 the extension alone, else the whole of it, else the standard library's.

    What the Python half of a driver adds, adapters of dates and the like, is not used, and loading it takes as long as
    three queries.
    """
    try:
        return sys.modules.get("pysqlite3._sqlite3") or extension("pysqlite3", "_sqlite3")
    except (ImportError, AttributeError):
        pass
    try:
        from pysqlite3 import dbapi2
    except ImportError:  # no wheel for this platform
        import sqlite3

        return sqlite3
    return dbapi2


def extension(package: str, name: str) -> Any:
    """Load an extension module out of a package without the package, as the import system itself would later.

    Raises:
        ImportError, AttributeError: it is not there, or not to be had in this way.
    """
    found: Any = _spec(package, None)
    if not found.submodule_search_locations:  # no package: the extension would be looked for everywhere
        raise ImportError(package)
    spec: Any = _spec(f"{package}.{name}", found.submodule_search_locations)
    module = spec.loader.create_module(spec)
    sys.modules[spec.name] = module  # whoever imports the package gets this one
    try:
        spec.loader.exec_module(module)
        for needed in ("connect", "Error", "OperationalError", "sqlite_version"):
            getattr(module, needed)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _spec(name: str, path: Any) -> Any:
    for finder in sys.meta_path:
        if (spec := finder.find_spec(name, path)) is not None:
            return spec
    raise ImportError(name)


sqlite: Any = driver()
_SOUND_BRANCHES = {(3, 50): 7, (3, 44): 6}


def is_sound(version: tuple[int, ...]) -> bool:
    """Whether a SQLite of this version is free of the WAL-reset bug."""
    if version < (3, 7, 0) or version >= (3, 51, 3):
        return True
    return version[2] >= _SOUND_BRANCHES.get((version[0], version[1]), 1_000)


def library_version() -> tuple[int, ...]:
    """Return the version of the SQLite library in use."""
    return tuple(int(part) for part in str(sqlite.sqlite_version).split("."))


def require_sound_library() -> None:
    """Refuse to open a store with a SQLite that may corrupt it.

    Raises:
        Damaged: naming the version found.
    """
    if not is_sound(library_version()):
        raise Damaged(
            f"the SQLite library {sqlite.sqlite_version} has the WAL-reset bug and may corrupt a store",
            "install pysqlite3 0.6.1 or newer (pip install 'pysqlite3>=0.6.1'), or keep the history in a .jsonl log",
        )
