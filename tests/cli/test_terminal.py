"""The printer: widths, colours, encodings, pipes."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxmgr.cli.terminal import Column, Printer, Span, printer
from ctxmgr.cli.views.safe_text import cells
from tests.cli.view_samples import draw, screen_lines

ROOT = Path(__file__).parents[2]

TABLE = (
    Column("ID", give=1, least=4),
    Column("COUNT", right=True),
    Column("NAME", fill=True, least=10),
    Column("SOURCE", give=2, least=4, optional=True),
)
ROWS = [["abcdefgh", 7, "a name of some length that has to give way", "claude-code"], ["xy", 12345, "短い名前", "codex"]]


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
    monkeypatch.setattr(sys, "stdout", Terminal() if terminal else io.StringIO())

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
