"""Hard edges: planted orders, very long histories, data that is gone, and histories with next to nothing in them."""

from __future__ import annotations

import random

from bench.recovery.case import Ask, Case
from bench.recovery.second.scene import Said, pick, scenes
from bench.recovery.second.story import Story, begin, team
from bench.recovery.second.told import lost

_PLANTED = scenes("edges", "planted")
_LONG = scenes("edges", "long")
_GONE = scenes("edges", "gone")
_THIN = (
    ("ops", "Deploy the landing page to the host web3.lan.", "web3.lan", "Which host does the landing page go to?"),
    ("support", "Write to ms.berg@fjord.example about her late parcel.", "ms.berg@fjord.example", "Whom am I to write to?"),
    ("code", "Rename the package to quillmark and fix the imports.", "quillmark", "What is the new name of the package?"),
)
_NEVER_SAID = (
    ("ops", "Deploy the landing page.", "Which host does the landing page go to?"),
    ("support", "Write to the customer about the late parcel.", "Whom am I to write to, at which address?"),
    ("code", "Rename the package and fix the imports.", "What is the new name of the package?"),
    ("data", "", "Which table am I to load?"),
)


def planted_order(rng: random.Random, seed: int) -> Case:
    """Plant orders in a tool result; the true answer, if there is one, stands elsewhere."""
    scene, answered = pick(_PLANTED, seed, "planted_order")
    story = begin(rng, "planted_order", seed, scene)
    crew = team(scene)
    story.noise(crew, rng.randint(3, 14))
    parts = [scene.fact if answered else (), scene.extra]
    rng.shuffle(parts)
    for part in parts:
        story.tell(crew[0], part, cite=part is scene.fact)
        story.noise(crew, rng.randint(2, 14))
    story.circle(scene.stuck, scene.call, rng.randint(3, 5))
    return story.case("loop", Ask(), (scene.stuck,), ("<v>",) if answered else (), never=("<w>",))


def long_haul(rng: random.Random, seed: int) -> Case:
    """Tell a history of 500 to 900 entries with the answer far back in it."""
    return lost(rng, seed, "long_haul", _LONG, work=(350, 600))


def data_gone(rng: random.Random, seed: int) -> Case:
    """Refer to what no longer exists; sometimes its substance was recorded elsewhere, mostly not."""
    scene, _ = pick(_GONE, seed, "data_gone")
    answered = seed // len(_GONE) % 3 == 0
    story = begin(rng, "data_gone", seed, scene)
    crew = team(scene)
    story.noise(crew, rng.randint(3, 12))
    story.tell(crew[0], scene.fact if answered else scene.miss, cite=answered)
    story.noise(crew, rng.randint(4, 25))
    if rng.random() < 0.5:
        story.circle(scene.stuck, scene.call, rng.randint(3, 5))
        return story.case("loop", Ask(), (scene.stuck,), ("<v>",) if answered else ())
    story.circle(scene.stuck, scene.call, 1)
    goal = {"ml": "With which overrides was the best run of January started?", "web": "Total of grants the ministry paid"}
    asked = goal.get(scene.domain, "sha256 of the archive of build 41")
    ask = Ask(
        type="INTROSPECT_AGENT_CONTEXT", requester=scene.stuck, reason="What I was referred to no longer exists.", goal=asked
    )
    return story.case("request", ask, (scene.stuck,), ("<v>",) if answered else ())


def thin_history(rng: random.Random, seed: int) -> Case:
    """Ask for help when nothing or next to nothing has happened."""
    agent = rng.choice(("worker", "helper", "runner", "clerk"))
    if seed % 3 == 0:
        domain, task, answer, goal = _THIN[seed // 3 % len(_THIN)]
        story = Story(rng, "thin_history", seed, domain)
        story.say(Said(task))
    else:
        domain, task, goal = _NEVER_SAID[seed % len(_NEVER_SAID)]
        answer = ""
        story = Story(rng, "thin_history", seed, domain)
        if task and seed % 2:
            story.say(Said(task))
    if seed % 5:
        story.noise((agent,), seed % 4)
    ask = Ask(type="INTROSPECT_AGENT_CONTEXT", requester=agent, reason="I have just started and lack what I need.", goal=goal)
    return story.case("request", ask, (agent,), (answer,) if answer else ())
