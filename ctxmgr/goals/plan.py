"""Read a plan in Markdown, YAML or JSON as tasks and subtasks; YAML tags are never constructed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.base.paths import open_regular
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.goal import PlannedStep, PlannedTask

if TYPE_CHECKING:
    from markdown_it.token import Token

__all__ = ["MAX_BYTES", "MAX_LINE", "MAX_LINES", "MAX_TITLE", "Plan", "parse_plan", "read_content"]

MAX_DEPTH = 40
# Field names that models and task tools use in such lists, in order of preference.
_TITLES = ("title", "task", "name", "description", "summary", "subtask", "step", "goal")
_CHILD_FIELDS = ("subtasks", "tasks", "steps", "children", "items", "todo", "todos", "plan", "checklist")
_DONE = frozenset({"done", "completed", "complete", "finished", "closed", "succeeded", "success"})
_NOT_DONE = frozenset(
    {"todo", "pending", "open", "in_progress", "in-progress", "in progress", "blocked", "failed", "not started"}
)
_TRUE, _FALSE = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off", "null", "~", ""})
_STATUS_FIELDS = ("done", "status", "completed", "state", "complete", "finished")

_Pairs = list[tuple[str, Any]]


def from_yaml(text: str, name: str) -> Plan:
    """Return the plan in a YAML text.

    Raises:
        InvalidInput: the YAML is broken, nested too deeply, or has too many steps after expansion of its aliases.
    """
    root = _compose(text, name)
    reader = _Reader(name)
    goal: str | None = None
    if root is None:
        return Plan(None, ())
    if isinstance(root.value, str):
        raise InvalidInput(f"{name}: no list and no mapping of tasks", "e.g. 'tasks: [write the parser, test it]'")
    if _is_mapping(root):
        pairs = reader.pairs(root)
        fields = {key.lower(): value for key, value in pairs}
        holder = next((fields[key] for key in _CHILD_FIELDS if key in fields and not isinstance(fields[key].value, str)), None)
        if holder is not None:
            goal = next((parse_title(fields[key].value)[0] for key in ("goal", *_TITLES) if _is_text(fields.get(key))), None)
            items = reader.items(holder, 0)
            reader.unused += [key for key, _ in pairs if key.lower() not in (*_TITLES, *_CHILD_FIELDS)]
        else:
            goal = next(
                (parse_title(value.value)[0] for key, value in pairs if key.lower() == "goal" and _is_text(value)), None
            )
            items = [
                reader.read_named_item(key, value, 0) for key, value in pairs if key.lower() != "goal" or not _is_text(value)
            ]
            # A single item above two levels of steps is the goal. As a task, it would push them below the level of subtasks.
            if goal is None and len(items) == 1 and any(part.items for part in items[0].items):
                goal, items = items[0].text, items[0].items
    else:
        items = reader.items(root, 0)
    tasks, notes = fold_items([item for item in items if item.text])
    if reader.unused:
        known = ", ".join(dict.fromkeys(name[:40] for name in reader.unused[:8]))
        notes.append(f"fields that mean nothing here: {known}")
    return Plan(goal, tasks, tuple(notes))


def _compose(text: str, name: str) -> Any:
    from ctxmgr.text.tokens import nesting_depth

    if nesting_depth(text) > MAX_DEPTH:
        raise InvalidInput(f"{name}: nested deeper than {MAX_DEPTH} levels", "a plan has tasks and subtasks")
    from ruamel.yaml import YAML  # takes 80 ms to load, and only YAML plans need it
    from ruamel.yaml.error import YAMLError

    try:
        # Composed instead of loaded: nodes keep the spelling of values ("yes" stays a word), and no tag builds an object.
        documents = list(YAML(typ="safe", pure=True).compose_all(text))
    except RecursionError:
        raise InvalidInput(f"{name}: nested too deep", "a plan has tasks and subtasks") from None
    except (YAMLError, ValueError, AttributeError, TypeError, LookupError, AssertionError) as error:
        # For broken texts, the parser raises more than its own errors.
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        problem = getattr(error, "problem", None) or type(error).__name__
        raise InvalidInput(
            f"{name}: broken YAML{place}: {problem}", "indent with blanks, never with tabs; a checkbox stands in quotes"
        ) from None
    found = [document for document in documents if document is not None]
    if len(found) > 1:
        raise InvalidInput(f"{name}: {len(found)} documents", "a plan is one YAML document")
    return found[0] if found else None


@dataclass(slots=True)
class _Reader:
    """Turns the parser's nodes into items. Aliased content counts each time, so that aliases can't multiply without limit."""

    name: str
    unused: list[str] = field(default_factory=list[str])
    read: int = 0

    def items(self, node: Any, depth: int) -> list[Item]:
        """Return the steps in a list, a mapping or a text."""
        self._count(depth)
        if isinstance(node.value, str):
            return [] if node.value.lower() in _FALSE else [_make_item(node.value)]
        if _is_mapping(node):
            return [self.read_named_item(key, value, depth + 1) for key, value in self.pairs(node)]
        return [self.item(child, depth + 1) for child in cast("list[Any]", node.value)]

    def item(self, node: Any, depth: int) -> Item:
        """Return one step of a list: a text, a mapping with fields, or "title: parts"."""
        self._count(depth)
        if isinstance(node.value, str):
            return _make_item(node.value)
        if not _is_mapping(node):
            inner = self.items(node, depth + 1)
            return Item(inner[0].text, inner[0].done, inner[1:]) if inner else Item("")
        pairs = self.pairs(node)
        fields = {key.lower(): value for key, value in pairs}
        title = next((key for key in _TITLES if _is_text(fields.get(key))), None)
        if title is None:
            if not pairs:
                return Item("")
            first = self.read_named_item(*pairs[0], depth + 1)
            for key, value in pairs[1:]:
                first = self._add_field(first, key, value, depth)
            return first
        found = _make_item(fields[title].value)
        for key, value in pairs:
            if key.lower() != title:
                found = self._add_field(found, key, value, depth)
        return found

    def read_named_item(self, key: str, value: Any, depth: int) -> Item:
        """Return the step ``key: value``. The value is its status, its parts, or the rest of a sentence with a colon."""
        self._count(depth)
        found = _make_item(key)
        if not isinstance(value.value, str):
            if _is_mapping(value):
                fields = {name.lower(): inner for name, inner in self.pairs(value)}
                if any(name in (*_CHILD_FIELDS, *_STATUS_FIELDS) for name in fields):
                    for name, inner in self.pairs(value):
                        found = self._add_field(found, name, inner, depth)
                    return found
            return Item(found.text, found.done, self.items(value, depth + 1))
        word = value.value.strip().lower()
        if word in _DONE | _TRUE:
            return Item(found.text, True)
        if word in _NOT_DONE | _FALSE:
            return found
        return _make_item(f"{key}: {value.value}")

    def pairs(self, node: Any) -> _Pairs:
        """Return the (key, value) pairs of a mapping. Keys that are not text are noted as unused."""
        found: _Pairs = []
        for key, value in cast("list[tuple[Any, Any]]", node.value):
            if isinstance(key.value, str):
                found.append((key.value, value))
            else:
                self.unused.append("a name that is no text")
        return found

    def _add_field(self, item: Item, key: str, value: Any, depth: int) -> Item:
        name = key.lower()
        if name in _STATUS_FIELDS and isinstance(value.value, str):
            return Item(item.text, item.done or value.value.strip().lower() in _DONE | _TRUE, item.items)
        if name in _CHILD_FIELDS:
            return Item(item.text, item.done, [*item.items, *self.items(value, depth + 1)])
        self.unused.append(key)
        return item

    def _count(self, depth: int) -> None:
        self.read += 1
        if depth > MAX_DEPTH:
            raise InvalidInput(f"{self.name}: nested deeper than {MAX_DEPTH} levels", "a plan has tasks and subtasks")
        if self.read > 10 * MAX_STEPS:
            raise InvalidInput(f"{self.name}: more than {MAX_STEPS:,} steps", "split the plan, and use no aliases")


def _make_item(text: str) -> Item:
    title, done = parse_title(text)
    return Item(title, done)


def _is_mapping(node: Any) -> bool:
    return type(node).__name__ == "MappingNode"


def _is_text(node: Any) -> bool:
    return node is not None and isinstance(node.value, str) and bool(node.value.strip())


MAX_BYTES = 256 * 1024
MAX_LINES = 10_000
MAX_LINE = 10_000
"""Maximum length of a line in characters. A longer line is no step of a plan."""

_YAML, _MARKDOWN = frozenset({".yaml", ".yml", ".json"}), frozenset({".md", ".markdown", ".mdown", ".txt", ".rst"})
_YAML_START = lazy_pattern(r"(?:---\s|%YAML|[{\[]|(?!https?:)[\w\"'][^#\n]*:(?:\s|$))")


def parse_plan(data: bytes, name: str) -> Plan:
    """Return the plan in a text. The suffix of ``name``, or else the beginning of the text, decides between YAML and Markdown.

    Raises:
        InvalidInput: the text is too large, not UTF-8, broken, or has no step.
    """
    text = _decode(data, name)
    ending = Path(name).suffix.lower()
    if ending in _YAML or (ending not in _MARKDOWN and _YAML_START.match(text.lstrip())):
        plan = from_yaml(text, name)
    else:
        plan = from_markdown(text)
    if not plan.tasks:
        raise InvalidInput(
            f"{name}: no step found", "a plan is a list ('- [ ] write the parser'), nested where a task has subtasks"
        )
    if plan.size > MAX_STEPS:
        raise InvalidInput(f"{name}: {plan.size:,} steps, at most {MAX_STEPS:,} are read", "split the plan")
    return plan


def read_content(path: Path) -> bytes:
    """Return at most one byte more than the limit from a regular file. Never waits for pipes or devices.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: it is no regular file, or can't be read.
    """
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file", "name the plan's file, or '-' for stdin") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"{path}: {reason}", "check the path, and its permissions") from None
    try:
        with open(descriptor, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}", "check the file") from None


def _decode(data: bytes, name: str) -> str:
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


MAX_TITLE = 300
MAX_STEPS = 2_000
"""Maximum number of tasks and subtasks in a plan."""

_CONTROL = lazy_pattern(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
_BOX = lazy_pattern(r"\[([ xX])\]\s+")


@dataclass(frozen=True, slots=True)
class Plan:
    """A parsed plan. With a goal it becomes a `GoalPlan`.

    Attributes:
        goal: title of the plan, or None.
        tasks: tasks in the order of the plan.
        notes: what a person should know before accepting it, e.g. sections that were left out.
    """

    goal: str | None
    tasks: tuple[PlannedTask, ...]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of tasks and subtasks together."""
        return len(self.tasks) + sum(len(task.subtasks) for task in self.tasks)


@dataclass(slots=True)
class Item:
    """A line of a plan with the items nested below it, at any depth."""

    text: str
    done: bool = False
    items: list[Item] = field(default_factory=list["Item"])


def parse_title(text: str) -> tuple[str, bool]:
    """Return a step's title as one line without its checkbox, and whether the box is ticked."""
    line = " ".join(_CONTROL.sub("", text).split())
    # The pattern requires a blank after the box, which a box alone lacks.
    box = _BOX.match(f"{line} ")
    title = line[box.end() :] if box else line
    return _shorten(title), bool(box and box[1] in "xX")


def fold_items(items: Sequence[Item]) -> tuple[tuple[PlannedTask, ...], list[str]]:
    """Return nested items as tasks with subtasks, and notes on what that changed.

    A deeper item becomes a subtask whose title includes the titles above it, so that no step is lost.
    """
    deep = 0
    tasks: list[PlannedTask] = []
    for item in items:
        parts: list[PlannedStep] = []
        for part in item.items:
            leaves = list(_leaves(part, "", done=item.done))
            deep += len(leaves) if part.items else 0
            parts += leaves
        done = item.done or (bool(parts) and all(part.done for part in parts))
        tasks.append(PlannedTask(title=_shorten(item.text), done=done, subtasks=parts))
    notes = [f"{deep:,} steps lie below the level of subtasks; each became a subtask under both titles"] if deep else []
    return tuple(tasks), notes


def _leaves(item: Item, above: str, *, done: bool) -> Iterator[PlannedStep]:
    title = f"{above}: {item.text}" if above else item.text
    if not item.items:
        yield PlannedStep(title=_shorten(title), done=done or item.done)
    for part in item.items:
        yield from _leaves(part, title, done=done or item.done)


def _shorten(title: str) -> str:
    return title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1].rstrip()}…"


# Headings of sections around the steps. Their lists state facts instead of work.
_BACKGROUND_HEADINGS = frozenset({
    "background", "overview", "context", "introduction", "summary", "motivation", "notes", "note", "references", "links",
    "non-goals", "nongoals", "out of scope", "assumptions", "glossary", "risks", "open questions", "license", "why",
})  # fmt: skip
# Headings that only announce the steps, and are no tasks themselves.
_TASK_HEADINGS = frozenset({
    "task", "tasks", "plan", "steps", "todo", "to do", "to-do", "todos", "checklist", "work", "work items", "action items",
    "implementation plan", "next steps", "task list",
})  # fmt: skip
# Models write check marks and box characters instead of "- [x]".
_SIGNED_BOX = lazy_pattern(r"^([ \t]*)(?:[-*+][ \t]+)?([☐☑☒✅✔✓])️?[ \t]+", re.MULTILINE)
_LINK = lazy_pattern(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
_MARKS = lazy_pattern(r"(`+)([^`]+)\1(?!`)|\*\*(?=\S)([^*]+)\*\*")
_GOAL_LINE = lazy_pattern(r"goal\s*:\s*(.+)", re.IGNORECASE)  # "Goal: ..."


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
    """Return the plan in a Markdown text. ``tasks`` is empty if it has no step."""
    from markdown_it import MarkdownIt

    source = _SIGNED_BOX.sub(lambda found: f"{found[1]}- [{' ' if found[2] == '☐' else 'x'}] ", text)
    # Linear rules remove inline markup, because a parser would need quadratic time for hostile nesting.
    tokens = MarkdownIt("commonmark").disable(["inline", "text_join"]).parse(_without_front_matter(source))
    top, first = _sections(tokens)
    notes: list[str] = []
    goal = _find_goal(top, first)
    items = _list_steps(top, notes)
    if goal is None and len(items) == 1 and any(part.items for part in items[0].items):
        goal, items = items[0].text, items[0].items
    tasks, deeper = fold_items(items)
    return Plan(goal, tasks, (*notes, *deeper))


def _without_front_matter(text: str) -> str:
    if text.startswith(("---\n", "---\r\n")):
        end = re.search(r"^---[ \t]*\r?$", text[4:], re.MULTILINE)
        if end is not None:
            return text[4 + end.end() :]
    return text


def _sections(tokens: Sequence[Token]) -> tuple[_Section, str]:
    """Return the document as nested sections with their lists, and its first paragraph if that comes before them."""
    top = _Section(0, "")
    open_sections, open_items, first = [top], list[Item](), ""
    heading = item_has_no_text = False
    for token in _outside_quotes(tokens):
        if token.type == "heading_open" and not open_items:
            heading = True
            _open_section(open_sections, int(token.tag[1:]))
        elif token.type == "list_item_open":
            item = Item("")
            (open_items[-1].items if open_items else open_sections[-1].items).append(item)
            open_items.append(item)
            item_has_no_text = True
        elif token.type == "list_item_close":
            open_items.pop()
        elif token.type == "inline" and heading:
            open_sections[-1].title, open_sections[-1].done = _read_plain_title(token.content)
            heading = False
        elif token.type == "inline" and open_items and (item_has_no_text or not open_items[-1].text):
            open_items[-1].text, open_items[-1].done = _read_plain_title(token.content)
            item_has_no_text = False
        elif token.type == "inline" and not first and not top.parts and not top.items:
            first = _read_plain_title(token.content)[0]
    return top, first


def _outside_quotes(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens outside of block quotes."""
    depth = 0
    for token in tokens:
        if token.type in ("blockquote_open", "blockquote_close"):
            depth += 1 if token.nesting > 0 else -1
        elif not depth:
            yield token


def _open_section(open_sections: list[_Section], level: int) -> None:
    """Begin a section in the last open section of a higher level."""
    while open_sections[-1].level >= level:
        open_sections.pop()
    section = _Section(level, "")
    open_sections[-1].parts.append(section)
    open_sections.append(section)


def _read_plain_title(content: str) -> tuple[str, bool]:
    """Return a line's title without inline markup, and whether its box is ticked."""
    title, done = parse_title(content)
    return _MARKS.sub(lambda mark: (mark[2] or mark[3]).strip(), _LINK.sub(r"\1", title)).strip(), done


def _find_goal(top: _Section, first: str) -> str | None:
    """Return the goal, from the only title or from a line "Goal: ...". A title is removed from the sections."""
    if len(top.parts) == 1 and (top.parts[0].parts or top.parts[0].items) and not top.items:
        title = top.parts[0]
        top.items, top.parts = title.items, title.parts
        found = _GOAL_LINE.fullmatch(title.title)
        if title.name not in _TASK_HEADINGS:
            return (found[1] if found else title.title) or None
    found = _GOAL_LINE.fullmatch(first)
    return found[1] if found else None


def _list_steps(section: _Section, notes: list[str]) -> list[Item]:
    """Return a section's steps: those of its own list, then those of its subsections."""
    items = [item for item in section.items if item.text]
    for part in section.parts:
        if part.name in _BACKGROUND_HEADINGS:
            notes.append(f"left out: the section {part.title!r}, which reads like background")
            continue
        inner = _list_steps(part, notes)
        if part.name in _TASK_HEADINGS:
            items += inner
        elif part.title:
            items.append(Item(part.title, part.done, inner))
        else:
            items += inner
    return items
