"""Read and write ``state.json`` with its previous generation, and ``loops.json``; both can be rebuilt.

``state.json`` is written to a temporary file, synced, renamed, and the folder synced; it names the part of the history
that it includes and carries a fingerprint of itself. What is damaged, edited by hand, or not about this history is set
aside under another name, never deleted.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from typing import Any, cast

from ctxmgr.errors import StorageFailed
from ctxmgr.goals.state import State
from ctxmgr.goals.tree import as_object, read_number, read_text
from ctxmgr.light_dataclass import dataclass
from ctxmgr.paths import open_regular, read_regular

HISTORY, STATE, PREVIOUS, LOOPS = "history.jsonl", "state.json", "state.prev.json", "loops.json"

_VERSION = 1
_SUFFIX = ".tmp"
_MOST = 64 * 1024 * 1024
_MOST_ASIDE = 1_000


@dataclass(slots=True)
class Included:
    """The part of the history that a state includes: records, bytes, and the sum of the last record."""

    records: int = 0
    size: int = 0
    sum: str = ""


@dataclass(slots=True)
class Loaded:
    """A state with what it includes; ``damaged`` names files that could not be used, and why."""

    state: State
    included: Included
    generation: int
    damaged: list[tuple[str, str]]


def load(folder: str) -> Loaded:
    """Return the newest state that is whole and about this history, else an empty one to replay the history into."""
    damaged: list[tuple[str, str]] = []
    newest = 0
    for name in (STATE, PREVIOUS):
        path = os.path.join(folder, name)
        try:
            raw = _read(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EINVAL, errno.EFBIG):
                damaged.append((name, "it is no plain file"))
                continue
            raise StorageFailed(f"{path!r} can't be read: {error.strerror}", "fix the permissions") from error
        try:
            state, included, generation = _parse(raw)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            damaged.append((name, str(error) or "unreadable"))
            continue
        newest = max(newest, generation)
        if _is_prefix(os.path.join(folder, HISTORY), included):
            return Loaded(state, included, newest, damaged)
        damaged.append((name, "it includes what the history does not hold"))
    return Loaded(State(), Included(), newest, damaged)


def save(folder: str, state: State, included: Included, generation: int, *, loops: bool) -> None:
    """Write the state as this generation, and ``loops`` where they changed.

    Raises:
        StorageFailed: the system refused; the files are as they were.
    """
    body = {
        "v": _VERSION, "generation": generation,
        "history": {"records": included.records, "bytes": included.size, "sum": included.sum}, **state.to_json(),
    }  # fmt: skip
    text = json.dumps(body, separators=(",", ":"))
    whole = f'{text[:-1]},"check":"{_check(text)}"}}\n'
    path = os.path.join(folder, STATE)
    try:
        if loops:
            _write(os.path.join(folder, LOOPS), json.dumps(state.loops, indent=1) + "\n")
        _keep(path, os.path.join(folder, PREVIOUS))
        _write(path, whole)
        sync_folder(folder)
    except OSError as error:
        raise StorageFailed(
            f"can't write {path!r}: {error.strerror}", "nothing is lost: the history holds it all; free some space"
        ) from error


def set_aside(folder: str, names: list[str]) -> list[str]:
    """Give files names under which nobody looks for them, and return these."""
    given: list[str] = []
    for name in names:
        for number in range(1, _MOST_ASIDE):
            other = f"{name}.damaged-{number}"
            if os.path.lexists(os.path.join(folder, other)):
                continue
            with contextlib.suppress(FileNotFoundError):
                os.rename(os.path.join(folder, name), os.path.join(folder, other))
                given.append(other)
            break
    return given


def loops_fit(folder: str, state: State) -> bool:
    """Whether ``loops.json`` says what the state says."""
    try:
        found: object = json.loads(_read(os.path.join(folder, LOOPS)))
    except (OSError, ValueError, RecursionError):
        return False
    return found == state.loops


def sync_folder(folder: str) -> None:
    """Sync the names in a folder.

    Raises:
        OSError: the system refused.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parse(raw: bytes) -> tuple[State, Included, int]:
    text = raw.decode("ascii").rstrip("\n")
    body, mark, check = text.rpartition(',"check":"')
    if not mark or check != f'{_check(body + "}")}"}}':
        raise ValueError("its fingerprint does not match: damaged, or edited by hand")
    fields = as_object(cast("object", json.loads(text)))
    if fields.get("v") != _VERSION:
        raise ValueError(f"version {fields.get('v')!r} is not known")
    history = as_object(fields.get("history"))
    included = Included(read_number(history, "records"), read_number(history, "bytes"), read_text(history, "sum"))
    return State.from_json(cast("dict[str, Any]", fields)), included, read_number(fields, "generation")


def _check(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def _is_prefix(history: str, included: Included) -> bool:
    """Whether the history, at the place a state names, holds the record whose sum it names."""
    if included.size == 0:
        return included.records == 0
    try:
        with open(open_regular(history), "rb") as stream:
            if os.fstat(stream.fileno()).st_size < included.size:
                return False
            stream.seek(max(0, included.size - 40))
            end = stream.read(min(40, included.size))
    except OSError:
        return False
    return not included.sum or f'"sum":"{included.sum}"}}'.encode("ascii", "replace") in end


def _read(path: str) -> bytes:
    return read_regular(path, _MOST, follow=False)


def _write(path: str, text: str) -> None:
    """Replace a file whole: a reader finds the old one or the new one, after a power loss too."""
    temporary = path + _SUFFIX
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)  # a crash left it; it may be a link to somewhere else by now
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        data = memoryview(text.encode("ascii"))
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def _keep(path: str, previous: str) -> None:
    """Give the present generation its second name; at no moment are both names gone."""
    temporary = previous + _SUFFIX
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        os.link(path, temporary)
    except FileNotFoundError:
        return
    except OSError:  # no hard links here
        os.replace(path, previous)
        return
    os.replace(temporary, previous)
