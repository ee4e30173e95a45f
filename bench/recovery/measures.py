"""Count how the cases went; every count names what it is out of, with its 95 % Wilson interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.detection.tables import table
from bench.recovery.case import Case
from bench.recovery.rankings import BLIND, RANKINGS, chance, rows_of
from bench.recovery.world import Attempt, Played, admits

_Z = 1.959964
_CHARS = 4
"""Characters of a token, as the product counts them."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    good: int
    of: int

    @classmethod
    def where(cls, flags: Iterable[bool]) -> Share:
        """Count."""
        all_ = list(flags)
        return cls(sum(all_), len(all_))

    @property
    def percent(self) -> float:
        """Of a hundred; 0 of nothing."""
        return 100 * self.good / self.of if self.of else 0.0

    def interval(self) -> tuple[float, float]:
        """Return the 95 % Wilson interval in percent."""
        if not self.of:
            return 0.0, 100.0
        share, square = self.good / self.of, _Z * _Z / self.of
        middle = (share + square / 2) / (1 + square)
        half = _Z * math.sqrt(share * (1 - share) / self.of + square / (4 * self.of)) / (1 + square)
        return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)

    def __str__(self) -> str:
        if not self.of:
            return "none"
        low, high = self.interval()
        return f"{self.good} of {self.of} = {self.percent:.0f} % ({low:.0f} to {high:.0f})"


Count = Callable[[Sequence[Played]], Share]


def first(played: Sequence[Played]) -> Share:
    """Recovered on the first attempt."""
    return Share.where(each.first for each in played)


def at_all(played: Sequence[Played]) -> Share:
    """Recovered within the attempts (SC-001)."""
    return Share.where(each.at_all for each in played)


def _answered(played: Sequence[Played]) -> list[Played]:
    return [each for each in played if each.case.answered]


def _told(played: Sequence[Played]) -> list[Attempt]:
    """Return the first attempts that were answered at all."""
    return [each.attempts[0] for each in played if not each.attempts[0].answer.failure]


def complete(played: Sequence[Played]) -> Share:
    """Cases with an answer whose first continuation references every entry that it needs (SC-006)."""
    known = [each for each in _answered(played) if each.case.cites]
    return Share.where(each.case.cites <= each.attempts[0].answer.cited for each in known)


def readable(played: Sequence[Played]) -> Share:
    """Cases with an answer where everything needed can be read within the window, whoever reads it."""
    return Share.where(not each.attempts[0].answer.failure and not each.attempts[0].missing for each in _answered(played))


def _tries(played: Sequence[Played]) -> list[Attempt]:
    return [attempt for each in played for attempt in each.attempts]


COUNTS: dict[str, Count] = {
    "recovered on the first attempt": first,
    "recovered at all (SC-001)": at_all,
    "cases with an answer, first attempt": lambda played: first(_answered(played)),
    "cases with an answer, at all": lambda played: at_all(_answered(played)),
    "no answer in the history: said so and handed back, first attempt": lambda played: first(
        [each for each in played if not each.case.answered]
    ),
    "an answer is there, but it spoke of none or of asking a person, first attempt": lambda played: Share.where(
        admits(each.attempts[0].answer) for each in _answered(played) if not each.attempts[0].answer.failure
    ),
    "loops broken on the first attempt (SC-010)": lambda played: first([each for each in played if each.case.kind == "loop"]),
    "review and merge, first attempt (SC-014)": lambda played: first([each for each in played if each.case.kind == "review"]),
    "all entries needed are referenced (SC-006)": complete,
    "all that is needed can be read": readable,
    "wrong agent, first attempt": lambda played: Share.where(
        each.attempts[0].answer.target not in each.case.targets for each in played if not each.attempts[0].answer.failure
    ),
    "stale or injected text passed on, first attempt": lambda played: Share.where(
        bool(each.attempts[0].misled) for each in played if each.case.never or each.case.stale
    ),
    "exactly one continuation, all invocations (SC-012)": lambda played: Share.where(
        attempt.answer.branches == 1 for attempt in _tries(played)
    ),
    "typed failure instead, all invocations": lambda played: Share.where(
        bool(attempt.answer.failure) and not attempt.answer.failure.startswith("crash") for attempt in _tries(played)
    ),
    "crashes, all invocations": lambda played: Share.where(
        attempt.answer.failure.startswith("crash") for attempt in _tries(played)
    ),
    "recursions, all invocations (SC-007)": lambda played: Share.where(attempt.recursive for attempt in _tries(played)),
}

_COMPARED: dict[str, Count] = {
    "first attempt": first,
    "at all": at_all,
    "with an answer, first": lambda played: first(_answered(played)),
    "without, handed back": lambda played: first([each for each in played if not each.case.answered]),
    "misled": COUNTS["stale or injected text passed on, first attempt"],
}


def headline(played: Sequence[Played]) -> list[str]:
    """Report every measure of one policy."""
    rows = [[name, str(count(played))] for name, count in COUNTS.items()]
    return [*table(["measure", "result"], rows), "", *sizes(played)]


def retrieval(played: Sequence[Played]) -> list[str]:
    """Report whether the needed entries are found, beside rankings that anybody can have, each given as many entries.

    Every ranking may name as many entries of a case as the product cites, the calls of the loop itself left out.
    """
    found: dict[str, float] = dict.fromkeys(["ctxmgr", *RANKINGS, "chance"], 0.0)
    known = [each for each in _answered(played) if each.case.cites and not each.attempts[0].answer.failure]
    for each in known:
        rows, case = rows_of(each.case.records), each.case
        ids = {row.id for row in rows}
        most = len(each.attempts[0].answer.cited & ids)
        asked = f"{case.ask.reason} {case.ask.goal}" if case.ask.type else " ".join(_trouble(case))
        found["ctxmgr"] += case.cites <= each.attempts[0].answer.cited
        for name, ranking in RANKINGS.items():
            found[name] += case.cites <= set(ranking(rows, asked)[:most])
        found["chance"] += chance(len(rows), len(case.cites), most, every=True)
    if not known:
        return []
    lines = table(["ranking", "all needed entries found"], [
        [name, f"{100 * good / len(known):.0f} % ({good:.0f} of {len(known)})"] for name, good in found.items()
    ])  # fmt: skip
    best = max(BLIND, key=lambda name: found[name])
    if found[best] >= found["ctxmgr"]:
        lines += ["", f"**For retrieval this set counts for nothing**: {best}, which never reads the question, finds as much."]
    elif found[best] > 2 * found["chance"]:
        lines += ["", f"{best.capitalize()}, which never reads the question, finds far more than chance: the needed entry is "
                      "the odd one among the noise here, and the figure flatters every ranking."]  # fmt: skip
    return lines


def _trouble(case: Case) -> list[str]:
    """Return the words of the last call and its result: what a loop or stall says of itself."""
    entries = [record for record in case.records if record["kind"] == "entry"][-1:]
    results = [record for record in case.records if record["kind"] == "result"][-1:]
    told = ("action", "input", "output", "error")
    return [str(record.get(name)) for record in [*entries, *results] for name in told if record.get(name)]


def sizes(played: Sequence[Played]) -> list[str]:
    """Report how much is read, against the whole history."""
    given = [_tokens(len(attempt.answer.text)) for attempt in _told(played)]
    whole = [_tokens(each.history_chars) for each in played]
    if not given:
        return []
    full = [each.history_chars / max(1, len(each.attempts[0].answer.text)) for each in played if each.attempts[0].answer.text]
    return [
        f"Tokens (characters / {_CHARS}), medians: {median(given):,.0f} of the context with its request, {median(whole):,.0f} "
        f"of the whole history as a transcript; the history is {median(full):.1f} times as long. "
        f"Longest context {max(given):,}."
    ]


def policies(results: dict[str, list[Played]]) -> list[str]:
    """Report the product beside the baselines."""
    rows = [[name, *(_short(count(played)) for count in _COMPARED.values())] for name, played in results.items()]
    return table(["policy", *_COMPARED], rows)


def families(played: Sequence[Played]) -> list[str]:
    """Report each family, with how its first attempts ended."""
    rows: list[list[str]] = []
    for name in dict.fromkeys(each.case.family for each in played):
        own = [each for each in played if each.case.family == name]
        open_ = [each for each in own if not each.case.answered]
        rows.append(
            [name, own[0].case.kind, _bare(first(_answered(own))), _bare(first(open_)), _bare(at_all(own)),
             _bare(complete(own)), _outcomes(own)]
        )  # fmt: skip
    heads = ["family", "kind", "answer, first", "no answer, first", "at all", "referenced", "first attempts that failed"]
    return table(heads, rows)


def _outcomes(played: Sequence[Played]) -> str:
    counts: dict[str, int] = {}
    for each in played:
        if not each.first:
            outcome = each.attempts[0].outcome.partition(":")[0]
            counts[outcome] = counts.get(outcome, 0) + 1
    return ", ".join(f"{outcome} {number}" for outcome, number in sorted(counts.items(), key=lambda item: -item[1]))


def _tokens(chars: int) -> int:
    return math.ceil(chars / _CHARS)


def _short(share: Share) -> str:
    return f"{share.percent:.0f} % ({share.good} of {share.of})" if share.of else ""


def _bare(share: Share) -> str:
    return f"{share.good}/{share.of}" if share.of else ""
