"""Messages of the Agent Client Protocol are put together from pieces and read: gaps, long lines and odd messages included."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.live import acp_reader
from ctxmgr.live.acp_reader import AGENT, CLIENT, AcpReader, MessageLines


def test_pieces_that_were_left_out_break_their_messages_off() -> None:
    """What follows a gap is read from the next line on; a line without an end is given up."""
    lines = MessageLines()
    assert list(lines.take(b'{"a": 1}\n{"b"')) == [{"a": 1}]
    lines.skip_line()
    assert list(lines.take(b': 2}\n{"c": 3}\nx\n')) == [{"c": 3}]
    assert lines.invalid == 2


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
    monkeypatch.setattr(acp_reader, "_MAX_LINE_BYTES", 10)
    lines = MessageLines()
    for _ in range(20):
        assert list(lines.take(b"1234567")) == []
    lines.skip_line()
    assert list(lines.take(b'8\n{"a": 1}\n')) == [{"a": 1}]
    assert lines.invalid == 1
