"""What could be done beside the diagnosis's next step, as far as the history shows it; never a call already made in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ctxmgr.light_dataclass import dataclass
from ctxmgr.recover.evidence.brief import Brief
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.quotes import call, cited, command_of, named, quoted
from ctxmgr.recover.evidence.records import PEOPLE, program, same_call, words
from ctxmgr.recover.evidence.retrieval import RetrievedRecord
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Alternative
from ctxmgr.types.view import EntryView

_MOST = 5
_MOST_ELSEWHERE = 2
_CALL = 160


@dataclass(frozen=True, slots=True)
class _Lead:
    text: str
    basis: str
    entries: list[str]


def alternatives(reader: HistoryReader, brief: Brief, finding: Finding | None, attempt: int) -> list[Alternative]:
    """Return up to five leads, the most specific first; a general one only where there is none."""
    if finding is None:
        return _asking(brief)
    leads = [*_elsewhere(brief), *(_for_stall if finding.severity == "hung" else _worked)(reader, brief), *_for_launcher(brief)]
    if not leads and brief.last_success is not None:
        last = brief.last_success
        leads.append(_Lead(f"go back to @{last.index} and take another way from there", "it was the last progress", [last.id]))
    leads = leads[: _MOST - 1]
    if attempt > 1 or not leads or brief.unanswered:
        basis = "advice did not help before" if attempt > 1 else "nothing in this history was left untried"
        basis = "no record of this session says what would end it" if leads and attempt == 1 else basis
        first = "if that does not help, stop and " if leads else ""
        leads.append(_Lead(f"{first}ask the person who gave the task, and say what is missing", basis, []))
    return [Alternative(text=lead.text, basis=lead.basis, entries=cited(lead.entries)) for lead in leads]


def _asking(brief: Brief) -> list[Alternative]:
    """Return whom to ask for what the history does not hold: it is handed back, not made up."""
    basis = "no record of this session answers it"
    return [
        Alternative(text=f"ask the person who gave the task: {quoted(text, 300)}", basis=basis, entries=[])
        for text in brief.unanswered[:_MOST]
    ]


def _elsewhere(brief: Brief) -> Iterator[_Lead]:
    """Yield the records outside of the trouble that have most in common with it."""
    sure = sorted((each for each in brief.relevant if each.sure), key=lambda each: -each.cover)
    for found in sure[:_MOST_ELSEWHERE]:
        row = found.row
        if isinstance(row, EntryView):
            worked = ", which worked" if row.status == "ok" else ""
            yield _Lead(
                f"go by what @{row.index} shows, {call(row, _CALL)}{worked}", f"it speaks of {_common(found)}", [row.id]
            )
        else:
            place = "" if row.after is None else f" after @{row.after}"
            if row.type in PEOPLE:
                text = f"go by what a person said: {quoted(words(row.data), _CALL)}"
            else:  # an agent's words are shown where they are quoted, and advised to nobody
                text = f"compare what {named(row.agent or 'an agent')} said{place}"
            yield _Lead(text, f"it speaks of {_common(found)}", [row.id])


def _common(found: RetrievedRecord) -> str:
    return ", ".join(quoted(word, 40) for word in sorted(found.met, key=lambda word: (-len(word), word))[:4])


def _worked(reader: HistoryReader, brief: Brief) -> Iterator[_Lead]:
    """Yield a success of the very call that fails now, and one of a call much like it."""
    vain = {same_call(step) for step in brief.rounds}
    failing = [step for step in brief.rounds if step.status in ("error", "denied")][:3]
    told: set[str] = set()
    served: dict[tuple[str, str], list[EntryView]] = {}
    for step in failing:
        if (step.action, step.agent) not in served:
            served[step.action, step.agent] = _successes(reader, step)
        worked = served[step.action, step.agent]
        own = next((e for e in worked if same_call(e) == same_call(step) and e.index < brief.onset), None)
        if own is not None and own.id not in told:
            told.add(own.id)
            text = f"find what has changed since @{own.index}, where the same call worked"
            yield _Lead(text, f"@{own.index} ended ok, @{step.index} did not", [own.id, step.id])
        like = next((e for e in worked if same_call(e) not in vain and _alike(step, e)), None)
        if like is not None and like.id not in told:
            told.add(like.id)
            yield _Lead(f"start from {call(like, _CALL)}, which worked", f"@{like.index} ended ok", [like.id])


def _successes(reader: HistoryReader, step: EntryView) -> list[EntryView]:
    return reader.newest(40, action=step.action, agent=step.agent, status=("ok",))


def _alike(step: EntryView, other: EntryView) -> bool:
    """Whether two calls of one action are about the same thing: the same program, or a value in common."""
    mine, theirs = program(command_of(step)), program(command_of(other))
    if mine or theirs:
        return mine == theirs
    if not isinstance(step.input, dict) or not isinstance(other.input, dict):
        return False
    first, second = cast("dict[str, Any]", step.input), cast("dict[str, Any]", other.input)
    return any(isinstance(value, str) and value and second.get(name) == value for name, value in first.items())


def _for_stall(reader: HistoryReader, brief: Brief) -> Iterator[_Lead]:
    calls = [entry for entry in brief.members if entry.status == "open"]
    for entry in calls[:2]:
        text = f"find out whether @{entry.index} took effect before anything is done again"
        yield _Lead(text, "no result is recorded", [entry.id])
        again = next((e for e in _successes(reader, entry) if same_call(e) == same_call(entry)), None)
        if again is not None:
            took = f" after {again.duration_ms / 1000:,.1f} s" if again.duration_ms is not None else ""
            text = f"find out what differs from @{again.index}, where the same call returned{took}"
            yield _Lead(text, f"@{again.index} ended ok", [again.id, entry.id])
        else:
            text = f"if the work of @{entry.index} is still needed, give it a time limit, run it in the background or split it"
            yield _Lead(text, "it did not return", [entry.id])
    if not calls and brief.latest:
        last = brief.latest[-1]
        text = f"go on after @{last.index}: its result is recorded, and nothing has to be waited for"
        yield _Lead(text, "no call is open", [last.id])


def _for_launcher(brief: Brief) -> Iterator[_Lead]:
    start = brief.launcher
    if start is not None:
        text = f"do the work of @{start.index} without launching it again, or launch it with other instructions"
        yield _Lead(text, "the agent it launched is stuck", [start.id])
