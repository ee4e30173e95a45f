"""Calls in flight, their limits, the stall findings made from them, and agents whose results the log does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.detect.agent_state import AgentScope
from ctxmgr.detect.descriptions import duration, who
from ctxmgr.detect.finding_lifecycle import OpenFinding
from ctxmgr.detect.step import Call, call_text
from ctxmgr.detect.text.fingerprints import one_line
from ctxmgr.detect.text.vocabulary import delegates
from ctxmgr.log.codec import fingerprint
from ctxmgr.types.finding import Finding, Observation, Progress, Scope, Severity
from ctxmgr.types.plain_records import MAX_TIMEOUT_MS

_SECONDS_KEYS = ("timeout_s", "timeout_seconds", "timeoutSeconds", "timeout_sec")
_MILLISECONDS_KEYS = ("timeoutMs", "timeout_ms", "timeoutMillis")
_LIMIT_KEYS = frozenset({*_SECONDS_KEYS, *_MILLISECONDS_KEYS, "timeout"})
_SURELY_MILLISECONDS = 10_000
"""From here on a bare ``timeout`` is in milliseconds: as seconds it would be nearly three hours."""


@dataclass(slots=True)
class Flow:
    """One agent in one process.

    Attributes:
        calls: ids of its current batch of calls.
        landed: whether anything came in since its last call, so that the next call begins a new batch and what the
            old one left open is left behind.
        over: whether it has spoken since its last call: it has gone on without what is still open.
        latest: its latest time in seconds since 1970, None while it has none.
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
    """A stall before it is written as a finding.

    Attributes:
        calls: the calls it is about, none when nothing is in flight.
        why: ``overdue``, ``late`` (the result came after the limit), ``silent`` or ``torn`` (the log ends there).
        seconds: how long it lasted, None without times.
        limit: the limit in seconds that was passed, None where the log ends.
        last: id and index of the session's last record.
        ended: whether the log is all there will ever be.
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
    """Return the limit in seconds that a call declares, in its record or within its input, or None.

    A bare ``timeout`` may be seconds or milliseconds: from 10,000 on it is taken as milliseconds, since a limit that
    is read too long only reports late, while one read too short would report a healthy call.
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


def _positive(value: object, unit: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MAX_TIMEOUT_MS:
        return None
    return value / unit


def stall_finding(stall: Stall, session: str, newest: Observation | None) -> Finding:
    """Return the finding for a stall.

    Args:
        stall: what was seen.
        session: id of the session.
        newest: the last start or result of the session.
    """
    progress = stall.progress
    first = stall.calls[0].start if stall.calls else newest
    agent = None if first is None else first.agent
    process = None if first is None else first.process
    starts = [call.start for call in stall.calls]
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
    name = who(agent)
    if stall.calls:
        call = stall.calls[0]
        what = call_text(call.start)
        more = f" and {len(stall.calls) - 1} more" if len(stall.calls) > 1 else ""
        if stall.ended:
            return f"the log ends inside {what}{more} by {name}: no result was recorded"
        limit = f"its {'declared ' if call.declared else ''}limit of {duration(call.limit)}"
        took = duration(stall.seconds or 0)
        if stall.resolved:
            return f"{name} waited {took} for {what}, beyond {limit}; then the result came"
        if stall.severity == "warn":
            return f"{name} has waited {took} for {what}{more}, which gave no sign of life; its limit is {duration(call.limit)}"
        if stall.why == "overdue":
            return f"{name} has waited {took} for {what}{more}, beyond {limit}"
    if newest is None:
        lasted = "" if stall.seconds is None else f" in {duration(stall.seconds)}"
        return f"the run began, and nothing was ever done{lasted}"
    verb = "finished" if newest.kind == "finish" else "started"
    after = f" since {who(newest.agent)} {verb} {one_line(call_text(newest), 120)}"
    return f"nothing has happened for {duration(stall.seconds or 0)}{after}, and nothing is in flight"


_MAX_ASSIGNMENTS = 1000

Key = tuple[str | None, str | None]
"""Agent and process."""


class UnseenResults:
    """A scope for each agent and process whose results the log does not hold, until a first result comes.

    The answer to a call is foreseen when the call before it is over (its agent has spoken since, so it had an answer,
    recorded or not) and nothing since makes the question a new one: no other agent was seen to change anything, and no work
    was handed over for the first time. Handing over is no change itself: what comes of it is in the log.
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
        """Take the start of an entry; return the cases raised by it."""
        if key not in self._scopes:
            scope = self._scopes[key] = self._watched[start.agent] = self._make()
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
        return scope.end(start, None)  # entered at its start: no result is waited for

    def is_over(self, key: Key) -> bool:
        """Whether this agent's results are recorded and no other agent is watched: then an entry changes nothing here."""
        return not self._watched and self._scopes.get(key, self) is None

    def _assign(self, start: Observation) -> None:
        """Note where in the log what is handed over now was handed over first."""
        # Forgetting makes an old assignment count as new, which only means one suspicion less.
        if len(self._assignments) >= _MAX_ASSIGNMENTS:
            self._assignments.clear()
        self._assigned = self._assignments.setdefault(Call.of(start, None).query, start.seq)

    def end(self, key: Key) -> None:
        """Stop watching an agent: its results are recorded after all, so what was seen without them is no evidence."""
        scope = self._scopes.get(key)
        if scope is None:
            return
        scope.reset("progress")
        self._scopes[key] = None
        if self._watched.get(key[0]) is scope:
            del self._watched[key[0]]

    def speak(self, agent: str | None) -> None:
        """Note that an agent said or thought something: the call before it is over."""
        scope = self._watched.get(agent)
        if scope is not None:
            scope.spoke_since = True

    def reset(self, why: str) -> None:
        """Forget all evidence: a person spoke."""
        for scope in self._scopes.values():
            if scope is not None:
                scope.reset(why)
