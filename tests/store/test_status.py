"""A store's numbers and its quick check, and the SQLite it stands on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.store import Store, open_store, status
from ctxmgr.store.engine import sqlite as engine
from ctxmgr.store.status import contents, library, quick_check
from tests import builders as b


def test_a_store_is_told_in_numbers(store: Store) -> None:
    """Sessions and entries are counted over the whole store, and its schema is the one that is written now."""
    b.write(store, "one", ["Bash:ls", "Bash:pwd"])
    b.write(store, "two", ["Read:a.py"])
    found = contents(store)

    assert (found.sessions, found.entries) == (2, 3)
    assert found.schema == found.latest


def test_a_sound_store_has_no_faults(store: Store) -> None:
    """The quick check of an undamaged store finds nothing."""
    b.write(store, "one", ["Bash:ls"])

    assert quick_check(store) == []


def test_the_damaged_ranges_of_a_log_are_told(tmp_path: Path) -> None:
    """A line of a log that can't be read shows in the quick check with its place."""
    place = tmp_path / "torn.jsonl"
    place.write_bytes(b'{"v":1,"kind":"event","session":"s","id":"a","type":"message"}\nno record at all\n')
    opened = open_store(str(place), readonly=True)
    found = quick_check(opened)
    opened.close()

    assert len(found) == 1
    assert "at offset 63" in found[0]


def test_the_damage_of_a_database_is_told(tmp_path: Path) -> None:
    """What SQLite's own quick check sees in a database with overwritten pages is told, at most so many faults."""
    place = tmp_path / "history.db"
    opened = open_store(str(place), create=True)
    for number in range(40):
        b.write(opened, f"s{number}", ["Bash:ls -> " + "x" * 500] * 5)
    opened.close()
    with place.open("r+b") as stream:
        stream.seek(0, 2)
        end = stream.tell()
        stream.seek(end // 2)
        stream.write(b"\xff" * (end // 4))
    opened = open_store(str(place), readonly=True)
    found = quick_check(opened)
    opened.close()

    assert 1 <= len(found) <= status.MAX_FAULTS


def test_the_library_in_use_is_sound() -> None:
    """The SQLite of this environment is named with its version, and nothing is wrong with it."""
    found = library()

    assert found.module in ("pysqlite3", "sqlite3")
    assert found.fault is None
    assert found.version.count(".") == 2


def test_an_unsound_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SQLite with the WAL-reset bug comes with the refusal that every store would meet."""

    class Old:
        __name__ = "sqlite3.dbapi2"
        sqlite_version = "3.40.1"

    for module in (engine, status):
        monkeypatch.setattr(module, "sqlite", Old())
    found = library()

    assert (found.module, found.version) == ("sqlite3", "3.40.1")
    assert found.fault is not None
    assert "WAL-reset bug" in found.fault.message
