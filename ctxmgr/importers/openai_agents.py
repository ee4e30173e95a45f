"""The OpenAI Agents SDK: its sessions (a SQLite database with one row per item of the Responses API) and its traces.

A trace consists of the outputs of ``span.export()``: one object per trace and per span, written when the span ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, OpenTables, TableImporter, Tables
from ctxmgr.importers.chat import read_item
from ctxmgr.importers.otlp import SpanReader
from ctxmgr.importers.values import Span, integer, mapping, moment, parse_json, sequence, text
from ctxmgr.log.ids import parse_time


def _proves(columns: Mapping[str, Sequence[str]]) -> bool:
    required = {"agent_sessions": {"session_id"}, "agent_messages": {"session_id", "message_data"}}
    return all(names <= set(columns.get(table, ())) for table, names in required.items())


def _read(log: Log, tables: Tables) -> Iterator[None]:
    for row in tables.rows("agent_sessions", ("session_id", "created_at"), ("created_at", "session_id")):
        t = log.session(row["session_id"])
        t.describe(started=row.get("created_at"))
        where, response = {"session_id": row["session_id"]}, 0
        for item in tables.rows("agent_messages", ("id", "message_data", "created_at"), ("id",), where):
            log.count.records += 1
            t.place = str(item.get("id"))
            response = read_item(t, mapping(parse_json(item.get("message_data"))), item.get("created_at"), response)
        yield


def openai_agents(open_tables: OpenTables) -> TableImporter:
    """Return the importer for the sessions of the SDK's ``SQLiteSession``."""
    return TableImporter(
        name="openai-agents",
        title="OpenAI Agents SDK sessions",
        open_tables=open_tables,
        proves=_proves,
        reader=_read,
        coverage=Coverage(usage=False, sub_agents=False),
    )


def _proves_trace(value: dict[str, Any]) -> bool:
    value = next(map(mapping, sequence(value.get("data"))), value)
    kind, own = text(value.get("object")), text(value.get("id")) or ""
    return (kind == "trace.span" and "span_data" in value) or (kind == "trace" and own.startswith("trace_"))


class _TraceReader:
    """Reads a trace as spans for `SpanReader`.

    A span is written when it ends, its turn later, and the agent's own span at the very end. A grown log must yield the same
    records again, so the spans of a turn are read only when the turn names its agent. The current turn has the agent of the
    previous turn, or the one to which that turn handed over.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._groups: dict[str, str] = {}
        self._traces: dict[str, list[_Step]] = {}
        self._count = 0

    def read(self, value: dict[str, Any]) -> None:
        # The SDK's own exporter sends batches as {"data": [...]}. Custom processors write one object per line.
        for item in [mapping(item) for item in sequence(value.get("data"))] or [value]:
            if item.get("object") == "trace":
                self._groups[text(item.get("id")) or ""] = text(item.get("group_id")) or ""
            elif item.get("object") == "trace.span":
                self._count += 1
                data, trace = mapping(item.get("span_data")), text(item.get("trace_id")) or ""
                session = self._groups.get(trace) or trace
                self._traces.setdefault(trace, []).append(_Step(item, data, self._count, session))
            else:
                self._log.unknown(item.get("object"))

    def finish(self) -> None:
        """Pass all spans with a known agent on."""
        spans = SpanReader(self._log)
        for steps in self._traces.values():
            _count_turns(steps)
            agents = {step.own: step.agent for step in steps if step.agent}
            for step in _settled_steps([step for step in steps if step.attributes], agents):
                if agent := step.agent or agents.get(step.parent):
                    spans.add(step.span(agent))
        spans.finish()


class _Step:
    """A span of a trace. Calls, model calls and handoffs have attributes. A turn names its agent, and may count tokens."""

    def __init__(self, value: dict[str, Any], data: dict[str, Any], order: int, session: str) -> None:
        own, error = mapping(data.get("data")), mapping(value.get("error"))
        self.kind = text(own.get("sdk_span_type")) or text(data.get("type")) or ""
        self.own, self.parent = text(value.get("id")) or f"span {order}", text(value.get("parent_id")) or ""
        self.agent = text(own.get("agent_name") if self.kind == "turn" else data.get("name") if self.kind == "agent" else None)
        self.target = text(data.get("to_agent"))
        self.used = _tokens(mapping(own.get("usage") or data.get("usage")))
        self.attributes = self._attributes(data)
        self.error = text(mapping(error.get("data")).get("error")) or text(error.get("message"))
        self._failed, self._order, self._session = bool(error), order, session
        self._trace = text(value.get("trace_id")) or ""
        self._times = _nanoseconds(value.get("started_at")), _nanoseconds(value.get("ended_at"))

    def _attributes(self, data: dict[str, Any]) -> dict[str, Any]:
        if self.kind == "function":
            return {
                "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": data.get("name"),
                "gen_ai.tool.call.arguments": data.get("input"), "gen_ai.tool.call.result": data.get("output"),
            }  # fmt: skip
        if self.kind == "handoff":
            return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"handoff to {self.target}"}
        if self.kind in ("generation", "response"):
            return {
                "gen_ai.operation.name": "chat", "gen_ai.response.model": data.get("model"),
                "gen_ai.input.messages": data.get("input"), "gen_ai.output.messages": data.get("output"), **self.used,
            }  # fmt: skip
        return {}

    def span(self, agent: str) -> Span:
        """Return the step as a span of an agent, without its parent, which comes too late to be used."""
        about = {"session.id": self._session, "gen_ai.agent.name": agent, **self.attributes}
        return Span(
            self._order, self.kind, self._trace, self.own, "", *self._times, about, self._failed, self.error,
        )  # fmt: skip


def _settled_steps(steps: list[_Step], agents: dict[str, str]) -> list[_Step]:
    """Return the steps up to the current turn, and those after it if its agent can be derived; ``agents`` gets this agent."""
    first = next((place for place, step in enumerate(steps) if not (step.agent or step.parent in agents)), len(steps))
    known = [step for step in steps[:first] if not step.agent]
    if first == len(steps) or not known or steps[first].kind not in ("generation", "response"):
        return steps[:first]
    turn = known[-1].parent
    handed = [step.target for step in known if step.parent == turn and step.target]
    agents[steps[first].parent] = handed[-1] if handed else agents[turn]
    return steps


def _count_turns(steps: list[_Step]) -> None:
    """Count the tokens of a turn if none of its model calls does, without those of the runs inside its calls."""
    counted = {step.parent for step in steps if step.kind in ("generation", "response") and any(step.used.values())}
    turn_of = {step.own: step.parent for step in steps if step.kind == "function"}
    for turn in steps:
        if turn.kind == "turn" and turn.own not in counted and any(turn.used.values()):
            within = [task.used for task in steps if task.kind == "task" and turn_of.get(task.parent) == turn.own]
            left = {
                name: (integer(used) or 0) - sum(integer(task[name]) or 0 for task in within)
                for name, used in turn.used.items()
            }
            turn.attributes = {"gen_ai.operation.name": "chat", **left}


_USED = {
    "gen_ai.usage.input_tokens": "input_tokens",
    "gen_ai.usage.output_tokens": "output_tokens",
    "gen_ai.usage.cache_read.input_tokens": "cached_input_tokens",
}


def _tokens(used: dict[str, Any]) -> dict[str, Any]:
    cached = mapping(used.get("input_tokens_details")).get("cached_tokens")
    return {name: used.get(own, cached if own == "cached_input_tokens" else None) for name, own in _USED.items()}


def _nanoseconds(at: object) -> int:
    seconds = parse_time(moment(at) or "")
    # Via microseconds, because a float of nanoseconds since 1970 has too few digits.
    return 0 if seconds is None else round(seconds * 1e6) * 1000


OPENAI_AGENTS_TRACES = JsonImporter(
    name="openai-agents-traces",
    title="OpenAI Agents SDK traces",
    proves=_proves_trace,
    reader=_TraceReader,
    coverage=Coverage(),
    lists=("data",),
)
