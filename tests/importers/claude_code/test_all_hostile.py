"""Claude Code logs that an enemy, or a bug, wrote: every field may hold anything, and nothing ever raises."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.importers.claude_code import CLAUDE_CODE
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

LOGS = Path(__file__).parents[3] / "fixtures" / "logs" / "claude-code"
(INLINE,) = (LOGS / "live_1.0.37" / "project").glob("*.jsonl")
MAIN = next((LOGS / "live_2.1.330" / "project").glob("a081*.jsonl"))
INTERRUPTED = next((LOGS / "live_2.1.330_interrupt_and_kill" / "project").glob("bbc7*.jsonl"))
FAILED = next((LOGS / "live_2.1.330" / "project").glob("8f68*.jsonl"))
STREAM = LOGS / "live_2.1.330" / "stream_json_stdout.jsonl"
EXTRA: list[dict[str, Any]] = [
    {
        "type": "attachment", "uuid": "x1", "parentUuid": None, "isSidechain": False, "sessionId": "s",
        "attachment": {
            "type": "hook_blocking_error", "toolUseID": "t", "hookName": "h", "blockingError": {"blockingError": "no"},
        },
    },
    {
        "type": "attachment", "uuid": "x2", "parentUuid": "x1", "isSidechain": False, "sessionId": "s",
        "attachment": {"type": "queued_command", "prompt": [{"type": "text", "text": "hi"}], "commandMode": "prompt"},
    },
    {
        "type": "attachment", "uuid": "x3", "parentUuid": "x1", "isSidechain": False, "sessionId": "s",
        "attachment": {"type": "max_turns_reached", "maxTurns": 2, "turnCount": 3},
    },
    {
        "type": "user", "uuid": "x4", "parentUuid": "x1", "isSidechain": False, "sessionId": "s",
        "forkedFrom": {"sessionId": "y"}, "origin": {"kind": "human"}, "permissionDecision": {"decision": "deny"},
        "toolUseResult": {"persistedOutputPath": "/s/tool-results/a.txt", "persistedOutputSize": 3, "agentId": "a"},
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "<persisted-output>"}]},
    },
]  # fmt: skip
ODD: list[Any] = [None, True, 0, -1, 10**400, 1e308, "", "x" * 300, "\ud800\0\u202e", [], [[]], [None, 5, {}], {}, {"type": []}]


def _samples() -> list[dict[str, Any]]:
    """Return the shorter records of the logs: one of each shape is enough."""
    found: dict[str, dict[str, Any]] = {}
    for path in (INLINE, MAIN, INTERRUPTED, FAILED, STREAM):
        for line in path.read_bytes().splitlines():
            record = json.loads(line)
            blocks = sorted(set(re.findall(rb'"type":"[a-z_]+"', line)))
            shape = json.dumps([sorted(record), record.get("type"), record.get("subtype"), repr(blocks)])
            if len(line) < 3_000:
                found.setdefault(shape, record)
    return [*found.values(), *EXTRA]


def _places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value inside a JSON value."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str | int, object]", value).items())
    elif isinstance(value, list):
        inner = list(enumerate(cast("list[object]", value)))
    for key, item in inner:
        yield (*path, key)
        yield from _places(item, (*path, key))


def _changed(record: dict[str, Any], path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """Return the record with another value at a place."""
    changed: Any = copy.deepcopy(record)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return changed


def _read(lines: list[bytes], folder: Path) -> tuple[list[Record], FileCount]:
    path = folder / "log.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    counts: list[FileCount] = []
    importer = CLAUDE_CODE
    importer.sniff(path, path.read_bytes()[: 1 << 16])
    (group,) = importer.groups([path])
    records = list(importer.read(group, counts))
    for record in records:
        encode(check(record))
    return records, counts[0]


@pytest.mark.cases(1)
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_a_wrong_value_in_any_field_costs_no_more_than_its_record(odd: Any, tmp_path: Path) -> None:
    """With every field of every kind of record replaced in turn, all records that come out are valid and unique."""
    lines: list[bytes] = []
    for record in _samples():
        lines.append(json.dumps(record).encode())
        for number, path in enumerate(_places(record)):
            changed = _changed(record, path, odd)
            if path != ("uuid",) and "uuid" in changed:
                changed["uuid"] = f"{changed['uuid']}-{number}"
            lines.append(json.dumps(changed).encode())
    records, count = _read(lines, tmp_path)
    keys = [f"{record['kind']} {record.get('id') or record.get('entry')}" for record in records]
    assert len(set(keys)) == len(keys)
    assert (count.records, count.damaged) == (len(lines), [])
    assert count.open >= 0


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_SAMPLES = _samples()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_values_never_raise(tmp_path: Path, data: st.DataObject) -> None:
    """Any JSON at any places of a few records gives valid records or none, never an exception."""
    lines: list[bytes] = []
    for record in data.draw(st.lists(st.sampled_from(_SAMPLES), min_size=1, max_size=6)):
        changed = record
        for _ in range(data.draw(st.integers(0, 3))):
            places = list(_places(changed))
            if places:
                changed = _changed(changed, data.draw(st.sampled_from(places)), data.draw(_json))
        lines.append(json.dumps(changed).encode())
    _read(lines, tmp_path)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_damage_never_raises_and_makes_nothing_up(tmp_path: Path, data: st.DataObject) -> None:
    """With a part of a log overwritten, every record that is read stands in the whole log."""
    whole = INLINE.read_bytes()
    known = {record.get("id") for record in _read(whole.splitlines(), tmp_path)[0]}
    start = data.draw(st.integers(0, len(whole) - 1))
    stop = min(len(whole), start + data.draw(st.integers(1, 4_000)))
    fill = b"\0" * (stop - start) if data.draw(st.booleans()) else b"\n"
    records, count = _read([whole[:start] + fill + whole[stop:]], tmp_path)
    assert {record.get("id") for record in records if record.get("type") != "usage"} <= known
    assert count.damaged or b"\n" in whole[max(0, start - 1) : stop + 1]
