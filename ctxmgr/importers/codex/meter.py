"""Tell from running totals what each model response cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxmgr.importers.codex.thread import Item, Thread
from ctxmgr.importers.values import mapping, whole

_TOKENS = (
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cachedInputTokens", "cached_input_tokens"),
    ("reasoningTokens", "reasoning_output_tokens"),
)

_DECIDING = frozenset(("inputTokens", "outputTokens"))
"""A usage object without these two is none."""

Tokens = dict[str, int]


def _tokens(value: object) -> Tokens | None:
    """Return the four counts of a usage object, or None when it holds none."""
    body = mapping(value)
    if not body:
        return None
    found: dict[str, int] = {}
    told = False
    for name, key in _TOKENS:
        count = whole(body.get(key))
        found[name] = count if count and count > 0 else 0
        told = told or (count is not None and name in _DECIDING)
    return found if told else None


@dataclass(slots=True)
class Meter:
    """Turns cumulative totals, which logs repeat, into what each response added.

    Both kinds of record carry the thread's running total, so a total that did not change is a repeat, whichever kind it
    comes from. A fork goes on from its parent's total; that part is not counted again.
    """

    thread: Thread
    total: Tokens | None = None

    def token_count(self, item: Item) -> None:
        """Read an ``event_msg`` of type ``token_count``."""
        info = mapping(item.payload.get("info"))
        total = _tokens(info.get("total_token_usage"))
        if total is not None and total == self.total:
            return
        last: object = info.get("last_token_usage")
        if total is None and info.get("total_token_usage") is None and (found := _tokens(last)) is not None:
            total = _sum(self.total, found)
        self._advance(item, total, last, trusted=False)

    def usage_record(self, item: Item) -> None:
        """Read a ``token_usage_record``, which belongs to exactly one response."""
        usage: object = item.payload.get("usage")
        total = _tokens(item.payload.get("thread_token_usage"))
        if total is None and (found := _tokens(usage)) is not None:
            total = _sum(self.total, found)
        self._advance(item, total, usage, trusted=True)

    def turn_total(self, item: Item, usage: object) -> None:
        """Read the usage of ``turn.completed``: the running total at the end of a turn."""
        self._advance(item, _tokens(usage), None, trusted=False)

    def _advance(self, item: Item, total: Tokens | None, last: object, trusted: bool) -> None:
        if total is None or total == self.total:
            return
        before, self.total = self.total, total
        thread = self.thread
        thread.mark(reliable=True)
        thread.count.usage.clear()
        thread.count.usage.update(total)
        if thread.copied:
            return
        added = self._added(before, total, last, trusted)
        if not any(added.values()):
            return
        thread.count.responses += 1
        data: dict[str, Any] = {
            **added, "totalInputTokens": total["inputTokens"], "totalOutputTokens": total["outputTokens"],
        }  # fmt: skip
        if thread.model is not None:
            data["model"] = thread.model
        thread.event("usage", data, item.at)

    def _added(self, before: Tokens | None, total: Tokens, last: object, trusted: bool) -> Tokens:
        if trusted or (before is None and self.thread.head.forked_from is not None):
            stated = _tokens(last)
            if stated is not None:
                return stated
        if before is None:
            return total
        added = {name: count - before[name] for name, count in total.items()}
        return added if min(added.values()) >= 0 else _tokens(last) or total


def _sum(first: Tokens | None, second: Tokens) -> Tokens:
    return {name: count + (first or {}).get(name, 0) for name, count in second.items()}
