"""The interface for better summaries, for example by a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ctxmgr.access.patterns import is_unnameable
from ctxmgr.context.summaries import Summary
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
