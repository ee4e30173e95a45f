"""The context manager agent: from one request to exactly one continuation, and no recursion (FR-018, FR-019).

The rules alone always yield a valid answer. One recovery at a time holds a stored lease that survives a crash and expires;
the same loop is answered a limited number of times, then a person is needed (ruling 11).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, cast

from ctxmgr.errors import AttemptsUsedUp, NoHistory, RecoveryRefused
from ctxmgr.history.annotating import note_record, snapshot_record
from ctxmgr.ids import format_time, new_id, now
from ctxmgr.recover.alternatives import alternatives
from ctxmgr.recover.brief import do_not_repeat, facts, prepare
from ctxmgr.recover.desk import Desk
from ctxmgr.recover.stuck import identity_of, pattern_of
from ctxmgr.recover.target import Target, choose
from ctxmgr.recover.write_up import write_up
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.query import AddNoteRequest, CreateSnapshotRequest
from ctxmgr.types.record import build
from ctxmgr.types.route import CONTEXT_MANAGER, ContextRequest, Continuation
from ctxmgr.wire import Record

MAX_ATTEMPTS = 2
LEASE_SECONDS = 60.0


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
        to: the agent that shall continue, if it is to be that one.
        limits: attempt cap and lease time.
        plan: work everything out, but take no lease and write nothing.

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
        return _answer(store, key, request, finding, to, limits)[0]
    holder = f"{os.getpid()}-{new_id()}"
    if not store.leases.take(request.session, holder, store.clock(), limits.lease_seconds):
        until = store.leases.held_until(request.session, store.clock())
        raise RecoveryRefused(
            f"a recovery of session {request.session!r} is already running",
            f"wait for it; if it crashed, its lease ends at {format_time(until)}" if until else "try again",
        )
    try:
        continuation, records = _answer(store, key, request, finding, to, limits)
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


def _answer(
    store: Store, key: int, request: ContextRequest, finding: Finding | None, to: str | None, limits: Limits
) -> tuple[Continuation, list[Record]]:
    attempts = 1 + (attempts_at(store, key, finding) if finding else 0)
    if attempts > limits.attempts:
        raise AttemptsUsedUp(
            f"this {'stall' if finding and finding.severity == 'hung' else 'loop'} was answered "
            f"{limits.attempts} times and came back: a person is needed",
            "'ctxmgr detect' shows the evidence; 'ctxmgr note list -t recovery' shows what was advised",
        )
    desk = Desk(store, request.session)
    target = choose(desk, request, finding, store.sessions.agents(key), to, attempts)
    brief = prepare(desk, finding)
    known = facts(brief, finding)
    steps = do_not_repeat(brief, finding)
    leads = alternatives(desk, brief, finding)
    context = write_up(request, finding, brief, known, steps, leads)
    used = [entry.id for entry in (*brief.members, *([brief.last_success] if brief.last_success else []))]
    records = _annotations(store, key, request, finding, target, context.summary, used)
    pattern = pattern_of(finding) if finding else None
    stalled = finding is not None and finding.severity == "hung"
    continuation = Continuation(
        id=new_id(), session=request.session,
        request_type=request.type if request.source != "stuckHandler" or _goes_back(finding, target) else "PROCEED",
        source=request.source, target=target.agent, candidates=target.candidates, target_reason=target.reason,
        reason=request.reason, goal=request.goal, context=context, loop=None if stalled else pattern,
        stall=pattern if stalled else None, do_not_repeat=steps, alternatives=leads,
        snapshot=next((str(record["id"]) for record in records if record["kind"] == "snapshot"), None),
        notes=[str(record["id"]) for record in records if record["kind"] == "note"],
        by="rules", fallback=False, attempts=attempts,
    )  # fmt: skip
    body = continuation.to_json()
    records.append(build("continuation", request.session, now(), **{k: v for k, v in body.items() if k != "session"}))
    return continuation, records


def _goes_back(finding: Finding | None, target: Target) -> bool:
    return finding is None or finding.scope.agent is None or finding.scope.agent == target.agent


def _annotations(
    store: Store,
    key: int,
    request: ContextRequest,
    finding: Finding | None,
    target: Target,
    summary: str,
    used: list[str],
) -> list[Record]:
    """Return the notes and the snapshot that document the answer (US12)."""
    if not used:
        return []
    records: list[Record] = []
    unique = list(dict.fromkeys(used))
    if finding is not None:
        records.append(
            note_record(
                store, key,
                AddNoteRequest(
                    session=request.session, entry_ids=unique, author=CONTEXT_MANAGER,
                    content=f"Used as evidence for {finding.kind} {finding.id}: {finding.reason}",
                    tags=["recovery", "diagnostic"],
                ),
            )
        )  # fmt: skip
    records.append(
        note_record(
            store, key,
            AddNoteRequest(
                session=request.session, entry_ids=unique[-1:], author=CONTEXT_MANAGER,
                content=f"Routed to {target.agent}: {target.reason}. Asked for because: {request.reason}",
                tags=["recovery", "routing"],
            ),
        )
    )  # fmt: skip
    records.append(
        snapshot_record(
            store, key,
            CreateSnapshotRequest(
                session=request.session, entry_ids=unique, summary=summary,
                reasoning=f"entries a continuation for {target.agent} rests on",
            ),
        )
    )  # fmt: skip
    return records
