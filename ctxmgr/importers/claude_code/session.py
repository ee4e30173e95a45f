"""Assemble the records of one session: calls, results, messages, turns and branches of its main thread and sub-agents.

A record contains only facts from its own line and earlier ones, so that a file that has grown yields the same records again,
and more. Facts that depend on a later line are held back until that line comes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.importers.claude_code.events import (
    attachment_event,
    error_object,
    is_summary,
    judge,
    notification,
    read_ending,
    record_origin,
    result_output,
    starts_turn,
    system_event,
    text_origin,
)
from ctxmgr.importers.claude_code.records import Head, Raw, Source, agent_meta
from ctxmgr.importers.transcript import Call, Part, Transcript
from ctxmgr.importers.values import ident, mapping, positive, sequence, shorten, text, texts
from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount

# ``Task`` was renamed to ``Agent``. Logs with either name exist.
_LAUNCHERS = frozenset({"Task", "Agent"})
_MAX_COMPARED = 4_000
_TOKENS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cache_read_input_tokens": "cacheReadTokens",
    "cache_creation_input_tokens": "cacheCreationTokens",
}


@dataclass(slots=True)
class Response:
    """A model response while its lines are read.

    Attributes:
        key: its id; event: id of the event that reports it; ts: time of its first line.
        usage: the largest counts so far, because they may grow line by line.
        stopped: whether its last line says why the model stopped.
    """

    key: str
    event: str
    ts: str | None
    model: str | None
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TOKENS.values(), 0))
    stopped: bool = False

    def add(self, message: dict[str, Any]) -> None:
        """Add the counts of one more line."""
        usage = mapping(message.get("usage"))
        found = self.usage
        for name, ours in _TOKENS.items():
            count = usage.get(name)
            # Each line of a response repeats the counts so far, so the largest is that of the response.
            if type(count) is int and count > found[ours] and positive(count) is not None:
                found[ours] = count
        self.stopped = ident(message.get("stop_reason")) is not None


def response_key(record: dict[str, Any], message: dict[str, Any]) -> str | None:
    """Return the key that all lines of one response share."""
    return ident(message.get("id")) or ident(record.get("requestId")) or ident(record.get("uuid"))


def new_response(key: str, ts: str | None, record: dict[str, Any], message: dict[str, Any]) -> Response:
    """Return a response without counts so far.

    The id of its event also contains the first line, because gateways use response ids that are unique only in one session.
    """
    line = ident(record.get("uuid"))
    event = f"usage:{key}:{line[:8]}" if line else f"usage:{key}"
    return Response(key, event, ts, ident(message.get("model")))


@dataclass(slots=True)
class Thread(Transcript):
    """One thread of work inside a session. Its events have no process and no turn.

    Attributes:
        undecided: results whose status depends on the next record.
        compaction: a compaction that waits for its summary.
    """

    is_main: bool = False
    response: Response | None = None
    undecided: list[Record] = field(default_factory=lambda: list[Record]())
    compaction: Record | None = None

    def own_id(self, name: object) -> str:
        """Return the id unchanged, because records have their own ids or ids made from their place."""
        return str(name)

    def call_source(self, call_id: str) -> dict[str, object]:
        """Return where a call stands: {toolUseId, file, line}, the file without its folder."""
        return {"toolUseId": call_id or None, "file": self.count.path.name, "line": self.place}

    def record_time(self, at: object) -> str | None:
        """Return the time of a record, which was parsed earlier to merge the files."""
        return at if isinstance(at, str) else None

    def duration(self, call: Call, at: object) -> float | None:
        """Return whole milliseconds, because the times of lines are not more precise."""
        found = Transcript.duration(self, call, at)
        return None if found is None else round(found)

    def event(
        self, kind: str, data: Mapping[str, object], at: object = None, record_id: object = None, *, entry: str | None = None
    ) -> str:
        """Add an event and return its id."""
        made = self.own_id(record_id)
        self.add_event(made, kind, data, at, entry=entry)
        return made

    def release(self, status: str) -> None:
        """Add the held-back results, now that it is clear whether the person interrupted."""
        for result in self.undecided:
            result["status"] = status
            if status == "interrupted":
                result["error"]["type"] = "interrupted"
            self.add(result)
        self.undecided.clear()


@dataclass(slots=True)
class Launch:
    """A call that starts a sub-agent. ``taken`` is set when a thread without a better link was matched by its prompt."""

    entry: str
    kind: str | None
    prompt: str
    turn: str | None
    taken: bool = False


@dataclass(slots=True)
class LogFile:
    """One file of the group while it is read.

    Attributes:
        calls: tool_use id -> call without a result, for all threads; seen: the uuids read so far.
        roots: record of an inline sub-agent -> uuid of the first record of its thread.
        blocks: for responses without record ids (early stream-json), number of blocks so far.
        prompts, entries: places of the person's prompts and of the entries on the active branch.
    """

    path: Path
    head: Head
    count: FileCount
    source: Source
    is_first: bool
    calls: dict[str, Call] = field(default_factory=lambda: dict[str, Call]())
    seen: set[str] = field(default_factory=lambda: set[str]())
    roots: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    blocks: Counter[str] = field(default_factory=lambda: Counter[str]())
    threads: dict[str, Thread] = field(default_factory=lambda: dict[str, Thread]())
    responses: set[str] = field(default_factory=lambda: set[str]())
    prompts: list[int] = field(default_factory=lambda: list[int]())
    entries: list[tuple[int, str]] = field(default_factory=lambda: list[tuple[int, str]]())
    last_root: str = ""
    writes_stops: bool = False


class Threads:
    """The threads of one session in all its files. All of them add to the records of the session."""

    def __init__(self, session: Part) -> None:
        self._session = session
        self._launches: dict[str, Launch] = {}
        self._by_agent: dict[str, str] = {}
        self._entries: dict[str, str] = {}

    def find_thread(self, file: LogFile, raw: Raw) -> Thread:
        """Return the thread of a record. A thread is named once, at its first record."""
        key, agent_id, launch_id = self._key(file, raw.value)
        thread = file.threads.get(key)
        if thread is None:
            thread = self._start(file, raw, agent_id, launch_id) if key else self.main(file)
            file.threads[key] = thread
            if file.head.agent_id is None and key == "":
                file.count.agent = thread.agent
        thread.place = raw.number
        return thread

    def main(self, file: LogFile) -> Thread:
        """Return a new main thread."""
        return self._new(file, "main", is_main=True)

    def _new(
        self, file: LogFile, agent: str, parent: str | None = None, turn: str | None = None, *, is_main: bool = False
    ) -> Thread:
        session = self._session
        return Thread(
            session.session, file.count, session.source, agent, parent, turn=turn, records=session.records,
            numbers=session.numbers, counter=session.counter, calls=file.calls, is_main=is_main,
        )  # fmt: skip

    def remember_call(self, tool_use: str | None, name: str | None, entry: str, given: object, thread: Thread) -> None:
        """Remember a call, so that sub-agents and notifications can be linked to it."""
        if tool_use is None:
            return
        self._entries[tool_use] = entry
        if name in _LAUNCHERS:
            arguments = mapping(given)
            prompt = (text(arguments.get("prompt")) or "")[:_MAX_COMPARED].strip()
            self._launches[tool_use] = Launch(entry, ident(arguments.get("subagent_type")), prompt, thread.turn)

    def remember_agent(self, entry: str, side: object) -> None:
        """Remember the sub-agent that the result of a launching call names."""
        if agent_id := ident(mapping(side).get("agentId")):
            self._by_agent[agent_id] = entry

    def find_entry(self, tool_use: str | None, task: str | None) -> str | None:
        """Return the entry of a call, by its tool_use id or by the task or agent that it started."""
        # The task of a background agent has the agent's id.
        return self._entries.get(tool_use or "") or self._by_agent.get(task or "")

    def _key(self, file: LogFile, value: dict[str, Any]) -> tuple[str, str | None, str | None]:
        """Return (key of the thread inside its file, id of its agent, id of the launching call if it is named)."""
        if parent_tool := ident(value.get("parent_tool_use_id")):
            # The end of the call's id, because all ids have the same beginning: ``toolu_01``.
            return f"tool:{parent_tool}", ident(value.get("agentId")) or parent_tool[-8:], parent_tool
        if file.head.agent_id is not None:
            return "file", file.head.agent_id, None
        if value.get("isSidechain") is not True:
            return "", None, None
        agent_id = ident(value.get("agentId"))
        if agent_id is not None:
            return f"agent:{agent_id}", agent_id, None
        root = self._root(file, value)
        return f"root:{root}", root, None

    def _root(self, file: LogFile, value: dict[str, Any]) -> str:
        """Return the uuid with which an inline sub-agent began. Early versions link its records only by parents."""
        own, parent = ident(value.get("uuid")), ident(value.get("parentUuid"))
        root = file.roots.get(parent) if parent is not None else own
        # Many parents were never written. Without a parent, assume that the previous thread continues.
        root = root or file.last_root or own or "unknown"
        if own is not None:
            file.roots[own] = root
        file.last_root = root
        return root

    def _start(self, file: LogFile, raw: Raw, agent_id: str | None, launch_id: str | None) -> Thread:
        # Only a sub-agent with its own log has a file beside it.
        meta = agent_meta(file.path) if file.head.agent_id is not None else {}
        launch = self._launches.get(launch_id or ident(meta.get("toolUseId")) or "") or self._find_by_prompt(raw.value)
        kind = ident(meta.get("agentType")) or (launch.kind if launch else None) or "agent"
        parent = launch.entry if launch else self._by_agent.get(agent_id or "")
        turn = ident(raw.value.get("promptId")) or (launch.turn if launch else None)
        agent = f"{kind[:80]}-{(agent_id or 'unknown')[:8]}"
        return self._new(file, agent, parent, turn)

    def _find_by_prompt(self, value: dict[str, Any]) -> Launch | None:
        """Match a sub-agent without a link to its call by its prompt."""
        words = "\n".join(texts(mapping(value.get("message")).get("content")))[:_MAX_COMPARED].strip()
        for launch in self._launches.values():
            # Two calls may have the same prompt. Each is matched once, in their order.
            if words and not launch.taken and launch.prompt == words:
                launch.taken = True
                return launch
        return None


_SPOKEN = frozenset({"user", "assistant", "system", "attachment"})


class Session:
    """The records of one session while its files are read in parallel.

    Args:
        session: the part to which its threads add their records.
    """

    def __init__(self, session: Part) -> None:
        self._session = session
        self._threads = Threads(session)
        self._ending: Record | None = None

    def feed(self, file: LogFile, raw: Raw) -> list[Record]:
        """Return the records for one record of a file, including earlier ones that waited for it."""
        self._read(file, raw)
        records = self._session.take()[1] if self._session.records else []
        return [shorten(record) for record in records] if raw.long else records

    def finish(self, file: LogFile) -> list[Record]:
        """Return the remaining records at the end of a file, and complete its counts.

        Facts that depend on the next line are not guessed: a refusal that may be an interrupt, and a compaction without its
        summary, wait until the file has grown.
        """
        threads = list(file.threads.values())
        for thread in threads:
            response = thread.response
            _count(file, thread, shown=response is None or response.stopped or not file.writes_stops)
        for thread in threads[:1]:
            thread.orphans = sum(each.orphans for each in threads)
            thread.finish()
        return self._session.take()[1]

    def end(self) -> list[Record]:
        """Return the end of the session if the source states one: the last ``result`` of a stream-json log."""
        return [] if self._ending is None else [self._ending]

    def _read(self, file: LogFile, raw: Raw) -> None:
        value = raw.value
        # The journal of a workflow has records of type ``result`` too. They name an agent and no session.
        if raw.kind == "result" and "sessionId" in value:
            self._read_end(file, raw)
        if raw.kind not in _SPOKEN or (raw.kind == "system" and "subtype" not in value):
            return
        if uuid := ident(value.get("uuid")):
            if uuid in file.seen:  # a replay, e.g. when a session is resumed
                return
            file.seen.add(uuid)
        thread = self._threads.find_thread(file, raw)
        words = texts(mapping(value.get("message")).get("content")) if raw.kind == "user" else []
        summary = raw.kind == "user" and is_summary(value, words[0] if words else "")
        if summary or thread.compaction is not None:
            self._add_compaction(file, raw, thread, "\n".join(words) if summary else None)
        if summary:
            return
        if raw.kind == "assistant":
            self._assistant(file, raw, thread)
        elif raw.kind == "user":
            self._read_user(file, raw, thread)
        else:
            self._add_program_event(file, raw, thread)

    # --- the model

    def _assistant(self, file: LogFile, raw: Raw, thread: Thread) -> None:
        message = mapping(raw.value.get("message"))
        thread.release("denied")  # the model continued, so the earlier refusals were no interrupts
        key = response_key(raw.value, message)
        _respond(file, raw, thread, key)
        for place, block in enumerate(_blocks(message.get("content"))):
            kind = text(block.get("type")) or ""
            record_id = self._record_id(file, raw, place, key)
            if kind == "text":
                file.count.messages += 1
                thread.event(*_message_or_error(raw.value, block), raw.ts, record_id)
            elif kind in ("thinking", "redacted_thinking"):
                file.count.thoughts += 1
                thinking = {"text": text(block.get("thinking")) or ""} if kind == "thinking" else {"text": "", "redacted": True}
                thread.event("thought", thinking, raw.ts, record_id)
            elif kind.endswith("tool_use"):
                self._read_entry(file, raw, thread, block, record_id)
            elif kind.endswith("tool_result"):
                self._result(file, raw, thread, block)

    def _read_entry(self, file: LogFile, raw: Raw, thread: Thread, block: dict[str, Any], record_id: str) -> None:
        message = mapping(raw.value.get("message"))
        tool_use = ident(block.get("id"))
        name, given = text(block.get("name")), block.get("input")
        thread.step = response_key(raw.value, message)
        entry = thread.call(
            tool_use, name, given, raw.ts, record_id=record_id if ident(raw.value.get("uuid")) else tool_use or record_id,
            # Bash's limit is in milliseconds. Other tools use the name for other things.
            timeout_ms=mapping(given).get("timeout") if name == "Bash" else None,
            meta={
                "cwd": ident(raw.value.get("cwd")), "model": ident(message.get("model")),
                "version": ident(raw.value.get("version")),
            },
        )  # fmt: skip
        if thread.is_main and file.is_first:
            file.entries.append((raw.place, entry))
        self._threads.remember_call(tool_use, name, entry, given, thread)

    # --- tools' answers

    def _result(self, file: LogFile, raw: Raw, thread: Thread, block: dict[str, Any]) -> None:
        tool_use = ident(block.get("tool_use_id")) or ""
        call = file.calls.get(tool_use)
        if call is None:
            thread.orphans += 1
            return
        status, undecided = judge(raw.value, block)
        output, remarks = result_output(raw.value, block, file.path, self._session.session)
        side = raw.value.get("toolUseResult")
        details = mapping(side)
        self._threads.remember_agent(call.entry, side)
        thread.result(
            tool_use, output, raw.ts, status=status, stated=error_object(status, raw.value, block),
            duration_ms=positive(details.get("durationMs", details.get("totalDurationMs"))), meta=remarks,
        )  # fmt: skip
        # Each call has one result, so a second result counts as one without a call.
        del file.calls[tool_use]
        if undecided:
            thread.undecided.append(thread.take_back())

    # --- people, and the harness in their name

    def _read_user(self, file: LogFile, raw: Raw, thread: Thread) -> None:
        content = mapping(raw.value.get("message")).get("content")
        # Words of a person or a tool complete the model's response, even in versions without a stop reason.
        if thread.response is not None:
            thread.response.stopped = True
        # In a sub-agent's log, the user is the agent that started it.
        own = record_origin(raw.value) or (None if thread.is_main else "parentAgent")
        human: list[str] = []
        first, pictures, answers = 0, 0, 0
        for place, block in enumerate(_blocks(content)):
            kind = text(block.get("type")) or ""
            if kind.endswith("tool_result"):
                answers += 1
                self._result(file, raw, thread, block)
            elif kind in ("image", "document"):
                pictures += 1
            elif isinstance(words := block.get("text"), str):
                origin, said = text_origin(words)
                if origin is None and own is None:
                    first = first if human else place
                    human.append(said)
                else:
                    self._add_harness_text(file, raw, thread, place, origin or own or "", words)
        if human or (pictures and own is None and not answers):
            self._add_prompt(file, raw, thread, first, "\n".join(human), pictures)
        elif isinstance(content, str) and raw.value.get("isMeta") is not True:
            file.count.harness_messages += 1

    def _add_harness_text(self, file: LogFile, raw: Raw, thread: Thread, place: int, origin: str, words: str) -> None:
        record_id = self._record_id(file, raw, place)
        if origin == "interrupt":
            thread.release("interrupted")
            thread.event("interrupt", {"text": words}, raw.ts, record_id)
            return
        if raw.value.get("isMeta") is not True:
            thread.release("denied")
            if starts_turn(origin) if thread.is_main else thread.turn is None:
                thread.turn = ident(raw.value.get("promptId")) or record_id
        thread.event("nudge", {"text": words, "origin": origin}, raw.ts, record_id)
        self._add_notification(raw, thread, record_id)

    def _add_prompt(self, file: LogFile, raw: Raw, thread: Thread, place: int, words: str, pictures: int) -> None:
        record_id = self._record_id(file, raw, place)
        file.count.user_messages += 1
        thread.release("denied")
        if file.is_first:
            _rewind(file, raw, thread, record_id)
        thread.turn = ident(raw.value.get("promptId")) or record_id
        thread.event("user_message", {"text": words} | ({"pictures": pictures} if pictures else {}), raw.ts, record_id)

    # --- the program itself

    def _add_program_event(self, file: LogFile, raw: Raw, thread: Thread) -> None:
        found = system_event(raw.value) if raw.kind == "system" else attachment_event(raw.value)
        record_id = self._record_id(file, raw, 0)
        if found is not None:
            kind, data = found
            # A prompt typed while the agent worked shows that the person did not interrupt.
            if kind == "user_message":
                thread.release("denied")
            thread.event(kind, data, raw.ts, record_id, entry=self._threads.find_entry(ident(data.get("toolUseId")), None))
            if kind == "compaction" and "partial" not in data:
                thread.compaction = thread.take_back()
        self._add_notification(raw, thread, record_id)

    def _add_compaction(self, file: LogFile, raw: Raw, thread: Thread, summary: str | None) -> None:
        """Add the compaction that waited for its summary. A summary without a compaction becomes one."""
        event, thread.compaction = thread.compaction, None
        if event is not None:
            thread.add(event)
        elif summary is not None:
            thread.event("compaction", {}, raw.ts, self._record_id(file, raw, 0))
        if summary is not None:
            thread.records[-1]["data"]["summary"] = summary

    def _add_notification(self, raw: Raw, thread: Thread, record_id: str) -> None:
        found = notification(raw.value)
        if found is None:
            return
        tool_use, task, update = found
        entry = self._threads.find_entry(tool_use, task)
        if entry is not None:
            thread.event("tool_call_update", update, raw.ts, f"{record_id}:update", entry=entry)

    def _read_end(self, file: LogFile, raw: Raw) -> None:
        outcome, error = read_ending(raw.value)
        thread = self._threads.main(file)
        thread.end(outcome, raw.ts)
        # A log may contain several runs in sequence. Only the last result ends the session.
        self._ending = thread.take_back()
        if error is not None:
            thread.event(*error, raw.ts, self._record_id(file, raw, 0))

    def _record_id(self, file: LogFile, raw: Raw, place: int, key: str | None = None) -> str:
        """Return the source's id for a block, or an id from its place in the response or in the file."""
        if uuid := ident(raw.value.get("uuid")):
            return f"{uuid}:{place}" if place else uuid
        if key is not None:
            file.blocks[key] += 1
            return f"{key}:{file.blocks[key] - 1}"
        return f"{self._session.session}:{raw.number}:{place}"


def _blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [mapping(item) for item in sequence(content)]


def _message_or_error(record: dict[str, Any], block: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    words = text(block.get("text")) or ""
    if record.get("isApiErrorMessage") is not True:
        return "message", {"text": words}
    data: dict[str, Any] = {"text": words, "reason": "apiError"}
    if (status := positive(record.get("apiErrorStatus"))) is not None:
        data["status"] = status
    return "error", data


def _respond(file: LogFile, raw: Raw, thread: Thread, key: str | None) -> None:
    """Take the facts of a line about its response. The first line of another response completes the previous one."""
    message = mapping(raw.value.get("message"))
    if thread.response is not None and thread.response.key != key:
        _count(file, thread)
    if key is None:
        return
    if thread.response is None:
        # Its lines continue after those of another response, and its tokens are already counted.
        if key in file.responses:
            return
        file.responses.add(key)
        file.count.responses += 1
        thread.response = new_response(key, raw.ts, raw.value, message)
    thread.response.add(message)
    file.writes_stops = file.writes_stops or thread.response.stopped


def _count(file: LogFile, thread: Thread, *, shown: bool = True) -> None:
    """Count the tokens of a response, and add them unless they may still grow."""
    response, thread.response = thread.response, None
    if response is not None:
        for name, tokens in response.usage.items():
            file.count.usage[name] += tokens
        if shown:
            data = {**response.usage, "model": response.model, "responseId": response.key}
            thread.event("usage", data, response.ts, response.event)


def _rewind(file: LogFile, raw: Raw, thread: Thread, record_id: str) -> None:
    """Report the branch that a person left by going back to an earlier prompt and writing another one."""
    # Many parents were never written, e.g. after a compaction. They have no place, and do not prove a rewind.
    parent = file.source.places.get(ident(raw.value.get("parentUuid")) or "")
    if parent is not None and any(place > parent for place in file.prompts):
        abandoned = [entry for place, entry in file.entries if place > parent]
        file.prompts = [place for place in file.prompts if place <= parent]
        file.entries = [(place, entry) for place, entry in file.entries if place <= parent]
        thread.event("rewind", {"abandoned": abandoned}, raw.ts, f"{record_id}:rewind")
    file.prompts.append(raw.place)
