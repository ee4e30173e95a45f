"""Names of one kind are offered for one of that kind."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Said, bash, evidence, failed, require_told


def test_only_tables_are_offered_and_another_database_is_looked_into() -> None:
    """The words of the call that lists tables are no tables; the file of another database is named."""
    told = diagnose(
        evidence(
            Said("How many kWh has site 4 used?"),
            bash("cat meter.ini", "; meter.db is frozen\ndb = var/live-2026.db"),
            bash("sqlite3 var/old/meter.db .tables", "site"),
            *[failed('sqlite3 var/old/meter.db "select kwh from reading"', "Error: in prepare, no such table: reading")] * 3,
        )
    )

    assert told is not None
    assert "The record knows `site`." in told.cause
    assert "var/live-2026.db" in told.next_step
    assert "kWh" not in told.next_step


def test_the_only_remote_and_its_main_branch_are_named() -> None:
    """Where the record lists one remote, that one is meant; the agent's own branch is not what it is put on."""
    gone = "fatal: 'origin' does not appear to be a git repository\nfatal: Could not read from remote repository."
    known = evidence(
        bash("git remote -v", "depot\t/srv/git/a.git (fetch)\ndepot\t/srv/git/a.git (push)"),
        bash("git branch -a", "  base\n* ida/cache\n  remotes/depot/base\n  remotes/depot/ida/cache"),
        failed("git rebase origin/master", "fatal: invalid upstream 'origin/master'"),
        *[failed("git fetch origin", gone)] * 3,
    )

    require_told(known, "unknownReference", ["`depot`", "`base`"], ["`depot` in place of `origin`", "`depot/base`"])


def test_a_branch_of_several_remotes_is_not_chosen() -> None:
    """With two remotes, the record does not show which one is meant."""
    told = diagnose(
        evidence(
            bash("git remote", "depot\nmirror"),
            *[failed("git fetch origin", "fatal: 'origin' does not appear to be a git repository")] * 3,
        )
    )

    assert told is not None
    assert "ask the user" in told.next_step
