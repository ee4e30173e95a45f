"""LangGraph and LangChain: wrap each tool call, and append the continuation to its result.

``ToolNode(tools, wrap_tool_call=guard.wrap_tool_call, awrap_tool_call=guard.awrap_tool_call)`` guards your own graph,
``create_agent(model, tools, middleware=[guard.middleware()])`` a ready-made one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, cast

from ctxmgr.errors import DegenerateLoopError
from ctxmgr.integrations.guarded_run import GuardedRun, plain_text, with_text

_CONTROL, _INTERRUPT = "GraphBubbleUp", "GraphInterrupt"
"""Exceptions that control LangGraph, and those among them that ask a person. They are no failures, and must stay unchanged.

Compared by name, because only the user imports the framework.
"""


class LangGraphGuard(GuardedRun):
    """A `GuardedRun` with the hooks of LangGraph. Create one for each run of a graph."""

    def wrap_tool_call(self, request: Any, execute: Callable[[Any], Any]) -> Any:
        """Make a call, record it, and return its message. If the call closes a loop, append the continuation.

        Raises:
            AttemptsUsedUp: a person is needed. Exception: the tool's own error.
        """
        entry = self._begin_call(request)
        try:
            message = execute(request)
        except Exception as error:
            self._fail_call(entry, error)
            raise
        return self._finish_call(entry, message)

    async def awrap_tool_call(self, request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        """Do the same as `wrap_tool_call` for asynchronous tools."""
        entry = self._begin_call(request)
        try:
            message = await execute(request)
        except Exception as error:
            self._fail_call(entry, error)
            raise
        return self._finish_call(entry, message)

    def middleware(self) -> Any:
        """Return the middleware for ``langchain.agents.create_agent``.

        Raises:
            ImportError: langchain is not installed.
        """
        # Imported by name, because LangChain is no dependency of ctxmgr. The class below needs its base class.
        base: Any = import_module("langchain.agents.middleware").AgentMiddleware
        guard = self

        class CtxmgrMiddleware(base):
            """Guards each tool call."""

            def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
                return guard.wrap_tool_call(request, handler)

            async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
                return await guard.awrap_tool_call(request, handler)

        return CtxmgrMiddleware()

    def _begin_call(self, request: Any) -> str:
        messages = _messages(request.state)
        self.hear([each.content for each in messages if getattr(each, "type", None) == "human"])
        return self.begin(request.tool_call["name"], request.tool_call["args"])

    def _fail_call(self, entry: str, error: Exception) -> None:
        names = [each.__name__ for each in type(error).__mro__]
        if _CONTROL in names:
            # The exception can't carry a continuation, so a loop that this call closes is left to the next call.
            with suppress(DegenerateLoopError):
                if _INTERRUPT in names:
                    self.board.event("waiting", {"reason": type(error).__name__}, entry=entry)
                self.board.result(entry, "interrupted" if _INTERRUPT in names else "ok")
            return
        continuation = self.finish(entry, error=error)
        if continuation is not None:
            # The graph's error handling expects the tool's own exception, so the continuation goes into its text.
            error.args = (f"{error}\n\n{continuation}",)  # a graph that handles errors shows this text to the model

    def _finish_call(self, entry: str, message: Any) -> Any:
        content = getattr(message, "content", None)
        failed = getattr(message, "status", None) == "error"
        continuation = self.finish(entry, None if failed else content, error=plain_text(content) if failed else None)
        if continuation is None or content is None:  # a Command changes the state of the graph and has no content
            return message
        return message.model_copy(update={"content": with_text(content, continuation)})


def _messages(state: Any) -> list[Any]:
    """Return the conversation in a state: a mapping, a list, or an object with messages."""
    if isinstance(state, Mapping):
        state = cast("Mapping[str, Any]", state).get("messages")
    elif not isinstance(state, list):
        state = getattr(state, "messages", None)
    return cast("list[Any]", state) if isinstance(state, list) else []
