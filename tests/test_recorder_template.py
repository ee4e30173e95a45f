"""What is put together from kept texts is, byte for byte and row for row, what the long way would have written."""

from __future__ import annotations

import enum
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import CtxmgrError
from ctxmgr.log import ids
from ctxmgr.log.journal import Journal
from ctxmgr.recorder import Recorder, Sink
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.store.recorder_sink import StoreSink

SECRET = "ghp_" + "a1B2" * 9
MADE = "01a20304-519b-776d-9e0a-4945be0aaaa1"


class _Status(str, enum.Enum):  # noqa: UP042 -- its text is not its value
    OK = "ok"


class _Text(str):
    __slots__ = ()


VALUES: list[Any] = [
    None, "", "x", 1, True, 1.5, 2**70, 10**4000, float("nan"), float("inf"), "ä\n\x7f", "\ud83d\ude00", "\ud800", SECRET,
    f"password={SECRET}", {"a": 1}, {"password": "hunter22x"}, {"a": 10**4000}, {"a": True, "b": None}, {1: "a"}, {True: "a"},
    {None: 1}, {_Text("a"): _Text("b")}, {"a": {"b": [1, {"c": SECRET}]}}, [1, "a"], (1, 2), {1, 2}, _Status.OK, Decimal("1.5"),
    {"a": "\ud83d\ude00"}, {"usage": {"inputTokens": 3}}, Path("a"), b"\xff", "[" * 300, {"a": "x" * 5_000},
]  # fmt: skip


def _record(sink: Sink, session: str, monkeypatch: pytest.MonkeyPatch, *, long: bool) -> None:
    """Record every value as an input and an output, with ids and times that are always the same."""
    made = (f"{number:08x}-0000-7000-8000-{number:012x}" for number in range(10_000))
    monkeypatch.setattr(ids, "now", lambda: "2026-01-22T10:00:00.123456Z")
    monkeypatch.setattr(ids, "new_id", lambda: next(made))
    monkeypatch.setattr(ids, "new_id_and_time", lambda: (next(made), ids.now()))
    recorder = Recorder(sink, session=session, process="p1", agent="coder")
    assert recorder._template is not None  # pyright: ignore[reportPrivateUsage]
    if long:
        recorder._template = None  # pyright: ignore[reportPrivateUsage]
    for number, value in enumerate(VALUES):
        entry = recorder.entry(None, "edit" if number % 2 else SECRET, value)
        status: Any = ("ok", "error", "denied", "interrupted", _Status.OK, "odd")[number % 6]
        took: Any = (None, 1, 12.5, float("nan"), True)[number // 6 % 5]
        try:
            recorder.result(entry, status, output=value, duration_ms=took)
        except CtxmgrError as error:  # what one way refuses the other refuses too
            recorder.event("refused", str(error), entry=entry)
    for entry in (MADE, MADE.upper(), "e1", "key-" + "0a" * 16, "ä" * 36, SECRET[:36]):
        recorder.register_entry(entry)
        recorder.result(entry, output="done")
    recorder.end()


@pytest.mark.parametrize("session", ["s", MADE, SECRET, "password=hunter22x", "ä\ud83d\ude00"])
@pytest.mark.parametrize("mask", [True, False])
def test_both_ways_write_the_same_into_a_log(tmp_path: Path, session: str, mask: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log is the same whether its entries and results are put together from kept texts or encoded whole."""
    logs = [tmp_path / "short.jsonl", tmp_path / "long.jsonl"]
    for log, long in zip(logs, (False, True), strict=True):
        with Journal(log, mask=mask) as journal:
            _record(journal, session, monkeypatch, long=long)

    assert logs[0].read_bytes() == logs[1].read_bytes()
    assert mask == (SECRET.encode() not in logs[0].read_bytes())


@pytest.mark.cases(1)
@pytest.mark.parametrize("session", ["s", MADE, SECRET, "ä\ud83d\ude00"])
@pytest.mark.parametrize("mask", [True, False])
def test_both_ways_write_the_same_rows(tmp_path: Path, session: str, mask: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database has the same rows whether its entries and results are put together from kept texts or encoded whole."""
    rows: list[dict[str, Any]] = []
    for name, long in (("short.db", False), ("long.db", True)):
        sink = StoreSink(str(tmp_path / name), "process", mask)
        _record(sink, session, monkeypatch, long=long)
        sink.close()
        engine = SqliteEngine(str(tmp_path / name), readonly=True)
        tables = [str(row[0]) for row in engine.query("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows.append({table: engine.query(f"SELECT * FROM {table}") for table in tables if not table.startswith("_")})
        engine.close()

    assert rows[0] == rows[1]
    assert len(rows[0]["entry"]) == len(VALUES)


def test_an_object_around_a_sink_sees_every_record(tmp_path: Path) -> None:
    """What an object passes on to a sink without knowing it does not lead past its own append."""

    class Around:
        def __init__(self, inner: Journal) -> None:
            self.inner, self.kinds = inner, list[str]()

        def append(self, records: Any) -> object:
            self.kinds += [record["kind"] for record in records]
            return self.inner.append(records)

        def close(self) -> None:
            self.inner.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    around = Around(Journal(tmp_path / "a.jsonl"))
    recorder = Recorder(around, session="s")
    recorder.result(recorder.entry("coder", "edit", "x"))

    assert around.kinds == ["session", "entry", "result"]
