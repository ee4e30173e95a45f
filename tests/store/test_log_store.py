"""A log read in place: the file is the truth, and the index behind it can be lost, stale or in the way at any time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.history.query.requests import list_
from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.store import DamagedRange, Store, open_store
from ctxmgr.store.engine.disposable_files import BESIDE
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.types.query import ListRequest
from tests.builders import entry, steps, write

STORY = ["Bash:ls -> a.txt", "> look closer", "Read:a.txt -> first", "?Edit:a.txt"]


def log_of(path: Path, records: list[Record], tail: bytes = b"") -> Path:
    """Write a log of these records, without sums, and return its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(codec.encode(record) + b"\n" for record in records) + tail)
    return path


def _sealed(records: list[Record], total: str = "") -> bytes:
    lines: list[bytes] = []
    for record in records:
        body = codec.encode(record)
        total = codec.chain(total, body)
        lines.append(codec.seal(body, total) + b"\n")
    return b"".join(lines)


def _answers(path: Path) -> tuple[list[Record], object, list[DamagedRange]]:
    """Open a log, and return its records, the rows that a list shows, and its damage."""
    store = open_store(str(path), readonly=True)
    records = list(store.sessions.records(None))
    rows = [
        list_(store, ListRequest(session=view.session, kind="all", limit=500)).to_json()
        for _, view in store.sessions.page(0, None)
    ]
    damage = store.damage()
    store.close()
    return records, rows, damage


def _without_index(path: Path) -> tuple[list[Record], object, list[DamagedRange]]:
    shutil.rmtree(path.parent / BESIDE)
    return _answers(path)


def test_the_index_can_be_deleted(tmp_path: Path) -> None:
    """Without its index a log gives the same answers."""
    path = log_of(tmp_path / "h.jsonl", [*steps("a", STORY), *steps("b", STORY)], b'{"v":1,"torn')
    first = _answers(path)

    assert _answers(path) == first
    assert _without_index(path) == first
    assert len(first[0]) == 2 * 6


def _grown(path: Path) -> None:
    path.write_bytes(path.read_bytes() + _sealed(steps("a", ["Bash:more"], start=90)))


def _cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:40]))


def _cut_and_grown(path: Path) -> None:
    _cut(path)
    path.write_bytes(
        path.read_bytes() + b"".join(codec.encode(record) + b"\n" for record in steps("a", ["Other:x"] * 80, start=200))
    )


def _replaced(path: Path) -> None:
    log_of(path, steps("c", STORY))


def _replaced_by_a_longer_one(path: Path) -> None:
    log_of(path, steps("c", STORY * 60))


def _changed_in_place(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:-40].replace(b"first", b"FIRST") + data[-40:])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _moved_over(path: Path) -> None:
    other = log_of(path.with_name("other.jsonl"), steps("d", STORY * 40))
    other.rename(path)


@pytest.mark.parametrize(
    "change", [_grown, _cut, _cut_and_grown, _replaced, _replaced_by_a_longer_one, _changed_in_place, _emptied, _moved_over]
)
def test_a_log_that_changes_gets_right_answers(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """However a log was changed since it was indexed, it answers as if there had been no index."""
    path = log_of(tmp_path / "h.jsonl", steps("a", STORY * 20))
    before = _answers(path)

    change(path)

    assert _answers(path) == _without_index(path)
    assert _answers(path) != before


def test_a_growing_log_is_followed_by_an_open_store(tmp_path: Path) -> None:
    """An open store sees what others append when it catches up, and when it appends itself."""
    path = log_of(tmp_path / "h.jsonl", steps("a", ["Bash:1"]))
    store = open_store(str(path))
    other = open_store(str(path))
    write(other, "a", ["Bash:2"])

    assert store.append(steps("a", ["Bash:2"], start=1)).known == 2
    write(store, "a", ["Bash:3"])
    log = _answers(path)[0]

    assert [record["input"] for record in log if record["kind"] == "entry"] == ["1", "2", "3"]
    for opened in (store, other):
        opened.close()


@pytest.mark.parametrize("at", [1, 30, 60, -3, -2, -1])
def test_a_torn_tail_is_told_until_it_is_complete(tmp_path: Path, at: int) -> None:
    """An unfinished last line is reported as often as it is seen, and is a record once it is finished."""
    whole, last = steps("a", ["Bash:1", "?Bash:2"])[:-1], entry("a", 1, given="2")
    line = codec.encode(last)
    path = log_of(tmp_path / "h.jsonl", whole, line[:at])
    start = path.stat().st_size - len(line[:at])

    for _ in range(2):
        records, _, damage = _answers(path)
        assert records == whole
        assert [(item.offset, item.length) for item in damage] == [(start, len(line[:at]))]
    path.write_bytes(path.read_bytes() + line[at:] + b"\n")

    assert (_answers(path)[0], _answers(path)[2]) == ([*whole, last], [])


def test_a_record_without_a_line_end_counts(tmp_path: Path) -> None:
    """A whole record at the end counts before its line end is there, and once afterwards."""
    last = entry("a", 1)
    path = log_of(tmp_path / "h.jsonl", steps("a", ["Bash:1"]), codec.encode(last))
    assert _answers(path)[0][-1] == last

    path.write_bytes(path.read_bytes() + b"\n" + codec.encode(entry("a", 2)) + b"\n")

    assert [record["id"] for record in _answers(path)[0] if record["kind"] == "entry"] == [
        f"a-e000{number}" for number in range(3)
    ]
    assert _answers(path) == _without_index(path)


def test_damage_in_front_of_a_record_without_a_line_end_is_not_forgotten(tmp_path: Path) -> None:
    """Damage on the last line stays reported when a record follows it there and the line has no end yet."""
    path = log_of(tmp_path / "h.jsonl", steps("a", ["Bash:1"]), b"\0" * 30 + codec.encode(entry("a", 1)))
    first = _answers(path)
    path.write_bytes(path.read_bytes() + b"\n")

    assert len(first[2]) == 1
    assert _answers(path) == first == _without_index(path)


def test_appending_behind_a_torn_tail_keeps_both(tmp_path: Path) -> None:
    """An append after a torn line is a line of its own; the torn bytes stay and stay reported."""
    path = log_of(tmp_path / "h.jsonl", steps("a", ["Bash:1"]), b'{"v":1,"kind":"entry","sess')
    store = open_store(str(path))
    store.append([entry("a", 1)])
    store.close()

    records, _, damage = _answers(path)
    assert [record["id"] for record in records if record["kind"] == "entry"] == ["a-e0000", "a-e0001"]
    assert [item.length for item in damage] == [len(b'{"v":1,"kind":"entry","sess')]
    assert b'{"v":1,"kind":"entry","sess\n' in path.read_bytes()


NO_RECORDS = {
    "no JSON": b"what is this?",
    "no object": b"[1, 2, 3]",
    "another program's record": b'{"type":"user","message":"hi"}',
    "a newer format": b'{"v":2,"kind":"entry","session":"s"}',
    "an entry without an id": b'{"v":1,"kind":"entry","session":"s","agent":"a","action":"b"}',
    "an infinity": b'{"v":1,"kind":"entry","session":"s","id":"x","agent":"a","action":"b","input":1e999}',
    "a number without end": b'{"v":1,"kind":"x","session":"s","input":' + b"9" * 5000 + b"}",
    "too deep": b'{"v":1,"kind":"x","session":"s","input":' + b"[" * 700 + b"]" * 700 + b"}",
    "much too deep": b'{"v":1,"kind":"x","session":"s","input":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "too long when written again": b'{"v":1,"kind":"x","session":"s","input":"' + "中".encode() * 3_000_000 + b'"}',
    "NUL bytes": b"\0" * 4096,
    "invalid UTF-8": b'{"v":1,"kind":"x","session":"s\xff"}',
}


@pytest.mark.parametrize("bad", NO_RECORDS.values(), ids=NO_RECORDS)
def test_damage_is_told_and_hides_nothing(tmp_path: Path, bad: bytes) -> None:
    """A line that holds no record is reported once with its place, and every record around it is read."""
    before, after = steps("a", ["Bash:1"]), steps("a", ["Bash:2"], start=1)
    path = log_of(tmp_path / "h.jsonl", before, bad + b"\n")
    start = path.stat().st_size - len(bad) - 1
    path.write_bytes(path.read_bytes() + b"".join(codec.encode(record) + b"\n" for record in after))

    records, _, damage = _answers(path)
    assert records == [*before, *after]
    assert [(item.offset, item.length) for item in damage] == [(start, len(bad))]
    store = open_store(str(path))
    assert store.append(after).known == 2
    write(store, "a", ["Bash:3"])
    assert store.damage() == damage
    store.close()


def test_verify_reads_the_log_itself(tmp_path: Path) -> None:
    """A record that was changed, removed, doubled or moved in a sealed log is found by ``verify`` and told by ``damage``."""
    lines = _sealed(steps("a", STORY)).splitlines(keepends=True)
    changes = {
        "changed": [*lines[:2], lines[2].replace(b"look", b"LOOK"), *lines[3:]],
        "removed": [*lines[:2], *lines[3:]],
        "doubled": [*lines[:3], lines[2], *lines[3:]],
        "swapped": [*lines[:2], lines[3], lines[2], *lines[4:]],
        "inserted": [*lines[:2], _sealed([entry("a", 50)]), *lines[2:]],
    }
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"".join(lines))
    store = open_store(str(path))
    assert store.verify() == (6, [])
    store.close()

    for name, changed in changes.items():
        path.write_bytes(b"".join(changed))
        store = open_store(str(path))
        assert store.verify()[1], name
        assert {item.offset for item in store.verify()[1]} <= {item.offset for item in store.damage()}, name
        store.close()


@pytest.mark.parametrize("damage", ["rubbish", "newer"])
def test_an_unusable_index_is_made_anew(tmp_path: Path, damage: str) -> None:
    """An index that is damaged, or that a newer ctxmgr made, is thrown away and built again."""
    path = log_of(tmp_path / "h.jsonl", steps("a", STORY))
    first = _answers(path)
    (index,) = (tmp_path / BESIDE).glob("*.db")
    if damage == "rubbish":
        index.write_bytes(b"This is not a database at all. " * 400)
    else:
        engine = SqliteEngine(str(index))
        engine.execute("PRAGMA user_version = 99")
        engine.close()

    assert _answers(path) == first
    assert index.read_bytes().startswith(b"SQLite format 3")


def test_a_log_is_read_where_no_index_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder can hold an index a log is read nevertheless."""
    path = log_of(tmp_path / "h.jsonl", steps("a", STORY))
    first = _answers(path)
    shutil.rmtree(tmp_path / BESIDE)
    (tmp_path / BESIDE).write_text("a file, not a folder")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(blocked))

    assert _answers(path) == first


def test_capital_suffixes_name_logs_too(tmp_path: Path) -> None:
    """A log is told by its suffix, whatever its case."""
    for name in ("a.JSONL", "b.ndjson", "c.Jsonl"):
        store = open_store(str(tmp_path / name), create=True)
        write(store, "s", ["Bash:ls"])
        store.close()
        assert (tmp_path / name).read_bytes().startswith(b'{"v":1')


def test_what_is_no_file_is_no_log(tmp_path: Path) -> None:
    """A folder, a pipe and a missing file are refused, and a link to a log is followed."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    (tmp_path / "link.jsonl").symlink_to(log_of(tmp_path / "h.jsonl", steps("a", STORY)))

    with pytest.raises(InvalidInput, match="not a regular file"):
        open_store(str(tmp_path / "pipe.jsonl"))
    for missing in ("none.jsonl", "loop.jsonl"):
        with pytest.raises((NotFound, StorageFailed, InvalidInput)):
            open_store(str(tmp_path / missing))
    assert len(_answers(tmp_path / "link.jsonl")[0]) == 6


def test_a_log_that_vanishes_is_a_storage_error(tmp_path: Path) -> None:
    """Appending to a log that was deleted meanwhile is refused; it is not made anew behind the user's back."""
    path = log_of(tmp_path / "h.jsonl", steps("a", STORY))
    store: Store = open_store(str(path))
    path.unlink()

    with pytest.raises(StorageFailed):
        store.append([entry("a", 9)])

    assert not path.exists()
    store.close()
