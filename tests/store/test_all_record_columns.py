"""Statements that spell the rows of records out by hand name the columns of the tables and the fields of format 1, all of them.

The one table of the format is `ctxmgr.log.record_schema`. Rows are inserted by ``batch``, ``bulk`` and the functions on a
server, the tables stand in ``schema`` and ``postgresql_schema``, and the views of ``read_query`` read the bodies.
"""

from __future__ import annotations

import re
from contextlib import closing
from inspect import getsource
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

from ctxmgr.log import codec
from ctxmgr.log.record_schema import COMMON, RECORDS
from ctxmgr.store import open_store
from ctxmgr.store.engine import postgresql_functions
from ctxmgr.store.read_query import VIEWS
from ctxmgr.store.write import batch, bulk
from ctxmgr.types.route import Continuation
from tests.builders import entry

OF_FIELDS = {
    "entry": ({"entry"}, {"seq", "session", "idx", "agent", "action", "input_type", "process", "ts", "status", "result"}),
    "event": ({"event"}, {"seq", "session", "type", "agent", "entry", "after", "ts"}),
    "process": ({"session", "sessionEnd"}, {"session", "process", "seq", "started", "outcome"}),
}
"""By table: the kinds whose fields stand in it, and its columns."""

OTHERS = {"seq", "session", "idx", "result", "after", "started"}
"""Columns that are no fields: places, and the time (``ts``) at which a process began."""

INSERTED: dict[str, tuple[ModuleType, ...]] = {
    "record": (batch, bulk, postgresql_functions), "line": (batch, bulk), "entry": (batch, bulk, postgresql_functions),
    "event": (batch, bulk, postgresql_functions), "usage": (batch, bulk, postgresql_functions),
    "milestone": (batch, bulk, postgresql_functions), "note_entry": (batch, postgresql_functions),
    "note_tag": (batch, postgresql_functions), "superseded": (batch, postgresql_functions),
}  # fmt: skip
"""Tables of whose rows every column is given, and the modules that insert them."""

_INSERT = re.compile(r"INSERT (?:OR IGNORE )?INTO (?:\{SCHEMA\}\.)?(\w+)(?: AS \w+)? \(([a-z_, ]+)\)")
_FIELD = re.compile(r"\b(?:own|done|body) ->> '\$\.(\w+)")

UNSHOWN = {
    "entries": {"parent", "timeoutMs", "usage"}, "events": set[str](), "notes": {"links"}, "snapshots": {"hash"},
    "continuations": None, "token_usage": None,
}  # fmt: skip
"""By view: the fields of its records that it leaves out; None where it shows a few."""


def inserted(module: ModuleType) -> dict[str, set[tuple[str, ...]]]:
    """Return, by table, the columns that the statements of a module name."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for table, columns in _INSERT.findall(re.sub(r'"\n\s*f?"', "", getsource(module))):
        found.setdefault(table, set()).add(tuple(columns.split(", ")))
    return found


@pytest.fixture
def columns(server_url: str, tmp_path: Path) -> dict[str, dict[str, set[str]]]:
    """Return the columns of each table: of a database, with those of the index of a log, and of a server."""
    log, file = tmp_path / "a.jsonl", dict[str, set[str]]()
    log.write_bytes(codec.encode(entry("s", 1)) + b"\n")
    for location in (str(log), ":memory:"):
        with closing(open_store(location, create=True)) as store:
            for table in (*INSERTED, *OF_FIELDS, "session"):
                rows = store.engine.query("SELECT name FROM pragma_table_info(:table)", {"table": table})
                file[table] = {str(row[0]) for row in rows} or file[table]
    open_store(server_url, create=True).close()
    server: dict[str, set[str]] = {}
    with psycopg.connect(server_url) as connection:
        for table, name in connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'ctxmgr'"
        ):
            server.setdefault(str(table), set()).add(str(name))
    return {"file": file, "server": server}


@pytest.mark.parametrize("table", INSERTED)
def test_every_insert_names_every_column(table: str, columns: dict[str, dict[str, set[str]]]) -> None:
    """A column that one of the ways to write a row forgets would be empty in rows that came that way."""
    spelled = {module.__name__: inserted(module).get(table, set()) for module in INSERTED[table]}
    wanted = columns["file"][table]
    assert wanted
    for module, shapes in spelled.items():
        assert shapes, module
        assert {frozenset(shape) for shape in shapes} == {frozenset(wanted)}, module
    assert columns["server"].get(table) == (None if table == "line" else wanted)


@pytest.mark.parametrize("table", OF_FIELDS)
def test_columns_of_both_engines_are_fields_of_the_format(table: str, columns: dict[str, dict[str, set[str]]]) -> None:
    """The two schemas agree, and what a table holds beside places is a field of the records that stand in it."""
    kinds, names = OF_FIELDS[table]
    fields = {_snake(name) for kind in kinds for name in {**COMMON, **RECORDS[kind]}}
    assert columns["file"][table] == columns["server"][table] == names
    assert names - OTHERS <= fields


def test_a_session_is_described_by_fields_of_its_record(columns: dict[str, dict[str, set[str]]]) -> None:
    """Whatever a record of kind ``session`` says is kept in the row of the session, or in that of its process."""
    described = set(RECORDS["session"]) - {"process"}
    for place in columns.values():
        assert described <= place["session"]
    assert len(batch.description({"kind": "session"})) == len(described)


@pytest.mark.parametrize("view", UNSHOWN)
def test_views_read_fields_of_the_format(view: str) -> None:
    """Each field that a view takes out of a body is one of its kind, and each of these is shown or said to be left out."""
    kinds = {
        "entries": ("entry", "result"), "events": ("event",), "notes": ("note",), "snapshots": ("snapshot",),
        "continuations": ("continuation",), "token_usage": ("event", "entry", "result"),
    }[view]  # fmt: skip
    fields = {name for kind in kinds for name in {**COMMON, **RECORDS[kind]}} - {"kind", "session"}
    if view == "continuations":
        fields |= {str(field.alias or name) for name, field in Continuation.model_fields.items()}
    read = set(_FIELD.findall(VIEWS[view]))
    of_tables = {"id", "status", "type", "result", *(["entry"] if view == "entries" else [])}
    assert read
    assert read <= fields
    left_out = UNSHOWN[view]
    if left_out is not None:
        assert fields - read - of_tables == left_out


def _snake(name: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)
