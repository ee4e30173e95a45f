"""What one would do without the product: simple ways to help, seen by the same agents through the same window."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from bench.recovery.case import Case
from bench.recovery.product import product
from bench.recovery.world import Adviser, Answer, Policy, told
from ctxmgr.log.codec import Record

LAST = 10
_STOP = "You are going in circles. Stop repeating what you did, and continue with the task in another way."
_HAND_BACK = "The history holds nothing that helps: ask the person who gave the task."

Baseline = Callable[[Case, Sequence[Record], int, int], Answer]


def whole_history(case: Case, history: Sequence[Record], attempt: int, window: int) -> Answer:
    """Give everything, the oldest cut off, to the agent that is stuck or asks."""
    del attempt
    return Answer(target=concerned(case, history), text="\n".join(map(told, history))[-window:], branches=1)


def last_entries(case: Case, history: Sequence[Record], attempt: int, window: int) -> Answer:
    """Give the last entries to the agent that acted last."""
    del attempt
    starts = [place for place, record in enumerate(history) if record["kind"] == "entry"][-LAST:]
    lines = [told(record) for record in history[starts[0] if starts else 0 :]]
    return Answer(target=_acting(history)[-1], text="\n".join(lines)[-window:], branches=1)


def restart(case: Case, history: Sequence[Record], attempt: int, window: int) -> Answer:
    """Give the task alone, to the agent that began."""
    del attempt, window
    task = next((told(record) for record in history if record.get("type") == "user_message"), "")
    return Answer(target=_acting(history)[0], text=f"{task}\n{case.ask.goal}", branches=1)


def stop_repeating(case: Case, history: Sequence[Record], attempt: int, window: int) -> Answer:
    """Give one fixed sentence to the agent that is stuck or asks."""
    del attempt, window
    return Answer(target=concerned(case, history), text=_STOP, said=_STOP, branches=1)


def random_agent(case: Case, history: Sequence[Record], attempt: int, window: int) -> Answer:
    """Give four entries drawn by lot to an agent drawn by lot."""
    del window
    rng = random.Random(f"{case.session}/{attempt}/random")
    results = {record["entry"]: record for record in history if record["kind"] == "result"}
    entries = [record for record in history if record["kind"] == "entry"]
    drawn = rng.sample(entries, min(4, len(entries)))
    lines = [told(part) for entry in drawn for part in (entry, results.get(entry["id"])) if part is not None]
    return Answer(target=rng.choice(sorted(set(_acting(history)))), text="\n".join(lines), branches=1)


def always_hand_back(case: Case, history: Sequence[Record], attempt: int, window: int) -> Answer:
    """Tell the agent that is stuck or asks that nothing is known: what the cases without an answer ask for."""
    del attempt, window
    return Answer(target=concerned(case, history), text=_HAND_BACK, said=_HAND_BACK, branches=1)


def concerned(case: Case, history: Sequence[Record]) -> str:
    """Return who a naive helper turns to: the requester, for PROCEED whoever else acted last, for a stall the last one."""
    agents = _acting(history)
    if case.ask.type is None:
        return agents[-1]
    if case.ask.type == "PROCEED":
        others = [agent for agent in agents if agent != case.ask.requester]
        return case.ask.to or (others or agents)[-1]
    return case.ask.requester or agents[-1]


def _acting(history: Sequence[Record]) -> list[str]:
    """Return who acted, in order; where nobody has, nobody in particular."""
    return [str(record["agent"]) for record in history if record["kind"] == "entry"] or [""]


def _policy(baseline: Baseline) -> Policy:
    @contextmanager
    def opened(case: Case, window: int) -> Generator[Adviser]:
        yield lambda history, attempt: baseline(case, history, attempt, window)

    return opened


PRODUCT = "ctxmgr, rules"
POLICIES: dict[str, Policy] = {
    PRODUCT: product,
    "whole history, oldest cut": _policy(whole_history),
    f"last {LAST} entries to the last agent": _policy(last_entries),
    "restart with the task": _policy(restart),
    '"stop repeating" alone': _policy(stop_repeating),
    "random agent, 4 random entries": _policy(random_agent),
    "always hand back": _policy(always_hand_back),
}
