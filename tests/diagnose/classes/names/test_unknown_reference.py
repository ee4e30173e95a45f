"""Names of one kind are offered for one of that kind."""

from __future__ import annotations

import pytest

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


_SCHEMA = (
    "CREATE TABLE guest(id int, full_name text, arrived_at text, paid_at text);\n"
    "CREATE TABLE stay(id int, guest_id int, room text);\nCREATE TABLE contact(guest_id int, kind text, value text);"
)


@pytest.mark.parametrize(
    ("statement", "column", "cause", "step"),
    [
        (
            "select g.came_at from guest g",
            "g.came_at",
            ["`guest` has", "`paid_at`"],
            "See whether `arrived_at` is meant: the task speaks of `arrived`",
        ),
        ("select g.room from guest g join stay s on s.guest_id=g.id", "g.room", ["`guest` has"], "Take `room` from `stay`"),
        ("select g.phone from guest g join stay s on s.guest_id=g.id", "g.phone", [], "Look into `contact`"),
    ],
    ids=["word of the task", "other table of the query", "table that refers to it"],
)
def test_the_columns_of_the_table_behind_an_alias_are_told(statement: str, column: str, cause: list[str], step: str) -> None:
    """The task's words choose among them; else another table of the query, or one that belongs to it, has the column."""
    known = evidence(
        Said("Who arrived at noon?"),
        bash("sqlite3 inn.db .schema", _SCHEMA),
        *[failed(f'sqlite3 inn.db "{statement}"', f"Error: in prepare, no such column: {column}")] * 3,
    )

    require_told(known, "unknownReference", cause, [step])


def test_the_columns_that_were_tried_are_told_although_the_last_call_names_an_unknown_table() -> None:
    """One look for another table does not hide what the calls before it had in common."""
    calls = [failed(f'sqlite3 inn.db "select {name} from guest"', f"Error: no such column: {name}") for name in ("eta", "came")]
    last = failed('sqlite3 inn.db "select 1 from visits"', "Error: no such table: visits")
    known = evidence(Said("Who arrived at noon?"), bash("sqlite3 inn.db .schema", _SCHEMA), *calls, last, found=False)

    require_told(known, "unknownReference", ["`came`", "`eta`", "`guest`"], ["`arrived_at`"])


def test_the_table_with_most_words_of_the_task_is_looked_into_first() -> None:
    """The columns of each table show what it is about."""
    known = evidence(
        Said("Which guest has paid for the room?"),
        bash(
            "sqlite3 inn.db .schema",
            "CREATE TABLE stay(id int, guest_id int, paid int);\nCREATE TABLE staff(id int, room int);",
        ),
        *[failed('sqlite3 inn.db "select 1 from booking"', "Error: no such table: booking")] * 3,
    )

    require_told(known, "unknownReference", ["`staff` and `stay`"], ["Look into `stay`", "`guest` and `paid`"])
