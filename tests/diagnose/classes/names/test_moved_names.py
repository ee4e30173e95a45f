"""A column that was dropped, renamed or moved: the record's own word about it comes before any name that looks alike."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.names.moved_names import list_definitions
from tests.diagnose.build import Call, bash, evidence, failed, require_told

BASE = "CREATE TABLE parcel(id int, carrier text, booked_at text);\nCREATE TABLE promise(parcel_id int, window_to text);"
SPLIT = (
    "-- handover is kept per leg, the flat columns on parcel go away\n"
    "CREATE TABLE leg(parcel_id int, seq int, arrived_at text);\n"
    "CREATE VIEW v_last_leg AS SELECT parcel_id, MAX(seq) AS seq, arrived_at AS drop_ts FROM leg GROUP BY parcel_id;"
)
ASKED = [
    failed(f'sqlite3 p.db "SELECT p.{name} FROM parcel p"', f"Error: no such column: p.{name}")
    for name in ("pod_at", "delivered_at")
]


def steps(*looks: str) -> list[Call]:
    """Return looks at these texts, and the failing queries."""
    return [*[bash(f"cat schema/{number}.sql", text) for number, text in enumerate([BASE, *looks])], *ASKED]


def test_what_a_comment_says_of_the_table_is_quoted_with_what_took_its_place() -> None:
    """The view and the table that the same text makes belong to the table by its key."""
    require_told(
        evidence(*steps(SPLIT), found=False), "unknownReference",
        ["the columns of `parcel`", "go away", "`v_last_leg`", "`drop_ts`"],
        ["`v_last_leg` and `leg`", "by `parcel_id`"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE parcel RENAME COLUMN delivered_at TO drop_ts;", "ALTER TABLE parcel\n  RENAME delivered_at TO drop_ts;",
        "rename_column :parcel, :delivered_at, :drop_ts", "- `delivered_at` is now `drop_ts`",
        "a1b2c3 Rename delivered_at to drop_ts",
    ],
)  # fmt: skip
def test_a_new_name_is_used(text: str) -> None:
    """Of a migration, a changelog or the log of the project."""
    require_told(
        evidence(*steps(text), found=False), "unknownReference", ["says of that column"], ["Use `drop_ts`, which took"]
    )


@pytest.mark.parametrize(
    "text", ["ALTER TABLE parcel DROP COLUMN delivered_at;", "- parcel.delivered_at was removed in 2.0, see the hub API"]
)
def test_a_dropped_column_is_told(text: str) -> None:
    """Without a new name the place that says so is read."""
    require_told(evidence(*steps(text), found=False), "unknownReference", [text[:20]], ["took its place", "looks alike"])


def test_a_renamed_table_is_told() -> None:
    """A table is moved by the same words."""
    require_told(
        evidence(
            bash("cat 7.sql", "ALTER TABLE shipment RENAME TO parcel;"), bash("sqlite3 p.db .tables", "leg parcel"),
            *[failed('sqlite3 p.db "select 1 from shipment"', "Error: no such table: shipment")] * 2, found=False,
        ),
        "unknownReference", ["says of that table"], ["Use `parcel`"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE promise DROP COLUMN delivered_at;", "ALTER TABLE promise\n  RENAME COLUMN delivered_at TO drop_ts;",
        "promise.delivered_at was removed",
        "-- up\nALTER TABLE parcel ADD COLUMN delivered_at;\n-- down\nALTER TABLE parcel DROP COLUMN delivered_at;",
        "-- the flat columns on promise go away\nCREATE TABLE leg(parcel_id int, seq int);", "delivered_at 3\nbooked_at 4",
        "-- the parcels went out, two columns of pallets\nCREATE TABLE hub(id int);",
    ],
    ids=["other table", "other statement", "other owner", "way back", "other table's columns", "data", "prose"],
)  # fmt: skip
def test_a_word_about_something_else_tells_nothing_of_the_column(text: str) -> None:
    """Another table's column of that name, a migration's way back, or data; and no name is put in place of it by its ending."""
    told = diagnose(evidence(*steps(text), found=False))

    assert told is None or ("says of" not in told.cause and "SELECT p.booked_at" not in told.next_step)
    assert told is None or "Use `booked_at`" not in told.next_step


def test_views_and_tables_are_told_with_their_columns() -> None:
    """Names after AS, no keys and constraints, and commas within brackets separate nothing."""
    text = (
        'CREATE TABLE IF NOT EXISTS "leg"(id INTEGER PRIMARY KEY, price DECIMAL(8, 2), FOREIGN KEY (id) REFERENCES a(id));\n'
        "create or replace view v_leg as select l.id, max(l.price, 0) AS most FROM leg l;\nSELECT 1;"
    )

    assert list(list_definitions(text)) == [("v_leg", ["id", "most"]), ("leg", ["id", "price"])]
