"""The gate: what a continuation must be before it is recorded, and what a model's proposal must be before it counts.

It trusts neither the history nor the model (P-MODEL). It checks form and grounding; whether an answer is useful it can't
know, which is why what the rules cite stays in unless leaving it out is argued for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxmgr.log.codec import encode
from ctxmgr.recover.draft import MAX_BYTES, Draft
from ctxmgr.recover.history_reader import HistoryReader
from ctxmgr.recover.injection_filter import suspicion
from ctxmgr.recover.quotes import CITABLE, flat
from ctxmgr.recover.related import RelatedReader
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.route import ContextRequest, Continuation, is_context_manager
from ctxmgr.types.view import EntryView

_SHORTEST_REASON = 8
_VALUE = re.compile(r"[\w./:@+-]*\d[\w./:@+-]*\w|\d")
_BODY = 200_000


def refusals(
    continuation: Continuation, request: ContextRequest, desk: HistoryReader, related: RelatedReader | None = None
) -> list[str]:
    """Return why a continuation must not be given, each in a sentence; empty when it may be (FR-018, FR-019)."""
    target = continuation.target
    found: list[str] = []
    if is_context_manager(target) or any(is_context_manager(agent) for agent in continuation.candidates):
        found.append("the context manager would be its own target")
    if request.requester is not None and request.type == "PROCEED" and target == request.requester:
        found.append("a PROCEED request would go straight back")
    if request.requester is not None and request.type == "INTROSPECT_AGENT_CONTEXT" and target != request.requester:
        found.append("an introspection would not go back to the agent that asked")
    if request.return_to and target not in request.return_to:
        found.append("the target is not among the agents that the request may be answered to")
    branches = continuation.to_json()["returnTo"]
    if [agent for agent, branch in branches.items() if branch is not None] != [target]:
        found.append("not exactly one branch is filled")
    if strange := _strange(continuation, desk, related):
        found.append(f"it cites what this session does not hold: {strange[0]}")
    if len(encode(continuation.to_json())) > 2 * MAX_BYTES:
        found.append(f"it takes more than {2 * MAX_BYTES:,} bytes")
    return found


def _strange(continuation: Continuation, desk: HistoryReader, related: RelatedReader | None) -> list[str]:
    """Return ids that are cited as known though no record has them; what is labelled unknown may be gone."""
    ids = [
        *(name for fact in continuation.context.facts if fact.label != "unknown" for name in fact.entries),
        *(name for lead in continuation.alternatives for name in lead.entries),
        *(name for step in continuation.do_not_repeat for name in step.entries),
    ]
    known = desk.known(ids)
    if related is not None:
        known |= related.knows(ids)
    return [name for name in dict.fromkeys(ids) if name not in known]


def objections(proposal: Proposal, draft: Draft) -> list[str]:
    """Return what is wrong with a model's proposal, each in a sentence that the model can act on.

    That it cites only what it was shown is seen to by the consultation itself, which knows what that was.
    """
    found: list[str] = []
    allowed = allowed_targets(draft)
    if proposal.target not in allowed:
        found.append(f"target must be one of: {', '.join(allowed[:20])}")
    cited = [
        *(name for fact in proposal.facts for name in fact.entries),
        *(n for item in proposal.advice for n in item.entries),
    ]
    entries: dict[str, EntryView] = {}
    for name in dict.fromkeys(cited):
        entry = _entry(draft, name) if len(name) <= CITABLE else None
        if entry is None:
            found.append(f"entry {name[:40]!r} does not exist")
        elif name in draft.desk.withheld or (draft.related is not None and name in draft.related.withheld):
            found.append(f"entry {name[:40]!r} is quarantined and must not be cited")
        else:
            entries[name] = entry
    for number, fact in enumerate(proposal.facts):
        bodies = [_body(entries[name]) for name in fact.entries if name in entries]
        if len(bodies) == len(fact.entries) and (invented := _invented(fact.text, bodies)):
            found.append(f"fact {number + 1} states {invented[0]!r}, which its entries do not contain")
    cites = set(rule_cited(draft))
    for dropped in proposal.dropped:
        if dropped.entry not in cites:
            found.append(f"dropped entry {dropped.entry[:40]!r} is none that the rules cite")
        elif len(dropped.reason.strip()) < _SHORTEST_REASON:
            found.append(f"say why entry {dropped.entry[:40]!r} is left out")
    found += [f"{where} reads like an instruction to an agent: {why}" for where, why in _orders(proposal)]
    return found


def _entry(draft: Draft, name: str) -> EntryView | None:
    """Return an entry of the session, else one of a related session that was read."""
    found = draft.desk.entry(name)
    return found if found is not None or draft.related is None else draft.related.entry(name)


def allowed_targets(draft: Draft) -> list[str]:
    """Return the agents that a model may choose among; one alone where whoever asked has fixed it (FR-018)."""
    return [draft.target.agent] if draft.target.fixed else list(draft.target.candidates)


def rule_cited(draft: Draft) -> list[str]:
    """Return the ids that the rules' own continuation cites as facts."""
    return cited_by(draft.continuation())


def cited_by(continuation: Continuation) -> list[str]:
    """Return the ids that a continuation cites as facts."""
    return list(dict.fromkeys(name for fact in continuation.context.facts for name in fact.entries))


def _invented(text: str, bodies: Sequence[str]) -> list[str]:
    """Return the values (anything with a digit) that none of the entries contains."""
    whole = "\n".join(bodies).casefold()
    return [value for value in _VALUE.findall(text) if not _stands_in(value.casefold().strip(".:"), whole)]


def _stands_in(value: str, whole: str) -> bool:
    """Whether a text holds a value, and not merely as some of the digits of another number."""
    before = r"(?<!\d)" if value[:1].isdigit() else ""
    return re.search(rf"{before}{re.escape(value)}(?!\d)", whole) is not None


def _body(entry: EntryView) -> str:
    parts = (entry.agent, entry.action, f"@{entry.index}", entry.input, entry.error, entry.output, entry.id, entry.status)
    return "\n".join(flat(part, _BODY) for part in parts)


def _orders(proposal: Proposal) -> list[tuple[str, str]]:
    texts = [("the reason", proposal.reason), ("the summary", proposal.summary)]
    texts += [(f"fact {number + 1}", fact.text) for number, fact in enumerate(proposal.facts)]
    texts += [(f"advice {number + 1}", item.text) for number, item in enumerate(proposal.advice)]
    texts += [("what is unanswered", text) for text in proposal.unanswered]
    texts += [("the reason for leaving an entry out", item.reason) for item in proposal.dropped]
    return [(where, why) for where, text in texts if (why := suspicion(text)) is not None]
