"""Appending: every record once, in order, all of a batch or none, the same in both kinds of store."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from ctxmgr.errors import Conflict, InvalidInput
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Filters
from tests.builders import at, entry, event, result, steps, write


def records_of(store: Store) -> list[Record]:
    """Return all records of a store, as they were appended."""
    return list(store.sessions.records(None))


def views_of(store: Store, session: str) -> list[Any]:
    """Return what is shown of the entries of a session."""
    key = store.sessions.key(session)
    assert key is not None
    return store.queries.entries(key, Filters(), 0, None)[0]


def test_a_repeated_python_value_is_the_same_content(store: Store) -> None:
    """What JSON does not tell apart (a tuple and a list, a number as key and its text) is the same content."""
    record = entry("s", 0, given={"pair": (1, 2), 7: "x"})
    store.append([record])

    assert store.append([record]).known == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "b"), (1, True), (0, False), (1, 1.0), ("1", 1), ("", None), ([], {}), ({"a": None}, {}), ("a", "a ")],
)
def test_a_known_id_with_other_content_is_a_conflict(store: Store, first: Any, second: Any) -> None:
    """The same id with other content is refused, also where Python calls two values equal, and the first is kept."""
    kept = entry("s", 0) | {"input": first}
    store.append([kept])

    with pytest.raises(Conflict, match="known with other content"):
        store.append([entry("s", 0) | {"input": second}])

    assert records_of(store) == [kept]


def test_a_conflict_at_the_end_takes_the_whole_batch_back(store: Store, store_path: Any) -> None:
    """When the last record of a batch conflicts nothing of the batch is written, and the store goes on working."""
    write(store, "s", ["Bash:ls"])
    before = records_of(store)

    with pytest.raises(Conflict):
        store.append([*steps("s", ["Read:a", "Read:b"], start=1), *steps("new", ["Bash:x"]), entry("s", 0, "Other")])

    assert records_of(store) == before
    assert store.sessions.key("new") is None
    assert [view.index for view in views_of(store, "s")] == [0]
    write(store, "s", ["Read:a"])
    other = open_store(str(store_path))
    with other.engine.transaction():
        pass
    other.close()
    assert [view.index for view in views_of(store, "s")] == [0, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        {"v": 2, "kind": "entry", "session": "s", "id": "x", "agent": "a", "action": "b"},
        {"kind": "entry", "session": "s", "id": "x", "agent": "a", "action": "b"},
        {"v": 1, "kind": "entry", "session": "", "id": "x", "agent": "a", "action": "b"},
        {"v": 1, "kind": "entry", "session": "s", "id": "", "agent": "a", "action": "b"},
        {"v": 1, "kind": "entry", "session": "s", "id": 5, "agent": "a", "action": "b"},
        {"v": 1, "kind": "entry", "session": "s", "id": "x", "action": "b"},
        {"v": 1, "kind": "entry", "session": ["s"], "id": "x", "agent": "a", "action": "b"},
        {"v": 1, "kind": "result", "session": "s", "entry": "x", "status": "fine"},
        {"v": 1, "kind": "sessionEnd", "session": "s", "outcome": None},
        {"v": 1, "kind": "note", "session": "s", "id": "n", "entries": "x", "content": "c"},
        {"v": 1, "kind": "entry", "session": "s", "id": "x", "agent": "a", "action": "b", "ts": 5},
        {"v": 1, "kind": "entry", "session": "s", "id": "x", "agent": "a", "action": "b", "input": float("nan")},
        {"v": 1, "kind": "entry", "session": "s", "id": "x", "agent": "a", "action": "b", "input": {1, 2}},
        {"v": 1, "kind": "entry", "session": "s", "id": "x", "agent": "a", "action": "b", "input": 10**5000},
        {"v": 1, "kind": "entry", "session": "s", "id": "x", "agent": "a", "action": "b", "durationMs": 10**400},
    ],
)
def test_what_is_no_record_is_refused(store: Store, wrong: Record) -> None:
    """A record that does not follow the format is refused with its whole batch."""
    with pytest.raises(InvalidInput):
        store.append([entry("s", 0), wrong])

    assert records_of(store) == []


def test_deep_nesting_is_refused_when_written(store: Store) -> None:
    """A value nested deeper than any reader can bear is refused, and one at the limit can be read."""
    deep: Any = 0
    for _ in range(250):
        deep = [deep]
    store.append([entry("s", 0, given=deep)])

    with pytest.raises(InvalidInput, match="nested too deep"):
        store.append([entry("s", 1, given=[[[[[[deep]]]]]])])

    assert [view.to_json()["input"] for view in views_of(store, "s")] == [deep]


def test_unknown_kinds_and_keys_are_kept(store: Store) -> None:
    """Kinds and keys that this version does not know are stored and come back as they were."""
    records: list[Record] = [
        {"v": 1, "kind": "entry", "session": "s", "id": "e", "agent": "a", "action": "b", "x-y": {"deep": [None, True]}},
        {"v": 1, "kind": "telemetry", "session": "s", "cpu": 0.5},
        {"v": 1, "kind": "telemetry", "session": "s", "cpu": 0.75, "id": 5},
        {"v": 1, "kind": "telemetry", "session": "s", "id": "t", "when": "now"},
    ]
    store.append(records)

    assert records_of(store) == records
    assert store.append(records).known == len(records)


def test_doubles_of_another_session_are_left_out_with_what_belongs_to_them(store: Store) -> None:
    """Copied history is left out: entries and events that another session holds, and the results of such entries."""
    original = [entry("a", 0, id="x"), result("a", 0, "done", entry="x"), event("a", 0, "thought", id="v")]
    store.append(original)
    copied = [dict(record, session="b") for record in original]

    report = store.append([*copied, entry("b", 1, id="own")], doubles=True)

    assert (report.doubles, report.added) == (3, 1)
    assert [record["id"] for record in records_of(store) if record["session"] == "b"] == ["own"]


def test_an_append_of_which_nothing_can_be_a_double(store: Store) -> None:
    """Records that are neither entries nor events are taken as they are."""
    report = store.append(
        [build("session", "s", at(0), process="p"), build("sessionEnd", "s", at(1), outcome="failed")], doubles=True
    )

    assert (report.doubles, report.added) == (0, 2)


def test_writers_that_take_turns_never_go_by_what_they_remember(store: Store, store_path: Any) -> None:
    """Two writers on one store, one after the other, give dense places, and the chain of sums stays whole."""
    other = open_store(str(store_path))
    for number, writer in enumerate([store, store, other, other, store, other, store]):
        writer.append([entry("s", number), entry(f"t{number % 2}", number, process="p")])
    other.close()

    assert [view.index for view in views_of(store, "s")] == list(range(7))
    assert len(views_of(store, "t0")) + len(views_of(store, "t1")) == 7
    assert store.verify() == (14, [])


def _append_in_vain(store: Store, records: list[Record]) -> None:
    """Append, and let the transaction around it fail."""
    with store.engine.transaction():
        store.append(records)
        store.append([entry("s", 0, given="otherwise")])


def test_what_was_rolled_back_is_forgotten(tmp_path: Any) -> None:
    """After a transaction that was taken back, a new session and the next places are as if it had never been."""
    with contextlib.closing(open_store(str(tmp_path / "history.db"), create=True)) as store:
        store.append([entry("s", 0)])
        with pytest.raises(Conflict):
            _append_in_vain(store, [entry("s", 1), entry("new", 1)])
        store.append([entry("s", 2), entry("new", 2)])

        assert [view.index for view in views_of(store, "s")] == [0, 1]
        assert [view.index for view in views_of(store, "new")] == [0]
        assert store.verify() == (3, [])
