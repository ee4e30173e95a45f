"""Detect one call made again and again: in a row, with small changes, or among other calls."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import NamedTuple, cast

from ctxmgr.detect.interface import (
    Opinion,
    Sighting,
    StepDetector,
    Wake,
    asks_for_pending,
    backs_off,
    is_patient,
    rounds_needed,
    seconds_between,
)
from ctxmgr.detect.step import ObservedStep, excerpt
from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.detect.text.comparison import Span, call_target, counts_up, drift_key, line_span, near_key
from ctxmgr.detect.text.fingerprints import mask_numbers, mask_receipts, mask_ticks, mask_times, mask_volatile
from ctxmgr.detect.text.vocabulary import is_lookout, writes
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import FindingKind


class _Run(NamedTuple):
    """A run of equal steps. ``first``: its first call, from a batch. ``foreseen``: all later answers were foreseen."""

    length: int
    gap: float | None
    first: ObservedStep | None = None
    foreseen: bool = True


class RepetitionDetector(StepDetector):
    """Counts how often the last step came back unchanged. Patience and back-off restart the count."""

    kind: FindingKind = "repetition"
    wake = Wake.NEXT | Wake.IN_BATCH

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting from the third identical step in a row."""
        last = _find_repeated(step, past, alone=self.state is None)
        if last is None:
            self.state = None
            return None
        run: _Run = self.state or _Run(1, None, last if last is not past[-1] else None)
        settings = self._settings.for_action(step.action)
        gap = seconds_between(last, step)
        if is_patient(last, step, settings) or backs_off(run.gap, gap, step):
            self.state = _Run(1, gap)
            return None
        self.state = run = _Run(run.length + 1, gap, run.first, run.foreseen and step.foreseen)
        if run.length < settings.repeat_rounds:
            return None
        needed = rounds_needed(step, settings, run.foreseen)
        if run.length < needed:
            return None
        steps = (*past[len(past) - needed + 1 :], step)
        # The first call was part of a batch. The rest of the batch does not belong to the loop.
        if run.first is not None and run.length == needed:
            steps = (run.first, *steps[1:])
        return Sighting("repetition", step.query, 1, steps, needed, 0.95)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often this step came in a row, and what distinguishes it from the one before."""
        settings = self._settings.for_action(step.action)
        run: _Run = self.state or _Run(1, None)
        needed = rounds_needed(step, settings, run.foreseen)
        last = past[-1] if past else None
        if run.length >= needed:
            why = "seen"
        elif last is None or last.query != step.query:
            why = "the step before it asked something else"
        elif not step.same(last):
            why = "the result is a new one"
        elif run.length == 1:
            why = "it waited since the step before: patience, not repetition"
        else:
            why = f"{needed - run.length} more wanted"
        return Opinion(self.kind, excerpt(step), run.length, needed, why)


def _find_repeated(step: ObservedStep, past: Sequence[ObservedStep], *, alone: bool) -> ObservedStep | None:
    """Return the step just before if it is the same: a whole step or, at the beginning of a run, one call of a batch."""
    last = past[-1] if past else None
    if last is None:
        return None
    if last.query == step.query:
        return last if step.same(last) else None
    if not alone or len(last.calls) == 1 or len(step.calls) > 1:
        return None
    for call in last.calls:
        if call.query == step.query:
            one = ObservedStep((call,), last.number)
            return one if step.same(one) else None
    return None


_NUMBER = lazy_pattern(r"[0-9]+")
# Forms in which answers report progress: "progress: 37", "37 %", "3/40", "3 of 40".
_PROGRESS = lazy_pattern(
    r"\b(?:percent|progress|done|completed|remaining|left|frame|step|epoch|rows|bytes)\W{1,4}[0-9.]+|[0-9.]+ ?%"
    r"|\b[0-9]+ ?(?:/|of) ?[0-9]+\b",
    re.IGNORECASE,
)
_MAX_TEXT = 400


class _Changes(NamedTuple):
    """The last of ``length`` steps with one core. The last ``settled`` of them have exactly equal results."""

    steps: tuple[ObservedStep, ...]
    core: str
    settled: int
    length: int


class TrivialChangeDetector(StepDetector):
    """Counts identical calls in a row whose results differ only in trifles. Many are a warning, more are a loop.

    The trifles depend on the call:

    * For a question, they are times: dates, times, seconds since 1970, and counters that run by themselves (an uptime, the
      number of the request). If the clock is the question, they are all numbers. Other ids and numbers may be the news.
    * For an action, they are times and ids, recognised by form or by name: each repeat returns only another receipt. Other
      numbers stay, since they may count what was done.
    * For a failure, they are all numbers: "try 7 failed" after "try 6 failed" is no progress.

    Polls that wait in between are exempt. So are answers that report pending work, but for a progress that stands still.
    """

    kind: FindingKind = "trivialChange"
    wake = Wake.NEXT

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if only trifles have changed for long enough."""
        self.state = run = self._run(step, past)
        if run is None:
            return None
        settings = self._settings.for_action(step.action)
        needed = settings.trivial_rounds
        if len(run.steps) < needed or run.settled >= needed:  # equal results are a repetition
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

    def _run(self, step: ObservedStep, past: Sequence[ObservedStep]) -> _Changes | None:
        last = past[-1] if past else None
        settings = self._settings.for_action(step.action)
        if last is None or last.query != step.query or step.failed != last.failed or len(step.calls) > 1:
            return None
        if is_patient(last, step, settings):
            return None
        if asks_for_pending(step, settings) and (step.started is None or not _PROGRESS.search(step.answer()[:_MAX_TEXT])):
            return None
        old: _Changes | None = self.state
        same = step.same(last)
        core = old.core if same and old is not None else _result_core(step)
        if core is None or core != (old.core if old is not None else _result_core(last)):
            return None
        old = old or _Changes((last,), core, 1, 1)
        steps = (*old.steps, step)[-settings.trivial_rounds :]
        return _Changes(steps, core, old.settled + 1 if same else 1, old.length + 1)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how many results in a row differed only in trifles."""
        needed = self._settings.for_action(step.action).trivial_rounds
        run: _Changes | None = self.state
        if run is None:
            return Opinion(self.kind, excerpt(step), 0, needed, "no call like it just before, or its result is a new one")
        count = run.length
        why = "the results are equal" if run.settled >= len(run.steps) else "seen" if count >= needed else "more wanted"
        return Opinion(self.kind, fingerprints.one_line(run.core), count, needed, why)


def _result_core(step: ObservedStep) -> str | None:
    """Return the result without trifles; None if it is empty or can't be compared."""
    call = step.first
    # A result with an identity was replaced by a stub in a compaction, so its text says nothing.
    if call.finish is None or call.identity() is not None:
        return None
    if step.failed:
        output = call.finish.output
        raw = fingerprints.plain_text(cast("object", output)) if isinstance(output, dict) else call.error()
        return None if raw is None else _NUMBER.sub("#", mask_volatile(raw[:4000], ids=True))
    asks = call.meaning() in ("query", "poll")
    clock = vocabulary.asks_the_time(call.start)
    drop = fingerprints.CLOCK_KEYS if asks or clock else fingerprints.RECEIPT_KEYS | fingerprints.CLOCK_KEYS
    text = fingerprints.plain_text(call.finish.output, drop=fingerprints.NOISE_KEYS | drop)
    if not text:
        return None
    if clock:
        return mask_numbers(mask_times(text))
    figures = _PROGRESS.findall(text[:_MAX_TEXT]) if asks and len(text) < _MAX_TEXT else []
    if figures:  # the reported progress is the news; other numbers beside it are not
        return f"{figures} {mask_numbers(mask_times(text))}"
    return mask_ticks(mask_times(mask_volatile(text))) if asks else mask_receipts(mask_volatile(text, ids=True))


_MAX_FILES = 8
_MAX_PIECES = 64  # bounds the state; forgotten pieces count as unread
_NEW_SHARE = 0.1
"""Share of new text below which a read brings nothing."""
_MAX_GAP = 3
"""Maximum steps between two reads of one file in the same sweep."""
_CHANGES_STATE = ("mutation", "sleep")
_ACTS = (*_CHANGES_STATE, "gesture")


class _Duplicates(NamedTuple):
    """Consecutive steps with nearly the same question and the same answer."""

    near: Hashable
    drift: Hashable
    steps: tuple[ObservedStep, ...]
    nearly: int


class _Reading(NamedTuple):
    """What was read of one file: its lines as pieces, and the reads that brought nothing new."""

    pieces: tuple[tuple[int, int], ...]
    stale: tuple[ObservedStep, ...]
    seen: int


class _Readings(NamedTuple):
    run: _Duplicates | None
    files: dict[str, _Reading]


class NearDuplicateDetector(StepDetector):
    """Finds near duplicates by two rules.

    The first: neighbouring calls differ only in volatile fields, cosmetic shell words or numbers, and bring one result. The
    second: all lines of a read were read before. A sweep over a file is work; the same sweep again is not.
    """

    kind: FindingKind = "nearDuplicate"
    wake = Wake.ECHO | Wake.SPAN

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the step's question was asked often enough in a different form."""
        state: _Readings = self.state or _Readings(None, {})
        if len(step.calls) > 1:
            self.state = _Readings(None, state.files) if state.files else None
            return None
        run = self._run(step, past, state.run)
        files, reading, span = self._read(step, state.files)
        self.state = _Readings(run, files) if run is not None or files else None
        if run is not None:
            sighting = self._judge_run(step, run)
            if sighting is not None:
                return sighting
        if span is None or reading is None or len(reading.stale) < self._settings.for_action(step.action).sweep_rounds:
            return None
        needed = self._settings.for_action(step.action).sweep_rounds
        facts = (("about", span.target), ("linesRead", sum(last - first + 1 for first, last in reading.pieces)))
        return Sighting(self.kind, ("sweep", span.target), 1, reading.stale[-needed:], needed, 0.8, facts=facts, leave=_MAX_GAP)

    def _run(self, step: ObservedStep, past: Sequence[ObservedStep], run: _Duplicates | None) -> _Duplicates | None:
        last = past[-1] if past else None
        settings = self._settings.for_action(step.action)
        if (
            last is None
            or step.action != last.action
            or (not step.echoes(last) and step.query != last.query)
            or None in step.results()
            or step.failed
            or (step.results() != last.results() and not step.shows_the_same(last))
            # A scroll that is answered with a view is a question. One that is only acknowledged may have moved something.
            or step.meaning(settings.pollers) in (_CHANGES_STATE if step.shows_a_view() else _ACTS)
            or asks_for_pending(step, settings)
            or is_patient(last, step, settings)
        ):
            return None
        if run is not None and step.query == last.query:  # the same question has the same keys
            near, drift = run.near, run.drift
        else:
            near, drift = near_key(step.first.start), drift_key(step.first.start)
        if run is None:
            start = last.first.start
            run = _Duplicates(near_key(start), drift_key(start), (last,), 1)
        keep = max(settings.near_rounds, settings.drift_rounds)
        if near is not None and near == run.near:
            return _Duplicates(near, drift, (*run.steps, step)[-keep:], run.nearly + 1)
        if drift is not None and drift == run.drift:
            return _Duplicates(near, drift, (*run.steps, step)[-keep:], 1)
        return _Duplicates(near, drift, (step,), 1)

    def _judge_run(self, step: ObservedStep, run: _Duplicates) -> Sighting | None:
        settings = self._settings.for_action(step.action)
        steps = run.steps
        about = f"{step.action} {call_target(step.first.start)}".strip()
        for count, needed, key in (
            (run.nearly, settings.near_rounds, run.near),
            (len(steps), settings.drift_rounds, run.drift),
        ):
            # Seed 1, seed 2, seed 3 with one result is a sweep over the seeds.
            if key is not None and key == run.drift and counts_up([member.first.start for member in steps[-needed:]]):
                return None
            if count >= needed and len(steps) >= needed and len({member.query for member in steps[-needed:]}) > 1:
                return Sighting(
                    self.kind, ("near", run.drift or run.near), 1, steps[-needed:], needed, 0.85, facts=(("about", about),)
                )
            if key is None:
                break
        return None

    def _read(self, step: ObservedStep, files: dict[str, _Reading]) -> tuple[dict[str, _Reading], _Reading | None, Span | None]:
        # If no file is remembered and none is read, the meaning of the step does not matter.
        meaning = step.meaning(self._settings.pollers) if files or step.traits & Wake.SPAN else "query"
        if meaning in ("mutation", "other") and not step.failed:
            return {}, None, None  # any file may have changed
        span = line_span(step.first.start) if step.traits & Wake.SPAN and not step.failed else None
        if span is None:
            return files, None, None
        old = files.get(span.target, _Reading((), (), step.number))
        fresh = _unread_lines(span, old.pieces)
        # Even honest reads overlap by a few lines, so a share is compared instead of zero.
        stale = fresh < max(1.0, _NEW_SHARE * (span.last - span.first + 1)) and bool(old.pieces)
        near = step.number - old.seen <= _MAX_GAP
        run = ((*old.stale, step) if near else (step,)) if stale else ()
        new = _Reading(_merge(span, old.pieces), run[-self._settings.window :], step.number)
        others = {name: reading for name, reading in files.items() if name != span.target}
        while len(others) >= _MAX_FILES:
            del others[next(iter(others))]
        return {**others, span.target: new}, new, span

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how many neighbours asked nearly the same, or how many reads in a row brought no new line."""
        settings = self._settings.for_action(step.action)
        state: _Readings = self.state or _Readings(None, {})
        span = line_span(step.first.start) if step.traits & Wake.SPAN else None
        if state.run is not None and len(state.run.steps) > 1:
            nearly = state.run.nearly == len(state.run.steps)
            needed = settings.near_rounds if nearly else settings.drift_rounds
            count = len(state.run.steps)
            differ = len({member.query for member in state.run.steps}) > 1
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


def _unread_lines(span: Span, pieces: tuple[tuple[int, int], ...]) -> int:
    """Return the number of lines in the span that lie in none of the pieces."""
    known = sum(max(0, min(last, span.last) - max(first, span.first) + 1) for first, last in pieces)
    return span.last - span.first + 1 - known


def _merge(span: Span, pieces: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return the pieces with the span added, merged and in order."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted((*pieces, (span.first, span.last))):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined[-_MAX_PIECES:])


_LEFT_AFTER = 8
"""Steps without the call after which the agent has left it. It is high because other steps lie between anyway."""


class _SimilarSteps(NamedTuple):
    """Steps like the last one, the newest last. ``edited``: new content was written between them."""

    steps: tuple[ObservedStep, ...]
    edited: bool


class InterleavedDetector(StepDetector):
    """Looks back for steps with the same question and the same answer.

    It looks back only to the last sign of change in the world: a change by the agent, or a new answer to this or any other
    repeated question. Polls, waits and looks at shared state (a board, an inbox, a status) between other work are routine.

    Answers that report a failure are different: the changes between them are attempts, and none has helped. After three such
    answers a warning is due. Only an agent that writes new content in between, as in fixing and testing, may need more tries.
    """

    kind: FindingKind = "interleaved"
    wake = Wake.REPEATED

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the call came back often enough."""
        if past and past[-1].query == step.query:
            return None  # a neighbour is a repetition, or has another answer
        seen = self._find_similar(step, past)
        warned, proved = self._thresholds(step, seen)
        count = len(seen.steps)
        if count < warned or self._is_round(step, past):
            return None
        facts = (("changedBetween", seen.edited),)
        return Sighting(
            self.kind, step.query, 1, seen.steps[-warned:], warned, 0.8 if count >= proved else 0.6,
            severity="loop" if count >= proved else "warn", leave=_LEFT_AFTER, facts=facts,
        )  # fmt: skip

    def _is_round(self, step: ObservedStep, past: Sequence[ObservedStep]) -> bool:
        """Whether the last steps repeat the questions of as many steps before them. Then the round would be the pattern."""
        asked = [earlier.query for earlier in past[-2 * self._settings.max_period :]] + [step.query]
        return any(asked[-period:] == asked[-2 * period : -period] for period in range(2, len(asked) // 2 + 1))

    def _thresholds(self, step: ObservedStep, seen: _SimilarSteps) -> tuple[int, int]:
        """Return how many steps make a warning, and how many make a loop."""
        settings = self._settings.for_action(step.action)
        if step.falls_short and not seen.edited:
            return settings.futile_rounds, settings.futile_loop_rounds
        if step.failed:
            return settings.interleaved_loop_rounds, settings.interleaved_loop_rounds
        if step.falls_short:
            return settings.interleaved_loop_rounds, 2 * settings.interleaved_loop_rounds
        return settings.interleaved_rounds, settings.interleaved_loop_rounds

    def _find_similar(self, step: ObservedStep, past: Sequence[ObservedStep]) -> _SimilarSteps:
        """Return the steps like this one since the last change in the world, including this one."""
        settings = self._settings.for_action(step.action)
        if self._is_routine(step):
            return _SimilarSteps((step,), False)
        futile = step.falls_short
        seen, edited, pending = [step], False, False
        answers: dict[int, ObservedStep] = {step.query: step}
        for earlier in reversed(past[-settings.window :]):
            known = answers.setdefault(earlier.query, earlier)
            if earlier.query == step.query:
                if not earlier.same(step) or is_patient(earlier, seen[-1], settings):
                    break
                seen.append(earlier)
                edited = edited or pending
            elif known is not earlier and (step.failed or not futile) and not known.same(earlier):
                break  # another repeated question got a new answer: the world changed
            elif futile:
                # Writing counts only between two of the steps.
                pending = pending or (not earlier.failed and writes(earlier.first.start))
            elif not earlier.failed and earlier.meaning(settings.pollers) == "mutation":
                break
        return _SimilarSteps(tuple(seen[::-1]), edited)

    def _is_routine(self, step: ObservedStep) -> bool:
        settings = self._settings.for_action(step.action)
        if step.meaning(settings.pollers) in ("sleep", "paced", "poll", "gesture"):
            return True
        if step.transient or (not step.failed and step.meaning(settings.pollers) == "mutation"):
            return True
        return not step.failed and (step.is_pending or is_lookout(step.first.start))

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often the call brought this result since the last change in the world."""
        seen = self._find_similar(step, past)
        needed, count = self._thresholds(step, seen)[0], len(seen.steps)
        if past and past[-1].query == step.query:
            return Opinion(self.kind, excerpt(step), 0, needed, "the step before it was the same call: nothing lies between")
        if self._is_routine(step):
            return Opinion(self.kind, excerpt(step), 0, needed, "a wait, a change or a look at shared state")
        return Opinion(
            self.kind, excerpt(step), count, needed, "seen" if count >= needed else "more wanted since anything moved"
        )
