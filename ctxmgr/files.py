"""Open the files of a project as what they must be: regular, of a bounded size, and not links where they are ours.

A project may have been written by somebody else. A pipe or a device in the place of a file would hang or never end, and a
link would lead a write to a file outside of the project. Standard library only; errors are those of the system.
"""

from __future__ import annotations

import errno
import os
import stat

OWN_FOLDERS = frozenset({".ctxmgr", ".agent_context", ".ctxmgr-index"})
"""Folders that this program makes inside a project: none of them is ever followed when it is a link."""

MOST_SETTINGS = 1_000_000
"""Bytes of a file of settings or of a schema that are read."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SIDE_FILES = ("-wal", "-shm", "-journal")
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names another file (sqlite.org/fileformat2.html)


def open_regular(path: str | os.PathLike[str], *, follow: bool = True) -> int:
    """Return a descriptor of a regular file for reading; a pipe or a device is not even opened.

    Args:
        path: of the file.
        follow: whether the file itself may be a link.

    Raises:
        OSError: it can't be opened, or is something else; ``strerror`` says what.
    """
    # Asked before it is opened, for opening some devices does something; and after it, for it may have changed.
    _require_regular(os.stat(path, follow_symlinks=follow).st_mode, path)
    descriptor = os.open(path, _READ if follow else _READ | os.O_NOFOLLOW)
    try:
        _require_regular(os.fstat(descriptor).st_mode, path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: str | os.PathLike[str], most: int, *, follow: bool = True) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes.

    Raises:
        OSError: as `open_regular`, or the file is larger.
    """
    descriptor = open_regular(path, follow=follow)
    with open(descriptor, "rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most:,} bytes", os.fspath(path))
    return content


def _require_regular(mode: int, path: str | os.PathLike[str]) -> None:
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, "a link, and no link is followed here", os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def require_no_link(path: str, *, writing: bool) -> None:
    """Refuse a path that would lead through a link that a project can hold.

    Folders of ours on the way (`OWN_FOLDERS`) are never links, nor is what lies directly in them. Anything else may be one
    when it is only read. What lies above is not looked at: a home or a project may itself be reached through a link. A
    relative path is one inside the current folder, so that no link may lead a write out of it.

    Raises:
        OSError: the path is, or leads through, such a link.
    """
    parts = path.split(os.sep)
    for count, part in enumerate(parts, 1):
        own = part in OWN_FOLDERS or (count > 1 and parts[count - 2] in OWN_FOLDERS)
        if own or (writing and count == len(parts)):
            place = os.sep.join(parts[:count])
            if os.path.islink(place):
                raise OSError(errno.ELOOP, "a link, and nothing is read or written through it", place)
    inner = os.path.normpath(path)
    if writing and not os.path.isabs(inner) and parts[0] != os.pardir and not is_inside(os.getcwd(), inner):
        raise OSError(errno.ELOOP, "reached through a link that leads out of this folder; name the place itself", path)


def require_plain_database(path: str) -> None:
    """Refuse side files of a SQLite database that would lead SQLite to a file outside of its folder.

    SQLite opens them by their names. A link would have it write to another file, and a journal may name a further file,
    which is deleted when the journal is played back.

    Raises:
        OSError: there is such a side file.
    """
    whole = os.path.realpath(path)
    for suffix in _SIDE_FILES:
        side = whole + suffix
        try:
            mode = os.lstat(side).st_mode
        except OSError:
            continue
        _require_regular(mode, side)
        if suffix == "-journal" and _names_another(side):
            raise OSError(errno.EINVAL, "a journal that names another file", side)


def _names_another(journal: str) -> bool:
    with open(open_regular(journal, follow=False), "rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - len(_SUPER_JOURNAL)))
        return stream.read() == _SUPER_JOURNAL


def is_inside(folder: str, path: str) -> bool:
    """Whether a path lies in a folder by its name and by every link on the way to it."""
    inner = os.path.normpath(os.path.join(folder, path))
    above = os.path.normpath(folder)
    if inner == above or not inner.startswith(above.rstrip(os.sep) + os.sep):
        return False
    real = os.path.realpath(above)
    return os.path.realpath(inner).startswith(real.rstrip(os.sep) + os.sep)
