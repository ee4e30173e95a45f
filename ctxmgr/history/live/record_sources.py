"""Sources of new records: a store, a growing log, the log of a foreign agent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from ctxmgr.clients.session_file import with_waits
from ctxmgr.errors import Busy, NotFound, StorageFailed
from ctxmgr.history.formats import IMPORTERS, OWN_FORMAT, read_head, recognised, refused
from ctxmgr.importers.interface import Importer
from ctxmgr.light_dataclass import dataclass
from ctxmgr.log import reader
from ctxmgr.log.codec import Record
from ctxmgr.log.line_splitter import last_data_end
from ctxmgr.paths import open_regular
from ctxmgr.store import Store
from ctxmgr.store.repositories.tail import records_after
from ctxmgr.types.importing import FileCount

_MARK = 256
_CHUNK = 1 << 16
_SHARE = 4
"""A foreign log is read again no sooner than so many times after the time that reading it took."""


@dataclass(slots=True)
class Batch:
    """What came since last time.

    Attributes:
        records: to be read at once; reading them may raise `OSError` or `StorageFailed`.
        fresh: they are the whole again, from its beginning.
        begun: sessions whose records are read from their beginning now: what was over in them is past.
        gone: sessions that are no longer followed here.
    """

    records: Iterable[Record]
    fresh: bool
    begun: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()


class Source(Protocol):
    """Something that grows and can be asked what came."""

    def poll(self) -> Batch | None:
        """Return what came since last time, or None."""
        ...


class StoreTail:
    """Sessions of a store: one, or whichever is the latest."""

    def __init__(self, store: Store, key: int | None = None) -> None:
        self._store = store
        self._only = key
        self._seen: dict[int, int] = {} if key is None else {key: 0}

    def poll(self) -> Batch | None:
        """Return the new records of the sessions that are followed."""
        if self._only is None and (latest := self._store.sessions.latest()) is not None:
            self._seen.setdefault(latest, 0)
        return Batch(self._records(), fresh=False)

    def _records(self) -> Iterator[Record]:
        for key, seq in list(self._seen.items()):
            for place, record in records_after(self._store.engine, key, seq):
                self._seen[key] = place
                yield record


class LogTail:
    """A log of format 1, read on from where the last reading ended; from its start when it was cut, replaced or written over.

    What is read twice then does no harm: entries are known by their ids. A session that goes on in the new file goes on.
    """

    def __init__(self, path: Path, session: str | None = None) -> None:
        self._path = path
        self._session = session
        self._offset = 0
        self._state: tuple[int, int, int] | None = None
        self._mark = b""

    def poll(self) -> Batch | None:
        """Return the records of the lines that were completed since last time; None too while there is no such file."""
        try:
            status = os.stat(self._path)
            state = (status.st_ino, status.st_size, status.st_mtime_ns)
            if state == self._state:
                return None
            new = self._state is None or self._state[0] != state[0] or status.st_size < self._offset or self._changed()
            start = 0 if new else self._offset
            end = _last_line_end(self._path, start, status.st_size)
        except OSError:  # between two files of a rotation, or not yet there
            return None
        self._state = state
        self._offset = start
        return Batch(self._records(start, end), fresh=False) if end > start else None

    def _changed(self) -> bool:
        with open(open_regular(self._path), "rb") as stream:
            stream.seek(max(0, self._offset - _MARK))
            return stream.read(min(self._offset, _MARK)) != self._mark

    def _records(self, start: int, end: int) -> Iterator[Record]:
        try:
            for line in reader.read(self._path, start, last=None):
                if line.offset >= end:
                    break
                if self._session is None or line.record.get("session") == self._session:
                    yield line.record
            with open(open_regular(self._path), "rb") as stream:
                stream.seek(max(0, end - _MARK))
                self._mark = stream.read(min(end, _MARK))
            self._offset = end
        except (OSError, NotFound):
            self._state = None  # it was taken away while it was read: whatever lies there next is read anew
            raise StorageFailed(f"{self._path} went away while it was read") from None


def _last_line_end(path: Path, start: int, size: int) -> int:
    """Return the offset behind the last line end between two places, ``start`` when there is none."""
    with open(open_regular(path), "rb") as stream:
        end = size
        while end > start:
            begin = max(start, end - _CHUNK)
            stream.seek(begin)
            data = stream.read(end - begin)
            if (at := data.rfind(b"\n")) >= 0:
                return begin + at + 1
            end = begin if data.strip(b"\0") else last_data_end(stream.fileno(), start, begin)
    return start


def session_files(importer: Importer, path: Path) -> list[Path]:
    """Return the files of the session in a foreign log, those of its sub-agents too.

    Raises:
        OSError: when one can't be read.
    """
    groups = importer.groups([path, *importer.companions(path)])
    return next((group for group in groups if path in group), [path])


class ForeignLog:
    """The session in another agent's log, with the logs of its sub-agents.

    These formats can't be read on from the middle, so the whole is read again through its importer, only when a file has
    changed and at most once in ``every`` seconds; more rarely where reading takes long.
    """

    def __init__(self, importer: Importer, path: Path, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._importer = importer
        self._path = path
        self._every = every
        self._clock = clock
        self._next = float("-inf")
        self._state: list[tuple[str, int, int, int]] = []

    def poll(self) -> Batch | None:
        """Return the whole session when any of its files has changed."""
        if self._clock() < self._next:
            return None
        try:
            group = session_files(self._importer, self._path)
            state = [(str(path), (s := path.stat()).st_ino, s.st_size, s.st_mtime_ns) for path in group]
        except OSError:
            return None
        if state == self._state:
            return None
        return Batch(self._records(group, state), fresh=True)

    def _records(self, group: list[Path], state: list[tuple[str, int, int, int]]) -> Iterator[Record]:
        began = self._clock()
        counts: list[FileCount] = []
        yield from with_waits(self._importer.name, self._importer.read(group, counts))
        self._state = state  # not before: what could not be read to its end is read again
        self._next = self._clock() + max(self._every, _SHARE * (self._clock() - began))


class LogSource:
    """A log of a format that its first line will tell."""

    def __init__(
        self,
        path: Path,
        *,
        session: str | None = None,
        every: float = 2.0,
        once: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Follow a log; ``once``: it will not be asked again, so that what tells no format is refused at once."""
        self._path = path
        self._once = once
        self._session = session
        self._every = every
        self._clock = clock
        self._source: Source | None = None

    def poll(self) -> Batch | None:
        """Return what came; None also while nothing tells the format yet.

        Raises:
            InvalidInput: it is a log of no known format.
        """
        if self._source is None:
            self._source = self._recognised()
        return None if self._source is None else self._source.poll()

    def _recognised(self) -> Source | None:
        try:
            head = read_head(self._path)
        except OSError:
            return None
        name = recognised(self._path, head)
        if name == OWN_FORMAT:
            return LogTail(self._path, self._session)
        for importer in IMPORTERS:
            if importer.name == name:
                return ForeignLog(importer, self._path, self._every, self._clock)
        if b"\n" not in head and not (self._once and head):
            return None
        raise refused(self._path, head)


PASSING = (Busy, StorageFailed, OSError)
"""What a source may raise for a while: another process writes, a file was taken away. Asking again later helps."""
