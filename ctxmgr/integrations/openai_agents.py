"""OpenAI Agents SDK: hooks of a run, and a filter of the model's input that hands the continuation over.

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
"""Prefix of the SDK's own text for a tool that raised: its hooks see that text as an ordinary result."""


class OpenAIAgentsGuard(GuardedRun):
    """A `GuardedRun` with the hooks of the OpenAI Agents SDK; one for each run.

    The hooks of the SDK see a tool's result, and can't change it. So the continuation goes into the input of the model's next
    call, as a message of the user, and stays there behind the result that it is about.
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
        """Record that a tool is called."""
        given: Any = getattr(context, "tool_arguments", None)
        if isinstance(given, str):
            with suppress(ValueError):  # arguments that are no JSON are recorded as the text they are
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
        """Return the input of a model call, with each continuation behind the items that it is about."""
        items: list[Any] = [*data.model_data.input]
        self.hear([each.get("content") for each in items if each.get("role") == "user"])
        # The SDK keeps nothing of what a filter adds, so every continuation is put in again before each call of the model.
        self._given += [(len(items), text) for text in self._pending]
        self._pending.clear()
        # From the last one back, so that what is inserted does not move the places of those that follow.
        for place, text in reversed(self._given):
            items.insert(min(place, len(items)), {"role": "user", "content": text})
        return replace(data.model_data, input=items)


def _cause(text: str | None) -> str:
    """Return a tool's error without the words that the SDK puts before it."""
    return (text or "").partition("Error: ")[2] or text or ""


def _key(context: Any, tool: Any) -> str:
    # Calls may run side by side, so the id is what pairs a start with its end; a context without one leaves only the name.
    return getattr(context, "tool_call_id", None) or tool.name
