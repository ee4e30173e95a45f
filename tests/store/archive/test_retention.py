"""Sessions that ended move into an archive, whole and once; nothing of an open session is ever touched (007, retention)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.errors import Damaged, InvalidInput, NotFound
from ctxmgr.history.query.requests import list_, messages, search, show
from ctxmgr.log import anchor
from ctxmgr.log.codec import Record, chain, encode
from ctxmgr.log.ids import format_time
from ctxmgr.store import Store, administer, open_store
from ctxmgr.store.archive import parquet, retention
from ctxmgr.store.archive.parquet import open_archive
from ctxmgr.store.archive.retention import ArchivableSession, archivable_sessions, retain
from ctxmgr.store.repositories.bookkeeping import WATCHED
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListRequest, MessagesRequest, SearchRequest, ShowRequest
from tests.store.common_chain import make_former
from tests.store.divided import Divided

DAY = 86_400.0
NOW = 1_790_000_000.0
ODD = "x'; DROP TABLE record; -- \u202e \0 \ud800 ../../etc"


def story(session: str, *, age: float, calls: int = 3, ended: bool = True, pending: bool = False) -> list[Record]:
    """Return a session whose last record is so many days old."""
    moments = iter(format_time(NOW - age * DAY - 60 + second) for second in range(60))
    records = [build("session", session, next(moments), process=f"p-{session}", workflow="w")]
    for number in range(calls):
        name = f"{session}-{number}"
        records.append(
            build("entry", session, next(moments), id=name, agent="coder", action="Bash", input=f"needle {ODD} {number}")
        )
        if not pending:
            records.append(build("result", session, next(moments), entry=name, status="ok", output={"said": ODD}))
    records.append(build("event", session, next(moments), id=f"{session}-said", type="message", data={"text": "a word"}))
    if ended:
        records.append(build("sessionEnd", session, next(moments), process=f"p-{session}", outcome="completed"))
    return records


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name the place of an empty store of each kind from which anything can be removed."""
    return str(request.getfixturevalue("server_url") if request.param == "postgresql" else tmp_path / "history.db")


@pytest.fixture(params=["folder", "bucket"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name the place of an archive of each kind."""
    return str(request.getfixturevalue("bucket") if request.param == "bucket" else tmp_path / "kept")


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """Open the store, empty."""
    opened = open_store(place, create=True)
    yield opened
    opened.close()


def bodies(store: Store, session: str | None = None) -> list[bytes]:
    """Return the records of a store, or of one session, as they are spelled."""
    key = None if session is None else store.sessions.key(session)
    return [encode(record) for record in store.sessions.records(key)]


def chosen(store: Store, *, days: float = 30, abandoned: float | None = None) -> list[ArchivableSession]:
    """Return what may be archived."""
    return archivable_sessions(store, NOW - days * DAY, None if abandoned is None else NOW - abandoned * DAY)[0]


@pytest.mark.cases(1)
def test_what_ended_moves_and_reads_the_same(store: Store, kept: str) -> None:
    """An archive answers as the store did, byte for byte; the store holds the rest, and its sums still follow."""
    for session, age in (("old", 40), ("older", 90), ("new", 1)):
        store.append(story(session, age=age))
    before = {session: bodies(store, session) for session in ("old", "older", "new")}
    asked = ListRequest(session="old", limit=10)
    listed, found = list_(store, asked), search(store, SearchRequest(query="NEEDLE", session="old"))

    done = retain(store, kept, chosen(store))

    assert done.sessions == ["older", "old"]
    assert bodies(store) == before["new"]
    assert store.verify() == (len(before["new"]), [])
    assert [view.session for _, view in store.sessions.page(0, None)] == ["new"]
    opened = open_archive(kept)
    assert {session: bodies(opened, session) for session in ("old", "older")} == {k: before[k] for k in ("old", "older")}
    assert list_(opened, asked).entries == listed.entries
    assert len(search(opened, SearchRequest(query="NEEDLE", session="old")).hits) == len(found.hits) > 0
    assert show(opened, ShowRequest(session="old", index=1)).entry.index == 1
    assert len(messages(opened, MessagesRequest(session="old")).messages) == 1
    assert opened.verify() == (sum(map(len, before.values())) - len(before["new"]), [])
    opened.close()


@pytest.mark.cases(1)
def test_nothing_open_is_touched(store: Store, kept: str) -> None:
    """Whatever its age, a session without an end, or that somebody recovers, stays; an old one goes where that is said."""
    store.append(story("unended", age=400, ended=False))
    store.append(story("held", age=400))
    store.append(story("ended", age=400))
    store.append(story("last", age=1))
    assert store.leases.take("held", "somebody", store.clock(), 60)
    found, stay = archivable_sessions(store, NOW - 30 * DAY)

    assert [each.session for each in found] == ["ended"]
    assert sorted(session for session, _ in stay) == ["held", "unended"]
    assert [each.session for each in chosen(store, abandoned=300)] == ["unended", "ended"]
    assert chosen(store, abandoned=500)[0].session == "ended"
    retain(store, kept, found)
    assert {view.session for _, view in store.sessions.page(0, None)} == {"unended", "held", "last"}


@pytest.mark.cases(1)
def test_leases_go_with_their_session(store: Store, kept: str) -> None:
    """That of its recoveries and that of its watcher are removed with it; another session's stay."""
    for session, age in (("old", 40), ("last", 1)):
        store.append(story(session, age=age))
        for name in (session, f"{WATCHED}{session}"):
            assert store.leases.take(name, "somebody", store.clock(), 60)
    store.engine.execute("UPDATE lease SET expires = 0 WHERE session = 'old'")
    retain(store, kept, chosen(store))
    left = {str(name) for (name,) in store.engine.query("SELECT session FROM lease")}
    assert left == {"last", f"{WATCHED}last"}


def test_an_imported_session_has_ended_when_no_call_is_open(store: Store) -> None:
    """Logs of other agents tell no end; one with an open call may still go on."""
    for session, pending in (("whole", False), ("open", True)):
        first, *rest = story(session, age=50, ended=False, pending=pending)
        store.append([{**first, "source": {"agent": "codex"}}, *rest])
    store.append(story("last", age=1))

    assert [each.session for each in chosen(store)] == ["whole"]


@pytest.mark.cases(1)
def test_what_was_archived_is_refused_until_it_is_taken_back(store: Store, kept: str) -> None:
    """The same records again are stored nowhere twice; who asks for the session hears where it is."""
    records = story("old", age=40)
    store.append(records)
    store.append(story("last", age=1))
    before = bodies(store, "old")
    retain(store, kept, chosen(store))

    for again in (records, records[1:2], records[1:3]):
        with pytest.raises(InvalidInput, match="was archived in"):
            store.append(again)
    with pytest.raises(InvalidInput, match="was archived in"):
        store.sessions.key("old")
    assert [row["session"] for row in retention.archived_sessions(store)] == ["old"]
    assert retention.restore(store, kept, "old") == (1, len(before))
    assert bodies(store, "old") == before
    assert store.verify()[1] == []
    assert retention.archived_sessions(store) == []
    with pytest.raises(NotFound):
        retention.restore(store, kept, "other")


@pytest.mark.cases(1)
def test_a_session_that_went_on_stays(store: Store, kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded after the archive was written is not lost: the session stays as it is, and goes next time."""
    store.append(story("old", age=40))
    store.append(story("last", age=1))
    found, wrote = chosen(store), parquet.write_file

    def slowly(folder: str, records: Iterator[tuple[str, Record, str]]) -> str:
        path = wrote(folder, records)
        store.append([build("event", "old", format_time(NOW), id="late", type="message", data={"text": "more"})])
        return path

    monkeypatch.setattr(retention, "write_file", slowly)
    done = retain(store, kept, found)

    assert (done.sessions, [session for session, _ in done.passed_over]) == ([], ["old"])
    assert len(bodies(store, "old")) == len(story("old", age=40)) + 1


@pytest.mark.cases(1)
@pytest.mark.parametrize("step", ["write_parquet", "replace", "put", "DELETE FROM entry", "DELETE FROM session"])
def test_a_kill_loses_and_doubles_nothing(step: str, tmp_path: Path, kept: str) -> None:
    """Killed anywhere, the next run finishes: every record is in the store or in the archive, and read once."""
    place = str(tmp_path / "history.db")
    if step == "put" and "://" not in kept:
        return
    with open_store(place, create=True).engine.transaction():
        pass
    store = open_store(place)
    for session, age in (("a", 40), ("b", 40), ("last", 1)):
        store.append(story(session, age=age))
    wanted = sorted(bodies(store))
    store.close()
    ended = subprocess.run([sys.executable, "-c", KILLED, place, kept, step], cwd=Path(__file__).parents[3], check=False)
    assert ended.returncode == -signal.SIGKILL

    store = open_store(place)
    assert store.verify()[1] == []
    retain(store, kept, chosen(store))
    opened = open_archive(kept)

    assert sorted([*bodies(store), *bodies(opened)]) == wanted
    opened.close()
    store.close()


KILLED = f"""
import os, signal, sys
sys.path.insert(0, os.getcwd())
from ctxmgr.store import open_store
from ctxmgr.store.archive import retention
from ctxmgr.store.engine.sqlite import SqliteEngine
place, kept, step = sys.argv[1:]
def dies(call, when):
    def instead(*given, **named):
        if when(*given, **named):
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    return instead
if step == "replace":
    os.replace = dies(os.replace, lambda *paths: str(paths[-1]).endswith(".parquet"))
elif step == "put":
    retention.Bucket.put = dies(retention.Bucket.put, lambda *_: True)
elif step == "write_parquet":
    retention.write_file = dies(retention.write_file, lambda *_: True)
else:
    SqliteEngine.execute = dies(SqliteEngine.execute, lambda self, sql, values=None: sql.startswith(step))
store = open_store(place)
retention.retain(store, kept, retention.archivable_sessions(store, {NOW - 30 * DAY})[0])
"""


def test_a_damaged_store_is_not_archived(tmp_path: Path) -> None:
    """A changed record would get a new sum in the archive, and nobody would ever know."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    store.append(story("old", age=40))
    store.append(story("last", age=1))
    store.engine.execute("UPDATE record SET body = replace(body, 'needle', 'noodle') WHERE kind = 'entry'")

    with pytest.raises(Damaged, match="nothing was archived"):
        retain(store, str(tmp_path / "kept"), chosen(store))
    assert not (tmp_path / "kept").exists()
    store.close()


def test_a_log_is_refused(tmp_path: Path) -> None:
    """From a log nothing is removed; what to do instead is said."""
    store = open_store(str(tmp_path / "history.jsonl"), create=True)
    with pytest.raises(InvalidInput, match="a log"):
        archivable_sessions(store, NOW)
    store.close()


sessions = st.lists(
    st.tuples(st.sampled_from([1, 29, 31, 400]), st.booleans(), st.booleans(), st.integers(0, 4)), min_size=1, max_size=6
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=sessions, mixed=st.booleans())
def test_store_and_archive_hold_all_there_was(drawn: list[tuple[int, bool, bool, int]], mixed: bool, tmp_path: Path) -> None:
    """Whatever sessions there are, and however their records lie among each other."""
    folder = tmp_path / os.urandom(6).hex()
    folder.mkdir()
    store = open_store(str(folder / "history.db"), create=True)
    stories = [
        story(f"s{number}", age=age, ended=ended, pending=pending, calls=calls)
        for number, (age, ended, pending, calls) in enumerate(drawn)
    ]
    for records in zip(*stories, strict=False) if mixed else ():
        store.append(records)
    for records in stories:
        store.append(records)
    wanted, open_ones = sorted(bodies(store)), [f"s{n}" for n, (age, ended, *_) in enumerate(drawn) if age < 30 or not ended]
    untouched = {session: bodies(store, session) for session in open_ones}

    done = retain(store, str(folder / "kept"), chosen(store))

    assert not set(done.sessions) & set(open_ones)
    assert {session: bodies(store, session) for session in open_ones} == untouched
    kept = [encode(record) for record in parquet.read_records(str(folder / "kept"))] if done.files else []
    assert sorted([*bodies(store), *kept]) == wanted
    assert store.verify()[1] == []
    store.append(story("later", age=0))
    assert store.verify()[1] == []
    store.close()


@pytest.mark.cases(1)
def test_each_team_has_a_folder_of_its_own(kept: str) -> None:
    """A keeper archives the sessions of its own team alone, below the team's name; the other team's stay as they are."""
    made = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    with closing(administer(made.url("owner"))) as owner:
        owner.init()
        for role, team in (("alice", "one"), ("bob", "two/\u00fc")):
            owner.grant(made.roles[role], team, removes=True)
    for role in ("alice", "bob"):
        with closing(made.open(role)) as store:
            store.append(story("old", age=40))
            store.append(story(f"of-{role}", age=50))
    with closing(made.open("alice")) as alice, closing(made.open("bob")) as bob:
        before = bodies(bob)
        done = retain(alice, kept, chosen(alice))
        assert (sorted(done.sessions), bodies(alice), bodies(bob)) == (["of-alice", "old"], [], before)
        retain(bob, kept, chosen(bob))
        assert bodies(bob) == []
        assert [row["file"].partition("/")[0] for row in retention.archived_sessions(bob)] == ["team=two%2F%C3%BC"] * 2
        retention.restore(bob, f"{kept}/team=two%2F%C3%BC")
        assert sorted(bodies(bob)) == sorted(before)


def _verified(place: Path) -> tuple[list[str], list[str]]:
    with closing(open_store(str(place), readonly=True)) as store:
        found = store.examine()
    return [item.kind for item in found.damaged], found.unchecked


@pytest.mark.cases(1)
@pytest.mark.parametrize("former", [False, True])
def test_sums_and_anchors_count_over_what_is_gone(tmp_path: Path, former: bool) -> None:
    """What was archived, from either chain, is no damage; whatever else changes is still told, also by the anchor alone."""
    place, kept = tmp_path / "history.db", str(tmp_path / "kept")
    with closing(open_store(str(place), create=True)) as store:
        for records in zip(story("old", age=40), story("older", age=60), story("new", age=2), strict=True):
            for record in records:
                store.append([record])
    if former:
        make_former(place)
    with closing(open_store(str(place))) as store:
        store.append([build("event", "older", format_time(NOW - 50 * DAY), id="late", type="message", data={"text": "more"})])
        store.append(story("last", age=1))
    for turn in range(2):
        with closing(open_store(str(place))) as store:
            retain(store, kept, chosen(store))
        assert _verified(place) == ([], [])
        with closing(open_store(str(place))) as store:
            retention.restore(store, kept, "older")
            store.append([build("event", "last", format_time(NOW), id=f"e{turn}", type="message", data={"text": "more"})])
        assert _verified(place) == ([], [])
    with closing(open_store(str(place))) as store:
        key, last = store.engine.query("SELECT key, seq FROM session WHERE id = 'older'")[0]
        ((body, before),) = store.engine.query(
            "SELECT record.body, former.sum FROM record JOIN record AS former ON former.seq = record.seq - 1 "
            "WHERE record.seq = :seq",
            {"seq": last},
        )
        changed = str(body).replace("more", "less")
        values = {"body": changed, "sum": chain(str(before), changed.encode()), "seq": last, "key": key}
        store.engine.execute("UPDATE record SET body = :body, sum = :sum WHERE seq = :seq", values)
        store.engine.execute("UPDATE session SET sum = :sum WHERE key = :key", values)
    assert _verified(place)[0] == ["altered"]


def test_an_anchor_from_before_something_was_archived_is_said_to_tell_nothing(tmp_path: Path) -> None:
    """What another user's anchor knows of a session that went on and was archived can't be compared: that is no damage."""
    place = tmp_path / "history.db"
    records = story("old", age=40)
    with closing(open_store(str(place), create=True)) as store:
        store.append(records[:2])
    stale = Path(anchor.anchor_path(str(place))).read_bytes()
    with closing(open_store(str(place))) as store:
        store.append([*records[2:], *story("last", age=1)])
        retain(store, str(tmp_path / "kept"), chosen(store))
    Path(anchor.anchor_path(str(place))).write_bytes(stale)
    damaged, unchecked = _verified(place)
    assert (damaged, [text for text in unchecked if "archived" in text]) == ([], unchecked)
    assert unchecked

    with closing(open_store(str(place))) as store:  # whoever goes on gets an anchor that knows all
        store.append([build("event", "last", format_time(NOW), id="e", type="message", data={"text": "more"})])
    assert _verified(place) == ([], [])


@pytest.mark.cases(1)
def test_a_session_of_any_name_is_archived_and_restored(store: Store, kept: str) -> None:
    """An id that is no text elsewhere is moved like any other, once."""
    name = "odd \ud800"
    store.append(story(name, age=30))
    store.append(story("later", age=1))
    sessions, _ = archivable_sessions(store, NOW - 10 * DAY)
    done = retain(store, kept, sessions)

    assert len(done.sessions) == 1
    assert archivable_sessions(store, NOW - 10 * DAY) == ([], [])
    assert retention.restore(store, kept, name) == (1, done.records)
