"""Read off the history what the next agent must know: goal, last success, what was tried, how it failed.

Deterministic: the same history gives the same brief.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from ctxmgr.detect import normal, vocabulary
from ctxmgr.recover.desk import Desk
from ctxmgr.recover.question import Clause, clauses, telling
from ctxmgr.recover.quoting import answer_text, command_of, compact
from ctxmgr.recover.relevant import Found, Sought, seek
from ctxmgr.recover.spoken import Saying
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import CONTEXT_MANAGER, ContextRequest
from ctxmgr.types.view import EntryView
from ctxmgr.wire import fingerprint

BOOKKEEPING = normal.word_set(
    "todowrite todoread todo updateplan plan taskcreate taskupdate tasklist taskget exitplanmode enterplanmode think "
    "sequentialthinking skill setmode notebook memory reportprogress"
)
"""Actions by which an agent keeps its own books: neither a change of the world nor another way to go."""

_LOOK_BACK = 200
_SAMPLE = 24
_MOST_CHANGES, _MOST_FAILURES, _MOST_AGENTS, _MOST_RELEVANT, _MOST_HELPFUL = 6, 4, 6, 6, 4
_MOST_STEPS = 3
_TOLD = 600


@dataclass(frozen=True, slots=True)
class Brief:
    """What the rules found; every list is short.

    Attributes:
        members: the entries of the loop (of a long one its first and last), or the open calls of a stall.
        gone: ids of members that the history does not hold any more.
        onset: index of the first member; of a silent stall and of a healthy session, the number of entries.
        rounds: the distinct calls among the members, the latest of each, in the order of a round.
        launcher: the entry by which another agent launched the stuck one.
        last_success: the last entry before the trouble that ended ok.
        latest: the newest entries before the trouble, oldest first.
        changed: successful changes to files and the like, newest first.
        failures: other failures before the trouble, one for each kind, newest first.
        agents: the latest successful entry of every other agent, oldest first.
        relevant: entries and messages that hold what a request, or the trouble itself, speaks of, oldest first.
        unanswered: what is asked for in a request and not answered by any record.
        side: other findings that are unresolved.
    """

    goal: Saying | None
    latest_words: list[Saying]
    said: list[Saying]
    members: list[EntryView]
    gone: list[str]
    onset: int
    rounds: list[EntryView]
    launcher: EntryView | None
    last_success: EntryView | None
    latest: list[EntryView]
    changed: list[EntryView]
    failures: list[EntryView]
    agents: list[EntryView]
    relevant: list[Found]
    unanswered: list[str]
    side: list[Finding]


def prepare(
    desk: Desk, request: ContextRequest, finding: Finding | None, side: Sequence[Finding], agents: Sequence[str]
) -> Brief:
    """Return the brief for a finding, or for the present state when there is none."""
    named = list(finding.members) if finding else []
    sample = named if len(named) <= _SAMPLE else [*named[: _SAMPLE // 2], *named[-_SAMPLE // 2 :]]
    members = desk.entries(sample)
    present = {entry.id for entry in members}
    onset = min((entry.index for entry in members), default=desk.total())
    aside = {member for each in side for member in each.members}
    before = [entry for entry in desk.before(onset, _LOOK_BACK) if entry.id not in present]
    worked = [entry for entry in reversed(before) if entry.status == "ok"]
    stuck = None if finding is None else finding.scope.agent
    rounds = _one_round(members)
    place = members[-1] if members else (before[-1] if before else None)
    said = desk.said(place) if place else []
    sought = _asked(desk, request) if request.requester else _helpful(desk, rounds, said, present)
    return Brief(
        goal=desk.first_words(),
        latest_words=desk.latest_words(),
        said=said,
        members=members,
        gone=[entry for entry in sample if entry not in present],
        onset=onset,
        rounds=rounds,
        launcher=launcher_of(desk, members, stuck),
        last_success=_last_success(desk, finding, [entry for entry in worked if entry.id not in aside]),
        latest=before[-4:],
        changed=_distinct_changes(worked),
        failures=_distinct_failures(before, aside, rounds),
        agents=_of_agents(desk, agents, stuck or request.requester),
        relevant=sought.found,
        unanswered=sought.unanswered,
        side=list(side),
    )


def _asked(desk: Desk, request: ContextRequest) -> Sought:
    """Return what the history holds of what a request asks for."""
    wanted = clauses(request.reason, request.goal, request.additional_context)
    return seek(desk, wanted, _MOST_RELEVANT, total=desk.total())


def _helpful(desk: Desk, rounds: Sequence[EntryView], said: Sequence[Saying], members: set[str]) -> Sought:
    """Return what the history holds elsewhere of what the trouble speaks of: its errors, its inputs, the agent's last words."""
    wanted: list[Clause] = []
    for step in rounds[-_MOST_STEPS:]:
        text = f"{answer_text(step)[-_TOLD:]}\n{compact(step.input, _TOLD)}"
        if terms := telling(text):
            wanted.append(Clause(text, tuple(terms), asks=False))
    for saying in said[-1:]:
        wanted += clauses(saying.text[-_TOLD:])[-2:]
    if not wanted:
        return Sought([], [])
    found = seek(desk, wanted, _MOST_HELPFUL, without=members, total=desk.total())
    return Sought([each for each in found.found if each.sure], [])


def launcher_of(desk: Desk, members: Sequence[EntryView], stuck: str | None) -> EntryView | None:
    """Return the entry of another agent by which the stuck agent was launched, or None."""
    acting = members[-3:] or (desk.newest(1, agent=stuck) if stuck else [])
    for entry in acting:
        parent = desk.entry(entry.parent) if entry.parent else None
        if parent is not None and parent.agent != entry.agent:
            return parent
    return None


def same_call(entry: EntryView) -> str:
    """Return what is equal for entries that ask the same, whoever asks."""
    return fingerprint([entry.action, entry.input])


def changes_something(entry: EntryView) -> bool:
    """Whether an action changes files or the like; commands are judged by what they run."""
    if is_bookkeeping(entry.action):
        return False
    fields = cast("dict[str, Any]", entry.input) if isinstance(entry.input, dict) else {}
    verb = next((value for name in ("action", "operation") if isinstance(value := fields.get(name), str)), "")
    return vocabulary.classify(entry.action, verb, command_of(entry)) == "mutation"


def is_bookkeeping(action: str) -> bool:
    """Whether an action only keeps the agent's own books, asks a person or ends the work."""
    plain = "".join(char for char in action[:80].lower() if char.isalpha())
    return plain in BOOKKEEPING or vocabulary.asks_human(action) or vocabulary.finishes(action)


def _one_round(members: list[EntryView]) -> list[EntryView]:
    distinct: dict[str, EntryView] = {}
    for entry in members:
        distinct[same_call(entry)] = entry  # a key keeps the place of its first member
    return list(distinct.values())


def _last_success(desk: Desk, finding: Finding | None, worked: list[EntryView]) -> EntryView | None:
    if finding is not None and finding.last_progress is not None:
        entry = desk.entry(finding.last_progress)
        if entry is not None and entry.status == "ok":
            return entry
    return worked[0] if worked else None


def _distinct_changes(worked: list[EntryView]) -> list[EntryView]:
    distinct: dict[str, EntryView] = {}
    for entry in worked:
        if changes_something(entry):
            distinct.setdefault(same_call(entry), entry)
    return list(distinct.values())[:_MOST_CHANGES]


def _distinct_failures(before: list[EntryView], aside: set[str], rounds: list[EntryView]) -> list[EntryView]:
    """Return failures of calls that are no part of the trouble and did not work later, one for each cause."""
    distinct: dict[str, EntryView] = {}
    made_good = {same_call(step) for step in rounds}
    for entry in reversed(before):
        if entry.status == "ok":
            made_good.add(same_call(entry))
        elif entry.status in ("error", "denied") and entry.id not in aside and same_call(entry) not in made_good:
            distinct.setdefault(f"{entry.action} {normal.error_core(answer_text(entry)[-4_000:])}", entry)
    return list(distinct.values())[:_MOST_FAILURES]


def _of_agents(desk: Desk, agents: Sequence[str], own: str | None) -> list[EntryView]:
    """Return what each of the agents that joined last, but for the one that is answered, last did with success."""
    others = [agent for agent in agents if agent not in (own, CONTEXT_MANAGER)][-_MOST_AGENTS:]
    if own is None and len(others) < 2:
        return []
    found = [entry for agent in others for entry in desk.newest(1, agent=agent, status=("ok",))]
    return sorted(found, key=lambda entry: entry.index)
