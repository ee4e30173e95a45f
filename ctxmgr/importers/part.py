"""The records of one agent's part of a session, in the shapes that records of every format have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count as count_from
from pathlib import Path
from typing import Any

from ctxmgr.importers.log_files import plain_name
from ctxmgr.importers.values import SIMPLE, clean, moment
from ctxmgr.log.codec import Record
from ctxmgr.types.importing import FileCount
from ctxmgr.types.plain_records import build


@dataclass(slots=True)
class Part:
    """The records of one agent's work in a session: calls, their results, events, and the session itself.

    Attributes:
        session: its id; process: the execution of it, the session itself where a format tells none apart.
        source: name of the format.
        agent: its name; parent: the entry by which another agent started this one.
        turn: id of the present human turn.
        records: added, and not yet taken; numbers: their places among the records of all parts.
        counter: numbers the records of all parts of a log in the order in which they are added.
    """

    session: str
    count: FileCount
    source: str
    agent: str = "main"
    parent: str | None = None
    process: str = ""
    turn: str | None = None
    records: list[Record] = field(default_factory=lambda: list[Record]())
    counter: Iterator[int] = field(default_factory=count_from)
    numbers: list[int] = field(default_factory=lambda: list[int]())
    _asked: object = None
    _moment: str | None = None

    def __post_init__(self) -> None:
        self.process = self.process or self.session

    def when(self, at: object) -> str | None:
        """Return a time as records have it, from any of the ways in which sources tell one."""
        if at is not self._asked:
            self._asked, self._moment = at, moment(at)
        return self._moment

    def add(self, record: Record) -> None:
        """Add a record, numbered among those of all parts."""
        self.numbers.append(next(self.counter))
        self.records.append(record)

    def take(self) -> tuple[list[int], list[Record]]:
        """Return what was added since last time, and the places of that among the records of all parts."""
        taken = self.numbers[:], self.records[:]
        self.numbers.clear()
        self.records.clear()
        return taken

    def take_back(self) -> Record:
        """Take back the record that was added last; what comes later decides when it is added again."""
        self.numbers.pop()
        return self.records.pop()

    def entry(
        self,
        name: str,
        action: str,
        given: object,
        at: object,
        *,
        meta: Mapping[str, object],
        input_type: str | None = None,
        turn: str | None = None,
        step: str | None = None,
        timeout_ms: float | None = None,
        parent: str | None = None,
    ) -> None:
        """Add a tool call by the id of its entry; its result comes later, or never."""
        self.count.tool_calls[action] += 1
        self.add(build(
            "entry", self.session, self.when(at), id=name, agent=self.agent, action=action,
            inputType=input_type or f"{action}Input", input=given, process=self.process, turn=turn or self.turn, step=step,
            parent=parent or self.parent or None, timeoutMs=timeout_ms, meta=_present(meta),
        ))  # fmt: skip

    def outcome(
        self,
        entry: str,
        status: str,
        at: object,
        *,
        output: object,
        error: Mapping[str, object] | None,
        duration_ms: float | None,
        meta: Mapping[str, object] | None,
    ) -> None:
        """Add what came of an entry."""
        self.count.failed += status != "ok"
        self.add(build(
            "result", self.session, self.when(at), entry=entry, status=status, output=output, error=error,
            durationMs=duration_ms, meta=meta or None,
        ))  # fmt: skip

    def told(
        self,
        name: str,
        kind: str,
        data: Mapping[str, object],
        at: object,
        *,
        process: str | None = None,
        turn: str | None = None,
        entry: str | None = None,
    ) -> None:
        """Add an event by its id."""
        self.add(build(
            "event", self.session, self.when(at),
            id=name, type=kind, agent=self.agent, process=process, turn=turn, entry=entry, data=data,
        ))  # fmt: skip

    def opening(self, started: str | None, version: object, path: Path, about: Mapping[str, object]) -> Record:
        """Return the record of the session itself."""
        return build(
            "session", self.session, started, process=self.process, workflow=self.source,
            source=present(importer=self.source, version=version or None, path=plain_name(path)), meta=present(**about) or None,
        )  # fmt: skip


def present(**fields: Any) -> dict[str, Any]:
    """Return the fields that hold something, as JSON that every store accepts."""
    return _present(fields)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if value.__class__ in SIMPLE else clean(value) for name, value in fields.items() if value is not None}
