"""Find in the whole history what a request speaks of, and say of which part the history holds nothing.

Lexical and deterministic: words count the more the fewer records hold them, words close together more than apart, and
what was recorded later wins over what it may have replaced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ctxmgr.recover.desk import Desk
from ctxmgr.recover.question import Clause, Term
from ctxmgr.recover.quoting import flat
from ctxmgr.recover.spoken import is_synthetic, words
from ctxmgr.types.route import is_context_manager
from ctxmgr.types.view import EntryView, EventView

WINDOW = 320
"""Characters of a record's text that are quoted around the words that were found."""

_MOST_ROWS = 40
_MOST_SEARCHES = 24
_FEW_SEARCHES = 8
_LARGE = 20_000
_LONGEST = 60_000
_ENOUGH = 0.5
_SOME = 0.28
_ALIKE = 0.6
_NO_ANSWER = re.compile(
    r"not found|no such|unknown|cannot|can't|could not|don't know|do not know|no idea|no result|nothing", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Found:
    """A record that speaks of what is asked for.

    Attributes:
        row: the entry, or the message.
        excerpt: its words around what was found, verbatim.
        cover: how much of the clause it covers, by weight, from 0 to 1.
        sure: whether that is enough to take it for an answer.
    """

    row: EntryView | EventView
    excerpt: str
    cover: float
    sure: bool


@dataclass(frozen=True, slots=True)
class Sought:
    """What was found, oldest first, and the clauses about which the history holds nothing that answers them."""

    found: list[Found]
    unanswered: list[str]


def seek(desk: Desk, wanted: Sequence[Clause], most: int, *, without: Collection[str] = (), total: int = 0) -> Sought:
    """Return up to ``most`` records that speak of the clauses.

    Args:
        desk: the tools.
        wanted: clauses of the request.
        most: records at most.
        without: ids of records that do not count: the trouble itself, and the request's own traces.
        total: number of entries of the session.
    """
    budget = _FEW_SEARCHES if total > _LARGE else _MOST_SEARCHES
    hits: dict[str, tuple[list[EntryView | EventView], int]] = {}
    for term in _by_turns(wanted):
        for form in term.forms:
            if form not in hits and len(hits) < budget:
                hits[form] = desk.find(form, _MOST_ROWS)
    rows = {row.id: row for found, _ in hits.values() for row in found if row.id not in without and _counts(row)}
    bodies = {name: _body(row) for name, row in rows.items()}
    weights = {term.word: _weight(term, hits, total) for clause in wanted for term in clause.terms}
    best: dict[str, Found] = {}
    unanswered: list[str] = []
    for clause in wanted:
        ranked = _ranked(clause, rows, bodies, weights)
        for found in ranked[:most]:
            if found.row.id not in best or best[found.row.id].cover < found.cover:
                best[found.row.id] = found
        if clause.asks and not any(found.sure for found in ranked):
            unanswered.append(clause.text)
    kept = sorted(best.values(), key=lambda found: (found.sure, found.cover, _place(found.row)))[-most:]
    return Sought(sorted(kept, key=lambda found: _place(found.row)), unanswered)


def _by_turns(wanted: Sequence[Clause]) -> Iterable[Term]:
    """Yield the terms of asking clauses before those of others, the first of each before the second of any."""
    ordered = sorted(wanted, key=lambda clause: not clause.asks)
    for place in range(max((len(clause.terms) for clause in ordered), default=0)):
        for clause in ordered:
            if place < len(clause.terms):
                yield clause.terms[place]


def _weight(term: Term, hits: dict[str, tuple[list[EntryView | EventView], int]], total: int) -> float:
    own = hits.get(term.forms[0], ([], 0))[1]
    if own > max(3, total // 2):
        return 0.0  # what is everywhere says nothing
    rare = math.log(1 + (total + 1) / (own + 0.5))
    return rare * (1.5 if term.strong else 1.0)


def _ranked(
    clause: Clause, rows: dict[str, EntryView | EventView], bodies: dict[str, str], weights: dict[str, float]
) -> list[Found]:
    whole = sum(weights[term.word] for term in clause.terms)
    found: list[tuple[float, int, Found]] = []
    for name, row in rows.items():
        cover, words_met, start, end = _densest(clause, bodies[name], weights)
        if not whole or not words_met or cover / whole < _SOME:
            continue
        excerpt = _around(bodies[name], start, end)
        share = cover / whole
        answer = share * (0.6 if _NO_ANSWER.search(excerpt) or excerpt.rstrip().endswith("?") else 1.0)
        sure = answer >= _ENOUGH and (words_met > 1 or len(clause.terms) == 1)
        found.append((round(answer, 2), _place(row), Found(row, excerpt, answer, sure)))
    return [each for _, _, each in sorted(found, key=lambda item: (item[0], item[1]), reverse=True)]


def _densest(clause: Clause, body: str, weights: dict[str, float]) -> tuple[float, int, int, int]:
    """Return (weight, number of words, start, end) of the stretch that holds most of a clause's words."""
    folded = body.lower()
    marks: list[tuple[int, int, str, float]] = []
    for term in clause.terms:
        for rank, form in enumerate(term.forms):
            value = weights[term.word] * (1.0 if rank == 0 else _ALIKE)
            place = folded.find(form)
            seen = 0
            while place >= 0 and seen < 20:
                if rank == 0 or len(form) > 4 or _is_word(folded, place, form):
                    marks.append((place, place + len(form), term.word, value))
                    seen += 1
                place = folded.find(form, place + 1)
    marks.sort()
    best = (0.0, 0, 0, 0)
    for number, (start, _, _, _) in enumerate(marks):
        met: dict[str, float] = {}
        end = start
        for place, stop, word, value in marks[number:]:
            if place - start > WINDOW:
                break
            if value > met.get(word, 0.0):
                met[word] = value
                end = max(end, stop)
        if sum(met.values()) > best[0]:
            best = (sum(met.values()), len(met), start, end)
    return best


def _is_word(text: str, place: int, form: str) -> bool:
    before, after = text[place - 1 : place], text[place + len(form) : place + len(form) + 1]
    return not before.isalnum() and not after.isalnum()


def _around(body: str, start: int, end: int) -> str:
    """Return the lines around a stretch, at most about ``WINDOW`` characters beyond it."""
    spare = max(40, WINDOW - (end - start)) // 2
    left, right = max(0, start - spare), min(len(body), end + spare)
    line, stop = body.rfind("\n", left, start), body.find("\n", end, right)
    head = left if line < 0 or end - start < WINDOW // 3 else line + 1
    return body[head : right if stop < 0 or end - start < WINDOW // 3 else stop].strip()


def _counts(row: EntryView | EventView) -> bool:
    if isinstance(row, EntryView):
        return not is_context_manager(row.agent)
    return not is_synthetic(row.data) and row.type not in ("usage", "stuck", "compaction", "heartbeat")


def _body(row: EntryView | EventView) -> str:
    if isinstance(row, EventView):
        return words(row.data)[:_LONGEST]
    # Each part has its own room, so that a long input does not push the output out.
    return "\n".join(flat(part, _LONGEST) for part in (row.input, row.error, row.output) if part not in (None, ""))


def _place(row: EntryView | EventView) -> int:
    return 2 * row.index + 1 if isinstance(row, EntryView) else 2 * (row.after if row.after is not None else -1) + 2
