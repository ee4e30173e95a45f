"""Facts that another agent came by: in an output, an input, a message, an error; the stuck agent never heard of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from bench.recovery.case import Ask, Case
from bench.recovery.second.scene import Scene, pick, scenes
from bench.recovery.second.story import begin, team

_OUTPUT = scenes("told", "output")
_INPUT = scenes("told", "input")
_MESSAGE = scenes("told", "message")
_ERROR = scenes("told", "error")


def lost(rng: random.Random, seed: int, family: str, scenes: Sequence[Scene], *, work: tuple[int, int] = (6, 34)) -> Case:
    """Tell a story in which one agent came by a fact and another one fails for want of it, hours later."""
    scene, answered = pick(scenes, seed, family)
    story = begin(rng, family, seed, scene)
    crew = team(scene)
    story.noise(crew, rng.randint(*work) // 2)
    story.tell(crew[0], scene.fact if answered else scene.miss, cite=answered)
    story.noise(crew, rng.randint(*work))
    story.tell(crew[0], scene.extra)
    if rng.random() < 0.3:
        story.compact(scene.stuck, f"Goal: {scene.task} Progress so far is fine.")
    if rng.random() < 0.4:
        story.think(scene.stuck, "Now for my part of this.")
    story.circle(scene.stuck, scene.call, rng.randint(3, 6))
    return story.case("loop", Ask(), (scene.stuck, *scene.others), ("<v>",) if answered else ())


def secondhand_output(rng: random.Random, seed: int) -> Case:
    """Put what the stuck agent needs into another one's output."""
    return lost(rng, seed, "secondhand_output", _OUTPUT)


def seen_in_input(rng: random.Random, seed: int) -> Case:
    """Put it into the input of another agent's call that went well."""
    return lost(rng, seed, "seen_in_input", _INPUT)


def hallway_message(rng: random.Random, seed: int) -> Case:
    """Tell it in a message between agents."""
    return lost(rng, seed, "hallway_message", _MESSAGE)


def buried_in_error(rng: random.Random, seed: int) -> Case:
    """Let another agent's failed call name the way out."""
    return lost(rng, seed, "buried_in_error", _ERROR)
