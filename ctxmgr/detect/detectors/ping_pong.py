"""Detect agents that hand the same words to each other."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step, excerpt
from ctxmgr.detect.text.message_text import MESSAGES, MessageText, text_of
from ctxmgr.detect.text.vocabulary import hands_over
from ctxmgr.types.finding import FindingKind, Observation

_MAX_AGENTS = 4
_MAX_WORDS = 32
_LEAVE = 2
_NO_RUNS: tuple[int, ...] = (0,) * (_MAX_AGENTS + 1)


class _Word(NamedTuple):
    """What was said, or handed over by a ``step``."""

    speaker: tuple[str | None, str | None]
    what: MessageText | Hashable
    step: Step | None

    def is_again(self, other: _Word) -> bool:
        """Whether the same one gives the same words."""
        return self.speaker == other.speaker and self.what == other.what

    def as_step(self) -> Step:
        """Return it as a step of a round."""
        if isinstance(self.what, MessageText):
            return Step((Call.said(self.what.event, self.what.plain),))
        return cast("Step", self.step)

    def as_key(self) -> Hashable:
        """Return who gives which words, without the event in which they were given."""
        return self.speaker, self.what.plain if isinstance(self.what, MessageText) else self.what


class _State(NamedTuple):
    words: tuple[_Word, ...]
    runs: tuple[int, ...]


class PingPongDetector:
    """Follows what all agents of a session say and hand over to each other, and how long that repeats with a period.

    It is seen when the same words are given for the third time though the same reply came twice. Work in between, a
    change of anything by anyone, makes it a new talk.
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
            return self._add(_Word((start.agent, start.process), (step.query, step.results()), step))
        if self.state is not None and not step.failed and step.changes(self._settings.pollers):
            self.state = None
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when the talk goes in circles."""
        text = text_of(event)
        if not text or event.agent is None:
            return None
        return self._add(_Word((event.agent, event.process), MessageText(event, text), None))

    def _add(self, word: _Word) -> Sighting | None:
        state = self.state or _State((), _NO_RUNS)
        words = state.words
        runs = list(_NO_RUNS)
        for period in range(2, min(_MAX_AGENTS, len(words)) + 1):
            if words[-period].is_again(word):
                runs[period] = state.runs[period] + 1
        words = (*words, word)
        self.state = _State(words[-_MAX_WORDS:], tuple(runs))
        rounds = self._settings.handoff_rounds
        for period in range(2, _MAX_AGENTS + 1):
            if runs[period] <= period * (rounds - 2):
                continue
            seen = words[-period * (rounds - 1) - 1 :]
            if len({each.speaker for each in seen[-period:]}) == period:
                agents = sorted({str(each.speaker[0]) for each in seen[-period:]})
                key = frozenset(each.as_key() for each in seen[-period:])
                return Sighting(
                    self.kind, key, period, tuple(each.as_step() for each in seen), rounds, 0.85, leave=_LEAVE,
                    facts=(("agents", agents),), everyone=True,
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
