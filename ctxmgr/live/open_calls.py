"""Calls that are being made and that their client's log does not hold yet: each is noted in a file of its own meanwhile.

The file holds the call as the log will. It is taken away when the call is over, and when a person speaks or the session ends.
"""

from __future__ import annotations

import os

from ctxmgr.clients.session_file import state_folder, state_name
from ctxmgr.live.rounds import fingerprints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxmgr.clients.interface import Call, Client, Event

_SUFFIX = ".open"
_LONGEST = 65_536
"""Bytes of a call that is noted; a longer one writes a file, which does not hang."""
_ASIDE = 5.0
"""Seconds by which a log may be newer than a call that it does not hold yet: that of the answer which asked for the call."""


def note(client: Client, event: Event) -> None:
    """Note the calls that are about to be made.

    Raises:
        OSError: the disk is full, or a file can't be written.
    """
    from ctxmgr.paths import make_private_folder, replace_file

    make_private_folder(state_folder())
    for call, record in zip(event.calls, client.open_records(event), strict=True):
        content = record.encode("ascii")
        if len(content) < _LONGEST:
            replace_file(_path(client, event, call), content)


def settle(client: Client, event: Event) -> None:
    """Forget calls that are over.

    Raises:
        OSError: a file can't be removed.
    """
    for call in event.calls:
        _remove(_path(client, event, call))


def forget(client: Client, session: str) -> None:
    """Forget all calls of a session.

    Raises:
        OSError: a file can't be removed.
    """
    for path in _noted(client.name, session):
        _remove(path)


def open_calls(client: Client, session: str, log_time: float) -> list[str]:
    """Return the noted calls of a session, oldest first, in the form of its client's log.

    Those are left out that were made before the log last grew, at ``log_time`` in seconds since 1970: they were given up.

    Raises:
        OSError: a file can't be read.
    """
    from ctxmgr.paths import read_regular

    found = [(os.stat(path).st_mtime, path) for path in _noted(client.name, session)]
    return [read_regular(path, _LONGEST).decode("ascii", "replace") for at, path in sorted(found) if at + _ASIDE >= log_time]


def modified(path: str) -> float:
    """Return when a file was changed last, in seconds since 1970; 0 of one that can't be looked at."""
    try:
        return os.stat(path).st_mtime
    except (OSError, ValueError):
        return 0.0


def _path(client: Client, event: Event, call: Call) -> str:
    name = state_name(client.name, event.session)
    return os.path.join(state_folder(), f"{name}-{fingerprints(call)[1]}{_SUFFIX}")


def _noted(client: str, session: str) -> Iterator[str]:
    beginning = state_name(client, session) + "-"
    try:
        with os.scandir(state_folder()) as entries:
            found = [each.path for each in entries if each.name.startswith(beginning) and each.name.endswith(_SUFFIX)]
    except FileNotFoundError:
        return
    yield from found


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
