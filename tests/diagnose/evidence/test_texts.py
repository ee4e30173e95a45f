"""Recorded text is made fit to be quoted and compared."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.texts import (
    clean,
    clip_middle,
    clock,
    days_named,
    excerpt,
    how_often,
    omission_mark,
    read_escapes,
    sentences_in,
    strip_escapes,
    strip_line_numbers,
    strip_wrapper,
    text_of,
)


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("     1\tdef f():\n     2\t    return 1", "def f():\n    return 1"),
        ("  1→a\n  2→b", "a\nb"),
        ("12| x = 1", "x = 1"),
        ("3: y", "y"),
        ("2024-01-01 12:30 started", "2024-01-01 12:30 started"),
        ("8080:80 is mapped", "8080:80 is mapped"),
        ("7 of 9 passed", "7 of 9 passed"),
    ],
    ids=["cat -n", "arrow", "bar", "colon", "date", "ports", "count"],
)
def test_numbers_of_lines_are_taken_off_and_other_numbers_stay(shown: str, text: str) -> None:
    """What a client puts before a line goes, with the indentation of the line kept; a number that is content stays."""
    assert strip_line_numbers(clean(shown)) == text


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("\x1b[38;21m[*] trying pub1\x1b[0m", "[*] trying pub1"),
        ("[38;21m[*] trying pub1[0m\n[1;31mFAILED[0m, see x", "[*] trying pub1\nFAILED, see x"),
        ("[32m+ added[m\n[31m- gone[m", "+ added\n- gone"),
        ("rate(http_errors_total[5m]) over [30m, 1h]", "rate(http_errors_total[5m]) over [30m, 1h]"),
        ("echo -e '\\033[31mno\\033[0m' \\x1b[1m", "echo -e '\\033[31mno\\033[0m' \\x1b[1m"),
        ("x[m + 1] = [0m]", "x[m + 1] = [0m]"),
    ],
    ids=["escape", "escape lost", "git", "times", "source code", "indexes"],
)
def test_a_colour_goes_with_all_its_characters(shown: str, text: str) -> None:
    """A colour is removed as a whole, also where its escape character was lost; what only looks like one stays."""
    assert strip_escapes(shown) == text


def test_a_quote_is_never_cut_into_sentences() -> None:
    """A full stop within backticks ends no sentence."""
    assert sentences_in("It says `A. B`. Then C.") == ["It says `A. B`.", "Then C."]


def test_a_clause_that_begins_with_a_quoted_name_stays_in_its_sentence() -> None:
    """Before a backtick a full stop ends a sentence, and a semicolon does not."""
    assert sentences_in("Set `A` first; `B` needs it. `C` follows; Then D.") == [
        "Set `A` first; `B` needs it.", "`C` follows;", "Then D."
    ]  # fmt: skip


def test_a_single_call_is_not_counted() -> None:
    """Only what was made more than once is told with its number."""
    assert [how_often(times) for times in (1, 3)] == ["", ", 3 times"]


def test_a_long_quote_is_cut_between_lines() -> None:
    """Two halves of lines joined would be a line that stands nowhere; one long line is cut in its middle."""
    lines = [f"line {number}: int(amount * CENTS + 0.5)" for number in range(40)]
    shown = excerpt("\n".join(lines)).split("\n")

    assert (shown[0], shown[-1], shown.count("…")) == (lines[0], lines[-1], 1)
    assert set(shown) <= {*lines, "…"}
    assert len("\n".join(shown)) <= 300
    assert len(excerpt("x" * 900)) == 300
    assert "…" in excerpt(f"a\n{'b' * 900}\nc")


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("<untrusted_context>\nOutput: F\nFAIL: test_half\nExit Code: 1\n</untrusted_context>", "F\nFAIL: test_half\n"),
        ("<returncode>1</returncode>\n<output>\nboom\n</output>", "boom\n"),
        ("<config>\n<output>build</output>\n</config>", "<config>\n<output>build</output>\n</config>"),
    ],
)
def test_the_tags_of_a_client_are_no_words_of_the_program(shown: str, text: str) -> None:
    """Each on a line of its own; those of a document stay."""
    assert strip_wrapper(shown) == text


def test_an_error_without_words_says_nothing() -> None:
    """A failing search prints nothing; what the record is made of are no words of it."""
    assert text_of({"type": "Error", "message": ""}) == ""
    assert text_of({"type": "Error", "message": "", "code": 7}) == '{"type": "Error", "message": "", "code": 7}'


def test_a_time_is_told_with_its_day_where_that_is_in_doubt() -> None:
    """Records of one day need no date; one of another day does, and so do all of several days."""
    first, second, late = "2025-11-13T12:14:44Z", "2025-11-13T23:10:00Z", "2025-09-29T17:08:59Z"
    with days_named([first, second, None]):
        assert [clock(first), clock(second), clock(late)] == [" at 12:14", " at 23:10", " on 2025-09-29 at 17:08"]
        with days_named([late, first]):
            assert [clock(first), clock(late), clock("12:14")] == [" on 2025-11-13 at 12:14", " on 2025-09-29 at 17:08", ""]
        assert clock(first) == " at 12:14"
    assert clock(first) == " at 12:14"


def test_what_ctxmgr_said_in_an_output_is_no_part_of_it() -> None:
    """An earlier advice of the hook is not what the test printed."""
    said = "FAILED (failures=1)\nCTXMGR-CONTINUATION: you went round 3 times. Read calc.py.\n[ctxmgr] You go in circles"
    assert strip_wrapper(said).strip() == "FAILED (failures=1)"


def test_escapes_of_json_are_read_where_they_can_be_seen() -> None:
    """A direction mark, half a pair, and an escape that is itself escaped stay as they were; so does what is no JSON."""
    assert read_escapes('{"error": "No encontr\\u00f3"}') == '{"error": "No encontró"}'
    for text in (
        '{"a": "\\u0022"}',
        '{"a": "\\u005c"}',
        '{"a": "\\u202e"}',
        '{"a": "\\ud83d"}',
        '{"a": "\\\\u00f3"}',
        "C:\\u00f3",
    ):
        assert read_escapes(text) == text


@pytest.mark.parametrize(
    ("omitted", "mark"),
    [
        ('"size": 2, "kind": {"a": 1}, "x"', " … "),
        ('"size": 2}, {"id": "b", "na', " … }, { … "),
        ('"size": 2}], "total": 3', " … } … "),
    ],
)
def test_a_mark_tells_where_another_object_goes_on(omitted: str, mark: str) -> None:
    """Else the id of one object would seem to have the state of the next."""
    head, tail = '[{"id": "a", "name": "the first of two things", ', ' "state": "open", "more": "and so on, at some length"}]'
    text = head + omitted + "é" * 200 + tail

    assert omission_mark(omitted) == mark
    assert mark in clip_middle(text, 90)
    assert len(clip_middle(text, 90)) == 90
