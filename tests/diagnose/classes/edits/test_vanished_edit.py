"""An edit that is gone after a check ran: the call that takes it away is told, and what it runs first."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, bash, edit, evidence, failed, read, require_told

FILE = "measure/table.py"
MAKEFILE = "table:\n\t@python3 tools/gen.py\ntest: table\n\t@python3 -m pytest -q tests\nlint:\n\t@ruff check --fix ."
TABLE = "UNITS = {\n    'mi': 1609,\n}"
LISTING = "Makefile\npyproject.toml\nmeasure/table.py\ntools/gen.py\nunits.yaml"
CHECK = failed("make test", "KeyError: 'fur'\n1 failed, 2 passed")
GONE = Call("Bash", {"command": f"grep -c fur {FILE}"}, "0", "error")
SEEN = bash(f"grep -n fur {FILE}", "2:    'fur': 201,")
WRITE = edit(FILE, "    'mi': 1609,", "    'mi': 1609,\n    'fur': 201,")
ROUND = (WRITE, CHECK, GONE)


def test_the_target_that_writes_the_file_is_named() -> None:
    """With its script, and the only file of data in the project."""
    known = evidence(bash("cat Makefile", MAKEFILE), bash("git ls-files", LISTING), CHECK, *ROUND * 2)

    require_told(
        known, "madeElsewhere", ["`make test` takes your change", "`fur`", "first runs `table`", "`python3 tools/gen.py`"],
        ["`tools/gen.py`", "perhaps `units.yaml`"],
    )  # fmt: skip


def test_the_script_shows_what_it_reads() -> None:
    """Then the file of data is no guess."""
    script = read("tools/gen.py", "rows = load('data/units.csv')\nopen('measure/table.py', 'w').write(rows)")
    known = evidence(bash("cat Makefile", MAKEFILE), bash("git ls-files", LISTING), script, CHECK, *ROUND * 2)

    require_told(known, "madeElsewhere", ["`python3 tools/gen.py`"], ["what `tools/gen.py` reads (`data/units.csv`)"])


def test_a_read_of_the_whole_file_shows_that_an_edit_is_gone() -> None:
    """A script of npm runs what is to come before it."""
    manifest = read("package.json", '{"scripts": {"pretest": "node scripts/render.mjs", "test": "jest"}}')
    check = failed("npm test", "Tests: 1 failed")
    known = evidence(manifest, check, *(WRITE, check, read(FILE, TABLE)) * 2)

    require_told(known, "madeElsewhere", ["`    'fur': 201,`".replace("    ", "")], ["`scripts/render.mjs`"])


def test_without_a_manifest_the_call_itself_is_looked_into() -> None:
    """If the same tool has seen the edit before the check."""
    known = evidence(CHECK, *(WRITE, SEEN, CHECK, GONE) * 2)

    require_told(known, "madeElsewhere", ["`make test` takes your change"], ["runs before its own work"])


@pytest.mark.parametrize(
    "steps",
    [
        [WRITE, CHECK, SEEN],
        [WRITE, CHECK],
        [WRITE, CHECK, GONE],
        [WRITE, CHECK, Call("Bash", {"command": "grep -c kilo measure/table.py"}, "0", "error")],
        [WRITE, SEEN, bash("git checkout measure/table.py"), CHECK, GONE],
        [WRITE, SEEN, CHECK, edit(FILE, "    'fur': 201,\n", ""), GONE],
        [WRITE, SEEN, bash("./deploy.sh"), CHECK, GONE],
        [WRITE, SEEN, bash("make lint"), GONE],
        [WRITE, SEEN, CHECK, read(FILE, TABLE.replace("1609,", '1609,\n    "fur": 201'))],
    ],
    ids=["still there", "no look", "other place", "other word", "checkout", "own edit", "two calls", "fixer", "formatted"],
)
def test_an_edit_is_not_called_gone_without_a_sign(steps: list[Call]) -> None:
    """A look that finds it, or that another call explains, tells nothing; nor does one of a shell that sees another place."""
    makefile = [] if GONE in steps and SEEN not in steps else [bash("cat Makefile", MAKEFILE)]
    told = diagnose(evidence(*makefile, CHECK, *steps * 2))

    assert told is None or "takes your change" not in told.cause
