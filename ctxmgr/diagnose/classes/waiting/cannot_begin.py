"""The awaited work can't begin or go on: it is switched off, held for a reason, or needs something that nobody offers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.errors.lines import addresses_reader
from ctxmgr.diagnose.evidence import CHECKS, Evidence, call_input, call_key, program_name, start_clause
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, tool_phrase
from ctxmgr.diagnose.evidence.items import Item, answers, find_ids, parse_heads, parse_row
from ctxmgr.diagnose.evidence.messages import forbids, user_sentences
from ctxmgr.diagnose.evidence.nearest_names import find_nearest_recorded
from ctxmgr.diagnose.evidence.texts import (
    ORDERS,
    capital,
    code,
    contains_word,
    find_nearest,
    join_names,
    plain_name,
)
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "cannotBegin"

_WAITS = lazy_pattern(
    r"\b(?:queued|pending|waiting|held|on[ _]hold|blocked|scheduled|submitted|not[ _]started|unscheduled|paused"
    r"|suspended|deferred|starting"
    r"|timed out waiting|created|new)\b|\b0/[1-9]\d*\b",
    re.IGNORECASE,
)
_OFF = (
    r"paused|suspend(?:ed)?|disabled|on_?hold|held|frozen|halted|maintenance(?:_mode)?|draining|cordoned"
    r"|offline|inactive|stopped|deactivated"
)
_OFF_KEY = lazy_pattern(
    rf"(?:is[_ ]?)?(?:{_OFF}|locked|blocked|draft|read[_-]?only|dry[_-]?run|unschedulable|hold)", re.IGNORECASE
)
_COUNT_KEY = lazy_pattern(
    r"(?:spec\.)?(?:replicas|(?:desired|max|target)[_ -]?(?:count|replicas|capacity|workers|instances|size|concurrency|runs)?"
    r"|workers|concurrency|parallelism|slots)",
    re.IGNORECASE,
)
_ON_KEY = lazy_pattern(r"(?:is[_ ])?(?:enabled|active|schedulable|running|online|accepting)", re.IGNORECASE)
_OFF_STATE = lazy_pattern(rf"(?:{_OFF})(?:[_ -]\w{{2,20}})?", re.IGNORECASE)
_RESUMES = lazy_pattern(r"resume|unpause|enable|activate|start|suspend=false|publish|scale", re.IGNORECASE)
_NO_REASON = frozenset(("", "null", "none", "false", "true"))
_TRUE, _FALSE = frozenset(("true", "yes", "1", "on")), frozenset(("false", "no", "0", "off"))
_STATE_KEY = lazy_pattern(r"(?:\w{0,20}_)?(?:state|status|phase|mode)", re.IGNORECASE)
_HOLD_KEY = lazy_pattern(r"hold\w*|block\w*|wait\w*|pending\w*|missing\w*|unmet\w*|unsatisfied\w*|depend\w*", re.IGNORECASE)
_REASON_KEY = lazy_pattern(
    r"reason|missing|input|needs?\w*|requires?\w*|wait\w*|block\w*|hold\w*|depend\w*|after|message|detail|unmet\w*",
    re.IGNORECASE,
)
_LACKS_KEY = lazy_pattern(r"missing|input|needs|requires|unmet|depends", re.IGNORECASE)
_WANTS_KEY = lazy_pattern(
    r"(?:needs?|requires?|wants?|runs[_-]on|requested)(?:[_ -]?\w{2,20})?|(?:node_?)?selector|queue|pool|label|class",
    re.IGNORECASE,
)
_OFFERS_KEY = lazy_pattern(
    r"(?:labels?|tags?|queues?|pools?|class(?:es)?|capabilit\w+|partitions?|runners?|zones?|sizes?|names?)", re.IGNORECASE
)
_LEAST_LOOKS, _MOST_STATES, _MOST_TEXT, _MOST_HEADS = 3, 2, 4_000, 40
"""Looks at one thing, states that they show, characters of a look's answer, and newest entries that may be heads of tables."""
_QUOTED, _MOST_REASONS, _MOST_REASON_WORDS = 60, 4, 3
"""Characters of a quoted value, reasons that are shown, and words of one that is no sentence."""
_WORD = lazy_pattern(r"[A-Za-z][\w.-]{3,60}")
_COMMON = word_set(
    "sleep curl grep head tail status list show view describe wait jobs state runs timeout json name output kubectl airflow "
    "docker dags https http localhost null true false"
)


_AWAITS = lazy_pattern(r"wait|watch|rollout status|poll|follow|sync|status", re.IGNORECASE)


class _Poll(NamedTuple):
    """A poll: the last look, the number of looks, the names that they are about, and whether the answers say that it waits."""

    last: EntryView
    times: int
    names: set[str]
    waits: bool = True


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return why the awaited work does not begin."""
    poll = _find_poll(evidence)
    if poll is None:
        hung = evidence.open_calls if evidence.finding is None or evidence.finding.severity == "hung" else []
        waits = [_Poll(each, 1, _list_look_names(each)) for each in hung if _AWAITS.search(each.action + command_of(each))]
        found = next((found for each in waits if (found := _diagnose_disabled(evidence, each)) is not None), None)
        if found is not None:
            return found
        same = next((each for each in evidence.repeated_calls if not CHECKS.search(command_of(each))), None)
        frozen = None if same is None else _Poll(same, len(evidence.equal_calls(same)), _list_look_names(same), waits=False)
        return None if frozen is None else _diagnose_disabled(evidence, frozen)
    return _diagnose_hold(evidence, poll) or _diagnose_disabled(evidence, poll) or _diagnose_missing_value(evidence, poll)


def _find_poll(evidence: Evidence) -> _Poll | None:
    """Return the look at one thing that is repeated to the end of the record and always finds the same waiting state."""
    looks = [entry for entry in evidence.tail if entry.status in ("ok", "error") and not CHECKS.search(command_of(entry))]
    waiting = [entry for entry in looks if len(said := evidence.text(entry)) < _MOST_TEXT and _WAITS.search(said)]
    # Work that waited long ago may run by now.
    if not waiting or evidence.is_past(waiting[-1]):
        return None
    last = waiting[-1]
    own = _list_look_names(last)
    # Looks at one thing run the same program and share a name.
    same = [entry for entry in waiting if program_name(entry) == program_name(last) and own & _list_look_names(entry)]
    # If the very same call is repeated often enough, other looks have fewer of its names.
    equal = [entry for entry in same if call_key(entry) == call_key(last)]
    same = equal if len(equal) >= _LEAST_LOOKS else same
    name_counts = Counter(name for entry in same for name in own & _list_look_names(entry))
    shared = {name for name, times in name_counts.items() if times == len(same)} or {
        name for name, times in name_counts.items() if times >= _LEAST_LOOKS
    }
    states = {
        " ".join(sorted({match.group(0).casefold() for match in _WAITS.finditer(evidence.text(entry))}))
        for entry in same[-_LEAST_LOOKS:]
    }
    # More than two states show that it moves.
    if len(same) < _LEAST_LOOKS or len(states) > _MOST_STATES or not shared:
        return None
    rows = [line for line in evidence.text(last).split("\n") if _WAITS.search(line)]
    shared |= find_ids("\n".join(rows))
    return _Poll(last, len(same), shared)


def _list_look_names(entry: EntryView) -> set[str]:
    """Return the ids and other names in the input of a look."""
    return find_ids(call_input(entry)) | {word for word in _WORD.findall(call_input(entry)) if word.casefold() not in _COMMON}


def _find_subject(poll: _Poll, item: Item) -> str | None:
    """Return the name that an item is about: an id anywhere in it, or a plain word as its first value, name or key."""
    firsts = {*list(item.fields.values())[:1], item.fields.get("name", ""), item.fields.get("id", ""), item.key}
    # Ids first, because a plain word may occur in any row.
    for name in sorted(poll.names, key=lambda each: (not re.search(r"[\d_-]", each), -len(each), each)):
        if name in firsts or (re.search(r"[\d_-]", name) and contains_word(name, item.text)):
            return name
    return None


def _describe_poll(poll: _Poll) -> str:
    if poll.last.status == "open":
        return f"{capital(call_phrase(poll.last, 80))}{start_clause(poll.last)} has not returned, and waiting can't change it"
    return (
        f"{code(command_of(poll.last) or tool_phrase(poll.last), 80)} was answered {poll.times} times"
        f" {'that it waits, and waiting' if poll.waits else 'alike, and asking again'} can't change it"
    )


def _list_items(evidence: Evidence) -> Iterator[tuple[EntryView, Item]]:
    """Yield the items of the answers, and the rows of tables whose head was shown separately."""
    for entry, item in answers(evidence):
        yield entry, item
    for head in evidence.latest[:_MOST_HEADS]:
        heads = parse_heads(evidence.text(head)[:600])
        for entry in evidence.latest[:_MOST_HEADS] if heads else ():
            # One call may show the head of a table, and the next its rows, as with `grep`.
            if entry.index != head.index and program_name(entry) == program_name(head):
                for line in evidence.text(entry)[:_MOST_TEXT].split("\n"):
                    if (fields := parse_row(line, heads)) is not None:
                        yield entry, Item("", fields, "")


def _diagnose_disabled(evidence: Evidence, poll: _Poll) -> Diagnosis | None:
    """Say that an answer about the awaited work shows it as switched off."""
    seen: set[str] = set()
    for entry, item in _list_items(evidence):
        name = _find_subject(poll, item)
        if name is None:
            continue
        for key, value in item.fields.items():
            # A state with a reason beside it is described by the reason.
            off = _is_off(key, value) or (_STATE_KEY.fullmatch(key) and _OFF_STATE.fullmatch(value) and not _find_reasons(item))
            known = key in seen
            seen.add(key)
            if not off or known or _is_resumed(evidence, entry, name):
                continue  # a newer answer differs, or nobody has looked since it was switched on
            own = item.fields.get("name") or item.fields.get("id") or ""
            return _diagnose_switch(evidence, poll, entry, item, own if plain_name(own) else name, key)
    return None


def _is_off(key: str, value: str) -> bool:
    """Whether a member says that a thing is switched off, held, or to have no copies."""
    folded = value.casefold()
    return (
        (_OFF_KEY.fullmatch(key) is not None and folded in _TRUE)
        or (_ON_KEY.fullmatch(key) is not None and folded in _FALSE)
        or (_COUNT_KEY.fullmatch(key) is not None and value == "0")
        or (key == "ready" and value == "0/0")
    )


_BESIDE = lazy_pattern(
    r"\b(?:held|hold|pause[ds]?|suspend\w*|fro?zen?|freeze|disabled?|switched off|stopped|locked|maintenance|resume[ds]?)\b",
    re.IGNORECASE,
)
_STAYS = lazy_pattern(
    r"\b(?:keep|leave|stays?|remains?|until|not (?:resume|unpause|enable|start|touch|scale))\b", re.IGNORECASE
)
_VERBS = (
    ("kubectl", "paused", "kubectl rollout resume {}"),
    ("kubectl", "unschedulable", "kubectl uncordon {}"),
    ("flux", "suspend", "flux resume {}"),
    ("airflow", "is_paused", "airflow dags unpause {}"),
    ("gh", "isdraft", "gh pr ready {}"),
)
"""Calls that switch a thing on, by program and member."""


def _diagnose_switch(evidence: Evidence, poll: _Poll, entry: EntryView, item: Item, name: str, key: str) -> Diagnosis:
    """Say that a member holds a thing up, what is written beside it, and how to change it."""
    switch, thing = code(f"{key}: {item.fields[key]}", _QUOTED), code(name, _QUOTED)
    cause = f"{_describe_poll(poll)}. {capital(evidence.source(entry))} shows {switch} for {thing}: so it does not begin."
    lines = [line.partition(": ")[2].strip(" \"',") for line in evidence.text(entry)[:_MOST_TEXT].split("\n")]
    fair = [
        each
        for each in [*item.fields.values(), *lines]
        if _BESIDE.search(each) and len(re.findall(r"[a-z]+ ", each)) > _MOST_REASON_WORDS
    ]
    told = next(
        (each for each in fair if not re.search(r"[{}\[\]]", each) and not ORDERS.search(each) and not addresses_reader(each)),
        None,
    )
    cause += f" Beside it stands {code(told, 110)}." if told is not None else ""
    quotes = [evidence.quote(entry), evidence.quote(poll.last)]
    check = "Its state must move on."
    words = (sentence for _, sentence in user_sentences(evidence) if name in sentence)
    stays = next((each for each in words if _STAYS.search(each) and (_BESIDE.search(each) or forbids(each))), None)
    if stays is not None:
        cause += f" The user said: {code(stays, 110)}."
        step = f"Stop polling, and leave {switch} as it is: tell the user that {thing} can't go on before it is changed."
        return diagnosis(KIND, cause, step, *quotes, check=check)
    # The poll names the kind of the thing, as in `deploy/api`.
    typed = next((word for word in command_of(poll.last).split() if word.endswith(f"/{name}") and plain_name(word)), name)
    verb = next((text for program, member, text in _VERBS if program == program_name(poll.last) and member == key), "")
    space = (
        re.search(r" (?:-n|--namespace)[ =][\w.-]{1,60}(?= )", command_of(poll.last)) if verb.startswith("kubectl") else None
    )
    verb = f"{verb.format(typed)}{space.group(0) if space else ''}"
    step = (
        f"Stop polling. {thing} stays so until {switch} is changed: resume, un-pause or enable it"
        f"{f', with {code(verb, 100)},' if verb else ','} if the user's task covers"
        " that, else ask the user whether you may; then look at its state once."
    )
    return diagnosis(KIND, cause, step, *quotes, check=check)


def _is_resumed(evidence: Evidence, shown: EntryView, name: str) -> bool:
    """Whether a later call that names a thing switched it on."""
    later = (each for each in evidence.recent if each.index > shown.index and each.status == "ok" and name in call_input(each))
    return any(_RESUMES.search(f"{each.action} {call_input(each)}") for each in later)


def _find_reasons(item: Item) -> dict[str, str]:
    return {
        key: value for key, value in item.fields.items()
        if value not in _NO_REASON and (_REASON_KEY.fullmatch(key) or _HOLD_KEY.fullmatch(item.key))
    }  # fmt: skip


def _diagnose_hold(evidence: Evidence, poll: _Poll) -> Diagnosis | None:
    """Say why it is held, by the members of its own answer, and what the record offers for the missing part."""
    for entry, item in answers(evidence):
        # The reason must be in the answer that says it waits.
        if (
            program_name(entry) != program_name(poll.last)
            or _find_subject(poll, item) is None
            or not _WAITS.search(evidence.text(entry))
        ):
            continue
        reasons = dict(sorted(_find_reasons(item).items(), key=lambda each: _LACKS_KEY.match(each[0]) is None))
        named = [value for value in reasons.values() if plain_name(value) and re.search(r"[\d_./-]", value)]
        # If it names nothing, the reason does not say what to provide.
        if not reasons or not named or not (_HOLD_KEY.fullmatch(item.key) or any(_HOLD_KEY.fullmatch(key) for key in reasons)):
            continue
        stated = ", ".join(
            f"{code(key, 30)} {code(value, _QUOTED)}"
            for key, value in list(reasons.items())[:_MOST_REASONS]
            if len(value.split()) <= _MOST_REASON_WORDS
        )
        cause = f"{_describe_poll(poll)}: the answer itself says why it is held: {stated}."
        near = find_nearest_recorded(evidence, named[0].rpartition("/")[2], poll.last)
        quotes = [evidence.quote(entry)]
        if near is not None:
            cause += f" {capital(near.source)} has {code(near.name, _QUOTED)}."
            quotes.append(near.quote)
        step = f"Stop polling. Provide what it waits for, {code(named[0], 80)}" + (
            f"; {code(near.name, _QUOTED)} may be it under another name: give it the name that is wanted, or name"
            " that one in the job. If that is not "
            "yours to do, tell the user."
            if near is not None
            else ", or tell the user that it is missing. Then look at the state once."
        )
        return diagnosis(KIND, cause, step, *quotes, check="Its state must move on.")
    return None


def _diagnose_missing_value(evidence: Evidence, poll: _Poll) -> Diagnosis | None:
    """Say that it needs a value that none of the listed ones has."""
    for entry, item in answers(evidence):
        if _find_subject(poll, item) is None:
            continue
        for key, value in item.fields.items():
            # The waiting thing's own name is not what it needs.
            if not _WANTS_KEY.fullmatch(key) or not plain_name(value) or not re.search(r"[a-z]", value) or value in poll.names:
                continue
            offers = _list_offers(evidence, entry, key)
            names = list(dict.fromkeys(each for _, each in offers))
            near = _find_most_similar(value, names)
            # A single name is no list, and a listed value is not missing.
            if len(names) < 2 or value in names or near is None:
                continue
            shown = offers[0][0]
            files = [
                word
                for other in evidence.recent
                if value in call_input(other)
                for word in re.findall(r"[\w./-]{3,80}\.ya?ml\b", call_input(other))
            ]
            where = f" in {code(files[-1], _QUOTED)}" if files and plain_name(files[-1]) else ""
            cause = (
                f"{_describe_poll(poll)}: it wants {code(key, 30)} {code(value, 50)}, and nothing offers that."
                f" {capital(evidence.source(shown))} "
                f"shows {join_names(names, 6)}."
            )
            step = (
                f"Stop polling. Set {code(value, 50)}{where} to one that is there, such as {code(near, 50)}, if"
                " the task allows it, and start it anew; "
                f"else tell the user that nothing with {code(value, 50)} is there."
            )
            return diagnosis(
                KIND, cause, step, evidence.quote(shown), evidence.quote(entry), check="It must leave the state of waiting."
            )
    return None


def _find_most_similar(value: str, names: list[str]) -> str | None:
    """Return the name most similar to a value: one of its parts, else one with the same beginning, else any similar one."""
    parts = re.split(r"[\W_]+", value.casefold())
    within = [each for each in names if set(re.split(r"[\W_]+", each.casefold())) <= set(parts)]
    begins = [each for each in names if re.split(r"[\W_]+", each.casefold())[0] == parts[0]]
    return max(within, key=len, default=None) or find_nearest(value, begins, 0.4) or find_nearest(value, names, 0.4)


def _list_offers(evidence: Evidence, asked: EntryView, key: str) -> list[tuple[EntryView, str]]:
    """Return the offers in listings of the same program: labels for a wanted label, else anything of a similar kind."""
    found = [
        (entry, name.casefold(), each)
        for entry, listing in answers(evidence)
        if entry.index != asked.index and program_name(entry) == program_name(asked)
        for name, values in listing.fields.items()
        if _OFFERS_KEY.fullmatch(name)
        for each in re.split(r"[,\s]+", values)
        if plain_name(each)
    ]
    same = [(entry, each) for entry, name, each in found if name.rstrip("s") in key.casefold()]
    return same or [(entry, each) for entry, _, each in found]
