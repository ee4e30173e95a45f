"""Turn one request into exactly one recorded continuation, without recursion (FR-018, FR-019).

The rules alone always yield a valid answer. A model, if one is named, may add to it but can't break it. Each recovery holds a
stored lease, which survives a crash and expires. The same loop is answered a limited number of times; then a person is
needed (ruling 11). The same history gives the same stored answer (ruling 24). Notes and a snapshot document it (US12).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.errors import AttemptsUsedUp, InvalidInput, NoHistory, RecoveryRefused
from ctxmgr.history.query.tools import PlainRequest, note_record, snapshot_record
from ctxmgr.log.codec import Record, fingerprint
from ctxmgr.log.ids import format_time, new_id, now
from ctxmgr.recover.answer.draft import Additions, Draft, draft
from ctxmgr.recover.answer.gate import refusals
from ctxmgr.recover.earlier_answers import (
    advised_step,
    attempts_at,
    basis_hash,
    held_facts,
    question_hash,
    recorded_continuation,
    stored_answer,
)
from ctxmgr.recover.evidence.brief import Brief, Case, finding_sentence
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.quotes import CITABLE, both_ends, clip_middle, display_name, quote_text
from ctxmgr.recover.evidence.related import RelatedReader
from ctxmgr.recover.routes import RoutingTable, derive_table
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.plain_records import build
from ctxmgr.types.route import CONTEXT_MANAGER, ContextRequest, Continuation, Fact
from ctxmgr.types.view import EntryView


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum answers to the same loop, and the seconds for which a crashed recovery blocks the next one."""

    attempts: int = 2  # ruling 11
    lease_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class ConsultationResult:
    """Additions of a model to the rules' answer, and the records that it wants written: notes, snapshots, memories."""

    added: Additions
    records: list[Record] = field(default_factory=list[Record])


Consult = Callable[[Draft], ConsultationResult | None]
"""Asks a model for additions to the rules' answer; returns None if it is not to be asked. A bad answer never raises."""


@dataclass(frozen=True, slots=True)
class RecoveryOptions:
    """Options of an answer.

    Attributes:
        to: the agent that has to continue; None to choose one.
        table: the routing table; None to derive it from the history.
        diff: leave out what the target was given before and still has.
        consult: asks the model, if one is configured.
        model: identifies the model and its settings, since another model may give another answer.
        limits: attempt cap and lease time.
        outside_facts: facts from outside of the session's history, given first.
        only_session: read this session alone, neither related ones nor memory.
    """

    to: str | None = None
    table: RoutingTable | None = None
    diff: bool = False
    consult: Consult | None = None
    model: str | None = None
    limits: Limits = field(default_factory=Limits)
    outside_facts: tuple[Fact, ...] = ()
    only_session: bool = False


class Recovery:
    """One request on its way to exactly one continuation.

    Args:
        store: the store with the session.
        key: row key of the session.
        request: the request, and who asks.
        finding: the loop or stall to answer, if any.
        side: other unresolved findings of the session.
        options: options of the answer.

    Raises:
        NoHistory: the session has no entries.
    """

    def __init__(
        self,
        store: Store,
        key: int,
        request: ContextRequest,
        finding: Finding | None,
        *,
        side: Sequence[Finding] = (),
        options: RecoveryOptions | None = None,
    ) -> None:
        if store.sessions.entry_count(key) == 0:
            raise NoHistory(hint="a context can only be rebuilt from recorded actions")
        self._store, self._key, self._request, self._finding, self._side = store, key, request, finding, side
        self._options = options or RecoveryOptions()
        self._related = None if self._options.only_session else RelatedReader(store, request.session)

    def answer(self) -> Continuation:
        """Return the one continuation: a new one, recorded with its notes and its snapshot, or an earlier one again.

        Raises:
            RecoveryRefused: another recovery of the session is running, or the routing rules forbid the answer.
            AttemptsUsedUp: this loop was answered as often as allowed.
            InvalidInput: the target is unknown or not allowed, or does not accept such a request.
        """
        store, key, session, options = self._store, self._key, self._request.session, self._options
        # A new holder for every call, so that two threads of one process exclude each other too.
        holder = f"{os.getpid()}-{new_id()}"
        if not store.leases.take(session, holder, store.clock(), options.limits.lease_seconds):
            until = store.leases.expiry(session, store.clock())
            raise RecoveryRefused(
                f"a recovery of session {clip_middle(session, CITABLE)!r} is already running",
                f"wait for it; if it crashed, its lease ends at {format_time(until)}" if until else "try again",
            )
        try:
            marks = self._marks()
            # Look under the lease: of two requests at once, the second one then finds the answer of the first (ruling 24).
            told = stored_answer(store, key, **marks, retry=options.consult is not None)
            if told is not None:
                return told
            continuation, records = self._answer_records(marks)
            with store.leases.hold(session, holder, store.clock) as kept:
                if not kept:
                    raise RecoveryRefused(
                        "this recovery took longer than its lease, and another may have answered meanwhile", "run it again"
                    )
                # Notes, snapshot and continuation are written together: a crash leaves all of them or none.
                store.append_own(records)
            # Read the answer back: then masked secrets stay masked here too, and a repetition gives the same answer.
            stored = recorded_continuation(store, key, continuation.id) or continuation
            context = stored.context.model_copy(update={"brief": continuation.context.brief})
            return stored.model_copy(update={"told_again": False, "context": context})
        finally:
            store.leases.release(session, holder)

    def plan(self) -> tuple[Draft, Continuation]:
        """Return the draft of the rules and their continuation, without a lease or a model, and without writing anything.

        Raises:
            RecoveryRefused, AttemptsUsedUp, InvalidInput: as `answer`.
        """
        drafted = self.draft()
        return drafted, pass_gate(drafted.continuation(), drafted.case).model_copy(update=self._marks())

    def draft(self) -> Draft:
        """Return the draft of the rules. Writes nothing, and raises like `plan`."""
        store, key, options = self._store, self._key, self._options
        attempt, basis = self._attempt(), basis_hash(store, key)
        advised = advised_step(store, key, self._finding, basis) if self._finding is not None and attempt > 1 else ""
        case = Case(
            reader=HistoryReader(store, self._request.session), related=self._related, request=self._request,
            finding=self._finding, side=self._side, table=options.table or derive_table(store.sessions.agents(key)),
            to=options.to, attempt=attempt, known_facts=partial(held_facts, store, key) if options.diff else None,
            outside_facts=options.outside_facts, advised=advised,
        )  # fmt: skip
        return draft(case)

    def _marks(self) -> dict[str, str]:
        """Return the marks of the question and of the history, under the names that a continuation has for them."""
        options = self._options
        told = [fact.to_json() for fact in options.outside_facts]
        chosen = {"to": options.to, "diff": options.diff, "model": options.model, "beside": told}
        # New records of related sessions lead to a new answer, but to no further attempt, since the agent did not go on.
        chosen["related"] = None if self._related is None else self._related.mark
        # So do notes, which people add to say what the answer missed.
        if notes := HistoryReader(self._store, self._request.session).notes():
            chosen["notes"] = fingerprint([[note.author, note.entries, note.content] for note in notes])
        question = question_hash(self._request, self._finding, chosen, options.table)
        return {"question": question, "basis": basis_hash(self._store, self._key)}

    def _attempt(self) -> int:
        finding = self._finding
        if finding is None or self._request.source != "stuckHandler":
            return 1
        before = attempts_at(self._store, self._key, finding, basis_hash(self._store, self._key))
        if before >= self._options.limits.attempts:
            raise AttemptsUsedUp(
                f"this {'stall' if finding.severity == 'hung' else 'loop'} was answered {before} times already: "
                "a person is needed",
                "'ctxmgr detect' shows the evidence, 'ctxmgr recover --last' what was advised; "
                "'attempts' under [recover] in the configuration allows more",
            )
        return before + 1

    def _answer_records(self, marks: Mapping[str, str]) -> tuple[Continuation, list[Record]]:
        """Return the continuation, and all records to write: the continuation's own and those that document it."""
        drafted = self.draft()
        continuation = pass_gate(drafted.continuation(), drafted.case)
        consulted = (self._options.consult(drafted) if self._options.consult else None) or ConsultationResult(Additions())
        if consulted.added.model is not None:
            consulted, continuation = _merge_additions(drafted, continuation, consulted)
        records = provenance(self._store, self._key, drafted, consulted.added, continuation)
        snapshot = next((str(record["id"]) for record in records if record["kind"] == "snapshot"), None)
        notes = [str(record["id"]) for record in records if record["kind"] == "note"]
        continuation = continuation.model_copy(update={"snapshot": snapshot, "notes": notes, **marks})
        fields = {name: value for name, value in continuation.to_json().items() if name != "session"}
        return continuation, [*records, *consulted.records, build("continuation", self._request.session, now(), **fields)]


def _merge_additions(
    drafted: Draft, own: Continuation, consulted: ConsultationResult
) -> tuple[ConsultationResult, Continuation]:
    """Return the answer with the model's additions; if it does not pass the gate, the rules' own answer, marked."""
    use = consulted.added.model
    assert use is not None, "there is something to merge"
    if consulted.added.counts:
        try:
            return consulted, pass_gate(drafted.continuation(consulted.added), drafted.case)
        except (RecoveryRefused, InvalidInput) as refused:
            use = use.model_copy(update={"failure": clip_middle(f"its answer could not be given: {refused.message}", 300)})
        except ValueError:  # the shape refuses a target that is no candidate
            use = use.model_copy(update={"failure": "its answer could not be given: it is no continuation"})
    # A small model that finds no answering entry has not failed: it agrees with the rules.
    return ConsultationResult(Additions(model=use)), own.model_copy(update={"fallback": use.failure is not None, "model": use})


def pass_gate(continuation: Continuation, case: Case) -> Continuation:
    """Return a continuation that has passed the gate.

    Raises:
        RecoveryRefused: it does not pass the gate.
    """
    if reasons := refusals(continuation, case):
        raise RecoveryRefused(f"the answer did not pass the gate: {'; '.join(reasons)}", "name the target with --to")
    return continuation


_MOST_NOTED = 50
"""Maximum entries that one note is attached to. A longer loop is noted at its ends."""


def provenance(store: Store, key: int, draft: Draft, added: Additions, continuation: Continuation) -> list[Record]:
    """Return the records of notes and snapshot, not yet written.

    A note on every entry used says why (``inclusion``, ``diagnostic``), and one on every entry left out on purpose says why
    not (``exclusion``). The newest entry of the evidence gets a note on the routing (``routing``).
    """
    brief, finding, request = draft.brief, draft.case.finding, draft.case.request
    evidence = _ids(brief.members)
    from_model = [name for fact in added.facts for name in fact.entries]
    out = _left_out(draft, added)
    told = {*evidence, *out}
    context = [name for name in dict.fromkeys([*_ids(_context(brief)), *from_model]) if name not in told]
    used = [*evidence, *context]
    records: list[Record] = []
    present = set(store.annotations.entry_bodies(key, [*used, *out]))
    who = display_name(continuation.target)

    def note(entries: Sequence[str], content: str, tag: str, *sources: str) -> None:
        there = both_ends([name for name in entries if name in present], _MOST_NOTED)
        if there:
            tags = ["recovery", tag, *(["model"] if added.counts and tag in ("routing", "exclusion") else [])]
            asked = PlainRequest(session=request.session, entry_ids=there, author=CONTEXT_MANAGER, content=content, tags=tags)
            records.append(note_record(store, key, asked) | ({"sources": list(sources)} if sources else {}))

    place = evidence[-1:] or _ids(brief.latest)[-1:] or used[-1:]  # for a silence, the action before it
    if finding is not None:
        note(evidence or place, f"Evidence of {finding.kind} {finding.id}: {finding_sentence(brief, finding)}", "diagnostic")
    why = "what was done, changed or failed outside it" if finding else "what the answer to a request for context rests on"
    note(context, f"Kept in the context for {who}: {why}.", "inclusion")
    for reason in dict.fromkeys(out.values()):
        names = [name for name, said in out.items() if said == reason]
        note(names, f"Left out of the context for {who}: {reason}", "exclusion")
    asked = f"Asked because: {quote_text(request.reason)}"
    # This note quotes the requester on another agent's entry, so only readers who may see the continuation see the note.
    note(place, f"Routed to {who}: {continuation.target_reason}. {asked}. {_by(continuation)}", "routing", continuation.id)
    if kept := [name for name in used if name in present]:
        summary, reasoning = continuation.context.summary, f"entries that a continuation for {who} rests on"
        bundle = PlainRequest(session=request.session, entry_ids=kept, summary=summary, reasoning=reasoning)
        # The summary also quotes messages, notes and the requester's reason. As with an episode, only readers who may read all
        # of its sources see the snapshot.
        own = draft.case.reader.newest(1, agent=request.requester) if continuation.target == request.requester else []
        cited = [*(name for fact in continuation.context.facts for name in fact.entries), *_ids(own)]
        sources = [name for name in dict.fromkeys(cited) if name not in kept]
        records.append(snapshot_record(store, key, bundle) | ({"sources": sources} if sources else {}))
    return records


def _by(continuation: Continuation) -> str:
    """Return who answered, and why it was the rules although a model was asked."""
    table = "the routing table" if continuation.routing == "table" else "what the history shows"
    model = continuation.model
    if model is None:
        return f"Decided by the rules, out of {table}."
    if model.failure is None:
        return f"Decided with the model {quote_text(model.name, 80)}, out of {table}."
    why = clip_middle(model.failure, 200)
    return f"Decided by the rules, out of {table}: the model {quote_text(model.name, 80)} could not ({why})."


def _left_out(draft: Draft, added: Additions) -> dict[str, str]:
    """Return the entries that are left out on purpose, each with the reason."""
    brief, finding = draft.brief, draft.case.finding
    out: dict[str, str] = {}
    if finding is not None and len(brief.members) + len(brief.gone) < len(finding.members):
        sampled = {entry.id for entry in brief.members}
        more = both_ends([name for name in finding.members if name not in sampled], _MOST_NOTED)
        out |= dict.fromkeys(more, "it repeats what the entries around it did, and those are told.")
    out |= {name: f"the model left it out: {quote_text(why, 300)}" for name, why in added.dropped.items()}
    for name, why in draft.case.reader.withheld.items():
        out[name] = f"its text is withheld, because it {why}."
    return out


def _context(brief: Brief) -> Sequence[EntryView]:
    single = [entry for entry in (brief.last_success, brief.launcher) if entry is not None]
    relevant = [found.row for found in brief.relevant if isinstance(found.row, EntryView)]
    return [*single, *brief.changed, *relevant, *brief.failures, *brief.agents, *brief.latest]


def _ids(entries: Sequence[EntryView]) -> list[str]:
    return list(dict.fromkeys(entry.id for entry in entries))
