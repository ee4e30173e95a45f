"""A rule of the data that a write breaks: rule and value are told."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Call, Said, bash, edit, evidence, failed, require_told

THRICE = 3


KEEP = "The files in release/notes/ stay as they are; each change comes in a new file of its own with the next number."


def test_edits_of_files_that_stay_as_they_are_lead_to_the_next_number() -> None:
    """The user's way is told, with the number after the last one in the folder, and what the edit adds."""
    listing = bash("ls release/notes", "007-fix.md\n008-api.md")
    tries = [
        edit(f"release/notes/{name}", "end", "end\nNew: dark mode", "The user rejected this edit")
        for name in ("007-fix.md", "008-api.md")
    ]
    known = evidence(Said(KEEP), listing, *tries, loop=2)

    require_told(known, "constraintBroken", ["stay as they are"], ["`009`", "file of its own", "New: dark mode"])


def test_a_new_file_breaks_no_rule_about_those_that_are_there() -> None:
    """A file that nobody has seen before is no change of the files that stay."""
    new = Call("Write", {"file_path": "release/notes/009-mode.md", "content": "x"}, "Disk quota exceeded", "error")
    told = diagnose(evidence(Said(KEEP), bash("ls release/notes", "007-fix.md\n008-api.md"), new, new, new))

    assert told is None or told.kind != "constraintBroken"


STATUS = " M src/a.py\n M vendor/lib.py"
REFUSED = failed("git commit -am Rename", "pre-commit: rejected, this touches what is not yours")


@pytest.mark.parametrize("rule", ["Keep vendor/ untouched.", "Leave vendor/ as it is."])
def test_a_refused_commit_with_files_that_must_stay_is_told_to_restore_them(rule: str) -> None:
    """The changed files under the user's rule are named from the last look with git."""
    change = bash("sed -i s/a/b/ src/*.py vendor/*.py")
    known = evidence(Said(f"Rename a to b. {rule}"), change, bash("git status -s", STATUS), *[REFUSED] * 3)

    require_told(known, "constraintBroken", ["`vendor/lib.py`", rule], ["git restore --staged --worktree vendor/lib.py`"])


def test_changes_from_before_the_agent_s_own_are_not_to_be_restored() -> None:
    """They may be the user's work."""
    change = bash("sed -i s/a/b/ src/*.py")
    look = bash("git status -s", STATUS)
    told = diagnose(evidence(Said("Rename a to b. Keep vendor/ untouched."), look, change, *[REFUSED] * 3))

    assert told is None or "git restore" not in told.next_step


def test_a_limit_of_one_thing_is_none_of_another() -> None:
    """A number that the user gave is not over the limit that stands beside it."""
    orders = Said("Greenhouse 1: heating 16.5 °C, vents max 10 %, from now on.")
    refused = Call("point_write", {"point": "heating", "value": 16.5}, "write refused", "error")
    told = diagnose(evidence(orders, *[refused] * THRICE))

    assert told is None or told.kind != "constraintBroken"


def test_a_number_over_the_limit_of_the_user_is_told() -> None:
    """The same limit with a number that the user has not given."""
    orders = Said("Vents max 10 % from now on.")
    refused = Call("point_write", {"point": "vents", "value": 25}, "write refused", "error")

    require_told(evidence(orders, *[refused] * THRICE), "constraintBroken", ["`25`", "max 10 %"], ["at most 10"])
