"""Parse a question into clauses and telling words, and find other words that mean nearly the same (`synonyms.txt`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from ctxmgr.detect.text.fingerprints import word_set
from ctxmgr.light_dataclass import dataclass, replace
from ctxmgr.paths import packaged_text
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.tokens import stem

_LONGEST = 4_000
_MOST_TERMS = 12
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
_REASON = lazy_pattern(r"\b(?:why|reasons?|rationale|motive|behind|justif\w+|what (?:was|is) wrong|grounds)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Term:
    """One telling word: ``forms`` are what to look for, its own stem first, then words that mean nearly the same.

    ``strong``: a name of something (a path, an identifier, a number), which says more than a word of prose.
    """

    word: str
    forms: tuple[str, ...]
    strong: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that is said in a request.

    ``asks`` when it says that something is not known, ``reason`` when what it asks for is why something is as it is,
    ``implied`` when it does not say that it asks, but something of the whole does.
    """

    text: str
    terms: tuple[Term, ...]
    asks: bool
    reason: bool = False
    implied: bool = False


def clauses(*texts: str | None, ask: bool = False) -> list[Clause]:
    """Return the clauses of a request that hold telling words, in order.

    Args:
        texts: what was said.
        ask: at least one of them asks: where none says so, all of them do.
    """
    found: list[Clause] = []
    for text in texts:
        parts = ((part, telling(part)) for part in _CLAUSE.split((text or "")[:_LONGEST]))
        found += [
            Clause(part.strip(), tuple(terms), _ASKING.search(part) is not None, _REASON.search(part) is not None)
            for part, terms in parts
            if terms
        ]
    if ask and not any(clause.asks for clause in found):
        return [replace(clause, asks=True, implied=True) for clause in found]
    return found


def telling(text: str, most: int = _MOST_TERMS) -> list[Term]:
    """Return the telling words of a text: names of things first, then longer words before shorter ones."""
    found: dict[str, Term] = {}
    for word in _WORD.findall(text[:_LONGEST]):
        folded = word.casefold()
        if folded in _EMPTY or len(folded) < 2 or folded in found:
            continue
        strong = _is_name(word)
        if len(folded) < 3 and not strong:
            continue
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
        # The parts of a name too: who asks for "stagingDbPort" is answered by "staging db port".
        parts = [part.casefold() for part in _INNER.split(word) if len(part) > 3]
        return tuple(dict.fromkeys([word.casefold(), *(parts if len(parts) == 1 else [])]))
    own = stem(word.casefold())
    return tuple(dict.fromkeys([own, *alike(word)]))


def alike(word: str) -> Iterable[str]:
    """Yield the stems (short words whole) of what means nearly the same as a word, given in any form."""
    folded = word.casefold()
    own = stem(folded)
    for group in _groups():
        if folded in group or own in group.values():
            yield from (other if len(other) < 4 else stem_ for other, stem_ in group.items() if stem_ != own)


@cache
def _groups() -> Sequence[dict[str, str]]:
    """Return the groups of words that mean the same to people and programs, one a line, each word with its stem."""
    text = packaged_text(__file__, "synonyms.txt")
    return [{word: stem(word) for word in line.split()} for line in text.splitlines()]
