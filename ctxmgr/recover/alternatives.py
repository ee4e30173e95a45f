"""What else could be done, as far as the history itself shows it: untried leads, and what last worked."""

from __future__ import annotations

import re

from ctxmgr.recover.brief import Brief
from ctxmgr.recover.desk import Desk
from ctxmgr.recover.quoting import call, outcome, quoted
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Alternative
from ctxmgr.types.view import EntryView

_MOST = 6
_READING = {"read", "read_file", "view", "open", "cat", "grep", "glob", "ls", "search", "list_dir", "list_files"}
# A path with a folder or a suffix: what an error message points at. Bounded, so that no text can make it slow.
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]{1,60}/){0,12}[\w-]{1,80}\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/])")


def alternatives(desk: Desk, brief: Brief, finding: Finding | None) -> list[Alternative]:
    """Return up to six leads, the most specific first."""
    if finding is None:
        return []
    found = [*_unread(desk, brief), *_ended_it_before(desk, brief), *_worked_before(brief)]
    if finding.kind == "hung":
        found += [
            Alternative(
                text=f"do not wait for {call(entry)} again: run it with a limit, in the background, or in smaller parts",
                basis="the call never returned",
                entries=[entry.id],
            )
            for entry in brief.members
            if entry.status == "open"
        ]
    found += _other_tools(desk, brief)
    if not found:
        found.append(
            Alternative(
                text="report what is missing and ask the person who gave the task",
                basis="nothing in this history worked before or was left untried",
                entries=[],
            )
        )
    return found[:_MOST]


def _unread(desk: Desk, brief: Brief) -> list[Alternative]:
    """Return files that the failing results name and that no action has looked at since."""
    found: dict[str, Alternative] = {}
    for entry in brief.rounds:
        if entry.status not in ("error", "denied"):
            continue
        for path in dict.fromkeys(_PATH.findall(outcome(entry, 4_000))):
            if path not in found and not _looked_at(desk, path, entry):
                found[path] = Alternative(
                    text=f"look at {quoted(path)}, which the error names and no action has opened",
                    basis=f"the result of @{entry.index}",
                    entries=[entry.id],
                )
    return list(found.values())[:2]


def _looked_at(desk: Desk, path: str, failing: EntryView) -> bool:
    for entry in desk.mentions(path):
        in_input = path in quoted(entry.input, 10_000)
        if in_input and (entry.id == failing.id or entry.action.lower() in _READING or entry.status == "ok"):
            return True
    return False


def _ended_it_before(desk: Desk, brief: Brief) -> list[Alternative]:
    """Return what made the same action succeed elsewhere in the session."""
    found: list[Alternative] = []
    for step in brief.rounds[:3]:
        if step.status == "ok":
            continue
        worked = [e for e in desk.trace(action=step.action, agent=step.agent) if e.status == "ok" and e.input != step.input]
        if worked:
            last = worked[-1]
            found.append(
                Alternative(
                    text=f"{call(last)} worked: start from that form of {step.action}",
                    basis=f"@{last.index} ended ok",
                    entries=[last.id],
                )
            )
    return found


def _worked_before(brief: Brief) -> list[Alternative]:
    last = brief.last_success
    if last is None or last.id in {entry.id for entry in brief.members}:
        return []
    return [
        Alternative(
            text=f"go on from the last step that worked, {call(last)}, and take another way from there",
            basis=f"@{last.index} was the last progress",
            entries=[last.id],
        )
    ]


def _other_tools(desk: Desk, brief: Brief) -> list[Alternative]:
    """Return tools that served this session well and were not used since the trouble began."""
    tried = {entry.action for entry in brief.members}
    served: dict[str, EntryView] = {}
    for entry in desk.newest(200, status=("ok",)):
        if entry.action not in tried:
            served.setdefault(entry.action, entry)
    if not served:
        return []
    names = ", ".join(list(served)[:6])
    return [
        Alternative(
            text=f"use a tool that was not tried since the trouble began: {names}",
            basis="each of them worked earlier in this session",
            entries=[entry.id for entry in list(served.values())[:6]],
        )
    ]
