"""Which settings files of projects the user trusts, each at one content: kept in the user's state folder.

A project may have been written by somebody else, so that its file can't grant itself anything (design ruling 29). The user
can: a file is then trusted as it is at that moment, at that place, together with the commands that the probes of its goal
run. Any change of the file, or another place, ends the trust; a command that came later is not covered. The model is
direnv's (direnv.net, "allow").
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.files import is_inside, read_regular
from ctxmgr.ids import now
from ctxmgr.places import make_private_folder, sync_folder

_FOLDER = os.path.join("ctxmgr", "trust")
_SUFFIX = ".json"
_MOST = 1_000_000
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class Trust:
    """One trusted file.

    Attributes:
        path: of the settings file, with its folder's links resolved.
        digest: SHA-256 of its content in hex.
        commands: fingerprints of the probes' commands that are trusted with it.
        since: when that was said, RFC 3339.
    """

    path: str
    digest: str
    commands: frozenset[str]
    since: str


def trust_folder(environment: Mapping[str, str]) -> str:
    """Return where trust is kept (XDG Base Directory Specification); a relative folder is ignored."""
    base = environment.get("XDG_STATE_HOME") or ""
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser(os.path.join("~", ".local", "state")), _FOLDER)


def identity(path: str | os.PathLike[str]) -> str:
    """Return a settings file's path with the links of its folder resolved, but not a link that the file itself may be."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def find(path: str | os.PathLike[str], content: bytes, environment: Mapping[str, str]) -> Trust | None:
    """Return the trust in a file with this content, or None.

    What others could have written is not believed: a record or a folder that is not the user's own, that others may use,
    or that lies in the project itself.
    """
    folder, place = trust_folder(environment), identity(path)
    if _holds(os.path.dirname(place), folder) or not _is_private(folder):
        return None
    found = _read(os.path.join(folder, _name(place)))
    return found if found is not None and found.path == place and found.digest == sha256(content).hexdigest() else None


def grant(path: str | os.PathLike[str], content: bytes, commands: Collection[str], environment: Mapping[str, str]) -> Trust:
    """Trust a file with this content, and these commands with it.

    Raises:
        InvalidInput: the state folder lies in the project, whose author could trust himself there.
        StorageFailed: the system refused; the trust is as it was.
    """
    folder, place = trust_folder(environment), identity(path)
    if _holds(os.path.dirname(place), folder):
        raise InvalidInput(
            f"{place} can't be trusted: the state folder {folder} lies in the same project",
            f"write these settings into the user's own file instead, {os.path.join('~', '.config', 'ctxmgr', 'config.toml')}",
        )
    made = Trust(place, sha256(content).hexdigest(), frozenset(commands), now())
    fields = {"v": 1, "path": place, "digest": made.digest, "commands": sorted(made.commands), "since": made.since}
    try:
        make_private_folder(folder)
        if not _is_private(folder):
            raise InvalidInput(f"{folder} can be used by others", f"chmod go= {folder}, and own it")
        _write(folder, _name(place), json.dumps(fields) + "\n")
    except OSError as error:
        raise StorageFailed(f"can't write {folder}: {error.strerror}", "check the folder and its permissions") from None
    return made


def revoke(path: str | os.PathLike[str], environment: Mapping[str, str]) -> bool:
    """End the trust in a file, whatever it holds by now; return whether there was any.

    Raises:
        StorageFailed: the system refused.
    """
    place = os.path.join(trust_folder(environment), _name(identity(path)))
    try:
        os.unlink(place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageFailed(f"can't remove {place}: {error.strerror}", "check the folder and its permissions") from None
    return True


def listed(environment: Mapping[str, str]) -> list[Trust]:
    """Return all trust that is kept, by path; what can't be read is left out."""
    folder = trust_folder(environment)
    if not _is_private(folder):
        return []
    found = [_read(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(_SUFFIX)]
    return sorted((each for each in found if each is not None), key=lambda each: each.path)


def _name(place: str) -> str:
    return sha256(os.fsencode(place)).hexdigest() + _SUFFIX


def _holds(project: str, folder: str) -> bool:
    """Whether the project's folder holds the state folder, by its name or by a link on the way to it."""
    return is_inside(project, os.path.realpath(folder))


def _is_private(folder: str) -> bool:
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _OTHERS


def _read(path: str) -> Trust | None:
    try:
        status = os.lstat(path)
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS:
            return None
        value: Any = json.loads(read_regular(path, _MOST, follow=False))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    commands: Any = fields.get("commands")
    texts = [fields.get("path"), fields.get("digest"), fields.get("since")]
    if not isinstance(commands, list) or not all(isinstance(each, str) for each in (*texts, *cast("list[Any]", commands))):
        return None
    return Trust(fields["path"], fields["digest"], frozenset(cast("list[str]", commands)), fields["since"])


def _write(folder: str, name: str, text: str) -> None:
    draft = os.path.join(folder, f"{name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "w", encoding="ascii") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, os.path.join(folder, name))
        sync_folder(folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
