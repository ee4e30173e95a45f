"""Read a plan, Markdown or YAML, as tasks and subtasks: by rules alone, and never counting before a person accepts it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ctxmgr.errors import InvalidInput, NotFound

MAX_BYTES = 256 * 1024
MAX_LINES = 10_000
MAX_LINE = 10_000
"""Characters of one line; a longer one is no step of a plan."""
MAX_TITLE = 300
MAX_STEPS = 2_000
"""Tasks and subtasks of one plan together."""

_YAML, _MARKDOWN = frozenset({".yaml", ".yml", ".json"}), frozenset({".md", ".markdown", ".mdown", ".txt", ".rst"})
_YAML_START = re.compile(r"(?:---\s|%YAML|[{\[]|(?!https?:)[\w\"'][^#\n]*:(?:\s|$))")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
_BOX = re.compile(r"\[([ xX])\]\s+")


@dataclass(frozen=True, slots=True)
class Step:
    """A task or subtask that a plan names; the parts of a subtask are none."""

    title: str
    done: bool = False
    parts: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a plan holds.

    Attributes:
        goal: what the plan calls itself, None when it does not.
        tasks: in the order of the plan.
        notes: what a person should know before accepting it: what was left out or folded together.
    """

    goal: str | None
    tasks: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Tasks and subtasks together."""
        return len(self.tasks) + sum(len(task.parts) for task in self.tasks)


@dataclass(slots=True)
class Item:
    """A line of a plan with what is nested below it, as deep as the author went."""

    text: str
    done: bool = False
    items: list[Item] = field(default_factory=list["Item"])


def read_plan(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no plain file, too big, no UTF-8, broken, or holds no step.
    """
    return parse_plan(read_content(path), str(path))


def parse_plan(data: bytes, name: str) -> Plan:
    """Return the plan in a text; ``name`` says by its ending whether it is YAML or Markdown, else its beginning does.

    Raises:
        InvalidInput: it is too big, no UTF-8, broken, or holds no step.
    """
    text = _decoded(data, name)
    ending = Path(name).suffix.lower()
    if ending in _YAML or (ending not in _MARKDOWN and _YAML_START.match(text.lstrip())):
        from ctxmgr.goals.plan_yaml import from_yaml

        plan = from_yaml(text, name)
    else:
        from ctxmgr.goals.plan_markdown import from_markdown

        plan = from_markdown(text)
    if not plan.tasks:
        raise InvalidInput(
            f"{name}: no step found", "a plan is a list ('- [ ] write the parser'), nested where a task has subtasks"
        )
    if plan.size > MAX_STEPS:
        raise InvalidInput(f"{name}: {plan.size:,} steps, at most {MAX_STEPS:,} are read", "split the plan")
    return plan


def read_content(path: Path) -> bytes:
    """Return the beginning of a plain file, one byte more than a plan may have; pipes and devices are never waited for.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no plain file, or can't be read.
    """
    try:
        # Without waiting, so that a pipe nobody writes to does not hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file", "name the plan's file, or '-' for stdin") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"{path}: {reason}", "check the path, and its permissions") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInput(f"{path} is no plain file", "name a Markdown or YAML file")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}", "check the file") from None
    finally:
        os.close(descriptor)


def _decoded(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise InvalidInput(f"{name}: a plan is at most {MAX_BYTES // 1024} KiB", "split it, or keep the steps only")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name}: no UTF-8 at byte {error.start:,}", "save the plan as UTF-8") from None
    if "\0" in text:
        raise InvalidInput(f"{name}: not a text", "save the plan as UTF-8")
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        raise InvalidInput(f"{name}: {len(lines):,} lines, at most {MAX_LINES:,} are read", "split the plan")
    longest = max(range(len(lines)), key=lambda number: len(lines[number]), default=0)
    if lines and len(lines[longest]) > MAX_LINE:
        raise InvalidInput(
            f"{name}: line {longest + 1:,} has {len(lines[longest]):,} characters, at most {MAX_LINE:,} are read",
            "a step is a short line of text",
        )
    return text


def titled(text: str) -> tuple[str, bool]:
    """Return a step's title in one line without its checkbox, and whether the box is ticked."""
    line = " ".join(_CONTROL.sub("", text).split())
    box = _BOX.match(f"{line} ")
    title = line[box.end() :] if box else line
    return (title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1].rstrip()}…"), bool(box and box[1] in "xX")


def folded(items: Sequence[Item]) -> tuple[tuple[Step, ...], list[str]]:
    """Return nested items as tasks with subtasks, and notes on what that changed.

    What lies deeper than a subtask becomes a subtask of its own under both titles, so that no step is lost.
    """
    deep = 0
    tasks: list[Step] = []
    for item in items:
        parts: list[Step] = []
        for part in item.items:
            leaves = list(_leaves(part, "", done=item.done))
            deep += len(leaves) if part.items else 0
            parts += leaves
        done = item.done or (bool(parts) and all(part.done for part in parts))
        tasks.append(Step(_short(item.text), done, tuple(parts)))
    notes = [f"{deep:,} steps lie below the level of subtasks; each became a subtask under both titles"] if deep else []
    return tuple(tasks), notes


def _leaves(item: Item, above: str, *, done: bool) -> Iterator[Step]:
    title = f"{above}: {item.text}" if above else item.text
    if not item.items:
        yield Step(_short(title), done or item.done)
    for part in item.items:
        yield from _leaves(part, title, done=done or item.done)


def _short(title: str) -> str:
    return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1].rstrip()}…"
