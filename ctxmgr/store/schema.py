"""The tables of a store, as numbered migrations.

``record`` is the truth: one row a record of the log, body as written. All other tables are derived from it; what they
hold of names that filters compare (agent, action, input type, tag) is folded, see `ctxmgr.store.folding.fold`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LATEST = 1

_FIRST = """
CREATE TABLE session (
  key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, workflow TEXT, source TEXT, meta TEXT,
  entries INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0, first REAL, last REAL);
CREATE TABLE process (
  session INTEGER NOT NULL REFERENCES session(key), process TEXT NOT NULL, seq INTEGER NOT NULL,
  started TEXT, outcome TEXT, PRIMARY KEY (session, process)) WITHOUT ROWID;
CREATE TABLE record (
  seq INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES session(key), kind TEXT NOT NULL, id TEXT NOT NULL,
  ts REAL, body TEXT NOT NULL, sum TEXT);
CREATE UNIQUE INDEX record_once ON record (session, kind, id);
CREATE INDEX record_by_id ON record (id, kind);
CREATE INDEX record_in_order ON record (session, seq);
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY REFERENCES record(seq), session INTEGER NOT NULL, idx INTEGER NOT NULL,
  agent TEXT NOT NULL, action TEXT NOT NULL, input_type TEXT, process TEXT,
  ts REAL, status TEXT NOT NULL, result INTEGER, UNIQUE (session, idx));
CREATE INDEX entry_by_action ON entry (session, action, idx);
CREATE INDEX entry_by_agent ON entry (session, agent, idx);
CREATE INDEX entry_by_status ON entry (session, status, idx);
CREATE TABLE event (
  seq INTEGER PRIMARY KEY REFERENCES record(seq), session INTEGER NOT NULL, type TEXT NOT NULL, agent TEXT,
  entry TEXT, after INTEGER, ts REAL);
CREATE INDEX event_in_order ON event (session, seq);
CREATE INDEX event_by_entry ON event (session, entry) WHERE entry IS NOT NULL;
CREATE TABLE note_entry (
  session INTEGER NOT NULL, entry TEXT NOT NULL, note INTEGER NOT NULL, PRIMARY KEY (session, entry, note)) WITHOUT ROWID;
CREATE TABLE note_tag (
  session INTEGER NOT NULL, tag TEXT NOT NULL, note INTEGER NOT NULL,
  PRIMARY KEY (session, tag, note)) WITHOUT ROWID;
CREATE TABLE superseded (
  session INTEGER NOT NULL, note TEXT NOT NULL, successor TEXT NOT NULL, PRIMARY KEY (session, note)) WITHOUT ROWID;
CREATE TABLE folded (seq INTEGER PRIMARY KEY REFERENCES record(seq), text TEXT NOT NULL);
CREATE TABLE lease (session TEXT PRIMARY KEY, holder TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE imported (
  path TEXT PRIMARY KEY, format TEXT NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL, inode INTEGER NOT NULL,
  head TEXT NOT NULL, session TEXT NOT NULL, report TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE damage (offset INTEGER PRIMARY KEY, length INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""

SCRIPTS = (("001_first", _FIRST),)
"""Name of each migration and what it runs, in order."""


def apply(database: Any) -> None:
    """Apply what is missing to a sqlite_utils Database; called inside a transaction, nests by savepoint."""
    from sqlite_utils import Migrations

    migrations = Migrations("ctxmgr")
    for name, script in SCRIPTS:
        migrations(name=name)(_runner(script))
    migrations.apply(database)


def _runner(script: str) -> Callable[[Any], None]:
    def run(db: Any) -> None:
        for statement in _statements(script):
            db.execute(statement)

    return run


def make(execute: Callable[[str], object]) -> None:
    """Make all tables in a database that is used once and never migrated, without the library that keeps count."""
    for _, script in SCRIPTS:
        for statement in _statements(script):
            execute(statement)


def _statements(script: str) -> list[str]:
    # One statement at a time: executescript would commit the transaction that this runs in.
    return [statement for statement in script.split(";\n") if statement.strip()]
