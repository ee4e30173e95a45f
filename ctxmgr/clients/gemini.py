"""Gemini CLI: hooks in its settings, which may hold comments (geminicli.com/docs/hooks)."""

from __future__ import annotations

from ctxmgr.clients import AFTER, BEFORE, END, PERSON, WAIT, Call, Client, Event, as_object, client_home, first_text
from ctxmgr.log.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# Not ``BeforeModel`` and ``AfterModel``, whose events hold the whole request each time.
_KINDS = {"BeforeTool": BEFORE, "AfterTool": AFTER, "BeforeAgent": PERSON, "Notification": WAIT, "SessionEnd": END}


class Gemini(Client):
    """Gemini CLI. It counts identical calls too and intervenes at the fifth. Whether it respects a denial is not proven."""

    name = "gemini"
    title = "Gemini CLI"
    program = "gemini"
    least = (0, 61, 0)
    tells_beside_person = True
    writes_late = True
    hides_open_calls = True
    comments = True

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the event, or None if we do not use it."""
        name = first_text(fields, "hook_event_name")
        kind = _KINDS.get(name)
        if kind is None:
            return None
        answer: Any = fields.get("tool_response")
        response = as_object(answer)
        if response is not None and "llmContent" in response:  # the part for the model; the rest is for the screen
            answer = response["llmContent"]
        # The events do not contain the id of the call.
        calls = [Call(first_text(fields, "tool_name"), fields.get("tool_input"), "", answer)]
        return Event(
            kind, name, first_text(fields, "session_id"), calls if kind in (BEFORE, AFTER) else [], "",
            first_text(fields, "transcript_path"), first_text(fields, "cwd"),
        )  # fmt: skip

    def open_records(self, event: Event) -> list[str]:
        """Return a message of the model per call, in the form in which Gemini CLI writes finished calls."""
        from ctxmgr.log.ids import new_id, now

        rows: list[str] = []
        for call in event.calls:
            shown = {"id": new_id(), "name": call.action, "args": call.given, "status": "executing"}
            rows.append(dumps({"id": new_id(), "timestamp": now(), "type": "gemini", "content": "", "toolCalls": [shown]}))
        return rows

    def show(self, text: str) -> Any:
        """Return a message of the system, which the user reads and the agent does not."""
        return {"systemMessage": text}

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the path of the settings of the user or of the project."""
        home = folder if scope == "project" else client_home(environment, "GEMINI_CLI_HOME", "")
        return home.rstrip("/") + "/.gemini/settings.json"

    def entries(self, command: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        """Return one hook per event. The time limit is in milliseconds."""
        from shlex import join

        hook = {"name": "ctxmgr", "type": "command", "command": join(command), "timeout": 1000 * self.seconds}
        return [(("hooks", name), {"hooks": [hook]}) for name in _KINDS]


CLIENT = Gemini()
