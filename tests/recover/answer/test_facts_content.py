"""What a continuation tells of a loop or stall: its facts with their evidence and labels, and what not to repeat."""

from __future__ import annotations

import json

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import ShowRequest
from tests.builders import entry, entry_id, result
from tests.recover.runs import EDIT, TASK, TRACEBACK, ask, call, chain, hung, looped, recover, said, varied, workspace


@pytest.mark.requirement("SC-006", "US8-3", "US8-4")
def test_a_loop_is_told(store: Store) -> None:
    """The loop's kind, size, members, start and last progress are told, and it is no stall."""
    store.append(looped())
    found = recover(store)

    assert found.stall is None
    assert found.loop is not None
    assert (found.loop.kind, found.loop.period, found.loop.count) == ("cycle", 3, 4)
    assert found.loop.members == [entry_id("cycle", number) for number in range(5, 17)]
    assert (found.loop.start, found.loop.last_progress) == (entry_id("cycle", 5), entry_id("cycle", 4))
    assert "4 times" in found.context.summary


@pytest.mark.requirement("US8-3", "US8-4", "SC-006")
def test_each_distinct_step_once(store: Store) -> None:
    """Each distinct call of a round is named once, with its input, how often it was made and how it ended."""
    store.append(looped(rounds=7))
    steps = recover(store).do_not_repeat

    assert [(step.action, step.input, step.times) for step in steps] == [
        ("Edit", EDIT, 7),
        ("Bash", {"command": "pytest -q tests"}, 7),
        ("Bash", {"command": "git checkout src/parser.py"}, 7),
    ]
    assert [step.outcome.partition(":")[0] for step in steps] == ["ok", "error", "ok"]
    assert steps[1].entries == [entry_id("cycle", number) for number in range(6, 26, 3)]


def test_times_of_a_long_loop(store: Store) -> None:
    """A loop of which only a part is read is still counted whole, a call that stands twice in a round twice."""
    calls = [("Read", {"path": "a"}), ("Read", {"path": "a"}), ("Bash", {"command": "make"})] * 60
    store.append(
        [record for number, (action, given) in enumerate(calls) for record in call("s", number, action, given, "same")]
    )
    steps = recover(store).do_not_repeat

    assert {step.action: step.times for step in steps} == {"Read": 120, "Bash": 60}
    assert all(len(step.entries) <= 20 for step in steps)


@pytest.mark.requirement("SC-006", "US9-2")
def test_recorded_words_are_verbatim(store: Store) -> None:
    """What people said, errors, commands and paths stand in the context as they were recorded."""
    store.append([*looped(), said("cycle", 9, 'And keep "strict" mode — bitte!', after=16)][:-1])
    found = recover(store)
    texts = [json.loads(fact.whole.partition(": ")[2]) for fact in found.context.facts if "a person" in fact.whole]

    assert texts == [TASK]
    assert json.loads(found.do_not_repeat[1].outcome.partition(": ")[2]) == TRACEBACK
    assert '"pytest -q tests"' in found.context.summary
    assert "src/parser.py" in found.context.prompt


@pytest.mark.requirement("EC-4", "R-12")
def test_what_is_gone_is_unknown(store: Store) -> None:
    """A fact that rests on an entry which refers to what is gone is labelled unknown, and says what is gone."""
    store.append([entry("s", 0, "Read", {"path": "big.bin"}, meta={"missing": ["blob 7f3a"]}), result("s", 0, None)])
    store.append([entry("s", 1, "Task", {"prompt": "x"}, parent="never-seen"), result("s", 1, "ok")])
    store.append(
        [record for number in range(2, 6) for record in call("s", number, "Bash", {"command": "make"}, error="no rule")]
    )
    found = recover(store)
    unknown = [fact for fact in found.context.facts if fact.label == "unknown"]

    assert [fact.entries for fact in unknown] == [[entry_id("s", 1)]]
    assert "parent never-seen" in unknown[0].text
    assert workspace(store).show(ShowRequest(session="s", index=0)).entry.missing == ["blob 7f3a"]


def test_labels(store: Store) -> None:
    """What is read off records is recorded; what is concluded from them is reconstructed."""
    store.append(varied())
    labels = {fact.whole[:12]: fact.label for fact in recover(store).context.facts}

    assert labels["5 different "] == "reconstructed"
    assert labels["The last ste"] == "recorded"


def test_a_change_that_does_not_help(store: Store) -> None:
    """A change that every round makes and that nothing follows from is concluded to be of no help."""
    store.append(looped())
    concluded = [fact for fact in recover(store).context.facts if fact.label == "reconstructed"]

    assert [fact.entries for fact in concluded] == [[entry_id("cycle", number) for number in (5, 8, 11, 14)]]


@pytest.mark.requirement("US11-2", "US11-3", "US11-4")
def test_a_stall_is_told_as_a_stall(store: Store) -> None:
    """A hung call is told as a stall, with where it stopped, what worked last and what was said, and not as a loop."""
    store.append(hung())
    found = recover(store)
    told = json.dumps(found.to_json()) + found.context.prompt

    assert found.loop is None
    assert found.stall is not None
    assert found.stall.members == [entry_id("hung", 2)]
    assert found.stall.last_progress == entry_id("hung", 1)
    assert [(step.times, step.outcome) for step in found.do_not_repeat] == [(1, "no result is recorded")]
    assert "I will start the server now." in found.context.prompt
    assert " loop" not in told.replace('"loop"', "")
    assert "round" not in told.replace("background", "")
    assert "1 times" not in told


def test_a_quote_is_never_rewritten(store: Store) -> None:
    """What the requester adds and what was called stand letter for letter, also where they use words and signs of ours."""
    store.append(
        [record for number in range(5) for record in call("s", number, "Bash", {"command": "cd a ; make"}, error="E1")]
    )

    store.append(chain())
    asked = ask(store, session="chain", additional_context="The step: It adds a column.")

    assert 'Bash "cd a ; make" 5 times and got' in recover(store, session="s").context.summary
    assert "You added:\n> The step: It adds a column." in asked.prompt
