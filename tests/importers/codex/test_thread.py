"""A thread of Codex: which calls were one step, and what was used, whichever marks an era writes."""

from __future__ import annotations

from tests.importers.codex.test_rollout import steps
from tests.importers.codex_lines import (
    TURN,
    Reader,
    answer,
    call,
    event,
    meta,
    of,
    says,
    usage,
)


def test_repeated_totals_count_nothing_and_a_reset_counts_the_last(read: Reader) -> None:
    """Totals are cumulative and repeated; after a reset the response's own count is taken."""
    records, count = read([meta(), usage(1, 100, 100), usage(2, 100, 100), usage(3, 250, 150), usage(4, 40, 40)])
    assert [record["data"]["inputTokens"] for record in of(records, "usage")] == [100, 150, 40]
    assert (count.responses, count.usage["inputTokens"]) == (3, 40)


def test_without_marks_between_responses_an_output_begins_a_new_step(read: Reader) -> None:
    """A log without usage or context lines: calls with no output between them were issued together."""
    begin = [meta(), event(0, "task_started", turn_id=TURN), says(1, "<environment_context/>")]
    pair = [call(2, "c1"), call(2, "c2"), answer(3, "c1", "x"), answer(3, "c2", "x")]
    records, _ = read([*begin, *pair, call(4, "c3"), answer(5, "c3", "x"), call(6, "c4")])
    assert steps(records) == [1, 1, 2, 3]


def test_with_usage_the_total_separates_responses(read: Reader) -> None:
    """Buffered logs write call, output, call, output of one response; only a new total means a new response."""
    begin = [meta(), says(1, "<environment_context/>"), usage(2, 10, 10)]
    pair = [call(3, "c1"), answer(3, "c1", "x"), call(3, "c2"), answer(3, "c2", "x")]
    records, _ = read([*begin, *pair, usage(4, 20, 10), call(5, "c3"), answer(5, "c3", "x"), usage(6, 20, 10), call(6, "c4")])
    assert steps(records) == [1, 1, 2, 2]


def test_a_persons_message_begins_a_new_step(read: Reader) -> None:
    """What follows a message is never part of the response before it."""
    records, _ = read([meta(), call(1, "c1"), says(2, "more"), event(2, "user_message", message="more"), call(3, "c2")])
    assert steps(records) == [1, 2]
