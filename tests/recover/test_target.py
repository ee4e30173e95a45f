"""Who continues: the three ways in, what they allow, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.errors import InvalidInput, RecoveryRefused
from ctxmgr.store import Store
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.route import CONTEXT_MANAGER
from tests.builders import entry_id
from tests.recover.runs import again, ask, call, chain, hung, launched, looped, ping_pong, recover, workspace


@pytest.mark.requirement("AC-3", "FR-017", "US8-5", "SC-012")
def test_a_stuck_agent_is_continued(store: Store) -> None:
    """The stuck handler's request goes back to the agent that is stuck, with richer context."""
    store.append(looped())
    found = recover(store)

    assert (found.source, found.target, found.request_type) == ("stuckHandler", "coder", "INTROSPECT_AGENT_CONTEXT")


@pytest.mark.requirement("FR-017", "US9-4")
def test_introspection_goes_back(store: Store) -> None:
    """An agent that asks for context gets the answer itself, even when it has not acted before."""
    store.append(chain())

    assert ask(store, requester="coder").target == "coder"
    found = ask(store, requester="newcomer")
    assert (found.target, found.source) == ("newcomer", "agentRequest")
    assert found.candidates.count("newcomer") == 1


def test_introspection_takes_no_other_target(store: Store) -> None:
    """Introspection with another target is refused with a way out."""
    store.append(chain())
    with pytest.raises(InvalidInput) as caught:
        ask(store, requester="coder", to="planner")

    assert "proceed" in str(caught.value.hint)


@pytest.mark.requirement("US10-4", "US10-5", "US10-6", "FR-020")
@pytest.mark.parametrize("requester", ["reviewer", "merger"])
def test_proceeding_goes_downstream(store: Store, requester: str) -> None:
    """A review or merge agent's PROCEED goes to the agent that usually follows it, not back to itself."""
    store.append(chain(agents=("planner", requester, "deployer", "coder", requester, "deployer", requester)))
    found = ask(store, type="PROCEED", requester=requester, review=True)

    assert (found.source, found.target) == ("reviewMerge", "deployer")
    assert requester not in found.candidates


@pytest.mark.requirement("US10-5")
def test_several_steps_of_a_reviewer_hide_nobody(store: Store) -> None:
    """A review of several steps goes on to the agent that follows it, and not back to the one whose work it looked at."""
    store.append(chain(agents=("coder", "reviewer", "reviewer", "reviewer", "deployer", "reviewer")))

    assert ask(store, type="PROCEED", requester="reviewer", review=True).target == "deployer"


@pytest.mark.requirement("US10-4", "US10-7")
def test_proceeding_never_goes_straight_back(store: Store) -> None:
    """A PROCEED to the requester itself is refused, and its branch does not even exist."""
    store.append(chain())
    with pytest.raises(RecoveryRefused) as caught:
        ask(store, type="PROCEED", requester="reviewer", to="reviewer", review=True)
    assert "--to" in str(caught.value.hint)

    found = ask(store, type="PROCEED", requester="reviewer", return_to=["reviewer", "coder"], review=True)
    assert list(found.to_json()["returnTo"]) == ["coder"]


@pytest.mark.requirement("US10-6")
def test_nobody_downstream(store: Store) -> None:
    """A PROCEED of the only agent there is can't go anywhere; the refusal says how to name somebody."""
    store.append(chain(agents=("reviewer", "reviewer")))
    with pytest.raises(InvalidInput) as caught:
        ask(store, type="PROCEED", requester="reviewer", review=True)

    assert "--to" in str(caught.value.hint)
    assert ask(store, type="PROCEED", requester="reviewer", to="deployer").target == "deployer"


@pytest.mark.parametrize(
    ("agents", "allowed", "target"),
    [
        (("coder", "reviewer", "planner"), ["coder", "planner"], "planner"),  # follows it
        (("planner", "coder", "reviewer"), ["planner", "coder"], "coder"),  # acted last
        (("coder", "reviewer"), ["tester", "deployer"], "tester"),  # none has acted: the first that is named
    ],
)
def test_which_of_several_is_downstream(store: Store, agents: tuple[str, ...], allowed: list[str], target: str) -> None:
    """Of several allowed agents the one that follows is taken, else the one that acted last, else the first."""
    store.append(chain(agents=agents))
    found = ask(store, type="PROCEED", requester="reviewer", return_to=allowed)

    assert found.target == target
    assert found.candidates == allowed


@pytest.mark.requirement("FR-020", "US10-3")
def test_return_to_limits_the_answer(store: Store) -> None:
    """Nobody outside the request's own list is answered, by its own rule or by name."""
    store.append(chain())
    assert ask(store, requester="coder", return_to=["planner", "coder"]).candidates == ["planner", "coder"]
    with pytest.raises(RecoveryRefused):
        ask(store, requester="coder", return_to=["planner"])
    with pytest.raises(InvalidInput):
        ask(store, type="PROCEED", requester="coder", return_to=["planner"], to="reviewer")


def test_a_named_target(store: Store) -> None:
    """A named target must have acted in the session, for a slip of the pen would send the work to nobody."""
    store.append([*looped(), *call("cycle", 17, "plan", None, "a plan", agent="planner")][:-2])
    store.append(chain("other"))
    known = recover(store, session="other", to="planner", force=True)
    with pytest.raises(InvalidInput, match="expert has not acted in this session") as caught:
        recover(store, session="cycle", to="expert")

    assert (known.target, known.request_type) == ("planner", "PROCEED")
    assert caught.value.hint == "its agents: coder"
    assert "not acted" not in known.target_reason


@pytest.mark.requirement("FR-019", "SC-007", "R-11")
@pytest.mark.parametrize("name", [CONTEXT_MANAGER, "Context-Manager"])
def test_recursion_is_refused(store: Store, name: str) -> None:
    """The context manager can neither ask nor be asked."""
    store.append(looped())
    for refused in ({"to": name}, {"to": f" {name} "}):
        with pytest.raises(RecoveryRefused):
            recover(store, **refused)
    with pytest.raises(RecoveryRefused):
        ask(store, requester=name)
    with pytest.raises(RecoveryRefused):
        ask(store, type="PROCEED", requester="coder", to=name)
    assert CONTEXT_MANAGER not in ask(store, requester="coder", return_to=[CONTEXT_MANAGER, "coder"]).candidates


@pytest.mark.requirement("FR-019", "SC-007", "EC-3")
def test_a_looping_context_manager_is_not_continued(store: Store) -> None:
    """A loop of the context manager itself goes to whoever acted before it, or to nobody."""
    looping = [
        record for number in range(1, 5) for record in call("s", number, "search", {"q": "x"}, "y", agent=CONTEXT_MANAGER)
    ]
    store.append([*call("s", 0, "plan", None, "ok", agent="planner"), *looping])
    found = recover(store)

    assert found.target == "planner"
    assert found.loop is not None
    assert CONTEXT_MANAGER not in found.candidates


def test_no_agent_can_continue(store: Store) -> None:
    """A history of nobody but the context manager, or of nameless agents, is refused with a way out."""
    for session, agent in (("own", CONTEXT_MANAGER), ("nameless", " "), ("endless", "a" * 300)):
        store.append([record for number in range(4) for record in call(session, number, "search", 1, 2, agent=agent)])
        with pytest.raises(InvalidInput) as caught:
            recover(store, session=session)
        assert "--to" in str(caught.value.hint)
        assert recover(store, session=session, to="expert").target == "expert"


@pytest.mark.parametrize("name", ["", "  ", "a" * 300])
def test_a_target_needs_a_name(store: Store, name: str) -> None:
    """Blanks, nothing and pages of text are no names of agents."""
    store.append(looped())
    with pytest.raises(InvalidInput):
        recover(store, to=name)


@pytest.mark.requirement("FR-017")
@pytest.mark.parametrize("field", ["requester", "reason", "goal"])
def test_a_request_says_who_why_and_what_for(store: Store, field: str) -> None:
    """A request without requester, reason or goal is refused."""
    store.append(chain())
    with pytest.raises(InvalidInput) as caught:
        ask(store, **{field: "  "})

    assert field in str(caught.value)


def test_the_launcher_takes_over(store: Store) -> None:
    """A stuck sub-agent's work goes back to the agent that launched it, also when it comes back."""
    store.append(launched())
    first, second = recover(store), again(store)

    assert (first.target, first.request_type) == ("main", "PROCEED")
    assert "scout" in first.target_reason
    assert second.target == "main"


def test_the_launchers_launcher_takes_over_next(store: Store) -> None:
    """When the launcher did not get further, who launched the launcher takes over."""
    store.append(launched(above=True))

    assert [recover(store).target, again(store).target] == ["lead", "main"]


def test_a_silent_sub_agent_goes_back_too(store: Store) -> None:
    """A stall in which nothing is open, last heard of from a sub-agent, goes to its launcher."""
    store.append(call("s", 0, "Task", {"prompt": "look"}, "launched", agent="main"))
    store.append(call("s", 1, "Read", {"path": "a"}, "b", agent="scout", parent=entry_id("s", 0)))
    found = recover(store, now="2026-01-22T11:00:00Z")

    assert found.stall is not None
    assert found.target == "main"


@pytest.mark.requirement("US8-4")
def test_the_second_time_somebody_else_continues(store: Store) -> None:
    """When the same loop comes back, the agent that acted before the stuck one takes over."""
    store.append(call("s", 0, "plan", {"goal": 1}, "a plan", agent="planner"))
    store.append(
        [record for number in range(1, 5) for record in call("s", number, "Bash", {"command": "make"}, error="no rule")]
    )
    first, second = recover(store), again(store)

    assert (first.target, first.request_type) == ("coder", "INTROSPECT_AGENT_CONTEXT")
    assert (second.target, second.request_type) == ("planner", "PROCEED")
    assert "came back" in second.target_reason


def test_two_agents_that_answer_each_other(store: Store) -> None:
    """Of a loop of two agents the one that began it is answered; next time an agent outside the loop takes over."""
    store.append(ping_pong())
    first, second = recover(store), again(store)

    assert first.target == "writer"
    assert any("reviewer" in fact.whole and "loop as well" in fact.whole for fact in first.context.facts)
    assert second.target == "planner"
    other = next(f for f in workspace(store).detect(DetectRequest()).verdicts[0].findings if f.scope.agent == "reviewer")
    assert "The last step that worked is @1: draft" in recover(store, finding=other.id).context.summary


def test_a_forced_continuation_of_a_healthy_session(store: Store) -> None:
    """Without anything wrong the agent that acted last goes on; of a sub-agent that has ended, its launcher."""
    store.append(chain())
    assert recover(store, force=True).target == "reviewer"

    store.append(call("late", 0, "Task", {"prompt": "look"}, "found it", agent="main"))
    store.append(call("late", 1, "Read", {"path": "a"}, "b", agent="scout", parent=entry_id("late", 0)))
    assert recover(store, session="late", force=True).target == "main"

    store.append(call("busy", 0, "Task", {"prompt": "look"}, agent="main", open_=True))
    store.append(call("busy", 1, "Read", {"path": "a"}, "b", agent="scout", parent=entry_id("busy", 0)))
    found = recover(store, session="busy", force=True, now="2026-01-22T10:00:05Z")
    assert (found.stall, found.target) == (None, "scout")


def test_another_agents_loop_does_not_keep_context_away(store: Store) -> None:
    """Whoever asks is answered although another agent's loop has used up its attempts."""
    store.append(looped())
    for _ in range(2):
        again(store)
    found = ask(store, requester="planner")

    assert (found.loop, found.attempts) == (None, 1)
    assert any("coder is in a loop as well" in fact.whole for fact in found.context.facts)


def test_a_requester_in_a_loop_of_its_own(store: Store) -> None:
    """An agent that asks while it goes in circles gets its own loop told."""
    store.append(looped())
    found = ask(store, requester="coder")

    assert found.loop is not None
    assert len(found.do_not_repeat) == 3


def test_candidates_stay_few(store: Store) -> None:
    """Of very many agents those that joined last are candidates, the target always among them."""
    agents = [f"helper-{number}" for number in range(120)]
    store.append(chain(agents=agents))
    found = ask(store, requester="helper-0")

    assert len(found.candidates) <= 41
    assert found.target == "helper-0"
    assert "helper-119" in found.candidates


def test_hung_call_of_the_only_agent(store: Store) -> None:
    """A hung agent that nobody launched continues itself."""
    store.append(hung())
    wire: dict[str, Any] = recover(store).to_json()

    assert wire["target"] == "coder"
    assert wire["requestType"] == "INTROSPECT_AGENT_CONTEXT"


@pytest.mark.requirement("US10-6", "US10-7")
def test_a_drafted_request_says_who_is_next(store: Store) -> None:
    """Where the requester drafted the request of one agent that may be next, that one is, whoever usually follows."""
    store.append(chain(agents=("coder", "merger", "reviewer", "coder", "reviewer")))
    found = ask(store, type="PROCEED", requester="reviewer", review=True, drafts={"merger": {"branch": "rel"}})

    assert found.target == "merger"
    assert found.to_json()["returnTo"]["merger"]["request"]["branch"] == "rel"


@pytest.mark.requirement("US10-6")
def test_a_goal_that_names_one_agent_is_followed(store: Store) -> None:
    """Of the agents that may be next the one that the goal names by its whole name is, whoever usually follows."""
    store.append(chain(agents=("coder", "merger", "reviewer", "deployer", "reviewer")))

    assert ask(store, type="PROCEED", requester="reviewer", review=True, goal="let the merger take 4.2").target == "merger"
    assert ask(store, type="PROCEED", requester="reviewer", review=True, goal="let the mergers talk").target == "deployer"
