"""Stalls: what is one, and the silences that are none."""

from __future__ import annotations

import pytest

from ctxmgr.detect.monitor import NO_CLOCK, NO_TIMES, Monitor
from ctxmgr.detect.settings import DetectSettings
from tests.detect.scenario import Scenario


def after_a_result() -> Scenario:
    """Return a session whose last record is a result."""
    story = Scenario()
    story.call("Read", {"path": "a.py"}, "text")
    return story


@pytest.mark.requirement("FR-003", "SC-003")
def test_silence_with_nothing_in_flight_is_a_stall_after_two_minutes() -> None:
    """Nothing for more than 120 s after a result is a stall that names where progress stopped."""
    story = after_a_result()
    assert story.stalls(after=120) == []
    (finding,) = story.stalls(after=121)
    assert (finding.severity, finding.period, finding.members, finding.last_progress) == ("hung", 0, [], "e0")
    assert finding.evidence["stalledSeconds"] == 121
    assert 'since main finished Read "a.py"' in finding.reason


@pytest.mark.requirement("FR-003")
def test_the_time_to_wait_is_a_setting() -> None:
    """A shorter timeout is honoured."""
    assert len(after_a_result().stalls(after=31, settings=DetectSettings(stall_seconds=30))) == 1


@pytest.mark.parametrize(
    ("given", "timeout_ms", "limit"),
    [
        ({"command": "make"}, None, 600),
        ({"command": "make"}, 900_000, 900),
        ({"command": "make", "timeout_s": 900}, None, 900),
        ({"command": "make", "timeout_ms": 700_000}, None, 700),
        ({"command": "make", "timeout": 120_000}, None, 120),
        ({"command": "make", "timeout": 1800}, None, 1800),
        ({"command": "make", "timeout": "soon"}, None, 600),
    ],
)
def test_a_call_in_flight_has_its_own_limit(given: dict[str, object], timeout_ms: float | None, limit: float) -> None:
    """A call is judged by the limit it declares, wherever it declares it, else by ten minutes; silence only warns."""
    story = after_a_result()
    call = story.open("Bash", given, timeout_ms=timeout_ms)
    assert all(finding.severity == "warn" for finding in story.stalls(after=limit))
    (finding,) = story.stalls(after=limit + 6)
    assert (finding.members, finding.severity) == ([call], "hung")
    assert finding.evidence["limitSeconds"] == limit
    assert finding.evidence["openCalls"][0]["input"] == given
    assert finding.last_progress == "e0"


def test_a_call_without_a_sign_of_life_warns() -> None:
    """After two minutes an open call warns, by the finding it becomes at its limit; a declared one is waited for."""
    story, declared, alive = after_a_result(), after_a_result(), after_a_result()
    story.open("Bash", {"command": "make"})
    assert story.stalls(after=120) == []
    (warning,) = story.stalls(after=121)
    (stall,) = story.stalls(after=606)
    assert (warning.severity, stall.severity, warning.id == stall.id) == ("warn", "hung", True)
    assert "no sign of life" in warning.reason

    declared.open("Bash", {"command": "make"}, timeout_ms=900_000)
    alive.open("Bash", {"command": "make"})
    alive.say("heartbeat", agent="main")
    assert declared.stalls(after=600) == alive.stalls(after=500) == []


def test_a_late_result_leaves_a_resolved_finding() -> None:
    """A call that outlived its limit and came back was a stall, and is none any more."""
    story = Scenario()
    call = story.open("Bash", {"command": "make"}, timeout_ms=60_000)
    story.close(call, "done", took=300)
    (finding,) = story.stalls(after=1)
    assert (finding.resolved, finding.members) == ("progress", [call])


def test_heartbeats_and_deltas_are_life_not_progress() -> None:
    """Heartbeats and streamed text do not keep a run from being hung; a reported progress does."""
    story = after_a_result()
    for _ in range(30):
        story.say("heartbeat", wait=10)
        story.say("agent_message_chunk", {"text": "."}, wait=0)
    assert len(story.stalls(after=1)) == 1
    story.say("progress")
    assert story.stalls(after=1) == []


@pytest.mark.parametrize("event", ["message", "turn_end", "waiting", "permission_request", "interrupt"])
def test_a_run_that_waits_for_a_person_is_not_hung(event: str) -> None:
    """After a finished turn, an approval prompt or an interrupt, an hour of silence is no stall."""
    story = after_a_result()
    story.say(event, agent="main")
    assert story.stalls(after=3600) == []


@pytest.mark.parametrize("action", ["ask_user", "AskUserQuestion", "request_approval"])
def test_a_question_to_a_person_has_no_limit(action: str) -> None:
    """A call that a person answers is never overdue, and the log may end in it."""
    story = after_a_result()
    story.open(action, {"question": "which?"})
    assert story.stalls(after=7200) == []
    assert story.stalls() == []


def test_an_approval_prompt_covers_the_call_it_holds_up() -> None:
    """A call that waits for permission is not overdue."""
    story = Scenario()
    story.open("Bash", {"command": "rm -r build"}, timeout_ms=60_000)
    story.say("waiting")
    assert story.stalls(after=3600) == []


def test_finished_runs_are_not_hung() -> None:
    """Neither an ended process nor a call that declares the work done is a stall."""
    ended, done = after_a_result(), after_a_result()
    ended.end()
    done.call("attempt_completion", {"result": "all done"}, "ok")
    assert ended.stalls(after=3600) == []
    assert done.stalls(after=3600) == []


def test_a_person_who_gets_no_answer_is_a_stall() -> None:
    """Silence after a human message counts from the message."""
    story = after_a_result()
    story.say("message", agent="main")
    story.say("user_message", wait=900)
    assert story.stalls(after=100) == []
    assert len(story.stalls(after=130)) == 1


def test_a_working_child_keeps_its_parent_alive() -> None:
    """The parent's call runs as long as the child makes progress, by name of the call or by the child's parent id."""
    for action, parent in (("Task", None), ("run_helper", "e0")):
        story = Scenario()
        story.open(action, {"prompt": "look"})
        for number in range(40):
            story.call("Read", {"path": f"f{number}"}, f"t{number}", wait=30, agent="child", parent=parent)
        assert story.stalls(after=100) == []
        assert len(story.stalls(after=130)) == 1


def test_a_clock_that_steps_back_is_no_stall() -> None:
    """Neither a negative silence nor one measured from the wrong side of the step is reported."""
    story = after_a_result()
    story.call("Read", {"path": "b"}, "text", wait=-3600)
    assert story.stalls(after=20) == []
    assert story.stalls(after=-500) == []


def test_without_times_stalls_are_not_judged_and_that_is_said() -> None:
    """A log without timestamps is never hung by the clock; a note says so."""
    story = Scenario(timed=False)
    story.call("Read", {"path": "a"}, "text")
    monitor, _ = story.watched()
    assert monitor.findings(story.clock + 9999) == []
    assert monitor.notes == [NO_TIMES]
    monitor.findings(story.clock)
    assert monitor.notes == [NO_TIMES]


def test_a_log_that_ends_inside_a_call_is_hung() -> None:
    """With the process gone, a call without a result at the end of the log is how a hang or a crash looks."""
    story = after_a_result()
    call = story.open("Bash", {"command": "make world"})
    (finding,) = story.stalls()
    assert (finding.members, finding.evidence["ended"], finding.raised_at) == ([call], True, call)
    assert finding.reason == 'the log ends inside Bash "make world" by main: no result was recorded'


def test_a_log_that_ends_after_a_result_is_not_hung() -> None:
    """Nothing is claimed about a log that simply stops after a result, unless a time to judge against is given."""
    assert after_a_result().stalls() == []


@pytest.mark.parametrize("then", ["user_message", "message", "process", "entry"])
def test_a_call_the_run_went_on_without_is_no_stall(then: str) -> None:
    """An open call is history once a person spoke, its agent went on, or a later process took over."""
    story = after_a_result()
    story.open("Bash", {"command": "server"}, step=1)
    story.open("Read", {"path": "b"}, step=1, id="sibling")
    story.close("sibling", "text")
    if then == "entry":
        story.call("Read", {"path": "c"}, "text", step=2)
    elif then == "process":
        story.call("Read", {"path": "c"}, "text", process="p2")
    else:
        story.say(then, agent="main")
    assert story.stalls() == []


def test_a_parallel_sibling_of_a_finished_call_may_hang() -> None:
    """One of two parallel calls came back, the other did not: the log ends inside it."""
    story = after_a_result()
    lost, found = story.open("Read", {"path": "a"}), story.open("Read", {"path": "b"})
    story.close(found, "text")
    assert [finding.members for finding in story.stalls()] == [[lost]]


def test_a_call_in_the_background_is_not_what_is_waited_for() -> None:
    """The log ends inside another agent's call; only if there is none, the one in the background is told."""
    story = after_a_result()
    left = story.open("Bash", {"command": "make watch", "run_in_background": True}, agent="builder")
    assert [finding.members for finding in story.stalls()] == [[left]]
    waits = story.open("Bash", {"command": "make docs"}, agent="writer")
    (finding,) = story.stalls()
    assert (finding.members, finding.scope.agent) == ([waits], "writer")


def test_a_log_that_records_no_results_is_not_hung_in_every_call() -> None:
    """Where no call has a result, the missing result of the last one says nothing."""
    story = Scenario()
    for number in range(5):
        story.open("Read", {"path": f"f{number}"})
    assert story.stalls() == []
    assert story.stalls(after=3600)[0].members == []


def test_a_live_run_needs_a_time_to_be_judged_against() -> None:
    """While the process may still run, an open call proves nothing without a clock; a note says so."""
    story = Scenario()
    story.open("Bash", {"command": "make"})
    monitor, _ = story.watched()
    assert monitor.findings(live=True) == []
    assert monitor.notes == [NO_CLOCK]
    assert monitor.findings(story.clock + 10, live=True) == []
    assert len(monitor.findings(story.clock + 700, live=True)) == 1


def test_it_can_be_switched_off() -> None:
    """With the kind disabled no stall is reported."""
    story = Scenario()
    story.open("Bash", {"command": "make"})
    assert story.stalls(settings=DetectSettings(disabled=frozenset({"hung"}))) == []
    assert Monitor().findings() == []


@pytest.mark.parametrize("after", [None, 600.0])
def test_an_answer_of_this_program_is_no_activity(after: float | None) -> None:
    """A stored continuation changes no verdict: a run that ended has ended, and one that is silent stays so."""
    over, silent = Scenario(), Scenario()
    for story in (over, silent):
        story.call("Read", {"path": "a.py"}, "text")
        if story is silent and after is not None:
            story.say("message", "Let me look.", agent="main")
            story.say("user_message", "Go on.")
        else:
            story.open("Bash", {"command": "make"})
    over.end()
    for story in (over, silent):
        before = [(each.first, each.last, each.raised_at) for each in story.stalls(after)]
        assert len(before) == (story is silent)
        story.say("continuation", {"answers": []}, agent="main")
        assert [(each.first, each.last, each.raised_at) for each in story.stalls(after)] == before


def test_an_answer_leaves_a_finished_turn_finished() -> None:
    """An agent that is asked by nobody owes nothing, whatever was found out about its run."""
    story = Scenario()
    story.call("Read", {"path": "a.py"}, "text")
    story.say("message", "Done.", agent="main")
    story.say("continuation", {"answers": []})
    assert not story.stalls(600)


def test_open_calls_of_several_agents_are_told_apart() -> None:
    """The sentence gives each agent its own calls."""
    story = Scenario()
    story.call("Read", {"path": "a.py"}, "text")
    story.open("Bash", {"command": "make"}, step="1")
    story.open("Bash", {"command": "make test"}, step="1")
    story.open("Grep", {"pattern": "x"}, agent="scout")
    by = 'Bash "make" and 1 more'
    assert story.stalls()[0].reason == f"the log ends inside {by} by main and 1 more by scout: no result was recorded"
    assert f"main has waited 15 min for {by} and 1 more by scout, beyond" in story.stalls(900)[0].reason
    story.open("Grep", {"pattern": "y"}, agent="other")
    assert story.stalls()[0].reason == f"the log ends inside {by} by main and 2 more by others: no result was recorded"
