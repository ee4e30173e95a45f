"""The gate: check a continuation before it is recorded, and a model's proposal before it is used.

It trusts neither the history nor the model (P-MODEL). It checks form and grounding, but can't judge whether an answer is
useful. So what the rules cite stays in the answer unless the model gives a reason to leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.diagnose.evidence.texts import sentences_in
from ctxmgr.log.codec import encode
from ctxmgr.recover.answer.draft import MAX_BYTES, Draft
from ctxmgr.recover.evidence.brief import Case
from ctxmgr.recover.evidence.history_reader import texts
from ctxmgr.recover.evidence.quotes import CITABLE, flat
from ctxmgr.recover.injection import suspicion
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.route import Continuation, is_context_manager
from ctxmgr.types.view import EntryView

if TYPE_CHECKING:
    from ctxmgr.types.model_proposal import Proposal

_SHORTEST_REASON = 8
_SHORTEST_CALL, _SHOWN, _VAGUE = 4, 80, 3
_SUCCESS = lazy_pattern(
    r"\b(?:pass(?:es|ed|ing)?|succe(?:ed(?:s|ed)?|ss\w*)|work(?:s|ed)(?! (?:on|in|at|with|for)\b)|fixed|resolved|solved|done|"
    r"complet(?:e|ed|es)|green|healthy|ready|finished|deployed|merged|installed|up and running)\b",
    re.IGNORECASE,
)
_FAILURE = lazy_pattern(
    r"\b(?:fail\w*|error\w*|broke\w*|crash\w*|refus\w*|denied|reject\w*|no|not|never|without|cannot|unable|missing|lacks?|until|"
    r"before|once|if|when|would|should|must|needs?)\b|n't\b",
    re.IGNORECASE,
)
"""Words that turn a claim of success into a denial, a wish or a condition."""
_INSTEAD = lazy_pattern(
    r"\b(?:not|never|avoid|stop|instead|rather|without|before|after|once|when|until|if|then|unless|failed|fails)\b|n't\b",
    re.IGNORECASE,
)
"""Words before a call that turn advice to make it into advice against it, or into advice to do something else first."""
_AGAIN = lazy_pattern(r"\b(?:again|once more|retry|re-?run|repeat|keep trying)\b", re.IGNORECASE)
_FAILED = lazy_pattern(r"\b(?:fail(?:s|ed|ure)?|broken|crash(?:es|ed)?|refused|rejected|denied)\b", re.IGNORECASE)
_NOTHING = lazy_pattern(
    r"error|exception|traceback|not found|no such|cannot|unable|invalid|exit(?:ed)?\b|\bfalse\b", re.IGNORECASE
)
_WORD = lazy_pattern(r"[^\W_]{4,}|\S*\d\S*")
_QUOTES = str.maketrans("", "", "`'\"")
_VALUE = lazy_pattern(r"[\w./:@+-]*\d[\w./:@+-]*\w|\d")
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff"
_TOKEN = lazy_pattern(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
"""A word, or one character of a script without spaces between words."""
_QUOTED = lazy_pattern(r"`[^`]*`|\"[^\"]*\"|“[^”]*”")
_COPIED = 6
"""Number of consecutive words from which a match counts as a copy. Few commands have as many words."""
_SHORTEST = 3
"""Number of words from which a recorded sentence or value that is repeated whole counts as a copy."""
_PART_END = lazy_pattern(r"[.!?;:,\u3002\uff01\uff1f]\s|[\n\"{}\[\]<>|]")
_BODY = 200_000


def refusals(continuation: Continuation, case: Case) -> list[str]:
    """Return the reasons not to give a continuation, each as a sentence; empty if it may be given (FR-018, FR-019)."""
    target, request = continuation.target, case.request
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
    if strange := _strange(continuation, case):
        found.append(f"it cites what this session does not hold: {strange[0]}")
    if len(encode(continuation.to_json())) > 2 * MAX_BYTES:
        found.append(f"it takes more than {2 * MAX_BYTES:,} bytes")
    return found


def _strange(continuation: Continuation, case: Case) -> list[str]:
    """Return cited ids that no record has. Facts labelled ``unknown`` may cite missing records."""
    ids = [
        *(name for fact in continuation.context.facts if fact.label != "unknown" for name in fact.entries),
        *(name for lead in continuation.alternatives for name in lead.entries),
        *(name for step in continuation.do_not_repeat for name in step.entries),
    ]
    known = case.reader.known_ids(ids)
    if case.related is not None:
        known |= case.related.knows(ids)
    return [name for name in dict.fromkeys(ids) if name not in known]


def objections(proposal: Proposal, draft: Draft) -> list[str]:
    """Return the faults of a model's proposal, each as a sentence that the model can act on.

    The consultation itself checks that the model cites only what it was shown.
    """
    found: list[str] = []
    allowed = allowed_targets(draft)
    if proposal.target not in allowed:
        found.append(f"target must be one of: {', '.join(allowed[:20])}")
    entries: dict[str, EntryView] = {}
    for name in proposal.cited:
        entry = find_cited_entry(draft.case, name) if len(name) <= CITABLE else None
        if entry is None:
            found.append(f"entry {name[:40]!r} does not exist")
        elif name in draft.case.reader.withheld or (draft.case.related is not None and name in draft.case.related.withheld):
            found.append(f"entry @{entry.index} is quarantined and must not be cited")
        else:
            entries[name] = entry
    found += _inventions(proposal, entries)
    cites = cited_ids(draft.continuation())
    # Entries are told by their numbers: an id is recorded text, too, and would stand outside of a fence.
    for number, dropped in enumerate(proposal.dropped, start=1):
        if dropped.entry not in cites:
            found.append(f"dropped entry {number} is none that the rules cite")
        elif len(dropped.reason.strip()) < _SHORTEST_REASON:
            found.append(f"say why dropped entry {number} is left out")
    found += [*_contradictions(proposal, entries), *_repetitions(proposal, draft), *_copies(proposal, draft)]
    for where, text in proposal.texts:
        if (why := suspicion(text)) is not None:
            found.append(f"{where} reads like an instruction to an agent: {why}")
    return found


def adds_nothing(proposal: Proposal, draft: Draft) -> bool:
    """Whether a proposal adds nothing to the rules' own answer: it has the same target, and no new word."""
    if proposal.target != draft.target.agent or proposal.dropped:
        return False
    known = draft.continuation().context
    told = "\n".join([known.brief, known.prompt]).casefold()
    said = [*(item.text for _, item in (*proposal.claims, *proposal.steps)), *proposal.unanswered]
    return all(word in told for text in said for word in _WORD.findall(text.casefold()))


def _inventions(proposal: Proposal, entries: Mapping[str, EntryView]) -> Iterator[str]:
    """Yield statements with a value that their entries do not hold. The next step may also use the entries of the cause."""
    said = [(where, fact.text, fact.entries) for where, fact in proposal.claims]
    if proposal.next_step is not None:
        shown = [*proposal.next_step.entries, *(proposal.cause.entries if proposal.cause is not None else ())]
        said.append(("the next step", proposal.next_step.text, shown))
        if proposal.cause is None:
            yield "the next step needs a cause: say why it fails, or give the step as advice"
    for where, text, names in said:
        bodies = [_body(entries[name]) for name in names if name in entries]
        if len(bodies) == len(names) and (invented := _list_invented_values(text, bodies)):
            yield f"{where} states {invented[0]!r}, which its entries do not contain"


def _contradictions(proposal: Proposal, entries: Mapping[str, EntryView]) -> Iterator[str]:
    """Yield claims of a success or a failure that none of their entries recorded. Summary and reason rest on all entries."""
    cited = proposal.cited
    whole = [("the summary", proposal.summary, cited), ("the reason", proposal.reason, cited)]
    for where, text, names in [*((where, fact.text, fact.entries) for where, fact in proposal.claims), *whole]:
        states = {entries[name].status for name in names if name in entries}
        if "ok" not in states and any(_SUCCESS.search(each) and not _FAILURE.search(each) for each in sentences_in(text)):
            ended = f"its entries ended {', '.join(sorted(states))}" if states else "no entry that is cited shows one"
            yield f"{where} claims a success, though {ended}"
        if states == {"ok"} and names is not cited and _FAILED.search(text) and not _SUCCESS.search(text):
            bodies = "\n".join(_body(entries[name]) for name in names if name in entries)
            if not _FAILED.search(bodies) and not _NOTHING.search(bodies):
                yield f"{where} claims a failure, though its entries ended ok and speak of none"


def _copies(proposal: Proposal, draft: Draft) -> Iterator[str]:
    """Yield the places where the cause or a step repeats recorded text as the model's own words (ruling 23).

    A cause must quote such text in backticks. A step must use other words, since only people give orders.
    """
    evidence = draft.evidence
    rows = [*evidence.recent, *evidence.related]
    said = [message.text for message in evidence.messages if message.by != "user"]
    said += [note.content for row in rows for note in row.notes]
    texts_seen = "\n".join([*map(evidence.text, rows), *said])
    recorded = _words(texts_seen)
    # An order may be shorter than a copy, so a short sentence or value counts as one where it is repeated whole. A cause may
    # repeat what reads like an error.
    parts = {part for each in _PART_END.split(texts_seen) if _SHORTEST <= len((part := _words(each)).split()) < _COPIED}
    harmless = {part for part in parts if _FAILED.search(part) or _NOTHING.search(part)}
    asked = _words("\n".join(message.text for message in evidence.user_texts))
    told = [(where, item.text) for where, item in proposal.steps] + [("the check", proposal.check or "")]
    if proposal.cause is not None:
        told += [("the cause", part) for part in _QUOTED.split(proposal.cause.text)]
    for where, text in told:
        words = _words(text).split()
        most = _COPIED if sum(map(len, words)) >= 2 * len(words) else 2 * _COPIED  # a script without spaces
        runs = {f" {' '.join(words[at : at + most])} " for at in range(len(words) - most + 1)}
        runs |= {part for part in parts - (harmless if where == "the cause" else set()) if part in f" {' '.join(words)} "}
        if any(run in recorded and run not in asked for run in runs):
            how = "quote it in backticks" if where == "the cause" else "say in your own words what to do"
            yield f"{where} repeats recorded text as if it were yours: {how}"


def _words(text: str) -> str:
    """Return the words of a text, separated by single spaces and without the punctuation around them."""
    words = (word.strip("`'\"“”„«»()[]{}<>.,;:!?…*|#。，、！？।") for word in _TOKEN.findall(text.casefold()))
    return f" {' '.join(word for word in words if word)} "


def _repetitions(proposal: Proposal, draft: Draft) -> Iterator[str]:
    """Yield advice to repeat a call that was made in vain, and advice that names no entry."""
    steps = draft.brief.rounds if draft.case.finding is not None else []
    vain = set(draft.case.finding.members) if draft.case.finding is not None else set[str]()
    for where, item in proposal.steps:
        if not item.entries:
            yield f"{where} names no entry that speaks for it"
        before = [place for step in steps if (place := _call_position(step, item.text)) is not None]
        again = _AGAIN.search(item.text)
        # "Try again" with hardly another word can only mean the call in trouble.
        bare = bool(vain) and len(_words(_AGAIN.sub(" ", item.text)).split()) <= _VAGUE
        if again is not None and item.entries and (bare or vain.issuperset(item.entries)):
            before.append(again.start())
        if any(not _INSTEAD.search(item.text[:place]) for place in before):
            yield f"{where} repeats a call that was made in vain: say what to do instead"


def _call_position(step: EntryView, text: str) -> int | None:
    """Return where advice names a call as it was made, or None. More arguments make another call of it."""
    said = _plain(text)
    if command := _plain(command_of(step)):
        found = re.search(rf"(?<![\w./-]){re.escape(command)}(?![\w/=-]|\.\w| +-| +[\w.-]*[/=.]\w)", said)
        return found.start() if found is not None and len(command) >= _SHORTEST_CALL else None
    given = [value for value in map(_plain, texts(step.input, names=False)) if len(value) >= _SHORTEST_CALL]
    place = said.find(_plain(step.action))
    named = place >= 0 and bool(given) and all(value[:_SHOWN] in said for value in given)
    return place if named else None


def _plain(text: str) -> str:
    """Return text for comparison: lower case, no quotation marks, single spaces. Offsets change little."""
    return " ".join(text.translate(_QUOTES).casefold().split())


def find_cited_entry(case: Case, name: str) -> EntryView | None:
    """Return an entry of the session, else an entry of a related session that was read."""
    found = case.reader.entry(name)
    return found if found is not None or case.related is None else case.related.entry(name)


def allowed_targets(draft: Draft) -> list[str]:
    """Return the agents that a model may choose from: only the target if the requester has fixed it (FR-018)."""
    return [draft.target.agent] if draft.target.fixed else list(draft.target.candidates)


def cited_ids(continuation: Continuation) -> list[str]:
    """Return the ids that a continuation cites as facts."""
    return list(dict.fromkeys(name for fact in continuation.context.facts for name in fact.entries))


def _list_invented_values(text: str, bodies: Sequence[str]) -> list[str]:
    """Return the values (words with a digit) that none of the entries contains."""
    whole = "\n".join(bodies).casefold()
    return [value for value in _VALUE.findall(text) if not _stands_in(value.casefold().strip(".:"), whole)]


def _stands_in(value: str, whole: str) -> bool:
    """Whether a text holds a value. Some digits of a longer number do not count."""
    before = r"(?<!\d)" if value[:1].isdigit() else ""
    return re.search(rf"{before}{re.escape(value)}(?!\d)", whole) is not None


def _body(entry: EntryView) -> str:
    parts = (entry.agent, entry.action, f"@{entry.index}", entry.input, entry.error, entry.output, entry.id, entry.status)
    return "\n".join(flat(part, _BODY) for part in parts)
