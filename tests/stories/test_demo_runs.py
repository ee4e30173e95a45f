"""The recorded runs of real programs under fixtures/demo: what is found in them is what truly happened."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.history import detection
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import DetectRequest, RecoverRequest
from ctxmgr.types.query import ListRequest
from ctxmgr.types.view import EntryView
from ctxmgr.workspace import Workspace

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"
TRUTH: dict[str, dict[str, Any]] = json.loads((DEMO / "TRUTH.json").read_text("utf-8"))
SINGLE = sorted(name for name in TRUTH if "subagents" not in name and not (DEMO / name).with_suffix("").is_dir())
HELPER = next(name for name in TRUTH if "subagents" in name)


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every imported run as over, however fresh the files of this checkout are."""
    monkeypatch.setattr(detection, "GONE_AFTER", 0.0)


def _workspace(tmp_path: Path, log: Path) -> Workspace:
    workspace = Workspace.open(str(tmp_path / "history.db"), create=True)
    workspace.import_logs([log])
    return workspace


def _entries(workspace: Workspace) -> list[EntryView]:
    rows = workspace.list(ListRequest(limit=1_000)).rows
    return [row for row in rows if isinstance(row, EntryView)]


def _loops(workspace: Workspace) -> list[Finding]:
    verdicts = workspace.detect(DetectRequest()).verdicts
    return [finding for finding in verdicts[0].findings if finding.severity == "loop" and finding.resolved is None]


@pytest.mark.parametrize("name", SINGLE)
def test_every_call_of_a_run_is_there(tmp_path: Path, name: str) -> None:
    """Calls by name, failures and open calls are those that the run truly had."""
    truth = TRUTH[name]
    with _workspace(tmp_path, DEMO / name) as workspace:
        entries = _entries(workspace)

    assert Counter(truth["tool_names"]) == Counter(entry.action for entry in entries)
    assert truth["error_calls"] == [e.index for e in entries if e.status in ("error", "denied")]
    assert truth["open_calls"] == [e.index for e in entries if e.status == "open"]


@pytest.mark.requirement("SC-002", "US8-3")
@pytest.mark.parametrize("name", SINGLE)
def test_a_loop_is_found_where_it_is_and_nowhere_else(tmp_path: Path, name: str) -> None:
    """The loop has the period, the place and the number of rounds of the script, raised when the third round ended."""
    truth = TRUTH[name].get("loop")
    with _workspace(tmp_path, DEMO / name) as workspace:
        found = [(f.period, f.count, f.evidence["indexes"]) for f in _loops(workspace)]

    if truth is None:
        assert found == []
        return
    [(period, count, indexes)] = found
    assert (period, count) == (truth["period"], truth["rounds"])
    assert (indexes["first"], indexes["last"]) == (truth["firstCall"], truth["lastCall"])
    assert indexes["raisedAt"] == truth["thirdRoundEnds"]


@pytest.mark.requirement("FR-003")
@pytest.mark.parametrize("name", SINGLE)
def test_a_killed_call_is_hung_and_a_finished_run_is_not(tmp_path: Path, name: str) -> None:
    """A log that ends inside a call is hung there; one whose last call returned is not, however it ended."""
    with _workspace(tmp_path, DEMO / name) as workspace:
        verdicts = workspace.detect(DetectRequest()).verdicts
    stalls = [f.evidence["indexes"]["members"] for f in verdicts[0].findings if f.kind == "hung"]

    assert stalls == ([TRUTH[name]["open_calls"]] if TRUTH[name]["open_calls"] else [])


@pytest.mark.requirement("US8-4", "US8-5")
def test_a_loop_inside_a_helper_goes_back_to_who_launched_it(tmp_path: Path) -> None:
    """The sub-agent's log belongs to its session; its loop is found there and answered to the agent that launched it."""
    main = (DEMO / HELPER).parents[1].with_suffix(".jsonl")
    with _workspace(tmp_path, main) as workspace:
        [loop] = _loops(workspace)
        continuation = workspace.recover(RecoverRequest()).continuation

    assert loop.scope.agent is not None
    assert loop.scope.agent != "main"
    assert (loop.period, loop.count) == (TRUTH[HELPER]["loop"]["period"], TRUTH[HELPER]["loop"]["rounds"])
    assert continuation.target == "main"
    assert continuation.loop is not None
    assert len(continuation.do_not_repeat) == loop.period
