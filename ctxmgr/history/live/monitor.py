"""Watch a running workflow: show each written record to the detectors, and judge stalls by a clock."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import session_observations
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import Busy, HungError, StorageFailed
from ctxmgr.log import reader
from ctxmgr.log.codec import Record, decode, encode
from ctxmgr.log.journal import Durability
from ctxmgr.log.mask_prefilter import mask as mask_secrets
from ctxmgr.recorder import OnLive, Recorder, Sink
from ctxmgr.store import is_log_name, open_store
from ctxmgr.types.finding import Finding, Observation

if TYPE_CHECKING:
    from ctxmgr.history.live.blackboard import BlackboardHistory


_MAX_OPEN = 10_000  # entries without a result; bounds the memory of sessions that run for weeks
_MAX_KNOWN = 50_000  # ids of entries, to recognise repeated entries

Listener = Callable[[Record], None]


class RecordStream:
    """Turns the records of one session into observations, in the given order.

    The result is that of `ctxmgr.detect.replay.session_observations` over the whole log, with two limits: if more than 10,000
    entries are open, the oldest are forgotten, and an entry repeated after 50,000 others counts as new.

    Attributes:
        entries: number of entries so far.
    """

    def __init__(self) -> None:
        self.entries = 0
        self._place = 0
        self._open: dict[str, tuple[Record, int]] = {}
        self._known: dict[str, None] = {}

    def take(self, record: Record) -> list[Observation]:
        """Return the observations of a record; none for a record that is no step of the run."""
        # Each record takes two places, as in a replay, because an entry with its result is a start and a finish.
        self._place += 1
        index, context = self.entries, [record]
        kind, name = record.get("kind"), record.get("id")
        if kind == "result":
            entry = record.get("entry")
            started = self._open.pop(entry, None) if isinstance(entry, str) else None
            if started is None:
                return []
            # Observe it together with its entry, since a result alone has neither action nor input.
            context, index = [started[0], record], started[1]
        elif kind == "entry":
            if not isinstance(name, str) or not name or name in self._known:
                return []
            self._begin(name, record)
        seen = list(session_observations(context))
        return [self._number(each, index) for each in (seen[-1:] if kind == "result" else seen)]

    def _begin(self, name: str, record: Record) -> None:
        self._known[name] = None
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]
        if not isinstance(record.get("status"), str):
            self._open[name] = (record, self.entries)
            if len(self._open) > _MAX_OPEN:
                del self._open[next(iter(self._open))]
        self.entries += 1

    def _number(self, seen: Observation, index: int) -> Observation:
        seen.seq = 2 * self._place + (seen.seq & 1)
        seen.index = None if seen.index is None else index
        return seen


def past_records(location: str, session: str) -> Iterator[Record]:
    """Yield the records of a session in a log or database; none if the session is not in it.

    Raises:
        CtxmgrError: it can't be read.
    """
    if is_log_name(location):
        for line in reader.read(location):
            if line.record.get("session") == session:
                yield line.record
        return
    store = open_store(location, readonly=True)
    try:
        key = store.sessions.key(session)
        if key is not None and store.sessions.name(key) == session:
            yield from store.sessions.records(key)
    finally:
        store.close()


class LiveMonitor:
    """A monitor of records that reports a loop again if it goes on.

    A detector raises a finding only once. If a workflow goes on with the same loop, for example because the advice did not
    help, it would never be stopped again. So the rounds of a loop are counted anew from where it was raised.
    """

    def __init__(self, settings: DetectSettings) -> None:
        self._monitor = Monitor(settings)
        self._stream = RecordStream()
        self._ongoing: dict[str, list[int]] = {}  # finding -> [results until its next check, number of rounds due then]

    def take(self, record: Record, *, repeat: bool) -> list[Finding]:
        """Observe a record. Return the findings that it raises, and with ``repeat`` also loops that go on."""
        raised = [found for seen in self._stream.take(record) for found in self._monitor.observe(seen)]
        if not repeat:
            return raised
        # Only actions can continue a loop, not the messages between its rounds.
        again = self._repeated_loops() if self._ongoing and record.get("kind") in ("entry", "result") else []
        for finding in (*raised, *again):
            if finding.severity == "loop":
                rounds = self.rounds(finding)
                self._ongoing[finding.id] = [rounds * max(1, finding.period), finding.count + rounds]
        return raised + again

    def rounds(self, finding: Finding) -> int:
        """Return the number of rounds that make a loop of this period."""
        settings = self._monitor.settings
        return settings.cycle_rounds if finding.period > 1 else settings.repeat_rounds

    def _repeated_loops(self) -> list[Finding]:
        due: list[str] = []
        for name, (left, _) in self._ongoing.items():
            self._ongoing[name][0] = left - 1
            if left <= 1:
                due.append(name)
        # Each request builds all findings anew, so ask only if a loop may be due.
        if not due:
            return []
        known = {finding.id: finding for finding in self._monitor.findings(live=True)}
        again: list[Finding] = []
        for name in due:
            finding = known.get(name)
            if finding is None or finding.resolved is not None:
                del self._ongoing[name]
            elif finding.count >= self._ongoing[name][1]:
                again.append(finding)
            else:
                # Messages and other work came between. Check again with the next call or result.
                self._ongoing[name][0] = 1
        return again

    def findings(self, now: float) -> list[Finding]:
        """Return every finding so far, with stalls as of ``now`` (seconds since 1970)."""
        return self._monitor.findings(now, live=True)


class StallAlarm:
    """Reports each stall of a history once."""

    def __init__(self, board: BlackboardHistory, on_hung: Callable[[HungError], object]) -> None:
        # A weak reference, so that the thread does not keep a history alive that its owner dropped without `end`.
        self._board = weakref.ref(board)
        self._on_hung = on_hung
        self._reported: str | None = None
        self._stopped = threading.Event()

    def tick(self, now: float | None = None) -> None:
        """Check once, as of ``now`` (seconds since 1970); an exception of ``on_hung`` is added to the history's failures."""
        board = self._board()
        if board is None:
            self._stopped.set()
            return
        try:
            try:
                board.check_stalls(now)
                # There was progress, so the next stall is a new one, even if it begins at the same call.
                self._reported = None
            except HungError as stall:
                finding = stall.finding
                name = finding.id if isinstance(finding, Finding) else ""
                if name != self._reported:
                    self._reported = name
                    self._on_hung(stall)
        except Exception as error:  # the thread has nobody to raise to
            board.failures.append(error)

    def start(self, every: float) -> None:
        """Check every ``every`` seconds, in a daemon thread, until `stop` or until the history is garbage-collected."""
        threading.Thread(target=self._run, args=(every,), name="ctxmgr-stall-alarm", daemon=True).start()

    def _run(self, every: float) -> None:
        while not self._stopped.wait(every):
            self.tick()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()


class Options(TypedDict, total=False):
    """The options of a `Recorder` besides its target."""

    session: str | None
    process: str | None
    workflow: str | None
    agent: str | None
    durability: Durability
    on_live: OnLive
    meta: dict[str, Any] | None
    episode: bool


class ObservedRecorder(Recorder):
    """A recorder with hooks. Records are completed before they are written, and shown to a listener afterwards.

    The listener sees what a reader of the log will find: plain JSON with secrets masked, instead of the agent's own objects,
    which may change later. A failed write is repeated once.

    Args:
        target: see `Recorder`.
        mask: mask secrets of known shapes.
        complete: called with each record before it is written; may add fields.
        written: called with each record after it was written.
        options: see `Recorder`.

    Attributes:
        lock: held while a record is written and shown.
        retries: number of writes that failed at first.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | Sink,
        *,
        mask: bool,
        complete: Listener,
        written: Listener,
        options: Options,
    ) -> None:
        self.lock = threading.RLock()
        self.retries = 0
        self._masks = mask
        self._complete = complete
        self._written = written
        super().__init__(target, mask=False, **options)  # `_complete_record` masks, so that the listener sees it masked too

    def _open_sink(self) -> Sink:
        return _HookedSink(super()._open_sink(), self)

    def write(self, sink: Sink, records: Sequence[Record]) -> None:
        """Write records to the sink and show them to the listener.

        Raises:
            InvalidInput: a record can't be stored as it is.
            StorageFailed, Busy: the write failed twice.
        """
        with self.lock:
            ready = [self._complete_record(record) for record in records]
            try:
                sink.append(ready)
            # Another process may have held the lock a moment too long. A lost record would leave a hole in the history.
            except (StorageFailed, Busy):
                self.retries += 1
                sink.append(ready)
            for record in ready:
                self._written(record)

    def _complete_record(self, record: Record) -> Record:
        # A copy, so that the agent's own dictionary stays unchanged.
        completed = dict(record)
        self._complete(completed)
        if not self._masks:
            return completed
        body = encode(completed)
        hidden = mask_secrets(body)
        return completed if hidden == body else decode(hidden)

    def leave_parent(self) -> None:
        """Become a process of its own in a forked child."""
        # A thread of the parent may have held the lock, and nobody in the child would ever release it.
        self.lock = threading.RLock()
        super().leave_parent()


class _HookedSink:
    """The sink of an `ObservedRecorder`. It passes records through the recorder's hooks to the real sink."""

    def __init__(self, sink: Sink, recorder: ObservedRecorder) -> None:
        self._sink = sink
        self._recorder = recorder

    def append(self, records: Sequence[Record]) -> None:
        self._recorder.write(self._sink, records)

    def close(self) -> None:
        self._sink.close()
