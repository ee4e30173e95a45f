"""OpenAI Agents SDK: record calls with the hooks of a run, and add the continuation to the model's input with a filter.

``Runner.run(agent, task, hooks=guard.hooks(), run_config=RunConfig(call_model_input_filter=guard.hand_over))``
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from ctxmgr.integrations.guarded_run import GuardedRun

_FAILED = "An error occurred while running the tool"
"""Prefix of the SDK's text for a tool that raised. The hooks get this text as an ordinary result."""


class OpenAIAgentsGuard(GuardedRun):
    """A `GuardedRun` with the hooks of the OpenAI Agents SDK. Create one for each run.

    The hooks of the SDK see the result of a tool but can't change it. The continuation therefore becomes a user message in the
    model's next input, and keeps its place after the result that it is about.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._open: dict[str, str] = {}
        self._pending: list[str] = []
        self._given: list[tuple[int, str]] = []

    def hooks(self) -> Any:
        """Return the hooks for ``Runner.run``.

        Raises:
            ImportError: the SDK is not installed.
        """
        base: Any = import_module("agents").RunHooks
        guard = self

        class CtxmgrHooks(base):
            """Records each tool call."""

            async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
                guard.started(context, agent, tool)

            async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
                guard.ended(context, tool, result)

        return CtxmgrHooks()

    def started(self, context: Any, agent: Any, tool: Any) -> None:
        """Record the beginning of a tool call."""
        given: Any = getattr(context, "tool_arguments", None)
        if isinstance(given, str):
            with suppress(ValueError):  # arguments that are not JSON are recorded as text
                given = json.loads(given)
        self._open[_key(context, tool)] = self.begin(tool.name, given, agent=agent.name)

    def ended(self, context: Any, tool: Any, result: object) -> None:
        """Record the result of the call.

        Raises:
            AttemptsUsedUp: a person is needed.
        """
        entry = self._open.pop(_key(context, tool), None)
        if entry is None:
            return
        text = result if isinstance(result, str) else None
        failed = text is not None and text.startswith(_FAILED)
        continuation = self.finish(entry, None if failed else result, error=_cause(text) if failed else None)
        if continuation is not None:
            self._pending.append(continuation)

    def hand_over(self, data: Any) -> Any:
        """Return the input of a model call, with each continuation after the items that it is about."""
        items: list[Any] = [*data.model_data.input]
        self.hear([each.get("content") for each in items if each.get("role") == "user"])
        # The SDK does not keep the filter's additions, so every continuation is inserted again before each model call.
        self._given += [(len(items), text) for text in self._pending]
        self._pending.clear()
        # From the last to the first, because an insertion moves the places after it.
        for place, text in reversed(self._given):
            items.insert(min(place, len(items)), {"role": "user", "content": text})
        return replace(data.model_data, input=items)


def _cause(text: str | None) -> str:
    """Return a tool's error without the SDK's words before it."""
    return (text or "").partition("Error: ")[2] or text or ""


def _key(context: Any, tool: Any) -> str:
    # Calls may run concurrently, so the id pairs a start with its end. Some contexts only offer the name.
    return getattr(context, "tool_call_id", None) or tool.name
