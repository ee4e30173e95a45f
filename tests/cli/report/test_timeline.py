"""Where calls, rounds and pauses stand in the picture of a session."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.cli.report.timeline import COLUMN, WIDTH, draw_timeline
from ctxmgr.log.ids import format_time
from tests.cli import view_samples as s


def test_each_agent_has_a_lane_with_its_own_calls_and_totals() -> None:
    """Calls and failures are counted for each agent, in the order in which the agents appear."""
    entries = [
        s.entry(0, "Read", "a", agent="builder", usage={"inputTokens": 10, "outputTokens": 5}),
        s.entry(1, "Bash", "b", "error", agent="tester"),
        s.entry(2, "Read", "c", agent="builder", usage={"inputTokens": True, "outputTokens": "many"}),
    ]

    lanes = draw_timeline(entries, []).lanes

    assert [(lane.agent, lane.calls, lane.failed, lane.tokens) for lane in lanes] == [
        ("builder", 2, 0, 15),
        ("tester", 1, 1, 0),
    ]
    assert [mark.index for mark in lanes[0].marks] == [0, 2]


def test_each_round_of_a_loop_is_a_band_over_its_own_calls() -> None:
    """Rounds follow each other without a gap, every second one in another shade."""
    entries = [s.entry(number, ("Edit", "Bash")[number % 2], "x", "error") for number in range(8)]
    finding = s.loop("cycle", entries[2:], 2, "in circles")

    (lane,) = draw_timeline(entries, [finding]).lanes

    assert [band.text for band in lane.bands] == [f"cycle, round {number} of 3" for number in (1, 2, 3)]
    assert [band.odd for band in lane.bands] == [False, True, False]
    for before, after in pairwise(lane.bands):
        assert abs(before.x + before.width - after.x) < 0.2
    assert lane.bands[0].x <= next(mark.x for mark in lane.marks if mark.index == 2) + COLUMN


def test_many_calls_share_marks_and_a_failure_among_them_shows() -> None:
    """The picture does not grow with the session; of calls in one column the worst status is drawn."""
    entries = [
        s.entry(number, "Read", "x", "error" if number == 5000 else "ok", ts=format_time(number)) for number in range(9999)
    ]

    (lane,) = draw_timeline(entries, []).lanes

    assert len(lane.marks) <= WIDTH / COLUMN + 1
    assert [mark.status for mark in lane.marks].count("error") == 1
    failed = next(mark for mark in lane.marks if mark.status == "error")
    assert "1 failed" in failed.text
    assert 0.8 < failed.good < 1, "the other calls of the column are drawn too"
    assert {mark.good for mark in lane.marks if mark.status == "ok"} == {0.0}


def test_a_long_pause_is_drawn_short_and_named() -> None:
    """A night between two calls leaves room for the calls before and after it."""
    times = [0, 1, 2, 3, 4, 40_000, 40_001, 40_002, 40_003, 40_004]
    entries = [s.entry(number, "Read", "x", ts=format_time(time), duration_ms=None) for number, time in enumerate(times)]

    drawn = draw_timeline(entries, [])

    places = [mark.x for mark in drawn.lanes[0].marks]
    assert places[1] - places[0] > 5
    assert [pause.text for pause in drawn.pauses] == ["11 h pause"]


def test_without_times_the_order_is_drawn() -> None:
    """One missing time makes all of them useless for a scale."""
    drawn = draw_timeline([s.entry(0, "Read", "x"), s.entry(1, "Read", "y", ts=None), s.entry(2, "Read", "z")], [])

    assert not drawn.timed
    assert drawn.ticks == []
    first, second, third = (mark.x for mark in drawn.lanes[0].marks)
    assert first < second < third


@given(st.lists(st.floats(min_value=0, max_value=4e9), max_size=40), st.floats(min_value=0, max_value=1e12))
def test_nothing_is_drawn_outside_of_the_picture(times: list[float], took: float) -> None:
    """Whatever the times and durations: times may tie, run backwards, or lie decades apart."""
    entries = [s.entry(number, "Read", "x", ts=format_time(time), duration_ms=took) for number, time in enumerate(times)]

    drawn = draw_timeline(entries, [])

    assert bool(drawn.lanes) == bool(entries)
    for lane in drawn.lanes:
        assert sum(1 for _ in lane.marks) <= len(entries)
        for mark in lane.marks:
            assert mark.x >= 0
            assert mark.x + mark.width <= WIDTH + COLUMN
    assert all(0 <= tick.x <= WIDTH for tick in drawn.ticks)
