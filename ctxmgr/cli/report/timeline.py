"""Arrange the calls of a session in time, from left to right, with a lane per agent."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from ctxmgr.cli.views.findings import as_seconds
from ctxmgr.cli.views.layout import clock, day, duration, plural
from ctxmgr.log.fast_json import json_object
from ctxmgr.log.ids import format_time, parse_time
from ctxmgr.types.finding import Finding
from ctxmgr.types.view import EntryView

WIDTH = 1000.0
"""Width of the picture in units."""

COLUMN = 4.0
"""Width of the narrowest mark in units. Calls in one column share a mark, so a lane has at most 250 marks."""

_PAUSE = 30
"""A pause this many times as long as the median step is shortened in the picture."""

_MIN_PAUSE = 60.0
"""Seconds up to which a pause is never shortened."""

_ROUNDS = 60
"""A loop of more rounds is drawn as one band, because narrower bands can't be told apart."""

# The worst status wins: a column with one failure must look failed, however many calls succeeded.
_WORST = {"ok": 0, "interrupted": 1, "denied": 2, "open": 3, "error": 4}


@dataclass(frozen=True, slots=True)
class Mark:
    """The calls of one column: index of the first, worst status, and the text for a reader.

    ``good`` is the share of successful calls if the worst one failed.
    """

    x: float
    width: float
    status: str
    index: int
    text: str
    good: float = 0.0


@dataclass(frozen=True, slots=True)
class Band:
    """The area of one round of a loop, of a whole loop, or of a stall."""

    x: float
    width: float
    kind: str
    odd: bool
    text: str


@dataclass(slots=True)
class Track:
    """The lane of one agent: its name, its totals, its calls and its trouble."""

    agent: str
    calls: int = 0
    failed: int = 0
    tokens: int = 0
    marks: list[Mark] = field(default_factory=list[Mark])
    bands: list[Band] = field(default_factory=list[Band])


@dataclass(frozen=True, slots=True)
class Tick:
    """A label on the axis: a time, or the length of a shortened pause."""

    x: float
    text: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The picture of a session. ``timed`` is false if the records have no times, so that only their order is drawn."""

    lanes: list[Track]
    ticks: list[Tick]
    pauses: list[Tick]
    timed: bool


class _Scale:
    """Maps times to places. A pause takes at most the room of `_PAUSE` median steps, because a night would squeeze the work."""

    def __init__(self, moments: Sequence[float]) -> None:
        self.moments = sorted(set(moments)) or [0.0]
        steps = [after - before for before, after in pairwise(self.moments)]
        self.longest = max(_MIN_PAUSE, _PAUSE * median(steps)) if steps else _MIN_PAUSE
        self._at = [0.0]
        for step in steps:
            self._at.append(self._at[-1] + min(step, self.longest))
        self._length = self._at[-1] or 1.0

    def x(self, moment: float) -> float:
        """Return the place of a time in units, rounded to a tenth."""
        before = max(bisect_right(self.moments, moment) - 1, 0)
        rest = min(max(moment - self.moments[before], 0.0), self.longest)
        upto = self._at[before + 1] if before + 1 < len(self._at) else self._at[before]
        return round(min(self._at[before] + rest, max(upto, self._at[before])) / self._length * (WIDTH - COLUMN), 1)


def draw_timeline(entries: Sequence[EntryView], findings: Sequence[Finding]) -> Timeline:
    """Return the picture of a session's entries (in order) and of the findings among them."""
    starts = [parse_time(entry.ts) for entry in entries]
    timed = bool(entries) and all(start is not None for start in starts)
    places = {entry.id: (start if timed and start is not None else float(number))
              for number, (entry, start) in enumerate(zip(entries, starts, strict=True))}  # fmt: skip
    # Without times the durations are unknown too, so each call is a mark at its number.
    ends = {entry.id: places[entry.id] + (entry.duration_ms or 0) / 1000 for entry in entries} if timed else places
    scale = _Scale([*places.values(), *ends.values()])
    lanes: dict[str, Track] = {}
    calls: dict[str, list[EntryView]] = {}
    for entry in entries:
        calls.setdefault(entry.agent, []).append(entry)
        lane = lanes.setdefault(entry.agent, Track(entry.agent))
        lane.calls += 1
        lane.failed += entry.status == "error"
        lane.tokens += total_tokens(entry)
    for lane in lanes.values():
        lane.marks = _marks(calls[lane.agent], scale, places, ends)
    known = {entry.id: entry for entry in entries}
    for finding in findings:
        _add_bands(lanes, finding, scale, places, known)
    ticks, pauses = (_ticks(scale), _pauses(scale)) if timed else ([], [])
    return Timeline(list(lanes.values()), ticks, pauses, timed)


def total_tokens(entry: EntryView) -> int:
    """Return the number of input and output tokens in an entry's usage, or 0."""
    numbers = [json_object(entry.usage).get(name) for name in ("inputTokens", "outputTokens")]
    return sum(number for number in numbers if isinstance(number, int) and not isinstance(number, bool))


def _marks(entries: Sequence[EntryView], scale: _Scale, places: Mapping[str, float], ends: Mapping[str, float]) -> list[Mark]:
    columns: dict[int, list[EntryView]] = {}
    for entry in entries:
        # Calls that would overlap share one mark, whose text counts them.
        columns.setdefault(int(scale.x(places[entry.id]) // COLUMN), []).append(entry)
    marks: list[Mark] = []
    for column, held in columns.items():
        first, last = held[0], held[-1]
        end = max(scale.x(ends[entry.id]) for entry in held)
        start = column * COLUMN
        failed = sum(entry.status == "error" for entry in held)
        if len(held) == 1:
            text = f"@{first.index} {first.action}, {first.status}" + (f", {clock(first.ts)}" if first.ts else "")
        else:
            text = f"@{first.index} to @{last.index}: {plural(len(held), 'call')}" + (f", {failed} failed" if failed else "")
        status = max((entry.status for entry in held), key=lambda each: _WORST[each])
        good = 0.0 if status == "ok" else round(sum(entry.status == "ok" for entry in held) / len(held), 2)
        marks.append(Mark(start, round(max(COLUMN - 1, end - start), 1), status, first.index, text, good))
    return marks


def _add_bands(
    lanes: Mapping[str, Track], finding: Finding, scale: _Scale, places: Mapping[str, float], entries: Mapping[str, EntryView]
) -> None:
    members = [entries[member] for member in finding.members if member in entries]
    # If only a part of the session is drawn, it may hold no entry of a finding.
    if not members:
        return
    # A loop of several agents has a band in each of their lanes.
    for agent in dict.fromkeys(entry.agent for entry in members):
        lane = lanes[agent]
        own = [entry for entry in members if entry.agent == agent]
        if finding.severity == "hung":
            start, silent = scale.x(places[own[0].id]), as_seconds(finding.evidence.get("stalledSeconds"))
            # A resolved stall ends where the agent's next call begins. An unresolved one reaches the right end.
            after = [mark.x for mark in lane.marks if mark.x > start] if finding.resolved else []
            end = min(after, default=WIDTH)
            label = f"hung for {duration(silent)}" if silent else "hung: no result was recorded"
            lane.bands.append(Band(start, round(max(end - start, COLUMN), 1), "hung", odd=False, text=label))
            continue
        size = max(len(own) // max(finding.count, 1), 1) if finding.count <= _ROUNDS else len(own)
        rounds = [own[at : at + size] for at in range(0, len(own), size)]
        for number, each in enumerate(rounds):
            start, last = scale.x(places[each[0].id]), scale.x(places[each[-1].id]) + COLUMN
            end = scale.x(places[rounds[number + 1][0].id]) if number + 1 < len(rounds) else last
            label = f"{finding.kind}, round {number + 1} of {finding.count}" if len(rounds) > 1 else finding.kind
            lane.bands.append(Band(start, round(max(end - start, COLUMN), 1), finding.severity, bool(number % 2), label))


def _ticks(scale: _Scale) -> list[Tick]:
    """Return labels for the first and the last time and for some between them, without overlaps."""
    moments = scale.moments
    days = {day(format_time(moment)) for moment in (moments[0], moments[-1])}
    ticks: list[Tick] = []
    # The ends first, so that they keep their place and labels between them give way.
    for moment in (moments[0], moments[-1], *(moments[len(moments) * number // 8] for number in range(1, 8))):
        time = format_time(moment)
        text = clock(time) if len(days) == 1 else f"{day(time)[5:]} {clock(time)[:5]}"
        _add_tick(ticks, Tick(scale.x(moment), text))
    return sorted(ticks, key=lambda tick: tick.x)


def _pauses(scale: _Scale) -> list[Tick]:
    """Return labels for the shortened pauses, and only for the longest of those close to each other."""
    gaps = sorted(((after - before, before, after) for before, after in pairwise(scale.moments)), reverse=True)
    pauses: list[Tick] = []
    for gap, before, after in gaps:
        if gap <= scale.longest:
            break
        _add_tick(pauses, Tick(round((scale.x(before) + scale.x(after)) / 2, 1), f"{duration(gap)} pause"))
    return pauses


def _add_tick(ticks: list[Tick], tick: Tick) -> None:
    # Closer labels would overlap.
    if not any(abs(tick.x - other.x) < WIDTH / 9 for other in ticks):
        ticks.append(tick)
