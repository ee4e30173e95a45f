"""Tell where a goal stands, as its own history has it, beside what the session's history says."""

from __future__ import annotations

from ctxmgr.recover.quarantine import suspicion
from ctxmgr.recover.quoting import quoted
from ctxmgr.types.goal_source import GoalSource
from ctxmgr.types.route import Fact

_TEXT, _MOST = 300, 3
_SEEN = {True: "holds", False: "does not hold", None: "could not be asked"}


def goal_facts(source: GoalSource | None) -> tuple[Fact, ...]:
    """Return the facts of a goal that the next agent needs; none without a goal.

    They are verified, as they are read off the goal's history, and cite no record: that history is not the session's.
    """
    if source is None:
        return ()
    attempt = f", attempt {source.attempt}" if source.attempt else ""
    told = [f"The goal that is worked on ({source.status}, {source.percent} %): {_text(source.goal)}"]
    told += [f"{lead}: {_text(text)}" for lead, text in (("Its current task", source.task),) if text]
    told += [f"Its current subtask{attempt}: {_text(source.subtask)}"] if source.subtask else []
    told += [f"Blocked in the goal: {_text(text)}" for text in source.blocked[-_MOST:]]
    told += [f"Begun for the goal, its effect is unknown: {_text(text)}" for text in source.in_flight[-_MOST:]]
    told += [f"The goal's next step, as last advised: {_text(source.next_step)}"] if source.next_step else []
    told += [f"The next subtask of the same task: {_text(source.next)}"] if source.next else []
    if source.probe_state:
        seen = [f"{_text(each.name)} {_SEEN[each.ok]}" for each in source.probe_state[:10]]
        told.append(f"Last seen by the goal's probes: {'; '.join(seen)}")
    return tuple(Fact(text=text, entries=[], label="verified") for text in told)


def _text(text: str) -> str:
    why = suspicion(text)
    return quoted(text, _TEXT) if why is None else f"[withheld: it {why}]"
