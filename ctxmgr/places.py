"""Where settings and stores lie: from a folder upwards, asked of the system with as little machinery as can be."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

OWN_FILE, SHARED_FILE, NAME = "ctxmgr.toml", "pyproject.toml", "ctxmgr"
STORE_VARIABLE = "CTXMGR_STORE"
STORE = os.path.join(".ctxmgr", "history.db")


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder and those above it, the nearest first."""
    yield folder
    while (above := os.path.dirname(folder)) != folder:
        folder = above
        yield folder


def settings_files(folder: str) -> Iterator[str]:
    """Yield the files that may hold settings for a folder, the nearest first; a shared one only if it names us."""
    for place in upwards(folder):
        own, shared = os.path.join(place, OWN_FILE), os.path.join(place, SHARED_FILE)
        if os.path.isfile(own):  # unlike the method of a Path it never raises, e.g. below a locked folder
            yield own
        # Reading somebody's whole configuration would cost more than most commands.
        if os.path.isfile(shared) and _names_us(shared):
            yield shared


def _names_us(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return NAME.encode() in stream.read()
    except OSError:
        return False


def store_alone(path: str) -> tuple[bool, str | None]:
    """Return whether a file holds no more than what needs no checking beside a store, and the store's path if it names one.

    Reading of a history asks no more of the settings than that; whatever is odd is left to `ctxmgr.config`.
    """
    import tomllib

    try:
        with open(path, "rb") as stream:
            table: Any = tomllib.load(stream)
    except (OSError, ValueError):
        return False, None
    if os.path.basename(path) == SHARED_FILE:
        tools: Any = table.get("tool")
        table = tools.get(NAME) if _is_table(tools) else None
    if not _is_table(table) or set(table) - {"store", "detect"} or not _is_table(table.get("detect", {})):
        return False, None
    store: Any = table.get("store")
    return isinstance(store, str | None), os.path.join(os.path.dirname(path), store) if isinstance(store, str) else None


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def nearest_store(folder: str) -> str:
    """Return the nearest store upwards, else the place where a writing command would make one."""
    for place in upwards(folder):
        if os.path.isfile(os.path.join(place, STORE)):
            return os.path.join(place, STORE)
    return os.path.join(folder, STORE)
