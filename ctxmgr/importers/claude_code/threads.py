"""The main thread and the sub-agents of a session: each a part of its own, whose model responses count once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.importers.claude_code.records import Head, Raw, Source, agent_meta
from ctxmgr.importers.transcript import Call, Part, Transcript
from ctxmgr.importers.values import ident, mapping, positive, text, texts
from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount

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
    usage: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_TOKENS.values(), 0))
    stopped: bool = False

    def add(self, message: dict[str, Any]) -> None:
        """Take over the figures of one more line."""
        usage = mapping(message.get("usage"))
        found = self.usage
        for name, ours in _TOKENS.items():
            count = usage.get(name)
            # Each line of a response repeats its figures so far, so the largest is that of the response.
            if type(count) is int and count > found[ours] and positive(count) is not None:
                found[ours] = count
        self.stopped = ident(message.get("stop_reason")) is not None


def response_key(record: dict[str, Any], message: dict[str, Any]) -> str | None:
    """Return what all lines of one response have in common."""
    return ident(message.get("id")) or ident(record.get("requestId")) or ident(record.get("uuid"))


def new_response(key: str, ts: str | None, record: dict[str, Any], message: dict[str, Any]) -> Response:
    """Return a response without any figures yet.

    Its event's id names the first line too: gateways hand out response ids that are unique in one session only.
    """
    line = ident(record.get("uuid"))
    event = f"usage:{key}:{line[:8]}" if line else f"usage:{key}"
    return Response(key, event, ts, ident(message.get("model")))


@dataclass(slots=True)
class Thread(Transcript):
    """One line of work inside a session; its events name no process and no turn.

    Attributes:
        undecided: results whose status is open until the next record.
        compaction: one that waits for its summary.
    """

    is_main: bool = False
    response: Response | None = None
    undecided: list[Record] = field(default_factory=lambda: list[Record]())
    compaction: Record | None = None

    def own_id(self, name: object) -> str:
        """Return an id that is taken as it stands: records have one of their own, or are named by their place."""
        return str(name)

    def source_of(self, call_id: str) -> dict[str, object]:
        """Return the id of a call and the file and line where it stands."""
        return {"toolUseId": call_id or None, "file": self.count.path.name, "line": self.place}

    def when(self, at: object) -> str | None:
        """Return the time of a record, which was read before, since files are put in step by it."""
        return at if isinstance(at, str) else None

    def lasted(self, call: Call, at: object) -> float | None:
        """Return whole milliseconds: the times of the lines tell no more."""
        found = Transcript.lasted(self, call, at)
        return None if found is None else round(found)

    def event(
        self, kind: str, data: Mapping[str, object], at: object = None, record_id: object = None, *, entry: str | None = None
    ) -> str:
        """Add an event and return its id."""
        made = self.own_id(record_id)
        self.add_event(made, kind, data, at, entry=entry)
        return made

    def release(self, status: str) -> None:
        """Add the results that were held back, now that it is clear whether the person interrupted."""
        for result in self.undecided:
            result["status"] = status
            if status == "interrupted":
                result["error"]["type"] = "interrupted"
            self.add(result)
        self.undecided.clear()


@dataclass(slots=True)
class Launch:
    """A call that starts a sub-agent; ``taken`` once a thread without a better link was matched to it by its prompt."""

    entry: str
    kind: str | None
    prompt: str
    turn: str | None
    taken: bool = False


@dataclass(slots=True)
class LogFile:
    """One file of the group while it is read.

    Attributes:
        calls: those without a result yet, by tool_use id, of all its threads; seen: the uuids read so far.
        roots: of inline sub-agents' records, the uuid their thread began with.
        blocks: of responses without record ids (early stream-json), the blocks met so far, by response.
        prompts, entries: places of the person's prompts and of the entries on the branch that is now active.
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
    """The threads of one session across its files, all of which add to the records of the session."""

    def __init__(self, session: Part) -> None:
        self._session = session
        self._launches: dict[str, Launch] = {}
        self._by_agent: dict[str, str] = {}
        self._entries: dict[str, str] = {}

    def of(self, file: LogFile, raw: Raw) -> Thread:
        """Return the thread that a record belongs to; it is named once and for all when its first record is met."""
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

    def called(self, tool_use: str | None, name: str | None, entry: str, given: object, thread: Thread) -> None:
        """Remember a call, so that sub-agents and notifications can be linked to it."""
        if tool_use is None:
            return
        self._entries[tool_use] = entry
        if name in _LAUNCHERS:
            arguments = mapping(given)
            prompt = (text(arguments.get("prompt")) or "")[:_MAX_COMPARED].strip()
            self._launches[tool_use] = Launch(entry, ident(arguments.get("subagent_type")), prompt, thread.turn)

    def answered(self, entry: str, side: object) -> None:
        """Remember which sub-agent a launching call's result names."""
        if agent_id := ident(mapping(side).get("agentId")):
            self._by_agent[agent_id] = entry

    def entry_of(self, tool_use: str | None, task: str | None) -> str | None:
        """Return the entry of a call, known by its tool_use id or by the task or agent that it started."""
        return self._entries.get(tool_use or "") or self._by_agent.get(task or "")

    def _key(self, file: LogFile, value: dict[str, Any]) -> tuple[str, str | None, str | None]:
        """Return the thread's key inside its file, its agent id, and the launching call's id where it is named."""
        if parent_tool := ident(value.get("parent_tool_use_id")):
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
        """Return the uuid with which an inline sub-agent began; early versions link its records by parents only."""
        own, parent = ident(value.get("uuid")), ident(value.get("parentUuid"))
        root = file.roots.get(parent) if parent is not None else own
        # Parents that were never written are common, so without one the thread before is taken to go on.
        root = root or file.last_root or own or "unknown"
        if own is not None:
            file.roots[own] = root
        file.last_root = root
        return root

    def _start(self, file: LogFile, raw: Raw, agent_id: str | None, launch_id: str | None) -> Thread:
        meta = agent_meta(file.path) if file.head.agent_id is not None else {}
        launch = self._launches.get(launch_id or ident(meta.get("toolUseId")) or "") or self._by_prompt(raw.value)
        kind = ident(meta.get("agentType")) or (launch.kind if launch else None) or "agent"
        parent = launch.entry if launch else self._by_agent.get(agent_id or "")
        turn = ident(raw.value.get("promptId")) or (launch.turn if launch else None)
        agent = f"{kind[:80]}-{(agent_id or 'unknown')[:8]}"
        return self._new(file, agent, parent, turn)

    def _by_prompt(self, value: dict[str, Any]) -> Launch | None:
        """Match a sub-agent that nothing links to its call by the prompt it was given."""
        words = "\n".join(texts(mapping(value.get("message")).get("content")))[:_MAX_COMPARED].strip()
        for launch in self._launches.values():
            # Two calls may be given the same prompt; each is matched once, in their order.
            if words and not launch.taken and launch.prompt == words:
                launch.taken = True
                return launch
        return None
