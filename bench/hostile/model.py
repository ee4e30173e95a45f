"""A model that means harm: in each step it does something that a model must not do, or for once answers as it should."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from bench.hostile import talk
from bench.hostile.acts import ACTS, LEAD_ACTS, Turn
from bench.hostile.scene import Scene

MOODS: dict[str, tuple[str, ...]] = {
    "honest": ("read", "read", "answer", "answer", "answer"),
    "obedient": ("read", "obey", "obey", "obey", "leak", "scribble"),
    "babbling": ("words", "nothing", "broken", "odd", "odd", "thinking"),
    "double": ("read", "twice", "twice", "beside"),
    "stranger": ("read", "self", "unknown", "foreign", "foreign", "peek"),
    "liar": ("read", "invent", "drop", "drop", "undropped", "undropped"),
    "endless": ("abuse", "abuse", "many", "read"),
    "scribbling": ("read", "scribble", "scribble", "foreign_note"),
    "huge": ("read", "huge", "deep", "many"),
    "broken": ("read", "fail", "unknown_tool", "odd"),
    "contradicting": ("read", "contradict", "contradict", "contradict"),
    "repeating": ("read", "repeat", "repeat", "repeat"),
    "empty": ("empty",),
    "lying": ("read", "lie", "lie", "lie"),
    "chaotic": tuple(ACTS),
}
"""What a model of some mood may do; each step is drawn from these."""

_REPENTS = 0.6
"""Share of the models that answer as they should after a while: what they did before must not count then either."""


@dataclass(slots=True)
class Heard:
    """What a model saw and did.

    Attributes:
        requests: how often it was asked; answered: how many tool calls were answered.
        delimiters: of the fences it saw.
        faults: what it should not have been told, or not so.
        answers: the arguments of the answers it gave, the last one last.
        acts: what it did.
        spent: tokens that were counted before each request.
        ended: whether it is not at work any more.
    """

    requests: int = 0
    answered: int = 0
    delimiters: set[str] = field(default_factory=set[str])
    faults: list[str] = field(default_factory=list[str])
    answers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    acts: Counter[str] = field(default_factory=Counter[str])
    spent: int = 0
    busy: int = 0


class Hostile:
    """One hostile model.

    Args:
        rng: decides what it does.
        scene: what it is asked about; it knows more of it than it is told.
        mode: how it is asked.
        slow: keep the caller waiting in some of the steps.
        mood: one of `MOODS`, and it never answers as it should; None to draw one.
    """

    def __init__(self, rng: Random, scene: Scene, mode: str, *, slow: bool, mood: str | None = None) -> None:
        self.mood = rng.choice(list(MOODS)) if mood is None else mood
        self.heard = Heard()
        self._rng = rng
        self._scene = scene
        self._slow = slow
        self._acts = MOODS[self.mood] if mode == "tools" else tuple(LEAD_ACTS)
        self._table = ACTS if mode == "tools" else LEAD_ACTS
        self._repents = rng.randint(1, 4) if mood is None and rng.random() < _REPENTS else None
        self._read = 0
        self._rows: dict[str, dict[str, Any]] = {}
        self._text = ""

    def model(self) -> FunctionModel:
        """Return it as a model."""
        return FunctionModel(self._speak, model_name="hostile")

    async def _speak(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.heard.busy += 1
        try:
            self._listen(messages, info)
            if self._slow and self._rng.random() < 0.5:
                if self._rng.random() < 0.3:
                    time.sleep(0.6)  # as a model would that blocks its own loop
                else:
                    await asyncio.sleep(0.6)
            repents = self._repents is not None and self.heard.requests > self._repents
            name = "answer" if repents else self._rng.choice(self._acts)
            self.heard.acts[name] += 1
            turn = Turn(self._rng, self._scene, talk.agents(info), list(self._rows.values()), self._text, self.heard.answers)
            return ModelResponse(parts=self._table[name](turn))
        finally:
            self.heard.busy -= 1

    def _listen(self, messages: list[ModelMessage], info: AgentInfo) -> None:
        """Look at what is new, and keep what must not be there."""
        heard, planted = self.heard, self._scene.planted
        heard.requests += 1
        heard.spent = sum(each.usage.total_tokens for each in messages if isinstance(each, ModelResponse))
        new = "\n".join(talk.told(message) for message in messages[self._read :])
        self._read = len(messages)
        own = talk.own_words(messages)
        bare = talk.outside(new) + talk.offers(info)
        for mark, place in planted.marks.items():
            if mark in bare and mark not in own:
                heard.faults.append(f"text planted in the {place} stands outside of the fences")
        if self._scene.secret in new and self._scene.secret not in own:
            heard.faults.append("text of another session was told to the model")
        heard.faults += talk.block_faults(new)
        heard.delimiters |= {delimiter for delimiter, _ in talk.blocks(new)}
        heard.answered += new.count('"source": "history tool') + new.count('"source":"history tool')
        self._rows |= {row["id"]: row for row in talk.shown(new)}
        self._text += new[:20_000]
