"""The SQLite engine: a sound library, one schema, and no database touched that is not ours to touch."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from ctxmgr.errors import CtxmgrError, Damaged, InvalidInput, NotFound
from ctxmgr.store import empty_store, open_store
from ctxmgr.store.engine import schema
from ctxmgr.store.engine import sqlite as engine_module
from ctxmgr.store.engine.sqlite import SqliteEngine, is_sound, require_sound_library
from tests.builders import entry, write


@pytest.mark.parametrize(
    ("version", "sound"),
    [
        ((3, 6, 23), True),
        ((3, 7, 0), False),
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 9), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 53, 4), True),
        ((4, 0, 0), True),
    ],
)
def test_versions_with_the_wal_reset_bug_are_known(version: tuple[int, ...], sound: bool) -> None:
    """A version is sound from 3.51.3 on, from 3.50.7 and 3.44.6 on in their branches, and before write-ahead mode."""
    assert is_sound(version) is sound


def test_an_unsound_library_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With an affected SQLite no database is opened, nor made; the answer names the version and what to install."""

    class Old:
        sqlite_version = "3.40.1"

    require_sound_library()
    monkeypatch.setattr(engine_module, "sqlite", Old)

    with pytest.raises(Damaged, match=r"3\.40\.1") as caught:
        SqliteEngine(str(tmp_path / "history.db"))

    assert "pysqlite3" in str(caught.value.hint)
    assert list(tmp_path.glob("history.db*")) == []


def test_the_driver_is_the_packages_own() -> None:
    """The extension that is loaded alone is the one that the whole package gives to others."""
    whole = pytest.importorskip("pysqlite3.dbapi2")

    assert engine_module.sqlite.connect is whole.connect
    assert engine_module.sqlite.Error is whole.Error


def test_a_driver_is_found_where_the_extension_is_not_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extension can't be loaded alone the whole package is, and without it the standard library's."""
    whole = pytest.importorskip("pysqlite3.dbapi2")
    import sqlite3

    monkeypatch.delitem(sys.modules, "pysqlite3._sqlite3")
    monkeypatch.setattr(sys, "meta_path", [])
    assert engine_module.driver() is whole
    monkeypatch.setitem(sys.modules, "pysqlite3", None)
    assert engine_module.driver() is sqlite3


@pytest.mark.parametrize("package", ["errno", "json.decoder", "no_such_package"])
def test_no_extension_is_taken_from_elsewhere(package: str) -> None:
    """What is no package, or is not there, has no extension, whatever else of that name could be found."""
    with pytest.raises((ImportError, AttributeError)):
        engine_module.extension(package, "_sqlite3")


def _raw(path: Path, *statements: str) -> None:
    connection = SqliteEngine(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("readonly", [False, True])
def test_a_newer_schema_is_refused(tmp_path: Path, readonly: bool) -> None:
    """A store that a newer ctxmgr wrote is neither read nor changed."""
    place = tmp_path / "history.db"
    open_store(str(place), create=True).close()
    _raw(place, f"PRAGMA user_version = {schema.LATEST + 1}", "PRAGMA wal_checkpoint(TRUNCATE)")
    before = place.read_bytes()

    with pytest.raises(Damaged, match="newer ctxmgr"):
        open_store(str(place), readonly=readonly)

    assert place.read_bytes() == before


def test_reading_never_migrates(tmp_path: Path) -> None:
    """A file without our schema is not given one by a command that only reads: it reads as an empty store."""
    place = tmp_path / "history.db"
    place.write_bytes(b"")

    store = open_store(str(place), readonly=True)
    assert store.verify() == (0, [])
    store.close()

    assert place.read_bytes() == b""


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    """Opening a store for writing again leaves its schema as it is."""
    place = tmp_path / "history.db"
    store = open_store(str(place), create=True)
    tables = store.engine.query("SELECT name, sql FROM sqlite_master ORDER BY name")
    store.close()

    again = open_store(str(place), create=True)
    assert again.engine.query("SELECT name, sql FROM sqlite_master ORDER BY name") == tables
    assert again.engine.query("PRAGMA user_version") == [(schema.LATEST,)]
    again.close()


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("version", [0, 1])
def test_a_database_of_another_program_is_left_alone(tmp_path: Path, readonly: bool, version: int) -> None:
    """Somebody else's database gets no table of ours, and questions about it end in a typed error."""
    place = tmp_path / "other.db"
    _raw(place, "CREATE TABLE customer (name TEXT)", f"PRAGMA user_version = {version}")

    with pytest.raises(Damaged):
        open_store(str(place), readonly=readonly).sessions.latest()

    connection = SqliteEngine(str(place))
    assert connection.query("SELECT name FROM sqlite_master") == [("customer",)]
    connection.close()


def test_a_log_under_the_name_of_a_database(tmp_path: Path) -> None:
    """A text file that is named as a database is refused and not changed."""
    place = tmp_path / "history.db"
    place.write_text('{"v":1,"kind":"session","session":"s"}\n' * 50)
    before = place.read_bytes()

    for readonly in (False, True):
        with pytest.raises(Damaged):
            open_store(str(place), readonly=readonly)

    assert place.read_bytes() == before


def test_odd_file_names(tmp_path: Path) -> None:
    """Characters that mean something in a URL are part of a store's file name."""
    for name in ("a b.db", "100%.db", "what?mode=memory.db", "x#y.db", "ü;'.db", "%41.db", "&cache=shared.db"):
        store = open_store(str(tmp_path / name), create=True)
        write(store, "s", ["Bash:ls"])
        store.close()
        again = open_store(str(tmp_path / name), readonly=True)
        assert again.sessions.count() == 1
        again.close()
        assert (tmp_path / name).is_file()


@pytest.mark.parametrize("location", ["", "a\0b.db", "mysql://host/db", "s3://bucket/x.jsonl"])
def test_what_cant_name_a_store(location: str) -> None:
    """An empty path, a NUL and a URL without an engine are refused."""
    with pytest.raises(InvalidInput):
        open_store(location, create=True)


@pytest.mark.parametrize("name", ["history.db", "history.jsonl", "deep/history.db"])
def test_a_missing_store_is_not_made_by_reading(tmp_path: Path, name: str) -> None:
    """A store that is not there is not found, and no file or folder comes into being."""
    for readonly in (False, True):
        with pytest.raises(NotFound):
            open_store(str(tmp_path / name), readonly=readonly)

    assert not (tmp_path / name).exists()
    assert not (tmp_path / "deep").exists()


def test_the_empty_store_is_empty_and_closed_to_writing() -> None:
    """What reading finds where no store was made yet holds nothing and takes nothing."""
    store = empty_store("nowhere.db")

    assert (store.sessions.count(), store.sessions.latest()) == (0, None)
    with pytest.raises(CtxmgrError):
        store.append([entry("s", 0)])
    store.close()


def test_transactions_nest(tmp_path: Path) -> None:
    """An inner transaction is part of the outer one, and goes with it."""
    engine = SqliteEngine(str(tmp_path / "x.db"))
    engine.execute("CREATE TABLE t (x)")

    def both() -> None:
        with engine.transaction():
            with engine.transaction():
                engine.execute("INSERT INTO t VALUES (1)")
            raise KeyError("out")

    with pytest.raises(KeyError):
        both()
    assert engine.query("SELECT * FROM t") == []
    with engine.transaction(), engine.transaction():
        engine.execute("INSERT INTO t VALUES (2)")
    assert engine.query("SELECT * FROM t") == [(2,)]
    engine.close()


@pytest.mark.parametrize(("durable", "level"), [(False, 1), (True, 2)])
def test_the_level_of_durability(tmp_path: Path, durable: bool, level: int) -> None:
    """Level ``process`` commits in write-ahead mode without a sync, level ``os`` with one."""
    store = open_store(str(tmp_path / "history.db"), create=True, durable=durable)

    assert store.engine.query("PRAGMA journal_mode") == [("wal",)]
    assert store.engine.query("PRAGMA synchronous") == [(level,)]
    store.close()


def test_an_empty_store_has_the_tables_of_one_that_was_made(tmp_path: Path) -> None:
    """What stands in for a store that is not there has every table, index and column of a real one."""
    tables = "SELECT type, name, sql FROM sqlite_master WHERE tbl_name <> '_sqlite_migrations' ORDER BY type, name"
    empty, made = empty_store("nowhere"), open_store(str(tmp_path / "history.db"), create=True)

    assert empty.engine.query(tables) == made.engine.query(tables)
    for store in (empty, made):
        store.close()


def test_a_writer_asks_for_the_lock_again_and_again(tmp_path: Path) -> None:
    """No writer starves beside others that never rest, as it does where SQLite alone decides when to try again."""
    path = str(tmp_path / "history.db")
    holder, writer = SqliteEngine(path), SqliteEngine(path)
    holder.begin()
    tries: list[str] = []
    asked_often = threading.Event()

    def note(statement: str) -> None:
        tries.append(statement)
        if len(tries) == 5:
            asked_often.set()

    writer.connection.set_trace_callback(note)
    waiter = threading.Thread(target=writer.begin)
    waiter.start()
    assert asked_often.wait(5), tries
    holder.end(commit=True)
    waiter.join(5)
    assert not waiter.is_alive()
    assert set(tries) == {"BEGIN IMMEDIATE"}
    writer.end(commit=True)
    writer.close()
    holder.close()
