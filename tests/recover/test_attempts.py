"""The same history gives the same answer, which is told again; an attempt counts once somebody went on (ruling 24)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.errors import AttemptsUsedUp, InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.types.operations import DetectRequest, RecoverRequest
from ctxmgr.types.route import Continuation
from tests.builders import event
from tests.recover.runs import again, ask, chain, cycle, hung, looped, recover, said, went_on, workspace


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


@pytest.mark.parametrize(
    "options",
    [{"to": "planner"}, {"diff": True}, {"to": "planner", "diff": True}],
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


@pytest.mark.parametrize("type_", ["stuck", "heartbeat"])
def test_signs_of_life_are_no_going_on(store: Store, type_: str) -> None:
    """A heartbeat, and what the stuck handler writes down, do not make another attempt."""
    store.append(looped())
    first = recover(store)
    store.append([event("cycle", 800, type_, {})])

    assert recover(store).id == first.id


def test_notes_are_no_going_on(store: Store) -> None:
    """A note about the session is not read by a recovery, and changes no answer."""
    from ctxmgr.types.query import AddNoteRequest

    store.append(looped())
    first = recover(store)
    workspace(store).add_note(AddNoteRequest(session="cycle", entry_indices=[3], content="odd"))

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
