"""The benchmark of the brief: what it counts, on a small run."""

from __future__ import annotations

from pathlib import Path

from bench.detection.runs import Run, Writer
from bench.goals.logs import logs
from bench.goals.replay import replay
from ctxmgr.text.tokens import ESTIMATE


def _run() -> Run:
    run = Run("made/run", "made", success=True)
    writer = Writer(run)
    writer.event("user_message", "user", {"text": "find order W123 for ann", "synthetic": True}, at=None)
    for number in range(6):
        entry = writer.call("agent", "look", {"order": "W123", "page": 1000 + number}, at=None)
        writer.result(entry, f"page {1000 + number}, next 1001" + " x" * 500, failed=False, at=None)
    writer.event("user_message", "user", {"text": "now cancel it", "synthetic": True}, at=None)
    for _ in range(5):
        entry = writer.call("agent", "cancel", {"order": "W123"}, at=None)
        writer.result(entry, "Error: no", failed=True, at=None)
    return run


def test_each_call_but_the_first_is_a_point(tmp_path: Path) -> None:
    """Before each further call the brief is weighed; it holds every fact, and what the guard refused is counted."""
    done = replay(_run(), tmp_path, ESTIMATE, 2_000)

    assert (len(done.points), done.refused, done.success, done.missing) == (10, 2, True, {})
    assert all(point.held == point.facts > 0 for point in done.points)
    assert all(point.brief.chars <= 2_000 for point in done.points)
    first, last = done.points[0], done.points[-1]
    assert first.last_ten == first.history.model_copy(update={"messages": 3})
    assert last.history.messages == 22
    assert last.last_ten.messages == 10


def test_values_of_the_next_call_are_sought_in_what_was_read_before(tmp_path: Path) -> None:
    """Only what the history held counts: the order, said by the user, and a page that a result named."""
    points = replay(_run(), tmp_path, ESTIMATE, 2_000).points

    assert [(point.values, point.in_ten) for point in points[:2]] == [(2, 2), (1, 1)]
    assert points[0].in_brief >= 1


def test_a_run_without_actions_has_no_points(tmp_path: Path) -> None:
    """There is nothing to weigh before anything was done."""
    assert replay(Run("made/empty", "made"), tmp_path, ESTIMATE, 2_000).points == []


def test_logs_of_agents_are_runs(tmp_path: Path) -> None:
    """A folder of logs yields its sessions; what no importer knows is passed over."""
    (tmp_path / "odd.txt").write_text("no log", "utf-8")
    log = Path(__file__).parents[2] / "fixtures" / "demo" / "claude-code" / "projects"

    assert list(logs(tmp_path)) == []
    assert [sum(record.get("kind") == "entry" for record in run.records) for run in logs(log)][:1] == [33]
