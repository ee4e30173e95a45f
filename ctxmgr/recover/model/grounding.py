"""Check a model's proposal against what it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ctxmgr.recover.model.aliases import ShownNames
from ctxmgr.recover.quotes import quoted
from ctxmgr.types.model_proposal import Proposal

_MOST = 4


def settled(answer: Proposal, agents: Mapping[str, str], seen: ShownNames) -> tuple[Proposal | None, list[str]]:
    """Return the answer in the session's own names, or None and what is wrong with it.

    An entry may be cited by its id or its place; one that was neither shown nor told of is refused, whether it exists
    or not.
    """
    problems = [
        f"{quoted(reference, 80)} was not shown to you: look at it first, or cite another"
        for reference in dict.fromkeys(_references(answer))
        if seen.find(reference) is None
    ]
    if answer.target not in agents:
        problems.insert(0, f"{quoted(answer.target, 80)} is none of the agents that may continue")
    if problems:
        return None, problems[:_MOST]
    data: dict[str, Any] = answer.model_dump(by_alias=False)
    data["target"] = agents[answer.target]
    for part in ("facts", "advice"):
        for item in data[part]:
            item["entries"] = list(dict.fromkeys(seen.find(name) for name in item["entries"]))
    for item in data["dropped"]:
        item["entry"] = seen.find(item["entry"])
    return Proposal.model_validate(data), []


def _references(answer: Proposal) -> Iterable[str]:
    for fact in answer.facts:
        yield from fact.entries
    for advice in answer.advice:
        yield from advice.entries
    for dropped in answer.dropped:
        yield dropped.entry
