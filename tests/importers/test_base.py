"""The sessions of a log while it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxmgr.history.formats import IMPORTERS
from ctxmgr.importers.base import LISTS, JsonImporter, Log
from ctxmgr.importers.log_files import HEAD_SIZE
from ctxmgr.importers.openai_agents import OPENAI_AGENTS_TRACES
from ctxmgr.importers.transcript import Transcript
from ctxmgr.types.import_report import FileCount

FILE = Path("a.jsonl")
AGENTS = 200


def _log() -> Log:
    log = Log("x", FILE, FileCount(FILE))
    log.turn_to(FILE, log.count)
    return log


def test_a_line_costs_the_same_however_many_agents_the_run_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what got records is asked for them, and all are told in the order of the log."""
    log = _log()
    log.go_to(1)
    log.session("s").user("go")
    told = log.take()
    for number in range(AGENTS):
        log.go_to(2 + number)
        log.session("s", agent=f"a{number}", part=f"s:{number}", parent="e").message("hi")
        told += log.take()
    asked: list[str] = []
    take = Transcript.take

    def counted(self: Transcript, *, final: bool = False) -> tuple[list[int], list[dict[str, object]]]:
        asked.append(self.agent)
        return take(self, final=final)

    monkeypatch.setattr(Transcript, "take", counted)
    log.go_to(1_000)
    log.session("s").message("done")
    told += log.take()

    assert asked == ["main"]
    assert [record.get("agent") for record in told] == [None, "main", *(f"a{n}" for n in range(AGENTS)), "main"]
    assert told[-1]["id"] == "s:1000"


def test_ids_are_made_of_the_line_or_of_a_place_that_a_format_names_below_it() -> None:
    """A place of its own lasts until the log goes on."""
    log = _log()
    log.go_to(1)
    first, other = log.session("s"), log.session("s", agent="b", part="s:b", parent="e")
    first.place = "1.message"
    assert (first.own_id(None), other.own_id(None)) == ("s:1.message", "s:b:1")

    log.go_to(2)
    assert (first.own_id(None), other.own_id(None)) == ("s:2", "s:b:2")


def test_records_wait_for_the_title_of_their_session_and_a_dropped_part_is_asked_no_more() -> None:
    """A part of an agent's waits with the main one; what was dropped is gone from every list."""
    log = _log()
    log.go_to(1)
    main = log.session("s")
    main.message("hello")
    log.session("s", agent="b", part="s:b", parent="e").message("hi")
    assert log.take() == []

    log.go_to(2)
    main.user("the task")
    assert [record["kind"] for record in log.take()] == ["session", "event", "event", "event"]

    log.go_to(3)
    main.message("bye")
    assert log.drop(("s", "s")) is main
    assert log.take() == []


def test_every_list_of_a_format_is_read_of_a_head() -> None:
    """A document longer than its head is recognised only by the lists of which the head is read."""
    lists = {importer.name: set(importer.lists) - set(LISTS) for importer in IMPORTERS if isinstance(importer, JsonImporter)}

    assert {name: lost for name, lost in lists.items() if lost} == {}


def test_a_long_batch_of_the_agents_sdk_is_recognised(tmp_path: Path) -> None:
    """The SDK's exporter sends one object of many spans."""
    span = {
        "object": "trace.span",
        "id": "span_1",
        "trace_id": "trace_1",
        "span_data": {"type": "function", "input": "x" * 500},
    }
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"data": [span] * 250}), encoding="utf-8")

    assert OPENAI_AGENTS_TRACES.sniff(path, path.read_bytes()[:HEAD_SIZE])
