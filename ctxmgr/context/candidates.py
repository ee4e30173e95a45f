"""Collect the candidates of a package: items for needs, items that the caller names, and their dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol

from ctxmgr.access.patterns import is_unnameable
from ctxmgr.context import items
from ctxmgr.context.budget import STRENGTH, Item
from ctxmgr.context.items import HistoryItem, ItemName, Readers, VisibleArtifacts, goal_fields, parse_item_name, write_yaml
from ctxmgr.context.summaries import SUMMARISERS, Summary, summarise
from ctxmgr.context.summaries.grammar import GRAMMARS
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.log.mask_prefilter import mask_value
from ctxmgr.store import Store
from ctxmgr.store.repositories.shared_state import ArtifactRow, DependencyRow, SummaryRow
from ctxmgr.text.tokens import CODE, DENSE, YAML, Counter, content_kind, known_kind
from ctxmgr.types.goal import GoalSource
from ctxmgr.types.project_state import AgentNeed, Need

_LEVELS: tuple[Need, ...] = ("required", "optional", "reference")


@dataclass(frozen=True, slots=True)
class PulledDependency:
    """An artifact that another artifact depends on, with the strength of the dependency and the other one's priority."""

    row: ArtifactRow
    need: Need
    priority: int
    because: str


def find_dependencies(
    asked: Sequence[tuple[ArtifactRow, Need, int]],
    dependencies: Callable[[str], Sequence[DependencyRow]],
    find: Callable[[str, str], ArtifactRow | None],
) -> list[PulledDependency]:
    """Return the direct and indirect dependencies of artifacts, except those already requested as strongly.

    A chain is as strong as its weakest link: if a reference requires an artifact, that is a reference too.

    Args:
        asked: (artifact, need, priority) of each requested artifact.
        dependencies: artifact id -> its dependencies.
        find: (owner, name) -> artifact, None if it does not exist.
    """
    best: dict[str, int] = {}
    pulled: dict[str, PulledDependency] = {}
    waiting: list[list[tuple[ArtifactRow, int]]] = [[], [], []]
    for row, need, priority in sorted(asked, key=lambda one: (one[2], one[0].agent, one[0].name, one[0].version)):
        level = STRENGTH[need]
        best[row.id] = min(level, best.get(row.id, level))
        waiting[level].append((row, priority))
    done: set[str] = set()
    # Breadth first by strength. After a level, nothing can be reached more strongly. Cycles end at `done`.
    for level, queue in enumerate(waiting):
        for row, priority in queue:  # grows during the iteration
            if row.id in done or best[row.id] < level:
                continue
            done.add(row.id)
            for link in dependencies(row.id):
                reached = max(level, STRENGTH.get(link.type, 2))
                target = find(link.agent, link.name)
                if target is None or best.get(target.id, len(_LEVELS)) <= reached:
                    continue
                best[target.id] = reached
                pulled[target.id] = PulledDependency(
                    target, _LEVELS[reached], priority, f"{row.agent}/{row.name} depends on it"
                )
                waiting[reached].append((target, priority))
    return list(pulled.values())


BY_CALLER = "named by the caller"
HISTORY = "history"
"""Source of items that combine many entries."""

GOAL = "goal_context"
_HINTS = {"task_context": "name the task with --task", GOAL: "name the folder of the goal with --goal-dir"}


@dataclass(frozen=True, slots=True)
class Wish:
    """How an item is requested. The fields are those of `AgentNeed`."""

    need: Need
    priority: int = 0
    max_tokens: int | None = None
    use_summary: bool = False
    because: str = BY_CALLER


class CandidateCollector:
    """Collects the candidate items of one package.

    Attributes:
        items: the candidates; their texts are in ``texts.shelf``.
        absent: the error for the first required need without items.
        missing: (source, name) of items that the caller named but that do not exist.
        notes: warnings for the reader of the package.
        project: the readable keys of the project's context; ``required`` tells whether a need requires them.
        task: the context of the task.
    """

    def __init__(self, audience: Readers, shown: VisibleArtifacts, texts: Texts, budget: int, task: str | None) -> None:
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
        keys = self._audience.store.shared.context_keys()
        return mask_value({one.key: one.value for one in keys if self._audience.reads_key(one.key)})

    def know_task(self, fields: Mapping[str, Any]) -> None:
        """Add the caller's fields to the task's context."""
        self.task |= mask_value(dict(fields))

    def know_goal(self, source: GoalSource) -> None:
        """Use the state of the goal as the content of ``goal_context``."""
        self._goal = write_yaml(goal_fields(source))

    def need(self, need: AgentNeed) -> None:
        """Add the items of a need.

        Raises:
            InvalidInput: the need's pattern has no known form.
        """
        try:
            named = parse_item_name(need.pattern)
        except InvalidInput as error:
            raise InvalidInput(f"a need of {need.agent!r} can't be used: {error.message}", error.hint) from None
        wish = Wish(need.need, need.priority, need.max_tokens, need.use_summary, f"need {need.pattern}")
        # ``if_exists`` means that the item may be missing, so a warning would only cost tokens.
        if self.add(named, wish) or need.need == "if_exists":
            return
        if need.need != "required":
            self.notes.append(f"nothing is there for the {need.need} need {need.pattern}")
        # Stored instead of raised, because an error about the budget is more useful.
        elif self.absent is None:
            otherwise = "put it first, allow the agent to read it, or make the need optional"
            hint = _HINTS.get(named.source, otherwise) if named.form == "context" else otherwise
            self.absent = NotFound(f"{need.agent} requires {need.pattern}, and nothing like it is there", hint)

    def name(self, text: str) -> None:
        """Add the item that the caller names.

        Raises:
            InvalidInput: the name has no known form.
        """
        named = parse_item_name(text)
        if not self.add(named, Wish("optional")):
            self.missing.append(missing_name(named))

    def depend(self) -> None:
        """Add the dependencies of the artifacts added so far."""
        found = find_dependencies(self._rows, self._audience.store.artifacts.dependencies, self._shown.find_dependency)
        for one in found:
            self._add_artifact(one.row, Wish(one.need, one.priority, because=one.because))

    def add(self, named: ItemName, wish: Wish) -> bool:
        """Add the named items, and return whether there are any."""
        if named.form == "context":
            return self._add_context(named.source, wish)
        if named.form == "record":
            return self._add_history_item(items.record_item(self._audience, named), wish)
        if named.form == "owner":
            rows = self._shown.list_by_owner(named.source)
        else:
            row = self._shown.by_id(named.name) if named.form == "id" else self._shown.find(named.source, named.name)
            rows = [] if row is None else [row]
        for row in rows:
            self._add_artifact(row, wish)
            self._rows.append((row, wish.need, wish.priority))
        return bool(rows)

    def _add_context(self, context: str, wish: Wish) -> bool:
        if context == "project_context":  # it always exists, even without keys
            self.required = self.required or wish.need == "required"
            return True
        if context == "task_context":
            if self._task is not None and "executions" not in self.task:
                runs = items.runs(self._audience, self._task)
                self.task |= {"executions": runs} if runs else {}
            return bool(self.task)
        if context == GOAL:
            return self._add_history_item(
                None if self._goal is None else HistoryItem(GOAL, "context", "goal", GOAL, self._goal), wish
            )
        if context == "error_context":
            text = items.failures(self._audience, self._task)
        else:
            runs = items.runs(self._audience, self._task)
            text = items.list_yaml(runs) if runs else None
        return self._add_history_item(None if text is None else HistoryItem(context, "context", HISTORY, context, text), wish)

    def _add_history_item(self, item: HistoryItem | None, wish: Wish) -> bool:
        if item is None:
            return False
        # A goal's folder is not masked, and a record may have been written without masks.
        text: str = mask_value(item.text)
        self._texts.shelf[item.type, item.id] = TextItem(text)
        tokens = self._texts.counter.count(text, YAML)
        self.items.append(self._item(wish, item.id, item.source, item.name, YAML, tokens, None, item.type))
        return True

    def _add_artifact(self, row: ArtifactRow, wish: Wish) -> None:
        kind = item_kind(row)
        item = self._item(wish, row.id, row.agent, row.name, kind, 0, row.version, "artifact")
        # The bytes are not text, and as base64 they would cost more than they tell.
        if row.type == BINARY:
            self.items.append(self.description_item(row, item))
            return
        self._texts.shelf["artifact", row.id] = row
        self.items.append(replace(item, tokens=self._tokens(row, item)))

    def description_item(self, row: ArtifactRow, item: Item) -> Item:
        """Return an item that describes an artifact by size and hash, in place of content that is not text."""
        text = f"{row.agent}/{row.name}: {row.size:,} bytes that are no text, SHA-256 {row.hash}\n"
        self._texts.shelf["artifact", row.id] = TextItem(text, whole=False)
        return replace(item, kind=BINARY, tokens=row.tokens, max_tokens=None, use_summary=True)

    def _item(
        self, wish: Wish, identity: str, source: str, name: str, kind: str, tokens: int, version: int | None, kept_as: str
    ) -> Item:
        return Item(
            id=identity, source=source, name=name, kind=kind, need=wish.need, tokens=tokens, priority=wish.priority,
            max_tokens=wish.max_tokens, use_summary=wish.use_summary, version=version, type=kept_as, because=wish.because,
        )  # fmt: skip

    def _tokens(self, row: ArtifactRow, item: Item) -> int:
        """Return the tokens of a content by the package's counter, or an estimate if the content can't fit anyway."""
        counter = self._texts.counter
        # The history may come from anybody, so a recorded count with more tokens than bytes is not trusted.
        if row.counter == counter.name and 0 <= row.tokens <= row.size + 1:
            return row.tokens
        # No text has 64 bytes per token, so this one can't fit. Reading it only for its size would be useless.
        if row.size > min(MAX_SUMMARISED_BYTES, 64 * max(self._budget, 1)):
            return row.size // 4
        try:
            return counter.count(self._texts.full(item), item.kind)
        except UnreadableError:  # reported when the text is used
            return row.size // 4


BINARY = "binary"
"""Type of artifacts that are not text."""


def item_kind(row: ArtifactRow) -> str:
    """Return the content kind of an artifact. For code, the kind is the language by file name."""
    kind = known_kind(row.type)
    closer = content_kind(row.name, "") if kind == CODE else kind
    return closer if closer in DENSE else kind


def missing_name(named: ItemName) -> tuple[str, str]:
    """Return the (source, name) under which a missing item is listed."""
    return (named.source, named.name) if named.form in ("artifact", "owner", "record") else ("", named.text)


@dataclass(frozen=True, slots=True)
class Draft:
    """Input for an improver: the full text of an artifact, its kind, and its summary by structure.

    ``most`` is the token limit for a better summary.
    """

    name: str
    kind: str
    text: str
    summary: str
    most: int


class Improver(Protocol):
    """Writes better summaries.

    Attributes:
        name: name and version, used as part of the cache key of summaries.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see the class

    def improve(self, draft: Draft) -> str | None:
        """Return a better summary, or None; an exception counts as None."""
        ...


def improve_summary(improver: Improver, name: str, text: str, kind: str, made: Summary, counter: Counter) -> Summary | None:
    """Return the improver's summary if it is acceptable, else None.

    It must not be blank, must not contain control characters except tabs and line ends, and must have neither more tokens nor
    more characters than the summary by structure.
    """
    # The summary left nothing out, so there is nothing to improve.
    if made.lossless:
        return None
    try:
        better: object = improver.improve(Draft(name, kind, text, made.text, made.tokens))
    except Exception:  # the model's client may raise anything; the summary by structure remains
        return None
    if not isinstance(better, str) or not better.strip() or len(better) > len(made.text):
        return None
    # A model's words go into a prompt, so they must not contain escape sequences or hidden characters.
    if is_unnameable(better.translate({9: " ", 10: " "})):
        return None
    tokens = counter.count(better, kind)
    if tokens > made.tokens:
        return None
    return Summary(better, f"{made.strategy}+{improver.name}", tokens, made.original_tokens, lossless=False)


MAX_SUMMARISED_BYTES = 32_000_000
"""Maximum size in bytes of an artifact that is read for a summary. A larger one is only described."""

Contents = Callable[[ArtifactRow], bytes]
"""Returns the bytes of an artifact, verified against its hash. Raises `CtxmgrError` if they are missing or changed."""


class UnreadableError(CtxmgrError):
    """The content of an item can't be read.

    Attributes:
        item: the item.
        cause: the underlying error.
    """

    kind = "damaged"

    def __init__(self, item: Item, cause: CtxmgrError) -> None:
        super().__init__(cause.message, cause.hint)
        self.item = item
        self.cause = cause


class NoTextError(CtxmgrError):
    """The content of an artifact is not text."""

    kind = "invalid"


@dataclass(frozen=True, slots=True)
class TextItem:
    """A text in memory, such as a part of the history. ``whole`` is false for a description in place of the content."""

    text: str
    whole: bool = True


@dataclass(slots=True)
class Texts:
    """Reads, summarises and caches the texts of a package.

    Attributes:
        shelf: (type, id) -> the text, or the artifact to read it from.
        made: new summaries, which `keep` stores in the cache.
        summarised: number of new summaries.
    """

    store: Store
    contents: Contents
    counter: Counter
    improver: Improver | None = None
    shelf: dict[tuple[str, str], TextItem | ArtifactRow] = field(
        default_factory=lambda: dict[tuple[str, str], TextItem | ArtifactRow]()
    )
    made: list[tuple[str, str, SummaryRow]] = field(default_factory=lambda: list[tuple[str, str, SummaryRow]]())
    summarised: int = 0
    _full: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    _short: dict[str, Summary] = field(default_factory=lambda: dict[str, Summary]())

    def full(self, item: Item) -> str:
        """Return the full text of an item.

        Raises:
            UnreadableError: the text can't be read.
        """
        found = self.shelf[item.type, item.id]
        if isinstance(found, TextItem):
            return found.text
        if found.hash not in self._full:
            self._full[found.hash] = self._read(item, found)
        return self._full[found.hash]

    def summary(self, item: Item, most: int | None = None) -> Summary:
        """Return the summary of an item, in ``most`` tokens if possible. With this limit, it is not cached.

        Raises:
            UnreadableError: the text can't be read.
        """
        found = self.shelf[item.type, item.id]
        if isinstance(found, TextItem):
            if not found.whole:
                tokens = self.counter.count(found.text, item.kind)
                return Summary(found.text, "described", tokens, max(item.tokens, tokens), lossless=False)
            return summarise(item.name, found.text, item.kind, self.counter, most)
        if found.size > MAX_SUMMARISED_BYTES:
            text = f"{found.agent}/{found.name}: {found.size:,} bytes, too large for a summary, SHA-256 {found.hash}\n"
            return Summary(text, "described", self.counter.count(text, item.kind), item.tokens, lossless=False)
        if most is not None:
            return summarise(item.name, self._text(item, found), item.kind, self.counter, most)
        known = f"{found.hash} {item.kind}"
        if known not in self._short:
            self._short[known] = self._find_summary(item, found)
        return self._short[known]

    def keep(self) -> None:
        """Store the new summaries in the cache, unless the store is read-only."""
        if not self.store.readonly:
            for content, strategy, row in self.made:
                self.store.shared.keep_summary(content, strategy, self.counter.name, row)
            self.made.clear()

    def _find_summary(self, item: Item, row: ArtifactRow) -> Summary:
        strategy = strategy_key(item.kind)
        if self.improver is not None:
            named = f"{strategy}+{self.improver.name}"
            better = self._cached_summary(item, row, named) or self._improve_summary(self.improver, item, row, named)
            if better is not None:
                return better
        return self._structural_summary(item, row, strategy)

    def _improve_summary(self, improver: Improver, item: Item, row: ArtifactRow, strategy: str) -> Summary | None:
        made = self._structural_summary(item, row, strategy_key(item.kind))
        better = improve_summary(improver, item.name, self._text(item, row), item.kind, made, self.counter)
        if better is not None:
            self._remember(row, strategy, better)
        return better

    def _structural_summary(self, item: Item, row: ArtifactRow, strategy: str) -> Summary:
        found = self._cached_summary(item, row, strategy)
        if found is None:
            found = summarise(item.name, self._text(item, row), item.kind, self.counter)
            self.summarised += 1
            self._remember(row, strategy, found)
        return found

    def _cached_summary(self, item: Item, row: ArtifactRow, strategy: str) -> Summary | None:
        found = self.store.shared.summary(row.hash, strategy, self.counter.name)
        if found is None:
            return None
        text = self._text(item, row) if found.lossless else found.text
        return Summary(text, strategy, found.tokens, found.original_tokens, found.lossless)

    def _remember(self, row: ArtifactRow, strategy: str, made: Summary) -> None:
        text = "" if made.lossless else made.text  # the full text is already in the artifact store
        self.made.append((row.hash, strategy, SummaryRow(text, made.tokens, made.original_tokens, made.lossless)))

    def _text(self, item: Item, row: ArtifactRow) -> str:
        """Return the full text without caching it, because a large one is read only for its summary."""
        known = self._full.get(row.hash)
        return self._read(item, row) if known is None else known

    def _read(self, item: Item, row: ArtifactRow) -> str:
        try:
            # Masked here, before a text is counted, summarised or cut: a cut could leave a part of a secret that nothing masks.
            return mask_value(self.contents(row).decode("utf-8"))
        except UnicodeDecodeError:
            raise UnreadableError(item, NoTextError("its content is no text in UTF-8")) from None
        except CtxmgrError as error:
            raise UnreadableError(item, error) from None


@lru_cache(maxsize=64)
def strategy_key(kind: str) -> str:
    """Return the cache key for summaries of a kind: names and versions of all installed summarisers for it.

    Summaries of masked text are marked, so that none that was made before texts were masked is taken from the cache.
    """
    names = [one.strategy for one in SUMMARISERS if kind in one.kinds]
    if kind in GRAMMARS:
        from ctxmgr.context.summaries.grammar import has_grammar

        names = [name for name in names if not name.startswith("grammar/") or has_grammar(kind)]
    return f"{kind}:masked/1|{'|'.join(names)}"
