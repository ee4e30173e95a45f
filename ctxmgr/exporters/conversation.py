"""A session as steps of a conversation, the common form of foreign formats: prompts, answers, thoughts, calls, results.

Records without a place in this form are counted, so that an export can report them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ctxmgr.log.codec import Record
from ctxmgr.log.fast_json import json_object, text_or_none

_TOKENS = ("inputTokens", "outputTokens", "cacheReadTokens", "cachedInputTokens", "cacheCreationTokens", "reasoningTokens")
_MESSAGE_TYPES = ("message", "agent_message_chunk")
_THOUGHT_TYPES = ("thought", "agent_thought_chunk")


@dataclass(slots=True)
class Call:
    """A tool call, with the record of its result if there is one."""

    record: Record
    name: str
    result: Record | None = None

    @property
    def status(self) -> str:
        """The status of the result, or ``open`` without one."""
        return "open" if self.result is None else str(self.result.get("status"))

    @property
    def error(self) -> str | None:
        """The message of the error, or None."""
        error = (self.result or {}).get("error")
        return str(cast("dict[str, Any]", error).get("message") or "") or None if isinstance(error, dict) else None


@dataclass(slots=True)
class Turn:
    """A message to an agent, or one response of its model with the calls in it.

    Attributes:
        source: ``user``, ``agent``, or the type of another event; ``data`` has its data.
        usage: data of the usage event.
    """

    source: str
    at: str | None
    text: str = ""
    thought: str = ""
    calls: list[Call] = field(default_factory=lambda: list[Call]())
    usage: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())
    data: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())
    name: str | None = None


@dataclass(slots=True)
class Part:
    """The steps of one agent. ``parent`` is the call that started the agent."""

    agent: str
    parent: str | None = None
    steps: list[Turn] = field(default_factory=lambda: list[Turn]())
    model: str | None = None


@dataclass(slots=True)
class Conversation:
    """One session.

    Attributes:
        about: fields of the session record: {workflow, version, title, cwd, ...}.
        parts: one per agent; the main agent first.
        outcome: how the session ended, if that was recorded.
        left: kind of records without a place in a conversation -> their number.
    """

    session: str
    about: dict[str, Any]
    parts: list[Part]
    outcome: str | None = None
    left: Counter[str] = field(default_factory=lambda: Counter[str]())

    @property
    def calls(self) -> list[Call]:
        """All calls of all agents."""
        return [call for part in self.parts for step in part.steps for call in step.calls]


class _Reader:
    """Sorts the records of a session into the steps of its agents."""

    def __init__(self, session: str) -> None:
        self.found = Conversation(session, {}, [])
        self._parts: dict[str, Part] = {}
        self._calls: dict[str, Call] = {}
        self._names: set[str] = set()
        self._step_ids: dict[int, object] = {}

    def read(self, record: Record) -> None:
        kind = record["kind"]
        if kind == "session":
            version = json_object(record.get("source")).get("version")
            about = {**json_object(record.get("meta")), "version": version, "workflow": record.get("workflow")}
            self.found.about.update((name, value) for name, value in about.items() if value is not None)
        elif kind == "entry":
            self._entry(record)
        elif kind == "result":
            call = self._calls.get(str(record.get("entry")))
            # No format has a place for a second result of a call.
            if call is not None and call.result is None:
                call.result = record
        elif kind == "event":
            self._event(record)
        elif kind == "sessionEnd":
            self.found.outcome = str(record.get("outcome"))
        else:
            self.found.left[f"{kind} records"] += 1

    def _part(self, record: Record) -> Part:
        agent = str(record.get("agent") or next(iter(self._parts), "main"))
        if agent not in self._parts:
            self._parts[agent] = Part(agent)
            self.found.parts.append(self._parts[agent])
        return self._parts[agent]

    def _entry(self, record: Record) -> None:
        part = self._part(record)
        part.parent = part.parent or record.get("parent")
        step, own = self._open(part, record.get("ts")), record.get("step")
        # Calls of one model response share a step. In a log without steps, each call is its own response.
        if step.calls and (own is None or own != self._step_ids.get(id(step))):
            step = self._new(part, "agent", record.get("ts"))
        self._step_ids[id(step)] = own
        details = json_object(record.get("meta"))
        name = str(details.get("callId") or details.get("toolUseId") or record["id"])
        name = str(record["id"]) if name in self._names else name  # ids of local servers repeat: ``call_0``
        self._names.add(name)
        call = self._calls[str(record["id"])] = Call(record, name)
        step.calls.append(call)
        part.model = part.model or text_or_none(details.get("model"))

    def _event(self, record: Record) -> None:
        kind, at = str(record.get("type")), record.get("ts")
        payload: object = record.get("data")
        data = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {"text": payload}
        if data.get("synthetic") is True:  # a program that plays the user, so this is a message to the agent
            record = {**record, "agent": next((name for name in self._parts if name != record.get("agent")), "main")}
        part = self._part(record)
        words = str(data.get("text") or "")
        if kind in ("user_message", "user_message_chunk"):
            step = self._new(part, "user", at)
            step.text, step.data = words, {name: value for name, value in data.items() if name != "text"}
        elif kind in _MESSAGE_TYPES or kind in _THOUGHT_TYPES:
            step = self._open(part, at)
            if step.calls or step.text:  # words after a call belong to the next response
                step = self._new(part, "agent", at)
            if kind in _MESSAGE_TYPES:
                step.text = words
            else:
                step.thought = f"{step.thought}\n{words}" if step.thought else words
        elif kind == "usage":
            step = self._open(part, at)
            if step.usage:
                step = self._new(part, "agent", at)
            step.usage = data
            part.model = part.model or text_or_none(data.get("model"))
        else:
            step = self._new(part, kind, at)
            step.text, step.data = words, data

    def _open(self, part: Part, at: str | None) -> Turn:
        """Return the current model response, or a new one."""
        last = part.steps[-1] if part.steps else None
        return last if last is not None and last.source == "agent" else self._new(part, "agent", at)

    def _new(self, part: Part, source: str, at: str | None) -> Turn:
        part.steps.append(Turn(source, at))
        return part.steps[-1]


def build_conversation(session: str, records: Iterable[Record]) -> Conversation:
    """Return the conversation in the records of a session. The records are in the order of the log."""
    reader = _Reader(session)
    for record in records:
        reader.read(record)
    parts = reader.found.parts
    main = next((part for part in parts if part.agent == "main"), None)
    # Foreign logs use any names. The main agent is the one that a person speaks to.
    main = main or next((part for part in parts if any(step.source == "user" for step in part.steps)), None)
    if main is not None:
        # No call started the main agent, whatever the log says.
        main.parent = None
        # The other agents keep the order of their first records.
        parts.sort(key=lambda part: part is not main)
    return reader.found


def read_usage(
    step: Turn, names: Mapping[str, Sequence[str]], losses: Losses, lost: str = "token counts of other kinds"
) -> dict[str, int]:
    """Return a step's token counts by the names of another format; count a loss if it has other kinds too."""
    written = [own for each in names.values() for own in each]
    losses[lost] += any(step.usage.get(name) for name in _TOKENS if name not in written)
    counts = {name: [step.usage[own] for own in each if isinstance(step.usage.get(own), int)] for name, each in names.items()}
    return {name: found[0] for name, found in counts.items() if found}


def as_text(value: object) -> str | None:
    """Return an output as text; other values as JSON."""
    return value if isinstance(value, str) or value is None else json.dumps(value)


Losses = Counter[str]
"""What a format could not hold, as words for people -> how often."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A format for export.

    Attributes:
        name: its name for ``ctxmgr export --format NAME``.
        title: its name for people.
        write: yields the lines of a conversation and adds to the losses. Several conversations may follow each other in a file.
    """

    name: str
    title: str
    write: Callable[[Conversation, Losses], Iterator[str]]


def lose_events(conversation: Conversation, losses: Losses, *written: str) -> None:
    """Count what the conversation left out, and its events of types that the format does not write."""
    losses.update(conversation.left)
    for part in conversation.parts:
        for step in part.steps:
            if step.source not in ("user", "agent", *written):
                losses[f"{step.source} events"] += 1
    if conversation.outcome is not None and "outcome" not in written:
        losses["the outcome of the session"] += 1
