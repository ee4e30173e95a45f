"""Parse a plan in Markdown: headings and list items become steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ctxmgr.goals.plan_steps import Item, Plan, folded, titled
from ctxmgr.text.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from markdown_it.token import Token

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
