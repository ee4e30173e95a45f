"""Codex: hooks in a file of their own, which the user must trust before Codex runs them."""

from __future__ import annotations

from ctxmgr.clients.interface import AFTER, BEFORE, END, PERSON, WAIT, Call, Client, Event, home_of, text_of
from ctxmgr.log.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_KINDS = {"PreToolUse": BEFORE, "PostToolUse": AFTER, "UserPromptSubmit": PERSON,
          "PermissionRequest": WAIT, "SessionEnd": END}  # fmt: skip


class Codex(Client):
    """Codex. The answer after a call must never be a decision to block: that would replace the output of the tool."""

    name = "codex"
    title = "Codex"
    program = "codex"
    asks_trust = True  # without it Codex skips the hooks and says nothing
    tells_beside_person = True
    least = (0, 169, 0)

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the event, None for one that is not used."""
        name = text_of(fields, "hook_event_name")
        kind = _KINDS.get(name)
        if kind is None:
            return None
        calls = [
            Call(
                text_of(fields, "tool_name"), fields.get("tool_input"), text_of(fields, "tool_use_id"),
                fields.get("tool_response") if kind == AFTER else None,
            )
        ]  # fmt: skip
        return Event(
            kind, name, text_of(fields, "session_id"), calls if kind in (BEFORE, AFTER) else [], text_of(fields, "agent_id"),
            text_of(fields, "transcript_path"), text_of(fields, "cwd"),
        )  # fmt: skip

    def tell(self, event: Event, text: str) -> Any:
        """Return additional context for the next request to the model."""
        return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}

    def refuse(self, event: Event, text: str) -> Any:
        """Return a denial: the call is not made, and the model is told the reason."""
        decision = {"hookEventName": event.name, "permissionDecision": "deny", "permissionDecisionReason": text}
        return {"hookSpecificOutput": decision}

    def unwritten(self, event: Event) -> list[tuple[str, str]]:
        """Return the output of the call: Codex writes it into its log after the hooks."""
        lines: list[tuple[str, str]] = []
        for call in event.calls:
            output = call.result if isinstance(call.result, str) else dumps(call.result)
            # As a line of Codex's own log, so that one importer reads both.
            item = {"type": "function_call_output", "call_id": call.id, "output": output}
            lines.append((call.id, dumps({"type": "response_item", "payload": item})))
        return lines

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the hooks of the user or of the project."""
        if scope == "project":
            return f"{folder}/.codex/hooks.json"
        return home_of(environment, "CODEX_HOME", ".codex") + "/hooks.json"

    def entries(self, command: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        """Return one hook for each event; Codex starts it through a shell."""
        from shlex import join

        hook = {"type": "command", "command": join(command), "timeout": self.seconds}
        return [(("hooks", name), {"hooks": [hook]}) for name in _KINDS]

    def trust(self, path: str, folder: str) -> bool | None:
        """Have Codex trust the hooks."""
        from ctxmgr.clients.codex_trust import trust

        return trust(self.program, path, folder) > 0

    def left_to_do(self, path: str, environment: Mapping[str, str]) -> str | None:
        """Return how the hooks are trusted, unless they are."""
        from ctxmgr.clients.codex_trust import is_trusted

        if is_trusted(home_of(environment, "CODEX_HOME", ".codex"), path):
            return None
        return (
            "Codex skips hooks that you have not trusted: 'ctxmgr install codex --trust' does it, or start codex and run /hooks"
        )


CLIENT = Codex()
