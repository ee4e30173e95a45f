"""What follows from appended records: processes, ends, results and the entries that they complete."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.plain_records import build
from tests.builders import at, entry, result
from tests.store.write.test_append import records_of, views_of


@pytest.mark.requirement("EC-6", "FR-026")
def test_two_processes_of_one_session_stay_apart(store: Store) -> None:
    """Entries of two processes of one session keep their process, and the session names both."""
    for process in ("p1", "p2"):
        store.append([build("session", "s", at(0), process=process)])
    store.append([entry("s", number, process=f"p{number % 2 + 1}") for number in range(6)])

    key = store.sessions.key("s")
    assert key is not None
    assert [view.process for view in views_of(store, "s")] == ["p1", "p2"] * 3
    assert [process.process for process in store.sessions.processes(key)] == ["p1", "p2"]
    assert store.sessions.of_process("p2") == ["s"]


@pytest.mark.requirement("FR-026")
def test_a_process_is_known_by_its_entries(store: Store) -> None:
    """A process that only entries speak of is mapped to its session too; its beginning may come later."""
    store.append([entry("s", 0, process="p"), build("session", "s", at(5), process="p")])

    key = store.sessions.key("s")
    assert key is not None
    assert store.sessions.of_process("p") == ["s"]
    assert [(process.process, process.started) for process in store.sessions.processes(key)] == [("p", at(5))]


@pytest.mark.parametrize("named", [True, False])
def test_an_end_without_a_beginning_counts(store: Store, named: bool) -> None:
    """A session whose log lacks its beginning has an outcome nevertheless."""
    store.append([entry("s", 0), build("sessionEnd", "s", at(2), outcome="failed", process="p" if named else None)])

    key = store.sessions.key("s")
    assert key is not None
    assert store.sessions.view(key).outcome == "failed"


def test_an_unnamed_end_ends_every_process(store: Store) -> None:
    """An end that names no process ends them all; one that names a process ends that one."""
    for process in ("p", "q"):
        store.append([build("session", "s", at(0), process=process), build("session", "t", at(0), process=process)])
    store.append([build("sessionEnd", "s", at(1), outcome="completed")])
    store.append([build("sessionEnd", "t", at(1), outcome="failed", process="q")])

    outcomes = {
        session: [process.outcome for process in store.sessions.processes(store.sessions.key(session) or 0)]
        for session in ("s", "t")
    }
    assert outcomes == {"s": ["completed", "completed"], "t": [None, "failed"]}


def test_a_result_may_come_before_its_entry(store: Store) -> None:
    """A result that stands before its entry completes it, also over two appends."""
    store.append([result("s", 0, "early")])
    store.append([entry("s", 0), result("s", 1, status="error", error={"message": "boom"}), entry("s", 1)])

    assert [(view.status, view.output, view.error) for view in views_of(store, "s")] == [
        ("ok", "early", None),
        ("error", None, {"message": "boom"}),
    ]


def test_an_entry_may_carry_its_result(store: Store) -> None:
    """An entry with the fields of a result is complete at once, and no later result overrides that."""
    store.append([entry("s", 0, status="denied", output="no", durationMs=7, usage={"inputTokens": 3})])
    store.append([result("s", 0, "later")])

    (view,) = views_of(store, "s")
    assert (view.status, view.output, view.duration_ms, view.usage) == ("denied", "no", 7.0, {"inputTokens": 3})


def test_a_result_without_an_entry_is_kept(store: Store) -> None:
    """A result whose entry is nowhere is stored and shows no entry."""
    orphan = result("s", 9, "lost")
    store.append([orphan])

    assert records_of(store) == [orphan]
    assert views_of(store, "s") == []


def test_results_reach_entries_of_their_own_session_only(store: Store) -> None:
    """The same entry id in two sessions means two entries."""
    store.append([entry("a", 0, id="same"), entry("b", 0, id="same"), result("b", 0, "of b", entry="same")])

    assert [(view.session, view.status) for session in "ab" for view in views_of(store, session)] == [
        ("a", "open"),
        ("b", "ok"),
    ]
