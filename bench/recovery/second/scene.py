"""Scenes: what a family varies from case to case; they are kept as JSON in the folder ``scenes``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

_FOLDER = Path(__file__).parent / "scenes"


class Call(NamedTuple):
    """An action and what came of it; texts may hold the marks of `fill`."""

    action: str
    input: Any
    output: Any = None
    error: str | None = None
    kind: str = ""
    """Type of the error."""
    agent: str = ""
    """Who acts, where that is not given by the place in the story."""
    seconds: float = 0
    """How long it took, where that is not ordinary."""


class Said(NamedTuple):
    """A message: from an agent, or from the person when there is no agent."""

    text: str
    agent: str = ""
    to: str = ""


Told = Call | Said


@dataclass(frozen=True, slots=True)
class Scene:
    """What a family varies.

    Attributes:
        domain: the trade, which gives the background noise.
        task: what the person wanted at first.
        stuck: the agent that is stuck.
        call: what it repeats, one step or the steps of a longer circle.
        fact: where the answer lies; ``<v>`` is the answer.
        values: answers to choose from.
        miss: what stands in place of the fact when the history has no answer; empty where nothing stands there.
        wrong: values that must not be used, parallel to ``values``; ``<w>`` in texts.
        extra: other things that happened on the way, the answer not among them.
        others: further agents that are able to go on.
        cast: agents of the background.
        question: reason and goal where an agent asks for help.
    """

    domain: str
    task: str
    stuck: str
    call: tuple[Call, ...]
    fact: tuple[Told, ...]
    values: tuple[str, ...]
    miss: tuple[Told, ...] = ()
    wrong: tuple[str, ...] = ()
    extra: tuple[Told, ...] = ()
    others: tuple[str, ...] = ()
    cast: tuple[str, ...] = ()
    question: tuple[str, str] = ("", "")
    to: str = ""


@cache
def scenes(file: str, name: str) -> tuple[Scene, ...]:
    """Return the scenes of one family."""
    content = cast("dict[str, list[dict[str, Any]]]", json.loads((_FOLDER / f"{file}.json").read_text(encoding="utf-8")))
    return tuple(_scene(fields) for fields in content[name])


def _scene(fields: dict[str, Any]) -> Scene:
    told = {name: tuple(map(_told, fields[name])) for name in ("call", "fact", "miss", "extra") if name in fields}
    lists = {name: tuple(fields[name]) for name in ("values", "wrong", "others", "cast", "question") if name in fields}
    return cast("Callable[..., Scene]", Scene)(**(fields | lists | told))


def _told(fields: dict[str, Any]) -> Told:
    return Call(**fields) if "action" in fields else Said(**fields)


def pick(scenes: Sequence[Scene], seed: int, family: str) -> tuple[Scene, bool]:
    """Return the scene of a seed and whether its history holds the answer: two cases in three, evenly over the scenes."""
    size = len(scenes)
    round_ = seed // size if (size + 1) % 3 else 0
    return scenes[seed % size], (seed + round_ + sum(map(ord, family))) % 3 != 0
