"""An index that is damaged is made anew: it holds nothing that its log does not hold."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.errors import Damaged
from ctxmgr.recorder import Recorder
from ctxmgr.store import open_store
from ctxmgr.store.engine.sqlite import sqlite

PAGE = 4096
COUNT = 150


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log and have its index made beside it."""
    path = tmp_path / "log.jsonl"
    with Recorder(path, session="s") as recorder:
        for number in range(COUNT):
            with recorder.action("a", "look", input={"n": number, "text": "x" * 100}):
                pass
    assert _numbers(path) == list(range(COUNT))
    return path


def _numbers(path: Path) -> list[int]:
    with closing(open_store(str(path), readonly=True)) as store:
        assert store.sessions.page(0, 10)[0][1].entries == COUNT
        return [record["input"]["n"] for record in store.sessions.records(1) if record["kind"] == "entry"]


def _index(path: Path) -> Path:
    (place,) = path.parent.glob(".ctxmgr-index/*.db")
    return place


def _damage(place: Path, page: int) -> None:
    with place.open("r+b") as stream:
        stream.seek(page * PAGE)
        stream.write(b"\xff" * 64)


def test_a_damaged_page_of_an_index_is_told_once_and_mended(log: Path) -> None:
    """Whatever page is damaged, the second question at the latest is answered in full."""
    told: list[str] = []
    for page in range(_index(log).stat().st_size // PAGE):
        _damage(_index(log), page)
        try:
            found = _numbers(log)
        except Damaged as error:
            told.append(f"{error.message}; {error.hint}")
            found = _numbers(log)
        assert found == list(range(COUNT)), f"page {page}"
    assert told
    assert all("index" in each and "run it again" in each for each in told)


def test_verifying_removes_an_index_that_contradicts_itself(log: Path) -> None:
    """Damage that no question has met yet is found by ``verify``, which finds nothing wrong with the log."""
    with closing(open_store(str(log), readonly=True)) as store:
        (root,) = store.engine.query("SELECT rootpage FROM sqlite_master WHERE name = 'note_tag'")[0]
    _damage(_index(log), int(root) - 1)

    with closing(open_store(str(log), readonly=True)) as store:
        assert store.examine().damaged == []
        assert not list(log.parent.glob(".ctxmgr-index/*.db"))
    assert _numbers(log) == list(range(COUNT))


@pytest.mark.cases(1)
@pytest.mark.parametrize("within", [False, True], ids=["alone", "in a transaction"])
def test_an_index_whose_disk_is_full_goes_on_in_memory(within: bool, log: Path) -> None:
    """With a record in its log an append has succeeded; what is read back is there, although the index can't hold it."""
    record: dict[str, object] = {"v": 1, "kind": "note", "session": "s", "entries": []}
    with closing(open_store(str(log))) as store:
        pages = int(store.engine.query("PRAGMA page_count")[0][0])
        store.engine.query(f"PRAGMA max_page_count = {pages}")
        for number in range(40):
            note = {**record, "id": f"n{number}", "content": f"{number} " * 5_000, "tags": [f"t{n}" for n in range(300)]}
            if within:
                with store.engine.transaction():
                    assert store.append([note]).added == 1
            else:
                assert store.append([note]).added == 1
            assert store.annotations.notes(None, [], None, 0, 1)[1] == number + 1
        assert store.engine.query("PRAGMA database_list")[0][2] == ""  # it is in memory now
    with closing(open_store(str(log), readonly=True)) as store:
        assert store.annotations.notes(None, [], None, 0, 1)[1] == 40
    assert _numbers(log) == list(range(COUNT))


@pytest.mark.parametrize(
    "change", ["UPDATE state SET value = 'abc' WHERE name = 'offset'", "DELETE FROM state WHERE name = 'head'"]
)
def test_an_index_whose_state_was_altered_is_made_anew(log: Path, change: str) -> None:
    """What an index says of itself is believed only where it says something."""
    with closing(sqlite.connect(str(_index(log)), isolation_level=None)) as connection:
        connection.execute(change)

    assert _numbers(log) == list(range(COUNT))
