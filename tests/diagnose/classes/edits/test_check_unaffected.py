"""Checks that run another file than the one which is edited."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import edit, evidence, failed


@pytest.mark.parametrize(
    ("other", "built"),
    [
        ("src/layout/page.py", False), ("src/eggs_and_more/page.py", False), ("src/mylib/page.py", False),
        ("src/rebuild/page.py", False),
        ("out/page.py", True), ("src/lib/page.py", True), ("venv/shop-1.0-py3.11.egg/shop/page.py", True),
    ],
)  # fmt: skip
def test_only_whole_names_of_folders_hold_built_copies(other: str, built: bool) -> None:
    """A folder whose name ends like one for built copies holds a file of its own, which no build makes."""
    check = failed(
        "python -m app.check",
        f'Traceback (most recent call last):\n  File "{other}", line 4, in show\nValueError: no such page',
    )
    edits = [edit("src/app/page.py", f"a = {n}", f"a = {n + 1}") for n in range(3)]
    told = diagnose(evidence(check, edits[0], check, edits[1], check, edits[2], check))

    assert told is not None
    assert told.kind == "testUnaffected"
    assert ("Build or install anew" in told.next_step) == built
