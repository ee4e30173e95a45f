"""Separate the main thread and the sub-agents of a session."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.importers.claude_code.files import Head, agent_meta
from ctxmgr.importers.claude_code.raw_records import Raw, Source
from ctxmgr.importers.claude_code.usage import Response
from ctxmgr.importers.claude_code.values import ident, mapping, text, texts
from ctxmgr.log.codec import Record
from ctxmgr.types.importing import FileCount

_LAUNCHERS = frozenset({"Task", "Agent"})
_COMPARED = 4_000


@dataclass(slots=True)
class Launch:
    """A call that starts a sub-agent; ``taken`` once a thread without a better link was matched to it by its prompt."""

    entry: str
    kind: str | None
    prompt: str
    turn: str | None
    taken: bool = False


@dataclass(slots=True)
class Thread:
    """One line of work inside a session.

    Attributes:
        parent: entry id of the call that launched it; turn: the person's turn it works on.
        held: results whose status is open until the next record; compaction: one that waits for its summary.
    """

    agent: str
    parent: str | None = None
    turn: str | None = None
    is_main: bool = False
    response: Response | None = None
    held: list[Record] = field(default_factory=lambda: list[Record]())
    compaction: Record | None = None


@dataclass(slots=True)
class Call:
    """A tool call of one file, until its result comes."""

    entry: str
    at: float | None


@dataclass(slots=True)
class LogFile:
    """One file of the group while it is read.

    Attributes:
        calls: those without a result yet, by tool_use id; seen: the uuids read so far.
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
    orphans: int = 0


class Threads:
    """The threads of one session across its files."""

    def __init__(self) -> None:
        self._launches: dict[str, Launch] = {}
        self._by_agent: dict[str, str] = {}
        self._entries: dict[str, str] = {}

    def of(self, file: LogFile, raw: Raw) -> Thread:
        """Return the thread that a record belongs to; it is named once and for all when its first record is met."""
        key, agent_id, launch_id = self._key(file, raw.value)
        thread = file.threads.get(key)
        if thread is None:
            thread = self._start(file, raw, agent_id, launch_id) if key else Thread("main", is_main=True)
            file.threads[key] = thread
            if not file.count.agent or (file.head.agent_id is None and key == ""):
                file.count.agent = thread.agent
        return thread

    def called(self, tool_use: str | None, name: str, entry: str, given: object, thread: Thread) -> None:
        """Remember a call, so that sub-agents and notifications can be linked to it."""
        if tool_use is None:
            return
        self._entries[tool_use] = entry
        arguments = mapping(given)
        if name in _LAUNCHERS:
            prompt = text(arguments.get("prompt"))[:_COMPARED].strip()
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
        agent_id = ident(value.get("agentId"))
        if parent_tool := ident(value.get("parent_tool_use_id")):
            return f"tool:{parent_tool}", agent_id or parent_tool[-8:], parent_tool
        if file.head.agent_id is not None:
            return "file", file.head.agent_id, None
        if value.get("isSidechain") is not True:
            return "", None, None
        if agent_id is not None:
            return f"agent:{agent_id}", agent_id, None
        root = self._root(file, value)
        return f"root:{root}", root, None

    def _root(self, file: LogFile, value: dict[str, Any]) -> str:
        """Return the uuid with which an inline sub-agent began; early versions link its records by parents only."""
        own, parent = ident(value.get("uuid")), ident(value.get("parentUuid"))
        root = file.roots.get(parent) if parent is not None else own
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
        return Thread(f"{kind[:80]}-{(agent_id or 'unknown')[:8]}", parent, turn)

    def _by_prompt(self, value: dict[str, Any]) -> Launch | None:
        """Match a sub-agent that nothing links to its call by the prompt it was given."""
        words = "\n".join(texts(mapping(value.get("message")).get("content")))[:_COMPARED].strip()
        for launch in self._launches.values():
            if words and not launch.taken and launch.prompt == words:
                launch.taken = True
                return launch
        return None
