"""What passes a tap is put together again and recorded: pieces, gaps, waits for a permission, and odd messages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.config import Config
from ctxmgr.errors import Busy, CtxmgrError, InvalidInput
from ctxmgr.live import tap_recorder
from ctxmgr.live.tap import FROM_CLIENT
from ctxmgr.live.tap_recorder import AGENT, CLIENT, AcpReader, Lines, TapRecorder
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from tests.live.scene import messages


def test_pieces_that_were_left_out_break_their_messages_off() -> None:
    """What follows a gap is read from the next line on; a line without an end is given up."""
    lines = Lines()
    assert list(lines.take(b'{"a": 1}\n{"b"')) == [{"a": 1}]
    lines.break_off()
    assert list(lines.take(b': 2}\n{"c": 3}\nx\n')) == [{"c": 3}]
    assert lines.odd == 2


def _recorder(folder: Path, clock: Callable[[], float], told: list[str]) -> TapRecorder:
    return TapRecorder(open_store(str(folder / "h.db"), create=True), Config(), None, told.append, clock)


def test_a_wait_for_a_permission_is_no_hang(tmp_path: Path) -> None:
    """An hour before a person allows it is no stall; an hour after that is one."""
    moment, told = [time.time()], list[str]()
    recorder = _recorder(tmp_path, lambda: moment[0], told)
    call = {"toolCallId": "c", "kind": "execute", "rawInput": {"command": "x"}}
    asks = {"id": 9, "method": "session/request_permission", "params": {"sessionId": "s", "toolCall": call}}
    said: list[tuple[bytes, dict[str, Any]]] = [
        (b"c", {"id": 1, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}),
        (b"a", asks),
    ]
    for sender, message in said:
        recorder.take(sender, moment[0], json.dumps(message).encode() + b"\n")
    moment[0] += 3600
    recorder.look()
    assert told == []

    answer = json.dumps({"id": 9, "result": {"outcome": {"outcome": "selected"}}}).encode()
    recorder.take(FROM_CLIENT, moment[0], answer + b"\n")
    moment[0] += 3600
    recorder.look()
    assert [line for line in told if "hung" in line]


def test_odd_messages_are_no_fault() -> None:
    """Whatever stands in a message, reading it goes on."""
    reader = AcpReader("p")
    odd: list[Any] = [None, 5, "x", [], {}, {"method": 5}, {"id": [], "method": "session/prompt"}, {"id": 1, "result": None}]
    given: list[Any] = [None, [], {"sessionId": 5}, {"sessionId": "s"}, {"sessionId": "s", "update": {"sessionUpdate": []}}]
    odd += [{"method": "session/update", "params": params} for params in given]
    calls: list[dict[str, Any]] = [{}, {"toolCallId": 5}, {"toolCallId": "b", "status": ["completed"]}]
    for fields in (*calls, {"toolCallId": "c", "content": [None, {"content": 5}], "status": "completed"}):
        odd.append(
            {"method": "session/update", "params": {"sessionId": "t", "update": {"sessionUpdate": "tool_call", **fields}}}
        )
    records = [row for each in odd for sender in (CLIENT, AGENT) for row in reader.read(sender, 1.0, each)]

    assert {row["kind"] for row in records} == {"session", "entry", "result"}


def test_a_line_above_the_limit_is_one_odd_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many pieces it comes in, and if some of them are left out."""
    monkeypatch.setattr(tap_recorder, "_MAX_LINE_BYTES", 10)
    lines = Lines()
    for _ in range(20):
        assert list(lines.take(b"1234567")) == []
    lines.break_off()
    assert list(lines.take(b'8\n{"a": 1}\n')) == [{"a": 1}]
    assert lines.odd == 1


class _RefusingStore:
    """A store that refuses a batch and its first record for good, and the second once."""

    def __init__(self) -> None:
        self.kept: list[Record] = []
        self._answers: list[CtxmgrError] = [InvalidInput("odd"), InvalidInput("odd"), Busy("held")]

    def append(self, records: list[Record], *, on_conflict: str) -> None:
        """Refuse as long as there is an error for it, else keep."""
        assert on_conflict == "keep"
        if self._answers:
            raise self._answers.pop(0)
        self.kept += records


def test_a_store_that_is_locked_amid_a_bad_batch_gets_the_rest_later() -> None:
    """Only the record that can't be stored is lost; the others wait for the lock to end."""
    store = _RefusingStore()
    recorder = TapRecorder(cast("Store", store), Config(), None, list[str]().append)
    recorder.take(FROM_CLIENT, time.time(), b"".join(messages("one", "two", "three")))
    recorder.look()
    assert (store.kept, recorder.lost) == ([], 1)
    recorder.look()
    assert len(store.kept) >= 3
    assert recorder.lost == 1
