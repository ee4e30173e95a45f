"""Keep the folder of the live state private and small."""

from __future__ import annotations

import contextlib
import os
import time

from ctxmgr.paths import make_private_folder

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
    write_private(path, rest)


def write_private(path: str, content: bytes) -> None:
    """Put a file with this content, readable by the user alone, into the place of the one before.

    Raises:
        OSError: the system refuses; what was there stays.
    """
    draft = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
