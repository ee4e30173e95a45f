"""An error in another place than the one that is edited: that place is told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.classes.edits import error_elsewhere
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import bash, edit, evidence, failed, require_told

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


_ERROR = failed("npx tsc", "src/b.ts(12,5): error TS2322: Type 'string' is not assignable.")


def test_a_change_in_place_by_a_command_counts() -> None:
    """Under the name by which an editing tool names the file."""
    steps = [edit("/home/dev/shop/src/a.ts", "1", "2"), _ERROR, bash("sed -i 's/2/3/' src/a.ts && git diff --stat"), _ERROR]
    told = error_elsewhere.diagnose(
        evidence(*steps, edit("src/c.ts", "1", "2"), _ERROR, edit("src/d.ts", "1", "2"), _ERROR, loop=8)
    )

    assert told is not None
    assert "Your 4 changes" in told.cause
    assert "src/a.ts`, `src/c.ts` and 1 more" in told.cause


@pytest.mark.parametrize(
    "command", ["sed -i 's/2/3/' src/b.ts", "sed -n 3p src/a.ts && sed -i.bak -e s/2/3/ ./src/b.ts; npm test"]
)
def test_an_error_in_a_file_that_a_command_changed_is_not_elsewhere(command: str) -> None:
    """The last change may be the fault."""
    steps = [edit("src/a.ts", "1", "2"), _ERROR, edit("src/a.ts", "2", "3"), bash(command), _ERROR]

    assert error_elsewhere.diagnose(evidence(*steps, _ERROR, loop=6)) is None


def test_substitutions_alone_do_not_show_where_the_fault_is_looked_for() -> None:
    """They may have changed nothing; another cause may say more."""
    steps = [bash("sed -i 's/2/3/' src/a.ts"), _ERROR, bash("sed -i 's/3/4/' src/a.ts"), _ERROR]

    assert error_elsewhere.diagnose(evidence(*steps * 2, loop=8)) is None
