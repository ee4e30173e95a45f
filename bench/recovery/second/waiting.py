"""Agents that wait in vain: a poll whose answer never changes, and a call that never returns."""

from __future__ import annotations

import random

from bench.recovery.case import Ask, Case
from bench.recovery.second.scene import pick, scenes
from bench.recovery.second.story import begin, team

_POLL = scenes("waiting", "poll")
_HUNG = scenes("waiting", "hung")


def frozen_poll(rng: random.Random, seed: int) -> Case:
    """Give the same answer to the same question for hours; what to do about it was on record."""
    scene, answered = pick(_POLL, seed, "frozen_poll")
    story = begin(rng, "frozen_poll", seed, scene)
    crew = team(scene)
    story.noise(crew, rng.randint(2, 14))
    story.tell(crew[0], scene.fact if answered else scene.miss, cite=answered)
    story.noise(crew, rng.randint(3, 30))
    for _ in range(rng.randint(30, 90)):
        story.circle(scene.stuck, scene.call, 1)
        story.wait(90, 130)
    return story.case("loop", Ask(), (scene.stuck,), ("<v>",) if answered else ())


def hung_call(rng: random.Random, seed: int) -> Case:
    """Begin a call that does not come back; an agent before met the same and got by."""
    scene, answered = pick(_HUNG, seed, "hung_call")
    story = begin(rng, "hung_call", seed, scene)
    crew = team(scene)
    story.noise(crew, rng.randint(3, 14))
    story.tell(crew[0], scene.fact if answered else scene.miss, cite=answered)
    story.noise(crew, rng.randint(4, 30))
    story.hang(scene.stuck, scene.call[0], limit=rng.choice((None, None, 300_000.0)))
    return story.case("stall", Ask(now=story.now), (scene.stuck,), ("<v>",) if answered else ())
