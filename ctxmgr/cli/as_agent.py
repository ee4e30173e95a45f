"""The agent on whose behalf the command at hand runs (``--as AGENT``)."""

from __future__ import annotations

_asking: list[str | None] = [None]


def remember(value: str | None) -> str | None:
    """Remember on whose behalf the command at hand runs; called for every command, with None where nobody is named."""
    _asking[0] = value
    return value


def asking() -> str | None:
    """Return the agent that the command at hand runs for, or None for the operator."""
    return _asking[0]
