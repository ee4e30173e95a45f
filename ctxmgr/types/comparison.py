"""How big the brief of a goal is beside what an agent would read without it, and whether it holds what is needed."""

from __future__ import annotations

from typing import Literal

from ctxmgr.types.base import Shape, Text

FactKind = Literal["task", "subtask", "action", "blocked"]


class Size(Shape):
    """The size of one text, or of several together."""

    messages: int
    chars: int
    tokens: int


class Fact(Shape):
    """Something that the next step needs, and whether the brief holds it.

    The facts are the current task, the active subtask, the last three actions with their results, and blocked actions.
    """

    kind: FactKind
    text: Text
    held: bool


class Comparison(Shape):
    """The brief against the whole history and against its last ten messages.

    ``saved...`` are per cent of what would be read without the brief, negative where the brief is longer, null where there
    is nothing to read. ``counter`` names what counted the tokens.
    """

    brief: Size
    last_ten: Size
    history: Size
    saved_chars: float | None
    saved_tokens: float | None
    saved_chars_of_last_ten: float | None
    saved_tokens_of_last_ten: float | None
    facts: list[Fact]
    counter: Text
