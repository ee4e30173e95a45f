"""Find the name that took the place of one that a refused call still uses.

A quote has a successor, an offer was withdrawn for another one, a service code was renamed: somebody said so, or an answer
shows it beside the old name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, split_command
from ctxmgr.diagnose.evidence.items import find_objects
from ctxmgr.diagnose.evidence.messages import name_message, split_sentences
from ctxmgr.diagnose.evidence.texts import capital, code, plain_name
from ctxmgr.diagnose.related.arguments import Alternative, mask_digits
from ctxmgr.diagnose.related.definitions import list_values
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

_CODED = lazy_pattern(r"(?=[\w./@:-]*[\d_./@:-])[A-Za-z][\w./@:-]{2,60}(?<![./:-])")
"""A name that is no word: it has a digit or a sign in it."""
_NEWER = lazy_pattern(
    r"(?i)\b(?:successor|replac(?:es?|ed|ement)|supersed\w+|instead|is now|are now|now (?:has|have|under|is)|moved|re-?issued"
    r"|renamed|withdrawn|no longer|took (?:its|the) place|in place of|obsolete|expired|closed|cancell?ed|void)\b"
)
"""Words with which people say that one thing took the place of another."""
_WAS = r"(?:\b(?:was|formerly|previously|former|old(?: name| code| id)?|replaces|instead of|in place of|supersedes)\b)"
_BECAME = (
    r"(?:\b(?:is now|now|became|moved to|(?:was |is )?(?:renamed|replaced|superseded)(?: to| by| with| as)?|successor:?"
    r"|use)\b|->|→)"
)
_NAMES_NEWER = lazy_pattern(
    r"(?i)(?:superseded|replaced)_?by|successor(?:_?id)?|(?:moved|renamed|migrated)_?to|merged_?into|new_?id"
)
"""A member of JSON that holds the newer name."""
_WORDS = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_COMMON, _LEAST_VALUE = ("id", "no", "number", "code", "date", "day", "time", "name", "ref"), 4
"""Ends of an argument's name that alone say little, and the least characters of a value that can be out of date."""
_MOST_TEXT, _MOST_LINE, _MOST_NAMES, _BETWEEN = 12_000, 400, 12, 40


class _Newer(NamedTuple):
    """A newer name, the older one, and who says so. ``sure``: both are named, and which of them took the other's place."""

    name: str
    old: str
    source: str
    sure: bool = True


def find_newer_name(evidence: Evidence, steps: Sequence[EntryView]) -> Alternative | None:
    """Return that another name took the place of one in a failing call, if no such call has used it."""
    if not evidence.has_failed(steps[0]):
        return None
    used = "\n".join(call_input(each) for each in evidence.recent if each.action == steps[0].action)
    for old in _list_names(steps[0]):
        for found in (*_find_in_messages(evidence, steps[0], old), *_find_in_answers(evidence, steps[0], old)):
            if plain_name(found.name) and found.name not in used and found.name != old:
                took = "as what took" if found.sure else "which may have taken"
                return Alternative(
                    f"{capital(found.source)} names {code(found.name, 60)}, {took} the place of {code(old, 60)}.",
                    f"Make the call with {code(found.name, 60)} in place of {code(old, 60)}, if that is what the task means.",
                    alone=True,
                )
    return _find_renewed(evidence, steps[0])


def _find_renewed(evidence: Evidence, step: EntryView) -> Alternative | None:
    """Return the new value that somebody told for an argument: "the PIN sent on Monday is void, new release PIN 902318"."""
    own = {} if command_of(step) else fields_of(step)
    values = {name: str(value) for name, value in own.items() if isinstance(value, str | int) and not isinstance(value, bool)}
    for name, value in values.items():
        label = "[ _-]?".join(_WORDS.findall(name)[-2:] if name.casefold().endswith(_COMMON) else _WORDS.findall(name)[-1:])
        if not label or len(value) < _LEAST_VALUE or not any(map(str.isdigit, value)) or not plain_name(value):
            continue
        form = "".join(r"\d" if each.isdigit() else "[A-Z]" if each.isalpha() else re.escape(each) for each in value)
        told = re.compile(
            rf"(?i)\bnew (?:\w+ ){{0,2}}?{label}\b[ :=]{{1,3}}(?:(?:is|no\.?|number|code|now)[ :]{{1,2}}){{0,2}}"
            rf"[`'\"]?({form})(?![\w-])"
        )
        others = [each for key, each in values.items() if key != name and len(each) >= _LEAST_VALUE]
        for message in reversed(evidence.messages):
            match = told.search(message.text[:_MOST_TEXT])
            # What was told of something else names nothing of this call.
            of_call = match is not None and any(each in message.text for each in (value, *others))
            if match is None or not of_call or message.by == "program" or message.who == step.agent or match.group(1) == value:
                continue
            new = match.group(1)
            if any(new in call_input(each) for each in evidence.recent if each.action == step.action):
                continue
            told_by = capital(name_message(message))
            return Alternative(
                f"{told_by} names {code(new, 60)} as the new {code(name, 40)}; the call has {code(value, 60)}.",
                f"Make the call with {code(new, 60)} in place of {code(value, 60)}.",
                alone=True,
            )
    return None


def _list_names(step: EntryView) -> list[str]:
    """Return the names in a call that may be out of date, those with digits first."""
    words = [word for part in split_command(command_of(step)) for word in part[1:]] or list_values(fields_of(step))
    names = dict.fromkeys(word for word in words if _CODED.fullmatch(word) and plain_name(word))
    return sorted(names, key=lambda name: not any(map(str.isdigit, name)))[:_MOST_NAMES]


def _find_in_messages(evidence: Evidence, step: EntryView, old: str) -> Iterator[_Newer]:
    """Yield the names of the same form in messages of others that tell of a change, the newest message first."""
    form = mask_digits(old) if any(map(str.isdigit, old)) and not command_of(step) else ""
    for message in reversed(evidence.messages):
        # Each name splits the messages anew, so most are passed over first.
        speaks = old in message.text or (form and _NEWER.search(message.text))
        if message.by == "program" or message.who == step.agent or not speaks:
            continue
        sentences = split_sentences(message.text)
        for place, sentence in enumerate(sentences):
            around = " ".join(sentences[max(place - 1, 0) : place + 2])
            names = [name for name in _CODED.findall(sentence) if name != old]
            if old in sentence:
                yield from (_Newer(name, old, name_message(message)) for name in names if _follows(sentence, old, name))
            told = _NEWER.search(sentence if old in around else around)
            yield from (
                _Newer(name, old, name_message(message), sure=False)
                for name in names
                if form and told and mask_digits(name) == form
            )


def _follows(text: str, old: str, name: str) -> bool:
    """Whether a text says that a name took the place of the old one: "B (was: A)", "A is now B"."""
    was, new = re.escape(old), re.escape(name)
    return (
        re.search(
            rf"(?i){new}(?![\w-])[^\n]{{0,{_BETWEEN}}}?{_WAS}[^\w\n]{{0,6}}(?:the )?{was}(?![\w-])"
            rf"|{was}(?![\w-])[^\w\n]{{0,4}}(?:\w+ ){{0,3}}?{_BECAME}[^\w\n]{{0,4}}(?:\w+ ){{0,2}}?{new}(?![\w-])",
            text,
        )
        is not None
    )


def _find_in_answers(evidence: Evidence, step: EntryView, old: str) -> Iterator[_Newer]:
    """Yield the names that answers show beside the old one, the newest answer first."""
    was = re.compile(rf"(?i){_WAS}[^\w\n]{{0,6}}{re.escape(old)}(?![\w-])")
    for entry in evidence.entries_before(step.index):
        text = evidence.text(entry)[:_MOST_TEXT]
        if old not in text or not evidence.has_succeeded(entry):
            continue
        source = evidence.source(entry)
        objects = [fields for fields in find_objects(text) if any(old in str(value)[:_MOST_LINE] for value in fields.values())]
        for fields in objects:
            yield from (
                _Newer(value, old, source)
                for name, value in fields.items() if isinstance(value, str) and _NAMES_NEWER.fullmatch(name)
            )  # fmt: skip
            if any(isinstance(value, str) and was.search(value) for value in fields.values()):
                names = (value for value in fields.values() if isinstance(value, str) and _CODED.fullmatch(value))
                yield from (_Newer(name, old, source) for name in names)
        for line in text.split("\n") if not objects else ():
            names = _CODED.findall(line) if old in line and len(line) <= _MOST_LINE else []
            yield from (_Newer(name, old, source) for name in names if name != old and _follows(line, old, name))
