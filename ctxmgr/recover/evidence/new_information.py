"""Tell whether a record adds something that the problem does not say itself, and which of several is out of date."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, TypeGuard, cast

from ctxmgr.detect.text.fingerprints import word_set
from ctxmgr.light_dataclass import dataclass
from ctxmgr.recover.evidence.excerpts import Row
from ctxmgr.recover.evidence.quotes import answer_text, flat
from ctxmgr.recover.evidence.records import changes_something, same_call, texts, words
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.view import EntryView, EventView

_LOOKED_AT = 8_000
_SAME = 0.6
_COUNT = lazy_pattern(r"(?<![\w.:/-])\d{1,6}(?![\w.:/-])")
_DIGITS = lazy_pattern(r"\d+")
# A value as programs write it: with a digit, or words joined by a mark, or a capital in mid-word.
_VALUE = lazy_pattern(
    r"(?=[\w@/.:~+=-]{0,80}(?:\d|\w[_/:@=~+.-]\w|[a-z][A-Z]))(?:[\w~/@-][\w@/.:~+=-]{1,160})|\"[^\"\n]{2,80}\"|'[^'\n]{2,80}'"
)
_ADVICE = lazy_pattern(
    r"(?:^|[.!:;,\n-]\s{0,3}|\b(?:please|then|and|just|first)\s)(?:set|try|run|pass|call|"
    r"start|stop|remove|add|take|write|switch)\b|"
    r"\b(?:use|using|instead|needs?|must|have to|has to|only (?:works?|with)|requires?|should|caused? by|because|due to|"
    r"turned out|fix(?:ed|es)?|helps?|helped|works? (?:with|when|if))\b",
    re.IGNORECASE,
)
_NOT_KNOWN = lazy_pattern(
    r"\b(?:forg[eo]t|(?:do|does|did)(?: not|n't) (?:know|remember|recall)|not sure|unsure|no idea|unclear|undecided|unknown|"
    r"t\.?b\.?[adc]|to be (?:decided|determined|announced|confirmed)|not (?:yet|been) (?:known|decided|settled|fixed|set|"
    r"assigned|agreed|published)|yet to be|still (?:open|pending|arguing|discussing|deciding|debating|waiting|looking)|"
    r"will (?:tell|announce|decide|settle|let \w+ know|come back)|wants? to (?:decide|settle|discuss|agree)|"
    r"(?:is|are|will be|gets?) \w{3,20} (?:when|once|as soon as|after) (?:the|it|they|this|that)|"
    r"next (?:week|month|quarter)|no longer (?:know|have))\b",
    re.IGNORECASE,
)


def states(line: str, forms: Sequence[Sequence[str]], question: str) -> bool:
    """Whether a line holds every word that a question asks by, each in some form, and a value that the question does not.

    A line that asks itself, or says that it is not known, states nothing.
    """
    said = line.casefold()
    if not all(any(form in said for form in each) for each in forms):
        return False
    return not line.rstrip().endswith("?") and not _NOT_KNOWN.search(line) and _has_value(line, question.casefold())


def news(row: Row, known: str) -> bool:
    """Whether a record says what ``known``, the words of the trouble or question itself, does not.

    Who failed in the same way, or says that it is not known yet, tells nothing that helps. What worked, or a failure of
    another kind, or a message, must hold a value that is not known, or, in prose, say what is to be done.
    """
    known = known.casefold()
    if not isinstance(row, EntryView):
        said = words(row.data)[:_LOOKED_AT]
        return not _NOT_KNOWN.search(said) and (_has_value(said, known) or _ADVICE.search(said) is not None)
    came = answer_text(row)[:_LOOKED_AT]
    if _NOT_KNOWN.search(came):
        return False
    if row.status != "ok":
        spoken = _COUNT.sub(" ", came)  # how much failed is no value to try
        return not _is_same(came, known) and (_has_value(spoken, _with_input(row, known)) or _ADVICE.search(came) is not None)
    given = "\n".join(texts(row.input))[:_LOOKED_AT]
    return _has_value(f"{given}\n{came}", known) or _ADVICE.search(came) is not None


def _with_input(row: EntryView, known: str) -> str:
    given = "\n".join(texts(row.input))[:_LOOKED_AT].casefold()
    return f"{known}\n{given}"


def _has_value(text: str, known: str) -> bool:
    return any(value.group().strip("\"'.:/-").casefold() not in known for value in _VALUE.finditer(text))


def _is_same(text: str, known: str) -> bool:
    """Whether most words of an error are known: it is the trouble's own error, met elsewhere."""
    mine = word_set(_DIGITS.sub("0", text.casefold()))
    return bool(mine) and len(mine & word_set(_DIGITS.sub("0", known))) >= _SAME * len(mine)


_CHANGED = lazy_pattern(
    r"\b(?:correct(?:ion|ed)|chang(?:ed|es)|no longer|not any ?more|any ?more|instead|moved|rotated|replac(?:ed|es)|renamed|"
    r"switched|migrated|supersed\w+|obsolete|outdated|deprecated|retired|updated|overrul\w+|revised|withdrawn|revoked|"
    r"used to be|was wrong|is wrong|from now on|as of (?:now|today)|since (?:the|then|today|yesterday)|newly set|new value)\b",
    re.IGNORECASE,
)
_NEW_VALUE = lazy_pattern(r"[\w@./:+-]*\d[\w@./:+-]*|\w+(?:[-_./:@]\w+)+|[a-z]+[A-Z]\w+")
_NAMED = lazy_pattern(
    r"(?P<name>[A-Za-z][\w-]{1,30}(?: [\w-]{1,30}){0,4})(?::| is| =|=) ?(?P<value>[\w@./:+-]*[\w@/+-])", re.ASCII
)
"""A value under its name: "best checkpoint so far: step-7", "host = db2"."""
_PASSING = lazy_pattern(r" (?:so far|now|currently|still|at present|for now)$")
_PIECES = word_set("offset limit page line lines start end cursor skip from to range head tail view_range")
"""Names of arguments that choose a piece of what is looked at."""
_SHARED = 0.6
_READ = 20_000


@dataclass(frozen=True, slots=True)
class SupersededRecord:
    """What took a record's place: the id of the later record; and the index of the earlier entry, or -1 of a message."""

    by: str
    index: int


Told = tuple[EntryView | EventView, str, Collection[str]]
"""A record, what it says of the subject, and the words that it has in common with what is sought."""


def replaced(told: Sequence[Told]) -> dict[str, SupersededRecord]:
    """Return the ids of the records that a later one replaces.

    A later one does when it is the same call with another result, or the same call with more arguments that gives another
    value under the same name; when it says that something has changed, speaks of the same words, and gives another value;
    or when who said the one says the same of another value.
    """
    ordered = sorted(told, key=lambda each: place(each[0]))
    found: dict[str, SupersededRecord] = {}
    newest: dict[str, EntryView] = {}
    for row, _, _ in reversed(ordered):
        if isinstance(row, EntryView) and row.status != "open" and row.input not in (None, "", {}, []):
            later = newest.setdefault(same_call(row), row) if row.status == "ok" else newest.get(same_call(row), row)
            if later is not row and (row.output, row.error) != (later.output, later.error):
                found[row.id] = SupersededRecord(later.id, row.index)
    for number, later in enumerate(ordered):
        for row, _, _ in ordered[:number]:
            if row.id not in found and _looks_anew(row, later[0]):
                found[row.id] = SupersededRecord(later[0].id, row.index)
        says = _CHANGED.search(later[1]) is not None
        for earlier in ordered[:number]:
            row = earlier[0]
            if row.id not in found and (says or _says_again(earlier, later)) and _corrects(earlier, later):
                found[row.id] = SupersededRecord(later[0].id, row.index if isinstance(row, EntryView) else -1)
    return found


def _looks_anew(row: EntryView | EventView, later: EntryView | EventView) -> TypeGuard[EntryView]:
    """Whether an agent repeated a look-up, more precisely, and what it gave has another value under the same name."""
    if not isinstance(row, EntryView) or not isinstance(later, EntryView) or row.status != "ok" or later.status != "ok":
        return False
    if (row.action, row.agent) != (later.action, later.agent) or changes_something(later):
        return False
    if not isinstance(row.input, dict) or not isinstance(later.input, dict):
        return False
    first, second = cast("dict[str, Any]", row.input), cast("dict[str, Any]", later.input)
    if not first or (first.keys() | second.keys()) & _PIECES or any(second.get(name) != first[name] for name in first):
        return False
    old, new = _named(flat(row.output, _READ)), _named(flat(later.output, _READ))
    return any(name in new and new[name] != value for name, value in old.items())


def _says_again(earlier: Told, later: Told) -> bool:
    """Whether the same one says the same again, of another value."""
    row, other = earlier[0], later[0]
    if not isinstance(row, EventView) or not isinstance(other, EventView) or (row.agent, row.type) != (other.agent, other.type):
        return False
    met = set(earlier[2])
    return met <= set(later[2]) and bool(_values(flat(row.data, _READ)))


def _named(text: str) -> dict[str, str]:
    found = {_PASSING.sub("", hit["name"].casefold()): hit["value"].casefold() for hit in _NAMED.finditer(text)}
    return {name: value for name, value in found.items() if " " in name}  # one word alone may be of anything


def _corrects(earlier: Told, later: Told) -> bool:
    row = later[0]
    if isinstance(row, EntryView) and (changes_something(row) or row.status != "ok"):
        return False  # that a file was changed is a receipt, and says nothing about what it held
    if not earlier[2]:
        return False
    shared = len(set(earlier[2]) & set(later[2])) / len(set(earlier[2]))
    new = _values(later[1]) - _values(flat(_body(earlier[0]), _READ))
    return shared >= _SHARED and len(set(later[2])) > 1 and bool(new)


def _values(text: str) -> set[str]:
    return {value.strip(".:").casefold() for value in _NEW_VALUE.findall(text)}


def _body(row: EntryView | EventView) -> object:
    return row.data if isinstance(row, EventView) else [row.input, row.error, row.output]


def place(row: Row) -> int:
    """Return where a record stands in the log, comparable among entries and messages."""
    return 2 * row.index + 1 if isinstance(row, EntryView) else 2 * (row.after if row.after is not None else -1) + 2
