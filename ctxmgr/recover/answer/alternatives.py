"""What else could be done, as far as the history itself shows it; never a call that was already tried in vain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ctxmgr.light_dataclass import dataclass
from ctxmgr.recover.evidence.brief import Brief
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.quotes import call, cited, command_of, named, quoted
from ctxmgr.recover.evidence.records import PEOPLE, changes_something, is_bookkeeping, program, same_call, texts, words
from ctxmgr.recover.evidence.retrieval import RetrievedRecord
from ctxmgr.recover.evidence.unread_files import PATH, unread
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Alternative
from ctxmgr.types.view import EntryView

_MOST = 5
_ENOUGH = 2
_MOST_ELSEWHERE = 2
_CALL = 160


@dataclass(frozen=True, slots=True)
class _Lead:
    text: str
    basis: str
    entries: list[str]


def alternatives(reader: HistoryReader, brief: Brief, finding: Finding | None, attempt: int) -> list[Alternative]:
    """Return up to five leads, the most specific first; general ones only where specific ones are few."""
    if finding is None:
        return _asking(brief)
    leads = [*_elsewhere(brief), *_for_stall(reader, brief), *_for_launcher(brief)] if finding.severity == "hung" else [
        *_refused_change(brief), *_unread(reader, brief), *_elsewhere(brief), *_worked(reader, brief),
        *_other_change(brief, finding), *_other_cause(brief, finding), *_for_launcher(brief),
    ]  # fmt: skip
    if len(leads) < _ENOUGH and brief.members and finding.severity != "hung":
        leads += _other_tools(reader, brief)
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


def _unread(reader: HistoryReader, brief: Brief) -> Iterator[_Lead]:
    for pointer in unread(reader, brief):
        basis, entries = f"result of @{pointer.entry.index}", [pointer.entry.id]
        path = quoted(pointer.path, 200)
        if pointer.missing:
            yield _Lead(f"find out why {path} is not there, or do without it: the error names it", basis, entries)
        else:
            where = f", line {pointer.line}" if pointer.line else ""
            yield _Lead(f"look at {path}{where}: the error names it, and it was not looked at yet", basis, entries)


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


def _refused_change(brief: Brief) -> Iterator[_Lead]:
    """Yield the reading that a refused change should rest on."""
    for step in brief.rounds:
        if step.status != "error" or not changes_something(step):
            continue
        asked = "\n".join(texts(step.input))[:20_000]
        names = {match.group(1).rpartition("/")[2] for match in PATH.finditer(asked)}
        readings = (e for e in reversed([*brief.latest, *brief.rounds]) if e.status == "ok" and not changes_something(e))
        read = next((e for e in readings if any(name in text for text in texts(e.input) for name in names)), None)
        if read is not None:
            text = f"make the next change from what @{read.index} shows: the one of @{step.index} was refused"
            yield _Lead(text, f"result of @{step.index}", [read.id, step.id])
            return


def _other_change(brief: Brief, finding: Finding) -> Iterator[_Lead]:
    if finding.period < 2:
        return
    for step in brief.rounds:
        if step.status == "ok" and changes_something(step):
            text = f"change something other than @{step.index} did"
            yield _Lead(text, f"the same outcome followed it in all {finding.count} rounds", [step.id])
            return


def _other_cause(brief: Brief, finding: Finding) -> Iterator[_Lead]:
    if finding.kind == "errorRepetition" and len(brief.rounds) > 2:
        text = f"remove the cause that the error names before calling {named(brief.rounds[-1].action)} in yet another form"
        yield _Lead(text, f"{len(brief.rounds)} forms met the same error", [entry.id for entry in brief.rounds[-3:]])


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


def _other_tools(reader: HistoryReader, brief: Brief) -> list[_Lead]:
    """Return tools that served this session before the trouble began and were not used since."""
    recent = reader.newest(200)
    used = {entry.action for entry in recent if entry.index >= brief.onset} | {entry.action for entry in brief.members}
    served: dict[str, EntryView] = {}
    for entry in recent:
        if entry.status == "ok" and entry.action not in used and not is_bookkeeping(entry.action):
            served.setdefault(entry.action, entry)
    if not served:
        return []
    found = list(served.values())[:4]
    names = ", ".join(named(entry.action) for entry in found)
    text = f"try what has not been used since the trouble began: {names}"
    return [_Lead(text, "worked earlier in this session", [entry.id for entry in found])]
