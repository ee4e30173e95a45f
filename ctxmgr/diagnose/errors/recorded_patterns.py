"""Match a text against a pattern from the record, in time that grows slowly with both.

A recorded pattern may be built to take forever (`^(a+)+$`), so `re` never runs it. Only the usual parts of validators'
patterns are supported: characters, classes, and groups of alternatives without inner groups, each with a count.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.text.lazy_pattern import lazy_pattern

_LONGEST = 120
_ONE = r"\[\^?(?:\\[dDwWsS]|\\[^\w\s]|[^\\\[\]\n])+\]|\\[dDwWsS]|\\[^\w\s]|[^\\()\[\]{}*+?|^$\n]"
# A lazy count matches the same whole texts as a greedy one. A possessive count (`a++`) does not, so it is not supported.
_COUNT = r"(?:(?P<sign>[*+?])|\{(?P<least>[0-9]{1,3})(?P<comma>,(?P<most>[0-9]{1,3})?)?\})?\??(?![*+?{])"
_TOKEN = lazy_pattern(rf"(?:(?P<one>{_ONE})|\((?:\?:)?(?P<group>(?:{_ONE}|[*+?|]|\{{[0-9,]{{1,7}}\}})+)\)){_COUNT}")
# `re` warns about these within a class.
_DOUBLE = lazy_pattern(r"--|&&|~~|\|\|")
_SIGNS = {"*": (0, _LONGEST), "+": (1, _LONGEST), "?": (0, 1)}


class _Part(NamedTuple):
    """One part of a pattern and its count: a character, or one of the alternatives of a group."""

    one: re.Pattern[str] | None
    group: tuple[tuple[_Part, ...], ...]
    least: int
    most: int


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches a whole text. False if either is too long, or the pattern has an unsupported part."""
    if max(len(pattern), len(text)) > _LONGEST:
        return False
    choices = _choices(pattern.removeprefix("^").removesuffix("$"), grouped=False)
    return choices is not None and len(text) in _match_ends(choices, text, {0})


def _choices(pattern: str, *, grouped: bool) -> tuple[tuple[_Part, ...], ...] | None:
    """Return the alternatives of a pattern, each as its parts. Only a group may have several."""
    choices: list[list[_Part]] = [[]]
    place = 0
    while place < len(pattern):
        if grouped and pattern[place] == "|":
            choices.append([])
            place += 1
            continue
        token = _TOKEN.match(pattern, place)
        part = _parse_token(token) if token is not None and not (grouped and token["group"]) else None
        if token is None or part is None:
            return None
        choices[-1].append(part)
        place = token.end()
    return tuple(map(tuple, choices))


def _parse_token(token: re.Match[str]) -> _Part | None:
    least, most = 1, 1
    if token["sign"]:
        least, most = _SIGNS[token["sign"]]
    elif token["least"]:
        least = int(token["least"])
        most = int(token["most"]) if token["most"] else _LONGEST if token["comma"] else least
    if token["group"]:
        group = _choices(token["group"], grouped=True)
        return None if group is None else _Part(None, group, least, most)
    if _DOUBLE.search(token["one"]):
        return None
    try:
        return _Part(re.compile(token["one"]), (), least, most)
    # `[z-a]`
    except re.error:
        return None


def _match_ends(choices: tuple[tuple[_Part, ...], ...], text: str, starts: set[int]) -> set[int]:
    """Return the positions at which one of the alternatives may end if it begins at one of these."""
    found: set[int] = set()
    for parts in choices:
        places = starts
        for part in parts:
            places = _match_part_ends(part, text, places)
        found |= places
    return found


def _match_part_ends(part: _Part, text: str, starts: set[int]) -> set[int]:
    found = set(starts) if part.least == 0 else set[int]()
    places = starts
    # After as many rounds as there are characters, nothing is left or nothing changes.
    least = min(part.least, len(text) + 1)
    for count in range(1, min(part.most, len(text) + 1) + 1):
        if part.one is None:
            places = _match_ends(part.group, text, places)
        else:
            places = {place + 1 for place in places if place < len(text) and part.one.match(text[place])}
        if count >= least:
            # A position reached before leads nowhere new.
            places = places - found
            found |= places
        if not places:
            break
    return found
