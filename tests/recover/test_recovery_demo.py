"""Continuations of the recorded runs of real programs: each says what a person who reads that run would say."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.history import detection
from ctxmgr.types.operations import RecoverRequest
from ctxmgr.types.route import Continuation
from ctxmgr.workspace import Workspace

DEMO = Path(__file__).parents[2] / "fixtures" / "demo"
CLAUDE, CODEX = DEMO / "claude-code/projects/-home-dev-invoice-tool", DEMO / "codex/sessions/2026/11/21"


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every imported run as over, however fresh the files of this checkout are."""
    monkeypatch.setattr(detection, "GONE_AFTER", 0.0)


def continuation(tmp_path: Path, log: Path) -> Continuation:
    """Return the continuation planned for an imported run."""
    with Workspace.open(str(tmp_path / "history.db"), create=True) as workspace:
        workspace.import_logs([log])
        return workspace.recover(RecoverRequest(plan=True)).continuation


def log(folder: Path, start: str) -> Path:
    """Return the log whose name begins so."""
    return next(path for path in sorted(folder.iterdir()) if path.name.startswith(start) and path.is_file())


@pytest.mark.cases(1)
@pytest.mark.requirement("US8-3", "US8-4")
@pytest.mark.parametrize(("folder", "start"), [(CLAUDE, "7e999fd2"), (CODEX, "rollout-2026-11-21T23-04-15")])
def test_the_circle(tmp_path: Path, folder: Path, start: str) -> None:
    """The change that is refused each round is to be made from what the file truly holds."""
    found = continuation(tmp_path, log(folder, start))

    assert [step.times for step in found.do_not_repeat] == [7, 7, 7]
    assert found.diagnosis is not None
    assert found.diagnosis.kind == "wrongEditTarget"
    assert found.diagnosis.next_step.startswith("Make the edit with line 8")
    assert "off by one cent" in found.context.summary
    assert "@11" in found.context.summary


@pytest.mark.cases(1)
@pytest.mark.parametrize(("folder", "start"), [(CLAUDE, "b62baaaa"), (CODEX, "rollout-2026-11-21T23-05-36")])
def test_the_repetition(tmp_path: Path, folder: Path, start: str) -> None:
    """A command that fails for want of a file leads to that file."""
    found = continuation(tmp_path, log(folder, start))

    assert [step.times for step in found.do_not_repeat] == [7]
    assert found.diagnosis is not None
    assert "data/2026-10.csv" in found.diagnosis.cause


@pytest.mark.requirement("US11-2", "US11-3")
@pytest.mark.parametrize(("folder", "start"), [(CLAUDE, "55acea86"), (CODEX, "rollout-2026-11-21T23-06-16")])
def test_the_open_call(tmp_path: Path, folder: Path, start: str) -> None:
    """A call that never returned is told with the reading before it, which shows the lock that it waits for."""
    found = continuation(tmp_path, log(folder, start))

    assert found.stall is not None
    assert "@7" in found.context.summary
    assert any("ledger.lock" in fact.whole for fact in found.context.facts)
    assert found.alternatives[0].text.startswith("find out whether @7 took effect")


def test_the_helper(tmp_path: Path) -> None:
    """A sub-agent in a circle is taken over by the agent that launched it and waits for it."""
    with Workspace.open(str(tmp_path / "history.db"), create=True) as workspace:
        workspace.import_logs([CLAUDE])
        found = workspace.recover(RecoverRequest(session="1211c55c", plan=True)).continuation

    assert found.target == "main"
    assert found.loop is not None
    assert [step.times for step in found.do_not_repeat] == [6, 6, 6]
    assert any("was launched by main at @6" in fact.whole and "still open" in fact.whole for fact in found.context.facts)
    assert not any("main has stopped" in fact.whole for fact in found.context.facts)
