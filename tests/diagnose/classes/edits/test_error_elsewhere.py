"""An error in another place than the one that is edited: that place is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.edits import error_elsewhere
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import edit, evidence, failed, require_told

_UNCOVERED = (
    "error[E0004]: non-exhaustive patterns: `Shape::Ring { .. }` not covered\n  --> draw/src/area.rs:9:11\n   |\n"
    "help: ensure that all possible cases are being handled\n   |\n12 ~         Shape::Line => 0.0,\n"
    "13 ~         Shape::Ring { .. } => todo!(),\n   |\n"
)
SAID: list[tuple[str, Evidence, list[str], list[str]]] = [
    (
        "tsc",
        evidence(
            edit("src/a.ts", "1", "2"),
            failed("npx tsc", "src/b.ts(12,5): error TS2322: Type 'string' is not assignable."),
            edit("src/a.ts", "2", "3"),
            failed("npx tsc", "src/b.ts(12,5): error TS2322: Type 'string' is not assignable."),
            loop=4,
        ),
        ["src/b.ts", "line 12"],
        ["src/b.ts"],
    ),
    (
        "rustc",
        evidence(*[edit("shape/src/lib.rs", "A", "B"), failed("cargo build", _UNCOVERED)] * 3, loop=6),
        ["draw/src/area.rs", "line 9", "`Shape::Ring`"],
        ["draw/src/area.rs", "`Shape::Line => 0.0,`", "`Shape::Ring { .. } => todo!(),`"],
    ),
]


@pytest.mark.parametrize(("known", "cause", "step"), [each[1:] for each in SAID], ids=[each[0] for each in SAID])
def test_a_cause_is_known_in_other_words(known: Evidence, cause: list[str], step: list[str]) -> None:
    """Cause and next step are named as well where another client or tool tells them."""
    require_told(known, error_elsewhere.KIND, cause, step)
