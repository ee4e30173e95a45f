"""Detect an agent that talks instead of acting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step
from ctxmgr.detect.text.fingerprints import one_line
from ctxmgr.detect.text.message_text import MESSAGES, THOUGHTS, MessageText, alike, text_of
from ctxmgr.types.finding import FindingKind, Observation

_MAX_MESSAGES = 64
_ROUND = 4
"""Messages that may be said in turn."""


class _Run(NamedTuple):
    """Messages (or thoughts) in a row; ``same`` of the last ones are equal, ``near`` say the same."""

    said: tuple[MessageText, ...]
    same: int
    near: int


class MonologueDetector:
    """Counts what is said since the last action, one by one or in turn; messages and thoughts apart. Any action ends it."""

    kind: FindingKind = "monologue"
    wake: int = Wake.NEVER
    hears = MESSAGES | THOUGHTS
    watchful = True
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self._kept = min(_MAX_MESSAGES, max(settings.monologue_rounds, settings.paraphrase_rounds))
        self.state: dict[str, _Run] = {}

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Forget what was said: the agent acted."""
        self.state = {}
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when the same was said often enough."""
        text = text_of(event)
        if text is None:
            return None
        rounds = self._settings.monologue_rounds
        stream = "thought" if event.type in THOUGHTS else "message"
        said, same, near = MessageText(event, text), 1, 1
        old = self.state.get(stream)
        if old is not None:
            last = old.said[-1]
            if said == last:
                same, near = old.same + 1, old.near + 1
            elif alike(said.gist, last.gist):
                near = old.near + 1
        run = _Run(((*old.said, said) if old is not None else (said,))[-max(self._kept, _ROUND * rounds) :], same, near)
        self.state = {**self.state, stream: run}
        if same >= rounds:
            return self._sighting(stream, run, rounds, 0.9)
        for period in range(2, _ROUND + 1):
            if _goes_round(run.said, period, rounds):
                return self._sighting(stream, run, period * rounds, 0.8)
        if _alternates(run.said, self._settings.paraphrase_rounds):
            return self._sighting(stream, run, 2 * self._settings.paraphrase_rounds, 0.7)
        if near >= self._settings.paraphrase_rounds:
            return self._sighting(stream, run, self._settings.paraphrase_rounds, 0.7)
        return None

    def _sighting(self, stream: str, run: _Run, rounds: int, confidence: float) -> Sighting:
        last = run.said[-1]
        # What says the same in other words says something.
        facts = (("said", one_line(last.text, 300)), ("empty", run.same >= self._settings.monologue_rounds and not last.plain))
        steps = tuple(Step((Call.said(each.event, each.plain),)) for each in run.said[-rounds:])
        return Sighting(self.kind, (stream, "said"), 1, steps, rounds, confidence, leave=1, facts=facts)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say that the agent acted."""
        return Opinion(self.kind, "", 0, self._settings.monologue_rounds, "the agent acted, which is no monologue")

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = {}


def _alternates(said: Sequence[MessageText], rounds: int) -> bool:
    """Whether two things were said in turn so many times, each in nearly the same words."""
    last = said[-2 * rounds :]
    if len(last) < 2 * rounds or not alike(last[-1].gist, last[-3].gist):
        return False
    return all(alike(one.gist, two.gist) for one, two in zip(last, last[2:], strict=False))


def _goes_round(said: Sequence[MessageText], period: int, rounds: int) -> bool:
    """Whether the last of what was said is so many messages in turn, so many times."""
    length = period * rounds
    return len(said) >= length and all(said[-place] == said[-place - period] for place in range(1, length - period + 1))
