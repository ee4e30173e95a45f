"""One labelled run as the benchmark sees it: records of log format 1, and what the data set says about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ctxmgr.log.codec import Record

NO_TIME = "1970-01-01T00:00:00Z"


@dataclass(slots=True)
class Run:
    """One run, or one part of a restarted one.

    Attributes:
        name: data set, file and place in it; the same for every part of a restarted run.
        dataset: name of the folder it came from.
        records: in the order of the source.
        task: which task it was; runs of one task have the same.
        success: whether the task was solved, None where nobody judged.
        repetition: what a person said about repeated steps, None where nobody was asked.
        restarted: whether a person said that the run was restarted, None where nobody was asked.
        ended: how the harness says that it ended.
    """

    name: str
    dataset: str
    records: list[Record] = field(default_factory=list[Record])
    task: str = ""
    success: bool | None = None
    repetition: bool | None = None
    restarted: bool | None = None
    ended: str = ""


class Writer:
    """Writes the records of one run; ids are places in the run, so every conversion yields the same ones."""

    def __init__(self, run: Run, process: str = "p1") -> None:
        self.run = run
        self._process = process
        self._names: dict[str, str] = {}

    def call(self, agent: str, action: str, given: Any, *, at: str | None, call: str = "", step: str | None = None) -> str:
        """Begin an action; ``call`` is the source's name for it, ``step`` what parallel calls have in common."""
        name = f"r{len(self.run.records)}"
        if call:
            self._names[call] = name
        self._add("entry", at, id=name, agent=agent, action=action, inputType="arguments", input=given, step=step)
        return name

    def result(self, entry: str, text: str | None, *, failed: bool, at: str | None) -> None:
        """Answer an action, named by its id here or by the source."""
        error = {"type": "ToolError", "message": text or ""} if failed else None
        name = self._names.get(entry, entry)
        self._add("result", at, entry=name, status="error" if failed else "ok", output=text, error=error)

    def event(self, kind: str, agent: str, data: Any, *, at: str | None) -> None:
        """Add what was said or thought."""
        self._add("event", at, id=f"r{len(self.run.records)}", type=kind, agent=agent, data=data)

    def _add(self, kind: str, at: str | None, **fields: Any) -> None:
        record: Record = {"v": 1, "kind": kind, "session": self.run.name, "process": self._process}
        record["ts"] = at if at is not None else None
        record |= {name: value for name, value in fields.items() if value is not None or name == "input"}
        self.run.records.append(record)


def load(path: Path) -> Any:
    """Return a file's JSON."""
    return json.loads(path.read_text(encoding="utf-8"))


def arguments(value: object) -> object:
    """Return call arguments as an object where the source holds them as JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def dicts(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, nothing of anything else."""
    if isinstance(value, list):
        for item in cast("list[object]", value):
            if isinstance(item, dict):
                yield cast("dict[str, Any]", item)
