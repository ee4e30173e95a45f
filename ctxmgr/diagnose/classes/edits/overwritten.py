"""What one agent writes with a tool is taken back or written over by another one: replacements, and values of a field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from ctxmgr.diagnose.evidence import Evidence, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, only_looks, path_of, tool_phrase
from ctxmgr.diagnose.evidence.items import list_items
from ctxmgr.diagnose.evidence.messages import split_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, agent_name, capital, code, contains_word, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.related_lines import find_names
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

_LAST_ENTRIES, _LEAST_TURNS, _MOST_SINCE = 60, 2, 8
"""Newest entries that are read, replacements that were taken back, and entries since the last of them."""
_MOST_VALUE, _MOST_LINE, _MOST_LINES = 300, 200, 200

_OLD = lazy_pattern(r"(?:find|search|pattern|before|original|(?:old|from)(?:_?(?:text|str|string|value|name))?)", re.IGNORECASE)
_NEW = lazy_pattern(r"(?:with|replace(?:ment|_with)?|after|(?:new|to)(?:_?(?:text|str|string|value|name))?)", re.IGNORECASE)
_REPLACES = lazy_pattern(r"replac|renam|chang|substitut|convert|swap|rewrit|relabel|correct|normali|edit", re.IGNORECASE)
"""Tools whose `from` and `to` are words, and no places or persons."""
_NOTHING = lazy_pattern(r"\b(?:0|no) (?:\w+ )?(?:replace|replacements|hits|match|matches|changes|occurrences)", re.IGNORECASE)
_RULE = lazy_pattern(
    r"\b(?:say|use|must|should|shall|always|never|only|instead|not|avoid|prefer|accept\w*|agreed|decided|call(?:ed)? it|write"
    r"|keep|rule|enforce\w*)\b",
    re.IGNORECASE,
)


class _Replacement(NamedTuple):
    """A call that puts one text for another; ``rest`` are its other arguments."""

    entry: EntryView
    old: str
    new: str
    rest: dict[str, str]

    def undoes(self, other: _Replacement) -> bool:
        """Whether this takes back what another agent replaced in the same object."""
        shared = self.rest.keys() & other.rest.keys()
        return (
            self.entry.agent != other.entry.agent
            and (self.old, self.new) == (other.new, other.old)
            and (bool(shared) or not (self.rest or other.rest))
            and all(self.rest[name] == other.rest[name] for name in shared)
        )


def diagnose_inverse_replacements(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return which replacement two agents take back from each other, and the reason of each that the record tells."""
    groups: dict[frozenset[str], list[_Replacement]] = {}
    for entry in evidence.recent[-_LAST_ENTRIES:]:
        replaced = _read_replacement(entry) if evidence.has_succeeded(entry) else None
        # A call that found nothing has taken nothing back.
        if replaced is not None and not _NOTHING.search(evidence.text(entry)[:_MOST_VALUE]):
            groups.setdefault(frozenset((replaced.old, replaced.new)), []).append(replaced)
    for group in groups.values():
        turns = [(one, two) for one, two in pairwise(group) if two.undoes(one)]
        if len(turns) >= _LEAST_TURNS and not evidence.is_past(turns[-1][1].entry, _MOST_SINCE):
            return _explain_replacements(kind, evidence, *turns[-1], len(turns))
    return None


def _read_replacement(entry: EntryView) -> _Replacement | None:
    fields = {} if command_of(entry) else fields_of(entry)
    texts = {name: value.strip() for name, value in fields.items() if isinstance(value, str)}
    old = next((name for name in texts if _OLD.fullmatch(name)), "")
    new = next((name for name in texts if _NEW.fullmatch(name)), "")
    if not old or not new or not texts[old] or not texts[new] or texts[old] == texts[new]:
        return None
    # A message goes from one to another, and a ticket from one column to the next one and back.
    if "from" in old and old.casefold() in ("from", "from_name") and not _REPLACES.search(entry.action):
        return None
    rest = {name: str(value)[:_MOST_VALUE] for name, value in fields.items() if name not in (old, new)}
    return _Replacement(entry, texts[old], texts[new], rest)


class _Reason(NamedTuple):
    """A line that says why an agent writes a word: where it stands, itself, its quote, and the file that has it."""

    source: str
    line: str
    quote: Quote
    path: str = ""


def _explain_replacements(kind: str, evidence: Evidence, one: _Replacement, two: _Replacement, turns: int) -> Diagnosis:
    first, second = _name_agent(one.entry.agent), _name_agent(two.entry.agent)
    shared = next((value for name, value in one.rest.items() if two.rest.get(name) == value), "")
    where = f" in {code(shared, 50)}" if plain_name(shared) else ""
    cause = (
        f"{capital(first)} and {second} take back each other's replacement{where}, {turns} times: {code(one.new, 50)} for "
        f"{code(one.old, 50)} by {first}'s {tool_phrase(one.entry)}{clock(one.entry.ts)}, and back by {second}'s"
        f"{clock(two.entry.ts)}."
    )
    reasons = [reason for each in (one, two) if (reason := _find_reason(evidence, each)) is not None]
    # The reasons say more than the calls, which the quotes show.
    cause += "".join(f" {capital(reason.source)} has {code(reason.line, 100)}." for reason in reasons)
    files = [reason.path for reason in reasons if plain_name(reason.path)]
    rule = f"change the rule that is out of date ({join_names(files)}) or leave" if files else "one of them leaves"
    step = (
        f"Replace nothing before {first} and {second} agree which of the two counts there: {rule} that text alone, if the "
        "task covers it; else ask the user. Then replace it once."
    )
    return diagnosis(
        kind, cause, step, *(evidence.quote_call(each.entry) for each in (one, two)), *(reason.quote for reason in reasons),
        check="The text must still be there after the other agent's next turn.",
    )  # fmt: skip


def _name_agent(name: str) -> str:
    shown = agent_name(name)
    return shown if plain_name(shown) else "another agent"


def _find_reason(evidence: Evidence, replaced: _Replacement) -> _Reason | None:
    """Return the line that an agent read or said about the word it writes: best one about both words, else a rule."""
    who = replaced.entry.agent
    found: list[tuple[int, _Reason]] = []
    for entry in evidence.recent:
        if entry.agent != who or may_change(entry) or not evidence.has_succeeded(entry):
            continue
        for line in evidence.text(entry).split("\n")[:_MOST_LINES]:
            if rank := _rank_reason(line, replaced):
                reason = _Reason(evidence.source(entry), line.strip(), evidence.quote(entry, line), path_of(entry) or "")
                found.append((rank, reason))
    for message in evidence.messages:
        # A thought is a guess about what happens.
        if (message.who != who and message.by != "user") or "thought" in message.kind:
            continue
        for sentence in split_sentences(message.text):
            if rank := _rank_reason(sentence, replaced):
                quote = evidence.quote_message(message, sentence)
                found.append((rank, _Reason(f"a message of {quote.source}", sentence, quote)))
    return max(found, key=lambda each: each[0])[1] if found else None


def _rank_reason(line: str, replaced: _Replacement) -> int:
    """Return how well a line explains a replacement; 0 if it does not."""
    folded = line.casefold()
    if len(line) > _MOST_LINE or ORDERS.search(line) or not contains_word(replaced.new.casefold(), folded):
        return 0
    if contains_word(replaced.old.casefold(), folded):
        return 2
    return 1 if _RULE.search(line) else 0


_CLAIMS = lazy_pattern(
    r"\b(?:over)?writ\w*|\b(?:sync|updat|import|refresh|restor|revert|replac|enforc)\w*|\bsets?\b", re.IGNORECASE
)
_KEEPS = lazy_pattern(
    r"holds?\b|\block(?:s|ed)?\b|\bpin(?:s|ned)?\b|protect|exclude|exempt|exception|\bskips?\b|opt[- _]?out|freeze|reserve",
    re.IGNORECASE,
)
_TOOL = lazy_pattern(r"[A-Za-z][\w-]*[._][\w.-]+|--[\w-]+")
_IS_KEEPER = lazy_pattern(r"hold|lock|pin|protect|exclude|exempt|skip|opt[-_]?out|freeze|reserve", re.IGNORECASE)
_STATES = lazy_pattern(
    r"(?:\w*_)?(?:status|state|assignee|owner|phase|stage|title|priority|version|cursor|page|offset)", re.IGNORECASE
)
_IDENTIFIES = lazy_pattern(r"(?:\w*_)?(?:id|key|name|path|doc|file|page|locale|lang|type|query|range|section|to|from)|\w+Id")


class _Write(NamedTuple):
    """A value that a call writes into a field of an object. The object is named by the call's other arguments."""

    entry: EntryView
    object: tuple[tuple[str, str], ...]
    field: str
    value: str

    def is_about(self, given: dict[str, str]) -> bool:
        """Whether arguments name this object."""
        own = dict(self.object)
        shared = own.keys() & given.keys()
        return bool(shared) and all(own[name] == given[name] for name in shared)


class _Overwriter(NamedTuple):
    """Who writes over a value, in which words or call, and what its messages name to keep the value."""

    who: str
    told: str
    quote: Quote
    keepers: list[str]


def diagnose_lost_write(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return which value an agent writes again because another agent writes over it."""
    entries = evidence.recent[-_LAST_ENTRIES:]
    writes = [each for entry in entries if evidence.has_succeeded(entry) for each in _list_writes(entry)]
    same: dict[tuple[object, ...], list[_Write]] = {}
    for each in writes:
        same.setdefault((each.entry.agent, each.entry.action, each.object, each.field, each.value), []).append(each)
    again = sorted((group[-2:] for group in same.values() if len(group) > 1), key=lambda pair: -pair[1].entry.index)
    for one, two in again:
        if evidence.is_past(two.entry, _MOST_SINCE):
            continue
        lost = _find_old_value(evidence, entries, one, two)
        by = None if lost is None else _find_overwriter(evidence, one, two)
        by = by or _find_other_write(evidence, writes, one, two)
        # What keeps the value was already used.
        if by is not None and not any(_uses(entry, by.keepers) for entry in entries if entry.index > one.entry.index):
            objects = [each.object for each in [one, *writes] if (each.field, each.entry.agent) == (one.field, one.entry.agent)]
            return _explain_lost_write(kind, evidence, (one, two), lost, by, _name_objects(objects))
    return None


def _list_writes(entry: EntryView) -> Iterator[_Write]:
    fields = {} if command_of(entry) or not may_change(entry) else fields_of(entry)
    plain = _plain_fields(fields)
    inner = [_plain_fields(cast("dict[str, Any]", value)) for value in fields.values() if isinstance(value, dict)]
    given = {name: value for each in inner for name, value in each.items()}
    for name, value in (given or plain).items():
        rest = tuple(sorted((other, said) for other, said in plain.items() if given or other != name))
        if rest and len(value) > 1 and (given or not _IDENTIFIES.fullmatch(name)):
            yield _Write(entry, rest, name, value)


def _plain_fields(fields: dict[str, Any]) -> dict[str, str]:
    return {
        name: str(value)[:_MOST_VALUE] for name, value in fields.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }  # fmt: skip


def _read_field(evidence: Evidence, entry: EntryView, write: _Write) -> str:
    """Return the value that a look at the object shows for the field; "" if it is no such look."""
    if not evidence.has_succeeded(entry) or not only_looks(entry) or not write.is_about(_plain_fields(fields_of(entry))):
        return ""
    shown = [
        item.fields[write.field.casefold()]
        for item in list_items(evidence.text(entry))
        if write.field.casefold() in item.fields
    ]
    # Several values are those of several objects.
    return shown[0] if len(shown) == 1 else ""


def _is_other(one: str, other: str) -> bool:
    """Whether two values differ; one that is shown only in part is no other."""
    first, second = (" ".join(each.casefold().rstrip("… .").split()) for each in (one, other))
    return bool(first and second) and not first.startswith(second) and not second.startswith(first)


def _find_old_value(evidence: Evidence, entries: Sequence[EntryView], one: _Write, two: _Write) -> tuple[EntryView, str] | None:
    """Return the look between two equal writes that shows the value from before the first one again."""
    before = {shown for entry in evidence.entries_before(one.entry.index) if (shown := _read_field(evidence, entry, one))}
    for entry in entries:
        if one.entry.index < entry.index < two.entry.index:
            shown = _read_field(evidence, entry, one)
            if shown in before and _is_other(shown, one.value):
                return entry, shown
    return None


def _find_overwriter(evidence: Evidence, one: _Write, two: _Write) -> _Overwriter | None:
    """Return the agent that says it writes that field, and that did something between the two writes."""
    active = {
        entry.agent for entry in evidence.recent
        if one.entry.index < entry.index < two.entry.index and not only_looks(entry) and evidence.has_succeeded(entry)
    } - {one.entry.agent}  # fmt: skip
    for message in reversed(evidence.messages):
        if message.by != "agent" or message.who not in active or "thought" in message.kind:
            continue
        sentence = next(
            (each for each in split_sentences(message.text) if contains_word(one.field, each) and _CLAIMS.search(each)
             and not ORDERS.search(each)), ""
        )  # fmt: skip
        if sentence:
            told = f"{capital(_name_agent(message.who))} said{clock(message.at)}: {code(sentence, 110)}."
            keepers = _list_keepers(evidence, message.who)
            return _Overwriter(message.who, told, evidence.quote_message(message), keepers)
    return None


def _find_other_write(evidence: Evidence, writes: list[_Write], one: _Write, two: _Write) -> _Overwriter | None:
    """Return the agent whose own call writes another value there, again and again, between the two writes."""
    if _STATES.fullmatch(one.field):
        return None  # a state is set back and forth by a rule of the work
    others = [
        each for each in writes
        if each.entry.agent != one.entry.agent and each.field == one.field and _is_other(each.value, one.value)
        and dict(each.object).items() & dict(one.object).items() and one.is_about(dict(each.object))
    ]  # fmt: skip
    between = [each for each in others if one.entry.index < each.entry.index < two.entry.index]
    # A single other value may be a correction.
    if not between or sum(each.value == between[-1].value for each in others) < _LEAST_TURNS:
        return None
    last = between[-1]
    told = (
        f"In between, {_name_agent(last.entry.agent)}'s {tool_phrase(last.entry)}{clock(last.entry.ts)} wrote "
        f"{code(last.value, 60)} there, not for the first time."
    )
    return _Overwriter(last.entry.agent, told, evidence.quote_call(last.entry), _list_keepers(evidence, last.entry.agent))


def _list_keepers(evidence: Evidence, who: str) -> list[str]:
    """Return the tools or options that an agent's messages name to keep a value from it."""
    said = (message for message in evidence.messages if message.who == who and message.by == "agent")
    sentences = (each for message in said for each in split_sentences(message.text) if _KEEPS.search(each))
    names = [name for each in sentences if not ORDERS.search(each) for name in find_names(each)]
    return [name for name in dict.fromkeys(names) if _TOOL.fullmatch(name) and _IS_KEEPER.search(name)][:2]


def _uses(entry: EntryView, keepers: list[str]) -> bool:
    return any(
        entry.action == name or contains_word(name, command_of(entry)) or name.lstrip("-") in fields_of(entry)
        for name in keepers
    )


def _name_objects(objects: list[tuple[tuple[str, str], ...]]) -> str:
    """Return the objects in words: of each the argument that tells it from others, mostly its id."""
    names: list[str] = []
    for each in objects:
        fair = [value for _, value in each if plain_name(value)]
        names += sorted(fair, key=lambda value: not any(map(str.isdigit, value)))[:1]
    return join_names(dict.fromkeys(names), 4)


def _explain_lost_write(
    kind: str, evidence: Evidence, writes: tuple[_Write, _Write], lost: tuple[EntryView, str] | None, by: _Overwriter,
    objects: str,
) -> Diagnosis:  # fmt: skip
    one, two = writes
    maker, other = _name_agent(two.entry.agent), _name_agent(by.who)
    field, own = code(one.field, 40), _name_objects([one.object])
    cause = (
        f"What {maker} writes into {field}{f' of {own}' if own else ''} is written over: its {tool_phrase(two.entry)}"
        f"{clock(two.entry.ts)} is the same as the one{clock(one.entry.ts)}"
    )
    quotes = [evidence.quote_call(two.entry), by.quote]
    if lost is not None:
        cause += f", and in between {evidence.source(lost[0])} showed the old value again, {code(lost[1], 60)}"
        quotes.append(evidence.quote(lost[0]))
    keep = (
        f"use what {other} names to keep a value from it, {join_names(by.keepers)}, for {field} of {objects or 'it'}, or agree"
        f" with {other}"
        if by.keepers
        else f"agree with {other} who writes {field}{f' of {objects}' if objects else ''}, or ask the user"
    )
    step = f"Before the next write, {keep}. Then write it once more, and read it after {other}'s next turn."
    return diagnosis(
        kind, f"{cause}. {by.told}", step, *quotes, check=f"{field} must keep its value after {other}'s next turn.",
        confidence="high" if lost is not None and by.keepers else "medium",
    )  # fmt: skip
