"""Teams on one server: what one records nobody of another reads, counts, finds, hears of or learns the existence of.

Each is tried through our client and, as the same role, with SQL of one's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest

from ctxmgr.errors import Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.store import Store, administer, open_store
from ctxmgr.store.engine import postgresql_schema
from ctxmgr.store.engine.dialect import TABLES, TEAM_TABLES
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.engine.postgresql_schema import SESSION_TABLES, TEAM_BITS
from ctxmgr.store.repositories.queries import find_record, last_place, read_all_records_after
from ctxmgr.store.server_store import Member, report_alive
from ctxmgr.types.query import Filters
from tests import postgresql_server
from tests.builders import entry, event, result, steps
from tests.store.divided import Divided, has_role

OPEN_TO_ALL = {"schema_version", "team", "member"}
OF_TEAMS = (*TEAM_TABLES, "blob")
HELD = ("session", *SESSION_TABLES, *OF_TEAMS)


@pytest.fixture
def whole() -> Divided:
    """Return a store that its owner made and nobody else was granted anything of."""
    made = Divided(os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    with closing(administer(made.url("owner"))) as owner:
        assert owner.init() == (0, postgresql_schema.LATEST)
    return made


@pytest.fixture
def divided(whole: Divided) -> Divided:
    """Return a store of two teams: Alice writes and Eve reads one, Bob writes the other."""
    with closing(administer(whole.url("owner"))) as owner:
        assert owner.grant(whole.roles["alice"], "one")
        assert not owner.grant(whole.roles["eve"], "one", writes=False)
        assert not owner.grant(whole.roles["bob"], "two")
    return whole


@pytest.fixture
def alice(divided: Divided) -> Iterator[Store]:
    """Open the store as a writer of the first team."""
    with closing(divided.open("alice")) as store:
        yield store


@pytest.fixture
def bob(divided: Divided) -> Iterator[Store]:
    """Open the store as a writer of the second team, who has recorded something of each kind."""
    with closing(divided.open("bob")) as store:
        store.append(steps("s", ["Bash:sesame", "Read:x"]))
        store.append([event("s", 1, "usage", {"inputTokens": 3}), event("s", 2, "message", {"text": "sesame"})])
        store.append(
            [{"v": 1, "kind": "note", "session": "s", "id": "n", "content": "sesame", "entries": [entry("s", 0, "B", {})["id"]],
              "tags": ["t"]}]
        )  # fmt: skip
        assert store.leases.take("s", "bob", 0.0, 30.0)
        report_alive(store.engine, [("s", "p")])
        yield store


def filled(connection: psycopg.Connection[Any]) -> dict[str, dict[str, Any]]:
    """Insert one row into every table with the rights of a connection; return them."""
    made: dict[str, dict[str, Any]] = {}
    (key,) = connection.execute("INSERT INTO ctxmgr.session (id) VALUES ('raw') RETURNING key").fetchall()[0]
    made["session"] = {"key": key, "id": "raw"}
    for table in HELD[1:]:
        columns = connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = 'ctxmgr' "
            "AND table_name = %s AND column_name <> 'team'",
            (table,),
        ).fetchall()
        row = {str(name): {"text": "x", "bytea": b"x"}.get(kind, 7) for name, kind in columns}
        if table in SESSION_TABLES:
            row["session"] = key
        _insert(connection, table, row)
        made[table] = row
    return made


def _insert(connection: psycopg.Connection[Any], table: str, row: dict[str, Any]) -> None:
    names, marks = ", ".join(row), ", ".join(f"%({name})s" for name in row)
    connection.execute(f"INSERT INTO ctxmgr.{table} ({names}) VALUES ({marks})".encode(), row)


def test_every_table_that_holds_anything_recorded_is_fenced(divided: Divided) -> None:
    """Row-level security is forced, also upon the owner, on every table but those that name versions, teams and roles."""
    with divided.superuser() as connection:
        rows = connection.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class "
            "WHERE relnamespace = 'ctxmgr'::regnamespace AND relkind IN ('r', 'p')"
        ).fetchall()
    assert {name for name, fenced in rows if not fenced} == OPEN_TO_ALL
    assert set(HELD) | OPEN_TO_ALL == {name for name, _ in rows} == set(TABLES)


def test_with_sql_of_ones_own_nothing_of_another_team_is_read_or_changed(divided: Divided) -> None:
    """In each table Bob's rows are not there for Alice: no row, no count, nothing to update, to remove or to lock."""
    with divided.sql("bob") as bob, divided.sql("alice") as alice, divided.superuser() as all_seeing:
        made = filled(bob)
        for table, row in made.items():
            assert bob.execute(f"SELECT count(*) FROM ctxmgr.{table}".encode()).fetchone() == (1,), table
            assert alice.execute(f"SELECT count(*) FROM ctxmgr.{table}".encode()).fetchone() == (0,), table
            column = next(iter(row))
            for statement in (
                f"UPDATE ctxmgr.{table} SET {column} = {column}", f"DELETE FROM ctxmgr.{table}",
                f"SELECT 1 FROM ctxmgr.{table} FOR UPDATE",
            ):  # fmt: skip
                with suppress(psycopg.errors.InsufficientPrivilege):
                    assert max(alice.execute(statement.encode()).rowcount, 0) == 0, statement
            assert all_seeing.execute(f"SELECT count(*) FROM ctxmgr.{table}".encode()).fetchone() == (1,), table


def test_an_insert_never_tells_that_another_team_has_such_a_row(divided: Divided) -> None:
    """A row under another team is refused for its team, not for being there; the same row under one's own is taken."""
    with divided.sql("bob") as bob, divided.sql("alice") as alice:
        made = filled(bob)
        for table, row in made.items():
            stranger = dict(row)
            if table in OF_TEAMS:
                stranger["team"] = bob.execute("SELECT ctxmgr.team()").fetchall()[0][0]
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                _insert(alice, table, stranger)
            if table == "session":
                absent = stranger | {"key": row["key"] + 1, "id": "never"}
            else:
                absent = stranger | ({"session": row["session"] + 1} if table in SESSION_TABLES else {"team": 4_000_000})
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                _insert(alice, table, absent)
        own = filled(alice)
        assert own.keys() == made.keys()
        for table in OF_TEAMS:
            assert alice.execute(f"SELECT count(*) FROM ctxmgr.{table}".encode()).fetchone() == (1,), table


def test_no_row_is_moved_to_another_team(divided: Divided) -> None:
    """A writer can't put a row of its own under a session, or a team, of somebody else."""
    with divided.sql("bob") as bob, divided.sql("alice") as alice:
        key, team = filled(bob)["session"]["key"], bob.execute("SELECT ctxmgr.team()").fetchall()[0][0]
        filled(alice)
        for table, change in (
            ("session", f"key = {key}"), ("entry", f"session = {key}"), ("search_text", f"session = {key}"),
            ("lease", f"team = {team}"), ("state", f"team = {team}"),
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
                alice.execute(f"UPDATE ctxmgr.{table} SET {change}".encode())


def test_records_are_not_changed_by_a_writer(divided: Divided) -> None:
    """What was recorded stays for its own team's writers too; and a table is not emptied by anybody but the owner."""
    with divided.sql("alice") as alice:
        filled(alice)
        for statement in (
            "UPDATE ctxmgr.record SET body = ''", "DELETE FROM ctxmgr.record", "TRUNCATE ctxmgr.record",
            "TRUNCATE ctxmgr.lease", "DELETE FROM ctxmgr.session", "UPDATE ctxmgr.event SET type = ''",
            "DELETE FROM ctxmgr.entry", "ALTER TABLE ctxmgr.record DISABLE ROW LEVEL SECURITY",
            "DROP POLICY team ON ctxmgr.record",
            "SELECT * FROM ctxmgr.member", "INSERT INTO ctxmgr.member SELECT oid, 0 FROM pg_roles", "SELECT * FROM ctxmgr.team",
            "SELECT setval('ctxmgr.place', 1)", "INSERT INTO ctxmgr.schema_version VALUES (9)",
        ):  # fmt: skip
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                alice.execute(statement.encode())


def test_a_reader_writes_nothing(divided: Divided, alice: Store) -> None:
    """A reader sees its team's history and can't add to it, through our client or with SQL of its own."""
    alice.append(steps("s", ["Bash:sesame"]))
    with closing(divided.open("eve", readonly=True)) as eve:
        assert eve.sessions.count() == 1
        assert eve.queries.search(None, Filters(), "all", "sesame", 0, 10)[1] == 1
        assert eve.examine().records == 2
        eve.wait(0.01)
    with closing(divided.open("eve")) as eve:
        for write in (
            lambda: eve.append(steps("s", ["Bash:b"])), lambda: eve.append(steps("new", ["Bash:b"])),
            lambda: eve.leases.take("s", "eve", 0.0, 1.0), lambda: eve.index(),
        ):  # fmt: skip
            with pytest.raises(Denied):
                write()
    with divided.sql("eve") as connection:
        for table in (*HELD, *OPEN_TO_ALL):
            for statement in (f"INSERT INTO ctxmgr.{table} DEFAULT VALUES", f"DELETE FROM ctxmgr.{table}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(statement.encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT nextval('ctxmgr.place')")


def test_the_same_session_of_two_teams_is_two_sessions(alice: Store, bob: Store) -> None:
    """Ids that both have are new to each: no conflict, nothing known, and each verifies its own."""
    mine = steps("s", ["Bash:mine", "Read:other"])
    assert alice.append(mine).added == 4
    assert alice.append(mine).known == 4
    result: dict[str, Any] = {"v": 1, "kind": "note", "session": "s", "id": "n", "content": "another text", "entries": []}
    assert alice.append([result]).added == 1
    assert (
        alice.append([entry("s", 9, "Bash", {"command": "x"}), event("s", 1, "message", {"text": "y"})], doubles=True).added
        == 2
    )
    for store, records in ((alice, 7), (bob, 7)):
        assert store.sessions.count() == 1
        examined = store.examine()
        assert (examined.records, examined.damaged) == (records, [])
    keys = [store.sessions.key("s") or 0 for store in (alice, bob)]
    assert len({key >> TEAM_BITS for key in keys} - {0}) == 2


def test_single_records_of_two_teams_go_to_their_own_sessions(alice: Store, bob: Store) -> None:
    """In turns, with the same ids, by the statements of their own: each session holds its own, in its own order."""
    bob.append([entry("t", 99)])
    for number in range(12):
        for store, action in ((alice, "Mine"), (bob, "Other")):
            begun = entry("t", number, action, {"command": "x"})
            for each in (begun, result("t", number), event("t", number, "message", {"text": action})):
                assert store.append([each]).added == 1
    for store, action, before in ((alice, "mine", 0), (bob, "other", 1)):
        rows = store.engine.query("SELECT idx, status FROM entry WHERE action = :action ORDER BY idx", {"action": action})
        assert rows == [(before + number, "ok") for number in range(12)]
        names = [
            row[0]
            for row in store.engine.query("SELECT name FROM pg_prepared_statements WHERE generic_plans + custom_plans > 5")
        ]
        assert {"ctxmgr_open", "ctxmgr_result", "ctxmgr_event"} <= set(names)
        assert store.examine().damaged == []


def test_a_client_finds_nothing_of_another_team(alice: Store, bob: Store) -> None:
    """No list, search, tail, look-up by id or sign of life tells of the other team, indexed or not."""
    ids = [record["id"] for record in bob.sessions.records(None, ("entry", "event", "note"))]
    for indexed in (False, True):
        assert alice.sessions.count() == 0
        assert alice.sessions.key("s") is None
        assert alice.queries.search(None, Filters(), "all", "sesame", 0, 10)[:2] == ([], 0), indexed
        assert bob.queries.search(None, Filters(), "all", "sesame", 0, 10)[1] == 2, indexed
        assert (list(read_all_records_after(alice.engine, 0)), last_place(alice.engine)) == ([], 0)
        assert not any(alice.annotations.is_known(str(name)) for name in ids)
        assert not any(find_record(alice.engine, kind, str(name)) for kind in ("entry", "event", "note") for name in ids)
        assert not alice.is_live("s")
        assert bob.is_live("s")
        bob.index()
    assert alice.count_unindexed() == 0


def test_a_lease_of_another_team_is_another_lease(alice: Store, bob: Store) -> None:
    """Both teams lease a session of the same name; neither learns that the other has it."""
    assert alice.leases.expiry("s", alice.clock()) is None
    assert alice.leases.take("s", "alice", 0.0, 30.0)
    assert bob.leases.holds("s", "bob", 0.0)
    alice.leases.release("s", "bob")
    assert bob.leases.holds("s", "bob", 0.0)


def test_nobody_listens_to_another_team(divided: Divided, alice: Store, bob: Store) -> None:
    """What one team says is heard by itself alone, on a channel whose name the others can't find out."""
    with divided.sql("alice") as own, divided.sql("bob") as other:
        names = [connection.execute("SELECT ctxmgr.channel()").fetchall()[0][0] for connection in (own, other)]
        assert len(set(names)) == 2
        for connection, name in ((own, names[0]), (other, names[1])):
            connection.execute(f"LISTEN {name}; LISTEN ctxmgr".encode())
        bob.tell()
        assert [told.channel for told in other.notifies(timeout=5, stop_after=1)] == [names[1]]
        assert list(own.notifies(timeout=0.2)) == []
        alice.tell()
        assert [told.channel for told in own.notifies(timeout=5, stop_after=1)] == [names[0]]


def test_no_setting_of_a_client_changes_its_team(divided: Divided, bob: Store) -> None:
    """The team follows from the login: no parameter, no other role, no search path and no function of one's own changes it."""
    with divided.sql("alice") as alice:
        for statement in (
            "SELECT set_config('ctxmgr.team', '2', FALSE)", "SET search_path = pg_temp, public, ctxmgr",
            "CREATE TEMP TABLE member (role REGROLE, team BIGINT)", "INSERT INTO member SELECT oid, 2 FROM pg_roles",
            "CREATE FUNCTION pg_temp.to_regrole(TEXT) RETURNS REGROLE LANGUAGE sql AS "
            "'SELECT oid::regrole FROM pg_roles LIMIT 1'",
            "CREATE FUNCTION pg_temp.quote_ident(NAME) RETURNS TEXT LANGUAGE sql AS $$ SELECT 'bob_alone' $$",
        ):  # fmt: skip
            alice.execute(statement.encode())
        assert alice.execute("SELECT ctxmgr.team()").fetchone() == (1,)
        assert alice.execute("SELECT count(*) FROM ctxmgr.record").fetchone() == (0,)
        for statement in (f"SET ROLE {divided.roles['bob']}", f"SET SESSION AUTHORIZATION {divided.roles['bob']}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                alice.execute(statement.encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):  # it does not go round the fence: it fails
            alice.execute("SET row_security = off; SELECT count(*) FROM ctxmgr.record")


def test_no_function_of_the_owners_tells_of_another_team(divided: Divided, bob: Store) -> None:
    """What runs with the owner's rights looks nowhere else, and proposes nothing of another team, whatever session is named."""
    bob.index()
    key = bob.sessions.key("s")
    with divided.sql("alice") as alice, divided.sql("bob") as own:
        sql = "SELECT count(*) FROM ctxmgr.proposed('%%sesame%%', 'x', 0, 1000, %s, 10)"
        for session in (None, key):
            assert alice.execute(sql, (session,)).fetchone() == (0,)
            assert own.execute(sql, (session,)).fetchone() == (2,)
        rows = alice.execute(
            "SELECT proname, proconfig FROM pg_proc WHERE pronamespace = 'ctxmgr'::regnamespace AND prosecdef"
        ).fetchall()
    assert {name for name, _ in rows} == {"team", "team_name", "is_divided", "new_session", "channel", "proposed"}
    assert all(config == ["search_path=pg_catalog, pg_temp"] for _, config in rows)


def test_a_fenced_search_uses_the_trigrams(divided: Divided, bob: Store) -> None:
    """Behind row-level security a LIKE finds no index: so the owner's function proposes, for which it finds one."""
    sql = "EXPLAIN SELECT seq FROM ctxmgr.search_text WHERE (session >> 40) = ctxmgr.team() AND text LIKE '%sesame%'"
    plans: dict[str, str] = {}
    for name in ("owner", "bob"):
        with divided.sql(name) as connection:
            connection.execute("SET enable_seqscan = off; SET enable_indexscan = off")
            plans[name] = str(connection.execute(sql.encode()).fetchall())
    assert "search_text_trigrams" in plans["owner"]
    assert "search_text_trigrams" not in plans["bob"]


def test_a_team_is_indexed_whatever_others_wrote_between(divided: Divided, alice: Store, bob: Store) -> None:
    """Few records far apart among those of another team are indexed in a few steps, and found."""
    for number in range(3):
        alice.append([entry("a", number, "Bash", {"command": f"sesame {number}"})])
        with divided.sql("bob") as other:
            other.execute("SELECT count(ctxmgr.places(1000)) FROM generate_series(1, 20)")
    steps_done: list[tuple[int, int]] = []
    assert alice.index(lambda done, whole: steps_done.append((done, whole)))
    assert alice.count_unindexed() == 0
    assert len(steps_done) < 12
    with divided.sql("alice") as own:
        assert own.execute("SELECT count(*) FROM ctxmgr.search_text").fetchone() == (3,)
    assert alice.queries.search(None, Filters(), "all", "sesame", 0, 10)[1] == 3
    assert alice.queries.search(None, Filters(), "all", "2", 0, 10)[1] == 1


def test_a_store_that_is_not_divided_needs_no_grant_by_team(whole: Divided) -> None:
    """Until the first grant the owner, and whoever it gave rights by hand, are of one team; after it only who is named."""
    with closing(whole.open("owner")) as owner:
        owner.append(steps("s", ["Bash:a"]))
    with whole.sql("owner") as connection:
        connection.execute(f"GRANT USAGE ON SCHEMA ctxmgr TO {whole.roles['stranger']}".encode())
        connection.execute(f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ctxmgr TO {whole.roles['stranger']}".encode())
        connection.execute(f"GRANT SELECT, USAGE ON ALL SEQUENCES IN SCHEMA ctxmgr TO {whole.roles['stranger']}".encode())
    with whole.sql("stranger") as connection:  # "all tables" holds those of teams too: that gives nothing
        assert connection.execute("SELECT count(*) FROM ctxmgr.team").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("INSERT INTO ctxmgr.member SELECT oid, 0 FROM pg_roles LIMIT 1")
    with closing(whole.open("stranger")) as store:
        assert store.append([entry("s", 5, "Bash", {"command": "b"})]).added == 1
        assert store.sessions.count() == 1
    with closing(administer(whole.url("owner"))) as owner:
        assert owner.grant(whole.roles["alice"], "one")
    with pytest.raises(Denied, match="belongs to no team") as refused:
        whole.open("stranger")
    assert f"store grant {whole.roles['stranger']}" in str(refused.value.hint)
    with whole.sql("stranger") as connection:
        assert connection.execute("SELECT count(*) FROM ctxmgr.record").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="belongs to no team"):
            connection.execute("INSERT INTO ctxmgr.session (id) VALUES ('x')")
    with closing(whole.open("owner")) as store:
        assert store.sessions.count() == 1
        assert store.queries.entries(1, Filters(), 0, None)[1] == 2


def test_who_sees_all_teams_at_once_is_not_let_in(divided: Divided) -> None:
    """A superuser would mix sessions of the same name: once the store is divided our client refuses to work as one."""
    with pytest.raises(Denied, match="row-level security"):
        open_store(postgresql_server.url(divided.place, divided.database))


def test_a_role_is_of_the_team_that_was_granted_last(divided: Divided, alice: Store) -> None:
    """A role moves with its login, what it recorded stays where it was; revoking leaves it nothing."""
    alice.append(steps("s", ["Bash:a"]))
    role = divided.roles["alice"]
    with closing(administer(divided.url("owner"))) as owner:
        owner.grant(role, "two", writes=False)
        with closing(divided.open("alice")) as moved:
            assert moved.sessions.count() == 0
            with pytest.raises(Denied):
                moved.append(steps("s", ["Bash:b"]))
        owner.grant(divided.roles["owner"], "one")
        with closing(divided.open("owner")) as own:
            assert own.sessions.count() == 1
        assert owner.members() == [
            Member("default", None, False), Member("one", divided.roles["eve"], False),
            Member("one", divided.roles["owner"], True, True), Member("two", role, False),
            Member("two", divided.roles["bob"], True),
        ]  # fmt: skip
        owner.revoke(role)
        with pytest.raises(Denied):
            divided.open("alice")
        for other in ("eve", "bob", "owner"):
            owner.revoke(divided.roles[other])
    with divided.sql("alice") as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT 1 FROM ctxmgr.record")


def test_a_role_of_the_name_of_one_that_is_gone_inherits_nothing(divided: Divided) -> None:
    """Members are known by what the server calls them, not by their names."""
    role = divided.roles["bob"]
    with divided.superuser() as connection:
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}; CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"GRANT USAGE ON SCHEMA ctxmgr TO {role}; GRANT SELECT ON ctxmgr.record TO {role}".encode())
    with divided.sql("bob") as connection:
        assert connection.execute("SELECT ctxmgr.team()").fetchone() == (None,)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("role", "team", "refusal"),
    [("nobody_at_all", "one", NotFound), ("tester", "one", InvalidInput), ("alice", "", InvalidInput),
     ("alice", "a\tb", InvalidInput), ("alice", "x" * 201, InvalidInput)],
)  # fmt: skip
def test_a_grant_that_cant_hold_is_refused(divided: Divided, role: str, team: str, refusal: type[Exception]) -> None:
    """No role of that name, one that no fence holds for, or no name for a team: nothing is changed, and it is said why."""
    with closing(administer(divided.url("owner"))) as owner:
        before = owner.members()
        with pytest.raises(refusal):
            owner.grant(divided.roles.get(role, role), team)
        assert owner.members() == before


def test_only_the_owner_grants(divided: Divided) -> None:
    """A writer neither grants nor revokes, and is not told who is of which team."""
    with closing(administer(divided.url("alice"))) as alice:
        for work in (
            lambda: alice.grant(divided.roles["alice"], "two"), lambda: alice.revoke(divided.roles["bob"]),
            lambda: alice.members(),
        ):  # fmt: skip
            with pytest.raises(Denied):
                work()


def test_a_role_with_an_odd_name_is_quoted(divided: Divided) -> None:
    """Names are what the server makes of them: whatever stands in one, it is a name."""
    odd = 'odd "; DROP TABLE ctxmgr.member; --'
    with divided.superuser() as connection:
        quoted = connection.execute("SELECT quote_ident(%s)", (odd,)).fetchall()[0][0]
        if not has_role(connection, odd):
            connection.execute(f"CREATE ROLE {quoted} LOGIN".encode())
        with closing(administer(divided.url("owner"))) as owner:
            owner.grant(odd, "one")
            assert Member("one", odd, True) in owner.members()
            owner.revoke(odd)
        connection.execute(f"DROP ROLE {quoted}".encode())


def test_a_store_of_the_version_before_is_divided_by_migrating_it(whole: Divided) -> None:
    """A migration by hand of a superuser leaves all to the owner; what was recorded before is the default team."""
    with whole.superuser() as connection:
        connection.execute("DROP SCHEMA ctxmgr CASCADE")
    engine = PostgresqlEngine(whole.url("owner"))
    with engine.transaction():
        for statement in postgresql_schema.statements():
            engine.run(statement)
        postgresql_schema.advance(engine, 1, 2)
    engine.close()
    with closing(administer(whole.url("owner"))) as owner, pytest.raises(StorageFailed, match="older"):
        owner.grant(whole.roles["alice"], "one")
    with closing(administer(postgresql_server.url(whole.place, whole.database))) as superuser:
        assert superuser.migrate() == (2, postgresql_schema.LATEST)
    with whole.superuser() as connection:
        owners = connection.execute(
            "SELECT DISTINCT pg_get_userbyid(relowner) FROM pg_class WHERE relnamespace = 'ctxmgr'::regnamespace "
            "UNION SELECT DISTINCT pg_get_userbyid(proowner) FROM pg_proc "
            "WHERE pronamespace = 'ctxmgr'::regnamespace AND prosecdef"
        ).fetchall()
    assert owners == [(whole.roles["owner"],)]
    with closing(whole.open("owner")) as store:
        assert store.append(steps("s", ["Bash:a"])).added == 2
