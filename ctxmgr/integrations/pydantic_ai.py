"""Wrap each tool call of pydantic-ai by a capability, and append the continuation to its result.

``Agent(model, capabilities=[guard.capability()])``
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ctxmgr.integrations.guarded_run import GuardedRun, with_text

_WAITING_ERRORS = ("ApprovalRequired", "CallDeferred")
"""Exceptions of a tool that waits for a person or an outside system. They are no failures."""


class PydanticAIGuard(GuardedRun):
    """A `GuardedRun` with the hooks of pydantic-ai. Create one for each run."""

    _run: str | None = None

    def capability(self) -> Any:
        """Return the capability for an ``Agent``, or for one run of it.

        Raises:
            ImportError: pydantic-ai is not installed.
        """
        hooks: Any = import_module("pydantic_ai.capabilities").Hooks()
        hooks.on.tool_execute(self.execute)
        return hooks

    async def execute(self, context: Any, /, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Make a call, record it, and return its result. If the call closes a loop, append the continuation.

        After a failed call, the framework asks the model again with the tool's error. The continuation is added to that error.

        Raises:
            AttemptsUsedUp: a person is needed. Exception: the tool's own error.
        """
        # Every call of a run has the same prompt, which the person wrote only once.
        if context.run_id != self._run:
            self._run = context.run_id
            if context.prompt is not None:
                self.user(context.prompt)
        entry = self.begin(tool_def.name, args)
        try:
            result = await handler(args)
        except Exception as error:
            # Compared by name, because only the user imports the framework.
            if type(error).__name__ in _WAITING_ERRORS:
                self.board.event("waiting", {"reason": type(error).__name__, "action": tool_def.name}, entry=entry)
                raise
            asked = getattr(error, "tool_retry", None)  # the framework's own form of a ModelRetry
            continuation = self.finish(entry, error=error if asked is None else str(asked.content))
            if continuation is not None and asked is not None:
                asked.content = with_text(asked.content, continuation)
            elif continuation is not None and hasattr(error, "message"):
                raise import_module("pydantic_ai").ModelRetry(f"{error}\n\n{continuation}") from error
            raise
        continuation = self.finish(entry, result)
        if continuation is None:
            return result
        if isinstance(result, str):
            return with_text(result, continuation)
        # A structured result must reach the model unchanged. ToolReturn carries the text beside it.
        return import_module("pydantic_ai").ToolReturn(result, content=continuation)
