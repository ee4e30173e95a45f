"""Find the stretch of a text that holds most of the sought words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from ctxmgr.light_dataclass import dataclass
from ctxmgr.recover.evidence.query_parser import Term, alike
from ctxmgr.recover.evidence.quotes import answers, flat
from ctxmgr.recover.evidence.records import words
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.tokens import stem
from ctxmgr.types.view import EntryView, EventView

WINDOW = 360
"""Characters of a record's text that are quoted around the words that were found."""

Row = EntryView | EventView

_LONGEST = 60_000
_ROOM = 4_000
_HEAD = 300
_UNIT = 240
_MOST_UNITS = 4_000
_TOKEN = lazy_pattern(r"[^\W\d_]+|\d+")
_CAMEL = lazy_pattern(r"(?<=[a-z])(?=[A-Z])")
_ALIKE, _PARTLY = 0.6, 0.5
_HASH = lazy_pattern(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}\b")


@lru_cache(maxsize=16_384)
def tokens(text: str) -> frozenset[str]:
    """Return the stems of the words in a text, those inside names too."""
    return frozenset(stem(word) for word in _TOKEN.findall(_CAMEL.sub(" ", text).casefold()) if len(word) > 1 or word.isdigit())


@dataclass(frozen=True, slots=True)
class Text:
    """A record's text: what was asked for (the beginning of an input), and the lines of all the rest."""

    head: str
    lines: tuple[str, ...]

    @property
    def tokens(self) -> frozenset[str]:
        """The stems of all its words."""
        return tokens(self.head).union(*map(tokens, self.lines))


@dataclass(frozen=True, slots=True)
class Passage:
    """What a record says of what is sought: the weight of the words met, which of them, and the stretch that holds them."""

    weight: float
    met: frozenset[str]
    excerpt: str


def text_of(row: Row) -> Text:
    """Return a record's text; of a long one its ends."""
    if isinstance(row, EventView):
        return Text("", tuple(_lines(_ends(words(row.data)))))
    given = flat(row.input, _LONGEST)
    head, rest = (given, "") if len(given) <= _HEAD else (given[:_HEAD], given)
    # Each part has its own room, so that a long input does not push the output out.
    parts = [rest, *(flat(part, _LONGEST) for part in answers(row))]
    return Text(f"{row.action}\n{head}", tuple(_lines("\n".join(_ends(part) for part in parts if part))))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _ROOM else f"{text[:_ROOM]}\n{text[-_ROOM:]}"


def _lines(text: str) -> Iterable[str]:
    """Yield the lines of a text; of a long line pieces, cut between words."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][:_MOST_UNITS]
    for line in lines:
        while len(line) > _UNIT:
            cut = line.rfind(" ", _UNIT // 2, _UNIT)
            cut = cut if cut > 0 else _UNIT
            yield line[:cut]
            line = line[cut:].lstrip()
        if line:
            yield line


@dataclass(frozen=True, slots=True)
class SoughtWords:
    """A word that is sought: its forms in the records with the weight of each."""

    forms: Mapping[str, float]

    def times(self, share: float) -> SoughtWords:
        """Return it with this share of its weight."""
        return SoughtWords({form: value * share for form, value in self.forms.items()})


class Scale:
    """Weighs words: the fewer of the records hold one, the more it says.

    Args:
        texts: of the records that are compared.
    """

    def __init__(self, texts: Sequence[Text]) -> None:
        self._count = len(texts)
        self._holding = Counter(token for text in texts for token in text.tokens)

    def weight(self, token: str) -> float:
        """Return the weight of a word that stands in the records; 0 for what stands in most of them."""
        return self._weight(max(1, self._holding[token]))

    @property
    def rarest(self) -> float:
        """The weight of a word that one record alone holds."""
        return self._weight(1)

    def _weight(self, held: int) -> float:
        return max(0.0, math.log2((self._count + 2) / (2 * held))) if self._count > 4 else 1.0

    def stands(self, forms: Iterable[str]) -> bool:
        """Whether any of these words stands in a record."""
        return any(self._holding[form] for form in forms)

    def matches(self, terms: Iterable[Term]) -> dict[str, SoughtWords]:
        """Return for each word that is sought its forms in the records, each with how much it counts.

        A name is sought as its parts.
        """
        found: dict[str, SoughtWords] = {}
        for term in terms:
            if _HASH.fullmatch(term.word):
                continue  # its parts are chance
            for part in _TOKEN.findall(_CAMEL.sub(" ", term.word)):
                own = stem(part.casefold())
                # A short number within a name (``http-01``) is chance; alone (``ADR 14``) it may be what is meant.
                if own in found or len(own) < 2 or (own.isdigit() and len(own) < 3 and own != term.word):
                    continue
                forms = {token: _PARTLY for token in self._holding if _is_part(own, token)}
                forms |= {token: _ALIKE for token in alike(part) if token in self._holding}
                known = {form: share * self.weight(form) for form, share in forms.items()}
                found[own] = SoughtWords({**known, own: self.weight(own)})
        return found


def _is_part(one: str, other: str) -> bool:
    """Whether one word begins or makes up most of the other: ``lib`` and ``libpq`` do not, ``pypi`` and ``pypirc`` do."""
    short, long = sorted((one, other), key=len)
    if len(short) < 3 or short.isdigit() or one == other:
        return False
    return long.startswith(short) if len(short) > 3 else len(long) - len(short) < 2 and short in long


def best_passage(text: Text, wanted: Mapping[str, SoughtWords]) -> Passage:
    """Return the stretch of at most about ``WINDOW`` characters that holds the most weight together with the head."""
    common = _met(text.head, wanted)
    each = [_met(line, wanted) for line in text.lines]
    best: tuple[float, float, int, int, int] = (-1.0, 0.0, 0, 0, 0)
    for start, first in enumerate(each):
        if not first and best[0] >= 0:
            continue
        met = dict(common)
        own: dict[str, float] = {}
        length = 0
        for end in range(start, len(each)):
            length += len(text.lines[end]) + 1
            if end > start and length > WINDOW:
                break
            for word, value in each[end].items():
                met[word] = max(value, met.get(word, 0.0))
                own[word] = max(value, own.get(word, 0.0))
            rank = (sum(met.values()), sum(own.values()), -(end - start), -start, end)
            if rank > best:
                best = rank
    if not text.lines:
        return Passage(sum(common.values()), frozenset(common), "")
    weight, _, _, start, end = best
    present = frozenset(common).union(*each[-start : end + 1])
    return Passage(weight, present, _around(text.lines, -start, end))


def _met(text: str, wanted: Mapping[str, SoughtWords]) -> dict[str, float]:
    present = tokens(text)
    found = {
        word: max((weight for form, weight in sought.forms.items() if form in present), default=0.0)
        for word, sought in wanted.items()
    }
    return {word: value for word, value in found.items() if value > 0}


def _around(lines: Sequence[str], start: int, end: int) -> str:
    """Return whole lines: the stretch, what follows it, then what stands before it, as long as there is room."""
    length = sum(len(line) + 1 for line in lines[start : end + 1])
    while length < WINDOW and (end + 1 < len(lines) or start > 0):
        grows = False
        if end + 1 < len(lines) and length + len(lines[end + 1]) <= WINDOW:
            end, grows = end + 1, True
            length += len(lines[end]) + 1
        if start > 0 and length + len(lines[start - 1]) <= WINDOW:
            start, grows = start - 1, True
            length += len(lines[start]) + 1
        if not grows:
            break
    return "\n".join(lines[start : end + 1])
