"""Follow a store, a growing log or a foreign log, and report findings when they change."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.base.paths import open_regular
from ctxmgr.clients import with_waits
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import Busy, NotFound, StorageFailed
from ctxmgr.history.formats import IMPORTERS, OWN_FORMAT, format_error, read_head, recognise_format, session_files
from ctxmgr.history.live.monitor import RecordStream
from ctxmgr.importers.base import Importer
from ctxmgr.log import reader
from ctxmgr.log.codec import Record
from ctxmgr.log.fast_json import json_object
from ctxmgr.log.line_splitter import last_data_end
from ctxmgr.store import Store
from ctxmgr.store.repositories.queries import read_records_after
from ctxmgr.types.finding import Finding
from ctxmgr.types.import_report import FileCount

_MARK = 256  # bytes before the offset that identify a rewritten log
_CHUNK = 1 << 16
_SHARE = 4
"""Pause before a foreign log is read again, as a multiple of the time for reading it. So it takes at most 1/5 of a core."""


@dataclass(slots=True)
class Batch:
    """The new records since the last poll.

    Attributes:
        records: must be read at once; reading them may raise `OSError` or `StorageFailed`.
        fresh: these are all records again, from the beginning.
        begun: sessions read from their beginning; findings that are already resolved in them are not reported.
        gone: sessions that are no longer followed here.
    """

    records: Iterable[Record]
    fresh: bool
    begun: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()


class Source(Protocol):
    """A growing source of records that can be polled."""

    def poll(self) -> Batch | None:
        """Return the new records since the last poll, or None."""
        ...


class StoreTail:
    """Follows one session of a store, or whichever is the latest."""

    def __init__(self, store: Store, key: int | None = None) -> None:
        self._store = store
        self._only = key
        self._seen: dict[int, int] = {} if key is None else {key: 0}

    def poll(self) -> Batch | None:
        """Return the new records of the followed sessions."""
        if self._only is None and (latest := self._store.sessions.latest()) is not None:
            self._seen.setdefault(latest, 0)
        return Batch(self._records(), fresh=False)

    def _records(self) -> Iterator[Record]:
        for key, seq in list(self._seen.items()):
            for place, record in read_records_after(self._store.engine, key, seq):
                self._seen[key] = place
                yield record


class LogTail:
    """Follows a log of format 1 from the last offset, or from its start if it was truncated, replaced or rewritten.

    Reading a record twice does no harm, because ids identify entries. A session that continues in the new file is followed on.
    """

    def __init__(self, path: Path, session: str | None = None) -> None:
        self._path = path
        self._session = session
        self._offset = 0
        self._state: tuple[int, int, int] | None = None
        self._mark = b""

    def poll(self) -> Batch | None:
        """Return the records of the lines completed since the last poll; None if there are none, or no such file."""
        try:
            status = os.stat(self._path)
            state = (status.st_ino, status.st_size, status.st_mtime_ns)
            if state == self._state:
                return None
            # Another inode is a rotated log, and a shorter file was truncated. A rewritten log may be as long: compare bytes.
            new = self._state is None or self._state[0] != state[0] or status.st_size < self._offset or self._has_changed()
            start = 0 if new else self._offset
            end = _last_line_end(self._path, start, status.st_size)
        except OSError:  # between two files of a rotation, or not yet created
            return None
        self._state = state
        self._offset = start
        return Batch(self._records(start, end), fresh=False) if end > start else None

    def _has_changed(self) -> bool:
        with open(open_regular(self._path), "rb") as stream:
            stream.seek(max(0, self._offset - _MARK))
            return stream.read(min(self._offset, _MARK)) != self._mark

    def _records(self, start: int, end: int) -> Iterator[Record]:
        try:
            for line in reader.read(self._path, start, last=None):
                # Later lines are left to the next poll, because the last one may be half written.
                if line.offset >= end:
                    break
                if self._session is None or line.record.get("session") == self._session:
                    yield line.record
            with open(open_regular(self._path), "rb") as stream:
                stream.seek(max(0, end - _MARK))
                self._mark = stream.read(min(end, _MARK))
            # Not earlier: if reading is interrupted, it must start again from the old offset.
            self._offset = end
        except (OSError, NotFound):
            self._state = None  # removed while it was read; the next file there is read from its start
            raise StorageFailed(f"{self._path} went away while it was read") from None


def _last_line_end(path: Path, start: int, size: int) -> int:
    """Return the offset after the last line end between two offsets; ``start`` if there is none."""
    with open(open_regular(path), "rb") as stream:
        end = size
        while end > start:
            begin = max(start, end - _CHUNK)
            stream.seek(begin)
            data = stream.read(end - begin)
            if (at := data.rfind(b"\n")) >= 0:
                return begin + at + 1
            # A crash can leave a hole of gigabytes in a file. Skip it without reading.
            end = begin if data.strip(b"\0") else last_data_end(stream.fileno(), start, begin)
    return start


class ForeignLog:
    """Follows the session in another agent's log, with the logs of its sub-agents.

    These formats can't be read from the middle. So the whole session is imported again, but only if a file has changed, and
    at most once in ``every`` seconds; more rarely if reading takes long.
    """

    def __init__(self, importer: Importer, path: Path, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._importer = importer
        self._path = path
        self._every = every
        self._clock = clock
        self._next = float("-inf")
        self._state: list[tuple[str, int, int, int]] = []

    def poll(self) -> Batch | None:
        """Return the whole session if any of its files has changed."""
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
        start = self._clock()
        counts: list[FileCount] = []
        yield from with_waits(self._importer.name, self._importer.read(group, counts))
        self._state = state  # not earlier, so that an interrupted read is repeated
        self._next = self._clock() + max(self._every, _SHARE * (self._clock() - start))


class LogSource:
    """Follows a log. Its format is recognised once its first line is there."""

    def __init__(
        self,
        path: Path,
        *,
        session: str | None = None,
        every: float = 2.0,
        once: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Follow a log. ``once``: there is no second poll, so an unrecognised beginning is refused at once."""
        self._path = path
        self._once = once
        self._session = session
        self._every = every
        self._clock = clock
        self._source: Source | None = None

    def poll(self) -> Batch | None:
        """Return the new records; None if there are none, or the format can't be recognised yet.

        Raises:
            InvalidInput: it is a log of no known format.
        """
        if self._source is None:
            self._source = self._recognise()
        return None if self._source is None else self._source.poll()

    def _recognise(self) -> Source | None:
        try:
            head = read_head(self._path)
        except OSError:
            return None
        name = recognise_format(self._path, head)
        if name == OWN_FORMAT:
            return LogTail(self._path, self._session)
        for importer in IMPORTERS:
            if importer.name == name:
                return ForeignLog(importer, self._path, self._every, self._clock)
        # The first line may be half written.
        if b"\n" not in head and not (self._once and head):
            return None
        raise format_error(self._path, head)


PASSING = (Busy, StorageFailed, OSError)
"""Temporary errors of a source (another process writes, a file was removed). The next poll may succeed."""


_MAX_RUNS = 64

What = Literal["raised", "escalated", "over", "ended"]


@dataclass(frozen=True, slots=True)
class Sight:
    """A change to report.

    Attributes:
        event: a finding was ``raised``, ``escalated`` to a higher severity, or is ``over``; or the session ``ended``.
        finding: the finding; None if the session ended.
        outcome: the outcome of an ended session.
        lost: number of published events that were not captured, if the session's own history counted them.
    """

    event: What
    session: str
    finding: Finding | None = None
    outcome: str | None = None
    lost: int | None = None


@dataclass(slots=True)
class _Run:
    """One session under watch."""

    monitor: Monitor
    feed: RecordStream = field(default_factory=RecordStream)
    known: dict[str, Finding] = field(default_factory=lambda: dict[str, Finding]())
    muted: bool = False
    end: Record | None = None
    ends: int = 0
    reported_ends: int = 0

    def take(self, record: Record) -> None:
        for seen in self.feed.take(record):
            self.monitor.observe(seen)
        if record.get("kind") == "sessionEnd":
            self.end, self.ends = record, self.ends + 1
        # A session can be resumed after its end.
        elif record.get("kind") == "entry":
            self.end = None

    def skip_past_findings(self, now: float, *, all_of_it: bool) -> None:
        """Mark findings that were resolved before watching began as known; for a past session, all findings."""
        found = self.monitor.findings(now, live=True)
        self.known = {each.id: each for each in found if all_of_it or each.resolved is not None}
        self.muted = all_of_it

    def look(self, session: str, now: float) -> list[Sight]:
        found = {each.id: each for each in self.monitor.findings(now, live=True)}
        # A finding may vanish: a stall when progress comes, or a loop that a later result disproves.
        gone = [each for name, each in self.known.items() if name not in found]
        sights = [
            Sight("over", session, each.model_copy(update={"resolved": "progress"})) for each in gone if each.resolved is None
        ]
        for each in found.values():
            sights += [Sight(what, session, each) for what in self._changes(self.known.get(each.id), each)]
        for each in gone:
            del self.known[each.id]
        self.known.update(found)
        if self.end is not None and self.ends > self.reported_ends:
            sights.append(Sight("ended", session, None, str(self.end.get("outcome")), _read_lost_count(self.end)))
        self.reported_ends = max(self.ends, self.reported_ends)
        return sights

    def _changes(self, before: Finding | None, now: Finding) -> list[What]:
        if before is None or (before.resolved is not None and now.resolved is None):
            if now.resolved is None:
                return ["raised"]
            # A call that returned late was reported while it was overdue, unless it became both between two polls.
            reported = now.kind == "hung" and any(
                each.kind == "hung" and each.first == now.first for each in self.known.values()
            )
            return [] if reported else ["raised", "over"]
        if now.resolved is not None:
            return [] if before.resolved is not None else ["over"]
        return ["escalated"] if before.severity == "warn" != now.severity else []


class Follower:
    """Polls a source, shows new records to the detectors, and returns what changed.

    Findings that are already resolved at the first poll are not reported. Neither are those of sessions other than the
    latest, until these sessions go on. At most 64 sessions are followed, the most recently active ones.

    Args:
        source: the source to follow.
        settings: table of thresholds, see `DetectSettings.from_table`.
        clock: returns the current time in seconds since 1970, to judge stalls.

    Attributes:
        wait: waits up to a number of seconds for new records, if the source can notify; None otherwise.
    """

    wait: Callable[[float], None] | None = None

    def __init__(
        self, source: Source, settings: Mapping[str, Any] | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._source = source
        self._settings = DetectSettings.from_table(settings or {})
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._looked = False

    def tick(self) -> list[Sight]:
        """Poll once. Return the changes to report, oldest first."""
        try:
            batch = self._source.poll()
            if batch is not None:
                self._take(batch)
        except PASSING:
            pass  # read again at the next tick
        now = self._clock()
        return [sight for session, run in self._runs.items() if not run.muted for sight in run.look(session, now)]

    def counts(self) -> dict[str, int]:
        """Return the number of entries of each followed session."""
        return {session: run.feed.entries for session, run in self._runs.items() if not run.muted}

    def has_ended(self) -> bool:
        """Whether at least one session is followed, and all followed sessions have ended."""
        runs = [run for run in self._runs.values() if not run.muted]
        return bool(runs) and all(run.end is not None for run in runs)

    def _take(self, batch: Batch) -> None:
        runs: dict[str, _Run] = {} if batch.fresh else self._runs
        last: str | None = None
        for session in batch.gone:
            runs.pop(session, None)
        for record in batch.records:
            session = record.get("session")
            if not isinstance(session, str):
                continue
            last = session
            run = runs.pop(session, None) or self._new_run(session)
            run.muted = False
            runs[session] = run
            # The first is the least recently active, because each record moves its session to the end.
            if len(runs) > _MAX_RUNS:
                del runs[next(iter(runs))]
            run.take(record)
        self._runs = runs
        for session in batch.begun & runs.keys():
            self._looked = True
            runs[session].skip_past_findings(self._clock(), all_of_it=False)
        if not self._looked and last is not None:
            self._looked = True
            now = self._clock()
            for session, run in runs.items():
                run.skip_past_findings(now, all_of_it=session != last)

    def _new_run(self, session: str) -> _Run:
        run = _Run(Monitor(self._settings))
        if (old := self._runs.get(session)) is not None:
            # A foreign log is read as a whole each time. Do not report anything again.
            run.known, run.reported_ends = old.known, old.reported_ends
        return run


def _read_lost_count(end: Record) -> int | None:
    lost = json_object(end.get("capture")).get("lost")
    return lost if isinstance(lost, int) and not isinstance(lost, bool) else None
