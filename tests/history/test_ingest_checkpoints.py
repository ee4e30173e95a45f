"""The checkpoints of LangGraph's PostgreSQL saver are imported from its database, and nothing is written or left anywhere."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ctxmgr.errors import Denied, InvalidInput
from ctxmgr.history.ingest import import_logs, require_logs
from ctxmgr.store import Store
from ctxmgr.store.engine.postgresql_url import printable_location
from ctxmgr.types.import_report import ImportReport
from tests.cli.console import run
from tests.history.logs import bring_in, by_session, entries, fresh

ROWS = Path(__file__).parents[2] / "fixtures" / "formats" / "langgraph-rows" / "writes.jsonl"
SECRET = "gehe-im"

# As migrations of langgraph-checkpoint-postgres 3.1 make it.
_TABLE = """CREATE TABLE checkpoint_writes (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL,
    idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, blob BYTEA NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))"""
_PATHS = "ALTER TABLE checkpoint_writes ADD COLUMN task_path TEXT NOT NULL DEFAULT ''"
_INSERT = "INSERT INTO checkpoint_writes SELECT * FROM json_populate_record(NULL::checkpoint_writes, %s)"


def written() -> list[dict[str, Any]]:
    """Return the recorded rows of one thread in the order in which the saver wrote them."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()]


@pytest.fixture
def saver(server_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection to a database with the empty table of a saver, which is dropped afterwards."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS checkpoint_writes")
        connection.execute(_TABLE)
        connection.execute(_PATHS)
        yield connection
        connection.execute("DROP TABLE checkpoint_writes")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the empty folder in which temporary files are made."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    return made


def put(saver: psycopg.Connection[Any], rows: list[dict[str, Any]]) -> None:
    """Let the saver have written rows."""
    for row in rows:
        saver.execute(_INSERT, (json.dumps(row),))


def exported_to(folder: Path) -> str:
    """Return the path of the exported rows, named after their table, for a session knows its file's name."""
    return str(shutil.copy(ROWS, folder / "checkpoint_writes.jsonl"))


def take(store: Store, url: str, **options: Any) -> ImportReport:
    """Import from a database."""
    return import_logs(store, [url], home=Path("/nowhere"), environment={}, **options)


def test_a_database_tells_what_its_exported_rows_tell(
    saver: psycopg.Connection[Any], server_url: str, tmp_path: Path, folder: Path
) -> None:
    """Each thread is a session; the report names the database, and no temporary file is left or remembered."""
    put(saver, written() + [{**row, "thread_id": "thread-2"} for row in written()])
    store, other = fresh(tmp_path), fresh(tmp_path, "other.db")
    heard: list[tuple[int, int]] = []

    def hear(done: int, total: int, place: Path) -> None:
        heard.append((done, total))

    report = take(store, server_url, progress=hear)
    exported = bring_in(other, Path(exported_to(tmp_path)))
    assert by_session(store)["thread-1"] == by_session(other)["thread-1"]
    assert report.sessions == ["thread-1", "thread-2"]
    assert (report.added + report.doubles, report.entries, report.unknown) == (2 * exported.added, 2 * exported.entries, {})
    assert {(file.path, file.format) for file in report.files} == {(printable_location(server_url), "langgraph-rows")}
    assert heard[0][0] == 0
    assert heard[-1][0] == heard[-1][1] > 0
    assert list(folder.iterdir()) == []
    assert store.imported.reports() == []


def test_only_what_is_new_is_added(saver: psycopg.Connection[Any], server_url: str, tmp_path: Path) -> None:
    """A run that goes on, read in its middle and at its end, is the same as the whole run read once."""
    rows = written()
    store, whole = fresh(tmp_path), fresh(tmp_path, "whole.db")
    put(saver, rows[:7])
    first = take(store, server_url)
    assert first.added > 0
    assert take(store, server_url).added == 0
    put(saver, rows[7:])
    rest = take(store, server_url)
    assert take(whole, server_url).added == first.added + rest.added
    assert rest.added > 0
    assert entries(store) == entries(whole)
    assert take(store, server_url).added == 0


def test_an_older_saver_and_another_way_to_show_bytes(saver: psycopg.Connection[Any], server_url: str, tmp_path: Path) -> None:
    """A table without the paths of tasks is read, of a schema that the URL names, whatever the database shows bytes as."""
    put(saver, written())
    saver.execute("DROP SCHEMA IF EXISTS older CASCADE; CREATE SCHEMA older")
    saver.execute("CREATE TABLE older.checkpoint_writes AS TABLE checkpoint_writes")
    saver.execute("ALTER TABLE older.checkpoint_writes DROP COLUMN task_path; DELETE FROM checkpoint_writes")
    report = take(fresh(tmp_path), f"{server_url}&options=-csearch_path%3Dolder%20-cbytea_output%3Descape")
    saver.execute("DROP SCHEMA older CASCADE")
    assert (report.sessions, report.unknown) == (["thread-1"], {})
    assert report.entries > 0


def test_a_role_that_may_only_read_is_enough(saver: psycopg.Connection[Any], server_url: str, tmp_path: Path) -> None:
    """One that may not even read is told who can help."""
    put(saver, written())
    saver.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN")
    url = server_url.replace("tester@", "reader@")
    try:
        with pytest.raises(Denied, match="permission denied"):
            take(fresh(tmp_path), url)
        saver.execute("GRANT SELECT ON checkpoint_writes TO reader")
        assert take(fresh(tmp_path), f"{url}&options=-cdefault_transaction_read_only%3Don").sessions == ["thread-1"]
    finally:
        saver.execute("DROP OWNED BY reader; DROP ROLE reader")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (f"postgresql://me:{SECRET}@db.example/app", "names a password"),
        (f"postgresql://me@db.example/app?password={SECRET}", "names a password"),
        (f"https://me:{SECRET}@db.example/app", "no URL of PostgreSQL"),
        ("postgresql://db.example/app?nothing=1", "no URL that libpq can read"),
    ],
)
def test_a_url_that_is_refused_is_not_repeated(url: str, told: str, tmp_path: Path) -> None:
    """Nothing is asked of a server, no store is made, and no password is shown."""
    result = run("import", url, "--store", str(tmp_path / "store.db"))
    assert result.code == 2
    assert told in result.err
    assert SECRET not in result.err + result.out
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_a_saver_is_refused(server_url: str, tmp_path: Path) -> None:
    """No store is made for it, and what to do is said."""
    result = run("import", server_url, "--store", str(tmp_path / "store.db"))
    assert result.code == 2
    assert "no table checkpoint_writes" in result.err
    assert "search_path" in result.err
    assert list(tmp_path.iterdir()) == []


def test_a_url_is_no_log_of_another_format(server_url: str) -> None:
    """What ``--from`` names must be what a database holds."""
    with pytest.raises(InvalidInput, match="can't be read as codex"):
        require_logs([server_url], "codex")


def test_the_command_takes_a_url_beside_a_path(saver: psycopg.Connection[Any], server_url: str, tmp_path: Path) -> None:
    """Both are imported; the same rows from a file are known already."""
    put(saver, written())
    result = run("import", exported_to(tmp_path), server_url, "--store", str(tmp_path / "store.db"), "--json")
    assert result.code == 0, result.err
    data = result.envelope["data"]
    assert data["sessions"] == ["thread-1"]
    assert data["known"] == data["added"] > 0
