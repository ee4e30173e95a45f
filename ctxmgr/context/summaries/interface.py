"""What a summary is, what makes one, and the choice among those that can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ctxmgr.text.content_kind import JSON, MARKDOWN, PYTHON, TEXT, YAML, kind_of, known_kind
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.tokens import Counter


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


SMALL = 40
"""Tokens up to which a text is left as it is: a summary of so little says nothing."""

_FRAMES = {MARKDOWN: ("<!-- ", " -->"), TEXT: ("[", "]")}
_HASHES = (YAML, JSON, PYTHON, "ruby", "shell")
_SAYING = "summary by structure; in full: {tokens:,} tokens"
_SAID = lazy_pattern(r"(?:<!-- |\[|# |// )summary by structure; in full: [\d,]{1,20} tokens(?: -->|\])?\n")


def summarise_with(
    summarisers: Sequence[Summariser], name: str, text: str, kind: str, counter: Counter, most: int | None = None
) -> Summary:
    """Return the summary by the first summariser that can read the text."""
    kind = known_kind(kind) if kind.strip() else kind_of(name, text)
    original = counter.count(text, kind)
    whole = Summary(text, "none", original, original, lossless=True)
    said = _SAID.match(text)
    body = text[said.end() :] if said else text
    if original <= SMALL or not body.strip():
        return whole
    for summariser in summarisers:
        if kind in summariser.kinds and len(text) <= summariser.limit:
            found = _drafted(summariser, body, kind, counter, whole, most)
            if found is not None:
                return found
    return whole


def _drafted(
    summariser: Summariser, body: str, kind: str, counter: Counter, whole: Summary, most: int | None
) -> Summary | None:
    """Return a summary, the whole text where no draft is shorter, or None where there is no draft."""
    target = whole.original_tokens * summariser.target // 100
    target = target if most is None else min(target, most)
    head = _header(kind, whole.original_tokens)
    draft = None
    try:
        for draft in summariser.drafts(body, kind):
            if counter.count(head + draft, kind) <= target:
                break
    except Exception:  # a parser may raise anything on a text made to break it; the next summariser needs none
        return None
    if draft is None:
        return None
    for text in (head + draft, draft):
        tokens = counter.count(text, kind)
        if tokens < whole.original_tokens and len(text) < len(whole.text):
            return Summary(text, summariser.strategy, tokens, whole.original_tokens, lossless=False)
    return whole


def _header(kind: str, tokens: int) -> str:
    opening, closing = _FRAMES.get(kind, ("# ", "") if kind in _HASHES else ("// ", ""))
    return f"{opening}{_SAYING.format(tokens=tokens)}{closing}\n"
