"""Claude Agent SDK: hooks in this process, with the same answers as the hooks of Claude Code.

``ClaudeAgentOptions(hooks=guard.hooks())``
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ctxmgr.clients import MAX_ANSWER_CHARS
from ctxmgr.errors import AttemptsUsedUp
from ctxmgr.integrations.guarded_run import GuardedRun

# A failed tool call fires PostToolUseFailure instead of PostToolUse, so both are needed.
_EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure")


class ClaudeAgentGuard(GuardedRun):
    """A `GuardedRun` with the hooks of the Claude Agent SDK. Create one for each client."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._open: dict[str, str] = {}

    def hooks(self) -> dict[str, list[Any]]:
        """Return the hooks for ``ClaudeAgentOptions``.

        Raises:
            ImportError: the SDK is not installed.
        """
        matcher: Any = import_module("claude_agent_sdk").HookMatcher
        return {event: [matcher(hooks=[self.on_event])] for event in _EVENTS}

    async def on_event(self, given: Any, _tool_use: str | None, _context: Any) -> dict[str, Any]:
        """Record an event. Answer with the continuation if it closes a loop; end the run if a person is needed."""
        event = given["hook_event_name"]
        if event == "UserPromptSubmit":
            self.user(given["prompt"])
            return {}
        if event == "PreToolUse":
            who = given.get("agent_id") or self.agent
            self._open[given["tool_use_id"]] = self.begin(given["tool_name"], given["tool_input"], agent=who)
            return {}
        entry = self._open.pop(given["tool_use_id"], None)
        if entry is None:
            return {}
        try:
            continuation = self.finish(entry, given.get("tool_response"), error=given.get("error"))
        except AttemptsUsedUp as error:
            # "continue_" is the SDK's spelling in Python, where "continue" is a keyword.
            return {"continue_": False, "stopReason": error.message}
        if continuation is None:
            return {}
        # The client accepts the context only under the name of the event that it sent.
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": continuation[:MAX_ANSWER_CHARS]}}
