"""The shared history of a running workflow: capture events, record actions, stop loops."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import CtxmgrError, DegenerateLoopError, HungError, InvalidInput
from ctxmgr.history.live.bus import ActionFinished, ActionStarted, EventBus, Subscription, described
from ctxmgr.history.live.monitor import LiveMonitor, ObservedRecorder, Options, StallAlarm, past_records
from ctxmgr.log.codec import Record
from ctxmgr.log.json_value import unstored
from ctxmgr.paths import is_url
from ctxmgr.recorder import Context, Details, KeepOriginalError, Outcome, Sink, Status, Step, is_interruption
from ctxmgr.types.finding import Finding

OnLoop = Literal["raise", "report"] | Callable[[Finding], object]

_KEPT = 100


class _Here(threading.local):
    """What belongs to the thread that records: the number of the event at hand, and the loops its records closed."""

    seq: int | None = None

    def __init__(self) -> None:
        self.found: list[Finding] = []


class BlackboardHistory:
    """Records one workflow while it runs and watches it for loops and stalls.

    It is subscribed from the moment it is made until `end`, which its ``with`` block calls also when the workflow raises.
    Whatever is published meanwhile is recorded with its number; what could not be recorded with its content is counted in
    `lost`, which is stored with the end of the session and must read 0. What a `Recorder` promises holds. Safe to share
    between threads; a forked child goes on as a process of its own.

    A session that exists already is shown to the detectors first, so that they know what went before.

    Args:
        bus: to subscribe to; None when everything is recorded by calls.
        target: path of a ``.jsonl`` log or of a database, or any `Sink`.
        on_loop: ``raise`` a `DegenerateLoopError` to whoever recorded the third identical iteration, and again after every
            further three; or ``report`` it (see `findings`); or call this with the finding, and let out what it raises.
        settings: thresholds of the detectors, as an object or a table.
        clock: returns seconds since 1970; what stalls are judged against.
        watch_every: look for stalls every so many seconds, in a thread of its own.
        on_hung: hears of every stall that `tick` sees, once; needed with ``watch_every``.
        mask: whether secrets of known shapes are masked before they are written.
        options: ``session``, ``process``, ``workflow``, ``agent``, ``durability``, ``on_live``, ``meta``, ``episode``: see
            `Recorder`.

    Attributes:
        location: path of the target, None when it is a `Sink`.
        failures: the latest errors that were kept from the workflow: of writes, of the detectors, of ``on_hung``.

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
        self.failures: deque[Exception] = deque(maxlen=_KEPT)
        self._guard = LiveMonitor(
            settings if isinstance(settings, DetectSettings) else DetectSettings.from_table(settings or {})
        )
        self._on_loop: OnLoop = on_loop
        self._clock = clock
        self._here = _Here()
        self._actions: dict[str, str] = {}
        self._answered: dict[str, int] = {}  # finding -> its rounds when a continuation was given
        self._captured = self._lost = 0
        self._subscription: Subscription | None = None
        self._open = False
        self._early: list[Record] = []
        known = self.location is not None and options.get("session") is not None
        known = known and (is_url(str(self.location)) or os.path.exists(str(self.location)))
        self._tape = ObservedRecorder(target, mask=mask, complete=self._complete, written=self._written, options=options)
        self._open = True
        if not known or self._tape.session != options.get("session") or not self._remember(str(self.location)):
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
        return self._tape.session

    @property
    def process(self) -> str:
        """The id of this execution."""
        return self._tape.process

    @property
    def published(self) -> int:
        """How many events were published while this was subscribed, by the count of the bus."""
        return 0 if self._subscription is None else self._subscription.published

    @property
    def captured(self) -> int:
        """How many of them are recorded."""
        return self._captured

    @property
    def lost(self) -> int:
        """How many of them could not be recorded, or not with all of their content. Must read 0."""
        return self._lost

    @property
    def retries(self) -> int:
        """How many writes failed at first and were tried again."""
        return self._tape.retries

    def entry(self, agent: str | None, action: str, input: object = None, **about: Unpack[Context]) -> str:  # noqa: A002
        """Record that an action begins; see `Recorder.entry`.

        Raises:
            DegenerateLoopError: it closes a loop; it is recorded all the same.
        """
        entry = self._tape.entry(agent, action, input, **about)
        self.answer()
        return entry

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
        """Record what completed an entry; see `Recorder.result`.

        Raises:
            DegenerateLoopError: it closes a loop; it is recorded all the same.
        """
        self._tape.result(entry, status, output=output, error=error, duration_ms=duration_ms, usage=usage)
        self.answer(error if isinstance(error, BaseException) else None)

    def event(self, type: str, data: object = None, *, entry: str | None = None, agent: str | None = None) -> str:  # noqa: A002
        """Record a message, a thought, an interrupt or anything else that is said; see `Recorder.event`.

        Raises:
            DegenerateLoopError: it closes a loop; it is recorded all the same.
        """
        event = self._tape.event(type, data, entry=entry, agent=agent)
        self.answer()
        return event

    def action(self, agent: str | None, name: str, **details: Unpack[Details]) -> Step:
        """Return a context manager that records an action; see `Recorder.action`.

        On leaving it raises a `DegenerateLoopError` when the action closes a loop, also in place of the action's own
        exception, which is then its cause.
        """
        return GuardedStep(self, self._tape, agent, name, details)

    def receive(self, event: object, seq: int) -> None:
        """Record what was published: an `Event`, an action's start or end, or any other object (see `published.described`).

        Raises:
            CtxmgrError: it could not be recorded, or not with its content, and counts as lost.
            DegenerateLoopError: it closes a loop.
        """
        self._here.seq = seq
        before = unstored()
        try:
            self._record(event)
            if unstored() != before:
                raise InvalidInput(
                    f"event {seq} holds an object whose content can't be read: its class stands in its place",
                    "publish text, numbers, lists, objects with fields",
                )
        except Exception as error:
            with self._tape.lock:
                self._lost += 1
            self.failures.append(error)
            self.answer()  # a loop that it closes goes first
            raise
        finally:
            self._here.seq = None
        with self._tape.lock:
            self._captured += 1
        self.answer()

    def _record(self, event: object) -> None:
        if isinstance(event, ActionStarted):
            parent = None if event.parent is None else self._actions.get(event.parent, event.parent)
            self._actions[event.id] = self._tape.entry(
                event.agent, event.action, event.input, input_type=event.input_type, turn=event.turn, step=event.step,
                parent=parent, task=event.task, timeout_ms=event.timeout_ms, meta=event.meta,
            )  # fmt: skip
        elif isinstance(event, ActionFinished):
            entry = self._actions.pop(event.id, event.id)
            self._tape.result(
                entry, event.status, output=event.output, error=event.error, duration_ms=event.duration_ms, usage=event.usage
            )
        else:
            told = described(event)
            entry = None if told.entry is None else self._actions.get(told.entry, told.entry)
            self._tape.event(told.type, told.data, entry=entry, agent=told.agent)

    def _complete(self, record: Record) -> None:
        """Add what only a running history knows: an event's number, and at the end how many were lost."""
        if self._here.seq is not None:
            record["seq"] = self._here.seq
            record.setdefault("process", self.process)  # numbers begin anew with every process
        if record["kind"] == "sessionEnd" and self._subscription is not None:
            published = self.published
            record["capture"] = {"published": published, "captured": self._captured, "lost": published - self._captured}

    def _written(self, record: Record) -> None:
        if self._open:
            self.follow(record)
        else:  # the session's own beginning, which belongs behind what is there already
            self._early.append(record)

    def follow(self, record: Record) -> None:
        """Show the detectors a record that was written to this session: by this history, or by a recovery beside it."""
        with self._tape.lock:
            try:
                self._here.found += self._guard.take(record, repeat=self._on_loop != "report")
                if record.get("kind") == "continuation":
                    self._excuse_standing()
            except Exception as error:  # a fault in a detector must cost neither the record nor the workflow
                self.failures.append(error)

    def _excuse_standing(self) -> None:
        self._answered |= {finding.id: finding.count for finding in self._guard.findings(self._clock())}

    def _remember(self, location: str) -> bool:
        """Show the detectors the session so far, with the beginning of this process; return whether it could be read."""
        try:
            self._catch_up(past_records(location, self.session))
            self._excuse_standing()  # they were an earlier process's
        except CtxmgrError as error:  # what can't be read back is no reason not to record what comes
            self.failures.append(error)
            return False
        return True

    def _catch_up(self, records: Iterable[Record]) -> None:
        for record in records:
            self._guard.take(record, repeat=False)

    def answer(self, cause: BaseException | None = None) -> None:
        """Let out what this thread's records have raised, in the way that was asked for.

        An interruption, and a loop error of an action inside this one, are on their way already: they go first.

        Raises:
            DegenerateLoopError: for the first loop, when loops are to be raised.
        """
        loops = [finding for finding in self._here.found if finding.severity == "loop"]
        self._here.found.clear()
        goes_first = cause is not None and (is_interruption(cause) or isinstance(cause, DegenerateLoopError))
        if not loops or goes_first or self._on_loop == "report":
            return
        if self._on_loop == "raise":
            raise DegenerateLoopError(f"session {self.session!r}: {loops[0].reason}", loops[0]) from cause
        for finding in loops:
            self._on_loop(finding)

    def findings(self, now: float | None = None) -> list[Finding]:
        """Return every finding so far, resolved ones too, as of ``now`` (seconds since 1970; by default the clock)."""
        with self._tape.lock:
            return self._guard.findings(self._clock() if now is None else now)

    def check(self, now: float | None = None) -> None:
        """Return when the workflow makes progress as of ``now`` (seconds since 1970; by default the clock).

        A loop that was answered by a continuation is given as many rounds again before it counts.

        Raises:
            DegenerateLoopError: it goes in circles; ``finding`` holds the pattern.
            HungError: it stands still beyond its limit; ``finding`` holds the last action and the silence.
        """
        standing = self.findings(now)
        for finding in standing:
            if finding.severity == "loop" and finding.resolved is None and self._is_due(finding):
                raise DegenerateLoopError(f"session {self.session!r}: {finding.reason}", finding)
        self.check_stalls(now, standing)

    def check_stalls(self, now: float | None = None, standing: list[Finding] | None = None) -> None:
        """Return when nothing stands still; else as `check`.

        Raises:
            HungError: something does.
        """
        for finding in self.findings(now) if standing is None else standing:
            if finding.severity == "hung" and finding.resolved is None:
                raise HungError(f"session {self.session!r}: {finding.reason}", finding)

    def _is_due(self, finding: Finding) -> bool:
        answered = self._answered.get(finding.id)
        return answered is None or finding.count >= answered + self._guard.rounds(finding)

    def tick(self, now: float | None = None) -> None:
        """Look for stalls once and tell ``on_hung`` of a new one; what the thread of ``watch_every`` does each time."""
        if self._alarm is not None and self._open:
            self._alarm.tick(now)

    def end(self, outcome: Outcome = "completed") -> None:
        """Unsubscribe, record how the workflow ended and how many events were lost, and close; again does nothing."""
        if self._subscription is not None:
            self._subscription.close()
        if self._alarm is not None:
            self._alarm.stop()
        try:
            self._tape.end(outcome)
        finally:
            self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        outcome: Outcome = "completed" if error is None else "cancelled" if is_interruption(error) else "failed"
        with KeepOriginalError(error):
            self.end(outcome)


class GuardedStep(Step):
    """An action of a `BlackboardHistory` while it happens."""

    def __init__(
        self, board: BlackboardHistory, tape: ObservedRecorder, agent: str | None, name: str, details: Details
    ) -> None:
        super().__init__(tape, agent, name, details)
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
