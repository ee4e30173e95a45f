"""Read the texts of items; summarise each content once per strategy and counter, by a model where one is set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from ctxmgr.access.patterns import is_unnameable
from ctxmgr.context.budget import Item
from ctxmgr.context.summaries import SUMMARISERS, Summary, summarise
from ctxmgr.context.summaries.grammar import GRAMMARS
from ctxmgr.errors import CtxmgrError
from ctxmgr.store import Store
from ctxmgr.store.repositories.artifacts import ArtifactRow
from ctxmgr.store.repositories.shared_state import SummaryRow
from ctxmgr.text.tokens import Counter


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be said better: the whole text of an artifact, its kind, and the summary that its structure gives.

    ``most`` is the number of tokens that a better one may have.
    """

    name: str
    kind: str
    text: str
    summary: str
    most: int


class Improver(Protocol):
    """Writes better summaries.

    Attributes:
        name: what it is called, with its version: summaries are cached under it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see the class

    def improve(self, draft: Draft) -> str | None:
        """Return a better summary, or None to leave it; what it raises counts as None."""
        ...


def improved(improver: Improver, name: str, text: str, kind: str, made: Summary, counter: Counter) -> Summary | None:
    """Return the summary that an improver writes, or None where it has none that can be taken.

    It is taken when it is text with something in it, holds no control character but tabs and line ends, and has neither
    more tokens nor more characters than the summary by structure.
    """
    if made.lossless:
        return None
    try:
        better: object = improver.improve(Draft(name, kind, text, made.text, made.tokens))
    except Exception:  # whatever a model's client raises, the summary by structure is there
        return None
    if not isinstance(better, str) or not better.strip() or len(better) > len(made.text):
        return None
    if is_unnameable(better.translate({9: " ", 10: " "})):
        return None
    tokens = counter.count(better, kind)
    if tokens > made.tokens:
        return None
    return Summary(better, f"{made.strategy}+{improver.name}", tokens, made.original_tokens, lossless=False)


MAX_SUMMARISED_BYTES = 32_000_000
"""Bytes of the largest artifact that is read for a summary; a larger one is described."""

Contents = Callable[[ArtifactRow], bytes]
"""Returns the bytes of an artifact, verified against its hash; raises `CtxmgrError` when they are gone or changed."""


class UnreadableError(CtxmgrError):
    """The content of an item can't be given.

    Attributes:
        item: which.
        cause: why.
    """

    kind = "damaged"

    def __init__(self, item: Item, cause: CtxmgrError) -> None:
        super().__init__(cause.message, cause.hint)
        self.item = item
        self.cause = cause


class NoTextError(CtxmgrError):
    """The content of an artifact is no text."""

    kind = "invalid"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A text that is at hand: a part of the history; ``whole`` is false for a description in place of the content."""

    text: str
    whole: bool = True


@dataclass(slots=True)
class Texts:
    """Where the texts of a package come from.

    Attributes:
        made: summaries that were not cached; `keep` caches them.
        summarised: how many summaries were made.
    """

    store: Store
    contents: Contents
    counter: Counter
    improver: Improver | None = None
    shelf: dict[tuple[str, str], Fixed | ArtifactRow] = field(
        default_factory=lambda: dict[tuple[str, str], Fixed | ArtifactRow]()
    )
    made: list[tuple[str, str, SummaryRow]] = field(default_factory=lambda: list[tuple[str, str, SummaryRow]]())
    summarised: int = 0
    _full: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    _short: dict[str, Summary] = field(default_factory=lambda: dict[str, Summary]())

    def full(self, item: Item) -> str:
        """Return the whole text of an item.

        Raises:
            UnreadableError: it can't be had.
        """
        found = self.shelf[item.type, item.id]
        if isinstance(found, Fixed):
            return found.text
        if found.hash not in self._full:
            self._full[found.hash] = self._read(item, found)
        return self._full[found.hash]

    def summary(self, item: Item, most: int | None = None) -> Summary:
        """Return the summary of an item, in ``most`` tokens where that can be done; one that was made shorter is not cached.

        Raises:
            UnreadableError: its text can't be had.
        """
        found = self.shelf[item.type, item.id]
        if isinstance(found, Fixed):
            if not found.whole:
                tokens = self.counter.count(found.text, item.kind)
                return Summary(found.text, "described", tokens, max(item.tokens, tokens), lossless=False)
            return summarise(item.name, found.text, item.kind, self.counter, most)
        if found.size > MAX_SUMMARISED_BYTES:
            said = f"{found.agent}/{found.name}: {found.size:,} bytes, too large for a summary, SHA-256 {found.hash}\n"
            return Summary(said, "described", self.counter.count(said, item.kind), item.tokens, lossless=False)
        if most is not None:
            return summarise(item.name, self._text(item, found), item.kind, self.counter, most)
        known = f"{found.hash} {item.kind}"
        if known not in self._short:
            self._short[known] = self._summary_of(item, found)
        return self._short[known]

    def keep(self) -> None:
        """Cache the summaries that were made; in a store that is only read they are not."""
        if not self.store.readonly:
            for content, strategy, row in self.made:
                self.store.shared.keep_summary(content, strategy, self.counter.name, row)
            self.made.clear()

    def _summary_of(self, item: Item, row: ArtifactRow) -> Summary:
        strategy = strategy_for(item.kind)
        if self.improver is not None:
            named = f"{strategy}+{self.improver.name}"
            better = self._cached(item, row, named) or self._improved(self.improver, item, row, named)
            if better is not None:
                return better
        return self._by_structure(item, row, strategy)

    def _improved(self, improver: Improver, item: Item, row: ArtifactRow, strategy: str) -> Summary | None:
        made = self._by_structure(item, row, strategy_for(item.kind))
        better = improved(improver, item.name, self._text(item, row), item.kind, made, self.counter)
        if better is not None:
            self._made(row, strategy, better)
        return better

    def _by_structure(self, item: Item, row: ArtifactRow, strategy: str) -> Summary:
        found = self._cached(item, row, strategy)
        if found is None:
            found = summarise(item.name, self._text(item, row), item.kind, self.counter)
            self.summarised += 1
            self._made(row, strategy, found)
        return found

    def _cached(self, item: Item, row: ArtifactRow, strategy: str) -> Summary | None:
        found = self.store.shared.summary(row.hash, strategy, self.counter.name)
        if found is None:
            return None
        text = self._text(item, row) if found.lossless else found.text
        return Summary(text, strategy, found.tokens, found.original_tokens, found.lossless)

    def _made(self, row: ArtifactRow, strategy: str, made: Summary) -> None:
        text = "" if made.lossless else made.text  # what is whole is read again, not stored twice
        self.made.append((row.hash, strategy, SummaryRow(text, made.tokens, made.original_tokens, made.lossless)))

    def _text(self, item: Item, row: ArtifactRow) -> str:
        """Return the whole text; it is not held on to, for a large one is read for its summary alone."""
        known = self._full.get(row.hash)
        return self._read(item, row) if known is None else known

    def _read(self, item: Item, row: ArtifactRow) -> str:
        try:
            return self.contents(row).decode("utf-8")
        except UnicodeDecodeError:
            raise UnreadableError(item, NoTextError("its content is no text in UTF-8")) from None
        except CtxmgrError as error:
            raise UnreadableError(item, error) from None


@lru_cache(maxsize=64)
def strategy_for(kind: str) -> str:
    """Return what summaries of a kind are cached under: all the summarisers that may have it, with what is installed."""
    names = [one.strategy for one in SUMMARISERS if kind in one.kinds]
    if kind in GRAMMARS:
        from ctxmgr.context.summaries.grammar import has_grammar

        names = [name for name in names if not name.startswith("grammar/") or has_grammar(kind)]
    return f"{kind}:{'|'.join(names)}"
