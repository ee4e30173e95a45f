"""The index rows of a log's lines: written in parts that tell how far they are, and gone on with after an interrupt."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.log import codec
from ctxmgr.store import log_rows, log_store, open_store
from ctxmgr.types.query import Filters
from tests.builders import entry
from tests.store.test_log_store import log_of


def test_long_indexing_tells_its_progress(tmp_path: Path) -> None:
    """While an index is built the bytes done and the bytes in all are told, the last time with all done."""
    path = log_of(tmp_path / "h.jsonl", [entry("a", number) for number in range(5_200)])
    told: list[tuple[int, int]] = []

    open_store(str(path), progress=lambda done, total: told.append((done, total))).close()

    size = path.stat().st_size
    assert {total for _, total in told} == {size}
    assert told == sorted(told)
    assert told[0][0] < told[-1][0] <= size


def test_interrupted_indexing_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was indexed before an interrupt is kept; the next opening begins behind it, and the answers are whole."""
    monkeypatch.setattr(log_rows, "_BATCH", 10)
    monkeypatch.setattr(log_store, "_SLICE", 2)
    path = log_of(tmp_path / "h.jsonl", [entry("a", number) for number in range(95)], tail=b'{"v":1,"torn')
    told: list[int] = []

    def interrupt(done: int, total: int) -> None:
        told.append(done)
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_store(str(path), progress=interrupt)
    again: list[int] = []
    store = open_store(str(path), progress=lambda done, _: again.append(done))

    assert told[0] < told[1] < again[0]
    assert again == sorted(again)
    assert store.sessions.entry_count(1) == 95
    assert store.verify()[0] == 95
    assert [item.length for item in store.damage()] == [12]
    store.close()


def test_several_records_on_a_line_are_indexed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a part of the indexing ends within a line, it goes on to the line's end: no line is begun in its middle."""
    monkeypatch.setattr(log_rows, "_BATCH", 1)
    monkeypatch.setattr(log_store, "_SLICE", 1)
    whole = [codec.encode(entry("a", number)) for number in range(6)]
    path = tmp_path / "h.jsonl"
    path.write_bytes(whole[0] + b"\n" + whole[1][:30] + whole[2] + b"\n" + whole[3] + b"\r\n" + whole[4] + b"\n" + whole[5])

    store = open_store(str(path))
    expected = [(item.offset, item.length) for item in store.damage()]

    assert [view.id for view in store.queries.entries(1, Filters(), 0, None)[0]] == [
        f"a-e{number:04}" for number in (0, 2, 3, 4, 5)
    ]
    assert expected == [(len(whole[0]) + 1, 30)]
    store.close()
