"""What an answer of the history tools let an agent see: the agents and sessions in it, for the log of accesses."""

from __future__ import annotations

from typing import Any, cast

_DEPTH = 12


def resources_of(answer: Any) -> list[tuple[str, str]]:
    """Return (agent, session) of everything in a JSON answer that says whose it is, each once, in order of appearance.

    What no agent did belongs to ``user``, as rules see it.
    """
    found: dict[tuple[str, str], None] = {}
    _walk(answer, found, _DEPTH)
    return list(found)


def _walk(value: Any, found: dict[tuple[str, str], None], depth: int) -> None:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        session, kind = fields.get("session"), fields.get("kind")
        if kind in ("entry", "event") and isinstance(session, str):
            agent = fields.get("agent")
            found.setdefault((agent if isinstance(agent, str) else "user", session))
            return  # what stands in it is the agent's own text
        for item in fields.values() if depth else ():
            _walk(item, found, depth - 1)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value) if depth else ():
            _walk(item, found, depth - 1)
