"""The brief of a trouble: what worked last, what failed before, who launched whom, and what people and agents said."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import MessagesRequest
from ctxmgr.types.route import Continuation
from tests.builders import entry, entry_id, event, result
from tests.recover.runs import ask, call, chain, recover, said, workspace


def facts(found: Continuation, lead: str) -> list[str]:
    """Return the texts of the facts that begin so."""
    return [fact.whole for fact in found.context.facts if fact.whole.startswith(lead)]


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


@pytest.mark.requirement("US9-1", "US9-2", "US9-4")
def test_other_agents_are_told(store: Store) -> None:
    """The latest success of every other agent stands in the context of the one that asks."""
    agents = ("planner", "designer", "coder", "tester", "reviewer")
    store.append(chain(agents=agents))
    found = ask(store, requester="reviewer")
    told = " ".join(fact.whole for fact in found.context.facts)

    assert all(f"{agent}_step" in told for agent in agents)


@pytest.mark.requirement("AC-1")
def test_messages_come_from_the_tool(store: Store) -> None:
    """What was said last comes from the messages tool, also when more was said than it pages at once."""
    store.append(call("s", 0, "Read", {"path": "a"}, "text"))
    store.append([said("s", n, f"thinking about {n}", after=0, type_="thought", agent="coder") for n in range(100)])
    store.append(call("s", 1, "Bash", {"command": "sleep"}, open_=True))
    found = recover(store)

    assert workspace(store).messages(MessagesRequest(session="s", index=1)).page.total == 100
    assert "What you thought last:\n```\nthinking about 99\n```" in found.context.prompt


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
