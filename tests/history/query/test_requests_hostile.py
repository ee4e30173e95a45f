"""Names are data: whatever a session, agent, tag or id is called, answers are exact and no SQL is made of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ctxmgr.history import detection
from ctxmgr.history.query import requests
from ctxmgr.history.query import requests as annotating
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.types.operations import DetectRequest, SessionsRequest
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
    ShowSnapshotRequest,
    TraceRequest,
)
from tests.builders import at
from tests.frontends import Ask
from tests.store.counting import counted

NAMES = [
    "'", "''", '"', "`", "]", "[x]", ";", "--", "/*", "%", "%%", "_", "*", "?", ":x", "@5", "$1", "\\", "/", "../../etc/passwd",
    "..", ".", "~", "a/b", "C:\\x", "\0",
    "a\0b", "a\0c", "\n", "\r\n", "\t", "\u202e", "\u2028", "\ufeff", "\x1b[31m", "\x9b", "😀",
    "x'; DROP TABLE record; --", "' OR '1'='1", "x') UNION SELECT body FROM record --", "a" * 3000, "NULL", "null", "0", "-1",
    "session", ":session", "{name}", "%s", "@last", "s@5", "é", "e\u0301", "\U0010ffff", "ß", "SS",
]  # fmt: skip


def _records(name: str, number: int) -> list[Record]:
    """Return a session of this name in which everything else has that name too."""
    return [
        build("session", name, at(number), process=f"process {name}", workflow=name),
        build(
            "entry",
            name,
            at(number),
            id=f"e{name}",
            agent=name,
            action=name,
            inputType=name,
            input=name,
            status="ok",
            task=name,
        ),
        build("event", name, at(number), id=f"v{name}", type=f"t{name}", agent=name, entry=f"e{name}", data=name),
        build("note", name, at(number), id=f"n{name}", entries=[f"e{name}"], content=name, tags=[name], author=name),
        build("snapshot", name, at(number), id=f"p{name}", entries=[f"e{name}"], summary=name, reasoning=name, hash=name),
    ]


def _all() -> list[Record]:
    return [record for number, name in enumerate(NAMES) for record in _records(name, number)]


@pytest.fixture(scope="module")
def many() -> Any:
    """Hold all the hostile sessions together."""
    store = open_store(":memory:", create=True)
    store.append(_all())
    yield store
    store.close()


def test_every_hostile_session_is_kept_apart(many: Store) -> None:
    """No two of the names are taken for the same session."""
    assert sorted(view.session for _, view in many.sessions.page(0, None)) == sorted(NAMES)
    assert many.verify() == (5 * len(NAMES), [])


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:30])
def test_every_question_about_a_hostile_name_is_answered_exactly(many: Store, name: str) -> None:
    """Asked by session, agent, action, type, id, tag and process, exactly the rows of that name come back."""
    folded = name.casefold()
    same = [other for other in NAMES if other.casefold() == folded]

    assert [row.session for row in requests.list_(many, ListRequest(session=name, kind="all")).rows] == [name, name]
    assert [
        row.id for row in requests.list_(many, ListRequest(session=name, action=[name], agent=[name], input_type=[name])).rows
    ] == [f"e{name}"]
    assert [row.id for row in requests.list_(many, ListRequest(session=name, event_type=[f"t{name}"])).rows] == [f"v{name}"]
    assert requests.show(many, ShowRequest(session=name, entry_id=f"e{name}")).entry.action == name
    assert requests.show(many, ShowRequest(session=f"process {name}", index=0)).entry.session == name
    assert [view.data for view in requests.messages(many, MessagesRequest(session=name, entry_id=f"e{name}")).messages] == []
    notes = annotating.list_notes(many, ListNotesRequest(session=name, tags=[name])).notes
    assert [note.content for note in notes] == [name]
    assert annotating.show_snapshot(many, ShowSnapshotRequest(session=name, snapshot_id=f"p{name}")).snapshot.summary == name
    found = detection.sessions(many, SessionsRequest(agent=name, limit=100, judge=False), {}).sessions
    assert sorted(view.session for view in found) == sorted(same)
    if name.replace("\0", "").strip():
        hits = requests.search(many, SearchRequest(query=name, all_sessions=True, kind="entry", max_results=1000)).hits
        assert sorted(hit.row.session for hit in hits) == sorted(other for other in NAMES if folded in other.casefold())


@pytest.mark.long
@pytest.mark.requirement("FR-013")
@pytest.mark.parametrize("name", ["'", "%", "/", "..", "]", ";", "a\0b", "x'; DROP TABLE record; --", "\u202e", "-1"])
def test_every_door_takes_hostile_names(store: Store, ask: Ask, name: str) -> None:
    """Library and command line read and annotate a session of any name."""
    store.append([*_records("harmless", 0), *_records(name, 1)])

    note = ask(AddNoteRequest(session=name, entry_ids=[f"e{name}"], content=name, tags=[name], author=name))["note"]

    assert note["session"] == name
    assert [row["id"] for row in ask(TraceRequest(session=name, action=[name]))["entries"]] == [f"e{name}"]
    assert [n["content"] for n in ask(ListNotesRequest(session=name))["notes"]] == [name, name]
    assert [bundle["id"] for bundle in ask(ListSnapshotsRequest(session=name))["snapshots"]] == [f"p{name}"]
    assert ask(ListRequest(session="harmless"))["page"]["total"] == 1


MARK = "zq7'\"];--%_zq7"


def test_no_recorded_or_asked_text_becomes_sql() -> None:
    """Through writing and every question no statement holds a piece of the text: everything is bound."""
    opened = open_store(":memory:", create=True)
    watched, engine = counted(opened)
    watched.append(_records(MARK, 0))
    common: dict[str, Any] = {
        "session": MARK,
        "action": [MARK],
        "agent": [MARK],
        "input_type": [MARK],
        "since": at(-1),
        "until": at(9),
    }
    requests.trace(watched, TraceRequest(**common))
    for kind in ("entry", "event", "all"):
        requests.list_(watched, ListRequest(**common, kind=kind, status=["ok"], event_type=[] if kind == "entry" else [MARK]))
    requests.search(watched, SearchRequest(**common, query=MARK))
    requests.search(watched, SearchRequest(query=MARK, all_sessions=True))
    requests.show(watched, ShowRequest(session=MARK, entry_id=f"e{MARK}"))
    requests.messages(watched, MessagesRequest(session=MARK, entry_id=f"e{MARK}"))
    annotating.add_note(
        watched, AddNoteRequest(session=MARK, entry_ids=[f"e{MARK}"], content=MARK, tags=[MARK], supersedes=f"n{MARK}")
    )
    annotating.list_notes(watched, ListNotesRequest(session=MARK, tags=[MARK, MARK], query=MARK))
    annotating.create_snapshot(watched, CreateSnapshotRequest(session=MARK, entry_indices=[0], summary=MARK, reasoning=MARK))
    annotating.show_snapshot(watched, ShowSnapshotRequest(session=MARK, snapshot_id=f"p{MARK}"))
    detection.sessions(watched, SessionsRequest(agent=MARK), {})
    detection.detect_(watched, DetectRequest(session=f"process {MARK}"), {})
    watched.leases.take(MARK, MARK, 1.0, 1.0)
    watched.imported.sources(MARK)

    assert len(engine.statements) > 60
    assert not [text for text in engine.statements if "zq7" in text]
    # The only literals are the fixed words of the schema.
    literals = {literal for text in engine.statements for literal in re.findall(r"'([^']*)'", text)}
    assert literals <= {
        "entry", "event", "result", "note", "snapshot", "continuation", "session", "sessionEnd", "open", "usage",
        "ok", "error", "denied", "interrupted",
        'user_message', "user_message_chunk", "interrupt", '%"usage":{%',
        "table", "search_word", "search_term", "search_gram", "search_mark", "search_open", "search_state",
    }  # fmt: skip
    opened.close()
