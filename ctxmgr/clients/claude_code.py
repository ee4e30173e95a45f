"""Claude Code: hooks in its settings, and answers as additional context (code.claude.com/docs/en/hooks)."""

from __future__ import annotations

from ctxmgr.clients import AFTER, BEFORE, END, PERSON, WAIT, Call, Client, Event, client_home, first_text
from ctxmgr.log.fast_json import json_object, json_objects, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PLUGIN = "ctxmgr@ctxmgr"
"""Name of our plugin and its marketplace, as Claude Code's settings list an enabled plugin."""

# PostToolBatch comes once per step, also for parallel calls and for calls rejected before they ran.
_KINDS = {"PreToolUse": BEFORE, "PostToolBatch": AFTER, "UserPromptSubmit": PERSON,
          "Notification": WAIT, "SessionEnd": END}  # fmt: skip
_WAITS = ("permission_prompt", "idle_prompt", "elicitation_dialog")
_MAX_BYTES = 5_000_000
# The id of a sub-agent becomes part of a path, and events are untrusted.
_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class ClaudeCode(Client):
    """Claude Code.

    It reports a wait for a permission only if nobody answers for some seconds. A call that a person allows at once therefore
    stays watched. The hook runs once after a batch of calls, whether they failed or not; `PostToolUse` alone would miss failed
    calls. The answer there must never be a decision to block, which would end the run.
    """

    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    tells_beside_person = True
    least = (2, 1, 139)  # the first version that starts a hook without a shell

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the event, or None if we do not use it."""
        name = first_text(fields, "hook_event_name")
        kind = _KINDS.get(name)
        if kind is None or (kind == WAIT and fields.get("notification_type", _WAITS[0]) not in _WAITS):
            return None
        batch: Any = fields.get("tool_calls") if kind == AFTER else [fields] if kind == BEFORE else []
        calls = [
            Call(
                first_text(each, "tool_name"),
                each.get("tool_input"),
                first_text(each, "tool_use_id"),
                each.get("tool_response"),
            )
            for each in json_objects(batch)
        ]
        return Event(
            kind, name, first_text(fields, "session_id"), calls, first_text(fields, "agent_id"),
            first_text(fields, "transcript_path"),
            first_text(fields, "cwd"),
        )  # fmt: skip

    def refuse(self, event: Event, text: str) -> Any:
        """Return a denial. The call is not made, and the reason becomes its result."""
        decision = {"hookEventName": event.name, "permissionDecision": "deny", "permissionDecisionReason": text}
        return {"hookSpecificOutput": decision}

    def show(self, text: str) -> Any:
        """Return a message of the system, which the user reads and the agent does not."""
        return {"systemMessage": text}

    def log_path(self, event: Event) -> str:
        """Return the path of the session's log, or of the sub-agent's own log."""
        # Events of a sub-agent name the log of the session. The calls of a sub-agent are in its own
        # log, in a folder beside that log.
        stem, end = event.transcript[:-6], event.transcript[-6:]
        if event.agent and end == ".jsonl" and _ID.issuperset(event.agent):
            return f"{stem}/subagents/agent-{event.agent}.jsonl"
        return event.transcript

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str:
        """Return the path of the user's settings, or of the project's settings that are not shared with others."""
        if scope == "project":
            return f"{folder}/.claude/settings.local.json"
        return client_home(environment, "CLAUDE_CONFIG_DIR", ".claude") + "/settings.json"

    def entries(self, command: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        """Return one hook per event. Claude Code starts it without a shell."""
        hook = {"type": "command", "command": command[0], "args": [*command[1:]], "timeout": self.seconds}
        # Only for the events that we use: a version that does not know one of the names runs none of the hooks.
        return [(("hooks", name), {"hooks": [hook]}) for name in _KINDS]

    def has_plugin(self, environment: Mapping[str, str]) -> bool:
        """Whether our plugin is enabled in the user's Claude Code."""
        from ctxmgr.base.paths import read_regular  # only `install` and `doctor` ask; a hook does not load it

        try:
            settings: Any = loads(read_regular(self.settings_file("user", "", environment), _MAX_BYTES).decode("utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return json_object(json_object(settings).get("enabledPlugins")).get(PLUGIN) is True


CLIENT = ClaudeCode()
