"""Earlier answers: to which question, how often to one problem, and what an agent still has of them (ruling 24).

A recovery is a function of the history: the same question on the same history has one answer, which is recorded once and
told again. An attempt at a loop counts only when somebody went on in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.log.codec import Record, fingerprint
from ctxmgr.log.json_value import plain
from ctxmgr.recover.evidence.quotes import CITABLE
from ctxmgr.recover.routing.routes import RoutingTable
from ctxmgr.recover.stuck_request import identity_of
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Context, ContextRequest, Continuation, Held

_DIGITS = 12
_STUCK = "stuckHandler"


def basis_of(store: Store, key: int) -> str:
    """Return what is equal as long as no agent and no person added anything to the session."""
    return fingerprint([store.sessions.entry_count(key), store.annotations.latest_act(key)])[:_DIGITS]


def question_of(request: ContextRequest, finding: Finding | None, options: dict[str, Any], table: RoutingTable | None) -> str:
    """Return what is equal for requests that ask the same.

    Args:
        request: what is asked for; who asks, why and for what count, the session does not.
        finding: the trouble that is answered; of it the identity counts, as its words may change with the clock.
        options: what else decides the answer, by name: the target, the diff, the model and how it is asked, further facts.
        table: who may be sent what; None when it is read off the history.
    """
    asked = request.to_json()
    if request.source == _STUCK:
        asked["reason"] = None  # the handler's own words about the finding
    told = [asked, None if finding is None else identity_of(finding), options, table]
    return fingerprint(plain(told))[:_DIGITS]


def answered(store: Store, key: int, question: str, basis: str, *, retry: bool) -> Continuation | None:
    """Return the stored answer to a question on this basis, or None.

    ``retry``: not one for which a model was asked in vain; it is asked again.
    """
    for record in reversed(store.annotations.continuations(key)):
        if record.get("question") != question or record.get("basis") != basis or (retry and record.get("fallback") is True):
            continue
        if (told := _read(record)) is not None:
            return told
    return None


def given(store: Store, key: int | None, continuation_id: str | None = None) -> Continuation | None:
    """Return a recorded continuation, to be told again: the one with this id or id prefix, else the session's last one.

    ``key`` None means whatever session, which needs an id.

    Raises:
        InvalidInput: several ids start so.
    """
    if continuation_id is not None:
        found = store.annotations.continuation(key, continuation_id)
        records = [] if found is None else [found]
    else:
        records = [] if key is None else store.annotations.continuations(key)[::-1]
    return next((told for record in records if (told := _read(record)) is not None), None)


def _read(record: Record) -> Continuation | None:
    """Return the continuation that a record holds, or None where somebody else wrote it in a shape of its own."""
    try:
        return Continuation.from_json(record).model_copy(update={"told_again": True})
    except (ValueError, AttributeError, TypeError):
        return None


def attempts_at(store: Store, key: int, finding: Finding, basis: str | None = None) -> int:
    """Return how many times somebody was sent on from this trouble, apart from what was answered on the given basis.

    What agents asked for themselves is no attempt.
    """
    wanted = identity_of(finding)
    given = [record for record in store.annotations.continuations(key) if _is_attempt(record, wanted)]
    return len({str(record.get("basis") or record.get("id")) for record in given} - {basis})


def _is_attempt(record: Record, identity: str) -> bool:
    patterns = [record.get("loop"), record.get("stall")]
    known = {str(cast("dict[str, Any]", item).get("identity")) for item in patterns if isinstance(item, dict)}
    return identity in known and record.get("source", _STUCK) == _STUCK


_MOST_CITED = 20


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """What one agent holds.

    Attributes:
        latest: id of the newest continuation it was given; None when it holds nothing.
        facts: by hash; sections: hashes of the sections.
    """

    latest: str | None = None
    facts: Mapping[str, Held] = field(default_factory=lambda: dict[str, Held]())
    sections: frozenset[str] = frozenset()


def held_by(store: Store, key: int, agent: str) -> KnownFacts:
    """Return what an agent holds: a compaction of its context, or of the whole run, makes it hold nothing."""
    facts: dict[str, Held] = {}
    sections: set[str] = set()
    latest: str | None = None
    for record in store.annotations.continuations(key, since_compaction_of=agent):
        name, context = record.get("id"), record.get("context")
        if record.get("target") != agent or not isinstance(context, dict) or not isinstance(name, str) or len(name) > CITABLE:
            continue
        latest = name
        given = cast("dict[str, Any]", context)
        for fact in _tables(given.get("facts")):
            mark = fact.get("hash")
            if isinstance(mark, str) and len(mark) <= CITABLE:
                facts.setdefault(mark, Held(hash=mark, given=name, entries=_cited(fact.get("entries"))))
        for held in _tables(given.get("held")):
            if (old := _held(held)) is not None:
                facts.setdefault(old.hash, old)
        sections |= {str(mark) for section in _tables(given.get("sections")) if (mark := section.get("hash"))}
    return KnownFacts(latest, facts, frozenset(sections))


def without_held(context: Context, holding: KnownFacts) -> Context:
    """Return the context without the facts and sections that the agent holds, which it refers to by hash.

    An agent that holds nothing gets the whole of it, and no ``diff_of``.
    """
    if holding.latest is None:
        return context
    known = [holding.facts[fact.hash] for fact in context.facts if fact.hash in holding.facts]
    return context.model_copy(
        update={
            "facts": [fact for fact in context.facts if fact.hash not in holding.facts],
            "sections": [section for section in context.sections if section.hash not in holding.sections],
            "held": known,
            "diff_of": holding.latest,
        }
    )


def _tables(value: object) -> Iterable[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _cited(value: object) -> list[str]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str) and len(item) <= CITABLE][:_MOST_CITED]


def _held(fields: dict[str, Any]) -> Held | None:
    mark, given = fields.get("hash"), fields.get("given")
    if not isinstance(mark, str) or not isinstance(given, str) or max(len(mark), len(given)) > CITABLE:
        return None
    return Held(hash=mark, given=given, entries=_cited(fields.get("entries")))
