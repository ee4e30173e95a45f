"""Find what a note that was read names in place of what is refused: a place, an account, a host, a setting.

A note bears on a refusal when it speaks of the same place or matter, says what does not go or what goes, and names something
that no failing call has. Its prose is never repeated as an order: the names alone are told, and where they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.detect.text.fingerprints import word_set
from ctxmgr.diagnose.bearing_records import COMMON
from ctxmgr.diagnose.calls import changes_of, command_of
from ctxmgr.diagnose.evidence import Evidence, given
from ctxmgr.diagnose.texts import ORDERS, capital, listed, plain_name
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Quote
from ctxmgr.types.view import EntryView

_NUMBERED = lazy_pattern(r"^\s{0,6}\d{1,5}(?:→|\t)", re.MULTILINE)
_UNIT = lazy_pattern(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d{1,2}[.)])\s)")
_SAYS = lazy_pattern(
    r"\b(?:go(?:es)? (?:to|into|in|through|via|over)|push(?:es)? to|use|put|belongs?|only|instead|needs? no"
    r"|without|take|write to"
    r"|log ?in|via|through|ask|must|should|submit|drop|place|store|save|moved|now|new|rotated|renewed|lies?|is in|are in"
    r"|writable|allowed|permitted|everybody|everyone|anyone|may|can)\b",
    re.IGNORECASE,
)
_STEM = lazy_pattern(r"[A-Za-z]{3,30}")
_PLACE = lazy_pattern(r"(?<![\w/.<-])[~.]{0,2}/?(?:[\w.@-]{1,60}/){1,8}[\w.@-]{0,60}")
_NAMES = (
    lazy_pattern(r"`([^`\n]{2,90})`"),
    lazy_pattern(r"(?<![\w$])([A-Z][A-Z0-9_]{2,30}=\$?[\w./~@:-]{1,60}|--[a-z][\w-]{2,40}(?:[= ][\w./~-]{1,40})?)"),
    lazy_pattern(
        r"\b(?:remote|branch|host|alias|profile|account|role|group|queue|channel|project|user|proxy|mirror|bucket"
        r"|database|schema"
        r"|key|cluster|registry|namespace|service|server|workspace|tenant)s?(?: named| called"
        r"|:)? ['\"]?([a-z][\w.@-]{2,40})['\"]?(?=[\s.,;:)]|$)"
    ),
    lazy_pattern(
        r"(?<![\w/.@$=-])((?:[~.]{0,2}/)?(?:[\w.@-]{1,60}/){1,8}[\w.@-]{0,60}|[\w.-]{1,40}@[\w.-]{2,60}(?::[\w./-]{1,80})?)"
    ),
    lazy_pattern(r"(?<![\w/.$-])(\$?[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{2,40})\b"),
)
_NO_NAME = word_set(
    "and the that this for with from not are was were has have only which where when who its their your our may"
    " must can should "
    "will instead name names of is it be by to in on at as or if so no remote branch host alias profile account"
    " role group queue "
    "channel project user proxy mirrors bucket database schema key cluster registry namespace service server workspace tenant"
)
_CLOSED = lazy_pattern(
    r"\b(?:noexec|read-only|nobody \w+ \w+|belongs? to (?:the )?\w+|needs? no \w+|(?:takes?|accepts?"
    r"|allows?) no \w+|data only|closed|protected"
    r"|switched off|frozen|reserved|no longer \w+)\b",
    re.IGNORECASE,
)
_HARM = lazy_pattern(r"\b(?:rm|sudo|curl|wget|eval|chmod|chown|--force|--no-verify|--hard)\b|[|;&]")
_LOOKED_AT, _MOST_TEXT, _MOST_UNIT, _LEAST, _SHORT = 200, 12_000, 700, 2, 3


class NotedWay(NamedTuple):
    """What a note names in place of what is refused.

    Attributes:
        names: plain names that no failing call has, those behind the word that says what goes first.
        closed: the words that say what does not go, as a quote, or "".
        source: where it stands, in words, as the beginning of a sentence.
        quote: the note.
    """

    names: list[str]
    closed: str
    source: str
    quote: Quote

    @property
    def told(self) -> str:
        """The names as words."""
        return listed(self.names[:_SHORT])

    @property
    def why(self) -> str:
        """What the note says does not go, as a part of a sentence."""
        return f" says {self.closed} and" if self.closed else ""


def noted_way(evidence: Evidence, entry: EntryView, about: re.Pattern[str] | None = None) -> NotedWay | None:
    """Return what a note that was read names for what a call was refused, or None.

    Args:
        evidence: the session.
        entry: the call that was refused.
        about: words of the matter; a note with one of them needs to share less with the call.
    """
    steps = [each for each in evidence.failing if each.agent == entry.agent]
    asked = "\n".join(command_of(step) or given(step) for step in [entry, *steps])
    said = evidence.text(entry)[:2_000]
    stems = _stems(f"{asked}\n{said}\n{entry.action.replace('_', ' ')}")
    places = {place.strip("/.") for place in _PLACE.findall(asked)}
    parts = {part for place in places for part in place.split("/") if len(part) > _SHORT}
    best: tuple[float, NotedWay] | None = None
    for other in list(evidence.before(entry.index))[:_LOOKED_AT]:
        if other.status != "ok" or evidence.failed(other) or changes_of(other):
            continue
        for unit in _units(evidence.text(other)[:_MOST_TEXT]):
            verb = _SAYS.search(unit)
            shared = len(_stems(unit) & stems)
            same = any(re.search(rf"(?<![\w-]){re.escape(part)}(?![\w-])", unit) for part in parts)
            rank = shared + 2 * same + (about is not None and about.search(unit) is not None)
            if verb is None or rank < _LEAST or (best is not None and rank <= best[0]):
                continue
            names = [
                name
                for name in _names(unit, verb.end())
                if name not in asked and name not in said and not _within(name, places)
            ]
            if names:
                source = capital(evidence.source(other))
                best = (
                    rank,
                    NotedWay(
                        names,
                        listed(dict.fromkeys(match.group(0) for match in _CLOSED.finditer(unit)), 2),
                        source,
                        evidence.quote(other, unit),
                    ),
                )
    return best[1] if best is not None else None


def _units(text: str) -> Iterator[str]:
    """Yield the paragraphs and list items of a text, in one line each; long ones, and what could be an order, are left out."""
    for unit in _UNIT.split(_NUMBERED.sub("", text)):
        lines = unit.strip().split("\n")
        whole = " ".join(line.strip() for line in lines)
        for each in [whole] if len(whole) <= _MOST_UNIT and (len(lines) == 1 or _is_prose(lines)) else lines:
            if len(each) <= _MOST_UNIT and not ORDERS.search(each):
                yield each.strip().replace("\\n", " ")


def _is_prose(lines: list[str]) -> bool:
    """Whether lines are those of a text that is wrapped, and no list of values."""
    return sum(len(line.split()) for line in lines) > 4 * len(lines)


def _stems(text: str) -> set[str]:
    found = (word.casefold() for word in _STEM.findall(text[:6_000]))
    return {word[:6].rstrip("s") for word in found if word not in COMMON and word not in _NO_NAME}


def _names(unit: str, behind: int) -> list[str]:
    """Return the names of a note, those behind a place in it first."""
    found: dict[str, int] = {}
    for pattern in _NAMES:
        for match in pattern.finditer(unit):
            name = match.group(1).split("<")[0].strip().rstrip(".,;:")
            plain = plain_name(name.replace("$", "").replace("--", "").replace(" ", "/"))
            if (
                len(name) > 2
                and plain
                and not _HARM.search(name)
                and name.casefold() not in _NO_NAME
                and " " not in name.split("=")[0].strip()
            ):
                found.setdefault(name, match.start())
    return sorted(found, key=lambda name: (found[name] < behind, found[name]))


def _within(name: str, places: set[str]) -> bool:
    bare = name.strip("/.")
    return any(place == bare or place.startswith(f"{bare}/") for place in places)
