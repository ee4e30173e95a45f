"""Follow running sessions and report each finding once when it changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.history.live.monitor import RecordStream
from ctxmgr.history.live.record_sources import PASSING, Batch, Source
from ctxmgr.light_dataclass import dataclass, field
from ctxmgr.log.codec import Record
from ctxmgr.types.finding import Finding

_MOST_RUNS = 64

What = Literal["raised", "escalated", "over", "ended"]


@dataclass(frozen=True, slots=True)
class Sight:
    """Something to tell.

    Attributes:
        event: a finding was ``raised``, ``escalated`` to a higher severity, or is ``over``; or the session ``ended``.
        finding: what was found; None when the session ended.
        outcome: of an ended session.
        lost: how many published events were not captured, when the session's own history counted them.
    """

    event: What
    session: str
    finding: Finding | None = None
    outcome: str | None = None
    lost: int | None = None


@dataclass(slots=True)
class _Run:
    """One session under watch."""

    monitor: Monitor
    feed: RecordStream = field(default_factory=RecordStream)
    known: dict[str, Finding] = field(default_factory=lambda: dict[str, Finding]())
    muted: bool = False
    end: Record | None = None
    ends: int = 0
    told_ends: int = 0

    def take(self, record: Record) -> None:
        for seen in self.feed.take(record):
            self.monitor.observe(seen)
        if record.get("kind") == "sessionEnd":
            self.end, self.ends = record, self.ends + 1
        elif record.get("kind") == "entry":
            self.end = None

    def skip_past(self, now: float, *, all_of_it: bool) -> None:
        """Keep silent about what was over before anyone watched; of a session of the past, about everything."""
        found = self.monitor.findings(now, live=True)
        self.known = {each.id: each for each in found if all_of_it or each.resolved is not None}
        self.muted = all_of_it

    def look(self, session: str, now: float) -> list[Sight]:
        found = {each.id: each for each in self.monitor.findings(now, live=True)}
        # A stall that nothing is left of, or a loop that a later result disproved.
        gone = [each for name, each in self.known.items() if name not in found]
        sights = [
            Sight("over", session, each.model_copy(update={"resolved": "progress"})) for each in gone if each.resolved is None
        ]
        for each in found.values():
            sights += [Sight(what, session, each) for what in self._changes(self.known.get(each.id), each)]
        for each in gone:
            del self.known[each.id]
        self.known.update(found)
        if self.end is not None and self.ends > self.told_ends:
            sights.append(Sight("ended", session, None, str(self.end.get("outcome")), _lost(self.end)))
        self.told_ends = max(self.ends, self.told_ends)
        return sights

    def _changes(self, before: Finding | None, now: Finding) -> list[What]:
        if before is None or (before.resolved is not None and now.resolved is None):
            if now.resolved is None:
                return ["raised"]
            # A call that came back late was told of while it was overdue, unless it all happened between two looks.
            told = now.kind == "hung" and any(each.kind == "hung" and each.first == now.first for each in self.known.values())
            return [] if told else ["raised", "over"]
        if now.resolved is not None:
            return [] if before.resolved is not None else ["over"]
        return ["escalated"] if before.severity == "warn" != now.severity else []


class Follower:
    """Asks a source what came, shows it to the detectors, and says what changed.

    What was already over at the first look is not told of, nor what lies in sessions other than the latest, until these
    go on. At most 64 sessions are kept in mind, those that went on last.

    Args:
        source: what to follow.
        settings: table of thresholds, see `DetectSettings.from_table`.
        clock: returns seconds since 1970; what stalls are judged against.

    Attributes:
        wait: waits so many seconds at most for something new, where the source can tell; None elsewhere.
    """

    wait: Callable[[float], None] | None = None

    def __init__(
        self, source: Source, settings: Mapping[str, Any] | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._source = source
        self._settings = DetectSettings.from_table(settings or {})
        self._clock = clock
        self._runs: dict[str, _Run] = {}
        self._looked = False

    def tick(self) -> list[Sight]:
        """Look once; return what is to be told, oldest first."""
        try:
            batch = self._source.poll()
            if batch is not None:
                self._take(batch)
        except PASSING:
            pass  # what can't be read now is read at the next look
        now = self._clock()
        return [sight for session, run in self._runs.items() if not run.muted for sight in run.look(session, now)]

    def counts(self) -> dict[str, int]:
        """Return the number of entries of each session that is followed."""
        return {session: run.feed.entries for session, run in self._runs.items() if not run.muted}

    def ended(self) -> bool:
        """Whether there is a session, and all that are followed have ended."""
        runs = [run for run in self._runs.values() if not run.muted]
        return bool(runs) and all(run.end is not None for run in runs)

    def _take(self, batch: Batch) -> None:
        runs: dict[str, _Run] = {} if batch.fresh else self._runs
        last: str | None = None
        for session in batch.gone:
            runs.pop(session, None)
        for record in batch.records:
            session = record.get("session")
            if not isinstance(session, str):
                continue
            last = session
            run = runs.pop(session, None) or self._new_run(session)
            run.muted = False
            runs[session] = run
            if len(runs) > _MOST_RUNS:
                del runs[next(iter(runs))]
            run.take(record)
        self._runs = runs
        for session in batch.begun & runs.keys():
            self._looked = True
            runs[session].skip_past(self._clock(), all_of_it=False)
        if not self._looked and last is not None:
            self._looked = True
            now = self._clock()
            for session, run in runs.items():
                run.skip_past(now, all_of_it=session != last)

    def _new_run(self, session: str) -> _Run:
        run = _Run(Monitor(self._settings))
        if (old := self._runs.get(session)) is not None:
            run.known, run.told_ends = old.known, old.told_ends
        return run


def _lost(end: Record) -> int | None:
    capture = end.get("capture")
    lost = cast("dict[str, Any]", capture).get("lost") if isinstance(capture, dict) else None
    return lost if isinstance(lost, int) and not isinstance(lost, bool) else None
