"""Where the number before a line ends, and the line begins: told by the whole view, for each client's form of it."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.files import find_last_content
from ctxmgr.diagnose.evidence.numbered_lines import read_numbered_lines
from tests.diagnose.build import Call, bash, evidence

TEXT = ("class Rounding:", "", "    def line(self):", "        return 1", "")
FORMS = {
    "Claude Code": "{:>6}→{}", "Claude Code 2": "{}\t{}", "cat -n": "{:>6}\t{}", "opencode": "{:05}| {}",
    "opencode 2": "{}: {}",
    "Cursor": "{:>6}|{}", "SWE-agent": "{}:{}", "SWE-agent, padded": "{:>6}: {}", "two blanks": "{:>4}  {}", "bat": "{:>4} {}",
    "four blanks": "{:>6}    {}",
}  # fmt: skip


def shown(form: str, lines: tuple[str, ...] = TEXT, first: int = 1) -> list[str]:
    """Return lines as a client shows them."""
    return [FORMS[form].format(number, line) for number, line in enumerate(lines, first)]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_each_line_keeps_its_own_blanks(form: str, cut: bool) -> None:
    """Of a whole file, with lines of the client around it, and where it cuts off blanks at the end of a line."""
    lines = [line.rstrip() if cut else line for line in shown(form)]

    assert read_numbered_lines(["[File: /shop/rounding.py]", *lines, "(3 lines more)"]) == (1, TEXT)


@pytest.mark.parametrize("form", [form for form in FORMS if "blanks" not in form and form != "bat"])
def test_a_part_in_which_every_line_is_indented_keeps_its_blanks(form: str) -> None:
    """A sign ends the number, and the blank after it makes the number of blanks odd."""
    assert read_numbered_lines(shown(form, TEXT[2:4], 9)) == (9, TEXT[2:4])


@pytest.mark.parametrize("form", ["two blanks", "bat", "four blanks"])
def test_other_views_show_where_a_line_begins(form: str) -> None:
    """Where only blanks end a number, a part without a line at the margin does not; then nothing is claimed."""
    part = shown(form, (*TEXT[2:4], "        # end"), 9)

    assert read_numbered_lines(part) == (9, ())
    assert read_numbered_lines(part, [shown(form)]) == (9, (*TEXT[2:4], "        # end"))


@pytest.mark.parametrize(
    "lines",
    [
        ["def f():", "    return 1"], ["5 apples", "2 pears"],
        ["1 apple", "2 pears", "3 plums"], ["12:30 start", "12:45 break"],
        ["   5 apples", "  20 pears", "   7 plums"], ["2024-01-01", "2024-01-02"], ["1. Open it", "2. Close it"],
        ["x = 1", "1: y"], ["2024  18220900", "2025  20117755"],
    ],
)  # fmt: skip
def test_numbers_of_the_file_itself_stay(lines: list[str]) -> None:
    """Counts, times, dates and lists are no numbers of lines."""
    assert read_numbered_lines(lines) is None


def test_a_later_part_of_a_file_is_read_with_the_column_of_an_earlier_view() -> None:
    """The same tool shows both, so both have the same column."""
    whole, part = "\n".join(shown("two blanks")), "\n".join(shown("two blanks", (*TEXT[2:4], "        # end"), 3))
    record = evidence(
        Call("view_file", {"path": "tax.py"}, whole), Call("view_file", {"path": "shop/line.py", "from": 3, "to": 5}, part)
    )
    found = find_last_content(record.entries, "shop/line.py", record.text)

    assert found is not None
    assert (found.first, found.lines) == (3, (*TEXT[2:4], "        # end"))


@pytest.mark.parametrize(
    ("command", "lines"),
    [("cat ids.tsv", ("1\tred", "2\tblue")), ("cat -n ids.tsv", ("red", "blue")), ("bat -n ids.tsv", ("red", "blue"))],
)
def test_a_command_that_puts_no_numbers_before_lines_shows_those_of_the_file(command: str, lines: tuple[str, ...]) -> None:
    """Plain `cat` prints a file as it is."""
    record = evidence(bash(command, "1\tred\n2\tblue"))
    found = find_last_content(record.entries, "ids.tsv", record.text)

    assert found is not None
    assert found.lines == lines


def test_signs_of_what_is_invisible_are_no_content() -> None:
    """`cat -A` shows the ends of lines by signs, which an edit must not copy."""
    record = evidence(bash("cat -A shop/cart.py", "import tax^M$\ntotal = 0^M$"))

    assert find_last_content(record.entries, "shop/cart.py", record.text) is None
