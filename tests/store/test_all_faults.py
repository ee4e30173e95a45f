"""A full disk, a locked folder, a damaged file: a typed error, nothing half written, and on it goes afterwards."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.errors import CtxmgrError, Damaged, InvalidInput, StorageFailed
from ctxmgr.history.detection import detect_
from ctxmgr.history.query.requests import list_, list_notes, list_snapshots, messages, search, trace
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import (
    Filters,
    ListNotesRequest,
    ListRequest,
    ListSnapshotsRequest,
    MessagesRequest,
    SearchRequest,
    TraceRequest,
)
from tests.builders import at, entry, event, steps, write
from tests.cli.console import run
from tests.store import workers

SEED = 20_260_122
STORY = ["Bash:ls -> a.txt", "> look closer", "Read:a.txt -> first line", "!Edit:a.txt -> refused", "?Bash:sleep"]


def _story(store: Store) -> None:
    write(store, "s", STORY)
    store.append([
        event("s", 8, "agent_message_chunk", {"text": "thinking aloud"}, entry="s-e0001", agent="coder"),
        build("note", "s", at(9), id="n1", entries=["s-e0001"], content="a note", tags=["diagnostic"]),
        build("snapshot", "s", at(9), id="p1", entries=["s-e0001"], summary="sum", reasoning="why", hash="x"),
    ])  # fmt: skip


def _ask_everything(store: Store) -> None:
    """Ask every reading question once."""
    list_(store, ListRequest(kind="all", limit=100)).to_json()
    trace(store, TraceRequest(action=["Bash"])).to_json()
    search(store, SearchRequest(query="a", all_sessions=True)).to_json()
    messages(store, MessagesRequest()).to_json()
    list_notes(store, ListNotesRequest(all_sessions=True)).to_json()
    list_snapshots(store, ListSnapshotsRequest()).to_json()
    detect_(store, DetectRequest(all_sessions=True), {}).to_json()
    for key, _ in store.sessions.page(0, None):
        list(store.sessions.records(key))


def test_a_full_database_refuses_and_recovers(tmp_path: Path) -> None:
    """At its greatest size a database refuses a batch whole, keeps what it had, and takes more once there is room."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    write(store, "s", ["Bash:ls"])
    before = list(store.sessions.records(None))
    pages = int(store.engine.query("PRAGMA page_count")[0][0])
    store.engine.execute(f"PRAGMA max_page_count = {pages + 2}")

    with pytest.raises(StorageFailed, match="no space left") as caught:
        store.append([entry("s", number, given="x" * 3000) for number in range(1, 40)])

    assert caught.value.retryable
    assert list(store.sessions.records(None)) == before
    assert store.verify() == (2, [])
    store.engine.execute("PRAGMA max_page_count = 1000000")
    assert store.append([entry("s", number, given="x" * 3000) for number in range(1, 40)]).added == 39
    assert store.verify() == (41, [])
    store.close()


@pytest.mark.cases(1)
@pytest.mark.parametrize("room", [0, 1, 700, 20_000])
def test_a_file_that_may_not_grow(store: Store, store_path: Path, room: int) -> None:
    """When the system refuses to let the file grow, appends fail as storage errors, whole, and go on once it may grow."""
    write(store, "s", ["Bash:ls"])
    store.close()

    told = workers.run(workers.FULL, store_path, {"room": room, "first": 1})

    assert set(told) <= {"ok", "storage"}
    assert "storage" in told
    again = open_store(str(store_path))
    expected = ["s-e0000"]
    for number, answer in enumerate(told, start=1):
        expected += [f"s-e{2 * number:04}", f"s-e{2 * number + 1:04}"] if answer == "ok" else []
    views, *_ = again.queries.entries(again.sessions.key("s") or 0, Filters(), 0, None)
    assert [view.id for view in views] == [*expected, "s-e0900"]
    assert [view.index for view in views] == list(range(len(views)))
    assert again.verify()[1] == []
    again.close()


def _snapshot_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_reading_changes_no_byte(tmp_path: Path, store: Store, store_path: Path) -> None:
    """A store that was closed and is opened for reading, and asked everything, is the same file byte for byte."""
    _story(store)
    store.close()
    before = store_path.read_bytes(), store_path.stat().st_mtime_ns

    reading = open_store(str(store_path), readonly=True)
    _ask_everything(reading)
    reading.verify()
    for refused in ("INSERT INTO session (id) VALUES ('x')", "DELETE FROM record", "PRAGMA user_version = 9"):
        if store_path.suffix == ".db":
            with pytest.raises(StorageFailed):
                reading.engine.execute(refused)
    reading.close()

    assert (store_path.read_bytes(), store_path.stat().st_mtime_ns) == before
    written = {path.name for path in tmp_path.iterdir() if path.is_file() and path.stat().st_size}
    assert written <= {store_path.name, f"{store_path.name}-shm"}  # the second is shared memory, not data


def _as_nobody() -> list[str]:
    prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv to become another user")
    if subprocess.run(
        [*prefix, sys.executable, "-c", "import ctxmgr"], cwd=workers.ROOT, check=False, capture_output=True
    ).returncode:
        pytest.skip("another user can't run this interpreter")
    return prefix


def _reachable(folder: Path) -> None:
    for place in (folder, *folder.parents):
        if place.stat().st_uid == os.getuid() and not place.stat().st_mode & 0o001 and "pytest" in str(place):
            place.chmod(place.stat().st_mode | 0o011)


@pytest.mark.parametrize("name", ["history.db", "history.jsonl"])
def test_a_folder_that_cant_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """In a folder that can't be written a history can be read, and writing is refused as a storage error."""
    prefix = _as_nobody()
    folder = tmp_path / "locked"
    store = open_store(str(folder / name), create=True)
    write(store, "s", ["Bash:ls", "Read:a"])
    store.close()
    (folder / name).chmod(0o444)
    folder.chmod(0o555)
    _reachable(tmp_path)
    for variable in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
        monkeypatch.setenv(variable, str(folder))
    before = _snapshot_of(folder)

    told = workers.run(workers.READ, folder / name, prefix=prefix)

    assert told == {"read": ["s-e0000", "s-e0001"], "write": "storage"}
    assert _snapshot_of(folder) == before


@pytest.mark.parametrize("name", ["history.db", "history.jsonl"])
def test_a_file_that_may_not_be_read(tmp_path: Path, name: str) -> None:
    """A history of somebody else is a storage error."""
    prefix = _as_nobody()
    store = open_store(str(tmp_path / "theirs" / name), create=True)
    store.close()
    (tmp_path / "theirs").chmod(0o755)
    _reachable(tmp_path)

    assert workers.run(workers.READ, tmp_path / "theirs" / name, prefix=prefix) == {"read": "storage", "write": "storage"}


def test_a_mount_for_reading_only(tmp_path: Path) -> None:
    """On a file system mounted for reading only a database can be read, and writing is a storage error."""
    if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs root and unshare to mount")
    folder = tmp_path / "mounted"
    store = open_store(str(folder / "history.db"), create=True)
    write(store, "s", ["Bash:ls"])
    store.close()
    mount = f"mount --bind '{folder}' '{folder}' && mount -o remount,ro,bind '{folder}' && exec \"$@\""

    told = workers.run(workers.READ, folder / "history.db", prefix=["unshare", "-m", "sh", "-c", mount, "sh"])

    assert told == {"read": ["s-e0000"], "write": "storage"}


def test_a_folder_in_the_place_of_a_store(tmp_path: Path) -> None:
    """A folder, and a path below a file, can't name a store."""
    (tmp_path / "file").write_text("x")
    for place, create in ((tmp_path, True), (tmp_path / "file" / "history.db", True), (tmp_path / "file" / "x.jsonl", True)):
        with pytest.raises((StorageFailed, InvalidInput)):
            open_store(str(place), create=create)
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(InvalidInput, match="folder"):
        open_store(str(tmp_path / "log.jsonl"))


def _flipped(data: bytes, seed: int) -> bytes:
    chance = random.Random(seed)
    altered = bytearray(data)
    for _ in range(chance.choice([1, 1, 3])):
        altered[chance.randrange(len(altered))] ^= 1 << chance.randrange(8)
    return bytes(altered)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "an empty header": lambda data: b"\0" * 100 + data[100:],
    "a flipped magic": lambda data: bytes([data[0] ^ 0x40]) + data[1:],
    "no database at all": lambda data: b"This is not a database, but it is long enough to be one. " * 99,
    "cut in the middle of a page": lambda data: data[: len(data) // 2 + 37],
    "cut to its first page": lambda data: data[:4096],
    "a lost page": lambda data: data[:8192] + data[12288:],
    "pages swapped": lambda data: data[:4096] + data[8192:12288] + data[4096:8192] + data[12288:],
    "rubbish in the schema": lambda data: data[:100] + random.Random(SEED).randbytes(3996) + data[4096:],
    "rubbish behind the schema": lambda data: data[:4096] + random.Random(SEED).randbytes(len(data) - 4096),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_database_is_reported(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Damage to a database file ends in `Damaged` or in a report of ``verify``, never in another exception."""
    place = tmp_path / "history.db"
    store = open_store(str(place), create=True)
    _story(store)
    store.close()
    place.write_bytes(damage(place.read_bytes()))

    for readonly in (True, False):
        found = False
        try:
            opened = open_store(str(place), readonly=readonly)
            found = bool(opened.verify()[1])
            _ask_everything(opened)
            opened.close()
        except Damaged:
            found = True
        assert found


@pytest.mark.slow
def test_bit_flips_are_never_taken_for_records(tmp_path: Path) -> None:
    """After random bit flips every question is answered or ends in a typed error, and no changed record passes ``verify``."""
    place = tmp_path / "history.db"
    store = open_store(str(place), create=True)
    _story(store)
    records = list(store.sessions.records(None))
    store.close()
    data = place.read_bytes()
    passed = 0
    for seed in range(SEED, SEED + 150):
        place.write_bytes(_flipped(data, seed))
        try:
            opened = open_store(str(place), readonly=True)
            sound = opened.verify() == (len(records), [])
            assert not sound or list(opened.sessions.records(None)) == records, f"seed {seed}"
            passed += sound
            _ask_everything(opened)
            opened.close()
        except CtxmgrError:
            continue
    assert 0 < passed < 150  # some flips hit unused bytes, and some do not


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE record SET body = replace(body, 'first', 'First') WHERE seq = 5",
        "UPDATE record SET body = replace(body, '.', 'é') WHERE seq = 3",
        "UPDATE record SET body = CAST(x'80' || body AS TEXT) WHERE seq = 3",
        "UPDATE record SET sum = '0123456789abcdef' WHERE seq = 3",
        "UPDATE record SET sum = CAST(x'ff00' AS TEXT) WHERE seq = 3",
        "DELETE FROM record WHERE seq = 1",
        "DELETE FROM record WHERE seq = 3",
        "UPDATE record SET seq = CASE seq WHEN 3 THEN -4 WHEN 4 THEN -3 ELSE seq END",
    ],
)
def test_verify_finds_what_was_changed_behind_our_back(tmp_path: Path, change: str) -> None:
    """A record that was changed, removed or moved by other means breaks the chain of sums."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    store.append(steps("s", STORY))
    store.engine.execute("PRAGMA foreign_keys = OFF")
    store.engine.execute(change)

    _, damaged = store.verify()

    assert damaged
    assert all("sum does not match" in item.reason for item in damaged)
    store.close()


@pytest.mark.parametrize("body", ["", "{", "[]", "null", '{"v":1}', '{"id":5,"session":[]}', "nonsense", '"x"', "x'80'"])
def test_an_altered_body_is_damage_not_a_crash(tmp_path: Path, body: str) -> None:
    """Whatever a stored body was changed into, questions about it end in `Damaged` or an answer."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    _story(store)
    changed = "CAST(x'80' AS TEXT)" if body.startswith("x'") else ":body"
    store.engine.execute(f"UPDATE record SET body = {changed}", {"body": body})
    questions: list[Callable[[], object]] = [
        lambda: list_(store, ListRequest()),
        lambda: list_(store, ListRequest(kind="event")),
        lambda: list_notes(store, ListNotesRequest(all_sessions=True)),
        lambda: list_snapshots(store, ListSnapshotsRequest()),
        lambda: store.sessions.page(0, None),
        lambda: store.annotations.entry_bodies(1, ["s-e0000"]),
        lambda: detect_(store, DetectRequest(), {}),
    ]

    for question in questions[:4]:
        with pytest.raises(Damaged):
            question()
    for question in questions[4:]:
        try:
            question()
        except Damaged:
            continue
    assert store.verify()[1]
    with pytest.raises(CtxmgrError):
        store.append([entry("s", 0)])
    store.close()


@pytest.mark.cases(1)
@pytest.mark.parametrize("made", ["an empty file", "a database without tables"])
def test_a_store_whose_maker_was_killed_reads_as_empty(tmp_path: Path, made: str) -> None:
    """Before the tables of a new store are made, every reading question is answered as by an empty one; then it is written."""
    place = tmp_path / "history.db"
    if made == "an empty file":
        place.touch()
    else:
        SqliteEngine(str(place)).close()

    for command in (("list",), ("sessions",), ("search", "x"), ("note", "list")):
        for form in ("--json", "--format=table"):
            assert run(*command, form, "--store", str(place)).code == 0, command
    for command in (("verify",), ("detect", "--all-sessions")):  # nothing was read, so nothing was judged
        assert run(*command, "--store", str(place)).code == 3, command
    store = open_store(str(place))
    write(store, "s", ["Bash:ls"])
    store.close()
    assert run("list", "--json", "--store", str(place)).envelope["page"]["total"] == 1
