"""What may not be read is, byte for byte, what was never there; and nothing odd in the records opens it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import CtxmgrError
from ctxmgr.history.detection import detect_, sessions
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.history.query.visibility import citations, redact_session_record
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import EXECUTION, PROJECT, RULES
from ctxmgr.types import query
from ctxmgr.types.base import Shape
from ctxmgr.types.operations import DetectRequest, SessionsRequest
from ctxmgr.types.plain_records import build
from tests.builders import at, entry, event, result, steps
from tests.frontends import TOOLS as READING
from tests.history.seen_world import ME, rules, seen_of, written

OWN = rules(("self", "write"))

MINE = [build("session", "s", at(0), process="p", meta={"cwd": "/"}), *steps("s", ["Bash:ls", "Read:a"], agent="me")]
HIDDEN: dict[str, list[Record]] = {
    "an entry": [entry("s", 50, agent="hidden")],
    "a session": steps("t", ["Bash:x", "> hello"], agent="hidden"),
    "a note": [entry("s", 50, agent="hidden"), build("note", "s", at(9), id="n", entries=["s-e0000", "s-e0050"], content="x")],
    "a note of nobody": [build("note", "s", at(9), id="n", entries=[], content="x")],
    "a snapshot": [entry("s", 50, agent="hidden"),
                   build("snapshot", "s", at(9), id="n", entries=["s-e0050"], summary="x", reasoning="", hash="")],
    "a continuation": [entry("s", 50, agent="hidden"), build("continuation", "s", at(9), id="n", target="me",
                       context={"facts": [{"entries": ["s-e0050"]}]})],
    "words": [event("s", 50, "user_message", {"text": "x"})],
    "a title": [build("session", "s", at(0), process="p", meta={"title": "the words of a person"})],
    "rules": [build("event", PROJECT, at(9), id="r", type=RULES, data={"set": []}, agent="me")],
    "kinds that nobody knows": [build("odd", "s", at(9), agent="me", entry="s-e0000")],
}  # fmt: skip


ASKED = [
    (session, name)
    for session in (None, "s", "t", "t-", PROJECT)
    for name in ("s-e0050", "s-e005", "t-e0000", "n", "r", "s-v0050", "s-e0000")
]


def _told(folder: Path, records: list[Record]) -> str:
    with seen_of(written(folder / "h.db", records), OWN) as seen:
        return json.dumps([_asked(seen, request) for pair in ASKED for request in _requests(*pair)])


@cache
def _told_of_mine() -> str:
    """Return what is told where nothing is hidden: the same, whatever it is that may be."""
    with tempfile.TemporaryDirectory() as folder:
        return _told(Path(folder), MINE)


@pytest.mark.requirement("R-16")
@pytest.mark.parametrize("case", sorted(HIDDEN))
def test_a_denied_thing_is_a_missing_thing(tmp_path: Path, case: str) -> None:
    """Asked for by name, by prefix or by place, what may not be read gives the bytes that nothing gives."""
    assert _told(tmp_path, [*MINE, *HIDDEN[case]]) == _told_of_mine()


def _requests(session: str | None, name: str) -> list[Any]:
    named: dict[str, Any] = {"session": session, "entry_id": name}
    return [
        query.ShowRequest(**named), query.ShowRequest(session=session, index=2), query.MessagesRequest(**named),
        query.ListRequest(session=session, kind="all"), query.TraceRequest(session=session),
        query.SearchRequest(session=session, query="x", kind="all"), query.ListNotesRequest(session=session),
        query.ShowSnapshotRequest(session=session, snapshot_id=name), DetectRequest(session=session),
        DetectRequest(all_sessions=True), SessionsRequest(), query.SearchRequest(query="x", kind="all", all_sessions=True),
        query.AddNoteRequest(session=session, entry_ids=[name, "gone"], content="x"),
        query.AddNoteRequest(session=session, entry_indices=[0, 2], content="x"),
        query.AddNoteRequest(session=session, entry_indices=[0], content="x", supersedes="n"),
        query.CreateSnapshotRequest(session=session, entry_ids=[name, "gone"], summary="x", reasoning="y"),
    ]  # fmt: skip


TOOLS: dict[type, Callable[[Store, Any], Shape]] = {
    **{request: tool.function for request, tool in READING.items()},
    DetectRequest: lambda store, asked: detect_(store, asked, {}),
    SessionsRequest: lambda store, asked: sessions(store, asked, {}),
}


def _asked(seen: FilteredStore, request: Any) -> Any:
    try:
        return TOOLS[type(request)](seen, request).to_json()
    except CtxmgrError as error:
        return [error.kind, error.message, error.hint]


def test_records_that_name_what_is_hidden_are_as_if_it_was_missing(tmp_path: Path) -> None:
    """Writing a result, a note, an event or a continuation on a hidden entry is refused as on one that is not there."""
    given: list[list[Record]] = [
        [result("s", 50)], [build("note", "s", None, id="x", entries=["s-e0050"], content="x")],
        [build("event", "s", None, id="x", type="message", agent="me", entry="s-e0050", data={})],
        [build("snapshot", "s", None, id="x", entries=["s-e0050"], summary="x", reasoning="", hash="")],
        [build("continuation", "s", None, id="x", target="me", context={"facts": [{"entries": ["s-e0050"]}]})],
        [entry("t", 5, agent="hidden")], [result("t", 0)], [build("note", "t", None, id="x", entries=["t-e0000"], content="x")],
        [build("note", "s", None, id="x", entries=["s-e0000"], content="x", supersedes="n")],
    ]  # fmt: skip
    told: list[list[Any]] = []
    hidden = [record for records in HIDDEN.values() for record in records]
    unique = {(record["session"], record["kind"], str(record.get("id", record))): record for record in [*MINE, *hidden]}
    for folder, records in (("whole", list(unique.values())), ("part", MINE)):
        (tmp_path / folder).mkdir()
        with seen_of(written(tmp_path / folder / "h.db", records), OWN) as seen:
            told.append([_refused(seen, each) for each in given])
    assert told[0] == told[1]
    assert {kind for kind, _, _ in told[0]} == {"notFound", "denied"}


def _refused(seen: FilteredStore, records: list[Record]) -> tuple[str, str, str | None]:
    with pytest.raises(CtxmgrError) as refusal:
        seen.append(records)
    return refusal.value.kind, refusal.value.message, refusal.value.hint


def test_damage_of_the_whole_history_is_not_told(tmp_path: Path) -> None:
    """Neither damaged ranges nor sums that don't match are the agent's to know."""
    path = written(tmp_path / "h.jsonl", MINE)
    path.write_bytes(path.read_bytes() + b'{"v":1,"kind":"entry","broken\n')
    with seen_of(path, OWN) as seen:
        assert len(seen.source.damage()) == 1
        assert seen.damage() == []
        assert seen.verify() == (len(MINE), [])


def test_the_reserved_session_shows_runs_of_agents_alone(store_path: Path) -> None:
    """Of the project's session an agent with all rights sees executions and their results, and no session in lists."""
    run = entry(PROJECT, 0, EXECUTION, {"sprint": "1"}, agent="coder", inputType=EXECUTION)
    rest = [
        build("session", PROJECT, at(0), process="p"), run, result(PROJECT, 0), HIDDEN["rules"][0],
        build("note", PROJECT, at(1), id="n", entries=["ctxmgr:project-e0000"], content="x"),
        build("sessionEnd", PROJECT, at(1), outcome="completed"),
    ]  # fmt: skip
    written(store_path, [*MINE, *rest])
    with seen_of(store_path, rules(("*", "write"))) as seen:
        key = seen.sessions.key(PROJECT)
        assert key is not None
        assert [record["kind"] for record in seen.sessions.records(key)] == ["entry", "result"]
        assert [view.session for _, view in seen.sessions.page(0, None)] == ["s"]
        assert seen.hidden == 0


def test_a_hidden_session_is_never_live(store_path: Path) -> None:
    """A session that a recorder holds open is live for who sees it alone."""
    from ctxmgr.recorder import Recorder

    written(store_path, MINE)
    with (
        Recorder(store_path, session="s", on_live="join"),
        Recorder(store_path, session="t") as other,
        seen_of(store_path, OWN) as seen,
    ):
        other.entry("hidden", "Bash")
        seen.catch_up()
        assert (seen.source.is_live("s"), seen.source.is_live("t")) == (True, True)
        assert (seen.is_live("s"), seen.is_live("t")) == (True, False)


ODD_BODIES = [
    "", "null", "[]", "{", '{"v":1}', '{"v":1,"kind":"entry","session":"s","id":"s-e0000","agent":["me"],"action":"x"}',
    '{"v":1,"kind":"entry","session":"t","id":"s-e0000","agent":"me","action":"x"}',
    '{"v":1,"kind":"entry","session":"s","id":"other","agent":"me","action":"x"}',
    '{"v":1,"kind":"note","session":"s","id":"s-e0000","agent":"me","entries":[],"content":"x"}',
    '{"v":1,"kind":"entry","session":"s","id":"s-e0000","agent":"me","action":"x","input":NaN}',
    '{"v":1,"kind":"entry","session":"s","id":"s-e0000","agent":"me","action":"x","input":' + "[" * 5000 + "]" * 5000 + "}",
    '{"v":1,"kind":"entry","session":"s","id":"s-e0000","agent":"me","action":"x","input":' + "9" * 5000 + "}", "\xff",
]  # fmt: skip


@pytest.mark.parametrize("body", ODD_BODIES, ids=range(len(ODD_BODIES)))
def test_a_record_that_was_changed_from_outside_is_hidden(tmp_path: Path, body: str) -> None:
    """A stored body that is not what was stored costs neither an error nor the others."""
    path = written(tmp_path / "h.db", MINE)
    with closing(open_store(str(path))) as store:
        store.engine.execute("UPDATE record SET body = :body WHERE kind = 'entry' AND id = 's-e0000'", {"body": body})
    with seen_of(path, OWN) as seen:
        assert [record["id"] for record in seen.sessions.records(None, ("entry",))] == ["s-e0001"]


ODD_SHAPES: list[dict[str, Any]] = [
    {"context": []}, {"context": {"facts": {}}}, {"context": {"facts": [[]]}}, {"context": {"facts": [{"entries": [1]}]}},
    {"context": {"held": [{"given": 1}]}}, {"loop": []}, {"loop": {"members": "s-e0000"}}, {"stall": {"start": {}}},
    {"diagnosis": []}, {"diagnosis": {"evidence": {}}}, {"diagnosis": {"evidence": ["s-e0000"]}},
    {"diagnosis": {"evidence": [{"entry": 1}]}},
    {"doNotRepeat": 5}, {"alternatives": [None, 3]}, {"quarantined": {}}, {"snapshot": ["x"]}, {"target": None},
    {"target": ["me"]},
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_SHAPES, ids=range(len(ODD_SHAPES)))
def test_a_continuation_of_another_shape_is_hidden(tmp_path: Path, odd: dict[str, Any]) -> None:
    """What can't be read for what it cites is not shown."""
    given = {"target": "me", "context": {"facts": [{"entries": ["s-e0000"]}]}}
    shaped = [
        build("continuation", "s", at(5), **{"id": "c1", **given}),
        {**build("continuation", "s", at(5), id="c2"), **given, **odd},
    ]
    path = written(tmp_path / "h.db", [*MINE, *shaped])
    with seen_of(path, OWN) as seen:
        assert [record["id"] for record in seen.sessions.records(None, ("continuation",))] == ["c1"]


def test_a_continuation_names_all_that_it_rests_on() -> None:
    """Facts, what is held, steps, alternatives, pattern, diagnosis, what was withheld and the snapshot are looked at."""
    record: Record = {
        "context": {"facts": [{"entries": ["a"]}], "held": [{"entries": ["b"], "given": "c"}], "diffOf": "d"},
        "doNotRepeat": [{"entries": ["e"]}], "alternatives": [{"entries": ["f"]}], "quarantined": ["g"], "snapshot": "h",
        "loop": {"members": ["i"], "start": "j", "lastProgress": None}, "stall": {"members": [], "lastProgress": "k"},
        "diagnosis": {"evidence": [{"entry": "l", "text": "x"}, {"entry": None, "text": "y"}]},
    }  # fmt: skip
    assert sorted(citations(record) or []) == list("abcdefghijkl")


def test_what_a_session_says_of_hidden_records_is_left_out() -> None:
    """Neither a person's words in title and summary nor the count of all events is told; the rest of a session stays."""
    began = build("session", "s", None, process="p", meta={"title": "x", "summary": "y", "cwd": "/"})
    ended = build("sessionEnd", "s", None, outcome="failed", capture={"published": 9})
    assert redact_session_record(began, with_words=True) == began
    assert redact_session_record(began, with_words=False) == build("session", "s", None, process="p", meta={"cwd": "/"})
    assert redact_session_record({**began, "meta": ["x"]}, with_words=False) == build("session", "s", None, process="p")
    assert redact_session_record(ended, with_words=True) == build("sessionEnd", "s", None, outcome="failed")
    assert redact_session_record({**ended, "meta": {"title": "x"}}, with_words=False) == build(
        "sessionEnd", "s", None, outcome="failed"
    )


@pytest.mark.requirement("R-16")
def test_numbers_of_the_event_bus_do_not_count_what_is_hidden(store_path: Path) -> None:
    """The numbers that a bus gives to the events of all agents are told to nobody who does not see all of them."""
    told: list[list[Record]] = []
    for hidden in (0, 3):
        records = [build("session", f"s{hidden}", at(0), process="p", seq=1)]
        records += [entry(f"s{hidden}", number, agent="hidden", seq=number + 2) for number in range(hidden)]
        records += [
            entry(f"s{hidden}", 8, agent="me", seq=hidden + 2), result(f"s{hidden}", 8, seq=hidden + 3),
            build("event", f"s{hidden}", at(9), id="v", type="message", agent="me", data={}, seq=hidden + 4),
            build("sessionEnd", f"s{hidden}", at(9), outcome="completed", seq=hidden + 5, capture={"published": hidden + 5}),
        ]  # fmt: skip
        written(store_path, records)
        with seen_of(store_path, OWN) as seen:
            told.append(list(seen.sessions.records(seen.sessions.key(f"s{hidden}"))))
            assert len(told[-1]) == 5
    assert not [record for records in told for record in records if "seq" in record or "capture" in record]
    assert json.dumps(told[0]).replace("s0", "s") == json.dumps(told[1]).replace("s3", "s")


def test_a_field_that_stands_twice_in_a_line_is_judged_and_searched_as_it_is_shown(tmp_path: Path) -> None:
    """Of a field that a log names twice the last one counts, and the text of the first is found by nobody."""
    twice = (
        '{"v":1,"kind":"entry","session":"s","id":"%s","agent":"%s","agent":"%s","action":"Bash","input":"%s","input":"x"}\n'
    )
    path = tmp_path / "h.jsonl"
    path.write_text(twice % ("a", "hidden", "me", "needle") + twice % ("b", "me", "hidden", "needle"), encoding="ascii")
    with seen_of(path, OWN) as seen:
        assert [record["id"] for record in seen.sessions.records(None)] == ["a"]
        found = READING[query.SearchRequest].function(seen, query.SearchRequest(query="needle", all_sessions=True))
        assert found.to_json()["page"]["total"] == 0


def test_names_that_look_alike_are_other_names(store_path: Path) -> None:
    """Agents that differ in case, form or a sign are not the asking one; half a character opens nothing."""
    agents = ["me", "ME", "me ", "\ud800me", "m\u0435", "me/*", "*", "self", ""]
    written(store_path, [entry("s", number, agent=agent) for number, agent in enumerate(agents)])
    with seen_of(store_path, OWN) as seen:
        assert [record["agent"] for record in seen.sessions.records(None)] == [ME]
