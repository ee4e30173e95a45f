"""Circles of one, two and three steps and games between two agents, where another way was found earlier."""

from __future__ import annotations

import random

from bench.recovery.case import Ask, Case
from bench.recovery.second.scene import pick, scenes
from bench.recovery.second.story import begin, team
from bench.recovery.second.told import lost

_ONE = scenes("loops", "one")
_TWO = scenes("loops", "two")
_THREE = scenes("loops", "three")
_GAME = scenes("loops", "game")


def known_detour(rng: random.Random, seed: int) -> Case:
    """Repeat one step, although another way worked before."""
    return lost(rng, seed, "known_detour", _ONE)


def two_steps(rng: random.Random, seed: int) -> Case:
    """Let two steps undo each other."""
    return lost(rng, seed, "two_steps", _TWO)


def three_steps(rng: random.Random, seed: int) -> Case:
    """Lead three steps back to where they began."""
    return lost(rng, seed, "three_steps", _THREE)


def tennis(rng: random.Random, seed: int) -> Case:
    """Send a task to and fro between two agents; a third one knows what would settle it."""
    scene, answered = pick(_GAME, seed, "tennis")
    story = begin(rng, "tennis", seed, scene)
    crew = team(scene)
    bystanders = [agent for agent in crew if agent != scene.stuck]
    story.noise(crew, rng.randint(3, 15))
    story.tell(bystanders[0], scene.fact if answered else scene.miss, cite=answered)
    story.noise(crew, rng.randint(4, 30))
    story.circle(scene.stuck, scene.call, rng.randint(3, 5))
    return story.case("loop", Ask(), (scene.stuck, *scene.others), ("<v>",) if answered else ())
