"""Split a request into clauses and search words, and find the passage of a text with most of these words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

from ctxmgr.base.light_dataclass import dataclass, replace
from ctxmgr.base.paths import packaged_text
from ctxmgr.recover.evidence.history_reader import words
from ctxmgr.recover.evidence.quotes import answers, flat
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.text.tokens import stem, stems
from ctxmgr.types.view import EntryView, EventView

WINDOW = 360
"""Maximum characters quoted from a record's text around the words found."""

Row = EntryView | EventView

_LONGEST = 60_000
_ROOM = 4_000
_HEAD = 300
_UNIT = 240
_MOST_UNITS = 4_000
_ALIKE, _PARTLY = 0.6, 0.5
"""Weight of near-synonyms, and of words that begin or contain the sought word, as shares of the sought word's weight."""


@lru_cache(maxsize=16_384)
def tokens(text: str) -> frozenset[str]:
    """Return the stems of the words in a text, including words inside names."""
    return frozenset(stems(text))


@dataclass(frozen=True, slots=True)
class Text:
    """A record's text: ``head`` is the action with the beginning of its input, ``lines`` are all the rest.

    A line without a line break at its end is the part of a long line that goes on with the next one.
    """

    head: str
    lines: tuple[str, ...]

    @property
    def tokens(self) -> frozenset[str]:
        """The stems of all words of the text."""
        return tokens(self.head).union(*map(tokens, self.lines))


@dataclass(frozen=True, slots=True)
class Passage:
    """A record's passage on the sought words: the weight of the words found, these words, and the excerpt with them."""

    weight: float
    met: frozenset[str]
    excerpt: str


def record_text(row: Row) -> Text:
    """Return a record's text; only both ends of a long one."""
    if isinstance(row, EventView):
        return Text("", tuple(split_lines(_ends(words(row.data)))))
    given = flat(row.input, _LONGEST)
    head, rest = (given, "") if len(given) <= _HEAD else (given[:_HEAD], given)
    # Each part has its own limit, so that a long input does not displace the output.
    parts = [rest, *(flat(part, _LONGEST) for part in answers(row))]
    return Text(f"{row.action}\n{head}", tuple(split_lines("\n".join(_ends(part) for part in parts if part))))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _ROOM else f"{text[:_ROOM]}\n{text[-_ROOM:]}"


def split_lines(text: str) -> Iterable[str]:
    """Yield the lines of a text; long lines in pieces, cut between words."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][:_MOST_UNITS]
    for line in lines:
        while len(line) > _UNIT:
            # Prefer a space after a comma: a space after a colon may separate a name from its value.
            cut = line.rfind(", ", _UNIT // 2, _UNIT) + 1 or line.rfind(" ", _UNIT // 2, _UNIT)
            cut = cut if cut > 0 else _UNIT
            cut = len(line) - len(line[cut:].lstrip())
            yield line[:cut]
            line = line[cut:]
        yield f"{line}\n"


SoughtWords = Mapping[str, Mapping[str, float]]
"""The sought words, each with its forms in the records and the weight of each form."""


class Scale:
    """Weighs words: a word in few records says more than a word in many.

    Args:
        texts: the texts of the records that are compared.
    """

    def __init__(self, texts: Sequence[Text]) -> None:
        self._count = len(texts)
        self._holding = Counter(token for text in texts for token in text.tokens)

    def weight(self, token: str) -> float:
        """Return the weight of a word; 0 if most of the records hold it."""
        return self._weight(max(1, self._holding[token]))

    @property
    def rarest(self) -> float:
        """The weight of a word that only one record holds."""
        return self._weight(1)

    def _weight(self, held: int) -> float:
        return max(0.0, math.log2((self._count + 2) / (2 * held))) if self._count > 4 else 1.0

    def matches(self, terms: Iterable[Term]) -> SoughtWords:
        """Return the sought words of some terms, each with its forms in the records and their weights.

        Each part of a name is a sought word of its own.
        """
        found: dict[str, Mapping[str, float]] = {}
        for term in terms:
            for own in stems(term.word):
                if own in found or len(own) < 2:
                    continue
                forms = {token: _PARTLY for token in self._holding if _is_part(own, token)}
                forms |= {token: _ALIKE for token in alike(own) if token in self._holding}
                known = {form: share * self.weight(form) for form, share in forms.items()}
                found[own] = {**known, own: self.weight(own)}
        return found


def _is_part(one: str, other: str) -> bool:
    """Whether one word begins the other or makes up most of it: ``pypi`` and ``pypirc`` do, ``lib`` and ``libpq`` do not."""
    short, long = sorted((one, other), key=len)
    if len(short) < 3 or short.isdigit() or one == other:
        return False
    return long.startswith(short) if len(short) > 3 else len(long) - len(short) < 2 and short in long


def best_passage(text: Text, wanted: SoughtWords) -> Passage:
    """Return the passage of about ``WINDOW`` characters at most that has, together with the head, the most weight."""
    common = _matched_words(text.head, wanted)
    each = [_matched_words(line, wanted) for line in text.lines]
    best: tuple[float, float, int, int, int] = (-1.0, 0.0, 0, 0, 0)
    for start, first in enumerate(each):
        if not first and best[0] >= 0:
            continue
        met = dict(common)
        own: dict[str, float] = {}
        length = 0
        for end in range(start, len(each)):
            length += len(text.lines[end])
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


def _matched_words(text: str, wanted: SoughtWords) -> dict[str, float]:
    present = tokens(text)
    found = {
        word: max((weight for form, weight in forms.items() if form in present), default=0.0) for word, forms in wanted.items()
    }
    return {word: value for word, value in found.items() if value > 0}


def _around(lines: Sequence[str], start: int, end: int) -> str:
    """Return the passage as whole lines, with lines after it and before it as long as there is room."""
    length = sum(map(len, lines[start : end + 1]))
    while length < WINDOW and (end + 1 < len(lines) or start > 0):
        grows = False
        if end + 1 < len(lines) and length + len(lines[end + 1]) <= WINDOW:
            end, grows = end + 1, True
            length += len(lines[end])
        if start > 0 and length + len(lines[start - 1]) <= WINDOW:
            start, grows = start - 1, True
            length += len(lines[start])
        if not grows:
            break
    return "".join(lines[start : end + 1]).strip("\n")


_MAX_REQUEST = 4_000
_MAX_TERMS = 12
_WORD = lazy_pattern(r"\w(?:[\w./:@+-]{0,78}\w)?")
_CLAUSE = lazy_pattern(r"(?<=[.!?;\n])\s+|\n+|, (?=but |and |so |because )|: (?=\w)")
_INNER = lazy_pattern(r"[\W_]+|(?<=[a-z])(?=[A-Z])")
_EMPTY = word_set(
    "a about after again against agent all am an and any are as at be been before being but by can cannot context continue "
    "could did do does doing done don't each earlier else ever every exactly few finish for from further get give go goal had "
    "has have help here how i if in information into is it its just keep know lack lacks last less like lost made make many "
    "may me might missing more most much must my need needed needs new next no none nor not nothing now of off on once one "
    "only or other our out over own please proceed put reason request right same say see seem should since so some something "
    "still such take task tell than that the their them then there these they thing this those through to too under until up "
    "us use used using very want was way we well were what when where which while who whom whose why will wish with without "
    "wonder work would yet you your step steps able gone back anymore anything someone somebody remember recall recorded "
    "handed leave leaves longer compacted compaction started whether "
    "neither either both side sides reason reasons come came instruction instructions "
    "record session history previous previously already also however whatever told said think thought sure unsure unclear"
)
_ASKING = lazy_pattern(
    r"\?|\b(?:which|what|where|who|when|how|need|needs|know|missing|lost|lack\w*|forgot\w*|find out|unclear|unknown|not sure|"
    r"unsure|(?:neither|nobody|no one|never|not|n't)\b[^.;]{0,24}\b(?:told|said|given|handed|mention\w*|explain\w*))\b",
    re.IGNORECASE,
)
_NEEDED = lazy_pattern(
    r"\b(?:(?:needs?|requires?) (?=(?:the|its|their|his|her|to know|whose|where|which|what|who|when|how)\b)(?:to know )?"
    r"|(?:has|have|needs?|wants?|must|ought|should|is|are) (?:to )?(?:know|be told|learn|find out) "
    r"|(?:tell|show|give) (?:it|them|him|her) (?=(?:the|its|where|which|what|who|when|how)\b))(?P<what>[^.;?!\n]{4,160})",
    re.IGNORECASE,
)
_REASON = lazy_pattern(r"\b(?:why|reasons?|rationale|motive|behind|justif\w+|what (?:was|is) wrong|grounds)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Term:
    """One search word. ``forms`` are the texts to look for: its own stem first, then near-synonyms.

    ``strong``: the word is a name of something (a path, an identifier, a number), which says more than a word of prose.
    """

    word: str
    forms: tuple[str, ...]
    strong: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """One statement or question of a request.

    ``asks``: it says that something is not known. ``reason``: it asks why something is as it is. ``implied``: it counts as a
    question only because the request as a whole asks and no clause says so.
    """

    text: str
    terms: tuple[Term, ...]
    asks: bool
    reason: bool = False
    implied: bool = False


def clauses(*texts: str | None, ask: bool = False) -> list[Clause]:
    """Return the clauses of a request that hold search words, in order.

    Args:
        texts: the texts of the request.
        ask: the request asks something, so if no clause does, all of them count as questions.
    """
    found: list[Clause] = []
    for text in texts:
        parts = ((part, key_terms(part)) for part in _CLAUSE.split((text or "")[:_MAX_REQUEST]))
        found += [
            Clause(part.strip(), tuple(terms), _ASKING.search(part) is not None, _REASON.search(part) is not None)
            for part, terms in parts
            if terms
        ]
    if ask and not any(clause.asks for clause in found):
        return [replace(clause, asks=True, implied=True) for clause in found]
    return found


def stated_needs(text: str | None) -> list[str]:
    """Return what an instruction explicitly says that somebody needs to know: "it needs the image reference"."""
    return [match.group("what").strip() for match in _NEEDED.finditer((text or "")[:_MAX_REQUEST])]


def key_terms(text: str, most: int = _MAX_TERMS) -> list[Term]:
    """Return the search words of a text: names of things first, then longer words before shorter ones."""
    found: dict[str, Term] = {}
    for word in _WORD.findall(text[:_MAX_REQUEST]):
        folded = word.casefold()
        if folded in _EMPTY or len(folded) < 2 or folded in found:
            continue
        if (strong := _is_name(word)) or len(folded) > 2:
            found[folded] = Term(word, _forms(word, strong), strong)
    ordered = sorted(found.values(), key=lambda term: (not term.strong, -len(term.word)))
    return ordered[:most]


def _is_name(word: str) -> bool:
    inner = word[1:]
    return any(char.isdigit() or char in "_./:@" for char in word) or (
        any(char.isupper() for char in inner) and not (word.isupper() and len(word) > 12)
    )


def _forms(word: str, strong: bool) -> tuple[str, ...]:
    if strong:
        # Include the parts of a name: "staging db port" answers a question about "stagingDbPort".
        parts = [part.casefold() for part in _INNER.split(word) if len(part) > 3]
        return tuple(dict.fromkeys([word.casefold(), *(parts if len(parts) == 1 else [])]))
    own = stem(word.casefold())
    return tuple(dict.fromkeys([own, *alike(word)]))


def alike(word: str) -> Iterable[str]:
    """Yield the stems of near-synonyms of a word in any form; short words are not stemmed."""
    folded = word.casefold()
    own = stem(folded)
    for group in _groups():
        if folded in group or own in group.values():
            yield from (other if len(other) < 4 else stem_ for other, stem_ in group.items() if stem_ != own)


@cache
def _groups() -> Sequence[dict[str, str]]:
    """Return the groups of synonyms, each as word -> stem; the file has one group per line."""
    text = packaged_text(__file__, "synonyms.txt")
    return [{word: stem(word) for word in line.split()} for line in text.splitlines()]
