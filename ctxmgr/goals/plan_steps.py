"""The steps of a plan: how nested lines become tasks with subtasks, and a plan in Markdown as such lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxmgr.text.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from markdown_it.token import Token


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


# Headings of what stands around the steps of a plan. Their lists say what is so, not what is to be done.
_ABOUT = frozenset({
    "background", "overview", "context", "introduction", "summary", "motivation", "notes", "note", "references", "links",
    "non-goals", "nongoals", "out of scope", "assumptions", "glossary", "risks", "open questions", "license", "why",
})  # fmt: skip
# Headings that only say "here they come".
_HERE = frozenset({
    "task", "tasks", "plan", "steps", "todo", "to do", "to-do", "todos", "checklist", "work", "work items", "action items",
    "implementation plan", "next steps", "task list",
})  # fmt: skip
_SIGNED_BOX = lazy_pattern(r"^([ \t]*)(?:[-*+][ \t]+)?([☐☑☒✅✔✓])️?[ \t]+", re.MULTILINE)
_LINK = lazy_pattern(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_MARKS = lazy_pattern(r"(`+)([^`]+)\1(?!`)|\*\*(?=\S)([^*]+)\*\*")
_GOAL_LINE = lazy_pattern(r"goal\s*:\s*(.+)", re.IGNORECASE)


@dataclass(slots=True)
class _Section:
    level: int
    title: str
    done: bool = False
    items: list[Item] = field(default_factory=list[Item])
    parts: list[_Section] = field(default_factory=list["_Section"])

    @property
    def name(self) -> str:
        return self.title.strip(" :.").lower()


def from_markdown(text: str) -> Plan:
    """Return the plan; one without a step has no task."""
    from markdown_it import MarkdownIt

    source = _SIGNED_BOX.sub(lambda found: f"{found[1]}- [{' ' if found[2] == '☐' else 'x'}] ", text)
    # Inline markup is stripped by linear rules instead, since hostile nesting of it takes a parser quadratic time.
    tokens = MarkdownIt("commonmark").disable(["inline", "text_join"]).parse(_without_matter(source))
    top, first = _sections(tokens)
    notes: list[str] = []
    goal = _goal(top, first)
    items = _steps(top, notes)
    if goal is None and len(items) == 1 and any(part.items for part in items[0].items):
        goal, items = items[0].text, items[0].items
    tasks, deeper = folded(items)
    return Plan(goal, tasks, (*notes, *deeper))


def _without_matter(text: str) -> str:
    if text.startswith(("---\n", "---\r\n")):
        end = re.search(r"^---[ \t]*\r?$", text[4:], re.MULTILINE)
        if end is not None:
            return text[4 + end.end() :]
    return text


def _sections(tokens: Sequence[Token]) -> tuple[_Section, str]:
    """Return the document as nested sections with their lists, and the first paragraph before any list."""
    top = _Section(0, "")
    open_sections, open_items, first = [top], list[Item](), ""
    quoted = 0
    heading = fresh = False
    for token in tokens:
        if token.type in ("blockquote_open", "blockquote_close"):
            quoted += 1 if token.nesting > 0 else -1
        elif quoted:
            continue
        elif token.type == "heading_open" and not open_items:
            heading = True
            while open_sections[-1].level >= int(token.tag[1:]):
                open_sections.pop()
            section = _Section(int(token.tag[1:]), "")
            open_sections[-1].parts.append(section)
            open_sections.append(section)
        elif token.type == "list_item_open":
            item = Item("")
            (open_items[-1].items if open_items else open_sections[-1].items).append(item)
            open_items.append(item)
            fresh = True
        elif token.type == "list_item_close":
            open_items.pop()
        elif token.type == "inline" and heading:
            open_sections[-1].title, open_sections[-1].done = _plain(token.content)
            heading = False
        elif token.type == "inline" and open_items and (fresh or not open_items[-1].text):
            open_items[-1].text, open_items[-1].done = _plain(token.content)
            fresh = False
        elif token.type == "inline" and not first and not top.parts and not top.items:
            first = _plain(token.content)[0]
    return top, first


def _plain(content: str) -> tuple[str, bool]:
    """Return a line's title without markup, and whether its box is ticked."""
    title, done = titled(content)
    return _MARKS.sub(lambda mark: (mark[2] or mark[3]).strip(), _LINK.sub(r"\1", title)).strip(), done


def _goal(top: _Section, first: str) -> str | None:
    """Return what the plan is for, and take its heading out of the way: the one title, or a line "Goal: ..."."""
    if len(top.parts) == 1 and (top.parts[0].parts or top.parts[0].items) and not top.items:
        title = top.parts[0]
        top.items, top.parts = title.items, title.parts
        found = _GOAL_LINE.fullmatch(title.title)
        if title.name not in _HERE:
            return (found[1] if found else title.title) or None
    found = _GOAL_LINE.fullmatch(first)
    return found[1] if found else None


def _steps(section: _Section, notes: list[str]) -> list[Item]:
    """Return a section's steps: its list, then what its own sections hold."""
    items = [item for item in section.items if item.text]
    for part in section.parts:
        if part.name in _ABOUT:
            notes.append(f"left out: the section {part.title!r}, which reads like background")
            continue
        inner = _steps(part, notes)
        if part.name in _HERE:
            items += inner
        elif part.title:
            items.append(Item(part.title, part.done, inner))
        else:
            items += inner
    return items
