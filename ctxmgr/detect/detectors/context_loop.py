"""Detect a context that no longer fits: compaction after compaction, or errors that say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step, excerpt
from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.message_text import text_of
from ctxmgr.types.finding import FindingKind, Observation

_ACROSS_TURNS = 2
"""Factor on the number of compactions when a person spoke between them."""
_LEFT_AFTER = 4
_WORDS = (
    "context length", "context window", "context_length", "maximum context", "context limit", "prompt is too long",
    "input is too long", "too many tokens", "token limit exceeded", "exceeds the maximum number of tokens",
    "reduce the length of the messages", "context size", "contextwindowexceeded",
)  # fmt: skip

_HINTS = ("context", "is too long", "token", "reduce the length")
"""Each of `_WORDS` holds one of these: four searches spare most errors the longer list."""


class _State(NamedTuple):
    """Compactions since the last new work; ``older`` of them lie before the last word of a person."""

    compactions: tuple[Step, ...] = ()
    older: int = 0
    errors: tuple[Step, ...] = ()


class ContextLoopDetector:
    """Two rules. Compactions between which nothing new was done, and context-length errors without a success between.

    A person who speaks does not make the context smaller: compactions on both sides of a message still count, only more
    of them are wanted. A loop that lives through a compaction needs no rule: a compaction resets nothing.
    """

    kind: FindingKind = "contextLoop"
    wake: int = Wake.FAILED
    hears = frozenset({"compaction", "error"})
    watchful = True
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: _State | None = None

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the step says once too often that the context is full."""
        state = self.state or _State()
        if not step.failed:
            # Reading again what the compaction took away is no new work.
            new = not any(earlier.query == step.query for earlier in past)
            state = _State() if new else state._replace(errors=())
        elif is_context_error(step.first.error()):
            state = state._replace(errors=(*state.errors, step)[-self._settings.window :])
            self.state = state
            return self._too_long(state.errors)
        self.state = state if state != _State() else None
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when this is one compaction, or one error, too many."""
        state = self.state or _State()
        keep = self._settings.window
        if event.type == "error":
            text = text_of(event)
            if text is None or not is_context_error(text):
                return None
            self.state = state._replace(errors=(*state.errors, Step((Call.said(event, "context"),)))[-keep:])
            return self._too_long(self.state.errors)
        step = Step((Call.said(event, "compaction"),))
        compactions = (*state.compactions, step)[-keep:]
        self.state = state = state._replace(compactions=compactions, older=min(state.older, len(compactions)))
        rounds = self._settings.compaction_rounds
        fresh = len(compactions) - state.older
        if fresh >= rounds:
            return Sighting(self.kind, "compaction", 1, compactions[-rounds:], rounds, 0.9, leave=_LEFT_AFTER)
        if len(compactions) >= rounds * _ACROSS_TURNS:
            return Sighting(self.kind, "compaction", 1, compactions, len(compactions), 0.8, leave=_LEFT_AFTER)
        return None

    def _too_long(self, errors: tuple[Step, ...]) -> Sighting | None:
        rounds = self._settings.context_error_rounds
        if len(errors) < rounds:
            return None
        return Sighting(self.kind, "context error", 1, errors[-rounds:], rounds, 0.9, leave=_LEFT_AFTER)

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how many errors in a row said that the context is full."""
        rounds = self._settings.context_error_rounds
        if not step.failed or not is_context_error(step.first.error()):
            return Opinion(self.kind, excerpt(step), 0, rounds, "no error that says the context is full")
        count = len(self.state.errors) if self.state else 0
        return Opinion(
            self.kind, fingerprints.one_line(step.first.error()), count, rounds, "seen" if count >= rounds else "more wanted"
        )

    def reset(self) -> None:
        """Note that a person spoke: earlier errors are forgotten, earlier compactions count less."""
        if self.state is not None:
            compactions = self.state.compactions
            self.state = _State(compactions, len(compactions)) if compactions else None


def is_context_error(error: str) -> bool:
    """Whether an error says that the context of the model is full."""
    head = error[:2000].lower()
    return any(hint in head for hint in _HINTS) and any(words in head for words in _WORDS)
