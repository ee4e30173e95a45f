"""Simple rankings that anybody can have, to be printed beside every retrieval figure.

A set in which one of those that never read the question finds as much as the product says nothing about retrieval.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ctxmgr.log.codec import Record

_WORD = re.compile(r"[a-z]+|\d+")
_SATURATION, _LENGTH = 1.5, 0.75
_OFTEN = 3
"""A call that stands in a history so many times is the trouble itself, which nobody has to find."""


@dataclass(frozen=True, slots=True)
class Row:
    """An entry: its id, and its words, those of its result too."""

    id: str
    words: tuple[str, ...]


def rows_of(history: Sequence[Record]) -> list[Row]:
    """Return the entries of a history but for the calls that are made again and again, in order."""
    results = {record["entry"]: record for record in history if record["kind"] == "result"}
    entries = [record for record in history if record["kind"] == "entry"]
    calls = Counter(_call(entry) for entry in entries)
    told = ("input", "output", "error")
    return [
        Row(str(entry["id"]), words(" ".join(
            json.dumps(part.get(name)) for part in (entry, results.get(entry["id"], {})) for name in told if part.get(name)
        )))
        for entry in entries if calls[_call(entry)] < _OFTEN
    ]  # fmt: skip


def _call(entry: Record) -> str:
    return json.dumps([entry["agent"], entry["action"], entry.get("input")], sort_keys=True)


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, lower case."""
    return tuple(_WORD.findall(text.casefold()))


def novelty(rows: Sequence[Row], question: str) -> list[str]:
    """Rank by the mean rarity of a row's words; the question is not read."""
    del question
    holding = Counter(word for row in rows for word in set(row.words))
    score = {row.id: sum(math.log(len(rows) / holding[w]) for w in row.words) / max(1, len(row.words)) for row in rows}
    return sorted(score, key=lambda name: -score[name])


def recency(rows: Sequence[Row], question: str) -> list[str]:
    """Rank the newest first; the question is not read."""
    del question
    return [row.id for row in reversed(rows)]


def bm25(rows: Sequence[Row], question: str) -> list[str]:
    """Rank by BM25 (Robertson and Zaragoza 2009) with the usual constants, words as they are written."""
    holding = Counter(word for row in rows for word in set(row.words))
    usual = sum(len(row.words) for row in rows) / max(1, len(rows)) or 1.0
    score: dict[str, float] = {}
    for row in rows:
        counts, slow = Counter(row.words), _SATURATION * (1 - _LENGTH + _LENGTH * len(row.words) / usual)
        score[row.id] = sum(
            math.log(1 + (len(rows) - holding[word] + 0.5) / (holding[word] + 0.5))
            * counts[word] * (_SATURATION + 1) / (counts[word] + slow)
            for word in set(words(question)) if counts[word]
        )  # fmt: skip
    return sorted(score, key=lambda name: -score[name])


RANKINGS: dict[str, Callable[[Sequence[Row], str], list[str]]] = {"novelty": novelty, "recency": recency, "BM25": bm25}
BLIND = ("novelty", "recency", "chance")
"""Rankings that never read the question."""


def chance(total: int, wanted: int, drawn: int, *, every: bool) -> float:
    """Return the probability that so many rows drawn by lot hold every one of the wanted rows, or one of them."""
    drawn = min(drawn, total)
    if wanted == 0 or total == 0:
        return 0.0
    if every:
        return math.comb(total - wanted, drawn - wanted) / math.comb(total, drawn) if drawn >= wanted else 0.0
    return 1 - math.comb(total - wanted, drawn) / math.comb(total, drawn)
