"""Watch a workflow while it runs: show each record that is written, judge it, and judge stalls against a clock."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import observations_of
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import Busy, HungError, StorageFailed
from ctxmgr.log import reader
from ctxmgr.log.codec import Record, decode, encode
from ctxmgr.log.journal import Durability
from ctxmgr.log.mask_prefilter import mask as mask_secrets
from ctxmgr.recorder import OnLive, Recorder, Sink
from ctxmgr.store import LOG_SUFFIXES, open_store
from ctxmgr.types.finding import Finding, Observation

if TYPE_CHECKING:
    from ctxmgr.history.live.blackboard import BlackboardHistory


_MOST_OPEN = 10_000
_MOST_KNOWN = 50_000

Listener = Callable[[Record], None]


class RecordStream:
    """Turns the records of one session into observations, in the order in which they are given.

    The same as `ctxmgr.detect.replay.observations_of` over the whole log, except that of a log in which more than 10,000
    entries are open at once the oldest are forgotten, and an entry that comes again after 50,000 others counts as new.

    Attributes:
        entries: how many entries there were so far.
    """

    def __init__(self) -> None:
        self.entries = 0
        self._place = 0
        self._open: dict[str, tuple[Record, int]] = {}
        self._known: dict[str, None] = {}

    def take(self, record: Record) -> list[Observation]:
        """Return what the record says happened; nothing for records that are no step of the run."""
        self._place += 1
        index, context = self.entries, [record]
        kind, name = record.get("kind"), record.get("id")
        if kind == "result":
            entry = record.get("entry")
            begun = self._open.pop(entry, None) if isinstance(entry, str) else None
            if begun is None:
                return []
            # The entry is told again with its result, since a result alone does not say what it answers.
            context, index = [begun[0], record], begun[1]
        elif kind == "entry":
            if not isinstance(name, str) or not name or name in self._known:
                return []
            self._begin(name, record)
        seen = list(observations_of(context))
        return [self._placed(each, index) for each in (seen[-1:] if kind == "result" else seen)]

    def _begin(self, name: str, record: Record) -> None:
        self._known[name] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if not isinstance(record.get("status"), str):
            self._open[name] = (record, self.entries)
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
        self.entries += 1

    def _placed(self, seen: Observation, index: int) -> Observation:
        seen.seq = 2 * self._place + (seen.seq & 1)
        seen.index = None if seen.index is None else index
        return seen


def past_records(location: str, session: str) -> Iterator[Record]:
    """Yield what a log or database holds of a session; nothing when it holds none.

    Raises:
        CtxmgrError: it can't be read.
    """
    if os.path.splitext(location)[1].lower() in LOG_SUFFIXES:
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
    """A monitor that can be shown records, and that speaks again of a loop that goes on all the same.

    A finding is raised once. A workflow that goes on with the same loop, for instance because the advice it got did not
    help, would then never be stopped again; so a loop counts anew from where it was raised.
    """

    def __init__(self, settings: DetectSettings) -> None:
        self._monitor = Monitor(settings)
        self._feed = RecordStream()
        self._standing: dict[str, list[int]] = {}  # finding -> [results until it is looked at again, rounds it then has]

    def take(self, record: Record, *, repeat: bool) -> list[Finding]:
        """Take a record; return the findings that it raises, with ``repeat`` those that go on too."""
        raised = [found for seen in self._feed.take(record) for found in self._monitor.observe(seen)]
        if not repeat:
            return raised
        again = self._go_on() if self._standing and record.get("kind") in ("entry", "result") else []
        for finding in (*raised, *again):
            if finding.severity == "loop":
                rounds = self.rounds(finding)
                self._standing[finding.id] = [rounds * max(1, finding.period), finding.count + rounds]
        return raised + again

    def rounds(self, finding: Finding) -> int:
        """Return how many rounds make a loop of this kind."""
        settings = self._monitor.settings
        return settings.cycle_rounds if finding.period > 1 else settings.repeat_rounds

    def _go_on(self) -> list[Finding]:
        due: list[str] = []
        for name, (left, _) in self._standing.items():
            self._standing[name][0] = left - 1
            if left <= 1:
                due.append(name)
        if not due:
            return []
        known = {finding.id: finding for finding in self._monitor.findings(live=True)}
        again: list[Finding] = []
        for name in due:
            finding = known.get(name)
            if finding is None or finding.resolved is not None:
                del self._standing[name]
            elif finding.count >= self._standing[name][1]:
                again.append(finding)
            else:
                self._standing[name][0] = 1
        return again

    def findings(self, now: float) -> list[Finding]:
        """Return every finding so far, with the stalls as of ``now``."""
        return self._monitor.findings(now, live=True)


class StallAlarm:
    """Tells of each stall of a history once."""

    def __init__(self, board: BlackboardHistory, on_hung: Callable[[HungError], object]) -> None:
        self._board = weakref.ref(board)
        self._on_hung = on_hung
        self._told: str | None = None
        self._stopped = threading.Event()

    def tick(self, now: float | None = None) -> None:
        """Look once; what ``on_hung`` raises is kept in the history's failures."""
        board = self._board()
        if board is None:
            self._stopped.set()
            return
        try:
            try:
                board.check_stalls(now)
                self._told = None
            except HungError as stall:
                finding = stall.finding
                name = finding.id if isinstance(finding, Finding) else ""
                if name != self._told:
                    self._told = name
                    self._on_hung(stall)
        except Exception as error:  # the thread has nobody to raise to
            board.failures.append(error)

    def start(self, every: float) -> None:
        """Look every so many seconds, in a daemon thread, until `stop` or until the history is gone."""
        threading.Thread(target=self._run, args=(every,), name="ctxmgr-stall-alarm", daemon=True).start()

    def _run(self, every: float) -> None:
        while not self._stopped.wait(every):
            self.tick()

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()


class Options(TypedDict, total=False):
    """What a `Recorder` takes besides its target; see there."""

    session: str | None
    process: str | None
    workflow: str | None
    agent: str | None
    durability: Durability
    on_live: OnLive
    meta: dict[str, Any] | None
    episode: bool


class ObservedRecorder(Recorder):
    """A recorder whose records are completed before, and shown after, they are written.

    What is shown is what a reader of the log will find: plain JSON with the secrets masked, not the agent's own objects,
    which may change later. A write that fails is tried once more.

    Args:
        target: see `Recorder`.
        mask: whether secrets of known shapes are masked.
        complete: may add fields to a record before it is written.
        written: is shown each record after that.
        options: see `Recorder`.

    Attributes:
        lock: held while a record is written and shown.
        retries: how many writes failed at first.
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
        super().__init__(target, mask=False, **options)  # masked here, where it is shown as well

    def _open_sink(self) -> Sink:
        return _Shown(super()._open_sink(), self)

    def write(self, sink: Sink, records: Sequence[Record]) -> None:
        """Write records to the sink and show them.

        Raises:
            InvalidInput: a record can't be stored as it is.
            StorageFailed, Busy: it could not be written, twice.
        """
        with self.lock:
            ready = [self._ready(record) for record in records]
            try:
                sink.append(ready)
            except (StorageFailed, Busy):
                self.retries += 1
                sink.append(ready)
            for record in ready:
                self._written(record)

    def _ready(self, record: Record) -> Record:
        completed = dict(record)
        self._complete(completed)
        if not self._masks:
            return completed
        body = encode(completed)
        hidden = mask_secrets(body)
        return completed if hidden == body else decode(hidden)

    def leave_parent(self) -> None:
        """Become a process of its own in a forked child."""
        self.lock = threading.RLock()
        super().leave_parent()


class _Shown:
    """The sink of a tape: the real one, with the tape in between."""

    def __init__(self, sink: Sink, tape: ObservedRecorder) -> None:
        self._sink = sink
        self._tape = tape

    def append(self, records: Sequence[Record]) -> None:
        self._tape.write(self._sink, records)

    def close(self) -> None:
        self._sink.close()
