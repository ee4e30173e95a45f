"""Evidence in few words: calls, what was said, and a loop over the last of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.evidence import Evidence, Message
from ctxmgr.log.ids import format_time
from ctxmgr.types.finding import Finding, FindingKind, Scope, Severity
from ctxmgr.types.view import EntryStatus, EntryView
from tests.builders import START


class Call(NamedTuple):
    """A call with its answer; ``status`` ``open`` is one without."""

    action: str
    given: Any
    output: Any = None
    status: EntryStatus = "ok"
    agent: str = "main"


class Said(NamedTuple):
    """Words of a person, or of an agent, or of what ``kind`` names."""

    text: str
    who: str = "user"
    kind: str = ""


def bash(command: str, output: str = "", status: EntryStatus = "ok") -> Call:
    """Return a command with what it printed."""
    return Call("Bash", {"command": command}, output, status)


def failed(command: str, output: str) -> Call:
    """Return a command that failed with this output."""
    return bash(command, f"Exit code 1\n{output}", "error")


def read(path: str, text: str) -> Call:
    """Return a reading of a file, with numbered lines."""
    return Call("Read", {"file_path": path}, "\n".join(f"{n}\t{line}" for n, line in enumerate(text.split("\n"), 1)))


def edit(path: str, old: str, new: str, refused: str = "") -> Call:
    """Return an edit, refused when a message is given."""
    asked = {"file_path": path, "old_string": old, "new_string": new}
    return Call("Edit", asked, refused or f"The file {path} has been updated successfully.", "error" if refused else "ok")


def view(number: int, call: Call) -> EntryView:
    """Return the entry of that number."""
    bad = call.status in ("error", "denied")
    error = {"type": "error", "message": call.output} if bad and isinstance(call.output, str) else call.output if bad else None
    return EntryView(
        index=number, id=f"e{number:05}", session="s", process=None, ts=format_time(START + number), agent=call.agent,
        action=call.action, input_type=None, input=call.given, status=call.status, output=call.output, error=error,
        duration_ms=None, notes=[], events=0, missing=[], meta={"cwd": "/home/dev/shop"},
    )  # fmt: skip


def evidence(
    *steps: Call | Said, loop: int = 0, kind: FindingKind = "repetition", severity: Severity = "loop", found: bool = True
) -> Evidence:
    """Return the evidence of these steps.

    Args:
        steps: oldest first.
        loop: how many of the last calls are the loop; 0 for those equal to the last one.
        kind: the finding's.
        severity: the finding's.
        found: whether there is a finding at all.
    """
    entries: list[EntryView] = []
    messages: list[Message] = []
    for step in steps:
        if isinstance(step, Call):
            entries.append(view(len(entries), step))
        else:
            by = "user" if step.who == "user" else "program" if step.kind else "agent"
            place = len(entries) - 1 if entries else None
            messages.append(
                Message(step.who, by, format_time(START + len(entries)), step.text, step.kind or by_kind(by), place)
            )
    members = (
        entries[-loop:] if loop else [e for e in entries if e.action == entries[-1].action and e.input == entries[-1].input]
    )
    return Evidence(entries, finding_of(members, kind, severity) if found and members else None, messages)


def by_kind(by: str) -> str:
    """Return the type of the event by which somebody speaks."""
    return "user_message" if by == "user" else "message"


def finding_of(members: Sequence[EntryView], kind: FindingKind, severity: Severity) -> Finding:
    """Return a finding over these entries."""
    ids = [entry.id for entry in members]
    return Finding(
        id="f", kind=kind, severity=severity, period=1, count=len(ids), first=ids[0], last=ids[-1], raised_at=ids[-1],
        resolved=None, members=ids, last_progress=None, scope=Scope(agent=members[-1].agent, process=None), confidence=1.0,
        reason="", evidence={},
    )  # fmt: skip


def require_told(known: Evidence, kind: str, cause: Sequence[str], step: Sequence[str]) -> None:
    """Demand that a diagnosis of this kind is made, with these words in its cause and in its next step."""
    found = diagnose(known)

    assert found is not None
    assert found.kind == kind, found.cause
    assert [word for word in cause if word not in found.cause] == [], found.cause
    assert [word for word in step if word not in found.next_step] == [], found.next_step
