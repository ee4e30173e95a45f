"""Databases of other programs: read whole, with what is still in the log beside them, and never written to."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Damaged
from ctxmgr.history.formats import IMPORTERS
from ctxmgr.log.codec import Record
from ctxmgr.store.engine.foreign_tables import open_tables
from ctxmgr.store.engine.sqlite import sqlite
from ctxmgr.types.import_report import FileCount

(OPENCODE,) = [importer for importer in IMPORTERS if importer.name == "opencode"]


def running(path: Path) -> Any:
    """Return the open connection of a client that writes to its database and has not yet moved its log into it."""
    connection = sqlite.connect(str(path), isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("CREATE TABLE session (id, parent_id, directory, title, version, agent, time_created)")
    connection.execute("CREATE TABLE message (id, session_id, time_created, data)")
    connection.execute("CREATE TABLE part (id, message_id, session_id, time_created, data)")
    connection.execute("INSERT INTO session VALUES ('ses_1', NULL, '/p', 'x', '1', 'build', 1795360988095)")
    connection.execute("INSERT INTO message VALUES ('m1', 'ses_1', 1795360988096, ?)", (json.dumps({"role": "assistant"}),))
    return connection


def add_tool(connection: Any, key: str, status: str, **state: Any) -> None:
    """Add a tool's part, or replace it."""
    part = {"type": "tool", "tool": "bash", "callID": key, "state": {"status": status, **state}}
    connection.execute("DELETE FROM part WHERE id = ?", (key,))
    connection.execute("INSERT INTO part VALUES (?, 'm1', 'ses_1', 1795360988097, ?)", (key, json.dumps(part)))


def read(path: Path) -> tuple[list[Record], list[FileCount]]:
    """Return the records of a database and the counts of its files."""
    counts: list[FileCount] = []
    return [record for group in OPENCODE.groups([path]) for record in OPENCODE.read(group, counts)], counts


def test_what_is_still_in_the_log_beside_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    """The client goes on writing while its database is read; no byte and no file of it changes."""
    path = tmp_path / "opencode.db"
    client = running(path)
    add_tool(client, "c1", "completed", input={"command": "ls"}, output="a", metadata={"exit": 0})
    add_tool(client, "c2", "running", input={"command": "sleep 1"})
    add_tool(client, "c3", "pending", input={})
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert OPENCODE.sniff(path, before["opencode.db"])
    records, counts = read(path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert [record["input"]["command"] for record in records if record["kind"] == "entry"] == ["ls", "sleep 1"]
    assert (counts[0].open, len(counts)) == (1, 2)
    add_tool(client, "c2", "completed", input={"command": "sleep 1"}, output="", metadata={"exit": 3})
    grown, _ = read(path)
    assert [record for record in grown if record["kind"] != "result"] == [r for r in records if r["kind"] != "result"]
    assert [record["status"] for record in grown if record["kind"] == "result"] == ["ok", "error"]
    client.close()


def test_a_closed_database_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    """No side file is made beside a database that lies in a folder for reading only."""
    path = tmp_path / "opencode.db"
    client = running(path)
    add_tool(client, "c1", "running", input={"command": "ls"})
    client.close()
    before = sorted(tmp_path.iterdir())
    assert [record["action"] for record in read(path)[0] if record["kind"] == "entry"] == ["bash"]
    assert sorted(tmp_path.iterdir()) == before


def test_names_of_tables_are_no_queries(tmp_path: Path) -> None:
    """A table may be called anything; what is asked of it is quoted, and a view is no table."""
    path = tmp_path / "odd.db"
    connection = sqlite.connect(str(path))
    connection.execute('CREATE TABLE "a""; DROP TABLE b; --" ("x""y")')
    connection.execute("""INSERT INTO "a""; DROP TABLE b; --" VALUES ('kept')""")
    connection.execute("CREATE VIEW part AS SELECT 1 AS id")
    connection.commit()
    connection.close()
    with open_tables(path) as tables:
        assert list(tables.columns) == ['a"; DROP TABLE b; --']
        assert list(tables.rows('a"; DROP TABLE b; --', ['x"y', "z"])) == [{'x"y': "kept"}]
        assert list(tables.rows("part", ["id"])) == []


def test_what_is_no_database_is_told_so(tmp_path: Path) -> None:
    """Bytes that only begin like a database are damaged, not a fault."""
    path = tmp_path / "no.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
    with pytest.raises(Damaged), open_tables(path):
        pass
    assert not OPENCODE.sniff(path, path.read_bytes())


def test_tables_of_other_forms_are_read(tmp_path: Path) -> None:
    """A table without row numbers comes in its own order; one of a module that only its program has is left out."""
    path = tmp_path / "a.db"
    with closing(sqlite.connect(str(path), isolation_level=None)) as connection:
        connection.execute("CREATE TABLE own (name TEXT PRIMARY KEY, n) WITHOUT ROWID")
        connection.execute("CREATE TABLE usual (n)")
        connection.executemany("INSERT INTO own VALUES (?, ?)", [("b", 1), ("a", 2)])
        connection.executemany("INSERT INTO usual VALUES (?)", [(2,), (1,)])
        connection.execute("PRAGMA writable_schema = ON")
        sql = "CREATE VIRTUAL TABLE other USING nosuch(x)"
        connection.execute("INSERT INTO sqlite_master VALUES ('table', 'other', 'other', 0, ?)", (sql,))

    with open_tables(path) as tables:
        assert list(tables.rows("own", ["n"])) == [{"n": 2}, {"n": 1}]
        assert list(tables.rows("usual", ["n"])) == [{"n": 2}, {"n": 1}]
        assert list(tables.rows("other", ["x"])) == []
        assert sorted(tables.columns) == ["own", "usual"]
