"""Detect different questions that all bring one answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.detect import polling
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Step, excerpt
from ctxmgr.detect.text.similarity import COMMAND_KEYS, target_of
from ctxmgr.detect.text.vocabulary import is_wall
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import FindingKind, Observation

_BARREN = lazy_pattern(
    r"^\W*(?:(?:no|0|zero|nothing|none|null|empty|not found|ok|done|success\w*|true|false)\b.{0,60})?\W*$",
    re.IGNORECASE | re.DOTALL,
)
_NONE_IN_JSON = lazy_pattern(r"\s*\{(?:\s*\"[^\"]{1,60}\"\s*:\s*(?:0|\[\s*\]|\{\s*\}|null|false|true|\"\")\s*,?)+\s*\}\s*$")

_TELLING_WORD = lazy_pattern(r"\w{4,}")


class _Run(NamedTuple):
    steps: tuple[Step, ...]
    answer: tuple[int | None, ...]


class StagnationDetector(StepDetector):
    """Counts steps in a row with one action, one answer and questions that differ.

    Only questions count: that many different changes are acknowledged alike is the rule, not a loop. An answer that says
    there is none is news about each question, so more of those are wanted; and so they are where the questions are about
    different things.
    """

    kind: FindingKind = "stagnation"
    wake = Wake.ECHO

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the answer has not changed for long enough."""
        self.state = self._run(step, past)
        if self.state is None:
            return None
        run: _Run = self.state
        rounds = self._settings.of(step.action).stagnation_rounds
        if len(run.steps) < rounds or len({each.query for each in run.steps[-rounds:]}) < rounds // 2:
            return None
        needed = _needed(run.steps, self._settings.of(step.action))
        proved = len(run.steps) >= needed
        if not proved and _share_word(run.steps[-rounds:]):
            needed = rounds + rounds // 3  # other words for one question: a suspicion
        if len({each.query for each in run.steps[-needed:]}) < max(3, needed // 2):
            return None
        if len(run.steps) < needed:
            return None
        about = f"{step.action} {target_of(step.first.start)}".strip()
        facts = (
            ("about", about),
            ("distinctInputs", len({each.query for each in run.steps})),
        )
        return Sighting(
            self.kind, (step.action, run.answer), 1, run.steps[-needed:], needed, 0.75 if proved else 0.5, facts=facts,
            severity="loop" if proved else "warn",
        )  # fmt: skip

    def _run(self, step: Step, past: Sequence[Step]) -> _Run | None:
        last = past[-1] if past else None
        settings = self._settings.of(step.action)
        if last is None or last.action != step.action or step.failed or last.failed or len(step.calls) > 1:
            return None
        if not _asks(step, settings) or step.waiting or polling.is_patient(last, step, settings):
            return None
        answer = step.results()
        if None in answer:
            return None
        if answer != last.results():
            # One page that is shown for different questions, with another time or id on it, answers none of them.
            if not step.shows_the_same(last):
                return None
            answer = (step.view(),)
        old: _Run | None = self.state
        before = old.steps if old is not None and old.answer == answer else (last,)
        return _Run((*before, step)[-settings.window :], answer)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say for how many questions the answer has been the same."""
        settings = self._settings.of(step.action)
        run: _Run | None = self.state
        if run is None:
            why = "it is no question" if not _asks(step, settings) else "its answer is not that of the step before"
            return Opinion(self.kind, excerpt(step), 0, settings.stagnation_rounds, why)
        needed = _needed(run.steps, settings)
        why = "seen" if len(run.steps) >= needed else f"{needed - len(run.steps)} more wanted"
        return Opinion(self.kind, excerpt(step), len(run.steps), needed, why)


def _asks(step: Step, settings: DetectSettings) -> bool:
    """Whether a step is a question: it reads, or it moves a view and is answered by what can be seen then."""
    meaning = step.meaning(settings.pollers)
    return meaning == "query" or (meaning == "gesture" and step.shows_a_view())


def _needed(steps: tuple[Step, ...], settings: DetectSettings) -> int:
    answer = steps[-1].answer()[:200]
    if _BARREN.match(answer) or _NONE_IN_JSON.match(answer):
        return settings.barren_rounds
    rounds = settings.stagnation_rounds
    if is_wall(steps[-1].answer()):
        return rounds
    recent = steps[-rounds:]
    about = {target_of(step.first.start) for step in recent}
    if len(about) > 1 or not _share_something([step.first.start for step in recent]):
        return rounds * 2
    return rounds + rounds // 3 if about == {""} else rounds


def _share_something(starts: Sequence[Observation]) -> bool:
    """Whether the questions have a part in common: a field, a word, or the program that is run; else they differ in all."""
    shared: set[tuple[str, str]] | None = None
    for start in starts:
        given = cast("dict[Any, Any]", start.input) if isinstance(start.input, dict) else {"command": start.input}
        parts = {(str(key), str(value)[:200]) for key, value in given.items() if isinstance(value, str | int | float)}
        parts |= {("word", word) for value in given.values() if isinstance(value, str) for word in _long_words(value)}
        parts |= {("program", value.split()[0]) for key, value in given.items() if key in COMMAND_KEYS and _words(value)}
        shared = parts if shared is None else shared & parts
    return bool(shared)


def _share_word(steps: Sequence[Step]) -> bool:
    """Whether all questions are in words, and have a telling one in common."""
    shared: set[str] | None = None
    for step in steps:
        given = step.first.start.input
        values = cast("dict[Any, Any]", given).values() if isinstance(given, dict) else (given,)
        words = {word for value in values if isinstance(value, str) for word in _long_words(value)}
        shared = words if shared is None else shared & words
    return bool(shared)


def _long_words(value: str) -> set[str]:
    """Return the longer words of a question in words; a name or a pattern has none."""
    words = value[:2000].lower().split()
    return {word for each in words for word in _TELLING_WORD.findall(each)} if len(words) > 1 else set()


def _words(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
