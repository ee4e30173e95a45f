"""Find what the record has instead of a name: the most similar one of its kind, and where it was said or shown.

A person's words precede the contents of outputs, and newer records precede older ones.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence.calls import call_input, command_of, may_change
from ctxmgr.diagnose.evidence.messages import Message
from ctxmgr.diagnose.evidence.session import Evidence
from ctxmgr.diagnose.evidence.texts import clock, contains_word, find_line, plain_name
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Quote
from ctxmgr.types.view import EntryView

_WORD = lazy_pattern(r"[\w@+~./-](?:[\w./:@+-]{0,98}[\w*-])?")
_PART = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_LISTS = lazy_pattern(
    r"\b(?:ls|list\w*|get|show\w*|describe|branch|tags?|remote|images|ps|targets|schema|tables|columns|namespaces"
    r"|search\w*|find\w*|glob|tree|enum\w*|help)\b|\\d|\.schema|--help",
    re.IGNORECASE,
)
"""Calls whose answers are lists of names, so that each word there is a name and not part of a text."""
_LISTED = 0.1
_MOST_TEXT = 12_000
_CODED = lazy_pattern(r"[\d_./:-]")
_LEAST_LIKENESS, _NEARER = 0.7, 0.9
_MOST_SHORT = 3
_VOWEL = lazy_pattern(r"[aeiou]")


class Counterpart(NamedTuple):
    """A name in the record, and its place.

    Attributes:
        source: in words: "the user at 12:03", "your `git branch -a` at 12:03".
        by_user: a person named it.
        given: a call that worked used it.
        alike: 0 to 1.
    """

    name: str
    source: str
    quote: Quote
    by_user: bool
    given: bool
    alike: float
    entry: EntryView | None


_LINE_OF_FILE = lazy_pattern(r"^([^:]*/[^:/]*\.[^:/]+)(?::\d{1,6}){1,2}$")


def find_nearest_recorded(evidence: Evidence, name: str, entry: EntryView) -> Counterpart | None:
    """Return the recorded name most like one that a call named in vain, or None."""
    best: Counterpart | None = None
    parts = _find_name_parts(name)
    stems = {part[:4] for part in parts} | {
        part[:1] + _VOWEL.sub("", part[1:])[:2] for part in parts if len(part) > _MOST_SHORT
    }
    digits = re.sub(r"\D", "", name)
    # The word after FROM or JOIN is a table, not a column that could have been meant.
    of_column = re.search(r"\b(?:column|field)\b", evidence.text(entry)[:400], re.IGNORECASE) is not None
    for text, place in _list_texts(evidence, entry):
        # A text without a stem of the name, or its first consonants (`stg` of `staging`), has no similar name.
        if len(name) > _MOST_SHORT and not any(stem in text.casefold() for stem in stems):
            continue
        lists = isinstance(place, EntryView) and _LISTS.search(command_of(place) or place.action) is not None
        for word in dict.fromkeys(_WORD.findall(text[:_MOST_TEXT])):
            alike = (
                0.0
                if len(word) < 3
                else likeness(name, word) + (_LISTED if lists else 0.0)
                if word[:2].casefold() == name[:2].casefold() or parts & _find_name_parts(word)
                else 0.0
            )
            if isinstance(place, Message):
                alike += 0.04
            if (
                isinstance(place, Message)
                and not _CODED.search(word)
                and not re.search(rf"[`'\"]{re.escape(word)}[`'\"]", text)
            ):
                continue  # a plain word of a person is no such name
            numbered = not isinstance(place, Message) or not any(map(str.isdigit, word))
            if len(digits) >= _MOST_SHORT and numbered and digits != re.sub(r"\D", "", word):
                continue  # another number means another thing, however similar the names are
            if (
                alike < _LEAST_LIKENESS
                or (best is not None and alike <= best.alike)
                or not plain_name(word)
                or (of_column and re.search(rf"(?i)\b(?:from|join|into|update|table)\s+{re.escape(word)}\b", text))
                or _was_tried(evidence, word, entry)
            ):
                continue
            best = _make_counterpart(evidence, word, text, place, alike)
            if alike >= 1:
                return best
    return best


def likeness(one: str, other: str) -> float:
    """Return how similar two names are, 0 to 1. It is 0 for equal names, and for names of different shapes."""
    # A line of a file is no other file: `src/client.go:44`.
    first, second = (_LINE_OF_FILE.sub(r"\1", each.casefold().strip("./")) for each in (one, other))
    if first == second or not second or max(len(first), len(second)) > 2.5 * min(len(first), len(second)):
        return 0.0
    plain = ["".join(filter(str.isalnum, each)) for each in (first, second)]
    # A number is no form of a word, and a file name is no form of a name without an ending.
    if not plain[1] or plain[0].isdigit() != plain[1].isdigit() or (re.search(r"\.\w{1,5}$", second) and "." not in first):
        return 0.0
    # One name in two spellings: `user-id` and `userId`.
    if plain[0] == plain[1]:
        return _NEARER + 0.05
    if (
        len(plain[0]) > 4
        and (plain[1].endswith(plain[0]) or plain[0].endswith(plain[1]))
        and min(len(plain[0]), len(plain[1])) > 4
    ):
        return 0.85
    ratio = difflib.SequenceMatcher(None, first, second, autojunk=False).ratio()
    if any(_is_abbreviation(part, first) for part in re.split(r"[\W_]+", second)) or any(
        _is_abbreviation(part, second) for part in re.split(r"[\W_]+", first)
    ):
        ratio = max(ratio, _LEAST_LIKENESS)
    mine, theirs = _find_name_parts(one), _find_name_parts(other)
    whole = (first.startswith(second) or second.startswith(first)) and len(second) > 0.55 * len(first)
    stems = {part[:4] for part in mine if len(part) > 3} & {part[:4] for part in theirs if len(part) > 3}
    shared = len(mine & theirs) / max(len(mine | theirs), 1)
    return max(
        ratio,
        0.72 if shared >= 0.5 and len(mine & theirs) > 1 else 0.0,
        0.75 if whole and min(len(first), len(second)) > _MOST_SHORT else 0.0,
        ratio + (0.18 if first[:4] == second[:4] else 0.08) if stems else 0.0,
    )


SMALL_WORDS = word_set(
    "at on id ts utc by in of is has was to no nr num dt date time day name key code type kind count flag status state value"
    " text"
)
"""Words that are part of many names, and say nothing of what one is about."""
_ENDING = lazy_pattern(r"(?:ed|ing|ion|e?s|e|y)$")
_LEAST_REST = 0.7


def shares_only_ending(one: str, other: str) -> bool:
    """Whether two names have only small words in common, such as `_at` or `is_`, while their other words are unlike."""
    mine, theirs = _find_name_parts(one), _find_name_parts(other)
    common = mine & theirs
    first, second = (
        "".join(part for each in _PART.findall(name) if (part := each.casefold()) not in common) for name in (one, other)
    )
    if not common or common - SMALL_WORDS or not first or not second:
        return False
    stems = [_ENDING.sub("", each) for each in (first, second)]
    whole = any(each.startswith(rest) and len(rest) >= _MOST_SHORT for each, rest in (stems, stems[::-1]))
    like = difflib.SequenceMatcher(None, *stems, autojunk=False).ratio() >= _LEAST_REST
    return not (whole or like or _is_abbreviation(first, second) or _is_abbreviation(second, first))


def _is_abbreviation(part: str, word: str) -> bool:
    """Whether a part of a name abbreviates a word, as `stg` does `staging`: the first letter, and others in their order."""
    if not _MOST_SHORT <= len(part) < len(word) or not part.isalpha() or not word.isalpha() or part[0] != word[0]:
        return False
    letters = iter(word)
    return all(letter in letters for letter in part) and not any(letter in "aeiou" for letter in part[1:])


def _find_name_parts(name: str) -> frozenset[str]:
    return frozenset(part.casefold() for part in _PART.findall(name[:120]) if len(part) > 1)


def _list_texts(evidence: Evidence, entry: EntryView) -> Iterator[tuple[str, Message | EntryView]]:
    for message in reversed(evidence.user_texts):
        yield message.text, message
    for other in evidence.latest_before(entry.index):
        if evidence.has_succeeded(other):
            # The agent's own recent text may have the same wrong name as its call.
            if other.agent != entry.agent or other.index < evidence.tail[0].index or not may_change(other) or command_of(other):
                yield call_input(other), other
            yield evidence.text(other), other


def _was_tried(evidence: Evidence, word: str, entry: EntryView) -> bool:
    return any(
        contains_word(word, call_input(each))
        for each in evidence.failing_calls
        if evidence.text(each)[:400] == evidence.text(entry)[:400]
    )


def _make_counterpart(evidence: Evidence, word: str, text: str, place: Message | EntryView, alike: float) -> Counterpart:
    line = find_line(text, word, word)
    if isinstance(place, Message):
        return Counterpart(word, f"the user{clock(place.at)}", evidence.quote_message(place, line), True, False, alike, None)
    used = word in call_input(place)
    quote = evidence.quote(place, command_of(place) or line if used else line)
    return Counterpart(word, evidence.source(place), quote, False, used, alike, place)


def find_nearest_offered(name: str, offered: Iterable[str], least: float = 0.6) -> str | None:
    """Return the one of the offered names that is most like a name, or None; ``least`` as in `likeness`."""
    rated = [(likeness(name, each), each) for each in offered if each != name]
    best = max(rated, default=(0.0, ""))
    return best[1] if best[0] >= least else None
