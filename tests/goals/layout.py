"""Goals whose files are pinned byte by byte: what is done in each, with the ids, times and owner that it is done under.

`python -m tests.goals.layout` writes ``fixtures/goals`` anew.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from unittest.mock import patch

from ctxmgr.goals import Goals
from ctxmgr.types.goal import (
    ActionRequest,
    AddRequest,
    BlockRequest,
    DropRequest,
    MessageRequest,
    Probe,
    ProbeResult,
    RecordRequest,
    ReorderRequest,
    SplitRequest,
    StartRequest,
    TaskDraft,
    UnblockRequest,
)
from tests.goals.scene import act, advance, begun, done, fail, open_goals

FIXTURES = Path(__file__).parents[2] / "fixtures" / "goals"
FILES = ("history.jsonl", "state.json", "loops.json")
VIEW = "view.json"
"""What every door shows of the goal, beside its own files."""

_PID = 4242
_MAKE_IDS = ("plan_edits", "repository", "service", "state_files")


def _untouched(status: os.stat_result) -> int:
    """Return the same time of modification for every file."""
    return 1


@contextmanager
def pinned() -> Generator[None]:
    """Give out numbered ids, to one process that is always the same."""
    numbers = count(1)
    identity = {"owner": "o", "pid": _PID, "host": "pinned", "boot": "b", "start": "1"}
    with (
        patch.object(os, "getpid", lambda: _PID),
        patch("ctxmgr.goals.state_files.identity", lambda: dict(identity)),
        patch("ctxmgr.goals.state_files.modification", _untouched),
    ):
        patches = [
            patch(f"ctxmgr.goals.{module}.new_id", lambda: f"018f0000-0000-7000-8000-{next(numbers):012d}")
            for module in _MAKE_IDS
        ]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()


def worked(folder: Path) -> None:
    """Do most of what can be done: attempts, failures, edits of the plan, probes, values of every JSON type."""
    goals = begun(folder)
    goals.set_probes([
        Probe(name="pkg", kind="fileExists", path="mathx"), Probe(name="has", kind="fileContains", path="a.py", text="def"),
        Probe(name="runs", kind="command", argv=["sh", "-c", "exit 3"], code=3),
    ])  # fmt: skip
    act(goals, "look", {"path": "a", "n": 1, "share": 0.5, "deep": [None, True, {"ä": "\ud800"}]}, ["x", 2])
    act(goals, "read", {"content": "x" * 600}, "y" * 600)
    fail(goals, "wrong sign")
    act(goals, "run", None, {"error": {"type": "ValueError", "message": "no"}})
    done(goals)
    advance(goals)
    goals.add(AddRequest(tasks=[TaskDraft(description="handle zero", done=True)], parent="t1", at=1))
    goals.split(SplitRequest(id="t2.1", into=[TaskDraft(description="head"), TaskDraft(description="body")], reason="big"))
    goals.reorder(ReorderRequest(order=["t2", "t1"]))
    goals.add(AddRequest(tasks=[TaskDraft(description="write the page"), TaskDraft(description="tell them")]))
    goals.drop(DropRequest(id="t4", reason="not needed"))
    goals.block(BlockRequest(id="t3", reason="waiting for the key"))
    refused = ProbeResult(name="runs", kind="command", ok=None, detail="commands are not allowed")
    goals.keep_probe_results([ProbeResult(name="pkg", kind="fileExists", ok=True), refused])
    goals.begin(ActionRequest(action="deploy", args={"to": "test"}, agent="other"))
    goals.record(RecordRequest(action="ask", args="plain", status="denied"))
    goals.apply({"id": "c", "reason": "stuck", "goal": "read the error first"})


def looped(folder: Path) -> None:
    """Go in circles of each type, so that actions are refused and a step is blocked; some of that is lifted."""
    goals = begun(folder)
    for _ in range(5):
        act(goals, "run_tests", {"path": "tests"}, "error: 2 failed")
    for _ in range(3):
        act(goals, "left", {}, "success")
        act(goals, "right", {}, "success")
    goals.record_compaction()
    goals.unblock(UnblockRequest(target="run_tests", reason="the server is up"))
    for _ in range(2):
        fail(goals, "no")
    advance(goals)
    goals.message(MessageRequest(text="use the other server"))
    for _ in range(5):
        act(goals, "edit", {"path": "b"}, "success")
    for _ in range(2):
        fail(goals, "no again")


def held(folder: Path) -> None:
    """Keep a goal, given up for another one, in a process that never lets go of it."""
    begun(folder, hold=True).close()
    goals = open_goals(folder, hold=True)
    goals.start(StartRequest(goal="Another goal", replace=True))
    for number in range(3):
        act(goals, "look", {"n": number})


CASES: dict[str, Callable[[Path], None]] = {"worked": worked, "looped": looped, "held": held}
"""Name of the folder of pinned files -> what is done."""


def made(name: str, folder: Path) -> Path:
    """Do what a case does in a folder; return where its files are."""
    with pinned():
        CASES[name](folder)
    return folder / ".agent_context"


def copied(name: str, folder: Path) -> Goals:
    """Return the goal whose files are the pinned ones."""
    place = folder / ".agent_context"
    place.mkdir(mode=0o700)
    for file in FILES:
        shutil.copy(FIXTURES / name / file, place)
    return open_goals(folder)


def shown(goals: Goals) -> str:
    """Return what is shown of a goal, its brief included."""
    return json.dumps({"state": goals.state().to_json(), "brief": goals.brief().text.splitlines()}, indent=1) + "\n"


def main() -> None:
    """Write all pinned files anew."""
    for name in CASES:
        (FIXTURES / name).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            place = made(name, Path(folder))
            for file in FILES:
                (FIXTURES / name / file).write_bytes((place / file).read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            (FIXTURES / name / VIEW).write_text(shown(copied(name, Path(folder))), encoding="ascii")


if __name__ == "__main__":
    main()
