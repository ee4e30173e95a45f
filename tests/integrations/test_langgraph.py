"""The guard of LangGraph, by exceptions that are named as LangGraph's own: what it raises to go on is no failure."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ctxmgr.integrations.langgraph import LangGraphGuard


class GraphBubbleUp(Exception):  # noqa: N818 - LangGraph's own name
    """What LangGraph raises to get out of a node."""


class GraphInterrupt(GraphBubbleUp):
    """It asks a person."""


class ParentCommand(GraphBubbleUp):
    """It goes on in the graph above."""


@pytest.mark.parametrize("kind", [GraphInterrupt, ParentCommand])
@pytest.mark.parametrize("awaited", [False, True])
def test_an_exception_of_the_graph_passes_untouched(kind: type[GraphBubbleUp], awaited: bool, tmp_path: Path) -> None:
    """However often it comes: its arguments are what the graph resumes by."""
    given = ({"question": "May I?"},)
    request = SimpleNamespace(state={"messages": []}, tool_call={"name": "ask", "args": {"a": 1}})

    def execute(_request: Any) -> Any:
        raise kind(given)

    async def execute_async(_request: Any) -> Any:
        raise kind(given)

    path = tmp_path / "run.jsonl"
    with LangGraphGuard(path) as guard:
        for _ in range(6):
            with pytest.raises(kind) as raised:
                asyncio.run(guard.awrap_tool_call(request, execute_async)) if awaited else guard.wrap_tool_call(
                    request, execute
                )
            assert raised.value.args == (given,)
        assert guard.told == []
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    status = "interrupted" if kind is GraphInterrupt else "ok"
    assert [row["status"] for row in records if row["kind"] == "result"] == [status] * 6
    waits = [row["data"]["reason"] for row in records if row.get("type") == "waiting"]
    assert waits == (["GraphInterrupt"] * 6 if kind is GraphInterrupt else [])
