"""The filter that all text passes, and the printer: widths, colours, encodings, pipes."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.cli.envelope import say
from ctxmgr.cli.terminal import Column, Printer, Span, printer, safe
from ctxmgr.cli.views.safe_text import cells, cut
from tests.cli.view_samples import draw, screen_lines

ROOT = Path(__file__).parents[2]

ANY_TEXT = st.text(alphabet=st.characters(), max_size=60) | st.text(
    alphabet="a\u0301\u200b\ud800\x1b\n\t漢⚠\ufe0f🏽1", max_size=40
)
"""Text of any code points, lone surrogates among them."""

TABLE = (
    Column("ID", give=1, least=4),
    Column("COUNT", right=True),
    Column("NAME", fill=True, least=10),
    Column("SOURCE", give=2, least=4, optional=True),
)
ROWS = [["abcdefgh", 7, "a name of some length that has to give way", "claude-code"], ["xy", 12345, "短い名前", "codex"]]


@pytest.mark.parametrize("planes", [range(0x0, 0x10000), range(0x10000, 0x30000), range(0xE0000, 0xE1000)])
def test_every_character_that_could_hide_or_steer_is_escaped(planes: range) -> None:
    """After the filter no character is a control, format, private, unassigned or surrogate one, or a lone mark."""
    for code in planes:
        for char in safe(chr(code)):
            assert unicodedata.category(char)[0] in "LNPSZ", f"U+{code:04X}"
            assert unicodedata.category(char) not in ("Zl", "Zp"), f"U+{code:04X}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("\x9b31m\x9d0;x\x9c\x7f", "\\x9b31m\\x9d0;x\\x9c\\x7f"),
        ("a\u202egnp.exe\u2066\u200f", "a\\u202egnp.exe\\u2066\\u200f"),
        ("pass\u200bword\u2060\ufeff\u00ad", "pass\\u200bword\\u2060\\ufeff\\xad"),
        ("\U000e0041\U000e0042", "\\U000e0041\\U000e0042"),
        ("x\u2028y\u2029z\x85", "x\\u2028y\\u2029z\\x85"),
        ("\ud800!", "\\ud800!"),
        ("hangul\u3164filler\u2800", "hangul\\u3164filler\\u2800"),
        ("[/red][link=file:///etc] :smile: a[0] [/INST]", "[/red][link=file:///etc] :smile: a[0] [/INST]"),
        ("one\ntwo\r\nthree\tfour\rfive", "one⏎two⏎three four\\x0dfive"),
        ("naïve café – 日本語 🚀 ⚠️ 1️⃣", "naïve café – 日本語 🚀 ⚠️ 1️⃣"),
        ("\u0301lone", "\\u0301lone"),
        ("a\ufe0f\ufe0e", "a\\ufe0f\\ufe0e"),
        (None, ""),
        (float("nan"), "nan"),
    ],
)
def test_the_filter_shows_what_would_not_be_seen(text: object, shown: str) -> None:
    """Steering and hidden characters become escapes, markup and ordinary text stay as they are."""
    assert safe(text) == shown


def test_what_cannot_be_written_is_named() -> None:
    """A number of too many digits and a bottomless list are shown as their type."""
    nest: list[object] = []
    for _ in range(5000):
        nest = [nest]

    assert (safe(10**5000), safe(nest)) == ("<int>", "<list>")


def test_lines_are_kept_when_asked() -> None:
    """Line ends and tabs stay in text that is shown with its own lines; other controls do not."""
    assert safe("a\r\n\tb\x1b\n\u0301c", keep_lines=True) == "a\n\tb\\x1b\n\\u0301c"


def test_piles_of_marks_are_cut() -> None:
    """A character keeps eight combining marks; the rest is counted."""
    assert safe("e" + "\u0301" * 1000 + "!") == "e" + "\u0301" * 8 + "[+992 marks]!"


@given(ANY_TEXT)
def test_filtering_twice_changes_nothing(text: str) -> None:
    """What went through the filter goes through it again unchanged."""
    assert safe(safe(text)) == safe(text)


@given(ANY_TEXT, st.integers(min_value=0, max_value=30))
def test_a_limit_counts_cells(text: str, limit: int) -> None:
    """Limited text never takes more cells than allowed, and is whole when it fits."""
    shown = safe(text, limit=limit)

    assert cells(shown) <= limit
    if cells(safe(text)) <= limit:
        assert shown == safe(text)


def test_each_part_of_a_text_can_stay() -> None:
    """A cut keeps the beginning, both ends, or the end, and marks the place."""
    assert cut("abcdefghij", 5) == "abcd…"
    assert cut("abcdefghij", 5, keep="middle") == "ab…ij"
    assert cut("abcdefghij", 5, keep="end") == "…ghij"
    assert cut("漢字漢字", 6) == "漢字…"


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_a_table_never_wraps(width: int) -> None:
    """On a terminal of any width each row takes one line, and a table that had to shrink fills the width exactly."""
    text = draw(lambda out: out.table(TABLE, ROWS), width=width)

    lines = screen_lines(text, width)
    assert len(lines) == 3
    if width < 60:
        assert max(cells(line) for line in lines) == width


def test_columns_give_way_by_priority() -> None:
    """The column that gives way first shrinks first and may vanish; numbers keep their width."""
    assert draw(lambda out: out.table(TABLE, ROWS), width=38).splitlines() == [
        "ID        COUNT  NAME        SOURCE",
        "abcdefgh      7  a name of…  claude-c…",
        "xy        12345  短い名前    codex",
    ]
    assert draw(lambda out: out.table(TABLE, ROWS), width=24).splitlines() == [
        "ID    COUNT  NAME",
        "abc…      7  a name of …",
        "xy    12345  短い名前",
    ]


def test_a_pipe_gets_every_character() -> None:
    """A table in a pipe holds all text, one row a line, in columns two blanks apart, without any escape byte."""
    text = draw(lambda out: out.table(TABLE, ROWS), terminal=False, width=20)

    assert text.splitlines() == [
        "ID        COUNT  NAME                                        SOURCE",
        "abcdefgh      7  a name of some length that has to give way  claude-code",
        "xy        12345  短い名前                                    codex",
    ]


def test_an_endless_table_is_written_as_it_comes() -> None:
    """Rows are written long before the last one is known."""
    out = io.StringIO()

    def rows() -> Iterator[list[str | int]]:
        for number in range(2000):
            assert number < 600 or out.getvalue()
            yield [number, "x"]

    Printer(out, out, terminal=False).table((Column("@", right=True), Column("WHAT")), rows())

    assert len(out.getvalue().splitlines()) == 2001


def test_colour_means_something() -> None:
    """A piece with a meaning is coloured and reset; the same without colour is the bare text."""
    parts = ("status ", Span("error", "error"), Span("", "ok"))

    assert draw(lambda out: out.line(*parts), colour=True) == "status \x1b[31merror\x1b[0m\n"
    assert draw(lambda out: out.line(*parts)) == "status error\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_talk_is_broken_at_words_where_a_terminal_is_narrow(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal no line of a hint is wider than it, no word is cut and all stand as far in; elsewhere it is one line."""
    monkeypatch.setenv("COLUMNS", "30")
    hint = "  ctxmgr reads: its own, Claude Code, Codex, Gemini CLI, message lists of 短い名前 and more"
    stream = _Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    say(f"ctxmgr: short\n{hint}", always=True)
    Printer(io.StringIO(), stream, terminal=terminal, width=30).hint(hint)

    lines = stream.getvalue().splitlines()
    if not terminal:
        assert lines == ["ctxmgr: short", hint, hint]
        return
    assert lines[0] == "ctxmgr: short"
    assert all(line.startswith("  ") and cells(line) <= 30 for line in lines[1:])
    assert [word for line in lines[1:] for word in line.split()] == hint.split() * 2


@pytest.mark.parametrize(
    ("settings", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_the_environment_decides_about_colour(
    settings: dict[str, str], terminal: bool, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR, FORCE_COLOR and TERM are honoured; forced colour never makes a pipe cut text."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "44")
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", _Terminal() if terminal else io.StringIO())

    made = printer()

    assert (made.terminal, made.colour, made.width) == (terminal, colour, 44)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_narrow_encoding_spells_what_it_cannot_hold(encoding: str) -> None:
    """On a stream without Unicode nothing crashes and every character can still be told."""
    text = draw(lambda out: out.table(TABLE, [["a\nb…", 1, "日本 é", "x"]]), terminal=False, encoding=encoding)

    assert text.splitlines()[1] == "a\\nb...      1  \\u65e5\\u672c \\xe9  x"
    assert text.isascii()


def test_prose_wraps_at_words_on_a_terminal_only() -> None:
    """A line is wrapped with a hanging indent on a terminal, and left whole in a pipe."""
    told = "one two three four five sixandsevenandeightandnine"

    assert draw(lambda out: out.line(told, indent=2, hang=2), width=20).splitlines() == [
        "  one two three four", "    five sixandseven", "    andeightandnine",
    ]  # fmt: skip
    assert draw(lambda out: out.line(told, indent=2, hang=2), terminal=False) == f"  {told}\n"


def test_a_block_counts_what_it_leaves_out() -> None:
    """A long text is shown in part on a terminal and whole in a pipe, tabs and trailing blanks included."""
    left: list[int] = []
    shown = draw(lambda out: left.append(out.block("a\n\tb  \nc\nd", indent=1, most=2)))
    whole = draw(lambda out: left.append(out.block("a\n\tb  \nc\nd", indent=1, most=2)), terminal=False)

    assert (shown, whole, left) == (" a\n     b\n", " a\n \tb  \n c\n d\n", [2, 0])


def test_talk_goes_to_its_own_stream() -> None:
    """Hints never mix with the answer."""
    out, talk = io.StringIO(), io.StringIO()
    Printer(out, talk, terminal=True).hint("try\x1b this")

    assert (out.getvalue(), talk.getvalue()) == ("", "try\\x1b this\n")


def test_a_closed_pipe_is_let_out() -> None:
    """The printer does not swallow a broken pipe; the command decides what it means."""

    class _Closed(io.StringIO):
        def write(self, s: str, /) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Printer(_Closed(), io.StringIO(), terminal=False).line("x")


def test_a_pipe_never_loads_rich() -> None:
    """Drawing into a pipe, wide characters included, imports nothing that is only for terminals."""
    code = (
        "import sys; from ctxmgr.cli.terminal import Column, printer\n"
        "import ctxmgr.cli.views.entries, ctxmgr.cli.views.findings, ctxmgr.cli.views.sessions\n"
        "out = printer(); out.table((Column('A'), Column('B')), [['日本', 'x']]); out.line('漢字'); out.rule('é')\n"
        "print(sorted({'rich', 'pydantic'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT, encoding="utf-8")

    assert ran.stdout.splitlines()[-1] == "[]"
    assert re.search(r"^日本  x$", ran.stdout, re.MULTILINE)
