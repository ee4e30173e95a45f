"""Two agents wait for a file each, and neither makes the other's: by calls that look for it, or as each said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, only_looks, path_of
from ctxmgr.diagnose.evidence.messages import forbids, split_sentences, user_sentences
from ctxmgr.diagnose.evidence.texts import agent_name, capital, code, contains_word, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.related_lines import find_names
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

LEAST_LOOKS, LAST_ENTRIES = 3, 16
"""Looks in a row that are no work, and newest entries in which they are counted."""
_LEAST_WAITS = 2
"""Looks in a row of an agent that has said what it waits for."""

_LOOK = lazy_pattern(r"sleep|poll|wait|log|fetch|cat|tail|grep|status|get|list|read|show|diff|check|view", re.IGNORECASE)
_FETCHES = lazy_pattern(r"(?:sleep \d+\s*(?:&&|;)\s*)?git fetch\b(?!.*\b(?:push|commit|merge|rebase)\b)")
# `until [ -f a.txt ]; do sleep 1; done`
_AWAITS = lazy_pattern(r"\b(?:until|while)\s+!?\s*(?:\[\[?|test)\s+!?\s*-[efs]\s+[\"']?([\w./-]{2,80})")
_WATCHES = lazy_pattern(r"\b(?:inotifywait|fswatch|entr|watchman-wait|wait-on)\b|^\s*(?:test|\[)\s+!?\s*-[efs]\s")
_ABSENT = lazy_pattern(r"(?i)no such file|not found|does not exist")


def is_look(entry: EntryView) -> bool:
    """Whether a call looks for news, by its name or its command."""
    call = command_of(entry) or entry.action
    return (_LOOK.search(call) is not None and not may_change(entry)) or _FETCHES.match(call) is not None


def diagnose_awaited_files(kind: str, evidence: Evidence, agents: set[str]) -> Diagnosis | None:
    """Say that two agents only wait for a file each, which is not there, so that neither makes the other's."""
    last = list(evidence.recent)[-LAST_ENTRIES:]
    awaited: dict[str, tuple[str, EntryView]] = {}
    for agent in sorted(agents):
        own = [entry for entry in last if entry.agent == agent][-LEAST_LOOKS:]
        files = {_find_awaited_file(evidence, entry) for entry in own}
        # An agent that does anything else in between goes on.
        if len(own) == LEAST_LOOKS and len(files) == 1 and (file := files.pop()):
            awaited[agent] = file, own[-1]
    if len(awaited) != 2 or len({file for file, _ in awaited.values()}) < 2:
        return None
    mine = evidence.agent if evidence.agent in awaited else min(awaited)
    other = next(agent for agent in awaited if agent != mine)
    (needed, own), (asked, theirs) = awaited[mine], awaited[other]
    me, them, first, second = agent_name(mine), agent_name(other), code(needed, 60), code(asked, 60)
    cause = (
        f"{me} and {them} wait for each other: {me} only waits for {first} and {them} only for {second}. Neither is there, and"
        " neither agent makes one while it waits."
    )
    step = _make_first(first, second, them)
    return diagnosis(kind, cause, step, evidence.quote(own), evidence.quote(theirs), check=f"{first} must come after that.")


def _make_first(first: str, second: str, them: str) -> str:
    """Return the step that ends a wait for two files, if nobody said which of them comes first."""
    return (
        f"End the wait: make {second} yourself now, as far as that goes without {first}, within what the user asked for, and"
        f" tell {them}. If {first} has to come first, ask {them} for it in one message; if nobody can be first, put both sides"
        " to the user."
    )


def _find_awaited_file(evidence: Evidence, entry: EntryView) -> str:
    """Return the file that a call waits for in vain; "" if it waits for none.

    That is the file of a loop in a shell, or one that the user named and that the call does not find.
    """
    if entry.status == "ok" and not evidence.has_failed(entry):
        return ""
    match = _AWAITS.search(command_of(entry))
    if match is not None:
        return match[1]
    looked = path_of(entry) or command_of(entry).rpartition(" ")[2]
    missing = is_look(entry) and _ABSENT.search(evidence.text(entry)) is not None
    return looked if missing and plain_name(looked) and evidence.was_said_by_user(looked.rpartition("/")[2]) else ""


_UNTIL = lazy_pattern(r"\b(?:as soon as|once|until|when|after|before|wait(?:ing|s)? (?:for|on))\b", re.IGNORECASE)
_FILE = lazy_pattern(r"(?<![\w/.-])[\w/-]{1,60}\.[a-z]\w{0,8}(?![\w/])")
_LETTERS = lazy_pattern(r"[A-Za-z]{4,}")
_MAY = lazy_pattern(r"\b(?:may|can|could|allowed|enough|suffices?|will do|fine|ok(?:ay)?|instead)\b", re.IGNORECASE)


class _Promise(NamedTuple):
    """What an agent said it waits for: a file of another one."""

    who: str
    file: str
    sentence: str
    message: Message

    @property
    def told(self) -> str:
        """Its words, as the beginning of a sentence."""
        return f"{capital(agent_name(self.who))} said{clock(self.message.at)}: {code(self.sentence, 130)}."


def diagnose_promised_files(kind: str, evidence: Evidence, agents: set[str]) -> Diagnosis | None:
    """Say that two agents each wait for a file of the other, as both said, and what the user allows meanwhile."""
    promises = [each for agent in sorted(agents) if (each := _find_promise(evidence, agent, agents)) is not None]
    for one in promises:
        for two in promises:
            crossed = contains_word(two.who, one.message.text) and contains_word(one.who, two.message.text)
            if one.who < two.who and one.file != two.file and crossed:
                return _explain_promises(kind, evidence, one, two)
    return None


def _find_promise(evidence: Evidence, agent: str, agents: set[str]) -> _Promise | None:
    """Return what an agent waits for by its newest message about a file, if it has only looked for that since."""
    own = [entry for entry in list(evidence.recent)[-LAST_ENTRIES:] if entry.agent == agent][-_LEAST_WAITS:]
    if len(own) < _LEAST_WAITS or not all(_is_waiting(entry) for entry in own):
        return None
    for message in reversed(evidence.messages):
        if message.who != agent or message.by != "agent" or "thought" in message.kind:
            continue
        for sentence in split_sentences(message.text):
            after = _UNTIL.search(sentence)
            file = None if after is None else _FILE.search(sentence, after.end())
            # Waiting for a person's file is no circle.
            if file is None or not any(contains_word(other, sentence) for other in agents - {agent}):
                continue
            named = any(_names_place(entry, file[0]) for entry in own)
            since = -1 if message.after is None else message.after
            return _Promise(agent, file[0], sentence, message) if named and _is_missing(evidence, file[0], since) else None
    return None


def _is_waiting(entry: EntryView) -> bool:
    command = command_of(entry)
    return only_looks(entry) or is_look(entry) or (_WATCHES.search(command) is not None and ">" not in command)


def _names_place(entry: EntryView, file: str) -> bool:
    """Whether a call names a file, its folder or its name without its ending."""
    folder, _, name = file.rpartition("/")
    places = [file, name, folder, name.partition(".")[0]]
    return any(place and contains_word(place, call_input(entry).replace("*", " ")) for place in places)


def _is_missing(evidence: Evidence, file: str, since: int) -> bool:
    """Whether no call since has shown a file, or may have made it."""
    name = file.rpartition("/")[2]
    later = [entry for entry in evidence.recent if entry.index > since]
    shown = (contains_word(name, evidence.text(each)) and not _ABSENT.search(evidence.text(each)) for each in later)
    made = (name in call_input(each) and not _is_waiting(each) for each in later)
    return not any(shown) and not any(made)


def _explain_promises(kind: str, evidence: Evidence, one: _Promise, two: _Promise) -> Diagnosis:
    first, second = agent_name(one.who), agent_name(two.who)
    cause = f"{first} and {second} wait for each other's file. {one.told} {two.told}"
    cause += " No call has shown either, and both only look for it."
    quotes = [evidence.quote_message(each.message, each.sentence) for each in (one, two)]
    mine, theirs = (one, two) if evidence.agent != two.who else (two, one)
    needed, asked = code(mine.file, 60), code(theirs.file, 60)
    way = _find_way_out(evidence, (one, two))
    if way is None:
        step = _make_first(needed, asked, agent_name(theirs.who))
        return diagnosis(kind, cause, step, *quotes, check=f"{needed} must come after that.")
    free, bound, message, sentence, names = way
    who, other = agent_name(free.who), agent_name(bound.who)
    using = f" with {code(names[0], 60)}" if names else ""
    told = "do that" if mine is free else f"tell {who} so"
    step = (
        f"End the wait by what the user said{clock(message.at)}: {code(sentence, 150)}. By that {who} need not wait for "
        f"{code(free.file, 60)}, and can make {code(bound.file, 60)} now{using}: {told}, and then {other} goes on from it."
    )
    quotes.insert(0, evidence.quote_message(message, sentence))
    return diagnosis(kind, cause, step, *quotes, check=f"{code(bound.file, 60)} must be there after that.")


def _find_way_out(
    evidence: Evidence, promises: Sequence[_Promise]
) -> tuple[_Promise, _Promise, Message, str, list[str]] | None:
    """Return who need not wait, for whom it works then, and the user's words that allow another thing of that kind."""
    for message, sentence in user_sentences(evidence):
        if not _MAY.search(sentence) or forbids(sentence):
            continue
        folded = sentence.casefold()
        free = [
            each for each in promises
            if any(word.casefold() in folded for word in _LETTERS.findall(each.file.rpartition("/")[2].partition(".")[0]))
        ]  # fmt: skip
        # A sentence about both, or about the awaited file itself, allows nothing else.
        if len(free) == 1 and not contains_word(free[0].file.rpartition("/")[2], sentence):
            bound = next(each for each in promises if each is not free[0])
            return free[0], bound, message, sentence, [name for name in find_names(sentence) if _FILE.fullmatch(name)]
    return None
