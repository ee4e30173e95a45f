"""Find stalls: a call that outlives its limit, silence with nothing in flight, a log that ends inside a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from ctxmgr.detect import vocabulary
from ctxmgr.detect.normal import one_line
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import asked
from ctxmgr.detect.wording import duration, who
from ctxmgr.types.finding import Finding, Scope
from ctxmgr.types.observation import Observation
from ctxmgr.wire import fingerprint

State = Literal["new", "working", "done", "waiting", "paused", "ended"]
"""What the run is doing apart from calls in flight: ``done`` is a finished turn, ``waiting`` is waiting for a person."""

TURN_ENDS = frozenset({"message", "turn_end", "turnEnd", "agent_message", "result", "sessionEnd"})
WAITS = frozenset(
    {"waiting", "permission_request", "approval_request", "elicitation", "ask_user", "question", "input_required"}
)
PAUSES = frozenset({"interrupt", "pause", "paused"})
WORK_STARTS = frozenset({"user_message", "user_message_chunk", "nudge", "continuation", "resume"})
PROGRESS = frozenset({"progress"})

_SECONDS_KEYS = ("timeout_s", "timeout_seconds", "timeoutSeconds", "timeout_sec")
_MILLISECONDS_KEYS = ("timeoutMs", "timeout_ms", "timeoutMillis")
_SURELY_MILLISECONDS = 10_000
_MAX_DELEGATED = 64


@dataclass(slots=True)
class _Flow:
    """One agent in one process.

    Attributes:
        calls: ids of its current batch of calls.
        landed: whether anything came in since its last call, so that the next call begins a new batch and what the
            old one left open is left behind.
        over: whether it has spoken since its last call: it has gone on without what is still open.
    """

    calls: list[str]
    landed: bool = False
    over: bool = False


@dataclass(slots=True)
class _Open:
    """A call without a result, and whether other agents worked for it meanwhile."""

    start: Observation
    limit: float
    declared: bool
    flow: _Flow
    child_at: float | None = None
    child_seen: bool = False


@dataclass(slots=True)
class _Stall:
    """A finding in the making."""

    calls: list[_Open]
    why: str
    seconds: float | None
    limit: float | None
    last: tuple[str, int | None]
    ended: bool = False
    resolved: str | None = None


def declared_limit(start: Observation) -> float | None:
    """Return the limit in seconds that a call declares, in its record or within its input, or None.

    A bare ``timeout`` may be seconds or milliseconds: from 10,000 on it is taken as milliseconds, since a limit that
    is read too long only reports late, while one read too short would report a healthy call.
    """
    if start.timeout_ms is not None:
        return _positive(start.timeout_ms, 1000)
    if not isinstance(start.input, dict):
        return None
    fields = cast("dict[str, Any]", start.input)
    for keys, unit in ((_SECONDS_KEYS, 1), (_MILLISECONDS_KEYS, 1000)):
        for key in keys:
            if key in fields:
                return _positive(fields[key], unit)
    value = _positive(fields.get("timeout"), 1)
    return value / 1000 if value is not None and value >= _SURELY_MILLISECONDS else value


def _positive(value: object, unit: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        return None
    return value / unit


class StallWatch:
    """Follows what is in flight and what happened last; judges only when asked, against a time it is given.

    Progress is a new entry or a result (design ruling 9). Deltas and heartbeats are life, not progress. Silence is
    measured from the newest of the agents' latest times, so neither a clock that steps back nor a log whose parts were
    put together out of order makes silence longer than it was.
    """

    def __init__(self, session: str, settings: DetectSettings) -> None:
        self._session = session
        self._settings = settings
        self._open: dict[str, _Open] = {}
        self._flows: dict[str | None, dict[str | None, _Flow]] = {}
        self._latest: dict[tuple[str | None, str | None], float] = {}
        self._state: State = "new"
        self._last_id = ""
        self._progress: tuple[Observation, tuple[str, int | None]] | None = None
        self._past: list[_Stall] = []
        self._untimed = False
        self._delegated: dict[str, _Open] = {}
        self._begun = self._finished = 0

    @property
    def untimed(self) -> bool:
        """Whether entries without a usable time were seen, which switches judging against a clock off."""
        return self._untimed

    def begin(self, start: Observation) -> None:
        """An entry began."""
        flow = self._flow(start)
        if flow.landed:
            for left in flow.calls:
                self._drop(left)
            flow.calls.clear()
            flow.landed = flow.over = False
        limit = declared_limit(start)
        self._keep_parents_alive(start)
        call = _Open(start, limit or self._settings.call_seconds, limit is not None, flow)
        self._open[start.id] = call
        flow.calls.append(start.id)
        if vocabulary.delegates(start.action):
            self._delegated[start.id] = call
            if len(self._delegated) > _MAX_DELEGATED:
                del self._delegated[next(iter(self._delegated))]
        self._begun += 1
        self._moved(start)

    def end(self, finish: Observation) -> None:
        """An entry got its result."""
        self._flow(finish).landed = True
        self._keep_parents_alive(finish)
        call = self._drop(finish.id)
        self._finished += 1
        self._moved(finish)
        if finish.status == "interrupted":
            self._state = "paused"
        if vocabulary.finishes(finish.action) and finish.status == "ok" and not self._open:
            self._state = "done"
        if call is None or self._excused(call) or call.child_seen or call.flow.over:
            return
        began, ended = call.start.at, finish.at
        if began is None or ended is None or ended - began <= call.limit + self._settings.call_grace:
            return
        last = (finish.id, finish.index)
        self._past.append(_Stall([call], "late", ended - began, call.limit, last, resolved="progress"))

    def hear(self, event: Observation) -> None:
        """An event: only some kinds say what the run is doing."""
        kind = event.type or ""
        if event.id:
            self._last_id = event.id
        if kind in TURN_ENDS:
            for flow in self._flows_of(event):
                flow.landed = flow.over = True
            self._state = "done"
        elif kind in WAITS:
            self._state = "waiting"
        elif kind in PAUSES:
            self._state = "paused"
        elif kind in WORK_STARTS or kind in PROGRESS:
            if kind in ("user_message", "user_message_chunk"):
                self.leave_open()
            self._state = "working"
            self._timed(event)

    def close(self) -> None:
        """A process ended its session."""
        self._state = "ended"

    def judge(self, now: float | None) -> list[Finding]:
        """Return all stalls: past ones, and what stalls as of ``now`` (None: the log is all there will ever be)."""
        stalls = list(self._past)
        if now is None:
            stalls += self._torn()
        elif not self._untimed:
            stalls += self._standing(now)
        return [self._finding(stall) for stall in stalls]

    def _standing(self, now: float) -> list[_Stall]:
        if self._state in ("paused", "waiting", "ended"):
            return []
        flying = self._flying()
        overdue = [call for call in flying if now - self._clock(call) > call.limit + self._settings.call_grace]
        if overdue:
            first = min(overdue, key=self._clock)
            return [_Stall(overdue, "overdue", now - self._clock(first), first.limit, self._last())]
        if self._state != "working" or not self._latest:
            return []
        if any(self._excused(call) and not call.flow.over for call in self._open.values()):
            return []
        if any(not call.child_seen for call in flying):
            return []
        silent = max(0.0, now - max(self._latest.values()))
        if silent <= self._settings.stall_seconds:
            return []
        return [_Stall(flying, "silent", silent, self._settings.stall_seconds, self._last())]

    def _torn(self) -> list[_Stall]:
        """Calls the log ends in: nothing of their agent came after them, no person spoke, no newer process took over."""
        if self._state in ("paused", "waiting", "ended"):
            return []
        calls = self._flying()
        return [_Stall(calls, "torn", None, None, self._last(), ended=True)] if calls else []

    def _flying(self) -> list[_Open]:
        """Return the calls that their agent still waits for; none when the log does not seem to record results."""
        calls = [call for call in self._open.values() if not call.flow.over and not self._excused(call)]
        if not self._finished and self._begun > 1:
            steps = {call.start.step for call in calls}
            if None in steps or len(steps) > 1:
                return []
        return calls

    def leave_open(self) -> None:
        """A person spoke or a later process took over: what is still open will get no result."""
        self._open.clear()
        self._delegated.clear()

    def _drop(self, entry: str) -> _Open | None:
        self._delegated.pop(entry, None)
        return self._open.pop(entry, None)

    def _clock(self, call: _Open) -> float:
        began = call.start.at or 0.0
        return began if call.child_at is None else max(began, call.child_at)

    @staticmethod
    def _excused(call: _Open) -> bool:
        return vocabulary.asks_human(call.start.action)

    def _keep_parents_alive(self, observation: Observation) -> None:
        """Progress of a child is progress of the call that waits for it."""
        parents = [call for call in self._delegated.values() if call.start.agent != observation.agent]
        if observation.parent is not None and observation.parent in self._open:
            parents.append(self._open[observation.parent])
        for call in parents:
            call.child_seen = True
            if observation.at is not None:
                call.child_at = max(observation.at, call.child_at or observation.at)

    def _flows_of(self, event: Observation) -> list[_Flow]:
        if event.agent is None:
            return [flow for own in self._flows.values() for flow in own.values()]
        return list(self._flows.get(event.agent, {}).values())

    def _flow(self, observation: Observation) -> _Flow:
        own = self._flows.setdefault(observation.agent, {})
        flow = own.get(observation.process)
        if flow is None:
            flow = own[observation.process] = _Flow([])
        return flow

    def _moved(self, observation: Observation) -> None:
        self._state = "working"
        self._last_id = observation.id
        self._progress = (observation, (observation.id, observation.index))
        self._timed(observation)

    def _timed(self, observation: Observation) -> None:
        if observation.at is None:
            self._untimed = True
        else:
            self._latest[(observation.agent, observation.process)] = observation.at

    def _last(self) -> tuple[str, int | None]:
        if self._progress is not None and (not self._last_id or self._last_id == self._progress[1][0]):
            return self._progress[1]
        return (self._last_id, None)

    def _finding(self, stall: _Stall) -> Finding:
        progress, place = self._progress if self._progress is not None else (None, ("", None))
        first = stall.calls[0].start if stall.calls else progress
        agent = None if first is None else first.agent
        process = None if first is None else first.process
        named = [call.start for call in stall.calls]
        identity = fingerprint([agent, "hung", stall.why, [[call.action, call.input] for call in named]])
        anchor = (first.id, first.index) if first is not None else stall.last
        indexes: dict[str, Any] = {
            "first": anchor[1],
            "last": anchor[1] if not named else named[-1].index,
            "raisedAt": stall.last[1],
            "lastProgress": place[1],
            "members": [call.index for call in named],
        }
        evidence: dict[str, Any] = {
            "identity": identity,
            "indexes": indexes,
            "stalledSeconds": None if stall.seconds is None else round(stall.seconds, 3),
            "limitSeconds": stall.limit,
            "ended": stall.ended,
            "openCalls": [
                {
                    "id": call.start.id,
                    "action": call.start.action,
                    "input": call.start.input,
                    "limitSeconds": call.limit,
                }
                for call in stall.calls
            ],
        }
        return Finding(
            id=fingerprint([self._session, "hung", agent, process, anchor[0], stall.why]),
            kind="hung",
            severity="hung",
            period=0,
            count=1,
            first=anchor[0],
            last=named[-1].id if named else anchor[0],
            raised_at=stall.last[0],
            resolved=stall.resolved,
            members=[call.id for call in named],
            last_progress=place[0] or None,
            scope=Scope(agent=agent, process=process),
            confidence=0.8 if stall.ended else 0.9,
            reason=_reason(stall, agent, progress),
            evidence=evidence,
        )


def _reason(stall: _Stall, agent: str | None, progress: Observation | None) -> str:
    name = who(agent)
    if stall.calls:
        call = stall.calls[0]
        what = asked(call.start)
        more = f" and {len(stall.calls) - 1} more" if len(stall.calls) > 1 else ""
        if stall.ended:
            return f"the log ends inside {what}{more} by {name}: no result was recorded"
        limit = f"its {'declared ' if call.declared else ''}limit of {duration(call.limit)}"
        took = duration(stall.seconds or 0)
        if stall.resolved:
            return f"{name} waited {took} for {what}, beyond {limit}; then the result came"
        if stall.why == "overdue":
            return f"{name} has waited {took} for {what}{more}, beyond {limit}"
    after = ""
    if progress is not None:
        verb = "finished" if progress.kind == "finish" else "started"
        after = f" since {who(progress.agent)} {verb} {one_line(asked(progress), 120)}"
    return f"nothing has happened for {duration(stall.seconds or 0)}{after}, and nothing is in flight"
