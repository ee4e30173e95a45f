"""Bring the records of local logs and databases to another store: in batches, each record once, whatever happens on the way.

A record is known by its session, kind and id, so what was shipped already is told apart by the store itself, and several
shippers of one log do no harm. How far one came is noted beside (`Progress`) only to save time: it may be lost at any moment.
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

from ctxmgr.errors import Busy, CtxmgrError, Damaged, InvalidInput, NotFound, StorageFailed
from ctxmgr.log import ids
from ctxmgr.log.anchor import folder as anchors
from ctxmgr.log.codec import MAX_LINE, Record
from ctxmgr.log.reader import Line, read
from ctxmgr.log.session_lock import live_processes
from ctxmgr.paths import is_url, make_private_folder, open_regular, read_regular, replace_file
from ctxmgr.store import LOG_SUFFIXES, AppendResult, Store, open_store
from ctxmgr.store.repositories.tail import all_records_after, end_of, holds_record, sum_at
from ctxmgr.store.reserved import PROJECT

MOST_RECORDS, MOST_BYTES = 256, 1_000_000
"""Of one batch; a record that is longer is one by itself."""

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_ALIVE_EVERY = 10.0
_INDEXING = 2.0
_TAIL = 64
_MOST_NOTED = 100_000

Sleep = Callable[[float], None]


@dataclass(slots=True)
class Progress:
    """How far the records of one place have been brought to one store.

    Attributes:
        source: path of the log or database; target: where its records go, without secrets.
        done: bytes of a log, or records of a database; size: of those there are.
        added: records that the store did not have; known: that it had; changed: of which it keeps another content.
        refused: that can't be stored; left_out: of the project's own state.
        shipped: when the last batch was acknowledged; error: why the last try failed, and since: when that was.
        mark: tells whether the place still holds what was shipped; last: (session, kind, id) of a record that the store
            then holds.
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

    @property
    def lag(self) -> int:
        """What is not shipped yet: bytes of a log, records of a database."""
        return max(0, self.size - self.done)

    def to_json(self) -> dict[str, Any]:
        """Return what JSON shows of it."""
        told = asdict(self)
        del told["mark"], told["last"]
        told["leftOut"] = told.pop("left_out")
        return {**told, "lag": self.lag, "unit": "bytes" if self.source.endswith(LOG_SUFFIXES) else "records"}


def _note_of(source: str, target: str) -> str:
    name = hashlib.sha256(f"{os.path.realpath(source)}\0{target}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return os.path.join(_folder(), f"{name}.json")


def _folder() -> str:
    return os.path.join(os.path.dirname(anchors()), "ship")


def noted() -> list[Progress]:
    """Return how far every place that was ever shipped from this machine is, with what it has grown to since."""
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
        found = Progress(**json.loads(read_regular(path, _MOST_NOTED)))
    except (OSError, ValueError, TypeError):
        return None
    numbers = (found.done, found.size, found.added, found.known, found.changed, found.refused, found.left_out)
    texts = (found.source, found.target, found.mark)
    sound = all(type(each) is int for each in numbers) and all(type(each) is str for each in texts)
    return found if sound and all(type(each) is str for each in found.last) else None


@dataclass(slots=True)
class _Batch:
    """Records that are written together, and where in their source they end."""

    items: list[Line | Record] = field(default_factory=lambda: list[Line | Record]())
    bytes: int = 0
    left_out: int = 0
    end: int = 0
    last: list[str] = field(default_factory=lambda: list[str]())

    def is_full(self, more: int) -> bool:
        return bool(self.items) and (len(self.items) >= MOST_RECORDS or self.bytes + more > MOST_BYTES)


class _Log:
    """A log of format 1."""

    def __init__(self, path: str) -> None:
        self.path = path

    def size(self) -> int:
        return os.stat(self.path).st_size

    def mark(self, end: int) -> str:
        """Return what tells this file, up to there, from another one."""
        with open(open_regular(self.path), "rb") as stream:
            begin = stream.read(min(_TAIL, end))
            stream.seek(max(0, end - _TAIL))
            return hashlib.sha256(begin + stream.read(min(_TAIL, end))).hexdigest()[:16]

    def records(self, start: int) -> Iterator[tuple[Line | Record, Record, int, int]]:
        """Yield (what is written, the record, its length, where the next one begins) from an offset on."""
        for line in read(self.path, start, last=None):
            yield line, line.record, line.length, line.offset + line.length + 1

    def require_own(self, target: str) -> None:
        """Refuse what holds something and no record: to have shipped all of it would look like an empty history."""
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
            return end_of(store.engine)

    def mark(self, end: int) -> str:
        with closing(open_store(self.path, readonly=True)) as store:
            return sum_at(store.engine, end)

    def records(self, start: int) -> Iterator[tuple[Line | Record, Record, int, int]]:
        with closing(open_store(self.path, readonly=True)) as store:
            for seq, length, record in all_records_after(store.engine, start):
                yield record, record, length, seq

    def require_own(self, target: str) -> None:
        """Refuse nothing: a store that holds nothing yet is one all the same."""

    def live(self) -> set[tuple[str, str]]:
        return live_processes(self.path)


def _source(path: str) -> _Log | _Database:
    return _Log(path) if path.lower().endswith(LOG_SUFFIXES) else _Database(path)


class Shipper:
    """Brings the records of one place to a store.

    Args:
        path: of the log of format 1, or of the database.
        target: location of the store.
        shown: the same as it may be printed.
        trusted: take the project's own state along too: access rules, context keys, artifacts.
    """

    def __init__(self, path: str, target: str, shown: str, *, trusted: bool = False) -> None:
        if not os.path.isfile(path):
            raise NotFound(f"no log at {path}", "check the path")
        self._source = _source(path)
        self._note = _note_of(path, target)
        self._trusted = trusted
        self.progress = _read_note(self._note) or Progress(os.path.abspath(path), shown)

    def ship(self, store: Store, recovered: Callable[[], None] | None = None) -> AppendResult:
        """Bring what is new to the store; return what that did.

        Args:
            store: to bring it to.
            recovered: called when the store takes something for the first time since a try failed.

        Raises:
            StorageFailed, Busy: the store, or the log, can't be reached now; what was acknowledged stays.
            Damaged, NotFound: there is nothing that can be read.
            InvalidInput: it is a log of another program, or no log.
        """
        done, progress = AppendResult(), self.progress
        start = self._start(store)
        for batch in self._batches(start):
            result, refused = _append(store, batch.items)
            done.plus(result)
            progress.added += result.added
            progress.known += result.known
            progress.changed += result.changed
            progress.refused += refused
            progress.left_out += batch.left_out
            progress.done, progress.shipped = batch.end, ids.now()
            progress.last = batch.last or progress.last
            failed, progress.error, progress.since = progress.error is not None, None, None
            self.keep()
            if failed and recovered is not None:
                recovered()
        if not progress.done:
            self._source.require_own(progress.target)
        self.keep()
        return done

    def _start(self, store: Store) -> int:
        """Return where to go on: where the note says, if place and store still hold what it says, else from the beginning."""
        progress = self.progress
        with suppress(OSError):
            size = self._source.size()
            if 0 < progress.done <= size and progress.mark == self._source.mark(progress.done) and self._is_held(store):
                return progress.done
        progress.done = 0
        return 0

    def _is_held(self, store: Store) -> bool:
        return len(self.progress.last) == 3 and holds_record(store.engine, *self.progress.last)

    def _batches(self, start: int) -> Iterator[_Batch]:
        batch = _Batch(end=start)
        for item, record, length, end in self._source.records(start):
            if batch.is_full(length):
                yield batch
                batch = _Batch(end=batch.end)
            if record["session"] == PROJECT and not self._trusted:
                batch.left_out += 1
            else:
                batch.items.append(item)
                batch.bytes += length
                batch.last = _identity(record) or batch.last
            batch.end = end
        if batch.items or batch.left_out:
            yield batch

    def fail(self, error: CtxmgrError) -> None:
        """Note why the last try failed."""
        self.progress.error = error.message
        self.progress.since = self.progress.since or ids.now()
        self.keep()

    def keep(self) -> None:
        """Note how far it is; where that can't be written, the next run takes longer."""
        with suppress(OSError, CtxmgrError):
            self.progress.size = self._source.size()
            self.progress.done = min(self.progress.done, self.progress.size)
            self.progress.mark = self._source.mark(self.progress.done)
            if not os.path.isdir(_folder()):
                make_private_folder(_folder())
            replace_file(self._note, json.dumps(asdict(self.progress)).encode())

    def live(self) -> set[tuple[str, str]]:
        """Return (session, process) of the recorders on this machine that have the place open."""
        return self._source.live()


def _identity(record: Record) -> list[str]:
    """Return (session, kind, id) of a record that has an id of its own, else nothing."""
    named = record.get("entry") if record["kind"] == "result" else record.get("id")
    return [str(record["session"]), str(record["kind"]), named] if isinstance(named, str) and named else []


def _append(store: Store, items: Sequence[Line | Record]) -> tuple[AppendResult, int]:
    """Write records; those that can't be stored are left out, and counted."""
    if not items:
        return AppendResult(), 0
    try:
        return _append_all(store, items), 0
    except InvalidInput:
        if len(items) == 1:
            return AppendResult(), 1
    done, refused = AppendResult(), 0
    for item in items:
        result, wrong = _append(store, [item])
        done.plus(result)
        refused += wrong
    return done, refused


def _append_all(store: Store, items: Sequence[Line | Record]) -> AppendResult:
    lines = [item for item in items if isinstance(item, Line)]
    if lines:
        return store.append_lines(lines, on_conflict="keep")
    return store.append((item for item in items if not isinstance(item, Line)), on_conflict="keep")


class _EnoughError(Exception):
    """Enough was indexed for now."""


class Service:
    """Ships several places to one store, once or for good.

    Args:
        shippers: one for each place.
        target: location of the store.
        masked: mask secrets before anything leaves this machine.
        sleep: waits; replaced in tests.
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
        """Ship what is there, and index it for search.

        Args:
            recovered: see `Shipper.ship`.
            indexing: seconds after which indexing is left to the next time.

        Raises:
            CtxmgrError: it can't be done now; the places know it too.
        """
        failure: CtxmgrError | None = None
        done: list[AppendResult] = []
        for shipper in self._shippers:
            try:
                done.append(shipper.ship(self._opened(), recovered))
            except CtxmgrError as error:  # the others may be readable all the same
                shipper.fail(error)
                failure = failure or error
        if failure is not None:
            raise failure
        store = self._opened()
        if any(shipped.added for shipped in done):
            store.tell()
        if store.engine.shared:
            until = time.monotonic() + indexing

            def heard(_done: int, _last: int) -> None:
                if time.monotonic() > until:
                    raise _EnoughError

            with suppress(_EnoughError):
                store.index(heard)

    def follow(self, every: float, told: Callable[[CtxmgrError | None, float], None]) -> None:
        """Ship what is there and what comes, until the process is ended. What can't be reached is tried again, ever later.

        Args:
            every: seconds between two looks.
            told: hears of a failure and of the seconds until the next try, and of None when it works again.
        """

        def again() -> None:  # what was left behind meanwhile may take long
            if self._failures:
                told(None, 0.0)
            self._failures = 0

        while True:
            wait = every
            try:
                self.once(again, _INDEXING)  # what is recorded meanwhile comes first
                self._tell_alive()
                again()
            except (StorageFailed, Busy, Damaged, NotFound) as error:
                self.close()
                wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2**self._failures) * random.uniform(0.5, 1.0)  # not all at once
                self._failures = min(self._failures + 1, 10)
                told(error, wait)
            self._sleep(wait)

    def _tell_alive(self) -> None:
        store = self._opened()
        if not store.engine.shared or time.monotonic() - self._alive < _ALIVE_EVERY:
            return
        from ctxmgr.store.server_store import signs_of_life

        live = {holder for shipper in self._shippers for holder in shipper.live()}
        signs_of_life(store.engine, live)
        self._alive = time.monotonic()

    def _opened(self) -> Store:
        if self._store is None:
            self._store = open_store(self._target, create=True, masked=self._masked)
        return self._store

    def close(self) -> None:
        """Release the store."""
        if self._store is not None:
            with suppress(CtxmgrError):
                self._store.close()
        self._store = None


def as_shown(location: str) -> str:
    """Return the location of a store as it may be printed."""
    if not is_url(location):
        return str(Path(location).absolute())
    from ctxmgr.store.engine.postgresql_url import shown

    return shown(location)
