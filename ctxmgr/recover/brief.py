"""Read off the history what the next agent must know: goal, last success, what was tried, how it failed.

Deterministic: the same history gives the same brief. Words of people, errors, paths and commands are quoted, never
rephrased.
"""

from __future__ import annotations

from dataclasses import dataclass

from ctxmgr.recover.desk import Desk
from ctxmgr.recover.quoting import EXCERPT, call, outcome, quoted, words
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import DoNotRepeat, Fact
from ctxmgr.types.view import EntryView, EventView
from ctxmgr.wire import fingerprint

_MUTATING = {
    "edit", "write", "multiedit", "notebookedit", "apply_patch", "str_replace_editor", "create_file", "write_file",
    "edit_file", "replace", "delete", "move",
}  # fmt: skip
_LOOK_BACK = 400


@dataclass(frozen=True, slots=True)
class Brief:
    """What the rules found; every list is short and in the order of importance.

    Attributes:
        members: the entries of the loop, or the open calls of a stall; the newest entries when nothing is wrong.
        rounds: the distinct steps of one round of a loop.
        last_success: the last entry before the trouble that ended ok.
        changed: successful changes to files and the like, newest first.
        failures: other failing entries before the trouble, one for each kind of failure, newest first.
    """

    goal: EventView | None
    latest_words: list[EventView]
    members: list[EntryView]
    gone: list[str]
    rounds: list[EntryView]
    last_success: EntryView | None
    changed: list[EntryView]
    failures: list[EntryView]
    said: list[EventView]
    total: int


def prepare(desk: Desk, finding: Finding | None) -> Brief:
    """Return the brief for a finding, or for the present state when there is none."""
    named = list(finding.members) if finding else []
    sample = named if len(named) <= 60 else [*named[:30], *named[-30:]]
    members = desk.entries(sample) if finding else list(reversed(desk.newest(5)))
    present = {entry.id for entry in members}
    onset = members[0].index if members else desk.total()
    before = desk.around(onset, _LOOK_BACK) if finding else list(reversed(desk.newest(_LOOK_BACK)))
    worked = [entry for entry in reversed(before) if entry.status == "ok"]
    return Brief(
        goal=desk.first_words(),
        latest_words=desk.said_by_people(),
        members=members,
        gone=[entry for entry in sample if entry not in present] if finding else [],
        rounds=_one_round(members, finding),
        last_success=_last_success(desk, finding, worked),
        changed=[entry for entry in worked if entry.action.lower() in _MUTATING][:8],
        failures=_distinct_failures(before),
        said=desk.messages(members[-1]) if members else [],
        total=desk.total(),
    )


def _one_round(members: list[EntryView], finding: Finding | None) -> list[EntryView]:
    if finding is None or finding.kind == "hung":
        return members
    distinct: dict[str, EntryView] = {}
    for entry in members:
        distinct.setdefault(fingerprint([entry.agent, entry.action, entry.input]), entry)
    return list(distinct.values())


def _last_success(desk: Desk, finding: Finding | None, worked: list[EntryView]) -> EntryView | None:
    if finding is not None and finding.last_progress is not None:
        entry = desk.entry(finding.last_progress)
        if entry is not None and entry.status == "ok":
            return entry
    return worked[0] if worked else None


def _distinct_failures(before: list[EntryView]) -> list[EntryView]:
    distinct: dict[str, EntryView] = {}
    for entry in reversed(before):
        if entry.status in ("error", "denied"):
            distinct.setdefault(f"{entry.action} {outcome(entry, 120)}", entry)
    return list(distinct.values())[:5]


def do_not_repeat(brief: Brief, finding: Finding | None) -> list[DoNotRepeat]:
    """Return each distinct step of the loop, or each call that hung, with how often it was tried and how it ended."""
    if finding is None:
        return []
    steps: list[DoNotRepeat] = []
    for step in brief.rounds:
        same = [e for e in brief.members if (e.agent, e.action, e.input) == (step.agent, step.action, step.input)]
        # The members shown may be a sample of a long loop; the finding knows how many rounds there were.
        times = max(len(same), finding.count if len(brief.rounds) == finding.period else len(same))
        steps.append(
            DoNotRepeat(
                action=step.action,
                input=step.input,
                times=times,
                outcome=outcome(same[-1]),
                entries=[entry.id for entry in same],
            )
        )
    return steps


def facts(brief: Brief, finding: Finding | None) -> list[Fact]:
    """Return the facts in the order in which a reader needs them, each with the records it rests on."""
    found: list[Fact] = []
    if brief.goal is not None:
        found.append(_said(brief.goal, "The task as a person gave it"))
    found += [
        _said(event, "Later a person said") for event in brief.latest_words if not brief.goal or event.id != brief.goal.id
    ]
    if finding is not None:
        found.append(Fact(text=finding.reason, entries=[entry.id for entry in brief.members], label="reconstructed"))
    if brief.gone:
        found.append(
            Fact(
                text=f"{len(brief.gone)} of the entries involved are gone from the history: what they did is not known",
                entries=brief.gone,
                label="unknown",
            )
        )
    if brief.last_success is not None:
        found.append(_did(brief.last_success, "The last step that worked"))
    found += [_did(entry, "Done before") for entry in brief.changed if entry is not brief.last_success]
    found += [_did(entry, "Failed before") for entry in brief.failures]
    for entry in brief.members:
        if entry.missing:
            text = f"@{entry.index} refers to what is gone: {', '.join(entry.missing)}"
            found.append(Fact(text=text, entries=[entry.id], label="unknown"))
    return found


def _said(event: EventView, lead: str) -> Fact:
    return Fact(text=f"{lead}: {quoted(words(event), 3 * EXCERPT)}", entries=[event.id], label="verified")


def _did(entry: EntryView, lead: str) -> Fact:
    text = f"{lead} (@{entry.index}, {entry.agent}): {call(entry)} -> {outcome(entry, 200)}"
    return Fact(text=text, entries=[entry.id], label="verified")
