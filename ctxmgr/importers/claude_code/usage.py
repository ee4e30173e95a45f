"""Count the tokens of each model response once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ctxmgr.importers.claude_code.values import ident, mapping, tokens

_FIELDS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_input_tokens": "cacheReadTokens",
    "cache_creation_input_tokens": "cacheCreationTokens",
}


@dataclass(slots=True)
class Response:
    """A model response while its lines come in.

    Attributes:
        key: its id; event: id of the event that reports it; ts: time of its first line.
        usage: the largest figures seen, since they may grow line by line.
        stopped: whether its last line says why the model stopped.
    """

    key: str
    event: str
    ts: str | None
    model: str | None
    usage: dict[str, int]
    stopped: bool = False

    def add(self, message: dict[str, Any]) -> None:
        """Take over the figures of one more line."""
        usage = mapping(message.get("usage"))
        for name, ours in _FIELDS.items():
            self.usage[ours] = max(self.usage[ours], tokens(usage.get(name)))
        self.stopped = ident(message.get("stop_reason")) is not None

    def data(self) -> dict[str, Any]:
        """Return the payload of the ``usage`` event."""
        return {**self.usage, "model": self.model, "responseId": self.key}


def response_key(record: dict[str, Any], message: dict[str, Any]) -> str | None:
    """Return what all lines of one response have in common."""
    return ident(message.get("id")) or ident(record.get("requestId")) or ident(record.get("uuid"))


def new_response(key: str, ts: str | None, record: dict[str, Any], message: dict[str, Any]) -> Response:
    """Return a response without any figures yet.

    Its event's id names the first line too: gateways hand out response ids that are unique in one session only.
    """
    line = ident(record.get("uuid"))
    event = f"usage:{key}:{line[:8]}" if line else f"usage:{key}"
    return Response(key, event, ts, ident(message.get("model")), dict.fromkeys(_FIELDS.values(), 0))
