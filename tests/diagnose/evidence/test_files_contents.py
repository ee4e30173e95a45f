"""The last that is known of a file: as it was read or written, with the edits since, and the numbers of its lines."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.files import Content, clean_line, find_last_content
from tests.diagnose.build import Call, bash, edit, evidence, read

TEXT = "import tax\n\ntotal = 0\n"


def known(*calls: Call, path: str = "shop/cart.py") -> Content | None:
    """Return what is known of a file after these calls."""
    record = evidence(*calls, found=False)
    return find_last_content(record.entries, path, record.text)


@pytest.mark.parametrize(
    ("call", "first", "whole"),
    [
        (read("shop/cart.py", TEXT), 1, True), (bash("cat shop/cart.py", TEXT), 1, True),
        (bash("cd shop && nl cart.py", "1\timport tax\n2\t\n3\ttotal = 0"), 1, True),
        (bash("head -3 shop/cart.py", TEXT), 1, False), (bash("sed -n '7,9p' shop/cart.py", TEXT), 7, False),
        (Call("Write", {"file_path": "shop/cart.py", "content": TEXT}, "done"), 1, True),
        (Call("Read", {"file_path": "shop/cart.py", "offset": 7}, "7\timport tax\n8\t\n9\ttotal = 0"), 7, False),
    ],
)  # fmt: skip
def test_a_file_is_known_from_a_look_or_a_write(call: Call, first: int, whole: bool) -> None:
    """By whatever tool, with the number of its first line."""
    found = known(call)

    assert found is not None
    assert [line for line in found.lines if line] == ["import tax", "total = 0"]
    assert (found.first, found.whole) == (first, whole)
    assert found.find_line_numbers("total = 0") == [first + 2]


@pytest.mark.parametrize(
    "call",
    [
        bash("cat shop/cart.py > b", TEXT), bash("cat shop/cart.py b.py", TEXT), bash("cat a.py; cat shop/cart.py", TEXT),
        bash("wc -l shop/cart.py", TEXT), bash("cat shop/cart.py", TEXT, "error"), read("other/cart.txt", TEXT),
        Call("Read", {"file_path": "shop/cart.py"}, TEXT, "open"), bash("sed -n '$p' shop/cart.py", TEXT),
    ],
)  # fmt: skip
def test_what_shows_something_else_tells_nothing_of_it(call: Call) -> None:
    """A second file, another output, or a look that failed."""
    assert known(call) is None


def test_later_edits_are_worked_in() -> None:
    """One that failed is not; what may have changed the file otherwise makes it doubtful."""
    found = known(
        read("shop/cart.py", TEXT), edit("shop/cart.py", "total = 0", "total = 1"), edit("shop/cart.py", "x", "y", "no")
    )
    assert found is not None
    assert (found.find_line_numbers("total = 1"), found.edits, found.doubtful) == ([3], 1, False)
    changed = known(read("shop/cart.py", TEXT), bash("git checkout shop/cart.py"))
    assert changed is not None
    assert changed.doubtful


def test_a_line_is_quoted_without_what_steers() -> None:
    """Tabs stay, for edits are compared with them."""
    assert clean_line("\ta\tb") == "\ta\tb"
    assert not {"\x1b", "\u202e"} & set(clean_line("\x1b[31mred\u202e\tend"))
