"""What is measured, as figures with goals: one row compares ours with a floor or a peer, or stands for itself."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


class Taken(NamedTuple):
    """What one run took: seconds of the clock and of the processor (children included), most memory in bytes."""

    wall: float
    cpu: float
    memory: int = 0


class Ratio(NamedTuple):
    """Medians of the ratios of each round."""

    wall: float
    cpu: float


def ratio(own: Sequence[Taken], other: Sequence[Taken]) -> Ratio:
    """Return the medians of the ratios, round by round, of as many rounds as both ran in.

    A slow program runs in fewer rounds than a quick one: it is compared with the quick one's runs beside it.
    """
    pairs = list(zip(own, other, strict=False))
    return Ratio(*(statistics.median(mine[part] / max(1e-9, theirs[part]) for mine, theirs in pairs) for part in (0, 1)))


def median(taken: Sequence[Taken]) -> float:
    """Return the median of the clock's times, in seconds."""
    return statistics.median(item.wall for item in taken)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure shall not exceed, or, with ``least``, shall reach.

    Attributes:
        operation: what it is about; against: what the figure is in units of ("MB" and "ms" stand for themselves).
        above: the smallest size at which it holds, where it holds at large ones alone.
    """

    operation: str
    against: str
    limit: float
    least: bool = False
    above: int = 0

    def met(self, figure: float) -> bool:
        """Whether a figure meets it."""
        return figure >= self.limit if self.least else figure <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {self.limit:g}"


PYTHON = "python -c pass"
READY, SEARCHABLE = "import, ready for list, show, trace", "import, searchable by word and part"
HUGE = 10_000_000
"""Records of a history that is only searched, in place: to import it in every way would take hours."""

_GROWTH, _SEARCH = "growth to the largest size", "search, rare or absent, --json"
_LARGE = 1_000_000
_FAR = "page of 20 at 0.9 N"

GOALS: dict[str, Goal] = {
    "start": Goal("any command without data", PYTHON, 1.2),
    "read": Goal("list, show, trace --json", PYTHON, 1.8),
    "read.peer": Goal("list, show, trace --json", "sqlite-utils", 0.2),
    "search.rg": Goal(_SEARCH, "rg -F", 0.4, above=_LARGE),
    "search.rg.large": Goal(f"{_SEARCH}, at 10^7", "rg -F", 0.05, above=10_000_000),
    "search.jq": Goal(_SEARCH, "jq", 0.02, above=_LARGE),
    "search.lnav": Goal(_SEARCH, "lnav", 0.02, above=_LARGE),
    "search.library": Goal("search in the library, 50 hits, 3+ characters", "ms", 1.0),
    "page.library": Goal(f"{_FAR}, library", "page 0", 1.2),
    "page.sqlite": Goal(f"{_FAR}, CLI", "sqlite3 OFFSET", 0.12, above=_LARGE),
    "page.tail": Goal(f"{_FAR}, CLI", "tail | head", 0.12, above=_LARGE),
    "growth": Goal(_GROWTH, "smallest size", 1.3),
    "record.floor": Goal("append to a log, orjson loaded", "bare os.write", 2.5),
    "record.logging": Goal("append to a log", "logging, JSON", 0.8),
    "record.otel": Goal("append to a log", "OpenTelemetry span", 0.5),
    "record.burst": Goal("a burst of 50,000 events", "lost", 0),
    "append.store": Goal("append to an SQLite store", "bare insert", 2.0),
    "writers.rate": Goal("4 processes on one log, rate", "one writer", 0.6, least=True),
    "writers.lost": Goal("4 processes on one log", "lost or torn", 0),
    "import.floor": Goal(READY, "parse floor", 4.0),
    "import.duckdb": Goal(READY, "duckdb read_json", 1.0),
    "import.searchable": Goal(SEARCHABLE, "sqlite-utils insert", 1.0),
    "import.memory": Goal("import memory above base", "MB", 60),
    "detect": Goal("detect over all of it", "jq -c .id", 0.5),
}
"""The measures by key, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report.

    Attributes:
        part: of the report; what: was done; against: floor or peer, "" when the figure stands for itself.
        size: records of the history, None when it does not matter.
        figure: a ratio (clock), or what ``unit`` says; cpu: the same ratio of the processor's time.
        ours, theirs: medians, as they are shown.
        goal: key in `GOALS`.
        missing: why there is no figure; wrong: why the figure does not count.
    """

    part: str
    what: str
    against: str = ""
    size: int | None = None
    figure: float | None = None
    cpu: float | None = None
    ours: str = ""
    theirs: str = ""
    unit: str = "x"
    goal: str = ""
    missing: str = ""
    wrong: str = ""

    @property
    def verdict(self) -> str:
        """Return "met" or "short" where there is a goal and a figure that counts."""
        goal = GOALS.get(self.goal)
        if self.wrong:
            return "WRONG"
        if goal is None or self.figure is None or (self.size or 0) < goal.above:
            return ""
        return "met" if goal.met(self.figure) else "short"


@dataclass(slots=True)
class Findings:
    """All rows of a run, and what else the report tells."""

    rows: list[Row] = field(default_factory=lambda: list[Row]())
    notes: list[str] = field(default_factory=lambda: list[str]())
    curves: dict[str, dict[int, float]] = field(default_factory=lambda: dict[str, dict[int, float]]())
    """Seconds of the clock by operation and number of records."""

    @property
    def wrong(self) -> list[Row]:
        """What gave a wrong answer."""
        return [row for row in self.rows if row.wrong]

    def largest(self) -> int | None:
        """Return the most records that anything was measured with."""
        sizes = {row.size for row in self.rows if row.size is not None}
        return max((size for size in sizes if size < HUGE), default=max(sizes, default=None))


def duration(seconds: float) -> str:
    """Return a duration in three digits and the unit that fits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            return f"{number(seconds * factor)} {unit}"
    return ""


def number(value: float) -> str:
    """Return a number in about three digits."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}" if value >= 0.001 else f"{value:.1e}"
