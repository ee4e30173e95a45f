"""Edits without effect, because another file decides."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, bash, edit, evidence, failed

FAILS = failed("pytest -q tests/test_limits.py", "assert limit() == 50\nAssertionError: assert 10 == 50")
SHOWN = "app/base.py:2:MAX_ROWS = 10\napp/site.py:7:MAX_ROWS = 10\napp/boot.py:3:from app.site import *"


def _steps(value: str) -> list[Call]:
    edits = [edit("app/base.py", f"MAX_ROWS = {a}", f"MAX_ROWS = {b}") for a, b in ((10, 50), (50, 0x33), (0x33, 50))]
    look = bash("grep -rn MAX_ROWS app/", SHOWN.replace("site.py:7:MAX_ROWS = 10", f"site.py:7:MAX_ROWS = {value}"))
    return [look, FAILS, *(step for each in edits for step in (each, FAILS))]


def test_another_file_that_keeps_the_old_value_is_named() -> None:
    """It gives the name the value from before the edits, and a line shows that it is read."""
    told = diagnose(evidence(*_steps("10")))

    assert told is not None
    assert told.kind == "madeElsewhere"
    assert "`app/site.py` gives `MAX_ROWS` a value too" in told.cause
    assert "from app.site import *" in told.cause

    other = diagnose(evidence(*_steps("90")))
    assert other is None or "app/site.py" not in other.cause
