"""The steps of a plan, and how nested lines become tasks with subtasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ctxmgr.text.lazy_pattern import lazy_pattern

MAX_TITLE = 300
MAX_STEPS = 2_000
"""Tasks and subtasks of one plan together."""

_CONTROL = lazy_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
_BOX = lazy_pattern(r"\[([ xX])\]\s+")


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
