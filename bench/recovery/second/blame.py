"""Failures that look like one thing and are another: a cause elsewhere, a growing failure, and look-alike entries."""

from __future__ import annotations

import random

from bench.recovery.case import Ask, Case
from bench.recovery.second.scene import pick, scenes
from bench.recovery.second.story import begin, team
from bench.recovery.second.told import lost

_CAUSE = scenes("blame", "cause")
_GROWING = scenes("blame", "growing")
_ALIKE = scenes("blame", "alike")


def cause_elsewhere(rng: random.Random, seed: int) -> Case:
    """Let an agent repair what is not broken, after somebody saw the cause before."""
    return lost(rng, seed, "cause_elsewhere", _CAUSE)


def growing_failure(rng: random.Random, seed: int) -> Case:
    """Let each attempt fail worse than the one before it; a gentler way was known."""
    scene, answered = pick(_GROWING, seed, "growing_failure")
    story = begin(rng, "growing_failure", seed, scene)
    crew = team(scene)
    story.noise(crew, rng.randint(3, 15))
    if answered:
        story.tell(crew[0], scene.fact, cite=True)
    story.noise(crew, rng.randint(5, 30))
    steps = scene.call
    for step in steps[:-1]:
        story.act(scene.stuck, step)
        story.wait(20, 200)
    story.circle(scene.stuck, steps[-1:], rng.choice((1, 3)))
    return story.case("loop", Ask(), (scene.stuck,), ("<v>",) if answered else ())


def look_alikes(rng: random.Random, seed: int) -> Case:
    """Set beside the fact entries that share more words with the trouble and speak of something else."""
    scene, answered = pick(_ALIKE, seed, "look_alikes")
    story = begin(rng, "look_alikes", seed, scene)
    crew = (*team(scene), scene.stuck)
    story.noise(crew, rng.randint(3, 15))
    if answered and rng.random() < 0.5:
        story.tell(crew[0], scene.fact, cite=True)
        story.noise(crew, rng.randint(2, 12))
        story.tell(crew[0], scene.extra)
    else:
        story.tell(crew[0], scene.extra)
        story.noise(crew, rng.randint(2, 12))
        story.tell(crew[0], scene.fact if answered else (), cite=True)
    story.noise(crew, rng.randint(4, 20))
    story.circle(scene.stuck, scene.call, rng.randint(3, 5))
    return story.case("loop", Ask(), (scene.stuck,), ("<v>",) if answered else ())
