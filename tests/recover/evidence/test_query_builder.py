"""What is asked of the history about a request or a trouble, and what is said of that which no record holds."""

from __future__ import annotations

import pytest

from ctxmgr.recover.recovery import Recovery
from ctxmgr.store import Store
from tests.builders import entry_id
from tests.recover.model_answers import ASKED
from tests.recover.runs import ask, call, chain, recover, said


@pytest.mark.requirement("US9-2", "US9-3")
def test_a_request_finds_what_it_speaks_of(store: Store) -> None:
    """Introspection searches the whole history for what the request speaks of, however long ago and by whomever."""
    store.append(call("s", 0, "decide", {"topic": "rounding"}, "half-even, says finance", agent="planner"))
    store.append(
        [record for n in range(1, 300) for record in call("s", n, "Read", {"path": f"f{n}"}, f"text {n}", agent="coder")]
    )
    found = ask(store, requester="reviewer", reason="the rounding rule is lost", goal="decide about half-even")

    assert [fact.entries for fact in found.context.facts if "half-even, says finance" in fact.whole] == [[entry_id("s", 0)]]


def test_a_goal_to_proceed_with_is_an_instruction(store: Store) -> None:
    """A PROCEED goal is never asked of the history, and the next agent is told to do it."""
    store.append(chain())
    found = ask(
        store, type="PROCEED", requester="reviewer", to="coder", review=True, reason="review done",
        goal="fix negative amounts in the ledger",
    )  # fmt: skip

    assert found.context.unanswered == []
    assert "What you are to do:\n> fix negative amounts in the ledger" in found.prompt
    assert "Not in this history" not in found.prompt
    assert found.alternatives == []


def test_what_a_record_holds_is_not_denied(store: Store) -> None:
    """What an entry, an input, a result or a message holds is never denied, the loop's own records included."""
    store.append([said("s", 0, "Mend the sums")])
    store.append(call("s", 0, "Read", {"file_path": "app/rounding.py"}, "def to_cents(x): return int(x * 100 + 0.5)"))
    for number in range(1, 6):
        store.append(call("s", number, "Read", {"file_path": "app/rounding.py"}, "def to_cents(x): return int(x * 100 + 0.5)"))
    found = ask(store, requester="coder", reason="What is in rounding.py?", goal="mend the sums")

    assert found.context.unanswered == []
    assert "int(x * 100 + 0.5)" in found.prompt


def test_a_waiting_program_whose_source_is_recorded(store: Store) -> None:
    """A stall whose program stands in the record is not said to be unexplained there."""
    store.append([said("s", 0, "Sync the ledger")])
    store.append(call("s", 0, "Read", {"file_path": "tools/sync_ledger.py"}, "while LOCK.exists():\n    time.sleep(0.5)"))
    store.append(call("s", 1, "Bash", {"command": "python3 tools/sync_ledger.py"}, open_=True))
    found = recover(store)

    assert found.stall is not None
    assert found.context.unanswered == []


def test_what_no_record_holds_is_said(store: Store) -> None:
    """A question about something that no record names is answered with that."""
    store.append(chain())
    found = ask(store, reason="Which customer complained first?", goal="write the answer")

    assert found.context.unanswered
    assert "Not in this history:\n> Which customer complained first?" in found.prompt


def test_what_an_instruction_says_is_needed_is_missed_where_no_record_has_it(store: Store) -> None:
    """A goal that names what the next agent needs says so where nothing has it; a plain instruction is no question."""
    store.append(chain())
    needs = ASKED.model_copy(update={"goal": "ship it; it needs the zeppelin serial number"})
    found = Recovery(store, 1, needs, None).answer()
    plain = Recovery(store, 1, ASKED.model_copy(update={"goal": "ship the zeppelin with its serial number"}), None).answer()

    assert found.context.unanswered == ["the zeppelin serial number"]
    assert "the zeppelin serial number" in found.context.prompt
    assert plain.context.unanswered == []


def test_the_line_of_a_name_is_told_from_the_askers_own_record(store: Store) -> None:
    """Who asks where a name stands has lost its own reading of it, so "no record says this" would be false."""
    code = "1\t'''Rounds.'''\n2\t\n3\tCENTS = 100\n4\tRATE = 7"
    store.append(
        [*call("s", 0, "Read", {"file_path": "rounding.py"}, code), *call("s", 1, "Bash", {"command": "make"}, "done")]
    )
    found = ask(store, reason="Which line holds CENTS?", goal="mend it")

    assert found.context.unanswered == []
    assert "CENTS = 100" in found.prompt
    assert ask(store, reason="Which line holds PENCE?", goal="mend it").context.unanswered == ["Which line holds PENCE?"]
