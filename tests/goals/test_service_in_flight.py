"""Only its own result ends an action that was begun: not the end of its step, not the same call of another agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.goals import Goals, state_files
from ctxmgr.goals.state import KEPT_OPEN
from ctxmgr.log.journal import read
from ctxmgr.types.goal import ActionRequest, EndRequest, RecordRequest
from tests.goals.scene import act, advance, bare, begun, done, open_goals


def _begin(goals: Goals, action: str = "migrate", agent: str | None = None) -> str:
    answer = goals.begin(ActionRequest(action=action, args={"db": "prod"}, agent=agent))
    assert answer.entry is not None
    return answer.entry


def _finish(goals: Goals, entry: str, result: str = "success") -> str | None:
    return goals.record(RecordRequest(action="result", entry=entry, result=result)).entry


@pytest.mark.requirement("H-resume")
@pytest.mark.parametrize("success", [True, False])
def test_an_action_in_flight_outlives_its_step(tmp_path: Path, success: bool) -> None:
    """The end of a step leaves what is in flight: resume and brief tell it with its id and step, and its result is recorded."""
    goals = begun(tmp_path)
    entry = _begin(goals)
    request = EndRequest(reason="timeout")
    if success:
        goals.done(request)
    else:
        goals.fail(request)
    advance(goals, "t1.2")

    answer = open_goals(tmp_path).resume()
    assert [(each.id, each.node, each.status) for each in answer.in_flight] == [(entry, "t1.1", "open")]
    assert f'  - [t1.1] migrate {{"db":"prod"}} → effect unknown, look before you repeat it [{entry}]' in answer.brief

    assert _finish(open_goals(tmp_path), entry, "error: half done") == entry
    after = open_goals(tmp_path)
    assert (after.state().in_flight, after.state().actions_total) == ([], 1)
    assert '[t1.1] migrate {"db":"prod"} → error: half done' in after.brief().text
    for name in (state_files.STATE, state_files.PREVIOUS):
        (tmp_path / ".agent_context" / name).unlink()
    assert bare(open_goals(tmp_path).state()) == bare(after.state())


def test_what_is_in_flight_is_told_when_nothing_else_is_left(tmp_path: Path) -> None:
    """The brief of a finished goal still says that the effect of an action is unknown."""
    goals = begun(tmp_path)
    entry = _begin(goals)
    for _ in range(3):
        done(goals)

    assert "NEXT: everything is done" in goals.brief().text
    assert entry in goals.brief().text


@pytest.mark.requirement("H-resume")
def test_equal_actions_are_in_flight_side_by_side(tmp_path: Path) -> None:
    """The second one who begins the same call is told of the first; both are in flight and both are ended."""
    goals = begun(tmp_path)
    first = _begin(goals, agent="one")
    asked = goals.check(ActionRequest(action="migrate", args={"db": "prod"}))
    second = goals.begin(ActionRequest(action="migrate", args={"db": "prod"}, agent="two"))
    other = goals.begin(ActionRequest(action="migrate", args={"db": "test"}))

    assert (asked.allowed, asked.in_flight, second.in_flight) == (True, [first], [first])
    assert "the same call is in flight already" in (second.hint or "")
    assert "by one, its effect is unknown: look before you repeat it" in (second.hint or "")
    assert f"--entry {first}" in (second.hint or "")
    assert (other.in_flight, other.hint) == ([], None)
    assert [each.id for each in goals.state().in_flight] == [first, second.entry, other.entry]

    _finish(goals, first)
    _finish(goals, second.entry or "")
    assert [each.id for each in goals.state().in_flight] == [other.entry]


def test_an_action_recorded_whole_does_not_end_one_in_flight(tmp_path: Path) -> None:
    """Recording the same call with its result is another action, and says how the one in flight is ended."""
    goals = begun(tmp_path)
    entry = _begin(goals)
    answer = act(goals, "migrate", {"db": "prod"})

    assert (answer.allowed, answer.in_flight) == (True, [entry])
    assert [each.id for each in goals.state().in_flight] == [entry]


def test_a_result_is_taken_for_an_action_that_is_not_listed_any_more(tmp_path: Path) -> None:
    """The state lists the latest actions in flight; the history knows the others, and takes each one's result once."""
    goals = begun(tmp_path)
    first = _begin(goals)
    for number in range(KEPT_OPEN):
        goals.begin(ActionRequest(action="look", args={"n": number}))
    assert first not in [each.id for each in goals.state().in_flight]

    assert _finish(goals, first) == first
    results = [
        line.record for line in read(tmp_path / ".agent_context" / state_files.HISTORY) if line.record["kind"] == "result"
    ]
    assert [(each["entry"], each["status"]) for each in results] == [(first, "ok")]
    with pytest.raises(InvalidInput, match="has its result already"):
        _finish(goals, first)
    with pytest.raises(InvalidInput, match="no action nope was begun"):
        _finish(goals, "nope")


def test_the_beginning_of_an_id_is_enough(tmp_path: Path) -> None:
    """An action in flight is named by as much of its id as tells it from the others."""
    goals = begun(tmp_path)
    first, second = _begin(goals), _begin(goals, "deploy")
    shared = next(place for place in range(len(first)) if first[place] != second[place])

    with pytest.raises(InvalidInput, match="2 actions in flight have an id that begins with"):
        _finish(goals, first[:shared])
    assert _finish(goals, first[: shared + 1]) == first
    assert [each.id for each in goals.state().in_flight] == [second]


def test_the_brief_counts_what_it_does_not_list(tmp_path: Path) -> None:
    """Of many actions in flight the brief lists the latest three, and says how many more there are."""
    goals = begun(tmp_path)
    for number in range(5):
        goals.begin(ActionRequest(action="look", args={"n": number}))

    told = goals.brief().text.partition("IN FLIGHT")[2]
    assert told.count("effect unknown") == 3
    assert "  - and 2 more\n" in told


def test_an_action_in_flight_is_not_claimed_to_have_had_its_effect(tmp_path: Path) -> None:
    """Resume assumes the effect of finished actions alone, and counts them in whole words."""
    goals = begun(tmp_path)
    _begin(goals)
    _begin(goals, "deploy")
    assert not [each for each in goals.resume().claims if "had the effect" in each.text]

    act(goals, "look")
    claims = [each.text for each in goals.resume().claims]
    assert "1 action of attempt 1 at t1.1 had the effect that was recorded" in claims
    act(goals, "read")
    assert "2 actions of attempt 1 at t1.1 had the effect that was recorded" in [each.text for each in goals.resume().claims]
