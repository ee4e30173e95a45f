"""Contents on a server: whole or not there, each team's own, and named by no version before they are there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

from ctxmgr.artifacts.blobs import PIECE, Measure
from ctxmgr.artifacts.put import TextSource, write_access, write_version
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.artifacts.version_folders import audit, check_artifacts
from ctxmgr.errors import Busy, CtxmgrError, Damaged, Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.store import Store, administer, open_store
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.engine.postgresql_functions import BLOB_WRITERS
from ctxmgr.store.repositories.blobs import split
from ctxmgr.types.artifact import GetRequest, ListArtifactsRequest, NewArtifact, PruneRequest, PutRequest, Retention
from tests.artifacts.putting import put, put_one, text
from tests.store.divided import Divided

ALL_BUT_ONE = PruneRequest(retention=Retention(keep_versions=1, keep_days=0, always_keep=[]))


@pytest.fixture
def artifacts(server_store: Store) -> ArtifactStore:
    """Return the artifacts of an empty store on the server."""
    return ArtifactStore(server_store)


def rows(admin: psycopg.Connection[Any]) -> list[tuple[int, int]]:
    """Return (pieces, bytes) of each content that is there, smallest first."""
    return admin.execute(
        "SELECT count(*), sum(octet_length(content))::bigint FROM ctxmgr.blob GROUP BY hash ORDER BY 2"
    ).fetchall()


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_a_content_of_any_size_comes_back(artifacts: ArtifactStore, admin: psycopg.Connection[Any], size: int) -> None:
    """It is kept in pieces of a megabyte, an empty one in one piece, and once however often it is put."""
    content = os.urandom(size)
    with tempfile.TemporaryFile() as source:
        for name in ("a.bin", "b.bin"):
            source.seek(0)
            source.write(content)
            source.seek(0)
            artifacts.put(PutRequest(agent="ml", artifacts=[NewArtifact(name=name, path="-")]), source)
    _, opened = artifacts.open(GetRequest(agent="ml", name="b.bin"))
    with opened:
        assert opened.read() == content
    assert rows(admin) == [(max(1, -(-size // PIECE)), size)]


def test_pieces_are_cut_alike_whatever_they_came_in() -> None:
    """The same bytes are the same pieces, and the last one is the only one that is shorter."""
    content = os.urandom(2 * PIECE + 5)
    for step in (100_000, PIECE, 2 * PIECE):
        parts = list(split(content[start : start + step] for start in range(0, len(content), step)))
        assert [len(part) for part in parts] == [PIECE, PIECE, 5]
        assert b"".join(parts) == content


def test_nothing_is_sent_of_what_is_refused(artifacts: ArtifactStore, admin: psycopg.Connection[Any]) -> None:
    """Where one of several contents is refused none of them reaches the server; what was known is not sent again."""
    secret = "token = ghp_" + "a1B2" * 9 + "\n"
    items = [NewArtifact(name="a.md", content="# a\n"), NewArtifact(name="b.txt", content=secret)]
    with pytest.raises(InvalidInput):
        artifacts.put(PutRequest(agent="arch", artifacts=items, secrets="reject"))
    assert rows(admin) == []
    put(artifacts, "arch", a_md="# a\n")
    (before,) = admin.execute("SELECT xmin::text FROM ctxmgr.blob").fetchall()
    put(artifacts, "arch", a_md="# a\n", b_md="# a\n")
    assert admin.execute("SELECT xmin::text FROM ctxmgr.blob").fetchall() == [before]


KILLED = """
import os, signal, sys
from ctxmgr.artifacts import put
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.store import open_store
from ctxmgr.types.artifact import NewArtifact, PutRequest
store = open_store(sys.argv[1])
append = store.append
def killed(records, **options):
    if sys.argv[3] == "behind":
        append(records, **options)
    os.kill(os.getpid(), signal.SIGKILL)
store.append = killed
ArtifactStore(store).put(PutRequest(agent="arch", artifacts=[NewArtifact(name="a.txt", content="x" * int(sys.argv[2]))]))
"""


@pytest.mark.cases(1)
@pytest.mark.parametrize("moment", ["before", "behind"])
@pytest.mark.parametrize("size", [10, 3 * PIECE])
def test_who_is_killed_before_the_commit_leaves_no_version(
    artifacts: ArtifactStore, server_store: Store, admin: psycopg.Connection[Any], size: int, moment: str
) -> None:
    """What was small is gone with the transaction; what was sent before it is shown by no version, and a prune removes it."""
    put(artifacts, "arch", a_txt="first\n")
    ran = subprocess.run([sys.executable, "-c", KILLED, server_store.location, str(size), moment], check=False)
    assert ran.returncode == -signal.SIGKILL

    assert server_store.artifacts.current() == 1
    assert rows(admin) == [(1, 6)] if size == 10 else [(1, 6), (3, size)]
    assert audit(server_store) == []
    artifacts.prune(ALL_BUT_ONE)
    assert rows(admin) == [(1, 6)]
    assert put_one(artifacts, "arch", "a.txt", "x" * size).version == 2
    assert text(artifacts, "arch/a.txt") == "x" * size


def test_what_was_sent_in_part_is_sent_whole(
    artifacts: ArtifactStore, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is lost between two pieces leaves no version, and the next put begins with the first piece."""
    content, sent = "y" * (3 * PIECE), list[int]()
    execute = PostgresqlEngine.execute

    def failing(self: PostgresqlEngine, sql: str, values: Any = None) -> int:
        if sql.startswith("INSERT INTO blob"):
            sent.append(values["piece"])
            if sent == [0, 1]:
                raise StorageFailed("the connection was lost", "")
        return execute(self, sql, values)

    monkeypatch.setattr(PostgresqlEngine, "execute", failing)
    with pytest.raises(StorageFailed):
        put_one(artifacts, "arch", "a.txt", content)
    assert rows(admin) == [(1, PIECE)]
    put_one(artifacts, "arch", "a.txt", content)
    assert sent == [0, 1, 0, 1, 2]
    assert text(artifacts, "arch/a.txt") == content


def test_writers_of_several_machines_take_turns(server_store: Store) -> None:
    """Each put of many at once makes one version, built on the one before; nothing is lost and no number is used twice."""

    def work(number: int) -> list[int]:
        with closing(open_store(server_store.location)) as own:
            return [put_one(ArtifactStore(own), f"w{number}", f"{each}.md", f"{number} {each}\n").version for each in range(4)]

    with ThreadPoolExecutor(4) as pool:
        made = [version for each in pool.map(work, range(4)) for version in each]
    assert sorted(made) == list(range(1, 17))
    assert len(server_store.artifacts.state(16)) == 16
    assert audit(server_store) == []


@pytest.mark.slow
def test_writers_behind_a_small_pool_do_not_starve_the_one_they_wait_for(pooled: str) -> None:
    """Who waits for the lock holds no connection of the pool, which has two: the lock and the work of one writer."""

    def work(number: int) -> int:
        with closing(open_store(pooled)) as own:
            return put_one(ArtifactStore(own), f"w{number}", "a.md", f"{number}\n").version

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(work, range(6))) == list(range(1, 7))


def _lose_the_lock(admin: psycopg.Connection[Any]) -> None:
    admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s", (BLOB_WRITERS,)
    )


def test_who_loses_the_lock_lists_nothing_that_is_not_there(
    artifacts: ArtifactStore, server_store: Store, admin: psycopg.Connection[Any]
) -> None:
    """The lock goes with its connection. What a prune removed meanwhile is missed in the transaction that lists a version."""
    put(artifacts, "arch", a_md="old\n")
    put(artifacts, "arch", a_md="new\n")
    (old,) = server_store.artifacts.state(1)
    with closing(open_store(server_store.location)) as other, write_access(server_store) as access:
        access.blobs.confirm([old])
        _lose_the_lock(admin)
        ArtifactStore(other).prune(ALL_BUT_ONE)
        with pytest.raises(Busy, match="removed by another process"):
            access.blobs.confirm([old])


def test_who_loses_the_lock_makes_no_version_beside_another(
    artifacts: ArtifactStore, server_store: Store, admin: psycopg.Connection[Any]
) -> None:
    """A version that another one made meanwhile is noticed, and the own one is not made."""
    put(artifacts, "arch", a_md="old\n")
    with closing(open_store(server_store.location)) as other, write_access(server_store) as access:
        _lose_the_lock(admin)
        put(ArtifactStore(other), "arch", a_md="newest\n")
        with pytest.raises(Busy, match="changed by another process"):
            write_version(server_store, access, [], op="create", author="a", description="b")
    assert [row.number for row in server_store.artifacts.versions()] == [1, 2]


def test_who_loses_the_lock_removes_nothing_that_another_listed(
    artifacts: ArtifactStore, server_store: Store, admin: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer that puts the same content meanwhile keeps it, also where the first one fails before it sends it again."""
    content = "z" * (2 * PIECE)

    def fail(self: PostgresqlEngine, sql: str, values: Any = None) -> int:
        if sql.startswith("INSERT INTO blob"):
            raise StorageFailed("the connection was lost", "")
        return execute(self, sql, values)

    execute = PostgresqlEngine.execute
    with write_access(server_store) as access:
        access.blobs.take(lambda: Measure("a.txt"), TextSource(content))
        _lose_the_lock(admin)
        with closing(open_store(server_store.location)) as other:
            put_one(ArtifactStore(other), "arch", "a.txt", content)
        monkeypatch.setattr(PostgresqlEngine, "execute", fail)
        with pytest.raises(StorageFailed):
            access.blobs.settle()
        monkeypatch.undo()
    assert audit(server_store) == []
    assert text(artifacts, "arch/a.txt") == content


@pytest.mark.cases(1)
@pytest.mark.parametrize("change", ["content = 'X'", "content = content || 'X'", "piece = 7", None])
def test_bytes_that_were_changed_on_the_server_are_never_served(
    artifacts: ArtifactStore, server_store: Store, admin: psycopg.Connection[Any], change: str | None
) -> None:
    """They are told by a read, by `doctor` and by nothing else; the same content put again brings them back."""
    contents = {"a.txt": "x\n", "b.txt": "y" * (2 * PIECE)}
    for name, content in contents.items():
        put_one(artifacts, "arch", name, content)
    if change is None or change.startswith("piece"):
        admin.execute("DELETE FROM ctxmgr.blob WHERE piece = 0")
    else:
        admin.execute(f"UPDATE ctxmgr.blob SET {change} WHERE octet_length(content) < 1000000".encode())
        admin.execute("UPDATE ctxmgr.blob SET content = overlay(content PLACING 'Z' FROM 9) WHERE piece = 1")
    for name in contents:
        with pytest.raises(Damaged, match="changed or are gone"):
            text(artifacts, f"arch/{name}")
    assert [fault.reason for fault in audit(server_store)] == ["is gone, or its bytes were changed"] * 2
    (check,) = check_artifacts(server_store.location)
    assert (check.level, check.kind) == ("fail", "damaged")
    for name, content in contents.items():
        assert put_one(artifacts, "arch", name, content).changed is False
        assert text(artifacts, f"arch/{name}") == content
    assert audit(server_store) == []


def test_what_was_swapped_for_something_huge_is_not_fetched_whole(
    artifacts: ArtifactStore, admin: psycopg.Connection[Any]
) -> None:
    """A read ends where there are more bytes than were stored."""
    put(artifacts, "arch", a_txt="x\n")
    admin.execute(
        "INSERT INTO ctxmgr.blob SELECT team, hash, n, convert_to(repeat('x', 1048576), 'UTF8') FROM ctxmgr.blob, "
        "generate_series(1, 30) AS n"
    )
    with pytest.raises(Damaged):
        text(artifacts, "arch/a.txt")


def test_what_is_too_large_for_a_row_is_refused_by_the_server(artifacts: ArtifactStore, admin: psycopg.Connection[Any]) -> None:
    """No client of whatever kind makes rows that others could not read."""
    put(artifacts, "arch", a_txt="x\n")
    with pytest.raises(psycopg.errors.CheckViolation):
        admin.execute("UPDATE ctxmgr.blob SET content = convert_to(repeat('x', 1048577), 'UTF8')")


def test_a_machine_without_room_for_a_file_says_so(artifacts: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents pass through a file without a name; where there can be none nothing is stored, and nothing is called damaged."""
    put(artifacts, "arch", a_txt="x\n")
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    for ask in (lambda: text(artifacts, "arch/a.txt"), lambda: put(artifacts, "arch", a_txt="y\n")):
        with pytest.raises(StorageFailed, match="/nowhere") as refused:
            ask()
        assert "TMPDIR" in str(refused.value.hint)


@pytest.fixture
def teams() -> Divided:
    """Return a store of two teams: Alice writes and Eve reads one, Bob writes the other."""
    made = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    with closing(administer(made.url("owner"))) as owner:
        owner.init()
        for role, team, writes in (("alice", "one", True), ("eve", "one", False), ("bob", "two", True)):
            owner.grant(made.roles[role], team, writes=writes)
    return made


@pytest.fixture
def opened(teams: Divided) -> Iterator[dict[str, Store]]:
    """Open that store as each of them."""
    stores = {name: teams.open(name) for name in ("alice", "eve", "bob")}
    yield stores
    for store in stores.values():
        store.close()


def test_teams_have_contents_of_their_own(teams: Divided, opened: dict[str, Store]) -> None:
    """One team's contents are not there for another: not to be read, not to be known of, and not to be removed by its prune."""
    alice, bob = (ArtifactStore(opened[name]) for name in ("alice", "bob"))
    put(alice, "arch", a_md="shared\n", b_md="alice alone\n")
    put(bob, "arch", a_md="shared\n")
    put(bob, "arch", a_md="later\n")
    with pytest.raises(NotFound):
        text(bob, "arch/b.md")
    secret = opened["alice"].artifacts.state(1)[1].hash
    theirs = opened["bob"].blobs()
    assert theirs is not None
    assert (theirs.sums(secret), list(theirs.pieces(secret)), theirs.sizes([secret]), theirs.sound([secret])) == (
        [],
        [],
        {},
        set(),
    )
    bob.prune(ALL_BUT_ONE)
    assert [text(alice, f"arch/{name}.md") for name in "ab"] == ["shared\n", "alice alone\n"]
    assert audit(opened["alice"]) == audit(opened["bob"]) == []
    with teams.sql("bob") as connection:  # with SQL of one's own neither, nor what another team would take for its own
        assert connection.execute("SELECT count(*) FROM ctxmgr.blob").fetchall() == [(1,)]
        assert connection.execute("DELETE FROM ctxmgr.blob WHERE hash = %s", (secret,)).rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE ctxmgr.blob SET content = ''")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("INSERT INTO ctxmgr.blob (team, hash, piece, content) VALUES (1, %s, 9, '')", (secret,))


def test_a_reader_of_a_team_reads_its_artifacts_and_writes_none(opened: dict[str, Store]) -> None:
    """The role's rights decide, on the server."""
    put(ArtifactStore(opened["alice"]), "arch", a_md="# a\n")
    reading = ArtifactStore(opened["eve"])
    assert text(reading, "arch/a.md") == "# a\n"
    for change in (lambda: put(reading, "arch", a_md="# b\n"), lambda: reading.prune(ALL_BUT_ONE)):
        with pytest.raises(Denied):
            change()
    assert text(reading, "arch/a.md") == "# a\n"


def test_writers_of_two_teams_do_not_wait_for_each_other(opened: dict[str, Store]) -> None:
    """Each team has a lock of its own."""
    with write_access(opened["alice"]):
        assert put(ArtifactStore(opened["bob"]), "arch", a_md="# b\n").version == 1
        with pytest.raises(Busy), write_access(opened["alice"], timeout=0.05):
            pass


def test_a_store_of_the_version_before_says_what_to_run(teams: Divided) -> None:
    """Versions are listed there, contents are not; once it is migrated all works, for those who had opened it before too."""
    with teams.superuser() as connection:
        connection.execute("DROP SCHEMA ctxmgr CASCADE")
    engine = PostgresqlEngine(teams.url("owner"))
    with engine.transaction():
        for statement in postgresql_schema.statements():
            engine.run(statement)
        postgresql_schema.advance(engine, 1, 7)
    engine.close()
    with closing(administer(teams.url("owner"))) as owner:  # granted by what knows of the next version
        owner.grant(teams.roles["alice"], "one")
        owner.grant(teams.roles["eve"], "one", writes=False)
    with closing(teams.open("alice")) as writer, closing(teams.open("eve", readonly=True)) as reader:
        writing, reading = ArtifactStore(writer), ArtifactStore(reader)
        assert reading.list(ListArtifactsRequest()).artifacts == []
        with pytest.raises(StorageFailed, match="keep no artifacts") as refused:
            put(writing, "arch", a_md="# a\n")
        assert "ctxmgr store migrate" in str(refused.value.hint)
        assert writer.artifacts.current() is None
        with closing(administer(teams.url("owner"))) as owner:
            assert owner.migrate() == (7, postgresql_schema.LATEST)
        put(writing, "arch", a_md="# a\n")
        assert text(reading, "arch/a.md") == "# a\n"
        writing.prune(ALL_BUT_ONE)
        assert audit(reader) == []
    with teams.superuser() as connection:
        given = connection.execute(
            "SELECT grantee::regrole::text, string_agg(privilege_type, ' ' ORDER BY privilege_type) FROM pg_class, "
            "aclexplode(relacl) WHERE pg_class.oid = 'ctxmgr.blob'::regclass AND grantee <> relowner GROUP BY 1"
        ).fetchall()
    assert dict(given) == {teams.roles["alice"]: "DELETE INSERT SELECT", teams.roles["eve"]: "SELECT"}


@pytest.mark.parametrize("name", ["../../x", "/abs", "a\nb", "a\0b", "x" * 256, "\x1b[31m", "a'; DROP TABLE ctxmgr.blob; --"])
def test_hostile_names_are_names(artifacts: ArtifactStore, name: str) -> None:
    """What no name can be is refused; whatever else it says is a name and no more."""
    try:
        put_one(artifacts, "arch", name, "x\n")
    except CtxmgrError as error:
        assert isinstance(error, InvalidInput)  # noqa: PT017 - either is right, by the name
        return
    assert text(artifacts, f"arch/{name}") == "x\n"
