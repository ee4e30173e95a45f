"""The states in which a crash of the system may leave the files of a command, made from its system calls (ALICE, OSDI'14).

A trace of the command becomes a list of changes: to the bytes of a file, or to the names of a folder. A change is certain once
its file (of bytes) or its folder (of names) has been synced after it. Of the others any may be missing: a state leaves out
all of them, one of them, those of one file, or the names from one change on; or it holds half of a write, or zeros in its
place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

TRACED = (
    "openat", "creat", "write", "pwrite64", "pwritev", "writev", "read", "lseek", "rename", "renameat", "renameat2", "link",
    "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "fsync", "fdatasync", "ftruncate",
    "sendfile", "copy_file_range", "fallocate",
)  # fmt: skip
"""System calls that change files or names, move the place in an open file, or make sure of a change."""

_CALL = re.compile(r"^(?P<thread>\d+) +(?P<call>\w+)\((?P<rest>.*)\) += (?P<answer>-?\d+)")
_UNFINISHED = re.compile(r"^(?P<thread>\d+) +(?P<start>\w+\(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(?P<thread>\d+) +<\.\.\. \w+ resumed>(?P<end>.*)$")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DESCRIPTOR = re.compile(r"^(AT_FDCWD|\d+)<")
_PLACE = re.compile(r"<((?:\\x[0-9a-f]{2})+)>")


@dataclass(eq=False, slots=True)
class File:
    """A file, whatever its names are; ``data``: its bytes before the command."""

    data: bytes = b""
    mode: int = 0o600
    origin: Path | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Bytes of a file are replaced from ``offset`` on; None for ``data``: it is cut to ``offset``."""

    file: File
    offset: int
    data: bytes | None


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A name of a folder changes: ``what`` is link, unlink, folder, rmdir, symlink or rename."""

    what: str
    path: str
    file: File | None = None
    target: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Sync:
    """Changes to the bytes of a file, or to the names of a folder, are certain from here on."""

    file: File | None
    folder: str = ""


Change = Write | Name | Sync
Names = dict[str, File | str | None]
"""What a path below the folder is: a file, a link to a text, or (None) a folder."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A crash after so many changes: which of them are lost, which writes are altered, and the words for it."""

    done: int
    lost: frozenset[int]
    altered: Mapping[int, bytes]
    cause: str


@dataclass(slots=True)
class _Open:
    file: File
    append: bool
    offset: int = 0


@dataclass(slots=True)
class History:
    """The files of a folder before a command, and the changes that it made to them, in their order."""

    before: Names
    changes: list[Change]

    def losses(self, most: int | None = None) -> tuple[int, list[Loss]]:
        """Return how many losses there are, and those that leave different files; of very many ``most``, spread evenly."""
        settled = _settled(self.changes)
        counts = [sum(1 for _ in _ways(self.changes[:done], settled)) for done in range(len(self.changes) + 1)]
        every = 1 if most is None else max(1, sum(counts) // most)
        found: dict[object, Loss] = {}
        passed = 0
        for done, count in enumerate(counts):
            ways = _ways(self.changes[:done], settled)
            for lost, altered, cause in islice(ways, -passed % every, None, every):
                loss = Loss(done, frozenset(lost), altered, f"after {done} changes: {cause}")
                found.setdefault(self._key(loss), loss)
            passed += count
        return passed, list(found.values())

    def _key(self, loss: Loss) -> object:
        """Return what is equal for losses that leave the same files: their names, and what of each was written."""
        written: dict[File, tuple[object, ...]] = {}
        for place, change in self._left(loss):
            if isinstance(change, Write):
                written[change.file] = (*written.get(change.file, ()), place, loss.altered.get(place))
        names = self._names(loss)
        return tuple((path, names[path], written.get(names[path])) for path in sorted(names))  # pyright: ignore[reportArgumentType] -- others than files have no bytes

    def _left(self, loss: Loss) -> Iterator[tuple[int, Change]]:
        return ((place, change) for place, change in enumerate(self.changes[: loss.done]) if place not in loss.lost)

    def _names(self, loss: Loss) -> Names:
        names = dict(self.before)
        for _, change in self._left(loss):
            if isinstance(change, Name):
                _rename(names, change)
        return names

    def build(self, loss: Loss, target: Path) -> None:
        """Write what a loss leaves into an empty folder. Files that did not change keep their times."""
        data: dict[File, bytes] = {}
        for place, change in self._left(loss):
            if isinstance(change, Write):
                known = data.get(change.file, change.file.data)[: None if change.data else change.offset]
                written = loss.altered.get(place, change.data or b"")
                known = known.ljust(change.offset, b"\0")
                data[change.file] = known[: change.offset] + written + known[change.offset + len(written) :]
        built: dict[File, Path] = {}
        names = self._names(loss)
        for path in sorted(names):
            value, place = names[path], target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if value is None:
                place.mkdir(exist_ok=True)
            elif isinstance(value, str):
                place.symlink_to(value)
            elif value in built:
                place.hardlink_to(built[value])
            else:
                built[value] = place
                _write(place, value, data.get(value, value.data))


def _write(place: Path, file: File, data: bytes) -> None:
    place.write_bytes(data)
    place.chmod(file.mode)
    if file.origin is not None and data == file.data:
        times = file.origin.stat()
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))


def snapshot(folder: Path) -> Names:
    """Return what lies in a folder, with the bytes of its files."""
    names: Names = {}
    files: dict[int, File] = {}
    for place, folders, found in os.walk(folder):
        for name in [*folders, *found]:
            path = Path(place) / name
            inside = str(path.relative_to(folder))
            if path.is_symlink():
                names[inside] = os.readlink(path)
            elif path.is_dir():
                names[inside] = None
            else:
                status = path.stat()
                file = files.setdefault(status.st_ino, File(path.read_bytes(), status.st_mode & 0o777, path))
                names[inside] = file
    return names


def changes(trace: str, folder: Path, before: Names) -> list[Change]:
    """Return the changes below a folder that a trace tells of (``strace -f -y -xx`` of `TRACED`, with whole texts)."""
    reader = _TraceReader(folder, before)
    for call, rest, answer in _calls(trace):
        if answer >= 0:
            reader.take(call, rest, answer)
    return reader.changes


def _calls(trace: str) -> Iterator[tuple[str, str, int]]:
    begun: dict[str, str] = {}
    for row in trace.splitlines():
        if match := _UNFINISHED.match(row):
            begun[match["thread"]] = match["start"]
            continue
        if match := _RESUMED.match(row):
            row = f"{match['thread']} {begun.pop(match['thread'])}{match['end']}"
        if match := _CALL.match(row):
            yield match["call"], match["rest"], int(match["answer"])


def _text(spelled: str) -> bytes:
    return bytes.fromhex(spelled.replace("\\x", ""))


class _TraceReader:
    """Turns calls into changes; follows which file each descriptor means, and where in it the next write goes."""

    def __init__(self, folder: Path, before: Names) -> None:
        self.changes: list[Change] = []
        self._folder = str(folder)
        self._names = dict(before)
        self._sizes = {value: len(value.data) for value in before.values() if isinstance(value, File)}
        self._open: dict[int, _Open] = {}

    def take(self, call: str, rest: str, answer: int) -> None:
        """Add the changes of one call; its threads share the descriptors of a process."""
        if call in ("openat", "creat"):
            self._opened(rest, answer)
        elif call in ("fsync", "fdatasync"):
            self._synced(rest)
        elif call in ("write", "writev", "pwrite64", "pwritev", "read", "lseek", "ftruncate", "fallocate"):
            self._moved(call, rest, answer)
        elif call in ("sendfile", "copy_file_range"):
            raise NotImplementedError(f"{call} copies bytes that the trace does not show")
        else:
            self._named(call, rest)

    def _inside(self, path: str) -> str | None:
        path = os.path.normpath(path)
        return path.removeprefix(self._folder + "/") if path.startswith(self._folder + "/") else None

    def _paths(self, rest: str) -> list[str | None]:
        """Return the paths that a call names, each below the folder or None."""
        found: list[str | None] = []
        base = self._folder
        for part in re.finditer(r'(?:AT_FDCWD|\d+)<((?:\\x[0-9a-f]{2})+)>|"((?:\\x[0-9a-f]{2})*)"', rest):
            if part[1] is not None:
                base = os.fsdecode(_text(part[1]))
            else:
                found.append(self._inside(os.path.join(base, os.fsdecode(_text(part[2])))))
        return found

    def _opened(self, rest: str, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        path = (self._paths(rest) or [None])[0]
        if path is None or "O_DIRECTORY" in rest or self._names.get(path, "") is None:
            return
        file = self._names.get(path)
        if not isinstance(file, File):
            if "O_CREAT" not in rest:
                return
            mode = re.search(r", 0(\d+)\)?$", rest)
            file = File(mode=int(mode[1], 8) & 0o755 if mode else 0o600)
            self._names[path], self._sizes[file] = file, 0
            self.changes.append(Name("link", path, file))
        elif "O_TRUNC" in rest and self._sizes[file]:
            self._sizes[file] = 0
            self.changes.append(Write(file, 0, None))
        self._open[descriptor] = _Open(file, "O_APPEND" in rest)

    def _synced(self, rest: str) -> None:
        match = _DESCRIPTOR.match(rest)
        opened = self._open.get(int(match[1])) if match and match[1].isdigit() else None
        if opened is not None:
            self.changes.append(Sync(opened.file))
            return
        place = _PLACE.search(rest)
        whole = os.fsdecode(_text(place[1])) if place else ""
        if whole == self._folder or self._inside(whole) is not None:
            self.changes.append(Sync(None, self._inside(whole) or ""))

    def _moved(self, call: str, rest: str, answer: int) -> None:
        match = _DESCRIPTOR.match(rest)
        opened = self._open.get(int(match[1])) if match and match[1].isdigit() else None
        if opened is None:
            return
        if call == "lseek":
            opened.offset = answer
        elif call == "read":
            opened.offset += answer
        elif call == "ftruncate":
            self._change(Write(opened.file, int(rest.rpartition(",")[2]), None))
        elif call == "fallocate":
            size, (mode, offset, length) = self._sizes[opened.file], map(int, re.findall(r", (\w+)", rest))
            if mode:
                raise NotImplementedError(f"fallocate with mode {mode}")
            if offset + length > size:
                self._change(Write(opened.file, size, bytes(offset + length - size)))
        else:
            data = b"".join(_text(each) for each in _TEXT.findall(rest))[:answer]
            at_place = call.startswith("p")
            offset = int(rest.rpartition(",")[2]) if at_place else opened.offset
            if opened.append:
                offset = self._sizes[opened.file]
            self._change(Write(opened.file, offset, data))
            if not at_place:
                opened.offset = offset + len(data)

    def _change(self, write: Write) -> None:
        self.changes.append(write)
        end = write.offset + len(write.data or b"")
        self._sizes[write.file] = end if write.data is None else max(self._sizes[write.file], end)

    def _named(self, call: str, rest: str) -> None:
        paths = self._paths(rest)
        if call.startswith("symlink"):
            if (path := paths[-1]) is not None:
                self._name(Name("symlink", path, target=os.fsdecode(_text(_TEXT.findall(rest)[0]))))
            return
        if all(path is None for path in paths):
            return
        if any(path is None for path in paths):
            raise NotImplementedError(f"{call} leads out of the folder")
        first, last = str(paths[0]), str(paths[-1])
        if call.startswith("rename"):
            self._name(Name("rename", last, target=first))
        elif call.startswith("link"):
            found = self._names.get(first)
            self._name(Name("link", last, found if isinstance(found, File) else None))
        elif call.startswith("mkdir"):
            self._name(Name("folder", first))
        else:
            self._name(Name("rmdir" if call == "rmdir" or "AT_REMOVEDIR" in rest else "unlink", first))

    def _name(self, change: Name) -> None:
        self.changes.append(change)
        _rename(self._names, change)


def _rename(names: Names, change: Name) -> None:
    """Let a change of names happen; one that has lost what it builds on does nothing."""
    if os.path.dirname(change.path) and os.path.dirname(change.path) not in names:
        return
    if change.what == "link":
        names.setdefault(change.path, change.file)
    elif change.what == "folder":
        names.setdefault(change.path, None)
    elif change.what == "symlink":
        names.setdefault(change.path, change.target)
    elif change.what == "rename":
        if change.target not in names:
            return
        for path in [each for each in names if each == change.target or each.startswith(change.target + "/")]:
            names[change.path + path.removeprefix(change.target)] = names.pop(path)
    elif change.what == "unlink" or not any(each.startswith(change.path + "/") for each in names):
        names.pop(change.path, None)


def _ways(done: list[Change], settled: list[int]) -> Iterator[tuple[set[int], dict[int, bytes], str]]:
    """Yield what a crash after these changes may lose, which writes it may alter, and the words for it."""
    unsure = [place for place, change in enumerate(done) if settled[place] >= len(done) and not isinstance(change, Sync)]
    names = [place for place in unsure if isinstance(done[place], Name)]
    writes = [place for place in unsure if isinstance(done[place], Write)]
    yield set(), {}, "nothing is lost"
    yield set(unsure), {}, "all that was not synced is lost"
    yield set(writes), {}, "all bytes that were not synced are lost"
    yield set(names), {}, "all names that were not synced are lost"
    for number, place in enumerate(names):
        yield set(names[number:]), {}, f"names from change {place} on are lost"
        yield {place}, {}, f"the name of change {place} is lost"
        yield {place, *writes}, {}, f"the name of change {place} and all bytes are lost"
    files: dict[File, set[int]] = {}
    for place in writes:
        change = done[place]
        assert isinstance(change, Write)
        files.setdefault(change.file, set()).add(place)
        yield {place}, {}, f"the bytes of change {place} are lost"
        yield {each for each in writes if each >= place}, {}, f"bytes from change {place} on are lost"
        if change.data:
            half = len(change.data) // 2
            yield set(), {place: change.data[:half]}, f"half of change {place} is lost"
            yield set(), {place: bytes(len(change.data))}, f"zeros stand in the place of change {place}"
    for lost in files.values():
        yield lost, {}, f"the bytes of changes {sorted(lost)}, of one file, are lost"
        yield set(writes) - lost, {}, f"all bytes but those of changes {sorted(lost)} are lost"


def _settled(changes: list[Change]) -> list[int]:
    """Return for each change the place of the sync that makes it certain; one behind all where there is none."""
    found = [len(changes)] * len(changes)
    for end in range(len(changes) - 1, -1, -1):
        sync = changes[end]
        if not isinstance(sync, Sync):
            continue
        for place, change in enumerate(changes[:end]):
            if isinstance(change, Write):
                certain = change.file is sync.file
            else:
                certain = isinstance(change, Name) and sync.file is None and os.path.dirname(change.path) == sync.folder
            if certain:
                found[place] = end
    return found
