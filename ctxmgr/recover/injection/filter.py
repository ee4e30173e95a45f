"""Judge whether recorded text reads like instructions to an agent, by the patterns of `patterns.toml`.

A hit means that the text is withheld, so ordinary output, code and manuals must pass; a miss means that the text goes on
inside its fence, marked as not trusted. This is a sieve, not a proof: sentences that give orders in other words than the
tables know pass it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ctxmgr.recover.injection.deobfuscate import LEET, decoded, squeezed, unescaped, unmasked, visible, words_of
from ctxmgr.text.lazy_pattern import lazy_pattern

_LEADS = lazy_pattern(
    r"(?:[.!?:;,>*#\])\"(\[-]\s{0,3}|\n\s{0,4}[*_#<( \[]{0,4}|\b(?:must|should|shall|now|please|immediately|always|instead|"
    r"need to|have to|required to|then|and|will|just|only)\s)$"
)
_LEAD = 16


class Pattern(NamedTuple):
    """One pattern: its name, why a hit is suspicious, the groups of literals that every hit has, and the expression.

    ``led`` patterns count only where a sentence begins or an order is given. ``exact`` ones look at signs and case.
    """

    name: str
    reason: str
    anchors: tuple[tuple[str, ...], ...]
    words: str
    led: bool
    exact: bool


class Patterns(NamedTuple):
    """The patterns of `patterns.toml`, in the order in which they are tried."""

    words: dict[str, str]
    english: tuple[Pattern, ...]
    foreign: tuple[Pattern, ...]
    marks: tuple[Pattern, ...]

    @property
    def orders(self) -> tuple[Pattern, ...]:
        """The patterns of every language."""
        return (*self.english, *self.foreign)


@cache
def patterns() -> Patterns:
    """Return the patterns, read once."""
    data = tomllib.loads(files("ctxmgr.recover.injection").joinpath("patterns.toml").read_text("utf-8"))
    reasons: dict[str, str] = data["reasons"]

    def made(rows: list[dict[str, Any]], *, exact: bool = False) -> tuple[Pattern, ...]:
        return tuple(
            Pattern(
                row["name"],
                reasons[row["reason"]],
                tuple(tuple(_joined(group).split("|")) for group in row["anchors"]),
                _joined(row["words"]),
                row.get("led", False),
                exact,
            )
            for row in rows
        )

    words = {name: _joined(text) for name, text in data["words"].items()}
    return Patterns(words, made(data["english"]), made(data["foreign"]), made(data["mark"], exact=True))


def _joined(text: str) -> str:
    return text.replace("\n", "")


def matches(pattern: Pattern, text: str, *, loose: bool = False) -> bool:
    """Return whether a text holds what the pattern describes; ``loose``: though nothing parts the words.

    A group named ``tag`` is the name of a closing tag: it counts only where more such tags were closed than opened.
    """
    for hit in expression(pattern, loose).finditer(text):
        tag = hit.groupdict().get("tag")
        if tag is not None and text.count(f"<{tag}", 0, hit.start()) > text.count(f"</{tag}", 0, hit.start()):
            continue
        before = text[max(0, hit.start() - _LEAD) : hit.start()]
        if not pattern.led or loose or not before or _LEADS.search(before):
            return True
    return False


@cache
def expression(pattern: Pattern, loose: bool = False) -> re.Pattern[str]:
    """Return the expression of a pattern. Few are ever needed, and all of them take long to compile."""
    words = pattern.words
    while "«" in words:
        words = re.sub("«(\\w+)»", lambda found: f"(?:{patterns().words[found[1]]})", words)
    if not pattern.exact:
        words = words.replace(" ", "[ ,_\n]?" if loose else "[ ,_\n]")
    return lazy_pattern(words, re.DOTALL)


WHOLE = 24_000
"""Characters up to which a text is judged whole; of a longer one both ends and what lies around telling words."""
END = 8_000
"""Characters judged at each end of a longer text."""
AROUND = 240
"""Characters judged on each side of a telling word."""
REACH = 250_000
"""Characters at each end of a long text in which telling words are looked for."""
MOST_AROUND = 24_000
"""Characters judged around telling words of one text."""

_CORE = ("skip earlier orders", "skip your orders", "hand over control")
"""Patterns that are also tried on words written without blanks."""
_TELLING = (
    "gnore ", "GNORE ", "isregard", "ISREGARD", "orget ", "nstructions", "NSTRUCTIONS", "ou are now", "SYSTEM:", "SYSTEM]",
    "system prompt", "<|", "[INST", "<<SYS", "</tool", "</untrusted", "<!--", "verride", "OVERRIDE", "must now", "and over",
    "arget", "oute ", "elegate", "ransfer", "isten to", "obey", "id_rsa", ".env", "assword", "redential", "API key", "ecret",
    "uthori", "onfirmation", "rom now", "no longer", "ust not know", "mmediately", "egardless", " tell the", "otify",
    " agent", "ssistant", "mention", "without ", "instead", "nweisung", "instrucciones", "consignes", "\u6307\u4ee4",
    "\u6307\u793a", "\u5ffd\u7565", "\u0438\u043d\u0441\u0442\u0440\u0443\u043a\u0446",
)  # fmt: skip


def suspicion(text: str) -> str | None:
    """Return why a text reads like instructions to whoever reads it, or None when it reads like data."""
    for part in _parts(text):
        clear = visible(part)
        reason = _reason(clear)
        if reason is None:
            reason = next((why for said in decoded(clear) if (why := _plainly(visible(said)))), None)
        if reason is not None:
            return reason
    return None


def _reason(clear: str) -> str | None:
    """Return why a text without invisible signs is suspicious, in the forms that it can hide in."""
    reason = _plainly(clear)
    if reason is None and (said := unescaped(clear)) is not None:
        reason = _plainly(visible(said))
    if reason is None:
        lowered = clear.casefold()
        reason = next((why for form in unmasked(lowered) if (why := _searched(words_of(form), "english"))), None)
        if reason is None and (joined := words_of(squeezed(lowered))):
            reason = _searched(joined, "core", loose=True) or _searched(joined.translate(LEET), "core", loose=True)
    return reason


def _plainly(clear: str) -> str | None:
    lowered = clear.casefold()
    words = words_of(lowered)
    return _searched(clear, "marks", lowered) or _searched(words, "ascii" if words.isascii() else "orders")


def _searched(text: str, which: str, lowered: str | None = None, *, loose: bool = False) -> str | None:
    possible = _index(which).possible(text if lowered is None else lowered)
    return next((each.reason for each in possible if matches(each, text, loose=loose)), None)


@cache
def _index(which: str) -> AnchorIndex:
    """Return the index of some patterns: ``marks``, ``english``, ``orders`` of all languages, ``ascii`` or ``core`` ones."""
    known = patterns()
    if which == "ascii":
        return AnchorIndex([each for each in known.orders if all(any(map(str.isascii, group)) for group in each.anchors)])
    if which == "core":
        return AnchorIndex([each for each in known.english if each.name in _CORE])
    return AnchorIndex({"marks": known.marks, "english": known.english, "orders": known.orders}[which])


_SHORT = 2_000
"""Characters up to which a text's own triples are looked up; in a longer one each literal is looked for."""


class AnchorIndex:
    """Which of some patterns can hit a text at all: those of whose every group of literals it holds one.

    This is asked several times of every text that is read, and hundreds of literals would each be looked for. So the triples
    of letters that a text has say first which of them can be there.
    """

    def __init__(self, orders: Sequence[Pattern]) -> None:
        self._orders = [(order, [frozenset(group) for group in order.anchors]) for order in orders]
        self._literals: dict[str, list[int]] = {}
        for place, order in enumerate(orders):
            for literal in {literal for group in order.anchors for literal in group}:
                self._literals.setdefault(literal, []).append(place)
        self._beginning: dict[str, list[str]] = {}
        for literal in self._literals:
            self._beginning.setdefault(literal[:3], []).append(literal)
        self._triples = frozenset(each for each in self._beginning if len(each) == 3)
        self._brief = [literal for literal in self._literals if len(literal) < 3]

    def possible(self, text: str) -> list[Pattern]:
        """Return the patterns in question, in their order."""
        if len(text) <= _SHORT:
            there = self._triples.intersection([text[place : place + 3] for place in range(len(text) - 2)])
            held = {literal for each in there for literal in self._beginning[each] if literal in text}
            held.update(literal for literal in self._brief if literal in text)
        else:
            held = {literal for literal in self._literals if literal in text}
        named = sorted({place for literal in held for place in self._literals[literal]})
        chosen = [self._orders[place] for place in named]
        return [order for order, groups in chosen if len(groups) == 1 or not any(map(held.isdisjoint, groups))]


def _parts(text: str) -> Iterator[str]:
    """Yield the text, or of a long one its ends and the surroundings of words that orders are made of."""
    if len(text) <= WHOLE:
        yield text
        return
    yield text[:END]
    yield text[-END:]
    low, high = min(REACH, len(text) // 2), max(len(text) - REACH, len(text) // 2)
    spots = [text.find(word, END, low) for word in _TELLING] + [text.rfind(word, high, len(text) - END) for word in _TELLING]
    spots += [text.rfind(word, END, low) for word in _TELLING] + [text.find(word, high, len(text) - END) for word in _TELLING]
    seen: list[int] = []
    for spot in spots:
        if spot >= 0 and len(seen) * 2 * AROUND < MOST_AROUND and all(abs(spot - other) > AROUND // 2 for other in seen):
            seen.append(spot)
            yield text[max(0, spot - AROUND) : spot + AROUND]
