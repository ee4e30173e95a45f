"""Odd JSON values in every field of every kind of record: taken or refused, through every door, and never a crash."""

from __future__ import annotations

import copy
import json
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.config import Config
from ctxmgr.detect.replay import session_observations
from ctxmgr.errors import CtxmgrError
from ctxmgr.goals import Goals
from ctxmgr.goals.brief import messages
from ctxmgr.history import detection
from ctxmgr.history.query import requests
from ctxmgr.history.query import requests as annotating
from ctxmgr.log.codec import Record
from ctxmgr.recover.service import Service
from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import ACCESS, KEY, NEEDS, PACKAGE, PROJECT, PRUNED, RULES, VERSION
from ctxmgr.types import query
from ctxmgr.types.memory import RecallRequest
from ctxmgr.types.operations import DetectRequest, RecoverRequest, SessionsRequest
from ctxmgr.types.plain_records import build
from ctxmgr.workspace import Workspace
from tests.builders import at, entry, event, result, steps

_VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 2**70, 1e300, "", " ", "x" * 300, "\ud800", [], [[]], [{}], ["a", 1], {}, {"a": []}, {"text": {}},
]  # fmt: skip
ODD: st.SearchStrategy[Any] = st.sampled_from(_VALUES).map(copy.deepcopy)
"""Copies: a record may be changed inside of one."""

STATUS_ODD: list[Any] = [[], {}, None, "ok", 7]

KINDS: dict[str, Record] = {
    "session": build("session", "s", at(0), process="p", workflow="w", source={"importer": "x"}, meta={"title": "t"}),
    "entry": entry(
        "s", 9, "Edit", {"file_path": "a", "command": "ls"}, inputType="T", process="p", turn="t", step="1", parent="s-e0001",
        task="k", timeoutMs=5, meta={"missing": ["a"]}, status="error", output="o", error={"type": "E", "message": "m"},
        durationMs=3, usage={"inputTokens": 1, "outputTokens": 2},
    ),
    "result": result("s", 3, "o", status="error", error={"type": "E", "message": "m"}, durationMs=3, usage={"inputTokens": 1}),
    "event": event("s", 9, "message", {"text": "t"}, entry="s-e0001", agent="coder", process="p", seq=1),
    "note": build(
        "note", "s", at(5), id="n", entries=["s-e0001"], content="c", tags=["memory"], links=["s-e0000"], author="a",
        supersedes="m",
    ),
    "snapshot": build("snapshot", "s", at(5), id="b", entries=["s-e0001"], summary="s", reasoning="r", hash="h"),
    "continuation": build(
        "continuation", "s", at(5), id="c", target="coder", requestType="PROCEED", source="stuckHandler", attempts=1,
        loop={"kind": "repetition", "period": 1, "members": ["s-e0001"], "start": "s-e0001", "lastProgress": None, "scope": {}},
        context={"facts": [{"text": "t", "entries": ["s-e0001"], "label": "verified"}], "sections": [], "prompt": "p"},
        doNotRepeat=[{"action": "a", "entries": ["s-e0001"]}], alternatives=[], notes=["n"], snapshot="b", by="rules",
        returnTo={"agent": None},
    ),
    "sessionEnd": build("sessionEnd", "s", at(6), outcome="completed", process="p", capture={"published": 1, "lost": 0}),
    **{
        f"event {type_}": event("s", 9, type_, {"text": "t"}, entry="s-e0001", agent="coder")
        for type_ in ("user_message", "agent_message_chunk", "tool_call_update", "usage", "compaction", "waiting", "plan")
    },
    **{
        f"project {type_}": build("event", PROJECT, at(5), id=f"i-{type_}", type=type_, agent="a", data={
            "op": "put", "version": 1, "parent": None, "by": "a", "artifacts": [{"id": "x", "agent": "a", "name": "n"}],
            "changes": [{"key": "k", "value": 1, "type": "integer"}],
            "set": [{"agent": "a", "pattern": "*", "need": "required"}],
            "versions": [1], "agent": "a", "items": [{"id": "x", "type": "artifact"}], "permission": "read", "granted": [],
        })
        for type_ in (VERSION, PRUNED, KEY, RULES, NEEDS, PACKAGE, ACCESS)
    },
}  # fmt: skip
BEFORE = [build("session", "s", at(0), process="p"), *steps("s", ["Bash:ls -> a", "> do it", "Bash:ls -> a", "!Edit:x -> e"])]
AFTER = steps("s", ["Bash:ls -> a"] * 4, start=20, events=20)

DOORS: list[Any] = [
    query.TraceRequest(session="s"), query.ListRequest(session="s", kind="all", limit=100),
    query.SearchRequest(query="a", all_sessions=True), query.ShowRequest(session="s", index=-1),
    query.MessagesRequest(session="s"),
    query.ListNotesRequest(all_sessions=True), query.ListSnapshotsRequest(session="s"),
]  # fmt: skip
TOOLS = {
    query.TraceRequest: requests.trace, query.ListRequest: requests.list_, query.SearchRequest: requests.search,
    query.ShowRequest: requests.show, query.MessagesRequest: requests.messages, query.ListNotesRequest: annotating.list_notes,
    query.ListSnapshotsRequest: annotating.list_snapshots,
}  # fmt: skip


@st.composite
def odd_records(draw: st.DrawFn) -> Record:
    """Return a record of some kind with odd values in up to three of its fields, also inside of what they hold."""
    record: Record = json.loads(json.dumps(KINDS[draw(st.sampled_from(sorted(KINDS)))]))
    for _ in range(draw(st.integers(1, 3))):
        place: dict[str, Any] = record
        names = sorted(set(place) - {"v", "kind", "session"})
        name: str = draw(st.sampled_from(names))
        while isinstance(place[name], dict) and place[name] and draw(st.booleans()):
            place = place[name]
            name = draw(st.sampled_from(sorted(place)))
        if isinstance(place[name], list) and place[name] and draw(st.booleans()):
            first = place[name][0]
            if isinstance(first, dict) and first and draw(st.booleans()):
                inner = cast("dict[str, Any]", first)
                inner[draw(st.sampled_from(sorted(inner)))] = draw(ODD)
            else:
                place[name] = [draw(ODD)]
        else:
            place[name] = draw(ODD)
    return record


def _answers(store: Store) -> None:
    """Ask every reading tool, the detectors and the recovery; each answers or refuses in the product's own words."""
    asked: list[Any] = [
        *[lambda request=request: TOOLS[type(request)](store, request).to_json() for request in DOORS],
        lambda: detection.sessions(store, SessionsRequest(), {}).to_json(),
        lambda: detection.detect_(store, DetectRequest(all_sessions=True), {}).to_json(),
        lambda: (
            Service(store, Config())
            .answer_finding(store.sessions.key("s") or 0, RecoverRequest(session="s", force=True))
            .to_json()
        ),
        lambda: Workspace(store, Config()).recall(RecallRequest(query="c")).to_json(),
        lambda: [store.shared.context_keys(), store.shared.rules(), store.shared.needs(), store.artifacts.versions()],
    ]
    for ask in asked:
        try:
            ask()
        except CtxmgrError:
            continue


@pytest.mark.long
@pytest.mark.requirement("EC-4")
@settings(max_examples=200, deadline=None)
@given(records=st.lists(odd_records(), min_size=1, max_size=3))
def test_odd_values_are_taken_or_refused(records: list[Record]) -> None:
    """A store takes or refuses each record, and answers everything that can be asked of it afterwards."""
    with closing(open_store(":memory:", create=True)) as store:
        store.append(BEFORE)
        for record in records:
            try:
                store.append([record])
            except CtxmgrError:
                continue
        store.append(AFTER)
        _answers(store)


@settings(max_examples=100, deadline=None)
@given(records=st.lists(odd_records(), min_size=1, max_size=3))
def test_odd_values_pass_the_pure_readers(records: list[Record]) -> None:
    """Detection and comparison read records that no store looked at."""
    every, known = [*BEFORE, *records, *AFTER], list(messages(BEFORE))
    assert known
    assert list(messages(every))[: len(known)] == known
    list(session_observations(every))


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(odd_records(), min_size=1, max_size=3))
def test_odd_values_in_a_log(records: list[Record], tmp_path: Path) -> None:
    """A log with such lines is read in place and imported; what is no record of the format is counted."""
    log, home = tmp_path / "log.jsonl", tmp_path / "home"
    log.write_text("".join(json.dumps(record) + "\n" for record in [*BEFORE, *records, *AFTER]), encoding="utf-8")
    with closing(open_store(str(log))) as store:
        _answers(store)
    with Workspace(open_store(":memory:", create=True), Config()) as workspace:
        try:
            workspace.import_logs([log], home=home)
        except CtxmgrError:
            return
        _answers(workspace.store)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(odd_records(), min_size=1, max_size=3), status=st.sampled_from(STATUS_ODD), data=st.data())
def test_odd_values_in_a_goal(
    records: list[Record], status: Any, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A goal whose history and state file hold odd values is resumed or refused."""
    from ctxmgr.goals import ContextManager, Task

    folder = tmp_path_factory.mktemp("goal")
    with ContextManager(folder) as goal:
        goal.load_or_init("g")
        goal.state.goal.tasks.append(Task("a"))
        goal.record_action("Bash", {"a": 1}, "success")
    history = folder / "history.jsonl"
    session = json.loads(history.read_text().splitlines()[0])["session"]
    lines = [{**record, "session": session} for record in records]
    with history.open("a", encoding="utf-8") as log:
        log.writelines(
            json.dumps(line) + "\n"
            for line in [*lines, {"v": 1, "kind": "result", "session": session, "entry": "x", "status": status}]
        )
    state = json.loads((folder / "state.json").read_text())
    state[data.draw(st.sampled_from(sorted(state)))] = data.draw(ODD)
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    for ask in (lambda: Goals(folder).state(), lambda: ContextManager(folder).resume(), lambda: Goals(folder).state()):
        try:
            ask()
        except CtxmgrError:
            continue
