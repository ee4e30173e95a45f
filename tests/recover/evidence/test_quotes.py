"""Quoted text is printable JSON of bounded length; what is short is kept to the letter."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ctxmgr.recover.evidence.quotes import (
    brief_input,
    call_line,
    citable_ids,
    clean,
    clip_middle,
    compact,
    cut_lines,
    display_name,
    fence_text,
    flat,
    mark_cuts,
    quote_text,
    shorten_value,
    since_when,
    times,
    whole_sentences,
)
from tests.diagnose.build import Call, view

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.text(alphabet=st.characters(), max_size=300))
def test_short_text_is_kept(text: str) -> None:
    """A text within the limit comes back from its quotes as it was, unless it is made of escapes."""
    written = quote_text(text, 4_000)

    assert json.loads(written) == text
    assert written.isprintable()


@given(st.text(alphabet=st.characters(), max_size=3_000), st.integers(8, 200))
def test_long_text_is_cut(text: str, limit: int) -> None:
    """Whatever the text, its quoted form is one printable JSON string not much longer than the limit."""
    written = quote_text(text, limit)

    assert isinstance(json.loads(written), str)
    assert written.isprintable()
    assert len(written) <= max(limit * 5 // 4 + 2, 8 * 12 + 40)


@pytest.mark.slow
@given(VALUES, st.integers(40, 400))
def test_any_value_is_compact(value: Any, limit: int) -> None:
    """Whatever the value, its compact form is printable JSON of bounded length."""
    written = compact(value, limit)

    json.loads(written)
    assert written.isprintable()
    assert len(written) <= max(limit * 5 // 4 + 2, 200)


@pytest.mark.slow
@given(VALUES)
def test_small_values_are_kept(value: Any) -> None:
    """A value that is neither long nor wide nor deep is not changed by shortening."""
    assume(len(json.dumps(value)) < 12 and -(2**63) < (value if isinstance(value, int) else 0) < 2**63)
    assert shorten_value(value, 400) == value


def test_one_mark_stands_for_all_that_is_left_out() -> None:
    """Two cuts beside each other are one."""
    assert fence_text("head\n…\n\n…\ntail", 80) == "```\nhead\n…\ntail\n```"
    assert fence_text("\n".join(["a" * 30, "…", "b" * 30, "…", "c" * 30]), 70).count("…") == 1


def test_a_part_of_a_line_is_marked() -> None:
    """Whole lines are no cut, and what does not stand in a text gets no mark."""
    text = 'head\n{"a": 1, "b": 2, "c": 3}\ntail'
    assert mark_cuts('"b": 2,', text) == '… "b": 2, …'
    assert mark_cuts('{"a": 1,', text) == '{"a": 1, …'
    assert [mark_cuts(part, text) for part in ("tail", text, "other", "")] == ["tail", text, "other", text]


def test_colours_leave_nothing_behind() -> None:
    """The characters of a colour are no part of a quote, although only its escape character can't be printed."""
    assert clean("\x1b[38;21m[*] Performing SQUFOF\x1b[0m\n") == "[*] Performing SQUFOF\n"


def test_the_middle_is_left_out() -> None:
    """Of a long text both ends are kept: errors tell at both."""
    assert clip_middle("a" * 50 + "b" * 50, 20) == "a" * 8 + " … " + "b" * 9
    assert clip_middle("short", 5) == "short"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        ({}, ""),
        ("ls -l", '"ls -l"'),
        ({"command": "ls", "description": "list", "timeout": 5}, '"ls"'),
        ({"command": ["bash", "-lc", "ls"]}, '["bash", "-lc", "ls"]'),
        ({"command": "view", "path": "a.py"}, '{"command": "view", "path": "a.py"}'),
        ({"file_path": "a.py"}, '"a.py"'),
        ({"file_path": "a.py", "replace_all": False, "limit": None}, '"a.py"'),
        ({"pattern": "x", "path": "src"}, '{"pattern": "x", "path": "src"}'),
        ({"description": "find it"}, '"find it"'),
        ([1, "two"], '[1, "two"]'),
        (7, "7"),
    ],
)
def test_the_telling_part_of_an_input(value: Any, written: str) -> None:
    """A command or a single value is told alone, other inputs whole, and what only accompanies a call is left out."""
    assert brief_input(value) == written


@pytest.mark.parametrize("name", ["Bash", "mcp__github__search", "general-purpose-1", "reviewer@2", "tâche"])
def test_names_stay_plain(name: str) -> None:
    """What looks like a name is written plainly."""
    assert display_name(name) == name


@pytest.mark.parametrize("name", ["", "two words", "a\nb", "x" * 200, "--flag", "[/red]", "a\u202eb"])
def test_what_is_no_name_is_quoted(name: str) -> None:
    """What does not look like a name is quoted."""
    assert display_name(name).startswith('"')
    assert len(display_name(name)) < 120


def test_how_often() -> None:
    """How often is told in words."""
    assert [times(number) for number in (1, 2, 3, 1_200)] == ["once", "twice", "3 times", "1,200 times"]


def test_citations_are_few_and_fair() -> None:
    """Of many ids the first and the last are cited, each once, and none that is a page long."""
    assert citable_ids(["a", "b", "a"]) == ["a", "b"]
    assert citable_ids([str(number) for number in range(10)], 5) == ["0", "1", "2", "8", "9"]
    assert citable_ids(["x" * 201, "y"]) == ["y"]


def test_sentences_are_kept_whole_with_what_they_quote() -> None:
    """A text that is too long loses sentences at its end, and no half of a quote."""
    text = "It is ruled out: `Nobody pushes. Ask first.`. The user said so. More."

    assert whole_sentences(text, 60) == "It is ruled out: `Nobody pushes. Ask first.`."
    assert whole_sentences(text, 64) == "It is ruled out: `Nobody pushes. Ask first.`. The user said so."


def test_a_long_line_is_shown_in_part() -> None:
    """What a call prints may be one long line behind the call itself: both its ends are shown, not only that it is there."""
    cut = cut_lines("get_user u_4471\n" + json.dumps({"name": "Ana", "orders": ["W-1"] * 200, "card": "card_9920"}), 200)

    assert cut.startswith('get_user u_4471\n{"name": "Ana"')
    assert cut.endswith('"card": "card_9920"}')


@given(st.text(alphabet="ab\n", max_size=600), st.integers(50, 200))
def test_cut_lines_fit(text: str, limit: int) -> None:
    """Whatever the lines, what is shown of them fits, and a text that fits is whole."""
    cut = cut_lines(text, limit)

    assert len(cut) <= limit
    assert cut == text or len(text) > limit


@pytest.mark.parametrize(
    ("ts", "told"),
    [
        ("2026-01-22T10:07:00Z", "10:07"), ("2026-01-22 10:07", "10:07"), ("20260122T100700Z", ""), ("2026-01-22T1007Z", ""),
        ("2026-01-22", ""), ("2026-99-22T10:07:00Z", ""), (None, ""),
    ],
)  # fmt: skip
def test_a_time_is_told_only_where_it_can_be_read_off(ts: str | None, told: str) -> None:
    """A time in another form than hours and minutes with a colon is left out, instead of pieces of it."""
    assert since_when(ts).strip() == told


def test_a_zero_is_no_empty_value() -> None:
    """What is not set is left out of an input, and a number never is."""
    assert brief_input({"service": "api", "replicas": 0, "wait": False, "note": None}) == '{"service": "api", "replicas": 0}'
    assert brief_input({"service": "api", "wait": False, "note": None}) == '"api"'


def test_a_search_is_told_with_what_it_looks_for() -> None:
    """Of searches in one folder, only the pattern differs."""
    lines = [
        call_line(view(1, Call("Grep", given))) for given in ({"pattern": "max_retries", "path": "src"}, {"pattern": "retries"})
    ]

    assert lines == ["Grep max_retries in src", "Grep retries"]


def test_truth_values_are_written() -> None:
    """An answer that says no more than ``"eligible": false`` says that."""
    assert flat({"id": "a", "eligible": False, "seen": True, "note": None}, 200) == "id: a\neligible: false\nseen: true\nnote: "
