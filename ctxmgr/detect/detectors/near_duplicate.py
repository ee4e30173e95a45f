"""Detect one question that is asked again in trivial disguises."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.text.similarity import Span, counts_up, drift_key, near_key, span_of, target_of
from ctxmgr.types.finding import FindingKind

_MAX_FILES = 8
_MAX_PIECES = 64
_NEW_SHARE = 0.1
"""A read of which less than this share is new brings nothing."""
_GAP = 3
_CHANGING = ("mutation", "sleep")
_ACTING = (*_CHANGING, "gesture")


class _Run(NamedTuple):
    """Steps in a row that asked nearly the same and were answered the same."""

    near: Hashable
    drift: Hashable
    steps: tuple[Step, ...]
    nearly: int


class _Reading(NamedTuple):
    """What was read of one file: its lines as pieces, and the reads that brought nothing new."""

    pieces: tuple[tuple[int, int], ...]
    stale: tuple[Step, ...]
    seen: int


class _State(NamedTuple):
    run: _Run | None
    files: dict[str, _Reading]


class NearDuplicateDetector(StepDetector):
    """Two rules.

    Neighbouring calls that are equal but for volatile fields, cosmetic shell words or numbers, and bring one result. And
    reads of lines that were all read before: a sweep over a file is work, the same sweep again is none.
    """

    kind: FindingKind = "nearDuplicate"
    wake = Wake.ECHO | Wake.SPAN

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the step's question was asked in another guise often enough."""
        state: _State = self.state or _State(None, {})
        if len(step.calls) > 1:
            self.state = _State(None, state.files) if state.files else None
            return None
        run = self._run(step, past, state.run)
        files, reading, span = self._read(step, state.files)
        self.state = _State(run, files) if run is not None or files else None
        if run is not None:
            sighting = self._judge_run(step, run)
            if sighting is not None:
                return sighting
        if span is None or reading is None or len(reading.stale) < self._settings.of(step.action).sweep_rounds:
            return None
        needed = self._settings.of(step.action).sweep_rounds
        facts = (("about", span.target), ("linesRead", sum(last - first + 1 for first, last in reading.pieces)))
        return Sighting(self.kind, ("sweep", span.target), 1, reading.stale[-needed:], needed, 0.8, facts=facts, leave=_GAP)

    def _run(self, step: Step, past: Sequence[Step], run: _Run | None) -> _Run | None:
        last = past[-1] if past else None
        settings = self._settings.of(step.action)
        if (
            last is None
            or step.action != last.action
            or (not step.echoes(last) and step.query != last.query)
            or None in step.results()
            or step.failed
            or (step.results() != last.results() and not step.shows_the_same(last))
            or step.meaning(settings.pollers) in (_CHANGING if step.shows_a_view() else _ACTING)
            or polling.waits(step, settings)
            or polling.is_patient(last, step, settings)
        ):
            return None
        if run is not None and step.query == last.query:
            near, drift = run.near, run.drift
        else:
            near, drift = near_key(step.first.start), drift_key(step.first.start)
        if run is None:
            start = last.first.start
            run = _Run(near_key(start), drift_key(start), (last,), 1)
        keep = max(settings.near_rounds, settings.drift_rounds)
        if near is not None and near == run.near:
            return _Run(near, drift, (*run.steps, step)[-keep:], run.nearly + 1)
        if drift is not None and drift == run.drift:
            return _Run(near, drift, (*run.steps, step)[-keep:], 1)
        return _Run(near, drift, (step,), 1)

    def _judge_run(self, step: Step, run: _Run) -> Sighting | None:
        settings = self._settings.of(step.action)
        steps = run.steps
        about = f"{step.action} {target_of(step.first.start)}".strip()
        for count, needed, key in (
            (run.nearly, settings.near_rounds, run.near),
            (len(steps), settings.drift_rounds, run.drift),
        ):
            if key is not None and key == run.drift and counts_up([each.first.start for each in steps[-needed:]]):
                return None
            if count >= needed and len(steps) >= needed and len({each.query for each in steps[-needed:]}) > 1:
                return Sighting(
                    self.kind, ("near", run.drift or run.near), 1, steps[-needed:], needed, 0.85, facts=(("about", about),)
                )
            if key is None:
                break
        return None

    def _read(self, step: Step, files: dict[str, _Reading]) -> tuple[dict[str, _Reading], _Reading | None, Span | None]:
        meaning = step.meaning(self._settings.pollers) if files or step.traits & Wake.SPAN else "query"
        if meaning in ("mutation", "other") and not step.failed:
            return {}, None, None
        span = span_of(step.first.start) if step.traits & Wake.SPAN and not step.failed else None
        if span is None:
            return files, None, None
        old = files.get(span.target, _Reading((), (), step.number))
        fresh = _fresh(span, old.pieces)
        stale = fresh < max(1.0, _NEW_SHARE * (span.last - span.first + 1)) and bool(old.pieces)
        near = step.number - old.seen <= _GAP
        run = ((*old.stale, step) if near else (step,)) if stale else ()
        new = _Reading(_joined(span, old.pieces), run[-self._settings.window :], step.number)
        kept = {name: reading for name, reading in files.items() if name != span.target}
        while len(kept) >= _MAX_FILES:
            del kept[next(iter(kept))]
        return {**kept, span.target: new}, new, span

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how many neighbours asked nearly the same, or how many reads in a row brought no new line."""
        settings = self._settings.of(step.action)
        state: _State = self.state or _State(None, {})
        span = span_of(step.first.start) if step.traits & Wake.SPAN else None
        if state.run is not None and len(state.run.steps) > 1:
            nearly = state.run.nearly == len(state.run.steps)
            needed = settings.near_rounds if nearly else settings.drift_rounds
            count = len(state.run.steps)
            differ = len({each.query for each in state.run.steps}) > 1
            why = ("seen" if count >= needed else "more wanted") if differ else "the calls are equal, not nearly equal"
            return Opinion(self.kind, excerpt(step), count, needed, why)
        if span is not None and span.target in state.files:
            count = len(state.files[span.target].stale)
            why = "seen" if count >= settings.sweep_rounds else "it brought new lines" if not count else "more wanted"
            return Opinion(
                self.kind, f"lines {span.first} to {span.last} of {span.target}"[:200], count, settings.sweep_rounds, why
            )
        return Opinion(
            self.kind, excerpt(step), 0, settings.near_rounds, "no neighbour asked nearly the same with the same result"
        )


def _fresh(span: Span, pieces: tuple[tuple[int, int], ...]) -> int:
    """Return how many lines of the span lie in none of the pieces."""
    known = sum(max(0, min(last, span.last) - max(first, span.first) + 1) for first, last in pieces)
    return span.last - span.first + 1 - known


def _joined(span: Span, pieces: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the pieces with the span added, apart from each other and in order."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted((*pieces, (span.first, span.last))):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined[-_MAX_PIECES:])
