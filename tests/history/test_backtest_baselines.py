"""The rules of thumb that the detectors are measured against."""

from __future__ import annotations

import pytest

from ctxmgr.history.backtest import Move, alternation, any_repeat, list_moves, same_in_a_row
from ctxmgr.types.finding import Observation


def _moves(story: str) -> list[Move]:
    """Return moves from "a1 a1 b2": agent and what it did."""
    return [Move(place, word[0], word, f"e{place}") for place, word in enumerate(story.split())]


@pytest.mark.parametrize(
    ("story", "row", "abab", "anywhere"),
    [
        ("a1 a1 a1", "e2", None, "e2"),
        ("a1 a1 a2 a1", None, None, "e3"),
        ("a1 b9 a1 b8 a1", "e4", None, "e4"),
        ("a1 a2 a1 a2", None, "e3", None),
        ("a1 b9 a2 b8 a1 b7 a2", None, "e6", None),
        ("a1 b1 a1 b1", None, "e3", None),
        ("a1 a1 a1 a1", "e2", None, "e2"),
        ("a1 a2 a3", None, None, None),
        ("", None, None, None),
    ],
)
def test_rules_speak_at_the_move_that_completes_the_pattern(
    story: str, row: str | None, abab: str | None, anywhere: str | None
) -> None:
    """Rows and alternation are sought in the whole run and in each agent's own moves, repeats anywhere."""
    moves = _moves(story)
    spoken = [rule(moves) for rule in (same_in_a_row, alternation, any_repeat)]
    assert [None if move is None else move.name for move in spoken] == [row, abab, anywhere]


def _call(given: object, number: int) -> Observation:
    return Observation(kind="start", seq=number, id=f"e{number}", session="s", agent="a", action="Read", input=given)


def test_calls_are_equal_whatever_the_order_of_their_keys() -> None:
    """The key of a move is canonical, and input that is no JSON has one too."""
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    given: list[object] = [{"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": 1}, deep, object()]
    keys = [move.key for move in list_moves(_call(value, number) for number, value in enumerate(given))]
    assert keys[0] == keys[1] != keys[2]
    assert len(keys) == len(given)


def test_messages_count_unless_they_say_nothing() -> None:
    """A message is a move of its own, an empty one and a thought are none."""
    events = [
        Observation(kind="event", seq=number, id=f"v{number}", session="s", agent="a", type=kind, data=data)
        for number, (kind, data) in enumerate(
            [("message", {"text": "no"}), ("message", {"text": " "}), ("thought", {"text": "no"}), ("message", "no")]
        )
    ]
    assert [move.name for move in list_moves(events)] == ["v0", "v3"]
