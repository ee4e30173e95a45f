"""Codex: hooks in a separate file, which the user must trust before Codex runs them.

`trust_hooks` grants the trust in the same way as Codex's own ``/hooks``. Codex computes and stores the hash of each hook,
because its hash function is private and has changed before.
"""

from __future__ import annotations

from ctxmgr.clients import AFTER, BEFORE, END, PERSON, WAIT, Call, Client, Event, client_home, first_text
from ctxmgr.log.fast_json import cast, dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from typing import Any

# A failed command also causes ``PostToolUse``, because Codex has no event for failures.
_KINDS = {"PreToolUse": BEFORE, "PostToolUse": AFTER, "UserPromptSubmit": PERSON,
          "PermissionRequest": WAIT, "SessionEnd": END}  # fmt: skip


class Codex(Client):
    """Codex. The answer after a call must never be a decision to block, which would replace the output of the tool."""

    name = "codex"
    title = "Codex"
    program = "codex"
    asks_trust = True  # without trust, Codex skips the hooks silently
    tells_beside_person = True
    least = (0, 169, 0)

    def event(self, fields: Mapping[str, Any]) -> Event | None:
        """Return the event, or None if we do not use it."""
        name = first_text(fields, "hook_event_name")
        kind = _KINDS.get(name)
        if kind is None:
            return None
        calls = [
            Call(
                first_text(fields, "tool_name"), fields.get("tool_input"), first_text(fields, "tool_use_id"),
                fields.get("tool_response") if kind == AFTER else None,
            )
        ]  # fmt: skip
        return Event(
            kind, name, first_text(fields, "session_id"), calls if kind in (BEFORE, AFTER) else [],
            first_text(fields, "agent_id"),
            first_text(fields, "transcript_path"), first_text(fields, "cwd"),
        )  # fmt: skip

    def refuse(self, event: Event, text: str) -> Any:
        """Return a denial. The call is not made, and the model gets the reason."""
        decision = {"hookEventName": event.name, "permissionDecision": "deny", "permissionDecisionReason": text}
        return {"hookSpecificOutput": decision}

    def unwritten(self, event: Event) -> list[tuple[str, str]]:
        """Return the output of the call, because Codex writes it into its log after the hooks."""
        lines: list[tuple[str, str]] = []
        for call in event.calls:
            output = call.result if isinstance(call.result, str) else dumps(call.result)
            # In the form of Codex's own log, so that the same importer reads both.
            item = {"type": "function_call_output", "call_id": call.id, "output": output}
            lines.append((call.id, dumps({"type": "response_item", "payload": item})))
        return lines

    def settings_file(self, scope: str, folder: str, environment: Mapping[str, str]) -> str | None:
        """Return the path of the hooks file of the user or of the project."""
        if scope == "project":
            return f"{folder}/.codex/hooks.json"
        return client_home(environment, "CODEX_HOME", ".codex") + "/hooks.json"

    def entries(self, command: Sequence[str]) -> list[tuple[tuple[str, ...], Any]]:
        """Return one hook per event. Codex starts it through a shell."""
        from shlex import join

        hook = {"type": "command", "command": join(command), "timeout": self.seconds}
        return [(("hooks", name), {"hooks": [hook]}) for name in _KINDS]

    def trust(self, path: str, folder: str) -> bool | None:
        """Make Codex trust the hooks; return whether it found any."""
        return trust_hooks(self.program, path, folder) > 0

    def left_to_do(self, path: str, environment: Mapping[str, str]) -> str | None:
        """Return how to trust the hooks, or None if they are trusted."""
        if is_trusted(client_home(environment, "CODEX_HOME", ".codex"), path):
            return None
        return (
            "Codex skips hooks that you have not trusted: 'ctxmgr install codex --trust' does it, or start codex and run /hooks"
        )


CLIENT = Codex()


# Only `install` and `doctor` use the rest. It imports modules where it uses them, so that a hook loads none of them.
_SECONDS = 30.0
_MAX_BYTES = 5_000_000
_HINT = "start codex, run /hooks, and trust those of ctxmgr there"


def trust_hooks(program: str, hooks: str, folder: str) -> int:
    """Make Codex trust our hooks in a file, and return their number. Call this only if the user asked for it.

    Args:
        program: the command that starts Codex.
        hooks: path of the file with the hooks.
        folder: the folder for which Codex lists its hooks.

    Raises:
        StorageFailed: Codex can't be started, or its answer has an unknown form.
    """
    import subprocess
    import threading

    from ctxmgr.errors import StorageFailed

    try:
        server = subprocess.Popen(
            [program, "app-server"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise StorageFailed(f"'{program} app-server' can't be started: {error.strerror}", _HINT) from None
    # Reads from the pipe have no time limit. Killing the server ends them.
    limit = threading.Timer(_SECONDS, server.kill)
    limit.start()
    try:
        return _trust_in(server, hooks, folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StorageFailed("Codex did not say which hooks it knows", _HINT) from None
    finally:
        limit.cancel()
        server.kill()
        server.communicate()


def _trust_in(server: subprocess.Popen[bytes], hooks: str, folder: str) -> int:
    import os

    _request(server, 1, "initialize", {"clientInfo": {"name": "ctxmgr", "version": "1"}})
    _send(server, {"method": "initialized"})
    listed = _request(server, 2, "hooks/list", {"cwds": [folder]})
    # Only our hooks in this file, because the user has agreed to no others.
    found = {
        hook["key"]: {"trusted_hash": hook["currentHash"]}
        for each in listed["data"]
        for hook in each["hooks"]
        if os.path.realpath(hook["sourcePath"]) == hooks and "ctxmgr/live/hook.py" in hook["command"]
    }
    if found:
        edit = {"keyPath": "hooks.state", "value": found, "mergeStrategy": "upsert"}
        _request(server, 3, "config/batchWrite", {"edits": [edit]})
    return len(found)


def _send(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    import json

    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def _request(server: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]) -> Any:
    """Return the result of a request. Skip other messages of the server.

    Raises:
        ValueError: the server ended. KeyError: it answered with an error.
    """
    import json

    assert server.stdout is not None
    _send(server, {"id": number, "method": method, "params": params})
    for line in server.stdout:
        message: Any = json.loads(line)
        if message.get("id") == number:
            return message["result"]
    raise ValueError("the server ended")


def is_trusted(home: str, hooks: str) -> bool:
    """Whether Codex has stored trust for hooks in this file. Only Codex can tell whether they have changed since."""
    import os
    import tomllib

    from ctxmgr.base.paths import read_regular

    try:
        table: Mapping[str, Any] = tomllib.loads(read_regular(os.path.join(home, "config.toml"), _MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    state: Any = table.get("hooks", {}).get("state", {})
    return isinstance(state, dict) and any(str(key).startswith(f"{hooks}:") for key in cast("dict[str, Any]", state))
