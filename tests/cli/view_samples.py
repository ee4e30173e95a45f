"""Answers to draw: the three findings that the views are measured by, and one of every shape with chosen text in it."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import pyte

from ctxmgr.cli.terminal import Printer
from ctxmgr.types.finding import Finding, Scope, SessionVerdict, find_verdict
from ctxmgr.types.import_report import FileReport, ImportReport
from ctxmgr.types.memory import Contradiction, Episode, Recurrence, Reflection, Statement, SupersededEpisode, Topic
from ctxmgr.types.route import Alternative, Context, Continuation, DoNotRepeat, Fact, Pattern, Section
from ctxmgr.types.view import EntryStatus, EntryView, EventView, NoteView, ProcessView, SessionView, SnapshotView

SESSION = "nightly"


def entry(index: int, action: str, given: Any, status: EntryStatus = "ok", **more: Any) -> EntryView:
    """Return an entry "e<index>" that began ``index`` minutes after ten."""
    values: dict[str, Any] = {
        "index": index, "id": f"e{index}", "session": SESSION, "process": "p1",
        "ts": f"2026-01-22T{10 + index // 60:02}:{index % 60:02}:00Z", "agent": "builder", "action": action,
        "input_type": None, "input": given, "status": status, "output": None, "error": None,
        "duration_ms": None if status == "open" else 1500.0, "notes": [], "events": 0, "missing": [],
    }  # fmt: skip
    return EntryView(**{**values, **more})


def note(text: str = "look here", **more: Any) -> NoteView:
    """Return a note on the entries 3, 4 and 9."""
    values: dict[str, Any] = {
        "id": "n1", "session": SESSION, "ts": "2026-01-22T11:00:00Z", "entries": ["e3", "e4", "e9"],
        "indexes": [3, 4, 9], "content": text, "tags": ["routing"], "links": [], "author": "ann", "supersedes": None,
        "superseded_by": None, "missing": [],
    }  # fmt: skip
    return NoteView(**{**values, **more})


def episode(text: str = "the deploy needs the VPN", **more: Any) -> Episode:
    """Return an episode on the entries 3 and 4."""
    values: dict[str, Any] = {
        "id": "m1", "session": SESSION, "ts": "2026-01-22T11:00:00Z", "text": text, "tags": ["memory", "deploy"],
        "entries": ["e3", "e4"], "indexes": [3, 4], "author": "ann", "score": 0.875,
    }  # fmt: skip
    return Episode(**{**values, **more})


def reflection(**more: Any) -> Reflection:
    """Return what two episodes say together, with something in each of its parts."""
    newer, older = episode(), episode("the deploy works without the VPN", id="m0", author=None)
    said = [
        Statement(episode=e.id, session=SESSION, ts=e.ts, author=e.author, text=e.text, indexes=[3]) for e in (newer, older)
    ]
    values: dict[str, Any] = {
        "query": "deploy", "text": "deploy", "episodes": [newer, older], "sessions": [SESSION],
        "topics": [Topic(by="tag", name="deploy", statements=said), Topic(by="none", name=None, statements=said[:1])],
        "recurring": [Recurrence(text="needs the VPN", count=2, episodes=["m1", "m0"], sessions=[SESSION])],
        "contradictions": [Contradiction(newer="m1", older="m0", reason="one denies it")],
        "superseded": [SupersededEpisode(episode="m9", by="m1", text="deploy by ftp")], "questions": said[:1], "kept": "m7",
    }  # fmt: skip
    return Reflection(**{**values, **more})


def loop(
    kind: Any, members: Sequence[EntryView], period: int, reason: str, *, resolved: str | None = None, **evidence: Any
) -> Finding:
    """Return a loop through these members; its last progress is the entry before the first."""
    indexes = [member.index for member in members]
    raised = members[min(3 * period, len(members)) - 1]
    return Finding(
        id="f1", kind=kind, severity="loop", period=period, count=len(members) // period, first=members[0].id,
        last=members[-1].id, raised_at=raised.id, resolved=resolved, members=[member.id for member in members],
        last_progress=f"e{indexes[0] - 1}", scope=Scope(agent="builder", process="p1"), confidence=1.0, reason=reason,
        evidence={
            "identity": "0123456789abcdef",
            "indexes": {"first": indexes[0], "last": indexes[-1], "raisedAt": raised.index,
                        "lastProgress": indexes[0] - 1, "members": indexes},
            "steps": [{"action": m.action, "inputType": None, "input": m.input} for m in members[-period:]],
            **evidence,
        },
    )  # fmt: skip


def stall() -> tuple[Finding, list[EntryView]]:
    """Return a call that has been open for 34 minutes against a limit of ten, and the entries it names."""
    done, waiting = entry(40, "Read", {"file_path": "src/app.py"}), entry(41, "Bash", {"command": "pytest -q"}, "open")
    finding = Finding(
        id="f2", kind="hung", severity="hung", period=0, count=1, first="e41", last="e41", raised_at="e41",
        resolved=None, members=["e41"], last_progress="e40", scope=Scope(agent="builder", process="p1"), confidence=0.9,
        reason="builder has waited 34 min for Bash pytest -q, beyond its limit of 10 min",
        evidence={
            "identity": "fedcba9876543210", "stalledSeconds": 2049.0, "limitSeconds": 600.0, "ended": False,
            "indexes": {"first": 41, "last": 41, "raisedAt": 41, "lastProgress": 40, "members": [41]},
            "openCalls": [{"id": "e41", "action": "Bash", "input": {"command": "pytest -q"}, "limitSeconds": 600.0}],
        },
    )  # fmt: skip
    return finding, [done, waiting]


def repetition(rounds: int = 4) -> tuple[Finding, list[EntryView]]:
    """Return the same failing call again and again, and the entries it names."""
    before = entry(11, "Edit", {"file_path": "src/app.py"})
    members = [
        entry(12 + n, "Bash", {"command": "pytest -q tests/test_app.py"}, "error", output="exit code 1") for n in range(rounds)
    ]
    reason = f"builder ran Bash pytest -q tests/test_app.py {rounds} times and got the same error each time"
    finding = loop("repetition", members, 1, reason, error="ModuleNotFoundError: No module named 'app'")
    return finding, [before, *members]


def cycle(rounds: int = 17) -> tuple[Finding, list[EntryView]]:
    """Return a round of three calls that keeps coming back, and those of its entries that are at hand."""
    before = entry(11, "Bash", {"command": "git status"})
    members: list[EntryView] = []
    for number in range(rounds):
        at = 12 + 3 * number
        members.append(entry(at, "Read", {"file_path": "src/app.py"}))
        members.append(entry(at + 1, "Edit", {"file_path": "src/app.py", "old_string": "a"}, "error"))
        members.append(entry(at + 2, "Bash", {"command": "pytest -q"}, "denied"))
    reason = f"builder went round {rounds} times through Read then Edit then Bash, with the same results each time"
    finding = loop("cycle", members, 3, reason, error="permission denied")
    return finding, [before, *members]


def verdict(*findings: Finding, session: str = SESSION) -> SessionVerdict:
    """Return the verdict on a session with these findings."""
    return SessionVerdict(session=session, verdict=find_verdict(list(findings)), findings=list(findings))


def draw(
    view: Callable[[Printer], object], *, width: int = 80, terminal: bool = True, colour: bool = False, encoding: str = "utf-8"
) -> str:
    """Return what a view writes, without the talk about it."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding, newline="")
    view(Printer(out, io.StringIO(), terminal=terminal, width=width, colour=colour))
    out.flush()
    return raw.getvalue().decode(encoding)


def screen_lines(text: str, width: int) -> list[str]:
    """Return the lines as a terminal of this width shows them; fails when one of them takes two lines of the screen.

    Also fails when the text moved anything but the cursor along its line, or named the window.
    """
    shown: list[str] = []
    for line in text.split("\n")[:-1]:
        screen = pyte.Screen(width, 3)
        # A mark on the last cell makes pyte take a new line, which terminals do not.
        pyte.Stream(screen).feed("".join(char for char in line if unicodedata.category(char) != "Mn"))
        assert screen.cursor.y == 0, f"wrapped at {width}: {line!r}"
        assert (screen.title, screen.icon_name) == ("", "")
        assert screen.display[1:] == [" " * width] * 2
        shown.append(screen.display[0].rstrip())
    return shown


def event(kind: str, data: Any, agent: str | None = "builder", **more: Any) -> EventView:
    """Return an event after the entry 3."""
    values: dict[str, Any] = {
        "id": "v1", "session": SESSION, "ts": "2026-01-22T10:03:20Z", "type": kind, "agent": agent, "entry": None, "after": 3,
        "data": data,
    }  # fmt: skip
    return EventView(**{**values, **more})


def session(**more: Any) -> SessionView:
    """Return a session in which two agents acted and a loop goes on."""
    values: dict[str, Any] = {
        "session": SESSION, "workflow": "wf", "source": {"importer": "claude-code", "version": "2.1", "path": "a.jsonl"},
        "title": "Fix the tests", "processes": [ProcessView(process="p1", started="s", outcome="o")],
        "agents": ["builder", "explorer"], "entries": 1320, "open": 1, "failed": 3, "events": 2, "notes": 0,
        "started": "2026-01-22T10:00:00Z", "last": "2026-01-22T11:57:00Z", "live": False, "outcome": "failed", "usage": {},
        "verdict": "loop", "findings": 2, "last_progress": "2026-01-22T11:20:00Z",
    }  # fmt: skip
    return SessionView(**{**values, **more})


def snapshot(**more: Any) -> SnapshotView:
    """Return a bundle of the entries 3 and 4."""
    values: dict[str, Any] = {
        "id": "s1", "session": SESSION, "ts": "2026-01-22T11:00:00Z", "entries": ["e3", "e4"], "indexes": [3, 4],
        "summary": "auth findings", "reasoning": "needed by the merge agent", "hash": "ab" * 32, "missing": ["e9"],
    }  # fmt: skip
    return SnapshotView(**{**values, **more})


def continuation(target: str = "planner", **more: Any) -> Continuation:
    """Return the answer to a repetition, with one of everything."""
    values: dict[str, Any] = {
        "id": "c1", "session": SESSION, "request_type": "PROCEED", "source": "stuckHandler", "target": target,
        "candidates": [target, "builder"], "target_reason": "planner gave builder its task.",
        "reason": "builder ran the same failing command 4 times", "goal": "make the tests pass",
        "context": Context(
            summary="The tests fail because the package is not installed.",
            facts=[Fact(text="pytest exits with 1", entries=["e12", "e13"], label="verified"),
                   Fact(text="what e77 said is gone", entries=["e77"], label="unknown")],
            sections=[Section(title="Last words of the person", text="fix the tests\nand nothing else")],
            token_count=1234, counter="chars/4", diff_of="c0",
        ),
        "loop": Pattern(finding="f1", identity="i", kind="repetition", period=1, count=4, members=["e12", "e13"], start="e12",
                        last_progress="e11", reason="the same error 4 times"),
        "stall": None,
        "do_not_repeat": [DoNotRepeat(action="Bash", input={"command": "pytest"}, times=4, outcome="exit 1", entries=["e12"])],
        "alternatives": [Alternative(text="pip install -e .", basis="worked at @4", entries=["e4"])],
        "snapshot": "s1", "notes": ["n1"], "by": "rules", "fallback": True, "attempts": 1,
    }  # fmt: skip
    return Continuation(**{**values, **more})


def import_report(**more: Any) -> ImportReport:
    """Return the report on two files, one of them with damage and an unknown record type."""
    counts = dict.fromkeys(("user_messages", "harness_messages", "messages", "thoughts", "api_responses"), 1)
    first = FileReport(
        path="logs/a.jsonl", format="claude-code", version="2.1", session="one", agent="main", records=1000, tool_calls=321,
        tool_names={"Bash": 321}, failed_calls=3, open_calls=0, usage={"inputTokens": 1_234_567}, unknown={}, damaged=[],
        **counts,
    )  # fmt: skip
    damage = {"offset": 12, "length": 40, "reason": "not JSON"}
    second = first.model_copy(update={"path": "logs/b.jsonl", "session": "two", "unknown": {"odd": 3}, "damaged": [damage],
                                      "open_calls": 1, "skipped": "too large", "notes": ["compressed"]})  # fmt: skip
    values: dict[str, Any] = {
        "files": [first, second], "unchanged": 40, "sessions": ["one", "two"], "records": 2000, "entries": 642, "open_calls": 1,
        "added": 1900, "known": 35, "doubles": 3, "changed": 1, "unknown": {"odd": 3}, "damaged": 1, "not_understood": 0.0015,
    }  # fmt: skip
    return ImportReport(**{**values, **more})
