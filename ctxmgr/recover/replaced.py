"""Tell which of several records on one subject is out of date: a later one repeats the look-up or corrects what it said."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ctxmgr.recover.kinds import changes_something, same_call
from ctxmgr.recover.quoting import flat
from ctxmgr.types.view import EntryView, EventView

_CHANGED = re.compile(
    r"\b(?:correct(?:ion|ed)|chang(?:ed|es)|no longer|not any ?more|any ?more|instead|moved|rotated|replac(?:ed|es)|renamed|"
    r"switched|migrated|supersed\w+|obsolete|outdated|deprecated|retired|updated|overrul\w+|revised|withdrawn|revoked|"
    r"used to be|was wrong|is wrong|from now on|as of (?:now|today)|since (?:the|then|today|yesterday)|newly set|new value)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[\w@./:+-]*\d[\w@./:+-]*|\w+(?:[-_./:@]\w+)+|[a-z]+[A-Z]\w+")
_SHARED = 0.6
_READ = 20_000


@dataclass(frozen=True, slots=True)
class Replaced:
    """What took a record's place: the id of the later record; and the index of the earlier entry, or -1 of a message."""

    by: str
    index: int


Told = tuple[EntryView | EventView, str, Collection[str]]
"""A record, what it says of the subject, and the words that it has in common with what is sought."""


def replaced(told: Sequence[Told]) -> dict[str, Replaced]:
    """Return the ids of the records that a later one replaces.

    A later one does when it is the same call with another result, or when it says that something has changed, speaks of
    the same words, and gives another value.
    """
    ordered = sorted(told, key=lambda each: _place(each[0]))
    found: dict[str, Replaced] = {}
    newest: dict[str, EntryView] = {}
    for row, _, _ in reversed(ordered):
        if isinstance(row, EntryView) and row.status != "open" and row.input not in (None, "", {}, []):
            later = newest.setdefault(same_call(row), row) if row.status == "ok" else newest.get(same_call(row), row)
            if later is not row and (row.output, row.error) != (later.output, later.error):
                found[row.id] = Replaced(later.id, row.index)
    for number, later in enumerate(ordered):
        if _CHANGED.search(later[1]):
            for earlier in ordered[:number]:
                row = earlier[0]
                if row.id not in found and _corrects(earlier, later):
                    found[row.id] = Replaced(later[0].id, row.index if isinstance(row, EntryView) else -1)
    return found


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
    return {value.strip(".:").casefold() for value in _VALUE.findall(text)}


def _body(row: EntryView | EventView) -> object:
    return row.data if isinstance(row, EventView) else [row.input, row.error, row.output]


def _place(row: EntryView | EventView) -> int:
    return 2 * row.index + 1 if isinstance(row, EntryView) else 2 * (row.after if row.after is not None else -1) + 2
