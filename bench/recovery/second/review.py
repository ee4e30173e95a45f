"""Reviewers and mergers: too little reached them, two sides disagree, or their work is done and another agent is next."""

from __future__ import annotations

import random

from bench.recovery.case import Ask, Case
from bench.recovery.second.scene import Call, Said, pick, scenes
from bench.recovery.second.story import begin, team

_STARVED = scenes("review", "starved")
_DONE = scenes("review", "done")
_CONFLICT = scenes("review", "conflict")


def starved_reviewer(rng: random.Random, seed: int) -> Case:
    """Give a reviewer a summary without what it must judge by, and let it ask."""
    scene, answered = pick(_STARVED, seed, "starved_reviewer")
    story = begin(rng, "starved_reviewer", seed, scene)
    crew = [agent for agent in team(scene) if agent != scene.stuck]
    story.noise(crew, rng.randint(3, 16))
    story.tell(crew[0], scene.fact if answered else (), cite=True)
    story.noise(crew, rng.randint(4, 28))
    if rng.random() < 0.6:
        story.say(Said("Ready for your review, in short form.", crew[-1], scene.stuck))
    story.circle(scene.stuck, scene.call, 1)
    reason, goal = scene.question
    back = (scene.stuck,) if rng.random() < 0.5 else ()
    ask = Ask(
        type="INTROSPECT_AGENT_CONTEXT",
        requester=scene.stuck,
        reason=reason,
        goal=goal,
        review=rng.random() < 0.7,
        return_to=back,
    )
    return story.case("review", ask, (scene.stuck,), ("<v>",) if answered else ())


def review_done(rng: random.Random, seed: int) -> Case:
    """Finish a review; another agent goes on and needs what a third one produced."""
    scene, answered = pick(_DONE, seed, "review_done")
    story = begin(rng, "review_done", seed, scene)
    worker, downstream = scene.cast
    helpers = (worker, downstream, "coordinator")
    story.noise(helpers, rng.randint(3, 14))
    story.act(downstream, Call("acknowledge", {"plan": scene.question[1].split(";")[0]}, "ready when the review is through"))
    story.tell(worker, scene.fact if answered else (), cite=True)
    story.noise(helpers, rng.randint(3, 24))
    story.say(Said("Please review.", worker, scene.stuck))
    story.circle(scene.stuck, scene.call, 1)
    reason, goal = scene.question
    named = rng.random() < 0.6
    back = (downstream,) if rng.random() < 0.6 else (downstream, "coordinator")
    ask = Ask(
        type="PROCEED", requester=scene.stuck, reason=reason, goal=goal, review=True,
        to=downstream if named else None, return_to=() if named else back,
    )  # fmt: skip
    return story.case("review", ask, (downstream,), ("<v>",) if answered else ())


def merge_conflict(rng: random.Random, seed: int) -> Case:
    """Set two sides against each other; the decision, if there was one, is elsewhere in the record."""
    scene, answered = pick(_CONFLICT, seed, "merge_conflict")
    story = begin(rng, "merge_conflict", seed, scene)
    crew = [agent for agent in team(scene) if agent != scene.stuck]
    story.noise(crew, rng.randint(3, 14))
    story.tell(scene.cast[0], scene.fact if answered else (), cite=True)
    story.noise(crew, rng.randint(4, 26))
    looping = rng.random() < 0.4
    story.circle(scene.stuck, scene.call, 3 if looping else 1)
    reason, goal = scene.question
    ask = Ask(type="INTROSPECT_AGENT_CONTEXT", requester=scene.stuck, reason=reason, goal=goal, review=True)
    return story.case("review", ask, (scene.stuck,), ("<v>",) if answered else ())
