"""One small stuck workflow of the simulated world: its history, how help is asked for, and what the agents need to go on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ctxmgr.log.codec import Record

Kind = Literal["loop", "stall", "request", "review"]


@dataclass(frozen=True, slots=True)
class Ask:
    """How the context manager is called: by the stuck handler (no ``type``), or by an agent.

    Attributes:
        type: None for ``recover``; else ``INTROSPECT_AGENT_CONTEXT`` or ``PROCEED``.
        requester: the agent that asks; None for ``recover``.
        review: the requester is a review or merge agent.
        to: the downstream agent, when the requester names one.
        now: RFC 3339, for stalls.
    """

    type: str | None = None
    requester: str | None = None
    reason: str = ""
    goal: str = ""
    context: str | None = None
    review: bool = False
    to: str | None = None
    return_to: tuple[str, ...] = ()
    now: str | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """Something the agent must read before it can go on: any one of these phrases, case-insensitively."""

    phrases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A stuck workflow.

    Attributes:
        family: name of the kind of trouble; ``seed`` varies names, values, lengths and wording within it.
        records: the history, records of one session in the log format, the session record first.
        targets: the agents that are able to go on, once they know what is needed.
        needs: all of them must be in what the target reads.
        never: texts that make the agent go wrong when they reach it as something to act on (stale values, injected orders).
        stale: values that were true once. Read without a word beside them that they no longer are, they mislead like ``never``.
        answered: whether the history holds the answer. If not, the right outcome is to say so (``context.unanswered``, or the
            advice to ask a person) and hand back to one of ``targets``.
        cites: ids of the entries that a good continuation references (SC-006).
        again: the records that the stuck agent adds when the help did not help, given the number of the attempt.
    """

    family: str
    seed: int
    kind: Kind
    session: str
    records: list[Record]
    ask: Ask
    targets: frozenset[str]
    needs: tuple[Need, ...]
    never: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    answered: bool = True
    cites: frozenset[str] = frozenset()
    again: Callable[[int], list[Record]] = lambda attempt: []


Family = Callable[[random.Random, int], Case]
"""Makes one case of a kind from a random source and its seed."""
