"""What is chanted in a stream: in which shapes it is found, and that the pieces the text comes in do not matter."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.detect.scenario import Scenario

CLOSING = ("All done.\n", "The task is complete.\n", "Goodbye!\n", "Thank you.\n", "I am finished now.\n")
CODE = "```python\nfor number in range(3):\n    print(number)\n```\n"
FIFTY = {
    "without an end": "Looking at the configuration and then at the logs ",
    "with an end within": "then the file. And I check the logs again for the ",
    "with its own repeats": "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwx",
    "without blanks": "I-will-now-read-the-file-again-and-fix-the-error-..",
}
PROSE = " ".join(f"Word{number} leads on to thing{number * 7}." for number in range(40))


def _stream(pieces: Sequence[str], kind: str = "agent_message_chunk") -> Scenario:
    """Say the pieces within a second: how long a text takes is a finding of its own, and must not depend on the cut."""
    story = Scenario()
    for piece in pieces:
        story.say(kind, {"text": piece}, agent="main", wait=min(0.01, 1 / len(pieces)))
    return story


def _found(pieces: Sequence[str], kind: str = "agent_message_chunk") -> list[tuple[object, ...]]:
    return [
        (each.kind, each.severity, each.count, each.resolved, each.evidence["said"], each.evidence["identity"])
        for each in _stream(pieces, kind).found()
    ]


@pytest.mark.parametrize("before", ["", "Let me see: ", CODE, CODE.rstrip(), "| a | b |\n| c | d |\n"])
@pytest.mark.parametrize("name", FIFTY)
def test_the_same_fifty_characters_ten_times(name: str, before: str) -> None:
    """Ten equal pieces in a row are a chant, nine are none, whatever stands before them."""
    piece = FIFTY[name]
    assert [each[:4] for each in _found([before, *[piece] * 10])] == [("chanting", "loop", 10, None)]
    assert _found([before, *[piece] * 9]) == []


@pytest.mark.parametrize("before", ["", CODE])
@pytest.mark.parametrize("rounds", [6, 10, 30])
def test_a_few_closing_lines_over_and_over(before: str, rounds: int) -> None:
    """Five lines round and round are a chant of that many rounds, after code too."""
    assert [each[:3] for each in _found([before, *CLOSING * rounds])] == [("chanting", "loop", rounds)]


def test_a_few_closing_lines_in_any_order() -> None:
    """They need not come in one order."""
    lines = random.Random(7).choices(CLOSING, k=70)
    assert [each[:2] for each in _found(lines)] == [("chanting", "loop")]


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "```\n" + "value = compute(value)\n" * 40 + "```\nThat was the code.\n",
        "| name | value |\n" * 40,
        "- check the input\n" * 40,
        "".join(f"{number}. check the input\n" for number in range(40)),
        '{"name": "x", "value": 1},\n' * 40,
        "Yes.\nNo.\n" * 9,
        "╭─" * 400,
        "".join(f"Chapter {number} tells how it went on. And so they lived. " for number in range(9)),
    ],
)
def test_text_that_may_repeat_itself_is_no_chant(text: str) -> None:
    """Prose, code, tables, lists, JSON, rulers and short answers are passed over, in one piece and in many."""
    assert _found([text]) == _found([text[at : at + 7] for at in range(0, len(text), 7)]) == []


def test_a_chant_that_was_left_is_resolved() -> None:
    """Other prose after it, in the same stream, ends it; so does an action."""
    assert [each[3] for each in _found([FIFTY["without an end"] * 12 + PROSE])] == ["progress"]
    story = _stream([FIFTY["without an end"]] * 12)
    story.call("Read", {"path": "a"}, "text")
    assert [each.resolved for each in story.found()] == ["progress"]


def test_a_whole_message_is_read_to_its_end() -> None:
    """A chant at the end of one message is found, and at the end of a message one that was left is none."""
    chant = "".join(CLOSING) * 10
    assert [each[:3] for each in _found([chant], "message")] == [("chanting", "loop", 10)]
    assert _found([chant + PROSE], "message") == []


parts = st.one_of(
    st.sampled_from(
        [PROSE[:150], PROSE, CODE, "```\n", "| a | b |\n", "- item\n", "1. ", "\n\n", "  ", ". ", "Ok", "\t", "~~~"]
    ),
    st.text(alphabet="ab .!\nA`|", max_size=12),
)
chants = st.tuples(
    st.one_of(st.sampled_from([*FIFTY.values(), *CLOSING, "".join(CLOSING), "Working... "]), parts), st.integers(6, 14)
)


@settings(max_examples=150, deadline=None)
@given(st.lists(parts, max_size=4), chants, st.lists(parts, max_size=4), st.lists(st.integers(1, 90), min_size=1, max_size=30))
def test_pieces_do_not_matter(before: list[str], chant: tuple[str, int], after: list[str], sizes: list[int]) -> None:
    """However a text is cut into pieces, the findings are the same: kind, count, what was said, and what ended it."""
    text = "".join([*before, chant[0] * chant[1], *after])
    cut: list[str] = []
    at = 0
    for place in range(len(text)):
        if at >= len(text):
            break
        size = sizes[place % len(sizes)]
        cut.append(text[at : at + size])
        at += size
    assert _found(cut) == _found([text])
