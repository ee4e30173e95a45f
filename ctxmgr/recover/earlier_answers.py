"""Look up earlier answers: to the same question, to the same problem, and what an agent still holds of them (ruling 24).

A recovery is a function of the history. The same question on the same history has one answer, which is recorded once and
then repeated. A further attempt at a loop counts only if an agent or a person went on in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.log.codec import Record, fingerprint
from ctxmgr.log.fast_json import json_object, json_objects, json_texts, text_or_empty
from ctxmgr.log.json_value import plain
from ctxmgr.recover.evidence.quotes import CITABLE
from ctxmgr.recover.routes import RoutingTable
from ctxmgr.recover.stuck_request import loop_identity
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Context, ContextRequest, Continuation, KnownFact

_DIGITS = 12  # of the fingerprints; they are compared only within one session
_STUCK = "stuckHandler"


def basis_hash(store: Store, key: int) -> str:
    """Return a mark that stays equal until an agent or a person adds something to the session (ruling 24)."""
    return fingerprint([store.sessions.entry_count(key), store.annotations.latest_act(key)])[:_DIGITS]


def question_hash(request: ContextRequest, finding: Finding | None, options: dict[str, Any], table: RoutingTable | None) -> str:
    """Return a mark that is equal for requests with the same question.

    Args:
        request: the request; its asking agent, reason and goal count.
        finding: the finding to answer. Only its identity counts, since its words may change with the clock.
        options: other inputs of the answer, by name: target, diff, model and its settings, further facts.
        table: the routing table; None if it is derived from the history.
    """
    asked = request.to_json()
    if request.source == _STUCK:
        asked["reason"] = None  # the stuck handler's own words about the finding
    told = [asked, None if finding is None else loop_identity(finding), options, table]
    return fingerprint(plain(told))[:_DIGITS]


def stored_answer(store: Store, key: int, question: str, basis: str, *, retry: bool) -> Continuation | None:
    """Return the stored answer to a question on this basis, or None.

    ``retry``: ignore an answer for which the model failed, so that the model is asked again.
    """
    for record in reversed(store.annotations.continuations(key)):
        if record.get("question") != question or record.get("basis") != basis or (retry and record.get("fallback") is True):
            continue
        if (told := _read(record)) is not None:
            return told
    return None


def recorded_continuation(store: Store, key: int | None, continuation_id: str | None = None) -> Continuation | None:
    """Return a recorded continuation, marked as repeated: the one with this id or id prefix, else the session's last one.

    ``key``: None searches all sessions, which needs an id.

    Raises:
        InvalidInput: several ids have this prefix.
    """
    if continuation_id is not None:
        found = store.annotations.continuation(key, continuation_id)
        records = [] if found is None else [found]
    else:
        records = [] if key is None else store.annotations.continuations(key)[::-1]
    return next((told for record in records if (told := _read(record)) is not None), None)


def _read(record: Record) -> Continuation | None:
    """Return the continuation in a record, or None if another program wrote it in another shape."""
    try:
        return Continuation.from_json(record).model_copy(update={"told_again": True})
    except (ValueError, AttributeError, TypeError):
        return None


def attempts_at(store: Store, key: int, finding: Finding, basis: str | None = None) -> int:
    """Return the number of answers to this finding, without those on the given basis.

    Several answers on one basis count once, because the agent did not go on in between. Answers to an agent's own question do
    not count (ruling 24).
    """
    wanted = loop_identity(finding)
    given = [record for record in store.annotations.continuations(key) if _is_attempt(record, wanted)]
    return len({str(record.get("basis") or record.get("id")) for record in given} - {basis})


def advised_step(store: Store, key: int, finding: Finding, basis: str) -> str:
    """Return the next step of the newest answer to this finding that was given on another basis, or ""."""
    wanted = loop_identity(finding)
    for record in reversed(store.annotations.continuations(key)):
        if record.get("basis") != basis and _is_attempt(record, wanted):
            return text_or_empty(json_object(record.get("diagnosis")).get("nextStep"))
    return ""


def _is_attempt(record: Record, identity: str) -> bool:
    patterns = [record.get("loop"), record.get("stall")]
    known = {str(cast("dict[str, Any]", item).get("identity")) for item in patterns if isinstance(item, dict)}
    return identity in known and record.get("source", _STUCK) == _STUCK


_MOST_CITED = 20


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """The facts that one agent has from earlier continuations.

    Attributes:
        latest: id of the newest continuation that it was given; None if it has nothing.
        facts: hash -> fact.
        sections: hashes of the sections.
    """

    latest: str | None = None
    facts: Mapping[str, KnownFact] = field(default_factory=lambda: dict[str, KnownFact]())
    sections: frozenset[str] = frozenset()


def held_facts(store: Store, key: int, agent: str) -> KnownFacts:
    """Return the facts that an agent holds. After a compaction of its context, or of the whole run, it holds none."""
    facts: dict[str, KnownFact] = {}
    sections: set[str] = set()
    latest: str | None = None
    for record in store.annotations.continuations(key, since_compaction_of=agent):
        name, context = record.get("id"), record.get("context")
        if record.get("target") != agent or not isinstance(context, dict) or not isinstance(name, str) or len(name) > CITABLE:
            continue
        latest = name
        given = cast("dict[str, Any]", context)
        for fact in json_objects(given.get("facts")):
            mark = fact.get("hash")
            if isinstance(mark, str) and len(mark) <= CITABLE:
                facts.setdefault(mark, KnownFact(hash=mark, given=name, entries=_cited_ids(fact.get("entries"))))
        for held in json_objects(given.get("held")):
            if (old := _read_known_fact(held)) is not None:
                facts.setdefault(old.hash, old)
        sections |= {str(mark) for section in json_objects(given.get("sections")) if (mark := section.get("hash"))}
    return KnownFacts(latest, facts, frozenset(sections))


def without_held(context: Context, holding: KnownFacts) -> Context:
    """Return the context without facts and sections that the agent already has; ``held`` lists these facts by hash.

    An agent that has nothing gets the full context, without ``diff_of``.
    """
    if holding.latest is None:
        return context
    known = [holding.facts[fact.hash] for fact in context.facts if fact.hash in holding.facts]
    facts = [fact for fact in context.facts if fact.hash not in holding.facts]
    sections = [section for section in context.sections if section.hash not in holding.sections]
    return context.model_copy(update={"facts": facts, "sections": sections, "held": known, "diff_of": holding.latest})


def _cited_ids(value: object) -> list[str]:
    return [item for item in json_texts(value) if len(item) <= CITABLE][:_MOST_CITED]


def _read_known_fact(fields: dict[str, Any]) -> KnownFact | None:
    mark, given = fields.get("hash"), fields.get("given")
    if not isinstance(mark, str) or not isinstance(given, str) or max(len(mark), len(given)) > CITABLE:
        return None
    return KnownFact(hash=mark, given=given, entries=_cited_ids(fields.get("entries")))
