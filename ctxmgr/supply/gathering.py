"""Find what a package may hold: what the agent's needs name, what the caller names, and what these depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ctxmgr.assemble.budget import Item
from ctxmgr.assemble.kinds import CODE, DENSE, TEXT, YAML, kind_of, known_kind
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.store.artifacts import ArtifactRow
from ctxmgr.supply import records
from ctxmgr.supply.audience import Audience
from ctxmgr.supply.depending import depending
from ctxmgr.supply.naming import Named, parse_named
from ctxmgr.supply.records import Told
from ctxmgr.supply.shown import Shown
from ctxmgr.supply.texts import MOST_READ, Fixed, Texts, UnreadableError
from ctxmgr.supply.writing import goal_fields, written
from ctxmgr.types.goal_source import GoalSource
from ctxmgr.types.package import Need
from ctxmgr.types.project import AgentNeed

BY_CALLER = "named by the caller"
HISTORY = "history"
"""What a package gives as the source of what is drawn from many entries."""

GOAL = "goal_context"
_HINTS = {"task_context": "name the task with --task", GOAL: "name the folder of the goal with --goal"}


@dataclass(frozen=True, slots=True)
class Wish:
    """How something is wanted; see `AgentNeed`."""

    need: Need
    priority: int = 0
    max_tokens: int | None = None
    use_summary: bool = False
    because: str = BY_CALLER


class Gathering:
    """Collects the items of one package.

    Attributes:
        items: what was found; the texts of them are on the shelf of ``texts``.
        absent: the first required need that names nothing, as the error to raise.
        missing: (source, name) of what the caller named and is not there.
        notes: what a reader of the package should know.
        project: the keys of the project's context; required tells whether a need requires them.
        task: what is known of the task.
    """

    def __init__(self, audience: Audience, shown: Shown, texts: Texts, budget: int, task: str | None) -> None:
        self._audience = audience
        self._shown = shown
        self._texts = texts
        self._budget = budget
        self._task = task
        self._rows: list[tuple[ArtifactRow, Need, int]] = []
        self._goal: str | None = None
        self.items: list[Item] = []
        self.absent: NotFound | None = None
        self.missing: list[tuple[str, str]] = []
        self.notes: list[str] = []
        self.project = self._project()
        self.required = False
        self.task: dict[str, Any] = {} if task is None else {"id": task}

    def _project(self) -> dict[str, Any]:
        return {one.key: one.value for one in self._audience.store.shared.context_keys() if self._audience.reads_key(one.key)}

    def know_task(self, told: Mapping[str, Any]) -> None:
        """Take what the caller tells of the task."""
        self.task |= told

    def know_goal(self, source: GoalSource) -> None:
        """Take where the goal stands that is worked on."""
        self._goal = written(goal_fields(source))

    def need(self, need: AgentNeed) -> None:
        """Add what a need names.

        Raises:
            InvalidInput: the need can't be understood.
        """
        try:
            named = parse_named(need.pattern)
        except InvalidInput as error:
            raise InvalidInput(f"a need of {need.agent!r} can't be used: {error.message}", error.hint) from None
        wish = Wish(need.need, need.priority, need.max_tokens, need.use_summary, f"need {need.pattern}")
        if self.add(named, wish) or need.need == "if_exists":
            return
        if need.need != "required":
            self.notes.append(f"nothing is there for the {need.need} need {need.pattern}")
        elif self.absent is None:
            otherwise = "put it first, allow the agent to read it, or make the need optional"
            hint = _HINTS.get(named.source, otherwise) if named.form == "context" else otherwise
            self.absent = NotFound(f"{need.agent} requires {need.pattern}, and nothing like it is there", hint)

    def name(self, text: str) -> None:
        """Add what the caller names.

        Raises:
            InvalidInput: it can't be understood.
        """
        named = parse_named(text)
        if not self.add(named, Wish("optional")):
            self.missing.append(called(named))

    def depend(self) -> None:
        """Add what the artifacts depend on."""
        found = depending(self._rows, self._audience.store.artifacts.dependencies, self._shown.needed)
        for one in found:
            self._add_artifact(one.row, Wish(one.need, one.priority, because=one.because))

    def add(self, named: Named, wish: Wish) -> bool:
        """Add what is named; return whether it is there."""
        if named.form == "context":
            return self._add_context(named.source, wish)
        if named.form == "record":
            return self._add_told(records.record_told(self._audience, named), wish)
        if named.form == "owner":
            rows = self._shown.of_owner(named.source)
        else:
            row = self._shown.by_id(named.name) if named.form == "id" else self._shown.find(named.source, named.name)
            rows = [] if row is None else [row]
        for row in rows:
            self._add_artifact(row, wish)
            self._rows.append((row, wish.need, wish.priority))
        return bool(rows)

    def _add_context(self, context: str, wish: Wish) -> bool:
        if context == "project_context":  # a project without keys has a context that says nothing
            self.required = self.required or wish.need == "required"
            return True
        if context == "task_context":
            if self._task is not None and "executions" not in self.task:
                runs = records.task_runs(records.runs(self._audience, self._task))
                self.task |= {"executions": runs} if runs else {}
            return bool(self.task)
        if context == GOAL:
            return self._add_told(None if self._goal is None else Told(GOAL, "context", "goal", GOAL, self._goal), wish)
        if context == "error_context":
            text = records.failures(self._audience, self._task)
        else:
            text = records.runs_told(records.runs(self._audience, self._task))
        return self._add_told(None if text is None else Told(context, "context", HISTORY, context, text), wish)

    def _add_told(self, told: Told | None, wish: Wish) -> bool:
        if told is None:
            return False
        self._texts.shelf[told.type, told.id] = Fixed(told.text)
        tokens = self._texts.counter.count(told.text, YAML)
        self.items.append(self._item(wish, told.id, told.source, told.name, YAML, tokens, None, told.type))
        return True

    def _add_artifact(self, row: ArtifactRow, wish: Wish) -> None:
        kind = item_kind(row)
        item = self._item(wish, row.id, row.agent, row.name, kind, 0, row.version, "artifact")
        if row.type == BINARY:
            self.items.append(self.described(row, item))
            return
        self._texts.shelf["artifact", row.id] = row
        self.items.append(replace(item, tokens=self._tokens(row, item)))

    def described(self, row: ArtifactRow, item: Item) -> Item:
        """Return an item whose text says what an artifact is, in place of a content that can't be given as text."""
        text = f"{row.agent}/{row.name}: {row.size:,} bytes that are no text, SHA-256 {row.hash}\n"
        self._texts.shelf["artifact", row.id] = Fixed(text, whole=False)
        return replace(item, kind=TEXT, tokens=self._texts.counter.count(text, TEXT), max_tokens=None, use_summary=True)

    def _item(
        self, wish: Wish, identity: str, source: str, name: str, kind: str, tokens: int, version: int | None, kept_as: str
    ) -> Item:
        return Item(
            id=identity, source=source, name=name, kind=kind, need=wish.need, tokens=tokens, priority=wish.priority,
            max_tokens=wish.max_tokens, use_summary=wish.use_summary, version=version, type=kept_as, because=wish.because,
        )  # fmt: skip

    def _tokens(self, row: ArtifactRow, item: Item) -> int:
        """Return the size of a content by the counter at hand; what can't fit in any case is not read for it."""
        counter = self._texts.counter
        if row.counter == counter.name and 0 <= row.tokens <= row.size + 1:
            return row.tokens
        if row.size > min(MOST_READ, 64 * max(self._budget, 1)):
            return row.size // 4
        try:
            return counter.count(self._texts.full(item), item.kind)
        except UnreadableError:  # said when it is to be used
            return row.size // 4


BINARY = "binary"
"""Type of the artifacts that are no text."""


def item_kind(row: ArtifactRow) -> str:
    """Return what an artifact is written in; code is known by its name more closely."""
    kind = known_kind(row.type)
    closer = kind_of(row.name, "") if kind == CODE else kind
    return closer if closer in DENSE else kind


def called(named: Named) -> tuple[str, str]:
    """Return the source and name that something missing is listed by."""
    return (named.source, named.name) if named.form in ("artifact", "owner", "record") else ("", named.text)
