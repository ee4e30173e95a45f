"""Detect agents that hand the same words to each other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step, excerpt
from ctxmgr.detect.text.message_text import MESSAGES, MessageText, text_of
from ctxmgr.detect.text.vocabulary import hands_over, passes_on
from ctxmgr.types.finding import FindingKind, Observation

_MAX_AGENTS = 4
_MAX_WORDS = 32
_LEAVE = 2
_LONGEST_NAME = 64
_NO_RUNS: tuple[int, ...] = (0,) * (_MAX_AGENTS + 1)


class _Word(NamedTuple):
    """What was said, or handed over by a ``step``."""

    speaker: tuple[str | None, str | None]
    what: MessageText | Hashable
    step: Step | None
    about: Hashable = None

    def is_again(self, other: _Word) -> bool:
        """Whether the same one gives the same words."""
        return self.speaker == other.speaker and self.what == other.what

    def is_about_the_same(self, other: _Word) -> bool:
        """Whether the same one hands over the same thing, whatever is said to that."""
        return self.speaker == other.speaker and self.about is not None and self.about == other.about

    def as_step(self) -> Step:
        """Return it as a step of a round."""
        if isinstance(self.what, MessageText):
            return Step((Call.said(self.what.event, self.what.plain),))
        return cast("Step", self.step)

    def as_key(self) -> Hashable:
        """Return who gives which words, without the event in which they were given."""
        return self.speaker, self.what.plain if isinstance(self.what, MessageText) else self.what


class _State(NamedTuple):
    """All words and how long they go round, and the same of the things that were passed on."""

    words: tuple[_Word, ...]
    runs: tuple[int, ...]
    passed: tuple[_Word, ...] = ()
    passes: tuple[int, ...] = _NO_RUNS


class PingPongDetector:
    """Follows what all agents of a session say and hand over to each other, and how long that repeats with a period.

    It is seen when the same words are given for the third time though the same reply came twice, or when one thing (a
    ticket, a case) is passed on for the fourth time in whatever words. Work in between, a change of anything by one of
    them, makes it a new talk.
    """

    kind: FindingKind = "pingPong"
    wake: int = Wake.ALWAYS
    hears = MESSAGES
    watchful = True
    session_wide = True

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: _State | None = None

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Take a hand-over; a change of the world ends the talk."""
        start = step.first.start
        if hands_over(start.action):
            word = _Word((start.agent, start.process), (step.query, step.results()), step, _passed_on(start))
            return self._add(word)
        changed = self.state is not None and not step.failed and step.changes(self._settings.pollers)
        if changed and self.state is not None:
            who = (start.agent, start.process)
            mine = any(word.speaker == who for word in self.state.passed)
            self.state = None if mine or not self.state.passed else _State((), _NO_RUNS, self.state.passed, self.state.passes)
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when the talk goes in circles."""
        text = text_of(event)
        if not text or event.agent is None:
            return None
        return self._add(_Word((event.agent, event.process), MessageText(event, text), None))

    def _add(self, word: _Word) -> Sighting | None:
        state = self.state or _State((), _NO_RUNS)
        words, runs = _went_on(state.words, state.runs, word, _Word.is_again)
        passed, passes = state.passed, state.passes
        if word.about is not None:
            passed, passes = _went_on(passed, passes, word, _Word.is_about_the_same)
        self.state = _State(words, runs, passed, passes)
        rounds = self._settings.handoff_rounds
        found = self._sighting(words, runs, rounds, _Word.as_key)
        if found is None and word.about is not None:
            found = self._sighting(passed, passes, rounds + 1, lambda each: (each.speaker, each.about))
        return found

    def _sighting(
        self, words: Sequence[_Word], runs: Sequence[int], rounds: int, key_of: Callable[[_Word], Hashable]
    ) -> Sighting | None:
        for period in range(2, _MAX_AGENTS + 1):
            if runs[period] <= period * (rounds - 2):
                continue
            seen = words[-period * (rounds - 1) - 1 :]
            if len({each.speaker for each in seen[-period:]}) == period:
                agents = sorted({str(each.speaker[0]) for each in seen[-period:]})
                return Sighting(
                    self.kind, frozenset(map(key_of, seen[-period:])), period, tuple(each.as_step() for each in seen), rounds,
                    0.85, leave=_LEAVE, facts=(("agents", agents),), everyone=True,
                )  # fmt: skip
        return None

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often the same words went round."""
        rounds = self._settings.handoff_rounds
        if not hands_over(step.action):
            return Opinion(self.kind, excerpt(step), 0, rounds, "it hands nothing over to another agent")
        runs = self.state.runs if self.state else ()
        count = max((run // period + 1 for period, run in enumerate(runs) if period > 1 and run), default=1)
        return Opinion(self.kind, excerpt(step), count, rounds, "seen" if count >= rounds else "more wanted")

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = None


def _went_on(
    words: tuple[_Word, ...], runs: Sequence[int], word: _Word, is_same: Callable[[_Word, _Word], bool]
) -> tuple[tuple[_Word, ...], tuple[int, ...]]:
    """Return the words with one more, and for each period how many of the last are the same as that many before."""
    now = list(_NO_RUNS)
    for period in range(2, min(_MAX_AGENTS, len(words)) + 1):
        if is_same(words[-period], word):
            now[period] = runs[period] + 1
    return (*words, word)[-_MAX_WORDS:], tuple(now)


def _passed_on(start: Observation) -> Hashable:
    """Return what is passed on to whom: the short values of the input, without what is said to it; None where it is words."""
    if not passes_on(start.action) or not isinstance(start.input, dict):
        return None
    fields = cast("dict[object, object]", start.input)
    named = [
        (str(key), str(value)) for key, value in fields.items()
        if type(value) is int or (isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and " " not in value)
    ]  # fmt: skip
    return tuple(sorted(named)) if len(named) > 1 else None
