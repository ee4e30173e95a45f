"""Copilot CLI: a separate file of hooks that only we write, in a folder of such files."""

from __future__ import annotations

from ctxmgr.clients import AFTER, END, PERSON, Call, Client, Event, as_object, client_home, first_text
from ctxmgr.log.fast_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# The id of the session becomes part of a path, and events are untrusted.
_ID = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")


class Copilot(Client):
    """Copilot CLI. Its events have no names; their fields tell the kind."""

    name = "copilot"
    title = "Copilot CLI"
    program = "copilot"
    least = (1, 0, 102)
    writes_late = True

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the event, or None if we do not use it."""
        import os

        session = first_text(fields, "sessionId")
        # Events do not contain the path of the session's log.
        log = ""
        if session and _ID.issuperset(session):
            log = f"{_home(os.environ)}/session-state/{session}/events.jsonl"
        result: Any = fields.get("toolResult")
        if result is None:
            if "toolName" not in fields and isinstance(fields.get("reason"), str):
                return Event(END, "sessionEnd", session, (), "", log, first_text(fields, "cwd"))
            if not isinstance(fields.get("prompt"), str):
                return None
            return Event(PERSON, "userPromptSubmitted", session, (), "", log, first_text(fields, "cwd"))
        given: Any = fields.get("toolArgs")
        # The arguments may be a text of JSON.
        if isinstance(given, str) and given[:1] == "{":
            try:  # noqa: SIM105 - `contextlib` would have to be loaded for it
                given = loads(given)
            except (ValueError, RecursionError):  # it only looks like JSON, so use the text itself
                pass
        # Not by "resultType", which is "success" even for a command that exits with 1.
        content = as_object(result)
        answer = result if content is None else first_text(content, "textResultForLlm")
        call = Call(first_text(fields, "toolName"), given, "", answer)
        return Event(AFTER, "postToolUse", session, [call], "", log, first_text(fields, "cwd"))

    def tell(self, event: Event, text: str) -> Any:
        """Return the text as guidance, which Copilot CLI appends to the result of the call."""
        return {"additionalContext": text}

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the path of the user's file. Hooks of a project would be shared with everybody who clones it."""
        return f"{_home(environment)}/hooks/ctxmgr.json" if scope == "user" else None

    def whole_file(self, command: Sequence[str]) -> str | None:
        """Return the content of the file of hooks."""
        from json import dumps
        from shlex import join

        hook = {"type": "command", "bash": join(command), "timeoutSec": self.seconds}
        hooks = {name: [hook] for name in ("postToolUse", "userPromptSubmitted", "sessionEnd")}
        return dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"


def _home(environment: Mapping[str, str]) -> str:
    return client_home(environment, "COPILOT_HOME", ".copilot")


CLIENT = Copilot()
