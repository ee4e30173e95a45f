"""What is told of two agents that wait for each other."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from ctxmgr.types.finding import Diagnosis
from tests.diagnose.build import Call, Said, evidence


def test_a_call_that_waits_is_not_told_as_words() -> None:
    """Its input is shown as what it was given, since the agent has not said that."""
    one = Call("await_reply", {"of": "tester"}, status="open", agent="writer")
    two = Call("await_reply", {"of": "writer"}, status="open", agent="tester")
    told = diagnose(evidence(one, two, loop=2, kind="hung", severity="hung"))

    assert told is not None
    assert told.kind == "mutualWait"
    assert " said" not in told.cause
    assert "writer called await_reply" in told.cause
    assert "`of: tester`" in told.cause


def _wait(agent: str, file: str, call: str = "until [ -s {} ]; do sleep 1; done") -> Call:
    """Return a call of an agent that waits for a file in vain."""
    return Call(
        "Bash", {"command": call.format(file)}, f"cannot access '{file}': No such file or directory", "error", agent=agent
    )


def _answer(*steps: Call | Said) -> Diagnosis | None:
    told = diagnose(evidence(*steps, loop=6))
    return told if told is not None and told.kind == "mutualWait" else None


_RING = [_wait("planner", "schema.sql"), _wait("builder", "engine.txt")] * 3


def test_two_that_wait_for_files_of_each_other_are_told_which() -> None:
    """Neither file can come, because each agent does nothing else."""
    told = _answer(*_RING)

    assert told is not None
    assert "builder only waits for `engine.txt` and planner only for `schema.sql`" in told.cause
    assert told.next_step.startswith("End the wait: make `schema.sql` yourself now")


def test_a_file_that_is_looked_for_is_awaited_if_the_user_named_it() -> None:
    """A look in vain at any other file may only have a wrong name."""
    looks = [_wait("planner", "schema.sql", "cat {}"), _wait("builder", "engine.txt", "cat {}")] * 3

    assert _answer(Said("Planner makes engine.txt, builder makes schema.sql."), *looks) is not None
    assert _answer(Said("Planner and builder make the prototype."), *looks) is None


def test_agents_of_which_one_goes_on_do_not_wait_for_each_other() -> None:
    """One does something else in between, finds its file, or waits for the same file as the other."""
    found = Call("Bash", {"command": "until [ -s engine.txt ]; do sleep 1; done"}, "", agent="builder")
    assert _answer(*_RING[:-1], found) is None
    assert _answer(*_RING[:-1], Call("Bash", {"command": "ls docs"}, "a.md", agent="builder")) is None
    assert _answer(*[_wait("planner", "schema.sql"), _wait("builder", "schema.sql")] * 3) is None
