"""Read the output of ``codex exec --json``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ctxmgr.importers.base import Log
from ctxmgr.importers.codex.calls import Calls, Facts, from_facts
from ctxmgr.importers.codex.head import EXEC_ITEMS, EXEC_TYPES
from ctxmgr.importers.codex.thread import Item, Meter, Thread
from ctxmgr.importers.values import clean, mapping, sequence, spoken, text, whole
from ctxmgr.log.codec import fingerprint

_ACTIONS = {"command_execution": "exec_command", "file_change": "apply_patch", "web_search": "web_search"}
_GIVEN = ("command", "changes", "query", "arguments", "prompt", "receiver_thread_ids")


class ExecStream:
    """Reads one captured standard output; `read` takes its objects in order.

    Item ids start at ``item_0`` in every run, so a run is told apart by the fingerprint of its first item,
    and by a number where another run began with the very same one.
    """

    def __init__(self, log: Log, thread: Thread) -> None:
        self._log = log
        self._thread = thread
        self._calls = Calls(thread)
        self._meter = Meter(thread)
        self._seen: set[str] = set()
        self._run: str | None = None
        self._runs: Counter[str] = Counter()

    def read(self, value: dict[str, Any]) -> None:
        """Take the next object."""
        kind = text(value.get("type")) or "untyped"
        item = self._thread.item(self._log.line, value, value, bare=True)
        if kind not in EXEC_TYPES:
            self._log.unknown(kind)
        elif kind == "thread.started":
            self._run = None
            self._seen.clear()
        elif kind == "turn.started":
            self._thread.name_turn(self._thread.own_id())
            self._thread.turn_began()
        elif kind in ("turn.completed", "turn.failed"):
            self._turn_end(item, kind)
        elif kind == "error":
            self._error(item, item.payload)
        else:
            self._item(item, kind, mapping(item.payload.get("item")))

    def _turn_end(self, item: Item, kind: str) -> None:
        self._meter.turn_total(item, item.payload.get("usage"))
        data: dict[str, Any] = {"reason": "completed"}
        if kind == "turn.failed":
            problem = mapping(item.payload.get("error"))
            self._error(item, problem)
            data = {"reason": "failed", "error": clean(problem)}
        self._thread.event("turn_end", data, item.at, f"{self._thread.own_id()}:turn_end")
        self._thread.name_turn(None)

    def _error(self, item: Item, body: dict[str, Any]) -> None:
        message = text(body.get("message")) or "error"
        self._thread.event("error", {"text": message, "message": message}, item.at)

    def _item(self, item: Item, kind: str, body: dict[str, Any]) -> None:
        sort, name = text(body.get("type")) or "untyped", text(body.get("id"))
        thread = self._thread
        if sort not in EXEC_ITEMS:
            self._log.unknown(f"item/{sort}")
            return
        self._run = self._run or self._named(body)
        full = f"{thread.origin}:{self._run}:{name or thread.number}"  # unique among all runs of the thread
        if sort in ("agent_message", "reasoning"):
            if kind == "item.completed":
                self._say(item, sort, spoken(body.get("text")), full)
        elif sort == "error":
            if kind == "item.completed":
                self._error(item, body)
        elif sort == "todo_list":
            self._plan(item, kind, body, full)
        else:
            self._call(item, kind, body, full)

    def _named(self, first: dict[str, Any]) -> str:
        """Return the name of the run that begins with an item."""
        mark = fingerprint(first)[:8]
        self._runs[mark] += 1
        return mark if self._runs[mark] == 1 else f"{mark}-{self._runs[mark]}"

    def _say(self, item: Item, sort: str, words: str, event_id: str) -> None:
        self._thread.spoke(item)
        if sort == "agent_message":
            self._thread.count.messages += 1
            self._thread.event("message", {"text": words}, item.at, event_id)
        else:
            self._thread.count.thoughts += 1
            self._thread.event("thought", {"text": words}, item.at, event_id)

    def _plan(self, item: Item, kind: str, body: dict[str, Any], full: str) -> None:
        """Read a to-do list: each change is one call of the plan tool, its completion only the end of the turn."""
        # `codex exec` completes a to-do list once more when the turn ends, unchanged.
        if kind == "item.completed" and full in self._seen:
            return
        self._seen.add(full)
        entry_id, name = f"{full}:{self._thread.number}", text(body.get("id"))
        self._calls.entry(item, entry_id, (name, "update_plan", "todo_list", clean(body.get("items"))))
        self._calls.result(item, name or entry_id, from_facts(Facts()))

    def _call(self, item: Item, kind: str, body: dict[str, Any], full: str) -> None:
        name = text(body.get("id"))
        if full not in self._seen:
            self._seen.add(full)
            sort = text(body.get("type")) or ""
            names = [text(body.get("server")), text(body.get("tool"))]
            action = _ACTIONS.get(sort) or ".".join(name for name in names if name) or sort
            given = clean({key: body[key] for key in _GIVEN if body.get(key) is not None})
            self._calls.entry(item, full, (name, action, sort, given))
        if kind == "item.completed" and not self._thread.answered(name or full):
            self._thread.output_came()
            self._calls.result(item, name or full, from_facts(_facts(body)))


def _facts(body: dict[str, Any]) -> Facts:
    output = text(body.get("aggregated_output"))
    result = mapping(body.get("result"))
    if output is None and result:
        output = spoken(sequence(result.get("content"))) or None
    error = text(mapping(body.get("error")).get("message")) or text(body.get("error"))
    return Facts(text(body.get("status")), whole(body.get("exit_code")), None, output, error)
