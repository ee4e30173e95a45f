"""Keep the folder of the live state private and small."""

from __future__ import annotations

import contextlib
import os
import time

from ctxmgr.paths import make_private_folder, replace_file

_OLD = 14 * 86_400.0


def prepare(folder: str) -> None:
    """Make the folder where it is missing, and remove files of sessions that ended long ago.

    Raises:
        OSError: the system refuses.
    """
    make_private_folder(folder)
    limit = time.time() - _OLD
    with os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < limit:
                    os.unlink(entry.path)


def cut(path: str, keep: int) -> None:
    """Keep the last whole rows of a file, ``keep`` bytes of them at most."""
    with open(path, "rb") as stream:
        stream.seek(-keep, os.SEEK_END)
        rest = stream.read().partition(b"\n")[2]
    replace_file(path, rest)
