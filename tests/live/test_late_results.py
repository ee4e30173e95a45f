"""The result of the last call, where the client writes it into its log only after its hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.clients.interface import AFTER, Call, Event
from ctxmgr.live.late_results import add_late_results
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.workspace import Workspace
from tests.live.scene import write_log

FAILED = "Exit code 1\nRan 1 test in 0.00{n}s\nImportError: No module named 'calc'\n<shell {n} ended>"


def _verdict(log: Path, command: str, result: str, call_id: str = "") -> tuple[str, list[str]]:
    """Return the verdict and the states of the calls after a late result was added."""
    event = Event(AFTER, "after", "s", [Call("Bash", {"command": command}, call_id, result)])
    with Workspace.open(str(log), create=True, scratch=True) as workspace:
        add_late_results(workspace, event)
        states = [entry.status for entry in workspace.list(ListRequest()).entries]
        return workspace.detect(DetectRequest()).verdicts[0].verdict, states


@pytest.mark.requirement("LV-told")
@pytest.mark.parametrize("begun", [True, False])
def test_a_third_failure_that_the_log_does_not_hold_yet_is_counted(begun: bool, tmp_path: Path) -> None:
    """Whether the log has begun the call or not, its failure is the third with the same cause."""
    log = tmp_path / "s.jsonl"
    write_log(log, [("make", FAILED.format(n=n)) for n in range(2 + begun)])
    if begun:
        log.write_text("".join(log.read_text("utf-8").splitlines(keepends=True)[:-1]), "utf-8")

    assert _verdict(log, "make", FAILED.format(n=7)) == ("loop", ["error"] * 3)


def test_what_says_something_else_is_recorded_as_it_is(tmp_path: Path) -> None:
    """A call that ends otherwise this time is no round of the loop."""
    log = tmp_path / "s.jsonl"
    write_log(log, [("make", FAILED.format(n=n)) for n in range(2)])

    assert _verdict(log, "make", "all is built") == ("healthy", ["error", "error", "ok"])


def test_nothing_is_added_that_the_log_holds(tmp_path: Path) -> None:
    """A call with an id whose result is there, and one that the log never saw, change nothing."""
    log = tmp_path / "s.jsonl"
    write_log(log, [("make", FAILED.format(n=n)) for n in range(2)])

    assert _verdict(log, "make", FAILED.format(n=1), "toolu_1")[1] == ["error", "error"]
    assert _verdict(log, "other", "done")[1] == ["error", "error"]
