"""Ship the records of local logs and databases to another store, in batches, each record exactly once.

Session, kind and id identify a record, so the store itself recognises records shipped before. Several shippers of one log do
no harm. The progress is saved (`Progress`) only to save time, and may be lost at any moment.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.base.paths import is_url, make_private_folder, open_regular, read_regular, replace_file
from ctxmgr.errors import Busy, CtxmgrError, Damaged, InvalidInput, NotFound, StorageFailed
from ctxmgr.log import ids
from ctxmgr.log.anchor import anchor_folder
from ctxmgr.log.codec import MAX_LINE, Record
from ctxmgr.log.reader import Line, read
from ctxmgr.log.session_lock import live_processes
from ctxmgr.store import LOG_SUFFIXES, AppendResult, Store, open_store
from ctxmgr.store.project_session import PROJECT, find_archive
from ctxmgr.store.repositories.queries import holds_record, last_place, read_all_records_after, read_sum
from ctxmgr.store.text_normalisation import storable

MOST_RECORDS, MOST_BYTES = 256, 1_000_000
"""Limits of one batch. A longer record is a batch of its own."""

_FIRST_WAIT, _MAX_WAIT = 0.5, 30.0  # seconds; doubled after each failure
_ALIVE_EVERY = 10.0  # seconds between two signs of life of local recorders
_INDEXING = 2.0  # seconds of indexing before new records are shipped again
_TAIL = 64  # bytes at the beginning and the end that identify a file
_MAX_NOTE_BYTES = 100_000
_MOST_MISSED = 20

Sleep = Callable[[float], None]


@dataclass(slots=True)
class Progress:
    """The progress of shipping one log or database to one store.

    Attributes:
        source: path of the log or database.
        target: the store, without secrets.
        done: bytes of a log, or records of a database, that are shipped.
        size: bytes or records in all.
        added: records that the store did not have.
        known: records that the store had.
        changed: records of which the store keeps another content.
        refused: records that can't be stored.
        refusal: why the last of these can't.
        archived: records that were shipped again, of sessions that the store has archived since.
        archive: where the last of these sessions is.
        missed: archived sessions that have newer records here; at most `_MOST_MISSED`, the first ones.
        left_out: records of the project's own state.
        shipped: time at which the last batch was acknowledged.
        error: why the last try failed.
        since: time of the first failure since the last success.
        mark: fingerprint by which a replaced source is recognised.
        last: (session, kind, id) of the last shipped record, by which a replaced store is recognised.
    """

    source: str
    target: str
    done: int = 0
    size: int = 0
    added: int = 0
    known: int = 0
    changed: int = 0
    refused: int = 0
    left_out: int = 0
    shipped: str | None = None
    error: str | None = None
    since: str | None = None
    mark: str = ""
    last: list[str] = field(default_factory=lambda: list[str]())
    archived: int = 0
    archive: str | None = None
    refusal: str | None = None
    missed: list[str] = field(default_factory=lambda: list[str]())

    @property
    def lag(self) -> int:
        """Number of bytes of a log, or records of a database, that are not shipped yet."""
        return max(0, self.size - self.done)

    def refusal_text(self) -> str:
        """Return a text for a person about the records that can't be stored."""
        records = "1 record" if self.refused == 1 else f"{self.refused:,} records"
        return f"{records} can't be stored" + ("" if self.refusal is None else f": {self.refusal}")

    def to_json(self) -> dict[str, Any]:
        """Return the fields that JSON output shows, {name: value}; ``unit`` says what ``lag`` counts."""
        fields = asdict(self)
        del fields["mark"], fields["last"], fields["missed"]
        fields["leftOut"] = fields.pop("left_out")
        return {**fields, "lag": self.lag, "unit": "bytes" if _is_log(self.source) else "records"}


def _is_log(path: str) -> bool:
    return path.lower().endswith(LOG_SUFFIXES)


def _note_path(source: str, target: str) -> str:
    name = hashlib.sha256(f"{os.path.realpath(source)}\0{target}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return os.path.join(_folder(), f"{name}.json")


def _folder() -> str:
    return os.path.join(os.path.dirname(anchor_folder()), "ship")


def known_progress() -> list[Progress]:
    """Return the progress of every source ever shipped from this machine, with its current size."""
    found: list[Progress] = []
    with suppress(OSError):
        for name in sorted(os.listdir(_folder())):
            each = _read_note(os.path.join(_folder(), name))
            if each is not None:
                with suppress(OSError, CtxmgrError):
                    each.size = _source(each.source).size()
                found.append(each)
    return found


def _read_note(path: str) -> Progress | None:
    try:
        found = Progress(**json.loads(read_regular(path, _MAX_NOTE_BYTES)))
    except (OSError, ValueError, TypeError):
        return None
    numbers = (found.done, found.size, found.added, found.known, found.changed, found.refused, found.left_out, found.archived)
    texts = (found.source, found.target, found.mark, found.archive or "", found.refusal or "")
    sound = all(type(each) is int for each in numbers) and all(type(each) is str for each in texts)
    return found if sound and all(type(each) is str for each in (*found.last, *found.missed)) else None


@dataclass(slots=True)
class _Batch:
    """Records that are written together, and their end in the source."""

    items: list[Line | Record] = field(default_factory=lambda: list[Line | Record]())
    bytes: int = 0
    left_out: int = 0
    end: int = 0

    def is_full(self, more: int) -> bool:
        return bool(self.items) and (len(self.items) >= MOST_RECORDS or self.bytes + more > MOST_BYTES)


class _Log:
    """A log of format 1."""

    def __init__(self, path: str) -> None:
        self.path = path

    def size(self) -> int:
        return os.stat(self.path).st_size

    def mark(self, end: int) -> str:
        """Return a fingerprint of the file up to an offset, by its first and last bytes."""
        # Not over all bytes: it is computed after each batch, and a log may have gigabytes.
        with open(open_regular(self.path), "rb") as stream:
            begin = stream.read(min(_TAIL, end))
            stream.seek(max(0, end - _TAIL))
            return hashlib.sha256(begin + stream.read(min(_TAIL, end))).hexdigest()[:16]

    def records(self, start: int) -> Iterator[tuple[Line | Record, Record, int, int]]:
        """Yield (item to write, record, length in bytes, offset of the next one), starting at an offset."""
        for line in read(self.path, start, last=None):
            yield line, line.record, line.length, line.offset + line.length + 1

    def require_own(self, target: str) -> None:
        """Refuse a file without any record of ours: shipping nothing of it would look like success.

        Raises:
            InvalidInput: it is a log of another program, or of no known format.
            Damaged: no record of it can be read.
        """
        from ctxmgr.history.foreign_log import foreign_importer

        if not self.size():
            return
        importer = foreign_importer(self.path)
        if importer is not None:
            raise InvalidInput(
                f"{self.path}: a log of {importer.title}, not of ctxmgr",
                f"bring it there with: ctxmgr import {self.path} --store {target}",
            )
        with open(open_regular(self.path), "rb") as stream:
            if stream.readline(MAX_LINE).endswith(b"\n"):  # else it is still being written
                raise Damaged(f"{self.path}: no record of it can be read", "'ctxmgr verify' lists what is damaged")

    def live(self) -> set[tuple[str, str]]:
        return live_processes(self.path)


class _Database:
    """A store in a local database."""

    def __init__(self, path: str) -> None:
        self.path = path

    def size(self) -> int:
        with closing(open_store(self.path, readonly=True)) as store:
            return last_place(store.engine)

    def mark(self, end: int) -> str:
        with closing(open_store(self.path, readonly=True)) as store:
            return read_sum(store.engine, end)

    def records(self, start: int) -> Iterator[tuple[Line | Record, Record, int, int]]:
        with closing(open_store(self.path, readonly=True)) as store:
            for seq, length, record in read_all_records_after(store.engine, start):
                yield record, record, length, seq

    def require_own(self, target: str) -> None:
        """Refuse nothing: an empty store is a valid source."""

    def live(self) -> set[tuple[str, str]]:
        return live_processes(self.path)


def _source(path: str) -> _Log | _Database:
    return _Log(path) if _is_log(path) else _Database(path)


class Shipper:
    """Ships the records of one log or database to a store.

    Args:
        path: the log of format 1, or the database.
        target: location of the store.
        shown: the location in a printable form, without a password.
        trusted: ship the project's own state too: access rules, context keys, artifacts.
    """

    def __init__(self, path: str, target: str, shown: str, *, trusted: bool = False) -> None:
        if not os.path.isfile(path):
            raise NotFound(f"no log at {path}", "check the path")
        self._source = _source(path)
        self._note = _note_path(path, target)
        self._trusted = trusted
        self.progress = _read_note(self._note) or Progress(os.path.abspath(path), shown)

    def ship(self, store: Store, recovered: Callable[[], None] | None = None) -> AppendResult:
        """Ship the new records, and return the sums over all batches.

        Args:
            store: the store to ship to.
            recovered: called when the store accepts a batch for the first time after a failure.

        Raises:
            StorageFailed, Busy: the store or the log can't be reached now. Acknowledged records stay in the store.
            Damaged, NotFound: nothing can be read.
            InvalidInput: it is a log of another program, or no log.
        """
        done = AppendResult()
        # A store that was replaced, or restored from a backup, lacks records shipped before. Then all are shipped again.
        start = self._start(store)
        progress = self.progress
        for batch in self._batches(start):
            sent = _Sent(again=not start)
            sent.append(store, batch.items)
            done.plus(sent.result)
            sent.add_to(progress)
            progress.left_out += batch.left_out
            # Only after the store has the batch: a kill in between ships the batch twice, which the store recognises.
            progress.done, progress.shipped = batch.end, ids.now()
            failed, progress.error, progress.since = progress.error is not None, None, None
            self.keep()
            if failed and recovered is not None:
                recovered()
        if not progress.done:
            self._source.require_own(progress.target)
        self.keep()
        return done

    def _start(self, store: Store) -> int:
        """Return the offset at which to continue: the saved one if source and store are still the same, else 0."""
        progress = self.progress
        with suppress(OSError):
            size = self._source.size()
            same = 0 < progress.done <= size and progress.mark == self._source.mark(progress.done)
            if same and self._is_held(store) and not _is_any_restored(store, progress.missed):
                return progress.done
        # Every record is sent again, so all counts restart.
        self.progress = Progress(progress.source, progress.target, error=progress.error, since=progress.since)
        return 0

    def _is_held(self, store: Store) -> bool:
        """Whether the store still has the last shipped record, or has archived it since."""
        progress = self.progress
        if len(progress.last) != 3:
            # A store that accepted nothing from this source can't lack anything.
            return not (progress.added or progress.known)
        return holds_record(store.engine, *progress.last) or _find_archive(store, progress.last[0]) is not None

    def _batches(self, start: int) -> Iterator[_Batch]:
        batch = _Batch(end=start)
        for item, record, length, end in self._source.records(start):
            if batch.is_full(length):
                yield batch
                batch = _Batch(end=batch.end)
            # Anybody who can write a local log could otherwise change the access rules of a whole team.
            if record["session"] == PROJECT and not self._trusted:
                batch.left_out += 1
            else:
                batch.items.append(item)
                batch.bytes += length
            batch.end = end
        # Records left out move the progress too, or they would be read again each time.
        if batch.items or batch.left_out:
            yield batch

    def fail(self, error: CtxmgrError) -> None:
        """Record the error of the last attempt."""
        self.progress.error = error.message
        self.progress.since = self.progress.since or ids.now()
        self.keep()

    def keep(self) -> None:
        """Save the progress. If that fails, the next run only takes longer."""
        with suppress(OSError, CtxmgrError):
            self.progress.size = self._source.size()
            self.progress.done = min(self.progress.done, self.progress.size)
            self.progress.mark = self._source.mark(self.progress.done)
            if not os.path.isdir(_folder()):
                make_private_folder(_folder())
            replace_file(self._note, json.dumps(asdict(self.progress)).encode())

    def live(self) -> set[tuple[str, str]]:
        """Return (session, process) of the recorders on this machine that have the source open."""
        return self._source.live()


class _Sent:
    """The outcome of shipping the records of a batch.

    Args:
        again: the source is read from its beginning, so the store may have had these records before.
    """

    def __init__(self, *, again: bool) -> None:
        self.result = AppendResult()
        self._again = again
        self._refused = self._archived = 0
        self._refusal: str | None = None
        self._archive: str | None = None
        self._last: list[str] = []
        self._missed: list[str] = []

    def append(self, store: Store, items: Sequence[Line | Record]) -> None:
        """Write as many of the records into a store as it accepts."""
        if not items:
            return
        try:
            self.result.plus(_append_all(store, items))
        except InvalidInput as error:
            rest = self._drop_archived(store, items) if self._again else items
            if len(rest) < len(items):
                self.append(store, rest)
            elif len(items) == 1:
                self._refused, self._refusal = self._refused + 1, error.message
                if _find_archive(store, _session(items[0])) is not None:
                    self._missed.append(_session(items[0]))
            else:
                # One record that can't be stored must not block the others, so ship the batch record by record.
                for item in items:
                    self.append(store, [item])
        else:
            self._note_last(items)

    def _drop_archived(self, store: Store, items: Sequence[Line | Record]) -> list[Line | Record]:
        """Return the records whose sessions the store has not archived. The others are in an archive already."""
        archives = {session: _find_archive(store, session) for session in {_session(item) for item in items}}
        gone = [item for item in items if archives[_session(item)] is not None]
        if gone:
            self._archived += len(gone)
            self._archive = archives[_session(gone[-1])]
            self._note_last(gone)
        return [item for item in items if archives[_session(item)] is None]

    def _note_last(self, items: Sequence[Line | Record]) -> None:
        # The store could not be asked for a record without an id, such as a session's record.
        self._last = next((named for item in reversed(items) if (named := _identity(item))), self._last)

    def add_to(self, progress: Progress) -> None:
        """Add the outcome to the progress of the source."""
        progress.added += self.result.added
        progress.known += self.result.known
        progress.changed += self.result.changed
        progress.refused += self._refused
        progress.refusal = self._refusal or progress.refusal
        progress.archived += self._archived
        progress.archive = self._archive or progress.archive
        progress.last = self._last or progress.last
        progress.missed = list(dict.fromkeys((*progress.missed, *self._missed)))[:_MOST_MISSED]


def _record(item: Line | Record) -> Record:
    return item.record if isinstance(item, Line) else item


def _session(item: Line | Record) -> str:
    return str(_record(item)["session"])


def _identity(item: Line | Record) -> list[str]:
    """Return [session, kind, id] of a record with an id, else an empty list."""
    record = _record(item)
    named = record.get("entry") if record["kind"] == "result" else record.get("id")
    return [str(record["session"]), str(record["kind"]), named] if isinstance(named, str) and named else []


def _find_archive(store: Store, session: str) -> str | None:
    """Return the archive to which a session was moved from a store; None if it was not moved."""
    found = find_archive(store.engine, storable(session))
    return None if found is None else str(found["archive"])


def _is_any_restored(store: Store, missed: Sequence[str]) -> bool:
    """Whether the store has taken back an archived session whose newer records it refused."""
    return any(_find_archive(store, session) is None for session in missed)


def _append_all(store: Store, items: Sequence[Line | Record]) -> AppendResult:
    # A batch is sent again if its answer was lost. So a record that the store has already is no error.
    lines = [item for item in items if isinstance(item, Line)]
    if lines:
        return store.append_lines(lines, on_conflict="keep")
    return store.append((item for item in items if not isinstance(item, Line)), on_conflict="keep")


class _TimeUpError(Exception):
    """The time for indexing is used up."""


class Service:
    """Ships several sources to one store, once or continuously.

    Args:
        shippers: one for each source.
        target: location of the store.
        masked: mask secrets before anything leaves this machine.
        sleep: the function to wait with; replaced in tests.
    """

    def __init__(self, shippers: Sequence[Shipper], target: str, *, masked: bool = True, sleep: Sleep = time.sleep) -> None:
        self._shippers = shippers
        self._target = target
        self._masked = masked
        self._sleep = sleep
        self._store: Store | None = None
        self._alive = 0.0
        self._failures = 0

    def once(self, recovered: Callable[[], None] | None = None, indexing: float = math.inf) -> None:
        """Ship all new records once, and index them for search.

        Args:
            recovered: see `Shipper.ship`.
            indexing: seconds after which indexing is left to the next call.

        Raises:
            CtxmgrError: the first failure, which is also saved in the progress of its source.
        """
        failure: CtxmgrError | None = None
        done: list[AppendResult] = []
        for shipper in self._shippers:
            try:
                done.append(shipper.ship(self._open_target(), recovered))
            except CtxmgrError as error:  # the other sources may be readable
                shipper.fail(error)
                failure = failure or error
        if failure is not None:
            raise failure
        store = self._open_target()
        if any(shipped.added for shipped in done):
            store.tell()
        if store.engine.shared:
            until = time.monotonic() + indexing

            def heard(_done: int, _last: int) -> None:
                if time.monotonic() > until:
                    raise _TimeUpError

            with suppress(_TimeUpError):
                store.index(heard)

    def follow(self, every: float, told: Callable[[CtxmgrError | None, float], None]) -> None:
        """Ship new records until the process ends. After failures, wait longer and longer, up to 30 seconds, and try again.

        Args:
            every: seconds between two rounds.
            told: called with (error, seconds until the next attempt) on failure, and with (None, 0) when it works again.
        """

        def again() -> None:  # called at the first batch, since catching up may take long
            if self._failures:
                told(None, 0.0)
            self._failures = 0

        while True:
            wait = every
            try:
                self.once(again, _INDEXING)  # indexing is limited, because shipping new records comes first
                self._tell_alive()
                again()
            except (StorageFailed, Busy, Damaged, NotFound) as error:
                # The connection itself may be broken, so the next attempt opens a new one.
                self.close()
                wait = min(_MAX_WAIT, _FIRST_WAIT * 2**self._failures) * random.uniform(0.5, 1.0)  # jitter
                # Ten doublings exceed the longest wait. After a thousand, the power would not fit into a float.
                self._failures = min(self._failures + 1, 10)
                told(error, wait)
            self._sleep(wait)

    def _tell_alive(self) -> None:
        store = self._open_target()
        if not store.engine.shared or time.monotonic() - self._alive < _ALIVE_EVERY:
            return
        from ctxmgr.store.server_store import report_alive

        live = {holder for shipper in self._shippers for holder in shipper.live()}
        report_alive(store.engine, live)
        self._alive = time.monotonic()

    def _open_target(self) -> Store:
        if self._store is None:
            self._store = open_store(self._target, create=True, masked=self._masked)
        return self._store

    def close(self) -> None:
        """Release the store."""
        if self._store is not None:
            with suppress(CtxmgrError):
                self._store.close()
        self._store = None


def printable_location(location: str) -> str:
    """Return the location of a store in a printable form."""
    if not is_url(location):
        return str(Path(location).absolute())
    from ctxmgr.store.engine.postgresql_url import printable_location

    return printable_location(location)
