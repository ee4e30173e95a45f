"""Shipping: local records reach another store once each, in order, whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ctxmgr.errors import CtxmgrError, NotFound, StorageFailed
from ctxmgr.history.shipper import Service, Shipper, known_progress
from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.recorder import Recorder
from ctxmgr.store import Store, open_store
from ctxmgr.store.archive.retention import restore, retain
from ctxmgr.store.project_session import PROJECT
from tests.builders import entry, steps, write
from tests.store.archive.test_retention import chosen, story


@pytest.fixture(params=["sqlite", "jsonl", "postgresql"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name an empty store to ship to, of each kind."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("server_url"))
    return str(tmp_path / f"shared.{'db' if request.param == 'sqlite' else 'jsonl'}")


def recorded(path: Path, count: int, session: str = "s") -> list[Record]:
    """Record entries into a log or a database, and return what it holds."""
    with closing(open_store(str(path), create=True)) as store:
        store.append(steps(session, [f"Bash:{session} {number}" for number in range(count)]))
        return list(store.sessions.records(None))


def held(location: str) -> list[Record]:
    """Return all records of a store, in their order."""
    with closing(open_store(location, readonly=True)) as store:
        assert store.verify()[1] == []
        return list(store.sessions.records(None))


def shipped(path: Path, target: str) -> Shipper:
    """Ship a place once."""
    shipper = Shipper(str(path), target, target)
    with closing(Service([shipper], target)) as service:
        service.once()
    return shipper


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["run.jsonl", "run.db"])
def test_every_record_arrives_once_and_in_order(tmp_path: Path, target: str, name: str) -> None:
    """A log and a database are shipped whole; again, nothing is added; what is recorded later follows."""
    records = recorded(tmp_path / name, 300)
    assert shipped(tmp_path / name, target).progress.added == len(records)
    assert held(target) == records

    again = shipped(tmp_path / name, target).progress
    assert (again.added, again.known, again.lag) == (len(records), 0, 0)  # the note says so: nothing is read again
    records = recorded(tmp_path / name, 20, "later")
    assert shipped(tmp_path / name, target).progress.lag == 0
    assert held(target) == records


@pytest.mark.cases(1)
def test_without_any_note_nothing_is_doubled(tmp_path: Path, target: str) -> None:
    """Where the note of the last run is gone all is sent again, and all of it is known."""
    records = recorded(tmp_path / "run.jsonl", 300)
    shipped(tmp_path / "run.jsonl", target)
    for note in (Path(os.environ["XDG_STATE_HOME"]) / "ctxmgr" / "ship").iterdir():
        note.unlink()

    again = shipped(tmp_path / "run.jsonl", target).progress
    assert (again.added, again.known) == (0, len(records))
    assert held(target) == records


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"source":"x","target":"y","done":"a"}', b"\xff" * 50])
def test_a_note_that_says_nothing_is_no_hindrance(tmp_path: Path, target: str, content: bytes) -> None:
    """A torn or foreign note is as good as none."""
    records = recorded(tmp_path / "run.jsonl", 5)
    shipped(tmp_path / "run.jsonl", target)
    for note in (Path(os.environ["XDG_STATE_HOME"]) / "ctxmgr" / "ship").iterdir():
        note.write_bytes(content)
    shipped(tmp_path / "run.jsonl", target)
    assert held(target) == records


def test_a_store_that_was_made_anew_gets_all_again(tmp_path: Path) -> None:
    """A note that the store contradicts is not believed."""
    records, target = recorded(tmp_path / "run.jsonl", 10), tmp_path / "shared.db"
    shipped(tmp_path / "run.jsonl", str(target))
    for suffix in ("", "-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    shipped(tmp_path / "run.jsonl", str(target))
    assert held(str(target)) == records


def test_a_log_that_was_replaced_is_read_from_its_start(tmp_path: Path, target: str) -> None:
    """Another log at the same path, longer than the one before, is shipped whole."""
    before = recorded(tmp_path / "run.jsonl", 5)
    shipped(tmp_path / "run.jsonl", target)
    (tmp_path / "run.jsonl").unlink()
    after = recorded(tmp_path / "run.jsonl", 50, "other")
    shipped(tmp_path / "run.jsonl", target)
    assert held(target) == before + after


def test_a_line_that_is_still_being_written_waits(tmp_path: Path, target: str) -> None:
    """Half a line is not shipped and not passed over: it comes when it is whole."""
    records = recorded(tmp_path / "run.jsonl", 3)
    whole = (tmp_path / "run.jsonl").read_bytes()
    for cut in (1, 20, 60):
        (tmp_path / "run.jsonl").write_bytes(whole[:-cut])
        shipped(tmp_path / "run.jsonl", target)
    (tmp_path / "run.jsonl").write_bytes(whole)
    assert shipped(tmp_path / "run.jsonl", target).progress.lag == 0
    assert held(target) == records


def test_what_cant_be_stored_holds_nothing_up(tmp_path: Path, target: str) -> None:
    """A record that no store takes, and lines that are none, are counted and passed over."""
    log = tmp_path / "run.jsonl"
    good = [entry("s", number, "Bash") for number in range(3)]
    odd = {"v": 1, "kind": "entry", "session": "s", "id": "", "agent": 3, "action": None}
    lines = [codec.encode(good[0]), codec.encode(odd), b"no json", codec.encode(good[1]), codec.encode(good[2])]
    log.write_bytes(b"\n".join(lines) + b"\n")
    progress = shipped(log, target).progress
    assert [record["id"] for record in held(target)] == [record["id"] for record in good]
    assert (progress.refused, progress.lag) == (1, 0)


@pytest.mark.parametrize("name", ["", "s"])
def test_what_cant_be_stored_is_not_sent_again(tmp_path: Path, target: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the last record of a log, or all of it, is refused, the next round goes on behind it."""
    log = tmp_path / "run.jsonl"
    odd = codec.encode({"v": 1, "kind": "entry", "session": "s", "id": "odd", "agent": 3, "action": None})
    log.write_bytes(b"".join(codec.encode(each) + b"\n" for each in ([entry(name, 0, "Bash")] if name else [])) + odd + b"\n")
    shipped(log, target)
    monkeypatch.setattr(Store, "append_lines", None)
    progress = shipped(log, target).progress
    assert (progress.added, progress.refused, progress.lag) == (len(name), 1, 0)
    assert progress.refusal is not None


@pytest.fixture
def archived(tmp_path: Path, any_store: str) -> tuple[Path, str]:
    """Ship a session and archive it there; return the log and the archive."""
    log, archive = tmp_path / "run.jsonl", str(tmp_path / "kept")
    for place, session, age in ((log, "old", 40), (tmp_path / "other.jsonl", "last", 1)):
        with closing(open_store(str(place), create=True)) as store:
            store.append(story(session, age=age))
        shipped(place, any_store)
    with closing(open_store(any_store)) as store:
        assert retain(store, archive, chosen(store)).sessions == ["old"]
    return log, archive


@pytest.fixture(params=["sqlite", "postgresql"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name an empty store of each kind that can be archived from."""
    return str(request.getfixturevalue("server_url") if request.param == "postgresql" else tmp_path / "shared.db")


@pytest.mark.cases(1)
def test_a_log_whose_sessions_were_archived_is_not_sent_again(
    any_store: str, archived: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the last record is in the archive now makes no log new: nothing is sent, and nothing counts as refused."""
    monkeypatch.setattr(Store, "append_lines", None)
    progress = shipped(archived[0], any_store).progress
    assert (progress.added, progress.archived, progress.refused, progress.lag) == (9, 0, 0, 0)


@pytest.mark.cases(1)
def test_a_log_that_is_sent_again_is_known_to_be_archived(any_store: str, archived: tuple[Path, str]) -> None:
    """Without the note all is sent again, once: what is in the archive is counted with its place; what was not is added."""
    log, archive = archived
    for note in (Path(os.environ["XDG_STATE_HOME"]) / "ctxmgr" / "ship").iterdir():
        note.unlink()
    with closing(open_store(str(log))) as store:
        store.append([entry("new", 1)])
    for _round in range(2):
        progress = shipped(log, any_store).progress
        assert (progress.added, progress.archived, progress.archive, progress.refused) == (1, 9, archive, 0)


@pytest.mark.cases(1)
def test_what_an_archived_session_gets_later_is_told_as_refused(any_store: str, archived: tuple[Path, str]) -> None:
    """A record behind those that were shipped is in no archive: it is counted once, and the reason names the place."""
    log, archive = archived
    with closing(open_store(str(log))) as store:
        store.append([entry("old", 99)])
    for _round in range(2):
        progress = shipped(log, any_store).progress
        assert (progress.added, progress.archived, progress.refused, progress.lag) == (9, 0, 1, 0)
        assert f"session 'old' was archived in {archive}" in str(progress.refusal)


@pytest.mark.cases(1)
def test_what_an_archived_session_got_later_arrives_once_it_is_restored(any_store: str, archived: tuple[Path, str]) -> None:
    """After `store restore` the refused record is shipped, and nothing counts as refused any more."""
    log, archive = archived
    with closing(open_store(str(log))) as store:
        store.append([entry("old", 99)])
    assert shipped(log, any_store).progress.refused == 1
    with closing(open_store(any_store)) as store:
        restore(store, archive, "old")
    progress = shipped(log, any_store).progress
    assert (progress.added, progress.known, progress.refused, progress.lag) == (1, 9, 0, 0)


def test_a_name_too_long_for_a_server_holds_nothing_up(tmp_path: Path, server_url: str) -> None:
    """A record that a local log takes and a server can't is counted and passed over; what stands around it arrives."""
    log, long = tmp_path / "run.jsonl", "".join(f"{number * number:x}" for number in range(9_999))
    records = [entry("s", 0), entry("s", 1, long), entry("s", 2), entry(long, 3), entry("s", 4)]
    with closing(open_store(str(log), create=True)) as store:
        store.append(records)
    progress = shipped(log, server_url).progress
    assert held(server_url) == [records[0], records[2], records[4]]
    assert (progress.refused, progress.lag, progress.error) == (2, 0, None)


def test_indexing_for_search_holds_up_no_shipping(tmp_path: Path, server_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows a log indexes for a while only, looks for what is new, and indexes the rest the next times."""
    monkeypatch.setattr("ctxmgr.store.search.find_on_server._SLICE", 10)
    log = tmp_path / "run.jsonl"
    recorded(log, 40)
    left: list[int] = []
    with closing(Service([Shipper(str(log), server_url, server_url)], server_url)) as service:
        while not left or left[-1]:
            service.once(indexing=0.0)
            with closing(open_store(server_url, readonly=True)) as store:
                left.append(store.count_unindexed())
    assert left[0] > 10
    assert left == sorted(left, reverse=True)


def test_a_known_id_with_other_content_keeps_the_first(tmp_path: Path, target: str) -> None:
    """Two machines that use one id for two things: the first stays, the other is counted, and the rest goes on."""
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for log, action in ((first, "Read"), (second, "Write")):
        with closing(open_store(str(log), create=True)) as store:
            store.append([entry("s", 0, action), entry(f"own {action}", 0, action)])
    shipped(first, target)
    progress = shipped(second, target).progress
    assert (progress.added, progress.changed) == (1, 1)
    assert [record["action"] for record in held(target)] == ["Read", "Read", "Write"]


def test_the_projects_own_state_stays_unless_it_is_trusted(tmp_path: Path) -> None:
    """Access rules and context of one machine do not become those of all; told, and taken along on request."""
    log, target = tmp_path / "run.jsonl", str(tmp_path / "shared.db")
    own: Record = {"v": 1, "kind": "event", "session": PROJECT, "id": "k", "type": "project_context", "data": {"changes": []}}
    with closing(open_store(str(log), create=True)) as store:
        store.append([own, entry("s", 0, "Bash")])
    assert shipped(log, target).progress.left_out == 1
    assert [record["session"] for record in held(target)] == ["s"]
    other = str(tmp_path / "trusting.db")
    shipper = Shipper(str(log), other, other, trusted=True)
    with closing(Service([shipper], other)) as service:
        service.once()
    assert [record["session"] for record in held(other)] == [PROJECT, "s"]


def test_secrets_are_masked_before_they_leave(tmp_path: Path, server_url: str) -> None:
    """A log that was written with --no-mask is masked on its way."""
    log = tmp_path / "run.jsonl"
    secret = "ghp_" + "a1B2" * 9
    with closing(open_store(str(log), create=True, masked=False)) as store:
        store.append([entry("s", 0, "Bash", {"command": f"curl -H {secret}"})])
    assert secret in log.read_text()
    shipped(log, server_url)
    assert secret not in json.dumps(held(server_url))


@pytest.mark.slow
def test_several_shippers_at_once_do_no_harm(tmp_path: Path, server_url: str) -> None:
    """Three shippers of one log, none of which knows of the others, bring each record once and in order."""
    records = recorded(tmp_path / "run.jsonl", 1500)
    failures: list[BaseException] = []

    def bring() -> None:
        try:
            shipped(tmp_path / "run.jsonl", server_url)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=bring) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert held(server_url) == records


SHIP = "import sys; from ctxmgr.history.shipper import *; Service([Shipper(*sys.argv[1:], 'x')], sys.argv[2]).once()"


def _count(connection: psycopg.Connection[Any]) -> int:
    if connection.execute("SELECT to_regclass('ctxmgr.record')").fetchone() == (None,):
        return 0
    found = connection.execute("SELECT count(*) FROM ctxmgr.record").fetchone()
    return 0 if found is None else int(found[0])


@pytest.mark.slow
def test_a_shipper_that_is_killed_is_simply_run_again(tmp_path: Path, server_url: str) -> None:
    """Killed in the middle of its work, three times, with no note kept: nothing is lost, doubled or out of order."""
    records = recorded(tmp_path / "run.jsonl", 6000)
    in_the_middle = 0
    with psycopg.connect(server_url, autocommit=True) as connection:
        for _ in range(3):
            before = _count(connection)
            running = subprocess.Popen([sys.executable, "-c", SHIP, tmp_path / "run.jsonl", server_url])
            while running.poll() is None and _count(connection) <= before:
                time.sleep(0.002)
            running.send_signal(signal.SIGKILL)
            running.wait()
            in_the_middle += before < _count(connection) < len(records)
            for note in (Path(os.environ["XDG_STATE_HOME"]) / "ctxmgr" / "ship").glob("*"):
                note.unlink()
    assert in_the_middle, "no kill hit the work: this test shows nothing"
    shipped(tmp_path / "run.jsonl", server_url)
    assert held(server_url) == records


class _Flaky:
    """A store that fails at some appends: before they are written, or after, when the answer is lost."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store = store
        self._random = random.Random(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def append_lines(self, lines: Any, **options: Any) -> Any:
        """Append, or fail before or after."""
        luck = self._random.random()
        if luck < 0.3:
            raise StorageFailed("cut off")
        done = self._store.append_lines(lines, **options)
        if luck < 0.6:
            raise StorageFailed("the answer was lost")
        return done


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(4))
def test_what_fails_is_tried_again_until_it_arrives(
    tmp_path: Path, target: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a line that fails more often than not everything arrives once; the waits grow, and failure and success are told."""
    records = recorded(tmp_path / "run.jsonl", 1200)

    def opened(location: str, **how: Any) -> _Flaky:
        return _Flaky(open_store(location, **how), seed + len(waits))

    monkeypatch.setattr("ctxmgr.history.shipper.open_store", opened)
    waits: list[float] = []
    told: list[CtxmgrError | None] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if shipper.progress.lag == 0 and shipper.progress.error is None:
            raise KeyboardInterrupt

    shipper = Shipper(str(tmp_path / "run.jsonl"), target, target)
    with closing(Service([shipper], target, sleep=sleep)) as service, pytest.raises(KeyboardInterrupt):
        service.follow(1.0, lambda error, _: told.append(error))
    assert held(target) == records
    assert max(waits) <= 30.0
    assert told != []
    assert told[-1] is None


@pytest.mark.cases(1)
def test_that_it_goes_on_is_told_before_all_is_shipped(tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an outage the first batch that is taken ends it: whoever watches need not wait for what was left behind."""
    recorded(tmp_path / "run.jsonl", 600)
    heard: list[tuple[bool, int]] = []
    away = [True]

    def opened(location: str, **how: Any) -> Store:
        if away:
            away.clear()
            raise StorageFailed("away")
        return open_store(location, **how)

    def sleep(_seconds: float) -> None:
        if shipper.progress.lag == 0:
            raise KeyboardInterrupt

    shipper = Shipper(str(tmp_path / "run.jsonl"), target, target)
    monkeypatch.setattr("ctxmgr.history.shipper.open_store", opened)
    with closing(Service([shipper], target, sleep=sleep)) as service, pytest.raises(KeyboardInterrupt):
        service.follow(1.0, lambda error, _: heard.append((error is None, shipper.progress.done)))
    assert [again for again, _ in heard] == [False, True]
    assert 0 < heard[1][1] < shipper.progress.done


def test_a_failure_stands_in_the_status_until_it_is_over(tmp_path: Path, server_url: str) -> None:
    """While nothing can be reached, lag and reason are noted without the store being asked."""
    recorded(tmp_path / "run.jsonl", 5)
    away = "postgresql://tester@/x?host=/nowhere"
    shipper = Shipper(str(tmp_path / "run.jsonl"), away, away)
    with closing(Service([shipper], away)) as service, pytest.raises(StorageFailed):
        service.once()
    (told,) = known_progress()
    assert told.lag == (tmp_path / "run.jsonl").stat().st_size
    assert "can't be reached" in str(told.error)
    assert told.since is not None
    shipped(tmp_path / "run.jsonl", server_url)
    assert [(each.lag > 0, each.error is None) for each in sorted(known_progress(), key=lambda each: each.lag)] == [
        (False, True),
        (True, False),
    ]


def test_a_place_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    """A log that was misspelled is said to be, before anything is sent."""
    with pytest.raises(NotFound):
        Shipper(str(tmp_path / "nothing.jsonl"), "x", "x")


def test_a_recorder_of_a_shipped_log_is_live_everywhere(tmp_path: Path, server_url: str) -> None:
    """Whoever follows a log tells other machines that its recorder is alive."""

    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    def ignore(_error: object, _wait: object) -> None:
        return

    log = tmp_path / "run.jsonl"
    with Recorder(log, session="s", episode=False) as recorder:
        recorder.entry("a", "Bash")
        shipper = Shipper(str(log), server_url, server_url)
        with closing(Service([shipper], server_url, sleep=sleep)) as service, pytest.raises(KeyboardInterrupt):
            service.follow(1.0, ignore)
        with closing(open_store(server_url, readonly=True)) as store:
            assert store.is_live("s")


def test_who_follows_says_that_it_ships_again(tmp_path: Path, server_url: str) -> None:
    """While the server is away the command says why and when it tries again, and when it is back it says that too."""
    log, absent = tmp_path / "run.jsonl", Path(tempfile.mkdtemp(prefix="ctxmgr-", dir="/tmp")) / "s"  # a socket's name is short
    with closing(open_store(str(log), create=True)) as store:
        write(store, "s", ["Bash:a"])
    place = re.findall(r"host=([^&]+)", server_url)[0]
    away = server_url.replace(place, str(absent))
    shipper = subprocess.Popen(
        [sys.executable, "-m", "ctxmgr", "ship", str(log), "--follow", "--every", "0.1", "--store", away],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert shipper.stderr is not None
    try:
        assert "the next try is in" in shipper.stderr.readline()
        absent.symlink_to(place)
        told = next(line for line in shipper.stderr if "the next try" not in line)
        assert told == "ctxmgr: shipping again\n"
    finally:
        shipper.terminate()
        try:
            shipper.communicate(timeout=60)
        finally:
            shipper.kill()  # it would go on shipping into the tests that follow
            shipper.wait()
            shutil.rmtree(absent.parent)
    with closing(open_store(server_url, readonly=True)) as store:
        assert store.sessions.count() == 1


def test_the_unit_of_a_log_is_bytes_however_its_name_is_written(tmp_path: Path) -> None:
    """A log is known by its suffix in capitals as well."""
    recorded(tmp_path / "run.jsonl", 5)
    (tmp_path / "run.jsonl").rename(tmp_path / "RUN.JSONL")
    shipper = shipped(tmp_path / "RUN.JSONL", str(tmp_path / "target.db"))
    assert (shipper.progress.done, shipper.progress.to_json()["unit"]) == ((tmp_path / "RUN.JSONL").stat().st_size, "bytes")
