"""The two-minute rule on real time: silence that was none, and runs that were cut off."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.detection.runs import Run
from bench.detection.tables import table
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.replay import session_observations
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.text.comparison import event_text, is_farewell
from ctxmgr.types.finding import Observation

SEED = 20_260_122
CUTS = 5
"""Cuts of each run, at places drawn at random."""

_SETTINGS = DetectSettings()
_WORK = {
    "call": "a call is in flight",
    "agent": "the agent's turn: after a result or the customer's words",
    "customer": "the customer's turn: after the agent's words",
}
_COLUMNS = ["cut where", "cuts", "stall claimed", "share", "claimed at half the limit", "not claimed after thanks or a goodbye"]


@dataclass(slots=True)
class Gaps:
    """Silence between two steps (calls and texts) of real runs: how many, and in how many a stall was claimed."""

    all: int = 0
    claimed: list[str] = field(default_factory=list[str])
    over: int = 0


def gaps(runs: Sequence[Run]) -> Gaps:
    """Ask just before each record whether the run hangs."""
    found = Gaps()
    for run in runs:
        monitor = Monitor(_SETTINGS)
        before: float | None = None
        claimed = False
        for each in session_observations(run.records):
            if before is not None and each.at is not None:
                claimed = claimed or _hangs(monitor, each.at)
            if _is_step(each):
                if before is not None and each.at is not None:
                    found.all += 1
                    found.over += each.at - before > _SETTINGS.stall_seconds
                    if claimed:
                        found.claimed.append(f"{run.name} at {each.id}")
                before, claimed = each.at, False
            monitor.observe(each)
    return found


@dataclass(slots=True)
class Cut:
    """Runs cut where the same was awaited."""

    cuts: int = 0
    found: int = 0
    early: int = 0
    farewells: int = 0


def cuts(runs: Sequence[Run], seed: int = SEED) -> dict[str, Cut]:
    """Cut each run at random places; ask when its limit has passed, and when half of it has."""
    dice = random.Random(seed)
    found = {name: Cut() for name in _WORK}
    for run in runs:
        observations = list(session_observations(run.records))
        for _ in range(CUTS):
            if len(observations) < 2:
                continue
            kept = observations[: dice.randrange(1, len(observations))]
            last = max((each.at for each in kept if each.at is not None), default=None)
            if last is None:
                continue
            state = _awaited(kept)
            limit = _SETTINGS.call_seconds + _SETTINGS.call_grace if state == "call" else _SETTINGS.stall_seconds
            monitor = Monitor(_SETTINGS)
            for each in kept:
                monitor.observe(each)
            cut = found[state]
            cut.cuts += 1
            cut.early += _hangs(monitor, last + limit / 2)
            claimed = _hangs(monitor, last + limit + 1)
            cut.found += claimed
            cut.farewells += not claimed and is_farewell(event_text(kept[-1]) or "")
    return found


def hang(runs: Sequence[Run]) -> list[str]:
    """Report both."""
    real = gaps(runs)
    rows: list[list[str]] = []
    for name, cut in cuts(runs).items():
        share = f"{100 * cut.found / max(1, cut.cuts):.1f} %"
        rows.append([_WORK[name], str(cut.cuts), str(cut.found), share, str(cut.early), str(cut.farewells)])
    return [
        f"{real.all:,} gaps between two steps of {len(runs)} runs; {real.over} longer than {_SETTINGS.stall_seconds:g} s. "
        f"A stall was claimed in {len(real.claimed)}" + (": " + ", ".join(real.claimed[:10]) if real.claimed else "") + ".",
        "",
        f"Each run cut {CUTS} times at a random place (seed {SEED}) and asked one second after its limit "
        f"({_SETTINGS.call_seconds + _SETTINGS.call_grace:g} s for a call in flight, {_SETTINGS.stall_seconds:g} s otherwise). "
        "Where the customer's words are awaited nothing hangs, so none should be claimed there.",
        "",
        *table(_COLUMNS, rows),
    ]


def _hangs(monitor: Monitor, now: float) -> bool:
    found = monitor.findings(now, live=True)
    return any(finding.severity == "hung" and finding.resolved is None for finding in found)


def _is_step(each: Observation) -> bool:
    return each.kind == "start" or (each.kind == "event" and each.type in ("message", "user_message"))


def _awaited(kept: Sequence[Observation]) -> str:
    begun = {each.id for each in kept if each.kind == "start"}
    if begun - {each.id for each in kept if each.kind == "finish"}:
        return "call"
    last = next((each for each in reversed(kept) if each.kind != "event" or each.type != "thought"), kept[-1])
    return "customer" if last.type == "message" else "agent"
