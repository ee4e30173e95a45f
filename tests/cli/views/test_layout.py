"""Columns, wrapped rows, times, amounts, ids and recorded texts as people read them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.cli.views.layout import (
    ASCII,
    GAP,
    UNICODE,
    Column,
    Span,
    ago,
    amount,
    brief,
    clock,
    command,
    date_span,
    day,
    duration,
    end_to_keep,
    error_text,
    event_text,
    fit_columns,
    plural,
    pretty,
    session_command,
    short_ids,
    size,
    status_sign,
    verdict_sign,
    wrap_spans,
)
from ctxmgr.cli.views.safe_text import cells
from ctxmgr.log.ids import format_time, parse_time

NOW = parse_time("2026-01-22T12:00:00Z") or 0.0
FIRST, SECOND = "0199a7b3-1c2d-7e4f-8a9b-0c1d2e3f4a5b", "0199a7b3-1c2d-7e4f-8aff-0c1d2e3f4a5b"
COLUMNS = [Column("ID", give=2, least=4), Column("N", right=True), Column("WHEN", give=3, steps=(16, 10), least=10),
           Column("SOURCE", optional=True, give=1, least=5), Column("TITLE", fill=True, least=8)]  # fmt: skip
WIDE = [12, 3, 19, 11, 40]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"command": "ls -l", "description": "list"}, "ls -l"), ({"cmd": ["bash", "-lc", "make test"]}, "make test"),
        ({"command": ["git", "log", "a b"]}, "git log 'a b'"), ({"pattern": "x+", "path": "src"}, "x+  in src"),
        ({"description": "d", "prompt": "do it"}, "do it"), ({"n": 1, "o": [True, None]}, '{"n": 1, "o": [true, null]}'),
        ("text", "text"), (None, ""), ({}, ""), (7, "7"), ({"command": ""}, '{"command": ""}'), ([{"a": 1}], '[{"a": 1}]'),
    ],
)  # fmt: skip
def test_the_telling_field_stands_for_the_input(value: Any, told: str) -> None:
    """A command, path, pattern or prompt is shown for the whole input, else compact JSON."""
    assert brief(value) == told


def test_text_is_found_in_any_shape() -> None:
    """Messages and outputs are read out of content blocks, strings and objects."""
    assert event_text([{"type": "text", "text": "a"}, {"content": {"text": "b"}}]) == "a\nb"
    assert event_text({"tool": 1}) == '{"tool": 1}'
    assert pretty([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]) == "a\nb"
    assert pretty([{"type": "image", "data": "x"}]).startswith("[\n")
    assert command("show", "a b@3") == "ctxmgr show 'a b@3'"


def test_times_and_amounts_are_said_as_people_say_them() -> None:
    """Spans have one or two units, moments are told from now, amounts have three digits, indexes are drawn together."""
    spans = [duration(seconds) for seconds in (0.085, 0.9996, 4.23, 12, 125, 754, 12_000, 90_000, 1e7)]
    assert spans == ["85 ms", "1.0 s", "4.2 s", "12 s", "2 min 5 s", "13 min", "3 h 20 min", "1 d 1 h", "116 d"]
    moments = ["2026-01-22T11:59:58Z", "2026-01-22T11:57:00+00:00", "2026-01-22T07:00:00Z", "2026-01-17T12:00:00Z",
               "2025-01-22T12:00:00Z", "2026-01-22T13:00:00Z", "soon\x1b", None]  # fmt: skip
    assert [ago(moment, NOW) for moment in moments] == [
        "just now", "3 min ago", "5 h ago", "5 d ago", "2025-01-22", "in the future", "soon\\x1b", "",
    ]  # fmt: skip
    assert [amount(n) for n in (0, 950, 1234, 34_000_000, 10**30)] == ["0", "950", "1.2 k", "34 M", "1" + "0" * 18 + "…"]
    assert [size(n) for n in (12, 1234, 999_600)] == ["12 B", "1.2 kB", "1.0 MB"]
    assert [plural(1, "entry"), plural(2000, "entry"), plural(0, "file")] == ["1 entry", "2,000 entries", "0 files"]


def test_ids_that_people_chose_are_not_shortened() -> None:
    """Other sessions, which are not shown, may share the beginning of such a name."""
    names = ["gpt-4o-airline-7247a2ec-1.200", "gpt-4o-airline-e1b2c3d4-1.7"]
    assert short_ids(names) == {name: name for name in names}


def test_short_ids_stay_unambiguous() -> None:
    """Ids that differ early are cut early, none is the beginning of another shown one, chosen names stay whole."""
    shorts = short_ids([FIRST, SECOND, "1" + FIRST[1:], "nightly-refactor"])

    assert shorts["1" + FIRST[1:]] == "1199a7b3"
    assert shorts["nightly-refactor"] == "nightly-refactor"
    assert shorts[FIRST] != shorts[SECOND]
    assert all(sum(name.startswith(short) for name in shorts) == 1 for short in shorts.values())


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-61, "in the future"), (-60, "just now"), (0, "just now"), (4.9, "just now"), (5, "5 s ago"), (59.9, "59 s ago"),
        (60, "1 min ago"), (3_599, "59 min ago"), (3_600, "1 h ago"), (2 * 86_400 - 1, "47 h ago"), (2 * 86_400, "2 d ago"),
        (31 * 86_400 - 1, "30 d ago"), (31 * 86_400, "2025-12-22"),
    ],
)  # fmt: skip
def test_how_long_ago_changes_its_unit_in_time(seconds: float, told: str) -> None:
    """Five seconds are still now, so is a clock that is a minute ahead; a month is told by its date."""
    assert ago(format_time(NOW - seconds), NOW) == told


def test_odd_spans_and_amounts() -> None:
    """What is not known is left empty, what is below zero has its sign, and what is no finite number is no crash."""
    assert [duration(each) for each in (None, float("nan"), float("inf"), -4.23, 0)] == ["", "", "", "-4.2 s", "0 ms"]
    assert [amount(each) for each in (None, float("nan"), -1234.0, 999.4, 999.5, 5e17)] == [
        "", "nan", "-1.2 k", "999", "1.0 k", "500,000 T",
    ]  # fmt: skip
    assert [size(each) for each in (None, 0, 999, 1e17)] == ["", "0 B", "999 B", "100,000 TB"]


def test_what_is_no_time_is_shown_as_text() -> None:
    """A recorded time that is none stands as it is, its steering characters escaped; nobody guesses a date."""
    assert (clock("soon\x1b[2J"), day("soon"), clock(None)) == ("soon\\x1b[2J", "", "")
    assert date_span("2026-01-22T14:03:22.5+02:00", terminal=True).text == "2026-01-22 12:03:22"
    assert date_span("2026-01-22T14:03:22.5+02:00", terminal=False).text == "2026-01-22T14:03:22.5+02:00"
    assert date_span(None, terminal=False).text == ""


@pytest.mark.parametrize(
    ("room", "widths"),
    [
        (120, [12, 3, 19, 11, 40]), (93, [12, 3, 19, 11, 40]), (80, [12, 3, 19, 11, 27]), (58, [12, 3, 16, 11, 8]),
        (54, [12, 3, 10, 11, 10]), (46, [6, 3, 10, 11, 8]), (40, [4, 3, 10, 7, 8]), (34, [4, 3, 10, 0, 11]),
        (24, [4, 3, 10, 0, 1]), (4, [4, 0, 0, 0, 0]),
    ],
)  # fmt: skip
def test_a_table_gives_way_in_steps(room: int, widths: list[int]) -> None:
    """Times shrink first and only to whole dates, then ids; an optional column goes next, then what stands on the right."""
    assert fit_columns(COLUMNS, WIDE, room) == widths


@given(st.lists(st.integers(0, 60), min_size=5, max_size=5), st.integers(1, 150))
def test_a_row_never_takes_more_than_there_is(natural: list[int], room: int) -> None:
    """Whatever the columns hold, the row fits, and no column is wider than its content."""
    widths = fit_columns(COLUMNS, natural, room)
    shown = [width for width in widths if width]

    assert sum(shown) + len(GAP) * (len(shown) - 1) <= max(room, 0)
    assert all(0 <= width <= wide for width, wide in zip(widths, natural, strict=True))


@given(st.lists(st.text(st.sampled_from("ab 語é"), max_size=40), max_size=5), st.integers(8, 30), st.integers(8, 30))
def test_wrapped_rows_hold_all_and_fit(texts: list[str], first: int, rest: int) -> None:
    """Words are broken where they must be; no row is too wide, and nothing but blanks at the breaks is lost."""
    rows = wrap_spans([Span(text, str(number)) for number, text in enumerate(texts)], first, rest)
    told = ["".join(span.text for span in row) for row in rows]

    assert cells(told[0]) <= first
    assert all(cells(row) <= rest for row in told[1:])
    assert "".join("".join(told).split()) == "".join("".join(texts).split())
    assert all(span.text.strip() in texts[int(span.style)] for row in rows for span in row)


def test_ids_that_hardly_differ_are_shown_whole() -> None:
    """A prefix is given only where it says which one is meant, however alike or hostile the ids are."""
    assert short_ids([FIRST]) == {FIRST: FIRST[:8]}
    assert short_ids([FIRST, FIRST[:-1]]) == {FIRST: FIRST, FIRST[:-1]: FIRST[:-1]}
    assert short_ids(["a-b-c-d-e with blanks and more", ""]) == {
        "": "",
        "a-b-c-d-e with blanks and more": "a-b-c-d-e with blanks and more",
    }
    assert short_ids([]) == {}


def test_a_path_is_cut_at_its_beginning() -> None:
    """The end of a path tells the file; a sentence that begins with a sign of a path is told from its beginning."""
    texts = ["/srv/app.py", "./a", "../b", "~/c", "/help me with this", "src/app.py", ""]

    assert [end_to_keep(text) for text in texts] == ["end", "end", "end", "end", "start", "start", "start"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ({"type": "TypeError", "message": "no such field"}, "TypeError: no such field"),
        ({"type": "Error", "message": "Error: no such file"}, "Error: no such file"), ({"message": "boom"}, "boom"),
        ({"type": 5, "message": ["x"]}, '{"type": 5, "message": ["x"]}'), ({}, "{}"), (None, ""), ("plain", "plain"), (7, "7"),
    ],
)  # fmt: skip
def test_an_error_is_told_in_words(error: Any, told: str) -> None:
    """Its type and message stand once each; what has another shape is shown as it was recorded."""
    assert error_text(error) == told


def test_no_recorded_value_is_too_odd_to_be_shown() -> None:
    """Nests without end, blocks with other fields and inputs of mixed lists come out as text."""
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]

    assert isinstance(event_text(deep), str)
    assert pretty(deep) == "<list>"
    assert brief({"command": ["git", 5]}) == '{"command": ["git", 5]}'
    assert brief({"command": [], "n": float("nan")}) == '{"command": [], "n": NaN}'
    assert pretty([{"text": "a", "id": 1}]).startswith("[\n")
    assert pretty([]) == "[]"
    assert pretty({"a": object()}) == '{\n  "a":"<object>"\n}'.replace('":"', '": "')
    assert (event_text({"text": "", "content": [None, {}, "b"]}), event_text(None), event_text({})) == ("b", "", "")


def test_signs_say_the_state_in_any_encoding() -> None:
    """Each state has a sign of one cell where signs can be drawn and of ASCII where they can't; an unknown state has a dot."""
    states = ["ok", "error", "denied", "interrupted", "open", "no such state", None]
    drawn = [[status_sign(symbols, state) for state in states] for symbols in (UNICODE, ASCII)]

    assert [len(set(signs)) for signs in drawn] == [6, 6]
    assert "".join(drawn[1]).isascii()
    assert [verdict_sign(ASCII, verdict) for verdict in ("healthy", "warn", "loop", "loop+hung")] == ["+", "o", "x", "x"]


def test_a_command_can_be_pasted() -> None:
    """Names are quoted, and the store is named only where it was."""
    assert session_command("recover", "a; rm -rf b", None) == "ctxmgr recover --session 'a; rm -rf b'"
    assert session_command("list", "s", "my logs/h.db") == "ctxmgr list --session s --store 'my logs/h.db'"
