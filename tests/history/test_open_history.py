"""What is opened at a path: a store, a log, another agent's log or an archive, told by what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.errors import Damaged, InvalidInput, NotFound
from ctxmgr.history.open_history import NOTHING_YET, check_asker_name, open_history, require_record
from ctxmgr.log import codec
from ctxmgr.store.engine.sqlite import sqlite
from tests.builders import entry
from tests.history.test_formats import fresh


def test_a_database_that_is_no_log_is_refused_and_a_new_store_is_not(tmp_path: Path) -> None:
    """Another program's database is told as one; a store whose tables are still in its write-ahead log is a store."""
    other = tmp_path / "other.db"
    connection = sqlite.connect(str(other))
    connection.execute("CREATE TABLE notes (id, words)")
    connection.commit()
    connection.close()
    with pytest.raises(Damaged, match="another program"):
        open_history(str(other), explicit=True, readonly=True)
    own = fresh(tmp_path)
    opened, _ = open_history(str(tmp_path / "store.db"), explicit=True)
    assert opened.sessions.count() == 0
    opened.close()
    own.close()


@pytest.mark.parametrize("name", ["none.db", "none.jsonl"])
def test_what_is_not_there_is_empty_unless_it_was_named(name: str, tmp_path: Path) -> None:
    """Reading leaves nothing behind; whoever named it hears that it is not there."""
    store, warnings = open_history(str(tmp_path / name), explicit=False, readonly=True)
    assert (store.sessions.count(), warnings) == (0, [NOTHING_YET])
    store.close()
    with pytest.raises(NotFound):
        open_history(str(tmp_path / name), explicit=True, readonly=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    """What to name instead is said."""
    with pytest.raises(InvalidInput, match="is a folder") as refused:
        open_history(str(tmp_path), explicit=True, readonly=True)
    assert "name a log in it" in str(refused.value.hint)


def test_damage_is_told_by_its_first_places(tmp_path: Path) -> None:
    """Five of them, and the number of the others; where nothing can be read that is an error of its own."""
    place = tmp_path / "h.jsonl"
    place.write_bytes(b"".join(codec.encode(entry("s", number)) + b"\n{torn\n" for number in range(8)))
    store, warnings = open_history(str(place), explicit=True, readonly=True)
    require_record(store)
    store.close()
    assert len(warnings) == 6
    assert warnings[-1].startswith("3 more damaged ranges")

    place.write_bytes(b'{"v":1,"kind":"entry","session":\n' * 3)
    store, _ = open_history(str(place), explicit=True, readonly=True)
    with pytest.raises(Damaged, match="no record of it can be read"):
        require_record(store)
    store.close()


@pytest.mark.parametrize("name", ["user", "project", "", "\x1b", "*"])
def test_a_name_that_means_something_else_may_not_ask(name: str) -> None:
    """Rules would grant it what is a person's."""
    with pytest.raises(InvalidInput):
        check_asker_name(name)


def test_an_agent_may_ask() -> None:
    """Under its own name."""
    check_asker_name("coder")
