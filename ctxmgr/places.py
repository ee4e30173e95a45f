"""Where settings and stores lie: from a folder upwards, asked of the system with as little machinery as can be."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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


def nearest_store(folder: str) -> str:
    """Return the nearest store upwards, else the place where a writing command would make one."""
    for place in upwards(folder):
        if os.path.isfile(os.path.join(place, STORE)):
            return os.path.join(place, STORE)
    return os.path.join(folder, STORE)
