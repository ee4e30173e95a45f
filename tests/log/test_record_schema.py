"""One table says what the records of format 1 hold; whatever spells a record again agrees with it (design section 4)."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.history.live.bus import ActionFinished, ActionStarted, EventBus
from ctxmgr.history.query import tools
from ctxmgr.log.codec import decode
from ctxmgr.log.record_schema import COMMON, OUTCOMES, RECORDS, STATUSES, Field
from ctxmgr.recorder import Details, Recorder
from ctxmgr.store import Store
from ctxmgr.store.repositories.queries import Rows
from ctxmgr.store.write.log_parser import Plain
from ctxmgr.types.finding import Observation
from ctxmgr.types.goal import ResultStatus
from ctxmgr.types.query import ListRequest
from ctxmgr.types.record import is_plain
from ctxmgr.types.record_models import MODELS
from ctxmgr.types.view import EntryView, EventView


def _snake(name: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)


FIELDS = {kind: {**COMMON, **own} for kind, own in RECORDS.items()}
RIGHT: Mapping[str, st.SearchStrategy[Any]] = {
    "text": st.text("ab\ud800é", max_size=3), "texts": st.lists(st.text("ab", max_size=2), max_size=2),
    "count": st.one_of(st.text("ab", max_size=2), st.integers()), "number": st.floats(allow_nan=False), "json": st.none(),
    "status": st.sampled_from([*STATUSES, "open"]), "outcome": st.sampled_from([*OUTCOMES, "gone"]),
    "error": st.sampled_from([None, {}, {"message": "m"}, {"type": 1}, "text"]),
}  # fmt: skip
WRONG: st.SearchStrategy[Any] = st.sampled_from([None, "", 0, True, 1.5, [], ["a"], [1], {}, "\ud800", 2**70])


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    """Return a record of some kind, in which anything may be missing, odd or too much."""
    kind = draw(st.sampled_from(sorted(RECORDS)))
    record: dict[str, Any] = {"v": draw(st.sampled_from([1, 1, 1, 1, 2, True, "1"])), "kind": kind}
    for name, field in FIELDS[kind].items():
        if name != "kind" and draw(st.integers(0, 9)) > (0 if field.required else 4):
            record[name] = draw(RIGHT[field.holds] if draw(st.integers(0, 9)) else WRONG)
    return record


@settings(suppress_health_check=[HealthCheck.filter_too_much])
@given(records())
def test_the_quick_check_takes_nothing_that_the_models_refuse(record: dict[str, Any]) -> None:
    """What is plainly in order is in order."""
    assume(is_plain(record))
    assert MODELS[record["kind"]].model_validate(record) is not None


@given(records())
def test_what_the_models_refuse_breaks_the_table(record: dict[str, Any]) -> None:
    """A refused record lacks what the table demands, or holds something of another type."""
    try:
        MODELS[record["kind"]].model_validate(record)
    except ValidationError as error:
        fields = FIELDS[record["kind"]]
        for fault in error.errors():
            name = str(fault["loc"][0])
            assert name == "v" or (name in record if fault["type"] != "missing" else fields[name].required), fault


def test_statuses_are_the_same_everywhere() -> None:
    """The words of a status stand in the table, and typed code names the same."""
    assert set(get_args(ResultStatus)) == set(STATUSES)


def test_the_quick_reader_of_logs_knows_every_field() -> None:
    """The struct that reads long logs has each field of entries, results and events, and no other."""
    known = {name for kind in ("entry", "result", "event") for name in FIELDS[kind]}

    assert set(Plain.__struct_fields__) == known | {"v", "sum"}


def test_views_show_every_field() -> None:
    """An entry's view has the fields of an entry and of its result; an event's view has those of an event."""
    shown = {field.alias for field in EntryView.model_fields.values()}
    of_result = {name for name in RECORDS["result"] if name != "entry"}

    assert shown == {*FIELDS["entry"], *of_result, "index", "notes", "events", "missing"}
    events = {field.alias for field in EventView.model_fields.values()}
    assert events >= set(FIELDS["event"])


def test_columns_are_fields(store: Store) -> None:
    """What the tables of entries and events hold beside places are fields of the records."""
    own = {"seq", "session", "idx", "result", "after", "ts"}
    for table in ("entry", "event"):
        columns = {str(row[0]) for row in store.engine.query("SELECT name FROM pragma_table_info(:table)", {"table": table})}
        fields = {_snake(name) for name in FIELDS[table]}

        assert columns - own <= fields, table


def test_records_are_written_in_the_order_of_the_table(tmp_path: Path) -> None:
    """The recorder writes the fields of an entry and of a result in the order in which the table names them."""
    log = tmp_path / "run.jsonl"
    with Recorder(str(log), session="s") as recorder:
        first = recorder.entry("coder", "Bash", {"command": "ls"}, turn=1, step="a", task="t")
        recorder.result(first, output="x", duration_ms=5.0)
        recorder.result(recorder.entry("coder", "Bash"), error=ValueError("no"))

    written = [decode(line) for line in log.read_bytes().splitlines()]
    assert [record["kind"] for record in written] == ["session", "entry", "result", "entry", "result", "sessionEnd"]
    for record in written:
        order = ["v", *FIELDS[record["kind"]], "sum"]
        places = [order.index(name) for name in record]
        assert places == sorted(places), record


GIVEN = {_snake(name) for name in RECORDS["entry"].keys() - RECORDS["result"].keys()} - {"id", "process"} | {"meta"}
"""What a caller says of an action; the recorder adds the rest."""


def test_callers_can_give_every_field_of_an_entry() -> None:
    """The recorder's parameters, the typed details and the event of the bus name the fields of an entry, and no other."""
    parameters = set(inspect.signature(Recorder.entry).parameters) - {"self"}
    started = {field.name for field in fields(ActionStarted)} - {"id"}

    assert parameters == GIVEN
    assert {"agent", "action", *get_type_hints(Details)} == GIVEN
    assert started == GIVEN


def test_callers_can_give_every_field_of_a_result() -> None:
    """The recorder's parameters and the event of the bus name the fields of a result; its meta is an importer's alone."""
    fields_of_result = {_snake(name) for name in RECORDS["result"]} - {"meta"}
    finished = {field.name for field in fields(ActionFinished)}

    assert set(inspect.signature(Recorder.result).parameters) - {"self"} == fields_of_result
    assert finished - {"id"} == fields_of_result - {"entry"}


SAMPLES: Mapping[str, Any] = {
    "text": "words", "count": 7, "number": 5.0, "json": {"a": [1]}, "status": "error", "error": {"type": "T", "message": "m"}
}  # fmt: skip
"""A value for each type of a field."""


def _samples(kind: str, but: set[str]) -> dict[str, Any]:
    """Return a value for each field of a kind, by the name of the wire."""
    return {name: SAMPLES[field.holds] for name, field in RECORDS[kind].items() if name not in but}


def test_every_field_that_is_given_is_recorded(tmp_path: Path) -> None:
    """What a caller or a publisher says of an action and of its result stands in the records."""
    of_entry = _samples("entry", RECORDS["result"].keys() - {"meta"} | {"id", "process"})
    of_result = _samples("result", {"entry", "meta"})
    started, finished = ({_snake(name): value for name, value in each.items()} for each in (of_entry, of_result))
    called, published, bus = tmp_path / "called.jsonl", tmp_path / "published.jsonl", EventBus()
    with Recorder(str(called), session="s") as recorder:
        recorder.result(recorder.entry(**started), **finished)
    with BlackboardHistory(bus, published, session="s"):
        bus.publish(ActionStarted("1", **started))
        bus.publish(ActionFinished("1", **finished))

    for log in (called, published):
        records = [decode(line) for line in log.read_bytes().splitlines()]
        (entry,) = [record for record in records if record["kind"] == "entry"]
        (result,) = [record for record in records if record["kind"] == "result"]
        assert {name: entry.get(name) for name in of_entry} == of_entry, log.name
        assert {name: result.get(name) for name in of_result} == of_result, log.name


def test_the_pages_name_every_field() -> None:
    """The page of the format has each field of each kind, the page of answers what the view of an entry shows."""
    format_page, answers = (
        (Path(__file__).parents[2] / "docs" / name).read_text(encoding="utf-8") for name in ("format.md", "json.md")
    )
    for kind, own in RECORDS.items():
        (row,) = [line for line in format_page.splitlines() if line.startswith(f"| `{kind}` |")]
        rest = "" if kind != "entry" else format_page  # a finished action carries the fields of its result
        assert [name for name in own if f"`{name}`" not in row + rest and f"`{name}?`" not in row + rest] == [], kind
    listed = answers.partition("## An entry")[2].partition("## ")[0]
    assert [name for field in EntryView.model_fields.values() if f"`{(name := field.alias or '')}`" not in listed] == []


def test_detectors_are_shown_every_field() -> None:
    """An observation has each field of an entry and its result but the usage, by the name that Python gives it."""
    shown = {field.name for field in fields(Observation)}

    assert {_snake(name) for name in (RECORDS["entry"] | RECORDS["result"]).keys() - {"usage", "entry"}} <= shown


def test_rows_are_mapped_in_the_order_of_the_view(store: Store) -> None:
    """The keys of a row that is answered without models stand in the order of the fields of its view."""
    entry = {"v": 1, "kind": "entry", "session": "s", "id": "e", "agent": "a", "action": "Bash"}
    store.append([entry, {"v": 1, "kind": "event", "session": "s", "id": "m", "type": "message"}])
    rows = tools.list_(store, Rows(store.engine), ListRequest(session="s", kind="all")).rows

    assert [row["kind"] for row in rows] == ["entry", "event"]
    for row, view in zip(rows, (EntryView, EventView), strict=True):
        assert list(row) == [field.alias for field in view.model_fields.values()]


def test_the_table_is_whole() -> None:
    """Every kind has its fields, and what must not be empty is a text."""
    assert all(isinstance(field, Field) for fields in FIELDS.values() for field in fields.values())
    assert {field.holds for fields in FIELDS.values() for field in fields.values() if field.filled} == {"text"}
