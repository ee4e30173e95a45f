"""Which recoveries are one attempt, which question was answered already, and what an agent still holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.errors import AttemptsUsedUp, InvalidInput, NotFound
from ctxmgr.recover.earlier_answers import advised_step, held_facts, without_held
from ctxmgr.store import Store, open_store
from ctxmgr.types.operations import DetectRequest, RecoverRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import AddNoteRequest
from ctxmgr.types.route import Context, Continuation, Fact, Section
from tests.builders import at, event
from tests.recover.runs import again, ask, call, chain, cycle, hung, looped, recover, said, went_on, workspace


@pytest.mark.parametrize("history", [looped(), hung()], ids=["loop", "stall"])
def test_the_same_history_is_told_the_same(store: Store, history: list[dict[str, Any]]) -> None:
    """Without a new record of anybody the stored answer is told again, to the byte, and nothing is written."""
    store.append(history)
    first = recover(store)
    before = store.sessions.view(1)
    told = [recover(store) for _ in range(4)]

    assert not first.told_again
    assert all(each.told_again for each in told)
    assert [each.to_json() for each in told] == [first.to_json()] * 4
    assert store.sessions.view(1) == before
    assert len(store.annotations.continuations(1)) == 1


def test_the_marker_stands_beside_the_continuation(store: Store) -> None:
    """`toldAgain` is the only difference between two answers to the same history."""
    store.append(looped())
    first, second = (workspace(store).recover(RecoverRequest()).to_json() for _ in range(2))

    assert (first.pop("toldAgain"), second.pop("toldAgain")) == (False, True)
    assert first == second


def test_an_attempt_counts_once_somebody_went_on(store: Store) -> None:
    """Asking three times before the agent went on is one attempt, not three."""
    store.append(looped())
    assert [recover(store).attempts for _ in range(3)] == [1, 1, 1]
    assert [again(store).attempts, recover(store).attempts] == [2, 2]
    with pytest.raises(AttemptsUsedUp):
        again(store)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "options",
    [{"to": "coder"}, {"diff": True}, {"to": "coder", "diff": True}],
)
def test_another_question_has_another_answer(store: Store, options: dict[str, Any]) -> None:
    """What decides the answer is a part of the question; the answers to one history are one attempt all the same."""
    store.append(looped())
    plain, other = recover(store), recover(store, **options)

    assert plain.id != other.id
    assert (plain.attempts, other.attempts) == (1, 1)
    assert recover(store).id == plain.id
    assert recover(store, **options).id == other.id


def test_what_does_not_decide_the_answer_is_no_part_of_the_question(store: Store) -> None:
    """How long a model may take, and that an answer was insisted on, change nothing."""
    store.append(looped())

    assert recover(store, force=True, model={"seconds": 9}).id == recover(store).id


@pytest.mark.cases(1)
@pytest.mark.parametrize("type_", ["stuck", "heartbeat"])
def test_signs_of_life_are_no_going_on(store: Store, type_: str) -> None:
    """A heartbeat, and what the stuck handler writes down, do not make another attempt."""
    store.append(looped())
    first = recover(store)
    store.append([event("cycle", 800, type_, {})])

    assert recover(store).id == first.id


def test_a_persons_word_is_answered_anew(store: Store) -> None:
    """What a person says changes the answer."""
    store.append(chain())
    first = recover(store, force=True)
    store.append([said("chain", 30, "Leave the parser alone, ship the docs", after=4)])
    second = recover(store, force=True)

    assert second.id != first.id
    assert "ship the docs" in second.context.prompt


def test_questions_are_no_attempts(store: Store) -> None:
    """However often an agent asks about its loop: that is no attempt at it, and its own cap does not keep it from asking."""
    store.append(looped())
    for number in range(4):
        assert ask(store, requester="coder", reason=f"what is in parser.py, part {number}?").attempts == 1
        went_on(store)
    assert [again(store).attempts for _ in range(2)] == [1, 2]
    went_on(store)
    with pytest.raises(AttemptsUsedUp):
        recover(store)

    assert ask(store, requester="coder", reason="what was decided?").loop is not None


def test_questions_are_no_recovery_loop(store: Store) -> None:
    """The detectors do not take answered questions for recoveries that did not help."""
    store.append(looped())
    for number in range(4):
        ask(store, requester="coder", reason=f"question {number}")
        store.append(cycle(start=17 + 3 * number, rounds=1))
    kinds = {finding.kind for finding in workspace(store).detect(DetectRequest()).verdicts[0].findings}

    assert "recoveryLoop" not in kinds


def test_a_question_asked_twice_is_answered_once(store: Store) -> None:
    """The same question on the same history has one stored answer; one with another reason has its own."""
    store.append(chain())
    first, second, other = ask(store), ask(store), ask(store, reason="what was part 2?")

    assert (second.id, second.told_again) == (first.id, True)
    assert other.id != first.id


def test_the_last_one_can_be_read_again(store: Store) -> None:
    """`last` tells the newest continuation of a session, also after somebody went on, and writes nothing."""
    store.append(looped())
    with pytest.raises(NotFound):
        recover(store, last=True)
    first = recover(store)
    second = again(store)
    went_on(store)
    told = recover(store, last=True)

    assert first.id != second.id
    assert (told.to_json(), told.told_again) == (second.to_json(), True)


def test_one_can_be_found_by_its_id(store: Store) -> None:
    """A continuation is found by its id or a prefix of it; a prefix of several is refused."""
    store.append(looped())
    first, second = recover(store), again(store)
    shared = next(first.id[:size] for size in range(len(first.id), 0, -1) if second.id.startswith(first.id[:size]))
    given = workspace(store)

    assert given.continuation(None, first.id).to_json() == first.to_json()
    assert given.continuation("cycle", second.id[: len(shared) + 1]).id == second.id
    with pytest.raises(InvalidInput):
        given.continuation(None, shared)
    with pytest.raises(NotFound):
        given.continuation(None, "nothing")


def test_it_can_be_read_back_from_its_wire_form(store: Store) -> None:
    """The wire form loses nothing: candidates, request, prompt and hashes come back."""
    store.append(looped())
    first = recover(store)

    assert Continuation.from_json(first.to_json()).to_json() == first.to_json()


def asked(store: Store, *, diff: bool | None = True, **request: Any) -> Continuation:
    """Return the answer to the coder's question."""
    return ask(store, requester="coder", diff=diff, **request)


def asked_again(store: Store, **request: Any) -> Continuation:
    """Return the answer to the same question after somebody went on."""
    went_on(store)
    return asked(store, **request)


def told(found: Continuation) -> set[str]:
    """Return the hashes of the facts that are told."""
    return {fact.hash for fact in found.context.facts}


def held(found: Continuation) -> set[str]:
    """Return the hashes of the facts that are referred to."""
    return {fact.hash for fact in found.context.held}


@pytest.mark.requirement("US9-3", "US9-4")
def test_a_second_answer_is_a_diff(store: Store) -> None:
    """The second answer tells what is new alone, refers to the rest by hash and record, and says that it is a diff."""
    store.append(chain())
    first = asked(store)
    store.append(call("chain", 5, "deploy", {"to": "prod"}, error="quota 7 exceeded", agent="deployer"))
    second = asked(store)

    assert (first.context.diff_of, first.context.held) == (None, [])
    assert second.context.diff_of == first.id
    assert held(second) <= told(first)
    assert held(second)
    assert not told(second) & told(first)
    assert {each.given for each in second.context.held} == {first.id}
    assert any("quota 7 exceeded" in fact.whole for fact in second.context.facts)
    by_hash = {fact.hash: fact.entries for fact in first.context.facts}
    assert all(each.entries == by_hash[each.hash] for each in second.context.held)
    assert "here is only what is new since" in second.context.prompt
    assert f"Only what is new since continuation {first.id}" in second.context.brief
    assert all(each.hash in second.context.brief for each in second.context.held)
    wire = second.to_json()["context"]
    assert (wire["diffOf"], len(wire["held"])) == (first.id, len(second.context.held))


def test_a_third_answer_knows_both(store: Store) -> None:
    """What the first answer gave and the second referred to is still held at the third."""
    store.append(chain())
    first, second, third = asked(store), asked_again(store), asked_again(store)

    assert third.context.diff_of == second.id
    assert held(third) == held(second) <= told(first)
    assert told(third) == set()
    assert {each.given for each in third.context.held} == {first.id}


@pytest.mark.parametrize("diff", [None, False])
def test_everything_is_told_unless_a_diff_is_asked_for(store: Store, diff: bool | None) -> None:
    """By default, and when a fresh context is asked for, a second answer tells everything again."""
    store.append(chain())
    first, second = asked(store), asked(store, diff=diff)

    assert (second.context.diff_of, second.context.held) == (None, [])
    assert told(second) == told(first)
    assert "only what is new" not in second.context.prompt


@pytest.mark.parametrize(("agent", "whole"), [("coder", True), (None, True), ("planner", False), ("Coder", True)])
def test_a_compaction_is_forgetting(store: Store, agent: str | None, whole: bool) -> None:
    """A compaction of the agent's context, or of one nobody names, makes it hold nothing; another agent's does not."""
    store.append(chain())
    asked(store)
    named = {} if agent is None else {"agent": agent}
    store.append([event("chain", 50, "compaction", {}, after=9, **named)])

    assert (asked(store).context.diff_of is None) == whole


def test_what_is_given_after_a_compaction_is_held(store: Store) -> None:
    """After a compaction the next answer is whole, and the one after that a diff again."""
    store.append(chain())
    asked(store)
    store.append([event("chain", 50, "compaction", {}, after=9, agent="coder")])
    second, third = asked(store), asked_again(store)

    assert second.context.diff_of is None
    assert third.context.diff_of == second.id


def test_another_agent_holds_nothing_of_it(store: Store) -> None:
    """What one agent was given, another one was not."""
    store.append(chain())
    asked(store)

    assert ask(store, requester="planner", diff=True).context.diff_of is None


def test_what_changed_comes_again(store: Store) -> None:
    """A fact that says something else by now is told, though one about the same record was given."""
    store.append(chain(agents=("planner", "coder")))
    first = asked(store)
    store.append(call("chain", 2, "planner_step", {"part": 2}, "part 2 done otherwise", agent="planner"))
    second = asked(store)
    of_planner = [fact.whole for fact in second.context.facts if "part 2 done otherwise" in fact.whole]

    assert of_planner
    assert not any("part 2 done otherwise" in fact.whole for fact in first.context.facts)


def test_a_diff_is_recorded_with_what_it_refers_to(store: Store) -> None:
    """The record of a diff names the earlier answer and what it did not repeat, so that the log alone tells all."""
    store.append(chain())
    first, second = asked(store), asked_again(store)
    kept = store.annotations.continuations(1)

    assert [record["id"] for record in kept] == [first.id, second.id]
    assert kept[1]["context"]["diffOf"] == first.id
    assert {fact["hash"] for fact in kept[1]["context"]["held"]} == held(second)


CONTEXT = Context(
    summary="s",
    facts=[Fact(text="a", entries=["e1"], label="verified"), Fact(text="b", entries=[], label="verified")],
    sections=[Section(title="t", text="x")],
    token_count=0,
    counter="c",
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["hash", "given", "entries", "x"]), inner),
    max_leaves=8,
)
HOSTILE = st.fixed_dictionaries(
    {"id": st.text(min_size=1, max_size=3) | st.just("x" * 5_000)},
    optional={
        "target": st.just("coder") | ODD,
        "context": ODD | st.fixed_dictionaries({}, optional={"facts": ODD, "held": ODD, "sections": ODD}),
    },
)


@settings(max_examples=12)
@given(records=st.lists(HOSTILE, max_size=4, unique_by=lambda record: record["id"]))
def test_odd_records_are_harmless(tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]) -> None:
    """Stored continuations of whatever form are read without an error, and what is referred to stays small."""
    opened = open_store(str(tmp_path_factory.mktemp("odd") / "history.db"), create=True)
    try:
        opened.append([*chain(), *(build("continuation", "chain", at(90), **fields) for fields in records)])
        found = without_held(CONTEXT, held_facts(opened, 1, "coder"))
    finally:
        opened.close()

    assert len(found.facts) + len(found.held) == 2
    assert len(str(found.to_json())) < 10_000


@pytest.mark.parametrize("names", [["e"] * 5_000, ["x" * 100_000], [None, 3, "e1"]])
def test_references_stay_small(store: Store, names: list[Any]) -> None:
    """However many records, or however long, an earlier fact claims to rest on, a diff refers to a few of them."""
    given_ = {"facts": [{"hash": CONTEXT.facts[0].hash, "entries": names}, {"hash": "y" * 999}], "held": [{"hash": 1}]}
    store.append([*chain(), build("continuation", "chain", at(90), id="c1", target="coder", context=given_)])
    found = without_held(CONTEXT, held_facts(store, 1, "coder"))

    assert (found.diff_of, [fact.whole for fact in found.facts]) == ("c1", ["b"])
    assert len(str(found.held)) < 1_000
    assert asked(store).context.diff_of == "c1"


def test_a_note_leads_to_a_new_answer_that_quotes_it(store: Store) -> None:
    """Whoever knows the cause notes it on a call of the loop, and the next prompt has it; it is no further attempt."""
    store.append(looped())
    recover(store)
    workspace(store).add_note(
        AddNoteRequest(entry_indices=[7], content="The proxy of the office drops long requests.", author="ada")
    )
    second = recover(store)

    assert (second.told_again, second.attempts) == (False, 1)
    assert "A note by ada on these calls, added" in second.prompt
    assert "The proxy of the office drops long requests." in second.prompt
    assert [fact.quote for fact in second.context.facts if fact.text == "Note on @7"] == [
        '"The proxy of the office drops long requests."'
    ]
    assert recover(store).id == second.id


def test_a_step_that_did_not_help_is_not_told_as_new(store: Store) -> None:
    """A second answer to a loop says that the step was advised before, or quotes the step that was advised then."""
    store.append(looped())
    first, second = recover(store), again(store)

    assert first.diagnosis is not None
    assert second.diagnosis is not None
    assert first.diagnosis.next_step == second.diagnosis.next_step
    assert "advised before" not in first.prompt
    assert "This step was advised before and did not help" in second.prompt


def test_another_step_comes_with_the_one_that_was_advised_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the step is another one the second time, the agent reads what it was told to do the first time."""
    store.append(looped())
    first = recover(store)
    finding = workspace(store).detect(DetectRequest()).verdicts[0].findings[0]
    assert first.diagnosis is not None
    assert advised_step(store, 1, finding, "another basis") == first.diagnosis.next_step
    assert advised_step(store, 1, finding, str(first.basis)) == ""

    def advised(*_given: object) -> str:
        return "Ask the proxy."

    monkeypatch.setattr("ctxmgr.recover.recovery.advised_step", advised)
    second = again(store)
    told = "This is advice number 2 for the same trouble; what was advised before did not end it:\n```\nAsk the proxy.\n```\n"
    assert told in second.prompt
    assert "This step was advised before" not in second.prompt
