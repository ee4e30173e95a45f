"""Names of one kind are offered for one of that kind."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from tests.diagnose.build import Said, bash, evidence, failed


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
