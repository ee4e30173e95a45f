"""Tables and views are read from their definitions."""

from __future__ import annotations

from ctxmgr.diagnose.classes.names.table_definitions import list_definitions


def test_views_and_tables_are_told_with_their_columns() -> None:
    """Names after AS, no keys and constraints, and commas within brackets separate nothing."""
    text = (
        'CREATE TABLE IF NOT EXISTS "leg"(id INTEGER PRIMARY KEY, price DECIMAL(8, 2), FOREIGN KEY (id) REFERENCES a(id));\n'
        "create or replace view v_leg as select l.id, max(l.price, 0) AS most FROM leg l;\nSELECT 1;"
    )

    assert list(list_definitions(text)) == [("v_leg", ["id", "most"]), ("leg", ["id", "price"])]
