"""The next look where no cause is known: what differs between the last step that brought something new and the loop."""

from __future__ import annotations

import re

from ctxmgr.recover.action_kinds import changes_something, same_call
from ctxmgr.recover.brief import Brief
from ctxmgr.recover.history_reader import HistoryReader
from ctxmgr.recover.unread_files import unread
from ctxmgr.recover.verbatim import at, call_line, ending, result_text
from ctxmgr.types.diagnosis import Diagnosis, Quote
from ctxmgr.types.finding import Finding
from ctxmgr.types.view import EntryView

_EXCERPT = 300
_FAILED = ("error", "denied")
_NAME = re.compile(r"[A-Za-z][\w.:-]{0,39}")


def contrast(desk: HistoryReader, brief: Brief, finding: Finding) -> Diagnosis | None:
    """Return the most informative next look, with the cause said to be unknown; None where nothing was done again."""
    if finding.severity == "hung":
        return _stalled(brief)
    steps = brief.rounds
    if not steps:
        return None
    failing = next((step for step in reversed(steps) if step.status in _FAILED), None)
    if failing is not None:
        successes = desk.newest(40, action=failing.action, agent=failing.agent, status=("ok",))
        worked = next((entry for entry in successes if _before(entry, failing, brief)), None)
        if worked is not None:
            return _worked_before(desk, brief, failing, worked)
        pointed = next(unread(desk, brief), None)
        if pointed is not None:
            return _pointed(pointed.entry, missing=pointed.missing)
    return _nothing_new(brief, failing)


def _before(entry: EntryView, failing: EntryView, brief: Brief) -> bool:
    return same_call(entry) == same_call(failing) and entry.index < brief.onset


def _worked_before(desk: HistoryReader, brief: Brief, failing: EntryView, worked: EntryView) -> Diagnosis:
    since = [entry for entry in desk.before(failing.index, 200) if entry.index > worked.index]
    between = [entry for entry in since if entry.status == "ok" and changes_something(entry)]
    what = f"the {len(between)} changes that you made in between" if len(between) > 1 else "the change that you made in between"
    look = f"Look at {what}, newest first" if between else "Find out what changed outside of your own calls since then"
    quotes = [_of(failing), *(Quote(entry=e.id, source=f"changed{at(e.ts)}", text=call_line(e)) for e in between[-2:])]
    return Diagnosis(
        kind="unknown",
        cause=f"not known. But the very same {_name(failing)} call worked{at(worked.ts)}, so something that it depends on has "
        "changed since.",
        evidence=tuple(quotes),
        next_step=f"{look}: one of them is likely to be the cause. Undo it or mend it before you call again.",
        check="Make the call that failed once.",
        confidence="low",
    )


def _pointed(entry: EntryView, *, missing: bool) -> Diagnosis:
    state = "that by its own words is not there" if missing else "that you have not looked at yet"
    look = "Find out where that file should come from, or whether the task can do without it" if missing else "Read that file"
    return Diagnosis(
        kind="unknown",
        cause=f"not known. The error of your {_name(entry)} call names a file {state}; the error's own words are below.",
        evidence=(_of(entry),),
        next_step=f"{look}, before you call again.",
        check="Make the call that failed once, after something has changed.",
        confidence="low",
    )


def _nothing_new(brief: Brief, failing: EntryView | None) -> Diagnosis:
    last = brief.last_success
    since = (
        f" The last step that brought something new was{at(last.ts)}; every round since then ended the same." if last else ""
    )
    what = "what the failing call says, word for word" if failing is not None else "what you expect the next call to show"
    return Diagnosis(
        kind="unknown",
        cause=f"not known: no record says why this does not get further.{since}",
        evidence=() if failing is None else (_of(failing),),
        next_step=f"Read {what}, and write down one assumption behind it that you have not checked. Check that assumption with "
        "a call that you have not made yet.",
        check="Go on only if it showed something new; otherwise take another way.",
        confidence="low",
    )


def _stalled(brief: Brief) -> Diagnosis | None:
    calls = [entry for entry in brief.members if entry.status == "open"]
    if not calls:
        return None
    return Diagnosis(
        kind="unknown",
        cause="not known: no record says what the call waits for, or whether it took effect.",
        evidence=(),
        next_step="Find out, without making the call again, whether it has done its work already and whether it still runs.",
        check="If its work is still missing, make the call with a time limit or in the background.",
        confidence="low",
    )


def _of(entry: EntryView) -> Quote:
    text = ending(result_text(entry), _EXCERPT)
    return Quote(entry=entry.id, source=f"what the failing call said{at(entry.ts)}", text=text)


def _name(entry: EntryView) -> str:
    return entry.action if _NAME.fullmatch(entry.action) else "last"
