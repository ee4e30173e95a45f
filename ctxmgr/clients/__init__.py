"""The clients that can call our hook: the form of their events, of the answer to them, and of their settings.

To add one: write a module here, and name it in `CLIENTS`. Start with `interface`.
"""

from __future__ import annotations

import os

from ctxmgr.log.fast_json import cast, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.clients.interface import Client, Event

CLIENTS = ("claude-code", "codex", "gemini", "copilot", "opencode", "pi")
"""Names of the clients. The module of each bears its name, and a hook loads the one that calls it."""


def client(name: str) -> Client | None:
    """Return the client of this name, None when there is none."""
    if name not in CLIENTS:
        return None
    module = "ctxmgr.clients." + name.replace("-", "_")
    found: Client = __import__(module, fromlist=["CLIENT"]).CLIENT
    return found


# An event carries the whole result of a call; a longer one is read, and passed over.
_MAX_EVENT_BYTES, _CHUNK = 32_000_000, 1_048_576


def event_bytes() -> bytes:
    """Return the event on stdin; it is read to its end whatever its size, so that the client's write never fails."""
    parts: list[bytes] = []
    size = 0
    while part := os.read(0, _CHUNK):
        size += len(part)
        if size <= _MAX_EVENT_BYTES:
            parts.append(part)
    return b"".join(parts) if size <= _MAX_EVENT_BYTES else b""


def parsed(name: str, content: bytes) -> tuple[Client, Event] | None:
    """Return the client of this name and its event; None when it is not for us.

    Raises:
        ValueError: the content is no JSON.
    """
    found = client(name)
    if found is None or not content:
        return None
    fields: Any = loads(content.decode("utf-8", "replace"))
    event = found.event(cast("dict[str, Any]", fields)) if isinstance(fields, dict) else None
    return None if event is None or not event.session else (found, event)
