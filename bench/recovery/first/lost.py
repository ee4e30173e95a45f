"""An agent lacks a fact that stands somewhere in the history: in a result, a message, an input, an error, far back."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from bench.recovery.case import Ask, Case, Family, Need
from bench.recovery.first.cast import crew
from bench.recovery.first.topics import Topic, topic_of, value_of
from bench.recovery.noise import buried, noise, some_noise
from bench.recovery.traffic import Traffic

Form = Literal["result", "message", "input", "error"]

_REASONS = (
    "I do not know {question}; it must have come up before I was started",
    "{question}: my instructions leave that out",
    "I cannot go on without this: {question}",
    "what I was handed does not say {question}",
)
_WRITERS = (
    ("Write", "content", {"file_path": "notes/handover.md"}),
    ("Task", "prompt", {"description": "prepare"}),
    ("SendMessage", "text", {"to": "everyone"}),
)


def reason_for(rng: random.Random, question: str) -> str:
    """Return words in which an agent asks for something."""
    return rng.choice(_REASONS).format(question=question)


def place(run: Traffic, agent: str, topic: Topic, value: str, form: Form) -> str:
    """Put the fact into the history in one of its forms; return the id of the record that holds it."""
    if form == "message":
        return run.say(agent, topic.told.format(value=value))
    if form == "input":
        action, field, fields = run.rng.choice(_WRITERS)
        return run.call(agent, action, {**fields, field: topic.ordered.format(value=value)}, "ok")
    if form == "error":
        return run.call(
            agent, "Bash", {"command": f"make -s step-{run.rng.randint(3, 99)}"}, error=topic.failed.format(value=value)
        )
    return run.call(agent, topic.action, topic.given, buried(run.rng, topic.seen.format(value=value)))


def asks_again(asker: str) -> Callable[[Traffic, int], None]:
    """Return what an agent does that was not helped: some more work at random, then it asks again."""
    return lambda run, attempt: noise(run, 1, [asker])


def lost(family: str, form: Form, *, before: tuple[int, int] = (8, 30), after: tuple[int, int] = (8, 50)) -> Family:
    """Return a family: the fact is in the history in this form, so many entries of other work before and after it."""

    def made(rng: random.Random, seed: int) -> Case:
        planner, finder, asker = crew(rng, 3)
        run = Traffic(rng, family, seed, [planner, finder])
        topic, question = topic_of(seed)
        value, answered = value_of(rng, topic), seed % 3 != 2
        run.user(f"We have to {topic.goal}. Split the work among you.")
        some_noise(run, *before)
        cites = frozenset[str]()
        if answered:
            found = place(run, rng.choice((planner, finder)), topic, value, form)
            cites = frozenset({found})
        else:
            run.call(finder, "Read", {"file_path": "docs/handbook.md"}, buried(rng, topic.decoy))
        some_noise(run, *after)
        noise(run, rng.randint(2, 6), [asker])
        return Case(
            family=family, seed=seed, kind="request", session=run.session, records=run.records,
            ask=Ask(type="INTROSPECT_AGENT_CONTEXT", requester=asker, reason=reason_for(rng, question), goal=topic.goal),
            targets=frozenset({asker}), needs=(Need((value,)),), answered=answered, cites=cites,
            again=run.later(asks_again(asker)),
        )  # fmt: skip

    return made


def compacted(rng: random.Random, seed: int) -> Case:
    """Return a case in which an agent found the fact out itself, before its context was compacted to less."""
    planner, asker = crew(rng, 2)
    run = Traffic(rng, "compacted", seed, [planner, asker])
    topic, question = topic_of(seed + 3)
    value, answered = value_of(rng, topic), seed % 3 != 2
    run.user(f"Please {topic.goal}. Look around first.")
    some_noise(run, 5, 25)
    cites = frozenset[str]()
    if answered:
        form: Form = rng.choice(("result", "result", "message", "error"))
        cites = frozenset({place(run, asker, topic, value, form)})
    some_noise(run, 10, 40)
    run.compact(asker, f"Worked on: {topic.goal}. Read several files, fixed small things on the way. Next: finish it.")
    noise(run, rng.randint(3, 12), [asker])
    reason = f"my context was compacted and I no longer have {question}"
    return Case(
        family="compacted", seed=seed, kind="request", session=run.session, records=run.records,
        ask=Ask(type="INTROSPECT_AGENT_CONTEXT", requester=asker, reason=reason, goal=topic.goal),
        targets=frozenset({asker}), needs=(Need((value,)),), answered=answered, cites=cites,
        again=run.later(asks_again(asker)),
    )  # fmt: skip
