"""Claude Code: hooks in its settings, answered with additional context (code.claude.com/docs/en/hooks)."""

from __future__ import annotations

from ctxmgr.clients import AFTER, BEFORE, END, PERSON, WAIT, Call, Client, Event, as_object, client_home, first_text
from ctxmgr.log.fast_json import cast, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

PLUGIN = "ctxmgr@ctxmgr"
"""Our plugin and its marketplace, as Claude Code's settings name an enabled one."""

# PostToolBatch comes once a step, also for parallel calls and for calls that were rejected before they ran.
_KINDS = {"PreToolUse": BEFORE, "PostToolBatch": AFTER, "UserPromptSubmit": PERSON,
          "Notification": WAIT, "SessionEnd": END}  # fmt: skip
_WAITS = ("permission_prompt", "idle_prompt", "elicitation_dialog")
_MAX_BYTES = 5_000_000
# The id of a sub-agent becomes a part of a path, and events are not to be trusted.
_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class ClaudeCode(Client):
    """Claude Code.

    It notifies of a wait for a permission only when nobody has answered for some seconds, so a call that a person allows at
    once stays watched. After a batch of calls the hook is called once, whether they failed or not: `PostToolUse` alone would
    miss those that fail. The answer there must never be a decision to block, which ends the run.
    """

    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    tells_beside_person = True
    least = (2, 1, 139)  # the first that starts a hook without a shell

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the event, None for one that is not used."""
        name = first_text(fields, "hook_event_name")
        kind = _KINDS.get(name)
        if kind is None or (kind == WAIT and fields.get("notification_type", _WAITS[0]) not in _WAITS):
            return None
        batch: Any = fields.get("tool_calls") if kind == AFTER else [fields] if kind == BEFORE else []
        listed = [as_object(each) for each in cast("list[Any]", batch)] if isinstance(batch, list) else []
        calls = [
            Call(
                first_text(each, "tool_name"),
                each.get("tool_input"),
                first_text(each, "tool_use_id"),
                each.get("tool_response"),
            )
            for each in listed
            if each is not None
        ]
        return Event(
            kind, name, first_text(fields, "session_id"), calls, first_text(fields, "agent_id"),
            first_text(fields, "transcript_path"),
            first_text(fields, "cwd"),
        )  # fmt: skip

    def refuse(self, event: Event, text: str) -> Any:
        """Return a denial: the reason becomes the call's result, and the call is not made."""
        decision = {"hookEventName": event.name, "permissionDecision": "deny", "permissionDecisionReason": text}
        return {"hookSpecificOutput": decision}

    def log_path(self, event: Event) -> str:
        """Return the session's log, for a sub-agent the one of its own."""
        # Events of a sub-agent name the session's log; its own calls stand in a log of its own, in the folder beside that one.
        stem, end = event.transcript[:-6], event.transcript[-6:]
        if event.agent and end == ".jsonl" and _ID.issuperset(event.agent):
            return f"{stem}/subagents/agent-{event.agent}.jsonl"
        return event.transcript

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str:
        """Return the user's settings, or those of the project that are not shared with others."""
        if scope == "project":
            return f"{folder}/.claude/settings.local.json"
        return client_home(environment, "CLAUDE_CONFIG_DIR", ".claude") + "/settings.json"

    def entries(self, command: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        """Return one hook for each event, started without a shell."""
        hook = {"type": "command", "command": command[0], "args": [*command[1:]], "timeout": self.seconds}
        # The events that we use and no other: a version that does not know one of the names runs none of the hooks.
        return [(("hooks", name), {"hooks": [hook]}) for name in _KINDS]

    def has_plugin(self, environment: Mapping[str, str]) -> bool:
        """Whether the user's Claude Code has the plugin enabled."""
        from ctxmgr.base.paths import read_regular  # only `install` and `doctor` ask; a hook does not load it

        try:
            settings: Any = loads(read_regular(self.settings_file("user", "", environment), _MAX_BYTES).decode("utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        enabled = as_object((as_object(settings) or {}).get("enabledPlugins"))
        return enabled is not None and enabled.get(PLUGIN) is True


CLIENT = ClaudeCode()
