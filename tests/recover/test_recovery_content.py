"""What a continuation says: facts with their evidence, what not to repeat, and nothing that is not in the history."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import ListRequest, MessagesRequest, ShowRequest
from ctxmgr.types.route import Continuation
from tests.builders import entry, entry_id, event, result
from tests.recover.runs import (
    EDIT,
    TASK,
    TRACEBACK,
    again,
    ask,
    call,
    chain,
    hung,
    launched,
    looped,
    recover,
    said,
    varied,
    workspace,
)


def facts(found: Continuation, lead: str) -> list[str]:
    """Return the texts of the facts that begin so."""
    return [fact.whole for fact in found.context.facts if fact.whole.startswith(lead)]


def cited(found: Continuation) -> set[str]:
    """Return every id that the continuation cites."""
    parts = [*found.context.facts, *found.do_not_repeat, *found.alternatives]
    ids = {name for part in parts for name in part.entries}
    for pattern in (found.loop, found.stall):
        if pattern is not None:
            ids |= {*pattern.members, *(name for name in (pattern.start, pattern.last_progress) if name)}
    return ids


def known(store: Store, session: str) -> set[str]:
    """Return the ids of all entries and events of a session."""
    listed = workspace(store).list(ListRequest(session=session, kind="all", limit=10_000)).rows
    return {row.id for row in listed}


@pytest.mark.requirement("SC-006", "US9-3", "AC-1")
@pytest.mark.parametrize("records", [looped("s"), hung("s"), varied("s"), launched("s"), chain("s")])
def test_everything_cited_exists(store: Store, records: list[dict[str, Any]]) -> None:
    """Whatever is cited is an entry or event of the session, and facts without evidence are marked."""
    store.append(records)
    for found in (recover(store, force=True), ask(store, requester="planner")):
        assert cited(found) <= known(store, "s")
        assert all(fact.entries for fact in found.context.facts)


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


@pytest.mark.requirement("US9-2")
def test_later_words_are_told(store: Store) -> None:
    """The first and the latest words of people are told in their order; what programs put into their mouth is not."""
    store.append([said("s", 0, "write a parser"), *call("s", 0, "Write", {"path": "p.py"}, "ok")])
    store.append([event("s", 1, "user_message", {"text": "<reminder>", "synthetic": True}, after=0, agent="user")])
    store.append([said("s", 2, "now in Rust", after=1)])
    store.append([record for number in range(1, 5) for record in call("s", number, "Bash", {"command": "cargo"}, error="nope")])
    found = recover(store)

    assert facts(found, "The task") == ['The task as a person gave it: "write a parser"']
    assert facts(found, "Later") == ['Later a person said: "now in Rust"']
    assert '"now in Rust"' in found.context.summary
    assert "reminder" not in found.context.prompt


def test_streamed_words_are_joined(store: Store) -> None:
    """Words that came in chunks are told as one message, of people and of agents."""
    chunks = [said("s", number, text, type_="user_message_chunk") for number, text in enumerate(["wri", "te a ", "parser"])]
    store.append([*chunks, *call("s", 0, "Write", {"path": "p.py"}, "ok")])
    spoken = [
        said("s", 5 + n, text, after=0, type_="agent_message_chunk", agent="coder")
        for n, text in enumerate(["I wi", "ll test."])
    ]
    store.append([*spoken, *call("s", 1, "Bash", {"command": "pytest"}, open_=True)])
    found = recover(store)

    assert facts(found, "The task") == ['The task as a person gave it: "write a parser"']
    assert [section.text for section in found.context.sections if section.title == "Last said"] == [
        '- coder said: "I will test."'
    ]


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


@pytest.mark.requirement("EC-4", "R-12")
def test_members_that_refer_to_what_is_gone(store: Store) -> None:
    """Steps of the loop itself that refer to what is gone are named as unknown, not told as if they were whole."""
    for number in range(4):
        store.append([entry("s", number, "Read", {"path": "a"}, meta={"missing": ["blob 1"]}), result("s", number, "x")])
    found = recover(store)

    assert {fact.entries[0] for fact in found.context.facts if fact.label == "unknown"} == {entry_id("s", n) for n in range(4)}
    assert all(fact.label not in ("recorded", "verified") for fact in found.context.facts)


@pytest.mark.requirement("R-12")
def test_a_similar_id_is_no_substitute(store: Store) -> None:
    """An entry whose parent is gone is not given another parent whose id merely begins the same."""
    store.append([entry("s", 0, "Task", {"prompt": "x"}, id="p10", agent="main")])
    store.append(
        [record for n in range(1, 5) for record in call("s", n, "Grep", {"pattern": "a"}, "none", agent="scout", parent="p1")]
    )
    found = recover(store)

    assert found.target == "scout"
    assert not any("launched" in fact.whole for fact in found.context.facts)


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


@pytest.mark.requirement("US11-3")
def test_the_last_success_is_no_member(store: Store) -> None:
    """The last step that worked is the last before the trouble, even when every step of the loop succeeds."""
    store.append(call("s", 0, "Write", {"path": "a.py"}, "ok"))
    store.append([record for number in range(1, 5) for record in call("s", number, "Read", {"path": "a.py"}, "same")])
    found = recover(store)

    assert [text.partition(": ")[2] for text in facts(found, "The last step that worked")] == ['Write "a.py"']


def test_no_success_at_all(store: Store) -> None:
    """Where nothing ever worked, no last success is claimed."""
    store.append([record for number in range(4) for record in call("s", number, "Bash", {"command": "make"}, error="no rule")])
    found = recover(store)

    assert "worked" not in found.context.summary
    assert facts(found, "The last step") == []


def test_failures_that_were_made_good(store: Store) -> None:
    """Earlier failures are told once for each cause, unless the same call worked later or is the trouble itself."""
    store.append(call("s", 0, "Read", {"path": "a"}, error="no such file"))
    store.append(call("s", 1, "Bash", {"command": "lint"}, error="E501 in 0.19s"))
    store.append(call("s", 2, "Bash", {"command": "lint"}, error="E501 in 0.22s"))
    store.append(call("s", 3, "Bash", {"command": "make"}, error="no rule"))
    store.append(call("s", 4, "Read", {"path": "a"}, "text"))
    store.append([said("s", 0, "again", after=4)])
    store.append(
        [record for number in range(5, 9) for record in call("s", number, "Bash", {"command": "make"}, error="no rule")]
    )

    assert [text.partition(":")[0] for text in facts(recover(store), "Failed")] == ["Failed earlier (@2, coder, error)"]


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


@pytest.mark.requirement("US11-2", "US11-3")
def test_a_silent_stall(store: Store) -> None:
    """A stall with nothing in flight is told from the last action on: nothing has to be waited for."""
    store.append([*call("s", 0, "Read", {"path": "a"}, "text"), *call("s", 1, "Bash", {"command": "make"}, error="no rule")])
    found = recover(store, now="2026-01-22T11:00:00Z")

    assert found.stall is not None
    assert found.do_not_repeat == []
    assert "@1" in found.context.summary
    assert [lead.entries for lead in found.alternatives] == [[entry_id("s", 1)], [entry_id("s", 0)]]
    assert found.snapshot is not None
    assert len(found.notes) == 3


@pytest.mark.requirement("US9-2", "US9-3")
def test_a_request_finds_what_it_speaks_of(store: Store) -> None:
    """Introspection searches the whole history for what the request speaks of, however long ago and by whomever."""
    store.append(call("s", 0, "decide", {"topic": "rounding"}, "half-even, says finance", agent="planner"))
    store.append(
        [record for n in range(1, 300) for record in call("s", n, "Read", {"path": f"f{n}"}, f"text {n}", agent="coder")]
    )
    found = ask(store, requester="reviewer", reason="the rounding rule is lost", goal="decide about half-even")

    assert [fact.entries for fact in found.context.facts if "half-even, says finance" in fact.whole] == [[entry_id("s", 0)]]


@pytest.mark.requirement("US9-1", "US9-2", "US9-4")
def test_other_agents_are_told(store: Store) -> None:
    """The latest success of every other agent stands in the context of the one that asks."""
    agents = ("planner", "designer", "coder", "tester", "reviewer")
    store.append(chain(agents=agents))
    found = ask(store, requester="reviewer")
    told = " ".join(fact.whole for fact in found.context.facts)

    assert all(f"{agent}_step" in told for agent in agents)


def test_the_requesters_words(store: Store) -> None:
    """What the requester adds stands in the context, quoted."""
    store.append(chain())
    found = ask(store, additional_context='only the "parser" part')

    assert '> only the "parser" part' in found.context.prompt
    assert r'"only the \"parser\" part"' in found.context.brief


def test_a_quote_is_never_rewritten(store: Store) -> None:
    """What the requester adds and what was called stand letter for letter, also where they use words and signs of ours."""
    store.append(
        [record for number in range(5) for record in call("s", number, "Bash", {"command": "cd a ; make"}, error="E1")]
    )

    store.append(chain())
    asked = ask(store, session="chain", additional_context="The step: It adds a column.")

    assert 'Bash "cd a ; make" 5 times and got' in recover(store, session="s").context.summary
    assert "You added:\n> The step: It adds a column." in asked.prompt


@pytest.mark.requirement("US9-2")
def test_a_fact_is_about_what_was_looked_for(store: Store) -> None:
    """An agent in a loop that asks for something else is told what is about its question; where nobody asks, nothing is."""
    store.append(call("s", 0, "decide", {"topic": "rounding"}, "rounding half-even, says finance", agent="planner"))
    store.append([record for number in range(1, 6) for record in call("s", number, "Bash", {"command": "make"}, error="E1")])
    store.append(
        [said("t", 0, "Add the rounding rule"), *call("t", 0, "Read", {"path": "rules.md"}, "the rounding rule is half-even")]
    )
    asked = ask(store, session="s", requester="coder", reason="which rounding was decided")

    assert asked.loop is not None
    assert facts(asked, "About what is asked for (@0, planner, ok)")
    assert not facts(asked, "About the trouble")
    assert not [fact for fact in recover(store, session="t", force=True).context.facts if "asked for" in fact.text]


@pytest.mark.requirement("US9-3")
@pytest.mark.parametrize("records", [looped("s"), hung("s"), varied("s"), chain("s")])
def test_the_size_is_that_of_the_prompt(store: Store, records: list[dict[str, Any]]) -> None:
    """``tokenCount`` counts exactly the text that the branch carries; the brief for a model holds every part."""
    store.append(records)
    found = recover(store, force=True)
    wire = found.to_json()
    text = wire["returnTo"][wire["target"]]["context"]
    context = wire["context"]

    assert context["tokenCount"] == math.ceil(len(text) / 4)
    assert context["counter"] == "chars/4"
    parts = [context["summary"], *(fact["text"] for fact in context["facts"]), *(part["text"] for part in context["sections"])]
    assert text == found.prompt == context["prompt"]
    assert all(part in found.context.brief for part in [*parts, *(lead["text"] for lead in wire["alternatives"])])


def test_nothing_is_told_twice(store: Store) -> None:
    """No fact stands twice, and the sections hold no entry that a fact has told."""
    store.append(looped())
    context = recover(store).context
    told = [name for fact in context.facts for name in fact.entries]

    assert len({fact.whole for fact in context.facts}) == len(context.facts)
    assert len(told) == len(set(told))
    assert "@4 " not in "".join(section.text for section in context.sections)


def test_the_second_answer_says_that_it_is_one(store: Store) -> None:
    """The second answer to one loop tells that the first did not end it, and advises to ask a person."""
    store.append(looped())
    first, second = recover(store), again(store)

    assert "answer 2" not in first.context.summary
    assert "answer 2" in second.context.summary
    assert "person" in second.alternatives[-1].text


@pytest.mark.requirement("AC-1")
def test_messages_come_from_the_tool(store: Store) -> None:
    """What was said last comes from the messages tool, also when more was said than it pages at once."""
    store.append(call("s", 0, "Read", {"path": "a"}, "text"))
    store.append([said("s", n, f"thinking about {n}", after=0, type_="thought", agent="coder") for n in range(100)])
    store.append(call("s", 1, "Bash", {"command": "sleep"}, open_=True))
    found = recover(store)

    assert workspace(store).messages(MessagesRequest(session="s", index=1)).page.total == 100
    assert "What you thought last:\n```\nthinking about 99\n```" in found.context.prompt
