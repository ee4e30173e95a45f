"""Whatever is cut from a history, put into it or changed in it is found and named; what can't be checked is said."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.errors import Conflict
from ctxmgr.log import anchor, codec
from ctxmgr.recorder import Recorder
from ctxmgr.store import Store, open_store
from ctxmgr.store.verification import VerificationResult
from tests import builders
from tests.cli.console import run

FORGED = b'{"v":1,"kind":"entry","session":"s","id":"f","agent":"a","action":"x","input":1}\n'
_SUM = re.compile(rb',"sum":"[0-9a-f]{16}"')


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Record a log of seven records."""
    return _recorded(tmp_path / "run.jsonl")


def _recorded(place: Path, session: str = "s", many: int = 5) -> Path:
    with Recorder(place, session=session) as recorder:
        for number in range(many):
            recorder.entry("a", "act", {"n": number})
    return place


def _examined(place: Path) -> VerificationResult:
    store = open_store(str(place))
    try:
        return store.examine()
    finally:
        store.close()


def _kinds(place: Path) -> list[str]:
    return [item.kind for item in _examined(place).damaged]


def _lines(place: Path) -> list[bytes]:
    return place.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("name", ["run.db", "run.jsonl"])
def test_what_was_recorded_is_checked_to_its_end(tmp_path: Path, name: str) -> None:
    """After a recorder has ended, every sum and the end of the history are checked, and nothing is left open."""
    found = _examined(_recorded(tmp_path / name))

    assert (found.records, found.damaged, found.unchecked) == (7, [], [])
    assert any("7 records" in text for text in found.checked)
    assert any("anchor" in text for text in found.checked)


CHANGES: dict[str, tuple[Callable[[list[bytes]], list[bytes]], list[str]]] = {
    "last": (lambda lines: lines[:-1], ["cut"]),
    "all but one": (lambda lines: lines[:1], ["cut"]),
    "everything": (lambda lines: lines[:0], ["cut"]),
    "forged": (lambda lines: [*lines[:3], FORGED, *lines[3:]], ["inserted"]),
    "forged first": (lambda lines: [FORGED, *lines], ["altered"]),
    "forged last": (lambda lines: [*lines, FORGED], ["unsummed"]),
    "forged with a sum": (
        lambda lines: [*lines[:3], FORGED[:-2] + b',"sum":"0123456789abcdef"}\n', *lines[3:]],
        ["inserted"],
    ),
    "stripped": (lambda lines: [_SUM.sub(b"", line) for line in lines], ["unsummed"]),
    "stripped and changed": (lambda lines: [_SUM.sub(b"", line.replace(b'"n":2', b'"n":7')) for line in lines], ["unsummed"]),
    "one stripped": (lambda lines: [*lines[:3], _SUM.sub(b"", lines[3]), *lines[4:]], ["unsummed", "altered"]),
    "changed": (lambda lines: [line.replace(b'"n":2', b'"n":7') for line in lines], ["altered"]),
    "removed": (lambda lines: [*lines[:3], *lines[4:]], ["altered"]),
    "first removed": (lambda lines: lines[1:], ["altered"]),
    "swapped": (lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]], ["inserted", "altered"]),
}


@pytest.mark.parametrize(("change", "kinds"), CHANGES.values(), ids=CHANGES)
def test_every_change_of_a_log_is_named(log: Path, change: Callable[[list[bytes]], list[bytes]], kinds: list[str]) -> None:
    """A cut tail, an inserted or altered record and lost sums are each found, and ``verify`` exits 5."""
    log.write_bytes(b"".join(change(_lines(log))))

    assert _kinds(log) == kinds
    assert run("verify", "--store", str(log)).code == 5


def test_a_record_that_no_reader_accepts_is_damage(log: Path) -> None:
    """A result of an unknown status, written with a checksum that is right, is counted as `list` counts it."""
    lines = log.read_bytes().splitlines()
    last, total = codec.unseal(lines[-1])
    added = codec.encode({**codec.decode(last), "kind": "result", "entry": "e", "status": "great"})
    log.write_bytes(b"\n".join([*lines, codec.seal(added, codec.chain(total or "", added))]) + b"\n")

    with closing(open_store(str(log))) as store:
        assert [item.kind for item in store.examine().damaged] == ["unreadable"]
        assert [item.offset for item in store.examine().damaged] == [item.offset for item in store.damage()]


def test_a_log_that_was_sealed_anew_is_not_the_one_that_was_anchored(log: Path) -> None:
    """Who changes a record and computes all sums anew is found, even after the recorder went on."""
    total, forged = "", list[bytes]()
    for line in _lines(log):
        body = codec.unseal(line.rstrip(b"\n").replace(b'"n":2', b'"n":7'))[0]
        total = codec.chain(total, body)
        forged.append(codec.seal(body, total, b"\n"))
    log.write_bytes(b"".join(forged))
    assert _kinds(log) == ["altered"]

    _recorded(log)
    assert "altered" in _kinds(log)


def test_a_cut_tail_is_remembered_when_the_recorder_goes_on(log: Path) -> None:
    """Whoever appends to a cut log does not make its anchor forget."""
    log.write_bytes(b"".join(_lines(log)[:-2]))
    _recorded(log, many=20)

    assert _kinds(log) == ["altered"]


def test_the_index_knows_too(log: Path) -> None:
    """Where the anchor of the state folder is gone, the index that saw more of a log than is there tells it."""
    _examined(log)
    shutil.rmtree(anchor.anchor_folder())
    log.write_bytes(b"".join(_lines(log)[:-1]))

    assert _kinds(log) == ["cut"]
    found = _examined(log)  # also after the index has followed the log
    assert "in its index" in found.damaged[0].reason


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM record WHERE seq = 7",
        "DELETE FROM record WHERE seq > 2; UPDATE session SET seq = 2; DELETE FROM entry WHERE seq > 2",
        "UPDATE record SET sum = NULL",
        "UPDATE record SET sum = NULL WHERE seq = 4",
        "UPDATE record SET body = replace(body, '\"n\":2', '\"n\":7')",
    ],
)
def test_every_change_of_a_database_is_named(tmp_path: Path, change: str) -> None:
    """The last record deleted, sums stripped, a record altered: each is found, and ``verify`` exits 5."""
    place = _recorded(tmp_path / "run.db")
    store = open_store(str(place))
    store.engine.execute("PRAGMA foreign_keys = OFF")
    for statement in change.split(";"):
        store.engine.execute(statement)
    store.close()

    assert run("verify", "--store", str(place)).code == 5
    kinds = {"DELETE": {"cut"}, "UPDATE": {"unsummed", "altered"}}[change[:6]]
    found = set(_kinds(place))
    assert found
    assert found <= kinds


def test_without_the_anchor_a_deleted_record_shows_in_the_sessions(tmp_path: Path) -> None:
    """A database whose sessions know of more than there is was cut, whether or not it was anchored."""
    place = _recorded(tmp_path / "run.db")
    shutil.rmtree(anchor.anchor_folder())
    store = open_store(str(place))
    store.engine.execute("PRAGMA foreign_keys = OFF")
    store.engine.execute("DELETE FROM record WHERE seq = 7")

    assert [item.kind for item in store.examine().damaged] == ["cut"]
    store.close()


def _sound(place: Path, *said: str) -> None:
    ran = run("verify", "--json", "--store", str(place))
    assert (ran.code, ran.envelope["data"]["damaged"]) == (0, [])
    for text in said:
        assert any(text in told for told in ran.envelope["data"]["unchecked"]), ran.envelope["data"]["unchecked"]


def test_a_foreign_log_can_only_be_read(tmp_path: Path) -> None:
    """A log without sums is accepted, with the plain statement that nothing could be checked."""
    place = tmp_path / "foreign.jsonl"
    place.write_bytes(FORGED)
    _sound(place, "no record carries a sum", "no anchor")


def test_a_foreign_log_that_we_go_on_with(tmp_path: Path) -> None:
    """Records before the first sum are accepted, and it is said that they could not be checked."""
    place = tmp_path / "foreign.jsonl"
    place.write_bytes(FORGED)
    _recorded(place)
    _sound(place, "1 records before the first sum carry none")


@pytest.mark.parametrize("name", ["run.db", "run.jsonl"])
def test_a_copy_on_another_machine_is_no_alarm(tmp_path: Path, name: str) -> None:
    """Where no anchor is kept it is said, and nothing else."""
    place = _recorded(tmp_path / name)
    shutil.rmtree(anchor.anchor_folder())
    _sound(place, "no anchor of it is kept on this machine")


@pytest.mark.parametrize("name", ["run.db", "run.jsonl"])
def test_a_moved_history_is_no_alarm(tmp_path: Path, name: str) -> None:
    """A history that was moved has no anchor at its new place until somebody writes to it."""
    place = _recorded(tmp_path / name)
    moved = tmp_path / f"moved-{name}"
    place.rename(moved)
    _sound(moved, "no anchor")
    _recorded(moved)
    _sound(moved)


@pytest.mark.parametrize("name", ["run.db", "run.jsonl"])
def test_a_history_that_is_begun_anew_is_no_alarm(tmp_path: Path, name: str) -> None:
    """Who removes a history, or rotates it away, and records the same session again hears nothing of the old one."""
    place = _recorded(tmp_path / name)
    _examined(place)
    place.unlink()
    _recorded(place, many=1)
    _sound(place)
    place.rename(tmp_path / f"1-{name}")
    _recorded(place, session="t", many=2)
    _sound(place)


def test_another_log_in_its_place_is_told(log: Path, tmp_path: Path) -> None:
    """A log of other sessions that was moved to an anchored path is no cut one."""
    other = _recorded(tmp_path / "other.jsonl", session="other", many=1)
    other.replace(log)
    _sound(log, "another history was anchored here")


@pytest.mark.parametrize("name", ["run.db", "run.jsonl"])
def test_a_history_that_is_longer_than_its_anchor_is_sound(tmp_path: Path, name: str) -> None:
    """A crash between a write and its anchor leaves an anchor that knows less: that is no fault."""
    place = _recorded(tmp_path / name)
    kept = Path(anchor.anchor_path(str(place))).read_bytes()
    _recorded(place)
    Path(anchor.anchor_path(str(place))).write_bytes(kept)
    _sound(place)


def test_a_restored_backup_is_told_and_can_be_accepted(log: Path) -> None:
    """An older copy that was put back looks like a cut one; ``--accept`` takes it as it is, and appends go on from there."""
    backup = log.read_bytes()
    _recorded(log)
    log.write_bytes(backup)
    ran = run("verify", "--store", str(log))
    assert (ran.code, "an older copy was put back" in ran.out) == (5, True)

    assert run("verify", "--accept", "--store", str(log)).code == 0
    _sound(log)
    _recorded(log)
    _sound(log)


def test_a_database_can_be_accepted(tmp_path: Path) -> None:
    """The same holds for a database."""
    place = _recorded(tmp_path / "run.db")
    shutil.copy(place, tmp_path / "backup")
    _recorded(place)
    shutil.copy(tmp_path / "backup", place)
    assert run("verify", "--store", str(place)).code == 5
    assert run("verify", "--accept", "--store", str(place)).code == 0
    _sound(place)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["run.db", "run.jsonl"])
def test_two_processes_that_write_are_no_alarm(tmp_path: Path, name: str) -> None:
    """Whatever order their anchors are written in, a history of several writers is sound."""
    place = tmp_path / name
    program = """
import sys
from ctxmgr.recorder import Recorder
with Recorder(sys.argv[1], session="s", on_live="join") as recorder:
    for number in range(30):
        recorder.entry("a", "act", {"n": number})
"""
    writers = [subprocess.Popen([sys.executable, "-c", program, str(place)]) for _ in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    _sound(place)


def test_a_broken_anchor_is_none(log: Path) -> None:
    """Half an anchor, as a power cut may leave it, alarms nobody; the next writer makes a new one."""
    place = Path(anchor.anchor_path(str(log)))
    for raw in (b"", b"\0" * 90, place.read_bytes()[:40], b"[]", b'{"length":"7"}'):
        place.write_bytes(raw)
        _sound(log)
    _recorded(log)
    assert anchor.load(str(log)) is not None


def test_anchors_are_private(log: Path) -> None:
    """The folder has mode 0700 and each anchor 0600; one that can't be kept stops nobody from recording."""
    assert os.stat(anchor.anchor_folder()).st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in Path(anchor.anchor_folder()).iterdir()} == {0o600}


def test_without_a_home_recording_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the state folder can't be made, nothing fails, and ``verify`` says that there is no anchor."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    for name in ("run.db", "run.jsonl"):
        _sound(_recorded(tmp_path / name), "no anchor")


@pytest.mark.only_files("no machine keeps an anchor of a server's store")
def test_both_stores_are_anchored_while_they_are_open(store: Store, store_path: Path) -> None:
    """What was appended through a store is anchored when it is closed at the latest."""
    builders.write(store, "s", ["Bash:ls", "Read:a"])
    store.close()
    found = anchor.load(str(store_path))
    assert found is not None
    assert found.length > 0


@pytest.fixture(params=["database", "server"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open a store that holds records of two sessions in tables, by turns, and others of a third."""
    place = request.getfixturevalue("server_url") if request.param == "server" else str(tmp_path / "run.db")
    store = open_store(place, create=True)
    for number in range(3):
        for name in ("a", "b"):
            store.append([builders.entry(name, number, "Bash", {"command": f"x{number}"})])
    store.append([builders.entry("c", number, "Bash", {"command": "x"}) for number in range(2)])
    if not store.engine.shared:
        store.engine.execute("PRAGMA foreign_keys = OFF")
    assert store.examine().damaged == []
    yield store
    store.close()


def _changed(store: Store, *changes: str) -> list[str]:
    """Change a store behind its back, `{first}`, `{middle}` and `{last}` being places of session a; return what is told."""
    first, middle, last = (row[0] for row in store.engine.query("SELECT seq FROM record WHERE session = 1 ORDER BY seq"))
    with store.engine.transaction():
        for change in changes:
            store.engine.execute(change.format(first=first, middle=middle, last=last))
    return [item.kind for item in store.examine().damaged]


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ("UPDATE record SET body = replace(body, 'x1', 'y1') WHERE seq = {middle}", ["altered"]),
        ("UPDATE record SET session = 2 WHERE seq = {middle}", ["inserted", "altered"]),
        ("DELETE FROM record WHERE seq = {first}", ["altered"]),
        ("DELETE FROM record WHERE seq = {middle}", ["altered"]),
        ("DELETE FROM record WHERE seq = {last}", ["cut"]),
        ("UPDATE record SET sum = NULL WHERE seq = {middle}", ["unsummed", "altered"]),
        ("UPDATE session SET sum = '0000000000000000' WHERE id = 'a'", ["altered"]),
        ("UPDATE session SET sum = NULL WHERE id = 'a'", ["altered"]),
        ("DELETE FROM record WHERE session = 1", ["cut"]),
    ],
)
def test_what_was_changed_in_one_session_is_told(tables: Store, change: str, kinds: list[str]) -> None:
    """Each session's records are chained: what is changed, removed or cut of one is told, however others go on."""
    assert _changed(tables, change) == kinds


def _gone(session: int) -> list[str]:
    names = ("entry", "record", "session")
    return [f"DELETE FROM {name} WHERE {'key' if name == 'session' else 'session'} = {session}" for name in names]


def test_each_session_has_the_sums_that_a_log_of_it_has(tables: Store) -> None:
    """The sums of a session's records follow from one another, and no other session's record has a part in them."""
    for key in (1, 2, 3):
        total = ""
        rows = list(tables.engine.query("SELECT body, sum FROM record WHERE session = :key ORDER BY seq", {"key": key}))
        assert rows != []
        for body, found in rows:
            total = codec.chain(total, str(body).encode())
            assert found == total


def test_what_could_not_be_written_costs_no_sum(tables: Store) -> None:
    """Where a record of an append turns out to be known, or to conflict, the sums of the others follow all the same."""
    known, fresh = builders.entry("a", 1, "Bash", {"command": "x1"}), builders.entry("a", 7, "Bash", {"command": "x"})
    assert tables.append([known, fresh, builders.entry("b", 7, "Bash", {"command": "x"})]).added == 2
    with pytest.raises(Conflict):
        tables.append([builders.entry("a", 8, "Bash", {"command": "x"}), {**known, "action": "Other"}])
    tables.append([builders.entry("a", 9, "Bash", {"command": "x"})])
    assert tables.examine().damaged == []


@pytest.mark.parametrize("session", [1, 2])
def test_a_session_that_is_gone_is_told_by_the_places_it_had(tmp_path: Path, session: int) -> None:
    """Without an anchor a session that was removed with all its rows leaves places without records."""
    store = _three(tmp_path / "run.db")
    shutil.rmtree(anchor.anchor_folder())
    assert _changed(store, *_gone(session)) == ["cut"]
    store.close()


def _three(place: Path) -> Store:
    store = open_store(str(place), create=True)
    for number in range(9):
        store.append([builders.entry("abc"[number % 3], number, "Bash", {"command": f"x{number}"})])
    store.close()
    store = open_store(str(place))
    store.engine.execute("PRAGMA foreign_keys = OFF")
    return store


def _sealed_anew(store: Store, session: int) -> None:
    total = ""
    with store.engine.transaction():
        for seq, body in store.engine.query("SELECT seq, body FROM record WHERE session = :key ORDER BY seq", {"key": session}):
            changed = str(body).replace('"x', '"y')
            total = codec.chain(total, changed.encode())
            values = {"seq": seq, "body": changed, "sum": total}
            store.engine.execute("UPDATE record SET body = :body, sum = :sum WHERE seq = :seq", values)
        store.engine.execute("UPDATE session SET sum = :sum WHERE key = :key", {"sum": total, "key": session})


def test_any_session_that_was_sealed_anew_is_not_the_one_that_was_anchored(tmp_path: Path) -> None:
    """Who rewrites a session with sums that follow is found by the anchor, whichever session was written last, for good."""
    place = tmp_path / "run.db"
    store = _three(place)
    _sealed_anew(store, 1)
    assert [item.kind for item in store.examine().damaged] == ["altered"]
    store.append([builders.entry("b", 20, "Bash", {"command": "x"})])
    store.close()
    assert _kinds(place) == ["altered"]
    _recorded(place, session="d")
    assert _kinds(place) == ["altered"]
    assert run("verify", "--accept", "--store", str(place)).code == 0
    _sound(place)
    _recorded(place, session="b")
    _sound(place)


def test_a_session_that_was_removed_and_its_places_given_away_is_missed(tmp_path: Path) -> None:
    """Where others were moved together, so that no place is empty, the anchor still knows the session that is gone."""
    place = tmp_path / "run.db"
    with closing(open_store(str(place), create=True)) as store:
        for session in ("a", "b", "c"):
            builders.write(store, session, ["Bash:ls"])
    with closing(open_store(str(place))) as store:
        store.engine.execute("PRAGMA foreign_keys = OFF")
        with store.engine.transaction():
            for statement in _gone(2):
                store.engine.execute(statement)
            for table, column in (("record", "seq"), ("entry", "seq"), ("entry", "result"), ("session", "seq")):
                owner = "key" if table == "session" else "session"
                store.engine.execute(f"UPDATE {table} SET {column} = {column} - 2 WHERE {owner} = 3")
        assert [item.kind for item in store.examine().damaged] == ["altered"]
        store.append([builders.entry("c", 20 + number, "Bash", {"command": "x"}) for number in range(3)])
        assert [item.kind for item in store.examine().damaged] == ["altered"]


@pytest.mark.parametrize(("name", "value"), [("end:x", "0 1"), ("end:5", "0"), ("gap:x", "0"), ("sums.chained", "abc")])
def test_what_is_kept_of_the_sums_may_be_altered(tmp_path: Path, name: str, value: str) -> None:
    """A row of the store's own state that says nothing is damage, which is told."""
    place = _recorded(tmp_path / "run.db")
    with closing(open_store(str(place))) as store:
        store.engine.execute("INSERT INTO state (name, value) VALUES (:name, :value)", {"name": name, "value": value})

    found = _examined(place)
    assert (found.records, [item.kind for item in found.damaged]) == (7, ["altered"])
    assert f"under {name.partition(':')[0]!r}"[:-1] in found.damaged[0].reason
