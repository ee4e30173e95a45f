"""Spans that stand above each other: whose agent's they are, and which call started it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.base import Log
from ctxmgr.importers.otlp import SpanReader
from ctxmgr.types.import_report import FileCount
from tests.growth import grows_linearly

FILE = Path("a.jsonl")
AT = 1_700_000_000_000_000_000


def _span(own: int, parent: int, agent: str = "", operation: str = "execute_tool", start: int = 0) -> dict[str, Any]:
    about = {"gen_ai.operation.name": operation, "gen_ai.tool.name": "t", **({"gen_ai.agent.name": agent} if agent else {})}
    return {
        "traceId": "t", "spanId": str(own), "parentSpanId": str(parent), "name": "x",
        "startTimeUnixNano": AT + start, "endTimeUnixNano": AT + start + 1,
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in about.items()],
    }  # fmt: skip


def _records(spans: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    log = Log("otlp", FILE, FileCount(FILE))
    reader = SpanReader(log)
    reader.read({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]})
    reader.finish()
    return log.take(final=True)


def test_a_span_is_of_the_nearest_agent_above_it() -> None:
    """Tool calls state no agent of their own; what came before its parent is told by it, too."""
    spans = [_span(5, 4), _span(4, 3, start=5), _span(3, 2, "worker", "invoke_agent"), _span(2, 1), _span(1, 0, "boss", "chat")]
    entries = {record["id"]: record for record in _records(spans) if record["kind"] == "entry"}

    assert sorted(entry["agent"] for entry in entries.values()) == ["boss", "worker", "worker"]


@pytest.mark.cases(1)
@pytest.mark.parametrize("agents", [("",), ("a",), ("a", "b")])
@pytest.mark.parametrize("operation", ["execute_tool", "invoke_agent", "chat"])
@pytest.mark.parametrize("later_first", [True, False])
def test_a_chain_of_spans_costs_linear_time(agents: tuple[str, ...], operation: str, later_first: bool) -> None:
    """A hostile trace nests thousands of spans; `ctxmgr receive` is sent such."""

    def work(size: int) -> None:
        _records(_span(n, n - 1, agents[n % len(agents)], operation, -n if later_first else n) for n in range(1, size))

    assert grows_linearly(work, 400)


@pytest.mark.cases(1)
@pytest.mark.parametrize("turned", [True, False])
def test_agents_that_start_each_other_are_no_recursion(turned: bool) -> None:
    """Thousands of agents each started by the one before it, or two in a circle."""
    count = 3_000
    chain = [_span(n, n - 1, f"agent {n}", start=-n if turned else n) for n in range(1, count)]
    assert sum(record["kind"] == "entry" for record in _records(chain)) == count - 1
    circle = [_span(9, 0, "first", start=-1), _span(1, 2, "a"), _span(2, 1, "b")]
    assert sum(record["kind"] == "entry" for record in _records(circle)) == 3
