"""Cline CLI: one document a session, messages in Anthropic's shape with times and tokens."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.chat import is_message, read_message
from ctxmgr.importers.interface import Coverage, Place
from ctxmgr.importers.json_importer import JsonImporter, Log
from ctxmgr.importers.values import mapping, sequence, text


def _proves(value: dict[str, Any]) -> bool:
    named = text(value.get("sessionId")) is not None and "agent" in value and "projectHash" not in value
    return named and ("origin" in value or "updated_at" in value) and isinstance(value.get("messages", []), list)


class _Session:
    """Reads the document of a session."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def read(self, value: dict[str, Any]) -> None:
        t = self._log.session(value.get("sessionId"))
        origin = mapping(value.get("origin"))
        t.describe(origin.get("version"), parentSession=value.get("parentSessionId"), originator=origin.get("source"))
        for place, message in enumerate(map(mapping, sequence(value.get("messages"))), 1):
            t.place = place
            at = message.get("ts")
            if not is_message(message):
                self._log.unknown(message.get("role"))
                continue
            if (own := text(message.get("id"))) and t.seen(own):
                continue
            read_message(t, message, at)
            used = mapping(message.get("metrics"))
            t.usage(
                at, message.get("id"), mapping(message.get("modelInfo")).get("id"), inputTokens=used.get("inputTokens"),
                outputTokens=used.get("outputTokens"), cacheReadTokens=used.get("cacheReadTokens"),
                cacheCreationTokens=used.get("cacheWriteTokens"),
            )  # fmt: skip


CLINE = JsonImporter(
    name="cline",
    title="Cline CLI",
    proves=_proves,
    reader=_Session,
    coverage=Coverage(sub_agents=False),
    places=(Place(".cline/data/sessions", "*/*.messages.json", variable="CLINE_DIR", below="data/sessions"),),
    lists=("messages",),
)
