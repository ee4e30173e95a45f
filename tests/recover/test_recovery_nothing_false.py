"""Nothing is claimed that a record denies: histories drawn at random, in which records contradict what could be said."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.store import Store, open_store
from ctxmgr.types.query import AddNoteRequest
from ctxmgr.types.route import Continuation
from tests.builders import entry, result
from tests.recover.runs import ask, call, recover, said, workspace

VALUE = "quarry-7741"
FILES = ("src/ledger.py", "conf/base.toml", "docs/ports.md")
NOUNS = ("export bucket", "signing key", "staging host")

Place = st.sampled_from(["output", "input", "error", "message", "user", "long", "note", "loop"])


def held(store: Store, place: str, noun: str, noise: int) -> None:
    """Write a run in which one record, somewhere, says what is asked for; nowhere else does it stand."""
    fact = f"the {noun} is {VALUE}"
    records = [said("s", 0, "Ship the release.")]
    for number in range(noise):
        records += call("s", number, "Read", {"file_path": f"src/m{number}.py"}, f"def f{number}(): return {number}")
    at = noise
    if place == "output":
        records += call("s", at, "Read", {"file_path": FILES[0]}, fact)
    elif place == "input":
        records += call("s", at, "Write", {"file_path": FILES[1], "content": fact}, "saved")
    elif place == "error":
        records += call("s", at, "Bash", {"command": "make check"}, error=f"refused: {fact}")
    elif place == "long":
        filler = "\n".join(f"line {number} of nothing much" for number in range(400))
        records += call("s", at, "Read", {"file_path": FILES[2]}, f"{filler}\n{fact}\n{filler}")
    else:
        records += call("s", at, "Bash", {"command": "git status"}, "clean")
    if place == "message":
        records.append(said("s", 1, fact, after=at, type_="message", agent="planner"))
    if place == "user":
        records.append(said("s", 1, fact, after=at))
    for number in range(at + 1, at + 6):
        told = f"connection refused; {fact}" if place == "loop" else "connection refused"
        records += call("s", number, "Bash", {"command": "make ship"}, error=told)
    store.append(records)
    if place == "note":
        workspace(store).add_note(AddNoteRequest(session="s", entry_indices=[0], content=fact, author="ann"))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=Place, noun=st.sampled_from(NOUNS), noise=st.integers(min_value=0, max_value=25))
def test_what_a_record_holds_is_not_called_unknown(place: str, noun: str, noise: int) -> None:
    """Wherever a record holds what is asked for, "Not in this history" is not said of it."""
    store = open_store(":memory:", create=True)
    held(store, place, noun, noise)
    found = ask(store, session="s", requester="coder", reason=f"What is the {noun}?", goal="ship it")
    store.close()

    assert found.context.unanswered == [], place
    assert "Not in this history" not in found.prompt


@pytest.mark.parametrize("noun", NOUNS)
def test_what_no_record_holds_is_called_unknown(store: Store, noun: str) -> None:
    """Where none holds it, it is said: the battery above can fail."""
    held(store, "nowhere", noun, 9)
    found = ask(store, session="s", requester="coder", reason=f"What is the {noun}?", goal="ship it")

    assert found.context.unanswered == [f"What is the {noun}?"]


Step = st.tuples(
    st.sampled_from(["coder", "tester"]), st.sampled_from(["Read", "Bash", "Edit"]), st.integers(0, 3),
    st.sampled_from(["ok", "error", "denied", "interrupted", "open"]),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(steps=st.lists(Step, min_size=1, max_size=14), rounds=st.integers(3, 6))
def test_statements_match_their_records(steps: list[tuple[str, str, int, str]], rounds: int) -> None:
    """What is said to have worked ended ok, what is said to have failed did not, and every count is one of the record."""
    store = open_store(":memory:", create=True)
    records = [said("s", 0, "Ship the release.")]
    for number, (agent, action, what, status) in enumerate(steps):
        given_to = {"command": f"make t{what}"} if action == "Bash" else {"file_path": FILES[what % 3]}
        records.append(entry("s", number, action, given_to, agent=agent))
        if status != "open":
            error = {"message": f"failed {what}"} if status == "error" else None
            records.append(result("s", number, f"out {what}", status=status, error=error))
    for number in range(len(steps), len(steps) + rounds):
        records += call("s", number, "Bash", {"command": "make ship"}, error="connection refused")
    store.append(records)
    found = recover(store, session="s", force=True)
    status = {f"s-e{number:04}": step[3] for number, step in enumerate(steps)}
    status |= {f"s-e{number:04}": "error" for number in range(len(steps), len(steps) + rounds)}
    store.close()

    _check(found, status, rounds)


def _check(found: Continuation, status: dict[str, str], rounds: int) -> None:
    for fact in found.context.facts:
        states = {status[name] for name in fact.entries if name in status}
        if fact.text.startswith(("The last step", "Changed earlier")):
            assert states == {"ok"}, fact.text
        if fact.text.startswith("Failed earlier"):
            assert states <= {"error", "denied"}, fact.text
        named = re.search(r"\(@\d+, \w+, (\w+)\)", fact.text)
        assert named is None or states == {named[1]}, fact.text
    for lead in found.alternatives:
        if "which worked" in lead.text or lead.basis.endswith("ended ok"):
            assert {status[name] for name in lead.entries if name in status} == {"ok"}, lead.text
    for step in found.do_not_repeat:
        assert step.times >= len(step.entries)
        assert all(status[name] != "ok" for name in step.entries) or step.outcome.startswith("ok")
    for count in re.findall(r"(\d+) times the same call", found.prompt):
        assert rounds <= int(count) <= len(status)
