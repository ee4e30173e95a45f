"""Read the HyperAgent logs with human labels: copies made by doubled log handlers collapsed, restarts split.

What a tool answered is not in these logs, so the inner agents' calls stay open; the planner's delegations are answered by
what the agent hands back. A response without any text (the executor's, up to three in a row before it hands back) says
nothing that could be compared and is left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.detection.runs import Run, Writer, load

DATASET = "hyperagent"

_HEAD = re.compile(r"HyperAgent_\S+ - [A-Z]+ - (.*)", re.DOTALL)
_INSTANCE, _TOOLS = "Initialized HyperAgent instance", "Initialized tools"
_RESPONSE = re.compile(r"([\w-]+)'s Response: ?(.*)", re.DOTALL)
_RETURN = re.compile(r"(\w+)->(\w+): ?(.*)", re.DOTALL)
_BLOCK = re.compile(r"(Action:\s*)?```(\w*)\n(.*?)(?:```|\Z)", re.DOTALL)
_CALL = re.compile(r"(\w+)\._run\(")
_DELEGATION = re.compile(r"Intern Name: *(.+?)\n+Subgoal: *(.*)", re.DOTALL)


@dataclass(slots=True)
class Log:
    """One annotated log.

    Attributes:
        name: the task it is about.
        parts: one run for each start that did anything; all have the log's labels.
        raw_steps: responses and hand-overs as logged, copies counted.
        steps: the same with copies collapsed.
    """

    name: str
    parts: list[Run]
    raw_steps: int
    steps: int


def hyper_agent(folder: Path, *, copies: int = 1) -> Iterator[Log]:
    """Yield the annotated logs; ``copies`` reads each as if that many handlers had written every entry."""
    for path in sorted((folder / "mast_hyperagent_human").glob("*.json")):
        source = load(path)
        labels = source["note"]["options"]
        entries = [entry for entry in _entries(source["trajectory"]) for _ in range(copies)]
        log = Log(path.stem.removesuffix("_human"), [], 0, 0)
        for place, (copied, part) in enumerate(_starts(entries)):
            steps = collapse(part, copied)
            log.raw_steps += len(part)
            log.steps += len(steps)
            if steps:
                run = Run(
                    f"{DATASET}/{log.name}", DATASET, repetition=labels["Step repetition"] == "yes",
                    restarted=labels["Trajectory restart"] == "yes",
                )  # fmt: skip
                _convert(run, steps, f"start {place}")
                log.parts.append(run)
        yield log


def collapse(entries: Sequence[str], copied: int) -> list[str]:
    """Return entries with each row of equal ones cut to a ``copied``-th of its length, rounded up."""
    found: list[str] = []
    for entry, row in groupby(entries):
        found += [entry] * -(-sum(1 for _ in row) // max(1, copied))
    return found


def _entries(lines: Sequence[str]) -> list[str]:
    """Return the log's entries: a line with the logger's head and the lines up to the next."""
    found: list[list[str]] = []
    for line in lines:
        if head := _HEAD.match(line):
            found.append([head[1]])
        elif found:
            found[-1].append(line)
    return ["\n".join(entry).rstrip() for entry in found]


def _starts(entries: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Split where the program was started; return for each start how often each entry was logged, and its entries.

    The multiplicity is how often one start says that it made its tools: restarts in one process add log handlers.
    """
    parts: list[tuple[int, list[str]]] = []
    before = ""
    for entry in entries:
        if entry.startswith(_INSTANCE):
            if not before.startswith(_INSTANCE):
                parts.append((0, []))
        elif parts and entry == _TOOLS:
            parts[-1] = (parts[-1][0] + 1, parts[-1][1])
        elif parts:
            parts[-1][1].append(entry)
        before = entry
    return parts


def _convert(run: Run, entries: Sequence[str], process: str) -> None:
    """Write what was logged as records."""
    writer = Writer(run, process)
    delegated: str | None = None
    for entry in entries:
        if response := _RESPONSE.match(entry):
            agent, text = response[1], response[2]
            if not text.strip():
                continue
            action = _action(agent, text)
            if action is None:
                writer.event("message", agent, {"text": text}, at=None)
                continue
            writer.event("thought", agent, {"text": text[: action[2]]}, at=None)
            made = writer.call(agent, action[0], action[1], at=None)
            delegated = made if action[0] == "delegate" else delegated
        elif (handed := _RETURN.match(entry)) and delegated is not None:
            writer.result(delegated, handed[3], failed=False, at=None)
            delegated = None
        else:
            writer.event("message", "log", {"text": entry}, at=None)


def _action(agent: str, text: str) -> tuple[str, Any, int] | None:
    """Return the tool, its arguments and where in the text it is called, or None when nothing is called."""
    if agent == "Planner":
        asked = _DELEGATION.search(text)
        return ("delegate", {"intern": asked[1].strip(), "subgoal": asked[2].strip()}, asked.start()) if asked else None
    for block in reversed(list(_BLOCK.finditer(text))):
        if call := _CALL.search(block[3]):
            return call[1], _arguments(block[3]), block.start()
        if block[1]:
            shell = block[2] in ("bash", "sh")
            return block[2] or "run", {"command" if shell else "code": block[3].strip()}, block.start()
    return None


def _arguments(code: str) -> object:
    """Return the keyword arguments of a call written in Python, or all of its code when they are no plain values."""
    try:
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "_run":
                return {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg is not None}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return {"code": code.strip()}
