"""Choose among drafts of a summary: the most detailed one within the target."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.context.summaries.interface import Summariser, Summary
from ctxmgr.text.content_kind import JSON, MARKDOWN, PYTHON, TEXT, YAML, kind_of, known_kind
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.tokens import Counter

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
