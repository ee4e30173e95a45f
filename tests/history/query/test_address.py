"""Which session and which entry are meant: by default, by id, by prefix, by process, by index."""

from __future__ import annotations

import pytest

from ctxmgr.errors import InvalidInput, OutOfBounds
from ctxmgr.history.query.requests import add_note, create_snapshot, show
from ctxmgr.store import Store
from ctxmgr.types.base import Shape
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import (
    AddNoteRequest,
    CreateSnapshotRequest,
    ListNotesRequest,
    ListRequest,
    ListSnapshotsRequest,
    MessagesRequest,
    SearchRequest,
    ShowRequest,
    TraceRequest,
)
from tests.builders import at, entry, event, write
from tests.frontends import Ask


def _two_sessions(store: Store) -> None:
    store.append([
        build("session", "alpha-1", at(0), process="proc-a"),
        entry("alpha-1", 0, given="first", process="proc-a"),
        event("alpha-1", 0, "message", "first", entry="alpha-1-e0000"),
        build("session", "beta-2", at(60), process="proc-b"),
        entry("beta-2", 70, given="second", process="proc-b"),
        event("beta-2", 0, "message", "second", entry="beta-2-e0070", after=70),
    ])  # fmt: skip


def _seven(session: str | None) -> dict[str, Shape]:
    """Return one request of each of the seven tools for the session."""
    return {
        "trace": TraceRequest(session=session),
        "list": ListRequest(session=session),
        "search": SearchRequest(session=session, query="first"),
        "show": ShowRequest(session=session, index=0),
        "messages": MessagesRequest(session=session),
        "note": AddNoteRequest(session=session, entry_indices=[0], content="seen"),
        "snapshot": CreateSnapshotRequest(session=session, entry_indices=[0], summary="s", reasoning="r"),
        "notes": ListNotesRequest(session=session),
        "snapshots": ListSnapshotsRequest(session=session),
    }


@pytest.mark.requirement("FR-013", "FR-026", "R-02")
@pytest.mark.parametrize("named", ["alpha-1", "alpha", "a", "proc-a"])
def test_every_tool_finds_its_session_by_id_prefix_or_process(store: Store, ask: Ask, named: str) -> None:
    """Each of the seven tools takes a session's id, an unambiguous prefix of it, or the id of its process."""
    _two_sessions(store)
    answers = {name: ask(request) for name, request in _seven(named).items()}

    assert [row["session"] for row in answers["trace"]["entries"]] == ["alpha-1"]
    assert [row["session"] for row in answers["list"]["rows"]] == ["alpha-1"]
    assert {hit["row"]["session"] for hit in answers["search"]["hits"]} == {"alpha-1"}
    assert answers["show"]["entry"]["session"] == "alpha-1"
    assert [message["session"] for message in answers["messages"]["messages"]] == ["alpha-1"]
    assert (answers["note"]["note"]["session"], answers["note"]["note"]["entries"]) == ("alpha-1", ["alpha-1-e0000"])
    assert answers["snapshot"]["snapshot"]["session"] == "alpha-1"
    assert [note["session"] for note in answers["notes"]["notes"]] == ["alpha-1"]
    assert [bundle["session"] for bundle in answers["snapshots"]["snapshots"]] == ["alpha-1"]


@pytest.mark.requirement("FR-013")
def test_without_a_name_the_latest_session_is_meant(store: Store, ask: Ask) -> None:
    """When no session is named the tools speak of the one with the latest activity, whatever was written last."""
    _two_sessions(store)
    store.append([event("alpha-1", 9, "message", "late to the log, early in time", after=5)])

    assert ask(ShowRequest(index=0))["entry"]["input"] == "second"
    assert [row["session"] for row in ask(ListRequest(kind="all"))["rows"]] == ["beta-2", "beta-2"]


@pytest.mark.parametrize("named", ["", "alpha-1 ", "ALPHA-1", "alpha_1", "alpha-1\0"])
def test_an_unknown_session_is_not_found_by_any_tool(store: Store, ask: Ask, named: str) -> None:
    """A name that is no session, the empty one included, is not found, and nothing else is answered in its place."""
    _two_sessions(store)
    store.append([build("session", "gamma", at(1)), entry("gamma", 0)])

    for name, request in _seven(named).items():
        assert ask(request) == {"error": "notFound", "message": f"no session {named!r}"}, name


def test_an_ambiguous_prefix_is_refused(store: Store, ask: Ask) -> None:
    """A prefix of several sessions, and a process that executed several, are errors that say so."""
    store.append([build("session", name, at(0), process="shared") for name in ("ab1", "ab2")])

    assert ask(ListRequest(session="ab")) == {"error": "invalid", "message": "several session ids start with 'ab'"}
    assert ask(ListRequest(session="shared")) == {"error": "invalid", "message": "process 'shared' executed 2 sessions"}


def test_a_session_goes_before_a_process_of_that_name(store: Store, ask: Ask) -> None:
    """Where a name is a session's id and another session's process, the session is meant."""
    store.append([build("session", "one", at(0), process="two"), entry("one", 0), entry("two", 0)])

    assert [row["session"] for row in ask(ListRequest(session="two"))["rows"]] == ["two"]


@pytest.mark.requirement("FR-010", "C-show")
def test_an_entry_is_shown_by_index_id_or_prefix(store: Store, ask: Ask) -> None:
    """The same entry is shown by its index, from the end, by its id and by a prefix of it."""
    store.append([entry("s", number, id=f"{number}abc", given=number) for number in range(4)])

    shown = [
        ask(ShowRequest(index=2)),
        ask(ShowRequest(index=-2)),
        ask(ShowRequest(entry_id="2abc")),
        ask(ShowRequest(session="s", entry_id="2a")),
    ]

    assert [answer["entry"]["input"] for answer in shown] == [2] * 4
    assert all(answer == shown[0] for answer in shown)


@pytest.mark.requirement("US4-2", "R-05")
@pytest.mark.parametrize("index", [4, -5, 999_999_999_999_999])
def test_indexes_out_of_bounds(store: Store, ask: Ask, index: int) -> None:
    """An index that the history does not reach, in either direction, is out of bounds for every tool that takes one."""
    write(store, "s", ["Bash:a"] * 4)
    expected = {"error": "outOfBounds", "message": "Index out of bounds"}

    assert ask(ShowRequest(index=index)) == expected
    assert ask(MessagesRequest(index=index)) == expected
    assert ask(AddNoteRequest(entry_indices=[0, index], content="x")) == expected
    assert ask(CreateSnapshotRequest(entry_indices=[index], summary="x", reasoning="y")) == expected


def test_an_index_may_be_any_number(store: Store) -> None:
    """An index beyond what a database can hold is out of bounds like any other."""
    write(store, "s", ["Bash:a"])
    for index in (2**63, -(2**63) - 1, 10**40):
        with pytest.raises(OutOfBounds, match="Index out of bounds"):
            show(store, ShowRequest(index=index))


@pytest.mark.parametrize("name", ["s-e0000x", "S-E0000", "%", "' OR '1'='1"])
def test_unknown_entry_ids(store: Store, ask: Ask, name: str) -> None:
    """An id that no entry of the session has is not found."""
    write(store, "s", ["Bash:a", "Bash:b"])
    write(store, "t", ["Bash:c"])
    expected = {"error": "notFound", "message": f"no entry {name!r} in session s"}

    assert ask(ShowRequest(session="s", entry_id=name)) == expected
    assert ask(MessagesRequest(session="s", entry_id=name)) == expected
    assert ask(AddNoteRequest(session="s", entry_ids=[name], content="x")) == expected


def test_an_ambiguous_entry_id_is_refused(store: Store, ask: Ask) -> None:
    """A prefix of several entries is an error, and a whole id that begins another one is that entry."""
    store.append([entry("s", number, id=name) for number, name in enumerate(("ab", "abc", "abd"))])

    assert ask(ShowRequest(entry_id="a"))["error"] == "invalid"
    assert ask(ShowRequest(entry_id="ab"))["entry"]["index"] == 0


def test_neither_or_both_of_index_and_id(store: Store) -> None:
    """An entry is named by exactly one of index and id; a note and a snapshot name at least one entry."""
    write(store, "s", ["Bash:a"])
    for request in (ShowRequest(), ShowRequest(index=0, entry_id="s-e0000")):
        with pytest.raises(InvalidInput, match="by its index or by its id"):
            show(store, request)
    with pytest.raises(InvalidInput, match="no entries are named"):
        add_note(store, AddNoteRequest(content="x"))
    with pytest.raises(InvalidInput, match="no entries are named"):
        create_snapshot(store, CreateSnapshotRequest(summary="x", reasoning="y"))


@pytest.mark.requirement("R-04", "EC-1")
def test_an_empty_history_answers_and_refuses(store: Store, ask: Ask) -> None:
    """In an empty history the queries answer ``empty``; show, note and snapshot say that there is none."""
    answers = {name: ask(request) for name, request in _seven(None).items()}

    for name in ("trace", "list", "search", "messages", "notes", "snapshots"):
        assert (answers[name]["status"], answers[name]["page"]["total"]) == ("empty", 0), name
    for name in ("show", "note", "snapshot"):
        assert answers[name] == {"error": "noHistory", "message": "No history available"}, name


@pytest.mark.requirement("R-04")
def test_a_session_without_entries_has_no_history(store: Store, ask: Ask) -> None:
    """A session that has only begun, or only talked, has no entry to show, annotate or bundle."""
    store.append([build("session", "s", at(0)), event("s", 0, "message", "hello")])
    answers = {name: ask(request) for name, request in _seven("s").items()}

    for name in ("show", "note", "snapshot"):
        assert answers[name] == {"error": "noHistory", "message": "No history available"}, name
    assert answers["trace"]["status"] == "empty"
    assert len(answers["messages"]["messages"]) == 1


def test_an_entry_id_stands_alone(store: Store) -> None:
    """An id (or its beginning) finds its entry in whichever session holds it; the latest session comes first."""
    _two_sessions(store)

    assert show(store, ShowRequest(entry_id="alpha-1-e0000")).entry.session == "alpha-1"
    assert show(store, ShowRequest(entry_id="alpha")).entry.session == "alpha-1"
    assert show(store, ShowRequest(entry_id="beta")).entry.session == "beta-2"
    note = add_note(store, AddNoteRequest(entry_ids=["alpha-1-e0000"], content="here")).note
    assert note.session == "alpha-1"
    store.append([entry("gamma-3", 0), entry("delta-4", 0, id="gamma-3-e0000"), entry("omega", 900)])
    with pytest.raises(InvalidInput, match="several sessions"):
        show(store, ShowRequest(entry_id="gamma-3-e0000"))
