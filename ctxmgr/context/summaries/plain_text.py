"""Summarise plain text by first sentences, or by its beginning and end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.context.summaries.prose import MORE, around_the_middle, first_sentence, shortened
from ctxmgr.text.content_kind import TEXT

_PARAGRAPHS = 3
_LIMITS = (300, 160, 100, 60)


class TextSummariser:
    """Prose by its paragraphs; a log, a table or one endless line by its first and last lines."""

    strategy = "text/1"
    kinds = frozenset({TEXT})
    target = 25
    limit = 64_000_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield summaries; the last is a line."""
        if len(text) <= 1_000_000:
            paragraphs = [part for part in re.split(r"\n[ \t\r]*\n", text.strip()) if part.strip()]
            if len(paragraphs) >= _PARAGRAPHS:
                for limit in _LIMITS:
                    yield "\n\n".join(first_sentence(part, limit) for part in paragraphs) + "\n"
        yield from beginnings(text)


def beginnings(text: str) -> Iterator[str]:
    """Yield the first and last lines of a text, fewer and shorter each time; the last draft is one short line."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    lines = lines or [text.strip()]
    share = len(text) // 5
    for width in (200, 120):
        many = max(3, share // (sum(min(len(line), width) for line in lines) // len(lines) + 1))
        while many >= 3:
            yield around_the_middle(lines, many - many // 3, many // 3, width) + "\n"
            many //= 2
    if len(lines) == 1:
        whole = text.strip()
        for part in (len(whole) // 5, 400, 100):
            yield f"{shortened(whole[: part + 1], part)} {MORE} {len(whole):,} characters\n"
    yield shortened(lines[0], 80) + "\n"
