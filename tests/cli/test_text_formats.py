"""Rows as text for other programs: what stands in a value breaks neither a row nor a cell."""

from __future__ import annotations

import re

import pytest

from tests.cli.console import run

pytestmark = pytest.mark.usefixtures("history")


def test_markdown_cells_stay_cells() -> None:
    """A bar, a backslash and a line break in a value break neither a row nor a cell of a Markdown table."""
    run("note", "add", "0", "-m", "a|b\\|c\nd")
    header, _, *rows = run("note", "list", "--format", "md").out.splitlines()

    assert len(rows) == 2
    assert {len(re.split(r"(?<!\\)(?:\\\\)*\|", row)) for row in (header, *rows)} == {len(header.split("|"))}
