"""Records become observations."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.detect.replay import session_observations
from ctxmgr.log.ids import parse_time
from ctxmgr.log.record_schema import COMMON, RECORDS
from ctxmgr.types.plain_records import build

TS = "2026-01-22T10:00:00Z"


def entry(name: str, **fields: Any) -> dict[str, Any]:
    """Return an entry record."""
    return build("entry", "s", TS, id=name, agent="main", action="Read", input={"path": name}, process="p", **fields)


def test_an_entry_with_its_result_is_a_start_and_a_finish() -> None:
    """Both repeat the entry's own fields and its dense index; places in the log grow."""
    records = [
        build("session", "s", TS, process="p"),
        entry("a", status="ok", output="text", timeoutMs=5, step=1, turn=2, parent="z"),
        entry("b"),
        build("result", "s", "2026-01-22T10:00:09Z", entry="b", status="error", error={"message": "no"}),
    ]
    seen = list(session_observations(records))
    assert [(each.kind, each.id, each.index) for each in seen] == [
        ("event", "", None), ("start", "a", 0), ("finish", "a", 0), ("start", "b", 1), ("finish", "b", 1),
    ]  # fmt: skip
    assert [each.seq for each in seen] == sorted({each.seq for each in seen})
    seen = seen[1:]
    assert (seen[1].output, seen[1].timeout_ms, seen[1].step, seen[1].turn, seen[1].parent) == ("text", 5, 1, 2, "z")
    assert seen[3].at == 9 + (seen[2].at or 0)
    assert seen[3].error == {"message": "no"}


def test_events_keep_their_type_under_its_own_name() -> None:
    """Aliases are translated, a continuation is an event, a session end is an end, notes are nothing."""
    records = [
        build("event", "s", TS, id="v1", type="NodeStreamDeltaEvent", agent="main", data={"text": "x"}),
        build("continuation", "s", TS, id="c1"),
        build("note", "s", TS, id="n1", entries=["a"], content="x"),
        build("sessionEnd", "s", TS, outcome="completed"),
    ]
    seen = list(session_observations(records))
    assert [(each.kind, each.type) for each in seen] == [
        ("event", "agent_message_chunk"), ("event", "continuation"), ("end", "sessionEnd"),
    ]  # fmt: skip


def test_what_does_not_fit_is_passed_over() -> None:
    """Strays, second records and wrong types yield nothing or count as absent."""
    records: list[dict[str, Any]] = [
        {},
        {"kind": ["entry"]},
        build("result", "s", TS, entry="nowhere", status="ok"),
        entry("a"),
        entry("a"),
        build("result", "s", TS, entry="a", status="ok"),
        build("result", "s", TS, entry="a", status="error"),
        {"kind": "entry", "id": "b", "agent": 7, "action": None, "ts": 12, "timeoutMs": "x", "status": "ok", "error": []},
    ]
    seen = list(session_observations(records))
    assert [(each.kind, each.id, each.status) for each in seen] == [
        ("start", "a", None), ("finish", "a", "ok"), ("start", "b", None), ("finish", "b", "ok"),
    ]  # fmt: skip
    assert (seen[2].agent, seen[2].action, seen[2].at, seen[2].timeout_ms) == (None, "", None, None)


def test_of_distinct_records_only_what_is_open_is_kept_in_mind() -> None:
    """Where no entry and no result comes twice, as in a store, leaving out who was there before changes nothing."""
    records = [
        entry("a"),
        entry("b", status="ok", output="text"),
        build("result", "s", TS, entry="b", status="error"),
        build("result", "s", TS, entry="a", status="ok"),
        build("result", "s", TS, entry="c", status="ok"),
        entry("c"),
    ]
    assert list(session_observations(records, distinct=True)) == list(session_observations(records))
    again = [*records, entry("a"), build("result", "s", TS, entry="a", status="ok")]
    assert list(session_observations(again)) == list(session_observations(records))


ATTRIBUTES = {
    "session": "session", "ts": "at", "id": "id", "agent": "agent", "action": "action", "inputType": "input_type",
    "input": "input", "process": "process", "turn": "turn", "step": "step", "parent": "parent", "task": "task",
    "timeoutMs": "timeout_ms", "status": "status", "output": "output", "error": "error", "durationMs": "duration_ms",
    "meta": "meta", "type": "type", "data": "data",
}  # fmt: skip
UNUSED = {"entry": {"kind", "usage"}, "result": {"kind", "session", "usage", "meta"}, "event": {"kind", "entry"}}
"""Fields that detection does not look at: tokens are bookkeeping, and a result repeats what its entry says."""
SAMPLES: dict[str, Any] = {
    "text": "text of {}", "count": 7, "number": 8.5, "json": {"of": "{}"}, "status": "error", "error": {"message": "{}"},
}  # fmt: skip


def _filled(kind: str) -> dict[str, Any]:
    """Return a record in which every field of the schema holds a value of its own."""
    record: dict[str, Any] = {"v": 1}
    for name, field in {**COMMON, **RECORDS[kind]}.items():
        value = SAMPLES[field.holds]
        record[name] = value.format(name) if isinstance(value, str) else value
    return {**record, "kind": kind, "session": "s", "ts": TS}


@pytest.mark.parametrize("kind", ["entry", "result", "event"])
def test_every_field_of_the_schema_is_shown_or_known_to_be_unused(kind: str) -> None:
    """A field that joins the record schema fails here until detection takes it over or leaves it out on purpose."""
    record = _filled(kind)
    if kind == "result":
        opened = {name: value for name, value in _filled("entry").items() if name not in ("status", "output", "error")}
        records = [{**opened, "id": record["entry"], "durationMs": None}, record]
    else:
        records = [record]
    shown = list(session_observations(records))[-1]

    assert shown.kind == ("event" if kind == "event" else "finish")
    for name in {**COMMON, **RECORDS[kind]}.keys() - UNUSED[kind]:
        expected = parse_time(TS) if name == "ts" else record[name]
        assert getattr(shown, "id" if name == "entry" else ATTRIBUTES[name]) == expected, name
