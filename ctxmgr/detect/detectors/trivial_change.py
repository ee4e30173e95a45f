"""Detect a repeated call whose results differ only in volatile parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, cast

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.detect.text.fingerprints import blur, blur_numbers, blur_receipts, blur_ticks, blur_times
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import FindingKind

_NUMBER = lazy_pattern(r"[0-9]+")
_PROGRESS = lazy_pattern(
    r"\b(?:percent|progress|done|completed|remaining|left|frame|step|epoch|rows|bytes)\W{1,4}[0-9.]+|[0-9.]+ ?%"
    r"|\b[0-9]+ ?(?:/|of) ?[0-9]+\b",
    re.IGNORECASE,
)
_MOST = 400


class _Run(NamedTuple):
    """The last steps of ``length``; ``settled``: how many at its end are equal."""

    steps: tuple[Step, ...]
    core: str
    settled: int
    length: int


class TrivialChangeDetector(StepDetector):
    """Counts identical calls in a row whose results are equal once trifles are taken out: many warn, more are a loop.

    What a trifle is depends on the call. For a question, the clock: dates, times, seconds since 1970, counters that run by
    themselves (an uptime, the number of the request), and every number where the clock is what was asked for; its ids and
    other numbers may be the news. For a call that does something, ids
    too, by their shape or by what they are called: asking for the same again brings nothing but another receipt. A number
    that is no id stays, for it may count what was done. For a failure, every number: "try 7 failed" after "try 6 failed"
    is no progress. Polls that wait between are exempt; so is what says that it is still under way, but where it tells how far
    it has come and that figure stands still.
    """

    kind: FindingKind = "trivialChange"
    wake = Wake.NEXT

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when only trifles have changed for long enough."""
        self.state = run = self._run(step, past)
        if run is None:
            return None
        settings = self._settings.of(step.action)
        needed = settings.trivial_rounds
        if len(run.steps) < needed or run.settled >= needed:
            return None
        proved = run.length >= settings.trivial_loop_rounds
        return Sighting(
            self.kind,
            step.query,
            1,
            run.steps[-needed:],
            needed,
            0.75 if proved else 0.5,
            severity="loop" if proved else "warn",
        )

    def _run(self, step: Step, past: Sequence[Step]) -> _Run | None:
        last = past[-1] if past else None
        settings = self._settings.of(step.action)
        if last is None or last.query != step.query or step.failed != last.failed or len(step.calls) > 1:
            return None
        if polling.is_patient(last, step, settings):
            return None
        if polling.waits(step, settings) and (step.started is None or not _PROGRESS.search(step.answer()[:_MOST])):
            return None
        old: _Run | None = self.state
        same = step.same(last)
        core = old.core if same and old is not None else _core(step)
        if core is None or core != (old.core if old is not None else _core(last)):
            return None
        old = old or _Run((last,), core, 1, 1)
        steps = (*old.steps, step)[-settings.trivial_rounds :]
        return _Run(steps, core, old.settled + 1 if same else 1, old.length + 1)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how many results in a row differed in trifles alone."""
        needed = self._settings.of(step.action).trivial_rounds
        run: _Run | None = self.state
        if run is None:
            return Opinion(self.kind, excerpt(step), 0, needed, "no call like it just before, or its result is a new one")
        count = run.length
        why = "the results are equal" if run.settled >= len(run.steps) else "seen" if count >= needed else "more wanted"
        return Opinion(self.kind, fingerprints.one_line(run.core), count, needed, why)


def _core(step: Step) -> str | None:
    call = step.first
    if call.finish is None or call.identity() is not None:
        return None
    if step.failed:
        output = call.finish.output
        said = fingerprints.plain_text(cast("object", output)) if isinstance(output, dict) else call.error()
        return None if said is None else _NUMBER.sub("#", blur(said[:4000], ids=True))
    asks = call.meaning() in ("query", "poll")
    clock = vocabulary.asks_the_time(call.start)
    drop = fingerprints.CLOCK_KEYS if asks or clock else fingerprints.RECEIPT_KEYS | fingerprints.CLOCK_KEYS
    text = fingerprints.plain_text(call.finish.output, drop=fingerprints.NOISE_KEYS | drop)
    if not text:
        return None
    if clock:
        return blur_numbers(blur_times(text))
    figures = _PROGRESS.findall(text[:_MOST]) if asks and len(text) < _MOST else []
    if figures:  # what it tells of how far it has come is the news; gauges beside that are not
        return f"{figures} {blur_numbers(blur_times(text))}"
    return blur_ticks(blur_times(blur(text))) if asks else blur_receipts(blur(text, ids=True))
