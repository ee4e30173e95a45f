"""Whether two statements say the same, or speak of the same and do not agree; by their words alone.

A rule of thumb with errors in both directions, so what it finds is a lead for whoever reads the statements themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctxmgr.memory.words import EMPTY, fold, stem

SAME = 0.75
"""Share of their words that two statements have in common when they say the same."""
ABOUT = 0.5
"""Share of their words that two statements have in common when they speak of the same."""
_FEWEST = 2
_READ = 2_000

_CONTRACTED = (("can't", "can not"), ("won't", "will not"), ("n't", " not"), ("cannot", "can not"))
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+")
_NEGATIONS = frozenset(["not", "no", "never", "without", "neither", "nor", "none", "nothing"])
_POLES = (
    ("work", "fail"), ("pass", "fail"), ("success", "failure"), ("succeed", "fail"), ("enabled", "disabled"),
    ("true", "false"), ("exists", "missing"), ("allowed", "denied"), ("safe", "unsafe"), ("present", "absent"),
    ("required", "optional"), ("valid", "invalid"), ("correct", "wrong"), ("open", "closed"), ("fixed", "broken"),
    ("possible", "impossible"), ("active", "inactive"),
)  # fmt: skip
_OPPOSITES: dict[str, set[str]] = {}
for _one, _other in _POLES:
    _OPPOSITES.setdefault(stem(_one), set()).add(stem(_other))
    _OPPOSITES.setdefault(stem(_other), set()).add(stem(_one))


@dataclass(frozen=True, slots=True)
class Claim:
    """What a statement comes down to: what it is about, which way it points, and its numbers."""

    about: frozenset[str]
    negated: bool
    poles: frozenset[str]
    numbers: frozenset[str]


def claim(text: str) -> Claim:
    """Return what the first 2,000 characters of a statement come down to."""
    read = fold(text[:_READ].replace("\u2019", "'"))
    for short, long in _CONTRACTED:
        read = read.replace(short, long)
    found = _WORD.findall(read)
    roots = [stem(word) for word in found if word not in EMPTY]
    numbers = frozenset(root for root in roots if root[0].isdigit())
    poles = frozenset(root for root in roots if root in _OPPOSITES and root not in _NEGATIONS)
    return Claim(
        about=frozenset(root for root in roots if root not in _NEGATIONS) - numbers - poles,
        negated=sum(word in _NEGATIONS for word in found) % 2 == 1,
        poles=poles,
        numbers=numbers,
    )


def disagreement(newer: Claim, older: Claim) -> str | None:
    """Return why two statements about the same do not agree, or None."""
    alike = _alike(newer, older)
    if alike < ABOUT:
        return None
    turned = next(((mine, theirs) for mine in sorted(newer.poles) for theirs in sorted(older.poles & _OPPOSITES[mine])), None)
    if newer.poles & older.poles:  # both say "fails", whatever else they say
        turned = None
    if (turned is not None) != (newer.negated != older.negated):
        return f'"{turned[0]}" against "{turned[1]}"' if turned is not None else "one of them negates it"
    if turned is None and alike >= SAME and newer.numbers and older.numbers and newer.numbers.isdisjoint(older.numbers):
        return f"{_listed(newer.numbers)} against {_listed(older.numbers)}"
    return None


def says_the_same(one: Claim, other: Claim) -> bool:
    """Whether two statements say the same in about the same words."""
    if not one.about and not other.about:
        return False
    return _alike(one, other) >= SAME and one.poles == other.poles and disagreement(one, other) is None


def _alike(one: Claim, other: Claim) -> float:
    common = len(one.about & other.about)
    if common < _FEWEST and one.about != other.about:
        return 0.0
    return common / max(1, len(one.about | other.about))


def _listed(numbers: frozenset[str]) -> str:
    return ", ".join(sorted(numbers)[:3])
