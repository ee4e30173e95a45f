"""Recording exports while they come: in any order, in any number of pieces, twice, and when the store says no."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Busy, InvalidInput
from ctxmgr.importers.otlp import OTLP
from ctxmgr.live.receiver import TelemetryRecorder
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.types.import_report import FileCount

SAMPLES = Path(__file__).parents[2] / "fixtures" / "formats" / "otlp"
LOGS = sorted(SAMPLES.glob("*.jsonl"))
each_log = pytest.mark.parametrize("log", LOGS, ids=[log.name[:24] for log in LOGS])


def pieces(log: Path) -> list[dict[str, Any]]:
    """Return the exports of a file with one span or log record each."""
    found: list[dict[str, Any]] = []
    for line in log.read_text().splitlines():
        for member, scopes, items in (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords")):
            for resource in json.loads(line).get(member, []):
                for scope in resource[scopes]:
                    found += [{member: [{**resource, scopes: [{**scope, items: [item]}]}]} for item in scope[items]]
    return found


def recorded(store: Store, exports: Iterable[dict[str, Any]]) -> list[Record]:
    """Return what the store holds after these exports."""
    recorder = TelemetryRecorder(store)
    for export in exports:
        recorder.take(export)
    return list(store.sessions.records(None))


def told(records: list[Record]) -> tuple[Counter[str], Counter[str]]:
    """Return calls with their results, and what was said, used and waited for."""
    results = {record["entry"]: record for record in records if record["kind"] == "result"}
    calls = [
        json.dumps([record["session"], record["action"], record.get("input"), results.get(record["id"], {}).get("status")])
        for record in records
        if record["kind"] == "entry"
    ]
    events = [json.dumps([r["session"], r["type"], r["data"]], sort_keys=True) for r in records if r["kind"] == "event"]
    return Counter(calls), Counter(events)


def of_file(log: Path) -> tuple[Counter[str], Counter[str]]:
    """Return the same of an import of the whole file."""
    counts: list[FileCount] = []
    return told(list(OTLP.read([log], counts)))


@each_log
def test_pieces_in_their_order_record_what_the_file_holds(log: Path, store: Store) -> None:
    """One span an export, as programs send them when little happens."""
    assert told(recorded(store, pieces(log))) == of_file(log)


@pytest.mark.cases(1)
@each_log
def test_pieces_in_any_order_record_the_same_calls(log: Path, tmp_path: Path) -> None:
    """A call is told of once, whether the model's request or its execution arrives first, and so is each saying."""
    calls, events = of_file(log)
    for seed in range(12):
        exports = pieces(log)
        random.Random(seed).shuffle(exports)
        with closing(open_store(str(tmp_path / f"{seed}.db"), create=True)) as store:
            found, said = told(recorded(store, exports))
        assert _outcomes(found) == _outcomes(calls), seed
        assert _without_session(said) == _without_session(events), seed


def _without_session(events: Counter[str]) -> Counter[str]:
    """Return events as far as order leaves them alone.

    Where a trace names several sessions it is that of the span which came first, and whose words a sub-agent was given is
    known once the call that started it is.
    """
    found: Counter[str] = Counter()
    for event in events.elements():
        _, kind, data = json.loads(event)
        data.pop("origin", None)
        found[json.dumps(["user_message" if kind == "nudge" else kind, data], sort_keys=True)] += 1
    return found


def _outcomes(calls: Counter[str]) -> Counter[tuple[str, str]]:
    """Return names and outcomes: some programs tell the session on the last span alone, and spell an input in two ways."""
    return Counter((json.loads(call)[1], json.loads(call)[3]) for call in calls.elements())


@each_log
def test_a_repeated_export_adds_nothing(log: Path, store: Store) -> None:
    """A program that heard no answer sends again; so does one whose receiver was started anew."""
    once = len(recorded(store, pieces(log)))
    recorder = TelemetryRecorder(store)
    for export in [*pieces(log), *pieces(log)]:
        recorder.take(export)
    assert len(list(store.sessions.records(None))) == once


def test_what_could_not_be_written_is_written_with_the_next_export(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is told to send it again, and then it counts once."""
    exports = pieces(SAMPLES / "codex_logs.jsonl")
    recorder, append = TelemetryRecorder(store), type(store).append

    def busy(*_args: object, **_named: object) -> None:
        raise Busy("another process writes")

    recorder.take(exports[0])
    monkeypatch.setattr(type(store), "append", busy)
    with pytest.raises(Busy):
        recorder.take(exports[1])
    with pytest.raises(Busy):
        recorder.take(exports[2])
    monkeypatch.setattr(type(store), "append", append)
    for export in exports[1:]:
        recorder.take(export)
    assert told(list(store.sessions.records(None))) == of_file(SAMPLES / "codex_logs.jsonl")


def test_what_is_no_export_is_refused(store: Store) -> None:
    """Nothing is recorded of it."""
    recorder = TelemetryRecorder(store)
    values: tuple[dict[str, object], ...] = ({}, {"resourceMetrics": []}, {"resourceSpans": "x"})
    for value in values:
        with pytest.raises(InvalidInput):
            recorder.take(value)
    assert recorder.received.exports == 0


def test_what_is_remembered_has_a_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with the spans that were met; what is forgotten and told again is still known to the store."""
    monkeypatch.setattr("ctxmgr.live.receiver.MOST_REMEMBERED", 5)
    exports = pieces(SAMPLES / "codex_logs.jsonl")
    records = recorded(store, [*exports, *exports])
    calls, _ = told(records)
    assert calls == of_file(SAMPLES / "codex_logs.jsonl")[0]


def test_waiting_for_a_person_is_told_and_a_refusal_is_one(store: Store) -> None:
    """Claude Code's span ``blocked_on_user`` is waiting; where the person said no the call is denied, not failed."""

    def span(own: str, parent: str, name: str, start: int, end: int, **named: object) -> dict[str, Any]:
        values = {"session.id": "s", **named}
        return {
            "traceId": "ab" * 16, "spanId": own * 16, "parentSpanId": parent * 16, "name": f"claude_code.{name}",
            "startTimeUnixNano": str(1795360400 * 10**9 + start * 10**9), "endTimeUnixNano": str((1795360400 + end) * 10**9),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in values.items()],
        }  # fmt: skip

    spans = [
        span("2", "1", "tool.blocked_on_user", 2, 3, decision="reject", source="user_reject"),
        span("1", "0", "tool", 1, 3, tool_name="Bash", tool_use_id="toolu_1", full_command="rm -r build"),
        span("4", "3", "tool.execution", 5, 6, success="false", error="exit 1"),
        span("3", "0", "tool", 4, 6, tool_name="Bash", tool_use_id="toolu_2", full_command="make"),
        span("5", "0", "llm_request", 3, 4, model="m", input_tokens="10", output_tokens="2", request_id="req_1"),
        span("0", "f", "interaction", 0, 9, user_prompt="Clean up."),
    ]
    records = recorded(store, [{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}])
    calls, events = told(records)
    assert sorted(json.loads(call)[1:] for call in calls) == [
        ["Bash", "make", "error"], ["Bash", "rm -r build", "denied"],
    ]  # fmt: skip
    kinds = [json.loads(event)[1] for event in events]
    assert sorted(kinds) == ["usage", "user_message", "waiting"]
