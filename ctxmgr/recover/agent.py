"""The context manager agent: from one request to exactly one continuation, and no recursion (FR-018, FR-019).

The rules alone always yield a valid answer. One recovery at a time holds a stored lease that survives a crash and expires;
the same loop is answered a limited number of times, then a person is needed (ruling 11).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from ctxmgr.errors import AttemptsUsedUp, NoHistory, RecoveryRefused
from ctxmgr.ids import format_time, new_id, now
from ctxmgr.recover.alternatives import alternatives
from ctxmgr.recover.brief import prepare
from ctxmgr.recover.desk import Desk
from ctxmgr.recover.facts import BARE, FULL, SHORT, Amounts, do_not_repeat, facts
from ctxmgr.recover.quoting import CITABLE, cited, clipped
from ctxmgr.recover.stuck import identity_of, pattern_of
from ctxmgr.recover.target import choose
from ctxmgr.recover.trail import trail
from ctxmgr.recover.write_up import write_up
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.record import build
from ctxmgr.types.route import ContextRequest, Continuation
from ctxmgr.wire import Record, encode

MAX_ATTEMPTS = 2
LEASE_SECONDS = 60.0
MAX_BYTES = 60_000
"""Longest continuation as a record, in bytes: whatever was recorded, it fits a message and a prompt."""

_REASON = 2_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How often the same loop is answered, and how long a crashed recovery blocks the next (seconds)."""

    attempts: int = MAX_ATTEMPTS
    lease_seconds: float = LEASE_SECONDS


def recover(
    store: Store,
    key: int,
    request: ContextRequest,
    finding: Finding | None,
    *,
    side: Sequence[Finding] = (),
    to: str | None = None,
    limits: Limits | None = None,
    plan: bool = False,
) -> Continuation:
    """Answer a request with exactly one continuation, and record it with its notes and its snapshot.

    Args:
        store: that holds the session.
        key: the session's key.
        request: what is asked for, and by whom.
        finding: the loop or stall to be answered, if any.
        side: what else is wrong with the session; it is mentioned, and nothing in it is taken for progress.
        to: the agent that shall continue, if it is to be that one.
        limits: attempt cap and lease time.
        plan: work everything out, but take no lease and write nothing; there are no notes and no snapshot then.

    Raises:
        NoHistory: there is nothing to rebuild a context from.
        RecoveryRefused: another recovery of the session is running, or the routing rules forbid the answer.
        AttemptsUsedUp: this loop was answered as often as allowed.
        InvalidInput: the target is unknown or not allowed.
    """
    if store.sessions.entry_count(key) == 0:
        raise NoHistory("a context can only be rebuilt from recorded actions")
    limits = limits or Limits()
    if plan:
        planned = _answer(store, key, request, finding, side, to, limits)[0]
        return planned.model_copy(update={"snapshot": None, "notes": []})
    holder = f"{os.getpid()}-{new_id()}"
    if not store.leases.take(request.session, holder, store.clock(), limits.lease_seconds):
        until = store.leases.held_until(request.session, store.clock())
        raise RecoveryRefused(
            f"a recovery of session {clipped(request.session, CITABLE)!r} is already running",
            f"wait for it; if it crashed, its lease ends at {format_time(until)}" if until else "try again",
        )
    try:
        continuation, records = _answer(store, key, request, finding, side, to, limits)
        # Notes, snapshot and continuation take effect together: a crash leaves all of them or none.
        store.append(records)
        return continuation
    finally:
        store.leases.release(request.session, holder)


def attempts_at(store: Store, key: int, finding: Finding) -> int:
    """Return how many continuations were already given for this loop."""
    wanted = identity_of(finding)
    return sum(1 for record in store.annotations.continuations(key) if wanted in _identities(record))


def _identities(record: Record) -> set[str]:
    patterns = [record.get("loop"), record.get("stall")]
    return {str(cast("dict[str, Any]", item).get("identity")) for item in patterns if isinstance(item, dict)}


def _attempt(store: Store, key: int, finding: Finding | None, limits: Limits) -> int:
    given = attempts_at(store, key, finding) if finding else 0
    if finding is not None and given >= limits.attempts:
        raise AttemptsUsedUp(
            f"this {'stall' if finding.severity == 'hung' else 'loop'} was answered {given} times already: a person is needed",
            "'ctxmgr detect' shows the evidence, 'ctxmgr note list -t recovery' what was advised; "
            "'attempts' under [recover] in the configuration allows more",
        )
    return given + 1


def _answer(
    store: Store,
    key: int,
    request: ContextRequest,
    finding: Finding | None,
    side: Sequence[Finding],
    to: str | None,
    limits: Limits,
) -> tuple[Continuation, list[Record]]:
    """Return the continuation and the records that document it, the continuation's own among them."""
    attempt = _attempt(store, key, finding, limits)
    desk = Desk(store, request.session)
    agents = store.sessions.agents(key)
    target = choose(desk, request, finding, side, agents, to, attempt)
    brief = prepare(desk, request, finding, side, agents)
    leads = alternatives(desk, brief, finding, attempt)
    stalled = finding is not None and finding.severity == "hung"
    request_type = request.type if request.source != "stuckHandler" or target.back else "PROCEED"
    records: list[Record] = []

    def told(amounts: Amounts) -> Continuation:
        steps = do_not_repeat(brief, finding, amounts)
        known = facts(brief, finding, amounts)
        context = write_up(request, finding, brief, known, steps, leads, attempt, amounts)
        pattern = pattern_of(finding, cited(list(finding.members), 2 * amounts.ids)) if finding else None
        return Continuation(
            id=new_id(), session=request.session, request_type=request_type, source=request.source, target=target.agent,
            candidates=target.candidates, target_reason=target.reason, reason=clipped(request.reason, _REASON),
            goal=clipped(request.goal, _REASON), context=context, loop=None if stalled else pattern,
            stall=pattern if stalled else None, do_not_repeat=steps, alternatives=leads, snapshot=None, notes=[],
            by="rules", fallback=False, attempts=attempt,
        )  # fmt: skip

    continuation = told(FULL)
    for amounts in (SHORT, BARE):
        if len(encode(continuation.to_json())) <= MAX_BYTES:
            break
        continuation = told(amounts)
    records = trail(store, key, brief, request, finding, target, continuation.context.summary)
    continuation = continuation.model_copy(
        update={
            "snapshot": next((str(record["id"]) for record in records if record["kind"] == "snapshot"), None),
            "notes": [str(record["id"]) for record in records if record["kind"] == "note"],
        }
    )
    fields = {name: value for name, value in continuation.to_json().items() if name != "session"}
    return continuation, [*records, build("continuation", request.session, now(), **fields)]
