"""Find an agent that talks instead of acting: the same message, empty ones, the same thought, one plan in other words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.normal import one_line
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.speech import MESSAGES, THOUGHTS, alike, gist, plain, text_of
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.finding import FindingKind
from ctxmgr.types.observation import Observation

_KEPT = 64


class _Run(NamedTuple):
    """Messages (or thoughts) in a row; ``same`` of the last ones are equal, ``near`` say the same."""

    text: str
    gist: frozenset[str]
    steps: tuple[Step, ...]
    same: int
    near: int


class MonologueDetector:
    """Counts what is said since the last action; messages and thoughts apart. Any action ends it."""

    kind: FindingKind = "monologue"
    wake: int = Wake.NEVER
    hears = MESSAGES | THOUGHTS
    watchful = True
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: dict[str, _Run] = {}

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Forget what was said: the agent acted."""
        self.state = {}
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when the same was said often enough."""
        said = text_of(event)
        if said is None:
            return None
        stream = "thought" if event.type in THOUGHTS else "message"
        text, words = plain(said), gist(said)
        old = self.state.get(stream, _Run("", frozenset(), (), 0, 0))
        same = old.same + 1 if old.steps and text == old.text else 1
        near = old.near + 1 if old.steps and (text == old.text or alike(words, old.gist)) else 1
        step = Step((Call.said(event, text),))
        run = _Run(text, words, (*old.steps, step)[-_KEPT:], same, near)
        self.state = {**self.state, stream: run}
        settings = self._settings
        if same >= settings.monologue_rounds:
            facts = (("said", one_line(said, 300)), ("empty", not text))
            return Sighting(
                self.kind, (stream, "said"), 1, run.steps[-settings.monologue_rounds :], settings.monologue_rounds, 0.9,
                leave=1, facts=facts,
            )  # fmt: skip
        if near >= settings.paraphrase_rounds:
            facts = (("said", one_line(said, 300)), ("empty", False))
            return Sighting(
                self.kind, (stream, "said"), 1, run.steps[-settings.paraphrase_rounds :], settings.paraphrase_rounds, 0.7,
                leave=1, facts=facts,
            )  # fmt: skip
        return None

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say that the agent acted."""
        return Opinion(self.kind, "", 0, self._settings.monologue_rounds, "the agent acted, which is no monologue")

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = {}
