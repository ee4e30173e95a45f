"""The interface of a summariser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Summary:
    """A shorter text in place of a longer one.

    Attributes:
        text: the summary; the original where nothing shorter says it.
        strategy: what made it, with its version: a cache keys on it. ``none`` where the text is the original.
        tokens: size of ``text``.
        original_tokens: size of the original, by the same counter.
        lossless: the text is the original, whole.
    """

    text: str
    strategy: str
    tokens: int
    original_tokens: int
    lossless: bool


class Summariser(Protocol):
    """Makes shorter texts of one family of kinds, by their structure alone.

    Attributes:
        strategy: its name and version; a change of what it writes is a new version.
        kinds: what it reads, of `ctxmgr.text.content_kind.KINDS`.
        target: per cent of the original's tokens that a summary should have at most.
        limit: characters of the longest text that it takes; a longer one goes to the next summariser.
    """

    @property
    def strategy(self) -> str: ...  # noqa: D102 - see the class

    @property
    def kinds(self) -> frozenset[str]: ...  # noqa: D102 - see the class

    @property
    def target(self) -> int: ...  # noqa: D102 - see the class

    @property
    def limit(self) -> int: ...  # noqa: D102 - see the class

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield summaries, the most detailed first; the last is the least that may be said.

        May raise anything on a text it can't read, or yield nothing: the next summariser is asked then.
        """
        ...
