"""What a person said hours ago, what got lost at a border of the conversation, and values that were replaced later."""

from __future__ import annotations

import random

from bench.recovery.case import Ask, Case
from bench.recovery.second.scene import pick, scenes
from bench.recovery.second.story import begin, team
from bench.recovery.second.told import lost

_PERSON = scenes("people", "person")
_LOST = scenes("people", "lost")
_REPLACED = scenes("people", "replaced")


def person_said(rng: random.Random, seed: int) -> Case:
    """Let a person give the answer in passing, hours before it is needed."""
    return lost(rng, seed, "person_said", _PERSON, work=(10, 40))


def after_the_border(rng: random.Random, seed: int) -> Case:
    """Take knowledge away by a compaction, a restart or a change of shift, and let the agent ask for it."""
    scene, answered = pick(_LOST, seed, "after_the_border")
    story = begin(rng, "after_the_border", seed, scene)
    crew = team(scene)
    first = [agent for agent in crew if agent != scene.stuck]
    story.noise(first, rng.randint(5, 20))
    if answered:
        story.tell(first[0], scene.fact, cite=True)
    story.noise(first, rng.randint(4, 25))
    if rng.random() < 0.5:
        story.compact(scene.stuck, "The work goes on well. " + scene.question[0])
    else:
        story.wait(3600, 30_000)
        story.start()
    story.noise(crew, rng.randint(1, 6))
    story.circle(scene.stuck, scene.call, 1)
    reason, goal = scene.question
    ask = Ask(type="INTROSPECT_AGENT_CONTEXT", requester=scene.stuck, reason=reason, goal=goal)
    return story.case("request", ask, (scene.stuck,), ("<v>",) if answered else ())


def replaced_value(rng: random.Random, seed: int) -> Case:
    """Give a value, and another one later; only the later one holds."""
    scene, answered = pick(_REPLACED, seed, "replaced_value")
    story = begin(rng, "replaced_value", seed, scene)
    crew = team(scene)
    story.noise(crew, rng.randint(3, 12))
    if answered:
        story.tell(crew[0], scene.fact[:1])
        story.noise(crew, rng.randint(4, 22))
        story.tell(crew[0], scene.fact[1:], cite=True)
    else:
        story.tell(crew[0], scene.miss)
    story.noise(crew, rng.randint(4, 22))
    story.circle(scene.stuck, scene.call, rng.randint(3, 5))
    return story.case("loop", Ask(), (scene.stuck,), ("<v>",) if answered else (), never=("<w>",) if answered else ())
