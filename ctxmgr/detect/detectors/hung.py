"""Detect stalls (a call beyond its limit, silence, a log that ends inside a call), and track calls in flight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.detect.agent_state import AgentScope
from ctxmgr.detect.finding_lifecycle import OpenFinding
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, agent_phrase, call_text, duration
from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.comparison import event_text, is_farewell
from ctxmgr.detect.text.fingerprints import one_line
from ctxmgr.detect.text.vocabulary import delegates
from ctxmgr.log.codec import fingerprint
from ctxmgr.log.fast_json import json_object
from ctxmgr.types.finding import Finding, Observation, Progress, Scope, Severity
from ctxmgr.types.plain_records import MAX_TIMEOUT_MS

_SECONDS_KEYS = ("timeout_s", "timeout_seconds", "timeoutSeconds", "timeout_sec")
_MILLISECONDS_KEYS = ("timeoutMs", "timeout_ms", "timeoutMillis")
_LIMIT_KEYS = frozenset({*_SECONDS_KEYS, *_MILLISECONDS_KEYS, "timeout"})
_SURELY_MILLISECONDS = 10_000
"""Value from which a bare ``timeout`` is in milliseconds. As seconds it would be nearly three hours."""


@dataclass(slots=True)
class Flow:
    """One agent in one process.

    Attributes:
        calls: ids of its current batch of calls.
        landed: a result came since its last call, so its next call begins a new batch and drops the old open calls.
        over: it has spoken since its last call, so it no longer waits for open calls.
        latest: its latest time in seconds since 1970; None without times.
    """

    calls: list[str]
    landed: bool = False
    over: bool = False
    latest: float | None = None


@dataclass(slots=True)
class OpenCall:
    """A call without a result, and whether other agents worked for it meanwhile."""

    start: Observation
    limit: float
    declared: bool
    flow: Flow
    child_at: float | None = None
    child_seen: bool = False
    alive: bool = False


@dataclass(slots=True)
class Stall:
    """A stall, before it becomes a finding.

    Attributes:
        calls: the calls it is about; empty if nothing is in flight.
        why: ``overdue``, ``late`` (the result came after the limit), ``silent`` or ``torn`` (the log ends there).
        seconds: its duration; None without times.
        limit: the exceeded limit in seconds; None if the log ends.
        last: id and index of the session's last record.
        ended: the log is complete; no more records will come.
    """

    calls: list[OpenCall]
    why: str
    seconds: float | None
    limit: float | None
    last: tuple[str, int | None]
    ended: bool = False
    resolved: str | None = None
    severity: Severity = "hung"
    progress: Progress | None = None


def declared_limit(start: Observation) -> float | None:
    """Return the limit in seconds that a call declares in its record or its input, or None.

    A bare ``timeout`` may be seconds or milliseconds. From 10,000 on it counts as milliseconds: too long a limit only reports
    a stall late, but too short a limit reports a healthy call.
    """
    if start.timeout_ms is not None:
        return _positive(start.timeout_ms, 1000)
    if not isinstance(start.input, dict) or _LIMIT_KEYS.isdisjoint(cast("dict[str, Any]", start.input)):
        return None
    fields = cast("dict[str, Any]", start.input)
    for keys, unit in ((_SECONDS_KEYS, 1), (_MILLISECONDS_KEYS, 1000)):
        for key in keys:
            if key in fields:
                return _positive(fields[key], unit)
    value = _positive(fields.get("timeout"), 1)
    return value / 1000 if value is not None and value >= _SURELY_MILLISECONDS else value


def _is_in_background(start: Observation) -> bool:
    """Whether a call's input asks its client to run it in the background."""
    fields = json_object(start.input)
    return any(fields.get(name) is True for name in ("run_in_background", "is_background", "background"))


def _positive(value: object, unit: float) -> float | None:
    # Recorded numbers may be anything. NaN fails both comparisons.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_TIMEOUT_MS:
        return None
    return value / unit


def stall_finding(stall: Stall, session: str, newest: Observation | None) -> Finding:
    """Return the finding for a stall.

    Args:
        stall: the stall.
        session: id of the session.
        newest: the last start or result of the session.
    """
    progress = stall.progress
    first = stall.calls[0].start if stall.calls else newest
    agent = None if first is None else first.agent
    process = None if first is None else first.process
    starts = [call.start for call in stall.calls]
    # Without ids: if a call hangs again in the next process, it is the same stall for recovery, which counts attempts.
    identity = fingerprint([agent, "hung", stall.why, [[call.action, call.input] for call in starts]])
    anchor = (first.id, first.index) if first is not None else stall.last
    indexes: dict[str, Any] = {
        "first": anchor[1],
        "last": anchor[1] if not starts else starts[-1].index,
        "raisedAt": stall.last[1],
        "lastProgress": None if progress is None else progress.index,
        "members": [call.index for call in starts],
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
        id=fingerprint([session, "hung", agent, process, anchor[0], stall.why]),
        kind="hung",
        severity=stall.severity,
        period=0,
        count=1,
        first=anchor[0],
        last=starts[-1].id if starts else anchor[0],
        raised_at=stall.last[0],
        resolved=stall.resolved,
        members=[call.id for call in starts],
        last_progress=None if progress is None else progress.id,
        scope=Scope(agent=agent, process=process),
        confidence=0.8 if stall.ended else 0.9,
        reason=stall_reason(stall, agent, newest),
        evidence=evidence,
    )


def stall_reason(stall: Stall, agent: str | None, newest: Observation | None) -> str:
    """Return the sentence for a stall."""
    name = agent_phrase(agent)
    if stall.calls:
        call = stall.calls[0]
        others = [each.start.agent for each in stall.calls if each.start.agent != agent]
        own = len(stall.calls) - len(others) - 1
        what = call_text(call.start) + (f" and {own} more" if own else "")
        also = f" and {len(others)} more by {agent_phrase(others[0]) if len({*others}) == 1 else 'others'}" if others else ""
        if stall.ended:
            return f"the log ends inside {what} by {name}{also}: no result was recorded"
        limit = f"its {'declared ' if call.declared else ''}limit of {duration(call.limit)}"
        took = duration(stall.seconds or 0)
        if stall.resolved:
            return f"{name} waited {took} for {what}, beyond {limit}; then the result came"
        if stall.severity == "warn":
            return f"{name} has waited {took} for {what}{also}, which gave no sign of life; its limit is {duration(call.limit)}"
        if stall.why == "overdue":
            return f"{name} has waited {took} for {what}{also}, beyond {limit}"
    if newest is None:
        lasted = "" if stall.seconds is None else f" in {duration(stall.seconds)}"
        return f"the run began, and nothing was ever done{lasted}"
    verb = "finished" if newest.kind == "finish" else "started"
    after = f" since {agent_phrase(newest.agent)} {verb} {one_line(call_text(newest), 120)}"
    return f"nothing has happened for {duration(stall.seconds or 0)}{after}, and nothing is in flight"


_MAX_ASSIGNMENTS = 1000

Key = tuple[str | None, str | None]
"""Agent and process."""


class UnseenResults:
    """Keeps a scope for each agent and process without recorded results, until a first result comes.

    An answer is foreseen if two things hold. The agent's previous call is over: the agent has spoken since, so it had an
    answer, recorded or not. And nothing since makes the question a new one: no other agent changed anything, and no work was
    handed over for the first time. A hand-over itself is no change, because the log shows what comes of it.
    """

    def __init__(self, make: Callable[[], AgentScope]) -> None:
        self._make = make
        self._scopes: dict[Key, AgentScope | None] = {}
        self._watched: dict[str | None, AgentScope] = {}
        self._seen: dict[Key, tuple[int, int]] = {}
        self._changes = 0
        self._assignments: dict[int, int] = {}
        self._assigned = -1

    def begin(self, start: Observation, key: Key) -> list[OpenFinding]:
        """Take the start of an entry. Return the cases that it raised."""
        if key not in self._scopes:
            scope = self._scopes[key] = self._watched[start.agent] = self._make()
        # This agent and all others that were watched have recorded results.
        elif not self._watched:
            return []
        else:
            scope = self._scopes[key]
        if delegates(start.action):
            self._assign(start)
        elif Call(start, None, 0).changes():
            self._changes += 1
        if scope is None:
            return []
        changes, place = self._seen.get(key, (0, 0))
        scope.foreseen = scope.spoke_since and changes == self._changes and self._assigned <= place
        scope.spoke_since = False
        self._seen[key] = (self._changes, start.seq)
        scope.begin(start)
        return scope.end(start, None)  # enters at its start, since no result is expected

    def is_over(self, key: Key) -> bool:
        """Whether an entry changes nothing here: this agent's results are recorded, and no other agent is watched."""
        return not self._watched and self._scopes.get(key, self) is None

    def _assign(self, start: Observation) -> None:
        """Note the place in the log where this work was first handed over."""
        # A forgotten assignment counts as new, which at most loses one suspicion.
        if len(self._assignments) >= _MAX_ASSIGNMENTS:
            self._assignments.clear()
        self._assigned = self._assignments.setdefault(Call.from_observations(start, None).query, start.seq)

    def end(self, key: Key) -> None:
        """Stop watching an agent. Its results are recorded after all, so what was seen without them is no evidence."""
        scope = self._scopes.get(key)
        if scope is None:
            return
        scope.reset("progress")
        self._scopes[key] = None
        if self._watched.get(key[0]) is scope:
            del self._watched[key[0]]

    def speak(self, agent: str | None) -> None:
        """Note that an agent said or thought something, which ends its previous call."""
        scope = self._watched.get(agent)
        if scope is not None:
            scope.spoke_since = True

    def reset(self, why: str) -> None:
        """Forget all evidence: a person spoke."""
        for scope in self._scopes.values():
            if scope is not None:
                scope.reset(why)


State = Literal["new", "working", "done", "waiting", "paused", "ended"]
"""What the run does apart from calls in flight. ``done``: a finished turn. ``waiting``: it waits for a person."""

TURN_ENDS = frozenset({"message", "turn_end", "turnEnd", "agent_message", "result", "sessionEnd"})
WAITS = frozenset(
    {"waiting", "permission_request", "approval_request", "elicitation", "ask_user", "question", "input_required"}
)
PAUSES = frozenset({"interrupt", "pause", "paused"})
WORK_STARTS = frozenset({"user_message", "user_message_chunk", "nudge", "resume"})
OWN_ANSWER = "continuation"
"""Type of the event by which an answer of this program is stored. The run did nothing by it."""
PROGRESS = frozenset({"progress"})
LIFE = frozenset({"heartbeat", "progress", "tool_call_update"})
"""Signs of life from the maker of a call. A log that ends with one does not end inside the call."""

BEGINS = "session"
"""Type of the event with which a process begins. From then on, the process is expected to act."""

_ACTIVITY = {BEGINS} | LIFE | TURN_ENDS | WAITS | PAUSES | WORK_STARTS | PROGRESS
"""Types of events that show what the run does. Most other events are thoughts."""

_ASKING = {BEGINS} | WORK_STARTS | PAUSES
"""Types of events that ask something of a run. Any other is an answer, or a sign of one."""

_MAX_DELEGATED = 64


class StallWatch:
    """Follows the calls in flight and the latest event. It judges only when asked, against a given time.

    A new entry or a result ends silence (design ruling 9). Deltas and heartbeats are signs of life, and do not end it.
    Silence is measured from the newest of the agents' latest times. So it never becomes longer than it was, neither by a
    clock that steps back nor by a log whose parts were merged out of order.
    """

    def __init__(self, session: str, settings: DetectSettings) -> None:
        self._session = session
        self._settings = settings
        self._open: dict[str, OpenCall] = {}
        self._flows: dict[str | None, dict[str | None, Flow]] = {}
        self._state: State = "new"
        self._last_id = ""
        self._newest: Observation | None = None
        self._past: list[Stall] = []
        self._untimed = False
        self._delegated: dict[str, OpenCall] = {}
        self._begun = self._finished = 0  # entries
        self._answered = False  # whether an agent has said anything yet

    @property
    def has_untimed(self) -> bool:
        """Whether entries without a usable time were seen. They disable judging against a clock."""
        return self._untimed

    def begin(self, start: Observation) -> None:
        """Take the start of an entry."""
        flow = self._begin_flow(start)
        flow.landed = False
        limit = declared_limit(start)
        if self._delegated or start.parent is not None:
            self._keep_parents_alive(start)
        call = OpenCall(start, limit or self._settings.call_seconds, limit is not None, flow)
        self._open[start.id] = call
        flow.calls.append(start.id)
        if vocabulary.delegates(start.action):
            self._delegated[start.id] = call
            # Drop the oldest: hand-overs that never return must not fill the memory.
            if len(self._delegated) > _MAX_DELEGATED:
                del self._delegated[next(iter(self._delegated))]
        self._begun += 1
        self._note_move(start, flow)

    def _begin_flow(self, start: Observation) -> Flow:
        """Return the flow of a new call. If results came since the flow's last call, drop the calls that are still open.

        An agent makes its next call when it has the answers to the last ones. A call without a result is then lost.
        """
        flow = self._find_flow(start)
        if flow.landed:
            if self._open:
                for call in flow.calls:
                    self._drop(call)
            flow.calls.clear()
            flow.over = False
        return flow

    def end(self, finish: Observation) -> None:
        """Take the result of an entry."""
        flow = self._find_flow(finish)
        flow.landed = True
        if self._delegated or finish.parent is not None:
            self._keep_parents_alive(finish)
        call = self._drop(finish.id)
        self._finished += 1
        self._note_move(finish, flow)
        if finish.status == "ok" and not self._open and vocabulary.is_last(finish.action):
            self._state = "done"
        elif finish.status == "interrupted":
            self._state = "paused"
        if call is None:
            return
        began, ended = call.start.at, finish.at
        if began is None or ended is None or ended - began <= call.limit + self._settings.call_grace:
            return
        # It waited for a person, a child worked for it, or its agent had gone on without it.
        if self._is_excused(call) or call.child_seen or call.flow.over:
            return
        last = (finish.id, finish.index)
        # The result came after all. The stall is over, but still worth reporting.
        self._past.append(Stall([call], "late", ended - began, call.limit, last, resolved="progress", progress=finish.progress))

    def take_whole(self, start: Observation, finish: Observation) -> None:
        """Take an entry that was recorded with its result, as `begin` and `end` at one moment."""
        flow = self._begin_flow(start)
        flow.landed = True
        flow.calls.append(start.id)
        if self._delegated or start.parent is not None:
            self._keep_parents_alive(start)
            if len(self._delegated) >= _MAX_DELEGATED and vocabulary.delegates(start.action):
                # `begin` would add the call and drop the oldest one, and `end` would remove the call again.
                del self._delegated[next(iter(self._delegated))]
        self._begun += 1
        self._finished += 1
        self._note_move(finish, flow)
        if finish.status == "ok" and not self._open and vocabulary.is_last(finish.action):
            self._state = "done"

    def hear(self, event: Observation) -> None:
        """Take an event. Only some kinds show what the run does."""
        kind = event.type or ""
        if kind == OWN_ANSWER:
            return
        if event.id:
            self._last_id = event.id
        self._answered = self._answered or kind not in _ASKING
        if kind not in _ACTIVITY:
            return
        if kind == BEGINS:
            self._expect(event)
            return
        if kind in LIFE:  # keeps a call from being lost, but is no progress (design ruling 9)
            self._give_life(event)
        if kind in TURN_ENDS:
            for flow in self._agent_flows(event):
                flow.landed = flow.over = True
            self._state = "done"
        elif kind in WAITS:
            self._state = "waiting"
        elif kind in PAUSES:
            self._state = "paused"
        elif kind in WORK_STARTS or kind in PROGRESS:
            self._set_to_work(event)

    def _set_to_work(self, event: Observation) -> None:
        """Take an event that asks something of the run."""
        if event.type in ("user_message", "user_message_chunk"):
            self.leave_open()
        # Two of three successful real runs end with thanks or a goodbye, and would count as hung two minutes later.
        if self._answered and is_farewell(event_text(event) or ""):
            self._state = "done"  # nobody waits for an answer
            return
        self._state = "working"
        if event.at is None:
            self._untimed = True
        else:
            self._find_flow(event).latest = event.at

    def _expect(self, beginning: Observation) -> None:
        # Silence counts from here on: a process that begins and then does nothing is a stall too.
        if self._state == "new" and beginning.at is not None:
            self._state = "working"
            self._find_flow(beginning).latest = beginning.at

    def take_over(self, beginning: Observation) -> None:
        """Note that a later process of the session begins. Calls that the earlier one left open are over."""
        self.leave_open()
        self._state = "new"
        self._expect(beginning)

    def _give_life(self, event: Observation) -> None:
        for name in [entry for flow in self._agent_flows(event) for entry in flow.calls]:
            if (call := self._open.get(name)) is not None:
                call.alive = True

    def close(self) -> None:
        """Note that a process ended its session."""
        self._state = "ended"

    def judge(self, now: float | None, live: bool = False, progress: Progress | None = None) -> list[Finding]:
        """Return all stalls: past ones, and what stalls as of ``now`` (seconds since 1970).

        Without ``now`` the log is all there will ever be, unless the process is ``live``: then nothing is claimed.
        ``progress`` is what the session has last achieved.
        """
        standing: list[Stall] = []
        if now is not None:
            standing = [] if self._untimed else self._find_stalls(now)
        elif not live:
            standing = self._list_last_calls()
        for stall in standing:
            stall.progress = progress
        return [stall_finding(stall, self._session, self._newest) for stall in (*self._past, *standing)]

    def _find_stalls(self, now: float) -> list[Stall]:
        # A run that waits for a person, is paused or has finished is not hung (design ruling 9).
        if self._state in ("paused", "waiting", "ended"):
            return []
        in_flight = self._list_in_flight()
        overdue = [call for call in in_flight if now - self._start_time(call) > call.limit + self._settings.call_grace]
        if overdue:
            first = min(overdue, key=self._start_time)
            return [Stall(overdue, "overdue", now - self._start_time(first), first.limit, self._find_last())]
        times = [flow.latest for own in self._flows.values() for flow in own.values() if flow.latest is not None]
        if self._state != "working" or not times:
            return []
        if any(self._is_excused(call) and not call.flow.over for call in self._open.values()):
            return []
        silent = max(0.0, now - max(times))
        if silent <= self._settings.stall_seconds:
            return []
        waited = [call for call in in_flight if not call.child_seen]
        if waited:
            return self._warn_without_life(waited, now)
        return [Stall(in_flight, "silent", silent, self._settings.stall_seconds, self._find_last())]

    def _warn_without_life(self, waited: list[OpenCall], now: float) -> list[Stall]:
        """Return a warning for calls without a declared limit or a sign of life. At their limit they become a stall."""
        calls = [
            call
            for call in waited
            if not call.declared and not call.alive and now - self._start_time(call) > self._settings.stall_seconds
        ]
        # If one of them declares a limit or gave a sign of life, the agent may wait in good faith.
        if not calls or len(calls) < len(waited):
            return []
        first = min(calls, key=self._start_time)
        return [Stall(calls, "overdue", now - self._start_time(first), first.limit, self._find_last(), severity="warn")]

    def _list_last_calls(self) -> list[Stall]:
        """Return the calls in which the log ends: nothing came after them, from their agent or from one it launched.

        If the agent gave signs of life, or its child went on, the call was being waited for when the log ended. That is not
        yet a stall, and judging the wait would need a clock. A run that was asked for something but neither acted nor spoke
        never began.
        """
        if self._state in ("paused", "waiting", "ended"):
            return []
        if self._state == "working" and not self._begun and not self._answered:
            return [Stall([], "torn", None, None, self._find_last(), ended=True)]
        calls = [call for call in self._list_in_flight() if not call.alive and not call.child_seen]
        return [Stall(calls, "torn", None, None, self._find_last(), ended=True)] if calls else []

    def _list_in_flight(self) -> list[OpenCall]:
        """Return the calls that their agent still waits for; none if the log seems to record no results."""
        calls = [call for call in self._open.values() if not call.flow.over and not self._is_excused(call)]
        # If several calls have no result at all, the log records none. Calls of one batch, however, may all be in flight.
        if not self._finished and self._begun > 1:
            steps = {call.start.step for call in calls}
            if None in steps or len(steps) > 1:
                return []
        # Nobody waits for a call that went to the background, unless nothing else is in flight.
        return [call for call in calls if not _is_in_background(call.start)] or calls

    def leave_open(self) -> None:
        """Forget the open calls: a person spoke or a later process took over, so no result is expected."""
        self._open.clear()
        self._delegated.clear()

    def _drop(self, entry: str) -> OpenCall | None:
        if self._delegated:
            self._delegated.pop(entry, None)
        return self._open.pop(entry, None)

    def _start_time(self, call: OpenCall) -> float:
        # The 0 is never compared: entries without times disable judging by the clock.
        began = call.start.at or 0.0
        return began if call.child_at is None else max(began, call.child_at)

    @staticmethod
    def _is_excused(call: OpenCall) -> bool:
        return vocabulary.asks_human(call.start.action)

    def _keep_parents_alive(self, observation: Observation) -> None:
        """Give life to calls that wait for an observation's agent: a child's progress is progress of its caller."""
        # Logs need not name the parent, so this agent may work for any open hand-over.
        parents = [call for call in self._delegated.values() if call.start.agent != observation.agent]
        if observation.parent is not None and observation.parent in self._open:
            parents.append(self._open[observation.parent])
        for call in parents:
            call.child_seen = True
            if observation.at is not None:
                call.child_at = max(observation.at, call.child_at or observation.at)

    def _agent_flows(self, event: Observation) -> list[Flow]:
        if event.agent is None:
            return [flow for own in self._flows.values() for flow in own.values()]
        return list(self._flows.get(event.agent, {}).values())

    def _find_flow(self, observation: Observation) -> Flow:
        own = self._flows.get(observation.agent)
        if own is None:
            own = self._flows[observation.agent] = {}
        flow = own.get(observation.process)
        if flow is None:
            flow = own[observation.process] = Flow([])
        return flow

    def _note_move(self, observation: Observation, flow: Flow) -> None:
        self._state = "working"
        self._last_id = observation.id
        self._newest = observation
        if observation.at is None:
            self._untimed = True
        else:
            flow.latest = observation.at

    def _find_last(self) -> tuple[str, int | None]:
        if self._newest is not None and self._last_id == self._newest.id:
            # Only entries have an index, and the last record may be an event.
            return (self._newest.id, self._newest.index)
        return (self._last_id, None)
