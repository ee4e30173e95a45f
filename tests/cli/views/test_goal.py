"""The tree as a picture: what it shows at a glance, at every width, folded where it is long, and plain in a pipe."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.cli.views.goal import show_position, show_record, show_resume, show_tree
from ctxmgr.types.goal import (
    ActionView,
    AttemptView,
    Block,
    BlockedAction,
    Claim,
    GoalState,
    GoalView,
    NodeStatus,
    OwnerView,
    ProbeResult,
    RecordAnswer,
    ResumeAnswer,
    SubtaskView,
    TaskView,
)
from tests.cli.view_samples import draw, screen_lines

HOSTILE = "ok\x1b[2J\u202egnp\n▶ t9  \x9b31mforged"


def _part(name: str, status: NodeStatus, text: str | None = None, **more: Any) -> SubtaskView:
    percent = 100 if status == "done" else 0
    return SubtaskView(id=name, description=text or f"step {name}", status=status, percent=percent, **more)


def _task(name: str, status: NodeStatus, *parts: SubtaskView, text: str | None = None, **more: Any) -> TaskView:
    done = sum(part.status == "done" for part in parts)
    percent = 100 * done // len(parts) if parts else 100 if status == "done" else 0
    return TaskView(id=name, description=text or f"task {name}", status=status, percent=percent, subtasks=list(parts), **more)


def _action(status: Any = "open", **more: Any) -> ActionView:
    values: dict[str, Any] = {
        "id": "e1", "action": "deploy", "args": {"to": "prod"}, "status": status, "result": None, "ts": None, "node": "t2.2",
        "attempt": 2,
    }  # fmt: skip
    return ActionView(**{**values, **more})


def _state(*tasks: TaskView, current: str | None = "t2.2", **more: Any) -> GoalState:
    goal = GoalView(
        id="goal", description="Create the mathx package", status="in_progress", percent=42, session="s", tasks=list(tasks)
    )
    values: dict[str, Any] = {
        "goal": goal, "current": current, "active": True, "next": None, "next_step": None, "actions": [], "in_flight": [],
        "blocked_actions": [], "loop_counts": {}, "probes": [], "probe_state": [], "actions_total": 47, "refused_total": 2,
        "owner": OwnerView(epoch=1), "generation": 1, "records": 1, "sum": "",
    }  # fmt: skip
    return GoalState(**{**values, **more})


def _rich(text: str = "") -> GoalState:
    failed = AttemptView(number=1, status="failed", actions=4, reason=f"negative numbers {text}")
    second = AttemptView(number=2, status="in_progress", actions=5)
    twice = [AttemptView(number=number, status="failed", actions=1, reason=f"import error {number}") for number in (1, 2)]
    return _state(
        _task("t1", "done", _part("t1.1", "done"), _part("t1.2", "done"), text=f"Create {text}"),
        _task(
            "t2", "in_progress", _part("t2.1", "done"),
            _part("t2.2", "in_progress", f"sub() {text}", attempts=[failed, second]),
            _part("t2.3", "pending"),
        ),
        _task(
            "t3", "blocked",
            _part("t3.1", "blocked", attempts=twice, block=Block(by="attempts", reason=f"2 failed attempts {text}")),
            block=Block(by="escalation", reason="t3.1 is blocked: 2 failed attempts"),
        ),
        _task("t4", "pending"),
        _task("t5", "dropped", reason=f"not wanted {text}"),
        next_step=f"look at the signs {text}",
        in_flight=[_action(args={"to": f"prod {text}"})],
        blocked_actions=[
            BlockedAction(key="ab12", action=f"run {text}", args={"command": "pytest"}, type="A", node="t2.2",
                          reason=f"3 times the same {text}", times=2)
        ],
        probe_state=[ProbeResult(name="pkg", kind="fileExists", ok=True), ProbeResult(name="lint", kind="command", ok=None)],
    )  # fmt: skip


@pytest.mark.requirement("H-tree", "H-2")
def test_the_tree_shows_where_we_are_and_why_not_further() -> None:
    """Marks, bars, ids, attempts, reasons, blocked actions and probes: all of it on one page."""
    assert (
        draw(lambda out: show_tree(out, _rich())).rstrip("\n")
        == """\
▶ Create the mathx package
  ━━━━━━━━━━────────────────  42 %  3 of 7 steps done · 47 actions · 2 refused

✓ t1  Create                                                   ━━━━━━━━━━ 100 %
├─ ✓ t1.1  step t1.1
└─ ✓ t1.2  step t1.2
▶ t2  task t2                                                  ━━━───────  33 %
├─ ✓ t2.1  step t2.1
├─ ▶ t2.2  sub()   attempt 2, 5 actions
│    attempt 1 failed: negative numbers
│    next: look at the signs
└─ ○ t2.3  step t2.3
⊘ t3  task t3                                                  ──────────   0 %
└─ ⊘ t3.1  step t3.1  attempt 2, 1 action
     blocked: 2 failed attempts
     attempt 1 failed: import error 1
     attempt 2 failed: import error 2
○ t4  task t4                                                  ──────────   0 %
– t5  task t5
   dropped: not wanted

In flight: effect unknown
  ○ deploy  {"to": "prod "}  [e1]
  how one ended: ctxmgr goal record NAME --entry ID --result RESULT

Blocked actions
  ⊘ run   pytest  ×2  [ab12]
    3 times the same

probes  pkg:✓  lint:?"""
    )


@pytest.mark.parametrize("width", [20, 33, 44, 80, 200])
@pytest.mark.parametrize("text", ["", HOSTILE, "短い名前 " * 9, "x" * 300])
def test_the_tree_fits_every_width_whatever_is_in_it(width: int, text: str) -> None:
    """No line is wider than the screen, and no recorded text steers the terminal or draws a line of its own."""
    shown = draw(lambda out: show_tree(out, _rich(text)), width=width, colour=True)

    screen_lines(shown, width)
    assert not any(line.startswith("▶ t9") for line in screen_lines(shown, width))


def test_colours_mean_something() -> None:
    """What is done is green, where we are is cyan, what is blocked is bold yellow, what failed is red."""
    shown = draw(lambda out: show_tree(out, _rich()), colour=True)

    assert "\x1b[32m✓" in shown
    assert "\x1b[36m▶" in shown
    assert "\x1b[1;33m⊘" in shown
    assert "\x1b[31mattempt 1 failed" in shown


def test_in_a_pipe_each_step_is_a_row() -> None:
    """Without a terminal the tree is plain columns, uncut, with the current step marked."""
    rows = draw(lambda out: show_tree(out, _rich("y" * 99)), terminal=False, width=20).splitlines()

    assert rows[0].split() == ["id", "status", "percent", "current", "description", "reason"]
    assert [row.split()[:2] for row in rows[1:6]] == [
        ["goal", "in_progress"], ["t1", "done"], ["t1.1", "done"], ["t1.2", "done"], ["t2", "in_progress"],
    ]  # fmt: skip
    assert [row.split()[0] for row in rows if " * " in row] == ["t2.2"]
    assert all(char not in "".join(rows) for char in "├└━\x1b")


def test_an_encoding_without_signs_gets_others() -> None:
    """On a terminal that knows ASCII alone the branches and bars are typed."""
    shown = draw(lambda out: show_tree(out, _rich()), encoding="ascii")

    assert "|- > t2.2" in shown
    assert "`- o t2.3" in shown
    assert "\\u" not in shown


def _long() -> GoalState:
    def status(number: int, here: int) -> NodeStatus:
        return "done" if number < here else "in_progress" if number == here else "pending"

    tasks = [
        _task(f"t{n}", status(n, 40), *(_part(f"t{n}.{m}", "done" if n < 40 else "pending" if n > 40 else status(m, 15))
                                        for m in range(30)))
        for n in range(80)
    ]  # fmt: skip
    return _state(*tasks, current="t40.15")


@pytest.mark.requirement("H-tree")
def test_a_long_tree_is_folded_around_where_we_are() -> None:
    """Of 2,400 steps a screenful is shown: where we are and what is near; the rest is counted, and --all shows it."""
    shown = draw(lambda out: show_tree(out, _long())).splitlines()
    whole = draw(lambda out: show_tree(out, _long(), complete=True)).splitlines()

    assert len(shown) < 24
    assert "⋯ 38 done (--all)" in shown
    assert any("▶ t40.15" in line for line in shown)
    assert any(line.startswith("✓ t39  task t39  30 steps") for line in shown)
    assert "⋯ 35 more (--all)" in shown
    assert len(whole) > 2_400


@pytest.mark.requirement("H-tree")
def test_what_is_wrong_is_never_folded_away() -> None:
    """Blocked and failed steps are shown wherever they are in a long tree."""
    state = _long()
    tasks = list(state.goal.tasks)
    parts = [_part("t3.1", "failed", reason="no luck"), *(_part(f"t3.{n}", "done") for n in range(2, 30))]
    tasks[3] = _task("t3", "blocked", *parts, block=Block(by="user", reason="waiting"))
    goal = state.goal.model_copy(update={"tasks": tasks})
    shown = draw(lambda out: show_tree(out, state.model_copy(update={"goal": goal})))

    assert "blocked: waiting" in shown
    assert "failed: no luck" in shown


def test_a_goal_without_tasks_is_a_tree_too() -> None:
    """A goal may be worked on before it has tasks."""
    shown = draw(lambda out: show_tree(out, _state(current="goal", next_step="begin")))

    assert shown.startswith("▶ Create the mathx package\n")
    assert "next: begin" in shown


def test_where_we_are_in_a_few_lines() -> None:
    """The current step with its task; where it is blocked, why, and what goes on instead."""
    blocked = _state(_task("t1", "blocked", _part("t1.1", "blocked", block=Block(by="attempts", reason="2 failed"))),
                     current="t1.1", next="t2.1")  # fmt: skip
    finished = _state(_task("t1", "done"), current=None)
    finished = finished.model_copy(update={"goal": finished.goal.model_copy(update={"status": "done", "percent": 100})})

    assert draw(lambda out: show_position(out, _rich())).startswith(
        "▶ t2.2  task t2: sub()   attempt 2\n  next: look at the signs"
    )
    assert draw(lambda out: show_position(out, blocked)).startswith(
        "⊘ t1.1  task t1: step t1.1\n  blocked: 2 failed\n  'ctxmgr goal next' goes on with t2.1\n"
    )
    assert draw(lambda out: show_position(out, finished)).startswith("✓ the goal is reached\n")


def test_a_refusal_says_what_to_do_instead() -> None:
    """Allowed is one line; refused says which loop, why, and what next."""
    allowed = RecordAnswer(allowed=True, entry="e1", node="t1", attempt=2)
    refused = RecordAnswer(allowed=False, type="B", reason="A-B-A-B", hint="try something else")

    assert draw(lambda out: show_record(out, "read", allowed)) == "✓ recorded: read  t1, attempt 2\n"
    assert draw(lambda out: show_record(out, "read", allowed, begun=True)) == (
        f"✓ begun: read  t1, attempt 2\n  → its result: --entry {allowed.entry} --result RESULT\n"
    )
    assert draw(lambda out: show_record(out, "read", refused)) == (
        "⊘ refused: read  alternation\n  A-B-A-B\n  → try something else\n"
    )


def test_a_resume_tells_the_sure_from_the_assumed() -> None:
    """What is refuted comes first; what was in flight is not to be repeated blindly; a successor hears of its taking over."""
    state = _rich()
    answer = ResumeAnswer(
        state=state, in_flight=state.in_flight, replayed=3, took_over=True, previous=OwnerView(epoch=1, owner="night shift"),
        rebuilt=["state.json"], brief="",
        claims=[Claim(text="t1 is done", basis="assumed"), Claim(text="pkg is there", basis="verified"),
                Claim(text="tests are not there", basis="refuted")],
    )  # fmt: skip
    shown = draw(lambda out: show_resume(out, answer))
    places = [shown.index(text) for text in ("effect unknown", "tests are not there", "pkg is there", "t1 is done")]

    assert places == sorted(places)
    assert "taken over from night shift" in shown
    assert "state.json was damaged" in shown
    screen_lines(draw(lambda out: show_resume(out, answer), width=30), 30)
