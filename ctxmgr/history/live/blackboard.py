"""The shared history of a running workflow. It captures events, records actions and stops loops."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from ctxmgr.base.paths import is_url
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import CtxmgrError, DegenerateLoopError, HungError, InvalidInput
from ctxmgr.history.live.bus import ActionFinished, ActionStarted, EventBus, Subscription, describe
from ctxmgr.history.live.monitor import LiveMonitor, ObservedRecorder, Options, StallAlarm, past_records
from ctxmgr.log.codec import Record
from ctxmgr.log.json_value import count_unstored
from ctxmgr.recorder import Context, Details, KeepOriginalError, Outcome, Sink, Status, Step, is_interruption
from ctxmgr.types.finding import Finding

OnLoop = Literal["raise", "report"] | Callable[[Finding], object]

_MAX_FAILURES = 100  # latest errors that are kept


class _ThreadState(threading.local):
    """State of the recording thread: the number of the event being received, and the findings raised by its records.

    It is kept per thread, so that a loop error is raised in the thread that closed the loop.
    """

    seq: int | None = None

    def __init__(self) -> None:
        self.found: list[Finding] = []


class BlackboardHistory:
    """Records one workflow while it runs, and watches it for loops and stalls.

    It is subscribed from its creation until `end`, which its ``with`` block calls even if the workflow raises. Every event
    published meanwhile is recorded with its number. An event that could not be recorded completely is counted in `lost`,
    which is stored with the end of the session and must read 0. The promises of `Recorder` hold. It may be shared between
    threads; a forked child continues as a process of its own.

    If the session exists already, the detectors first see its records.

    Args:
        bus: the bus to subscribe to; None if everything is recorded by calls.
        target: path of a ``.jsonl`` log or of a database, or any `Sink`.
        on_loop: ``raise`` a `DegenerateLoopError` to the caller that recorded the third identical iteration, and again after
            every further three; or ``report`` it (see `findings`); or a function to call with the finding, whose exceptions
            are passed on.
        settings: thresholds of the detectors, as an object or a table.
        clock: returns the current time in seconds since 1970, to judge stalls.
        watch_every: seconds between two checks for stalls, in a separate thread.
        on_hung: called once for every stall that `tick` finds; required with ``watch_every``.
        mask: mask secrets of known shapes before they are written.
        options: ``session``, ``process``, ``workflow``, ``agent``, ``durability``, ``on_live``, ``meta``, ``episode``: see
            `Recorder`.

    Attributes:
        location: path of the target; None for a `Sink`.
        failures: the latest errors that were not raised to the workflow: of writes, of the detectors, of ``on_hung``.

    Raises:
        InvalidInput, Busy, StorageFailed: as `Recorder`; or a setting is wrong.
    """

    def __init__(
        self,
        bus: EventBus | None,
        target: str | os.PathLike[str] | Sink,
        *,
        on_loop: OnLoop = "raise",
        settings: DetectSettings | Mapping[str, object] | None = None,
        clock: Callable[[], float] = time.time,
        watch_every: float | None = None,
        on_hung: Callable[[HungError], object] | None = None,
        mask: bool = True,
        **options: Unpack[Options],
    ) -> None:
        if watch_every is not None and (on_hung is None or not watch_every > 0):
            raise InvalidInput("watch_every needs a time above 0 and on_hung", "pass a function that hears of stalls")
        self.location = _location(target) if isinstance(target, (str, os.PathLike)) else None
        self.failures: deque[Exception] = deque(maxlen=_MAX_FAILURES)
        self._monitor = LiveMonitor(
            settings if isinstance(settings, DetectSettings) else DetectSettings.from_table(settings or {})
        )
        self._on_loop: OnLoop = on_loop
        self._clock = clock
        self._thread = _ThreadState()
        self._actions: dict[str, str] = {}
        self._answered: dict[str, int] = {}  # finding -> number of its rounds when a continuation was given
        self._captured = self._lost = 0
        self._subscription: Subscription | None = None
        self._open = False
        self._early: list[Record] = []
        known = self.location is not None and options.get("session") is not None
        known = known and (is_url(str(self.location)) or os.path.exists(str(self.location)))
        self._recorder = ObservedRecorder(
            target, mask=mask, complete=self._complete, written=self._handle_record, options=options
        )
        self._open = True
        if not known or self._recorder.session != options.get("session") or not self._remember(str(self.location)):
            self._catch_up(self._early)
        self._early = []
        self._alarm = StallAlarm(self, on_hung) if on_hung is not None else None
        if bus is not None:
            self._subscription = bus.subscribe(self)
        if watch_every is not None and self._alarm is not None:
            self._alarm.start(watch_every)

    @property
    def session(self) -> str:
        """The id of the session."""
        return self._recorder.session

    @property
    def process(self) -> str:
        """The id of this execution."""
        return self._recorder.process

    @property
    def published(self) -> int:
        """Number of events that were published while this was subscribed, as counted by the bus."""
        return 0 if self._subscription is None else self._subscription.published

    @property
    def captured(self) -> int:
        """Number of published events that are recorded."""
        return self._captured

    @property
    def lost(self) -> int:
        """Number of published events that could not be recorded completely. Must read 0."""
        return self._lost

    @property
    def retries(self) -> int:
        """Number of writes that failed and were repeated."""
        return self._recorder.retries

    def entry(self, agent: str | None, action: str, input: object = None, **about: Unpack[Context]) -> str:  # noqa: A002
        """Record that an action begins; see `Recorder.entry`.

        Raises:
            DegenerateLoopError: it closes a loop. It is recorded nevertheless.
        """
        entry = self._recorder.entry(agent, action, input, **about)
        self.answer()
        return entry

    def register_entry(self, entry: str) -> None:
        """Let `result` be called for an entry of another process; see `Recorder.register_entry`."""
        self._recorder.register_entry(entry)

    def result(
        self,
        entry: str,
        status: Status = "ok",
        *,
        output: object = None,
        error: BaseException | dict[str, Any] | str | None = None,
        duration_ms: float | None = None,
        usage: dict[str, Any] | None = None,
    ) -> None:
        """Record the result of an entry; see `Recorder.result`.

        Raises:
            DegenerateLoopError: it closes a loop. It is recorded nevertheless.
        """
        self._recorder.result(entry, status, output=output, error=error, duration_ms=duration_ms, usage=usage)
        self.answer(error if isinstance(error, BaseException) else None)

    def event(self, type: str, data: object = None, *, entry: str | None = None, agent: str | None = None) -> str:  # noqa: A002
        """Record a message, a thought, an interrupt or any other event; see `Recorder.event`.

        Raises:
            DegenerateLoopError: it closes a loop. It is recorded nevertheless.
        """
        event = self._recorder.event(type, data, entry=entry, agent=agent)
        self.answer()
        return event

    def action(self, agent: str | None, name: str, **details: Unpack[Details]) -> Step:
        """Return a context manager that records an action; see `Recorder.action`.

        On exit it raises a `DegenerateLoopError` if the action closes a loop. That error also replaces an exception of the
        action, which becomes its cause.
        """
        return GuardedStep(self, self._recorder, agent, name, details)

    def receive(self, event: object, seq: int) -> None:
        """Record a published event: an `Event`, an action's start or end, or any other object (see `describe`).

        Raises:
            InvalidInput: it holds what can't be read, so that its class stands in its place; it counts as lost.
            CtxmgrError: it could not be recorded, and counts as lost.
            DegenerateLoopError: it closes a loop.
        """
        self._thread.seq = seq
        before = count_unstored()
        try:
            self._record(event)
            if count_unstored() != before:
                raise InvalidInput(
                    f"event {seq} holds an object whose content can't be read: its class stands in its place",
                    "publish text, numbers, lists, objects with fields",
                )
        except Exception as error:
            with self._recorder.lock:
                self._lost += 1
            self.failures.append(error)
            self.answer()  # if it closes a loop, that error takes precedence
            raise
        finally:
            self._thread.seq = None
        with self._recorder.lock:
            self._captured += 1
        self.answer()

    def _record(self, event: object) -> None:
        if isinstance(event, ActionStarted):
            parent = None if event.parent is None else self._actions.get(event.parent, event.parent)
            # The publisher's ids are its own, and two runs may both count from 1. So the history gives entries other ids.
            self._actions[event.id] = self._recorder.entry(
                event.agent, event.action, event.input, input_type=event.input_type, turn=event.turn, step=event.step,
                parent=parent, task=event.task, timeout_ms=event.timeout_ms, meta=event.meta,
            )  # fmt: skip
        elif isinstance(event, ActionFinished):
            entry = self._actions.pop(event.id, event.id)
            # Whatever is published is recorded, also the end of an action that began before this was subscribed.
            self._recorder.register_entry(entry)
            self._recorder.result(
                entry, event.status, output=event.output, error=event.error, duration_ms=event.duration_ms, usage=event.usage
            )
        else:
            described_event = describe(event)
            entry = None if described_event.entry is None else self._actions.get(described_event.entry, described_event.entry)
            self._recorder.event(described_event.type, described_event.data, entry=entry, agent=described_event.agent)

    def _complete(self, record: Record) -> None:
        """Add the fields that only a running history knows: an event's number and, at the end, the number of lost events."""
        if self._thread.seq is not None:
            record["seq"] = self._thread.seq
            record.setdefault("process", self.process)  # numbers restart with every process
        if record["kind"] == "sessionEnd" and self._subscription is not None:
            published = self.published
            record["capture"] = {"published": published, "captured": self._captured, "lost": published - self._captured}

    def _handle_record(self, record: Record) -> None:
        if self._open:
            self.follow(record)
        else:  # the recorder's own first record: the detectors see it after the existing records
            self._early.append(record)

    def follow(self, record: Record) -> None:
        """Show the detectors a record that this history, or a recovery of it, wrote to this session."""
        with self._recorder.lock:
            try:
                self._thread.found += self._monitor.take(record, repeat=self._on_loop != "report")
                if record.get("kind") == "continuation":
                    self._excuse_standing()
            except Exception as error:  # a fault in a detector must not cost the record or the workflow
                self.failures.append(error)

    def _excuse_standing(self) -> None:
        self._answered |= {finding.id: finding.count for finding in self._monitor.findings(self._clock())}

    def _remember(self, location: str) -> bool:
        """Show the detectors the whole session so far. Return whether it could be read."""
        try:
            self._catch_up(past_records(location, self.session))
            self._excuse_standing()  # loops of an earlier process stop this one only if it continues them
        except CtxmgrError as error:  # unreadable records are no reason not to record new ones
            self.failures.append(error)
            return False
        return True

    def _catch_up(self, records: Iterable[Record]) -> None:
        for record in records:
            self._monitor.take(record, repeat=False)

    def answer(self, cause: BaseException | None = None) -> None:
        """Report the loops that this thread's records have closed, as ``on_loop`` says.

        If an interruption, or a loop error of a nested action, is already being raised, it takes precedence.

        Raises:
            DegenerateLoopError: for the first loop, if loops are to be raised.
        """
        loops = [finding for finding in self._thread.found if finding.severity == "loop"]
        self._thread.found.clear()
        goes_first = cause is not None and (is_interruption(cause) or isinstance(cause, DegenerateLoopError))
        if not loops or goes_first or self._on_loop == "report":
            return
        if self._on_loop == "raise":
            raise DegenerateLoopError(f"session {self.session!r}: {loops[0].reason}", loops[0]) from cause
        for finding in loops:
            self._on_loop(finding)

    def findings(self, now: float | None = None) -> list[Finding]:
        """Return every finding so far, including resolved ones, as of ``now`` (seconds since 1970; by default the clock)."""
        with self._recorder.lock:
            return self._monitor.findings(self._clock() if now is None else now)

    def check(self, now: float | None = None) -> None:
        """Check that the workflow makes progress as of ``now`` (seconds since 1970; by default the clock's time).

        A loop that was answered by a continuation counts again only after as many further rounds.

        Raises:
            DegenerateLoopError: it loops; ``finding`` has the pattern.
            HungError: it has made no progress within its limit; ``finding`` has the last action and the time since.
        """
        standing = self.findings(now)
        for finding in standing:
            if finding.severity == "loop" and finding.resolved is None and self._is_due(finding):
                raise DegenerateLoopError(f"session {self.session!r}: {finding.reason}", finding)
        self.check_stalls(now, standing)

    def check_stalls(self, now: float | None = None, standing: list[Finding] | None = None) -> None:
        """Check that nothing is hung; see `check`.

        Raises:
            HungError: a call or the workflow is hung.
        """
        for finding in self.findings(now) if standing is None else standing:
            if finding.severity == "hung" and finding.resolved is None:
                raise HungError(f"session {self.session!r}: {finding.reason}", finding)

    def _is_due(self, finding: Finding) -> bool:
        answered = self._answered.get(finding.id)
        return answered is None or finding.count >= answered + self._monitor.rounds(finding)

    def tick(self, now: float | None = None) -> None:
        """Check once for stalls as of ``now`` (seconds since 1970), and call ``on_hung`` for a new one.

        The thread of ``watch_every`` calls this.
        """
        if self._alarm is not None and self._open:
            self._alarm.tick(now)

    def end(self, outcome: Outcome = "completed") -> None:
        """Unsubscribe, record the outcome and the number of lost events, and close. A second call does nothing."""
        if self._subscription is not None:
            self._subscription.close()
        if self._alarm is not None:
            self._alarm.stop()
        try:
            self._recorder.end(outcome)
        finally:
            self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        outcome: Outcome = "completed" if error is None else "cancelled" if is_interruption(error) else "failed"
        with KeepOriginalError(error):
            self.end(outcome)


class GuardedStep(Step):
    """An action in progress of a `BlackboardHistory`."""

    def __init__(
        self, board: BlackboardHistory, recorder: ObservedRecorder, agent: str | None, name: str, details: Details
    ) -> None:
        super().__init__(recorder, agent, name, details)
        self._board = board

    def __enter__(self) -> Step:
        super().__enter__()
        try:
            self._board.answer()
        except BaseException as stop:
            super().__exit__(type(stop), stop, stop.__traceback__)
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        self._board.answer(error)


def _location(target: str | os.PathLike[str]) -> str:
    name = os.fspath(target)
    return name if "://" in name else os.path.abspath(name)
