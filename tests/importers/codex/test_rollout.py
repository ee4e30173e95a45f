"""The Codex importer on the course of turns: steps, aborts, failures, compaction, rollback, usage, other agents."""

from __future__ import annotations

from typing import Any

from ctxmgr.log.codec import Record
from tests.importers.codex_lines import (
    THREAD,
    TURN,
    Reader,
    answer,
    call,
    event,
    item,
    line,
    meta,
    of,
    says,
)


def test_an_abort_interrupts_calls_that_have_no_output(read: Reader) -> None:
    """A call cut off by the person is not a hang."""
    records, count = read(
        [meta(), says(0, "<environment_context/>"), call(1, "c1"), event(2, "turn_aborted", reason="interrupted")]
    )
    assert [record["status"] for record in of(records, "result")] == ["interrupted"]
    assert (count.open, count.failed) == (0, 1)


def test_the_end_of_a_review_is_no_interrupt_by_a_person(read: Reader) -> None:
    """Codex ends a review turn with the same event; only the turn end is recorded."""
    records, _ = read([meta(), event(2, "turn_aborted", reason="review_ended")])
    assert (len(of(records, "interrupt")), len(of(records, "turn_end"))) == (0, 1)


def test_compaction_is_told_once_and_its_history_is_not_new(read: Reader) -> None:
    """The compacted line, its event and its item are one compaction; the next one is another."""
    summary = line(
        2, "compacted", message="so far", replacement_history=[{"type": "message", "role": "user", "content": "old"}]
    )
    records, count = read(
        [
            meta(), says(1, "<environment_context/>"), summary, event(3, "context_compacted"),
            item(3, "compaction", encrypted_content="x"), says(4, "next", "assistant"), event(5, "context_compacted"),
        ]
    )  # fmt: skip
    assert [record["data"] for record in of(records, "compaction")] == [{"text": "so far"}, {}]
    assert (count.user_messages, count.messages) == (0, 1)


def test_a_rollback_names_the_entries_it_abandons(read: Reader) -> None:
    """The last turn's calls stay in the log, named as abandoned; a second rollback reaches further back."""
    lines: list[Any] = [meta(), says(0, "<environment_context/>")]
    for number in (1, 2, 3):
        lines += [
            says(number, f"q{number}"),
            event(number, "user_message", message=f"q{number}"),
            call(number, f"c{number}"),
        ]
    lines += [event(8, "thread_rolled_back", num_turns=1), event(9, "thread_rolled_back", num_turns=9)]
    records, _ = read(lines)
    first, second = of(records, "rewind")
    assert first["data"] == {"turns": 1, "abandoned": [f"{THREAD}:c3"]}
    assert second["data"] == {"turns": 9, "abandoned": [f"{THREAD}:c1", f"{THREAD}:c2"]}


def test_questions_to_a_person_are_waiting(read: Reader) -> None:
    """A request for approval says that Codex waits for a person."""
    records, _ = read([meta(), event(1, "exec_approval_request", call_id="c1", reason="writes outside")])
    assert of(records, "waiting")[0]["data"] == {
        "for": "exec_approval_request",
        "callId": "c1",
        "reason": "writes outside",
    }


def steps(records: list[Record]) -> list[int]:
    """Return the number of the step of each entry."""
    return [int(entry["step"].rpartition(":")[2]) for entry in of(records, "entry")]


def test_outputs_without_their_call_are_told_once(read: Reader) -> None:
    """A fork's or torn log's outputs may answer calls written elsewhere; that is a note, not a silent loss."""
    records, count = read([meta(), says(0, "<environment_context/>"), answer(1, "c1", "x"), answer(2, "c2", "y")])
    assert of(records, "result") == []
    assert count.notes == ["2 tool outputs belong to calls that this file does not hold"]


def test_an_error_that_ends_its_turn_is_told_once(read: Reader) -> None:
    """The error event and the turn's end speak of the same failure; the next turn's failure is another."""
    failure = {"message": "quota", "codex_error_info": {"http": 429}}
    turn = [event(1, "task_started", turn_id=TURN), event(2, "error", **failure), event(3, "task_complete", error=failure)]
    records, _ = read([meta(), *turn, *turn])
    assert [record["data"]["type"] for record in of(records, "error")] == [{"http": 429}] * 2
    assert [record["data"]["reason"] for record in of(records, "turn_end")] == ["failed", "failed"]


def test_agents_messages_to_each_other_are_nudges(read: Reader) -> None:
    """What another agent wrote resets nothing, and its two copies are one."""
    body = {"author": "root", "recipient": "worker", "content": [{"type": "input_text", "text": "go on"}]}
    records, count = read([meta(), item(1, "agent_message", **body), line(1, "inter_agent_communication", **body)])
    (nudge,) = of(records, "nudge")
    assert nudge["data"] == {"text": "go on", "origin": "agent", "role": "agent", "author": "root", "recipient": "worker"}
    assert (count.user_messages, count.harness_messages) == (0, 0)
