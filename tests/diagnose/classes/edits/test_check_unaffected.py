"""Checks that run another file than the one which is edited, or never see an edit."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import bash, edit, evidence, failed


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


CHECK = failed("npx tsc --noEmit", "src/a.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.")
DONE, UNDONE = edit("src/a.ts", "= s", "= s as any"), edit("src/a.ts", "= s as any", "= s")


def test_an_edit_that_is_undone_before_the_check_runs_is_never_seen() -> None:
    """The known meaning of the error comes after that: no run has had a change."""
    for found in (True, False):
        told = diagnose(evidence(CHECK, *[DONE, UNDONE, CHECK] * 3, found=found))

        assert told is not None
        assert told.kind == "testUnaffected"
        assert "you undo your own change of `src/a.ts`" in told.cause
        assert "none of your" not in told.cause


@pytest.mark.parametrize(
    "steps",
    [
        [DONE, CHECK, UNDONE, CHECK] * 2,
        [DONE, UNDONE, edit("src/a.ts", "b", "c"), edit("src/a.ts", "d", "e"), CHECK] * 2,
        [DONE, UNDONE, bash("npx tsc --noEmit", "")] * 3,
    ],
    ids=["seen in between", "others stay", "it passes"],
)
def test_an_edit_that_a_check_has_seen_is_another_matter(steps: list[Any]) -> None:
    """A run between an edit and its undoing has tried it."""
    told = diagnose(evidence(CHECK, *steps))

    assert told is None or "undo" not in told.cause
