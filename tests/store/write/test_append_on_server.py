"""Appending on a server: several writers, many sessions at once, records far behind the first, and lost connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.store import Store, open_store
from ctxmgr.store.engine.postgresql import PostgresqlEngine
from ctxmgr.store.engine.postgresql_functions import WRITERS
from ctxmgr.store.project_session import EXECUTION
from tests.builders import at, entry, event, result, write

_WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
_HELD = (
    "SELECT classid::bigint, CASE classid WHEN 0 THEN objid::bigint END, mode FROM pg_locks WHERE locktype = 'advisory' "
    "AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1"
)


def test_many_writers_of_one_session_leave_no_gap(server_store: Store, server_url: str) -> None:
    """Singles and batches of several writers get indexes without gaps, and every table follows from the records."""

    def append(name: str) -> None:
        own = open_store(server_url)
        for number in range(12):
            first = 1000 * int(name) + 10 * number
            own.append([entry("s", first + each, process=name) for each in range(1 + number % 3)])
        own.close()

    threads = [threading.Thread(target=append, args=(str(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    indexes = [int(row[0]) for row in server_store.engine.query("SELECT idx FROM entry ORDER BY seq")]
    assert indexes == list(range(4 * 24))
    assert server_store.examine().damaged == []


def test_results_find_their_entries_over_appends(server_store: Store) -> None:
    """A result completes its entry in the same append, in a later one and, come too early, in an earlier one."""

    def done(number: int) -> dict[str, Any]:
        return {"v": 1, "kind": "result", "session": "s", "entry": entry("s", number, "Bash", {})["id"], "status": "error",
                "usage": {"inputTokens": 2, "outputTokens": 3}}  # fmt: skip

    def begun(number: int) -> dict[str, Any]:
        return {key: value for key, value in entry("s", number, "Bash", {}).items() if key not in ("status", "output")}

    for batch in ([begun(0), done(0)], [begun(1)], [done(1)], [done(2)], [begun(2)], [done(4), done(3)],
                  [begun(3), begun(4), event("s", 1, "message", {"text": "x"})], [begun(5)]):  # fmt: skip
        assert server_store.append(batch).added == len(batch)
    assert [row[0] for row in server_store.engine.query("SELECT status FROM entry ORDER BY idx")] == ["error"] * 5 + ["open"]
    assert server_store.sessions.usage(1) == {"inputTokens": 10, "outputTokens": 15}
    assert server_store.examine().damaged == []


def test_an_append_of_many_sessions_leaves_what_single_ones_do(
    server_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of many sessions and of every kind, mixed, appended together in one round trip: all is as in a file."""
    done: list[bool] = []

    def listen(append: Any) -> Any:
        def heard(self: PostgresqlEngine, *values: Any) -> Any:
            done.append((answer := append(self, *values)) is not None)
            return answer

        return heard

    for name in ("append", "append_one"):
        monkeypatch.setattr(PostgresqlEngine, name, listen(getattr(PostgresqlEngine, name)))
    monkeypatch.setattr(PostgresqlEngine, "appending", None)  # nothing goes step by step
    names = [f"s{number}" for number in range(7)] + ["\0", "\ufdd0", "Ü", "\ud800"]
    records: list[dict[str, Any]] = []
    for number in range(240):
        name, other = names[number % len(names)], names[number * 5 % len(names)]
        begun = entry(name, number, "Bash", {"command": f"x{number}"}, process=f"p{number % 2}")
        records.append({key: value for key, value in begun.items() if number % 3 == 0 or key not in ("status", "output")})
        records.append(event(other, number, "agent_message_chunk" if number % 2 else "plan", {"text": "y"}))
        if number % 3 == 1:
            records.append(result(name, number, "done", usage={"inputTokens": number, "outputTokens": 1}))
        if number % 3 == 2 and number > 40:
            records.append(result(names[(number - 33) % len(names)], number - 33, "late", status="error"))
        records += _others(number, other)
    with closing(open_store(str(tmp_path / "a.db"), create=True)) as file:
        place = 0
        sizes = (1, 2, 40, 250, 3, 1, 170, 60, 1, 1, 700)
        for size in sizes:
            for each in (server_store, file):
                assert each.append(records[place : place + size]).added == len(records[place : place + size])
            place += size
        assert place > len(records)
        for name in names:
            keys = [each.sessions.key(name) for each in (server_store, file)]
            for table, columns in _FOLLOWING.items():
                told = [each.engine.query(f"SELECT {columns} FROM {table}", {"key": key})
                        for each, key in zip((server_store, file), keys, strict=True)]  # fmt: skip
                assert [tuple(row) for row in told[0]] == [tuple(row) for row in told[1]], (name, table)
    assert done == [True] * len(sizes)
    assert server_store.examine().damaged == []


def test_single_records_leave_what_they_do_in_a_file(server_store: Store, server_url: str, tmp_path: Path) -> None:
    """Records one by one, nearly all by a statement of their own; another writer comes in between, and milestones are due."""
    records: list[dict[str, Any]] = []
    twins: list[dict[str, Any]] = []
    for number in range(150):
        begun = entry("s", number, "Bash", {"command": f"x{number}"}, process="p", inputType="shell")
        twins.append({**begun, "session": "t"})
        records.append(begun | ({} if number % 3 else {"status": "ok", "output": "done"}))
        if number % 3 or number % 4 == 0:
            used = {"usage": {"inputTokens": 1}} if number % 50 == 1 else {}
            records.append(result("s", number, "done", status="error", **used))
        kind = "message" if number % 2 else "plan"
        records.append(event("s", number, kind, {"text": "y"}, after=-number, agent="Critic", entry=begun["id"]))
    with closing(open_store(str(tmp_path / "a.db"), create=True)) as file, closing(open_store(server_url)) as other:
        for store in (server_store, file):
            store.append(twins)
        for number, each in enumerate(records):
            for store in (other if number % 40 == 39 else server_store, file):
                assert store.append([each]).added == 1
        for name, (table, columns) in product(("s", "t"), _FOLLOWING.items()):
            told = [store.engine.query(f"SELECT {columns} FROM {table}", {"key": store.sessions.key(name)})
                    for store in (server_store, file)]  # fmt: skip
            assert [tuple(row) for row in told[0]] == [tuple(row) for row in told[1]], (name, table)
        key = server_store.sessions.key("s")
        assert server_store.engine.query("SELECT count(*) FROM milestone WHERE session = :key", {"key": key})[0][0] > 4
    used = _calls(server_store)
    assert set(used) >= {"ctxmgr_entry", "ctxmgr_open", "ctxmgr_event", "ctxmgr_result", "ctxmgr_append_one"}
    assert used["ctxmgr_append_one"] < len(records) / 8
    assert server_store.append([records[0]]).known == 1
    assert server_store.examine().damaged == []


def test_a_statement_of_its_own_holds_the_locks_of_the_function(server_store: Store, server_url: str) -> None:
    """While it waits for the session, it is beside other writers, in the session's queue, and before what is not settled."""
    queue, places = WRITERS + 3, WRITERS + 1
    for number in range(8):
        server_store.append([entry("s", number, "Bash", {"command": "x"}, process="p")])
    before = _calls(server_store)
    with closing(open_store(server_url)) as other, psycopg.connect(server_url, autocommit=True) as admin:
        for number, store in enumerate((server_store, other), 100):  # the other's first appends are not prepared
            append = partial(store.append, [entry("s", number, "Bash", {"command": "x"}, process="p")])
            thread = threading.Thread(target=append)
            with admin.transaction():
                admin.execute("SELECT 1 FROM ctxmgr.session WHERE id = 's' FOR NO KEY UPDATE")
                thread.start()
                while thread.is_alive() and not admin.execute(_WAITING).fetchall():
                    thread.join(0.01)
                held = admin.execute(_HELD).fetchall()
            thread.join()
            assert held == [(0, WRITERS, "ShareLock"), (places, None, "ShareLock"), (queue, None, "ExclusiveLock")]
    after = _calls(server_store)
    assert (after["ctxmgr_open"], "ctxmgr_append_one" in after) == (before["ctxmgr_open"] + 1, False)
    assert server_store.examine().damaged == []


def _calls(store: Store) -> dict[str, int]:
    """Return how often each prepared statement was called."""
    return dict(store.engine.query("SELECT name, generic_plans + custom_plans FROM pg_prepared_statements"))


def test_who_did_not_see_what_another_wrote_completes_its_entry_all_the_same(server_store: Store, server_url: str) -> None:
    """A result of one writer finds the entry that another wrote since, and an entry the result; all of it as single records."""
    with closing(open_store(server_url)) as other:
        for number in range(12):
            for store in (server_store, other):
                write(store, f"warm{number}", ["Bash:a"])
        for number in range(6):
            for first, second in ((server_store, other), (other, server_store)):
                begun = entry("s", 2 * number + (first is other), "Bash", {"command": "x"})
                for store in (first, second):
                    store.append([event("s", 1000 * (store is other) + 10 * number + (first is other), "plan", {})])
                done = {"v": 1, "kind": "result", "session": "s", "entry": begun["id"], "status": "ok"}
                first.append([begun if number % 2 else done])
                second.append([done if number % 2 else begun])
    key = {"key": server_store.sessions.key("s")}
    assert server_store.engine.query("SELECT status FROM entry WHERE session = :key", key) == [("ok",)] * 12
    assert server_store.examine().damaged == []


def _others(number: int, name: str) -> list[dict[str, Any]]:
    """Return records that are no entries, events or results; a session's processes end and begin within few records."""
    common = {"v": 1, "session": name, "ts": at(number)}
    if number % 12 == 5:
        ended = {"kind": "sessionEnd", "outcome": "failed" if number % 24 == 5 else "completed"}
        return [
            {**common, **ended, **({} if number % 36 == 5 else {"process": f"p{number % 5}"})},
            {**common, "kind": "session", "process": f"q{number}"},
            entry(name, 9000 + number, process=f"q{number}"),
        ]
    if number % 12 == 8:
        own = {
            "kind": "session",
            "process": "p0",
            "workflow": f"w{number}",
            "source": {"importer": name},
            "meta": {"n": number},
        }
        return [{**common, **own}, {**common, "kind": "unheard", "id": f"u{number}", "of": 1.5}]
    if number % 12 == 11:
        note = {"kind": "note", "id": f"n{number}", "entries": [f"e{number}", "e"], "content": "c", "tags": ["Ä", "b", "B"]}
        kept: dict[str, Any] = {
            "kind": "snapshot",
            "id": f"k{number}",
            "entries": [],
            "summary": "s",
            "reasoning": "r",
            "hash": "h",
        }
        return [{**common, **note, "supersedes": f"n{number - 12}"}, {**common, **kept}, {**common, **note, "id": f"m{number}"}]
    return []


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("count", "number", "change", "added"),
    [
        (200, 130, {"input": float("nan")}, 0), (200, 130, {"action": EXECUTION, "input": {"id": "x"}}, 200), (200, 3, {}, 199),
        (200, 199, {}, 199), (1500, 1400, {"input": float("nan")}, 0), (1500, 0, {"agent": "b"}, 1500),
    ],
)  # fmt: skip
def test_what_comes_late_in_an_append_counts_for_all_of_it(
    server_store: Store, count: int, number: int, change: dict[str, Any], added: int
) -> None:
    """A record far behind the first that is wrong, known or not plain: all or nothing is written, and it goes on."""
    records = [entry("s", each) for each in range(count)]
    if not change:
        server_store.append([records[number]])
    records[number] |= change
    if added:
        assert server_store.append(records).added == added
    else:
        with pytest.raises(InvalidInput):
            server_store.append(records)
        assert server_store.engine.query("SELECT count(*) FROM record") == [(0,)]
    server_store.append([entry("s", 9999)])
    assert server_store.engine.query("SELECT entries FROM session") == [((count if added else 0) + 1,)]
    assert server_store.examine().damaged == []


def test_a_connection_lost_between_two_parts_of_an_append_takes_it_back(
    server_store: Store, admin: psycopg.Connection[Any]
) -> None:
    """What was sent before is not written; the loss is told as retryable, and the next append works."""
    server_store.append([entry("s", 0)])

    def records() -> Iterator[dict[str, Any]]:
        for number in range(1, 200):
            if number == 150:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'ctxmgr' AND datname = current_database()"
                )
            yield entry("s", number)

    with pytest.raises(StorageFailed) as lost:
        server_store.append(records())
    assert lost.value.retryable
    assert server_store.sessions.entry_count(1) == 1
    assert server_store.append([entry("s", number) for number in range(1, 200)]).added == 199
    assert server_store.examine().damaged == []


_IDS = "(SELECT id FROM record WHERE record.session = :key AND record.seq = {})"
_FOLLOWING = {
    "session WHERE key = :key": "entries, events, messages, first, last, workflow, source, meta, sum",
    "record WHERE session = :key ORDER BY seq": "kind, id, ts, body, sum",
    "entry WHERE session = :key ORDER BY idx": (
        f"idx, agent, action, input_type, process, ts, status, {_IDS.format('entry.result')}"
    ),
    "event WHERE session = :key ORDER BY seq": "type, agent, entry, after, ts",
    "process WHERE session = :key ORDER BY process": f"process, started, outcome, {_IDS.format('process.seq')}",
    "note_entry WHERE session = :key ORDER BY entry, note": f"entry, {_IDS.format('note_entry.note')}",
    "note_tag WHERE session = :key ORDER BY tag, note": f"tag, {_IDS.format('note_tag.note')}",
    "superseded WHERE session = :key ORDER BY note": "note, successor",
    "usage WHERE session = :key ORDER BY seq": f"input, output, {_IDS.format('usage.seq')}",
    "milestone WHERE session = :key ORDER BY series, number": f"series, number, {_IDS.format('milestone.seq')}",
}
"""Rows that follow from the records of a session, places by the ids of the records that stand there."""


@pytest.mark.parametrize("together", [1, 3])
def test_who_waited_for_a_session_gives_it_back_before_the_disk_is_waited_for(
    server_store: Store, server_url: str, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Behind a writer that held the session for long an append commits at once, and waits for the disk after that."""
    waited: list[bytes] = []
    call = PostgresqlEngine._call  # pyright: ignore[reportPrivateUsage]

    def heard(self: PostgresqlEngine, connection: psycopg.Connection[Any], name: bytes, *rest: Any) -> Any:
        waited.extend([name] if name == b"ctxmgr_on_disk" else [])
        return call(self, connection, name, *rest)

    monkeypatch.setattr(PostgresqlEngine, "_call", heard)
    write(server_store, "s", ["Bash:a"])
    records = [entry("s", 10 + each, "Bash", {"command": "x"}) for each in range(together)]
    with closing(open_store(server_url)) as other:
        write(other, "other", ["Bash:a"])  # what is slow the first time is done
        waited.clear()
        thread = threading.Thread(target=lambda: other.append(records))
        with cast("PostgresqlEngine", server_store.engine).appending():
            server_store.append([entry("s", 9, "Bash", {"command": "x"})])
            thread.start()
            while not server_store.engine.query(_WAITING):
                thread.join(0.01)
            thread.join(0.01)
        thread.join()
    assert len(waited) == 1
    assert server_store.sessions.entry_count(1) == 2 + together
    assert server_store.examine().damaged == []


@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("field", ["session", "id", "agent", "action", "process", "tag"])
def test_a_name_that_no_index_can_hold_is_refused(server_store: Store, field: str, together: int) -> None:
    """A server finds by names of up to 2.7 KB: a longer one is the caller's, not damage, and nothing is written."""
    name = "".join(f"{number * number:x}" for number in range(9_999))  # can't be pressed into the room
    records = [entry("s", number, "Bash", {"command": "x"}) for number in range(together)]
    if field == "tag":
        records.append({"v": 1, "kind": "note", "session": "s", "id": "n", "entries": ["x"], "content": "c", "tags": [name]})
    else:
        records[-1][field] = name
    with pytest.raises(InvalidInput, match="so long a name"):
        server_store.append(records)
    assert server_store.engine.query("SELECT count(*) FROM record") == [(0,)]
