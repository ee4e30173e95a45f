"""Message lists: ``[{role, content, tool_calls}]`` as model providers take them, files of such lists, and Cline's documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, Place, session_name
from ctxmgr.importers.chat import (
    MODELS,
    PEOPLE,
    TOOLS,
    content_words,
    is_item,
    is_message,
    message_role,
    read_item,
    read_message,
)
from ctxmgr.importers.log_files import ELEMENTS, plain_name
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import integer, mapping, sequence, text

_LISTS = (
    "messages",
    "contents",
    "conversation",
    "conversations",
    "traj",
    "trajectory",
    "history",
    "chat_history",
    "dialogue",
    "turns",
    ELEMENTS,
)
# A document may contain runs, a run its simulations, and each of these its messages.
_MAX_DEPTH = 3
# A long document may begin with a configuration. Then a list of messages in its first megabytes proves the format.
_LATER_MESSAGES = re.compile(
    rb'"(?:messages|conversation|traj|history)"\s*:\s*\[\s*\{[^{}\[\]]{0,2000}?"role"\s*:\s*"(?:user|assistant|system|developer)"'
)
_SESSIONS = ("session_id", "sessionId", "conversation_id", "thread_id", "id", "instance_id")
_ITEM = "response_item:"
_TIMES = ("timestamp", "ts", "created_at", "time")


def _proves(value: dict[str, Any]) -> bool:
    return is_message(value) or next(_conversations(value), None) is not None


def _conversations(value: dict[str, Any], depth: int = 0) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield each list of messages in a document with the object that contains it: a run, a simulation, or the document."""
    for name in _LISTS:
        listed = sequence(value.get(name))
        # The first three are enough: later ones may have types that only some versions know, and are counted then.
        if listed and all(is_message(item) or is_item(item) for item in listed[:3]):
            yield value, listed
            return
    for member in value.values() if depth < _MAX_DEPTH else ():
        for item in sequence(member):
            if inner := mapping(item):
                yield from _conversations(inner, depth + 1)


def _conversation_id(holder: dict[str, Any]) -> str | None:
    """Return the id of a conversation from the object that contains it."""
    return next((text(holder.get(name)) for name in _SESSIONS if text(holder.get(name))), None)


class _Messages:
    """Reads a list of messages, or several lists, one per line or per element."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lines: Transcript | None = None
        self._response = 0

    def read(self, value: dict[str, Any]) -> None:
        found = list(_conversations(value))
        if not found:
            self._line(value)
        names = Counter(_conversation_id(holder) for holder, _ in found)
        for place, (holder, listed) in enumerate(found, 1):
            self._list(holder, listed, str(self._log.place) if holder is value else f"{self._log.place}.{place}")
            # If a name occurs twice, or in the single conversations of several lines, it belongs to one growing conversation.
            if self._lines is None and (
                _conversation_id(holder) is None or (len(found) > 1 and names[_conversation_id(holder)] == 1)
            ):
                self._log.close()

    def _line(self, value: dict[str, Any]) -> None:
        kind = text(value.get("type")) or ""
        if kind.startswith(_ITEM):  # some programs name the record of a rollout in front of the kind of its item
            value = {**value, "type": kind.removeprefix(_ITEM)}
        if not is_message(value) and not is_item(value):
            self._log.unknown(value.get("type"))
            return
        if self._lines is None:
            # Not ``id`` and the names after it: in a line, these are ids of the message.
            named = next((text(value.get(name)) for name in _SESSIONS[:4] if text(value.get(name))), None)
            self._lines = self._log.session(named or session_name(self._log.path, value))
        if is_item(value):
            self._response = read_item(self._lines, value, self._time(value), self._response)
        else:
            self._read(self._lines, value)
            self._response += 1

    def _list(self, holder: dict[str, Any], listed: list[Any], place: str) -> None:
        asked = next((item for item in listed if message_role(mapping(item)) in PEOPLE), listed[0])
        # A list has no id. The file name and the first words of the person give one that stays when the file grows.
        own = session_name(self._log.path, asked)
        t = self._log.session(_conversation_id(holder) or (own if place == "1" else f"{own}-{place}"))
        t.describe(model=holder.get("model"))
        # A run with a mark belongs to a benchmark, in which a program plays the person.
        played = "task_id" in holder and not {"reward", "reward_info"}.isdisjoint(holder)
        response = 0 if any(map(is_item, listed)) else None
        for number, item in enumerate(listed, 1):
            t.place = number
            if response is not None:
                response = read_item(t, mapping(item), None, response)
            elif is_message(item):
                self._read(t, mapping(item), played=played)
            else:
                self._log.unknown(mapping(item).get("type"))

    @staticmethod
    def _time(message: Mapping[str, Any]) -> object:
        return next((message[name] for name in _TIMES if name in message), None)

    def _read(self, t: Transcript, message: dict[str, Any], *, played: bool = False) -> None:
        at, role = self._time(message), message_role(message)
        if role in TOOLS:
            for part in [mapping(item) for item in sequence(message.get("tool_messages"))] or [message]:
                self._result(t, part, at)
            return
        if role in PEOPLE and (played or sequence(message.get("tool_calls"))):
            place, t = t.place, self._log.session(t.session, agent="user", part=f"{t.part}/user", parent="")
            t.played, t.place = True, place
            if sequence(message.get("tool_calls")):  # this program has its own tools
                message = {**message, "role": "assistant"}
        read_message(t, message, at)
        if message.get("tool"):  # another form, whose call is not read
            self._log.unknown(f"{role} message with a member tool")
        used = mapping(message.get("usage"))
        if used and role in MODELS:
            t.usage(
                at, message.get("id"), message.get("model"),
                inputTokens=used.get("input_tokens", used.get("prompt_tokens")),
                outputTokens=used.get("output_tokens", used.get("completion_tokens")),
            )  # fmt: skip

    def _result(self, t: Transcript, message: dict[str, Any], at: object) -> None:
        """Add a result. A list states no failures, so results that begin with "Error" count as failures."""
        own = self._log.transcripts.get((t.session, f"{t.part}/user"))
        key = text(message.get("tool_call_id")) or text(message.get("id")) or ""
        words = message.get("content")
        if isinstance(words, str) and words.startswith("Error") and "status" not in message:
            message = {**message, "is_error": True}
        read_message(own if own is not None and key in own.waiting else t, {"role": "tool", **message}, at)


MESSAGE_LIST = JsonImporter(
    name="messages",
    title="message lists (OpenAI's and Anthropic's shape)",
    proves=_proves,
    reader=_Messages,
    coverage=Coverage(sub_agents=False, times=False),
    places=(
        Place(".cline/data/tasks", "*/api_conversation_history.json", variable="CLINE_DIR", below="data/tasks"),
        Place(".config/Code/User/globalStorage", "*/tasks/*/api_conversation_history.json"),
        Place("Library/Application Support/Code/User/globalStorage", "*/tasks/*/api_conversation_history.json"),
    ),
    lists=("messages", "contents", "conversation", "traj", "simulations"),
    further_on=_LATER_MESSAGES,
)


_COUNT = "source_message_count"
"""Field of Cline's document about the last compaction of a session. Its messages are older ones."""


def _is_cline(value: dict[str, Any]) -> bool:
    if _COUNT in value:
        return "updated_at" in value and isinstance(value.get("messages"), list)
    named = text(value.get("sessionId")) is not None and "agent" in value and "projectHash" not in value
    return named and ("origin" in value or "updated_at" in value) and isinstance(value.get("messages", []), list)


class _ClineSession:
    """Reads the document of a session, and then those of the team that works for it."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lead: Transcript | None = None
        self._tasks: dict[str, str] = {}

    def read(self, value: dict[str, Any]) -> None:
        if _COUNT in value:
            self._add_compaction(value)
            return
        origin = mapping(value.get("origin"))
        t = self._part(value, text(origin.get("subagent")))
        t.describe(origin.get("version"), parentSession=value.get("parentSessionId"), originator=origin.get("source"))
        for place, message in enumerate(map(mapping, sequence(value.get("messages"))), 1):
            t.place = place
            at = message.get("ts")
            if not is_message(message):
                self._log.unknown(message.get("role"))
                continue
            if (own := text(message.get("id"))) and t.is_repeated(own):
                continue
            read_message(t, message, at)
            for part in map(mapping, sequence(message.get("content"))):
                if agent := text(mapping(part.get("input")).get("agentId")):
                    self._tasks[agent] = text(part.get("id")) or ""
            used = mapping(message.get("metrics"))
            t.usage(
                at, message.get("id"), mapping(message.get("modelInfo")).get("id"), inputTokens=used.get("inputTokens"),
                outputTokens=used.get("outputTokens"), cacheReadTokens=used.get("cacheReadTokens"),
                cacheCreationTokens=used.get("cacheWriteTokens"),
            )  # fmt: skip

    def _add_compaction(self, value: dict[str, Any]) -> None:
        # The document of a compaction does not name its session. Without the session's document before it, it is ignored.
        if (t := self._lead) is not None:
            words = content_words(mapping(next(iter(sequence(value.get("messages"))), None)).get("content"))
            t.event("compaction", {"text": words}, value.get("updated_at"), f"compaction {integer(value.get(_COUNT))}")

    def _part(self, value: dict[str, Any], agent: str | None) -> Transcript:
        """Return the part of the document's agent: the lead, or a member of its team."""
        if self._lead is None:
            self._lead = self._log.session(value.get("sessionId"))
            return self._lead
        agent = agent or plain_name(self._log.path).split("__")[0]
        return self._log.sub_agent(self._lead, agent, agent, self._tasks.get(agent))


def _team_files(path: Path) -> Sequence[Path]:
    """Return the documents in a session's folder: the lead's first, then one per task of the team."""
    lead = path.with_name(f"{path.parent.name}.messages.json")
    if not lead.is_file():
        return [path]
    beside = sorted(path.parent.glob("*.messages.json")) + sorted(path.parent.glob("*.compaction.json"))
    return [lead, *(other for other in beside if other != lead)]


CLINE = JsonImporter(
    name="cline",
    title="Cline CLI",
    proves=_is_cline,
    reader=_ClineSession,
    coverage=Coverage(),
    places=(Place(".cline/data/sessions", "*/*.messages.json", variable="CLINE_DIR", below="data/sessions"),),
    lists=("messages",),
    related=_team_files,
)
