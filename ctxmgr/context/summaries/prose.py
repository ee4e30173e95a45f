"""Summaries of prose: the telling sentences of a paragraph, and of a plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ctxmgr.text.content_kind import TEXT
from ctxmgr.text.lazy_pattern import lazy_pattern

MORE = "…"
BODY_LINES = (60, 40, 28, 20, 14, 10, 7, 5, 4, 3, 2, 1)
"""Lines of an implementation that the drafts of a summary of code show, the most detailed draft first."""
_END = lazy_pattern(r"[.!?]['\")\]*_`]*(?=\s|$)|[。！？]")
_NO_END = lazy_pattern(
    r"(?:\b(?:e\.g|i\.e|cf|vs|etc|approx|incl|resp|Mr|Mrs|Ms|Dr|Prof|St|No|Fig|Sec|Inc|Ltd|Co)|\b[A-Za-z]|^\d+)\.$"
)


def one_line(text: str) -> str:
    """Return the text with every run of blanks and line ends as one space."""
    return " ".join(text.split())


def shortened(text: str, limit: int) -> str:
    """Return the text in at most ``limit`` characters, cut at a blank where there is one near, with a mark of the cut."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - 1, 0)]
    blank = head.rfind(" ")
    return (head[:blank] if blank > limit // 2 else head).rstrip() + MORE if limit > 0 else ""


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence as one line of at most ``limit`` characters."""
    line = one_line(text[: 4 * limit + 200])
    for end in _END.finditer(line):
        if not _NO_END.search(line[max(0, end.start() - 10) : end.start() + 1]):
            return shortened(line[: end.end()], limit)
    return shortened(line, limit)


def first_sentences(text: str, limit: int) -> str:
    """Return as many whole sentences as fit into ``limit`` characters, as one line; the first one, if need be cut."""
    line = one_line(text[: 4 * limit + 200])
    told = first_sentence(text, limit)
    for end in _END.finditer(line):
        if end.end() > limit:
            break
        if end.end() > len(told) and not _NO_END.search(line[max(0, end.start() - 10) : end.start() + 1]):
            told = line[: end.end()]
    return told


def first_paragraph(text: str) -> str:
    """Return what comes before the first blank line, as one line."""
    return one_line(re.split(r"\n[ \t]*\n", text.strip()[:10_000], maxsplit=1)[0])


def body_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the first lines of an implementation that say something, as they are indented among one another."""
    kept = [line.rstrip().expandtabs(4) for line in lines if line.strip(" \t{}();,")][: BODY_LINES[0] + 1]
    least = min((len(line) - len(line.lstrip()) for line in kept[1:] or kept), default=0)
    return tuple(line[min(least, len(line) - len(line.lstrip())) :] for line in kept)


def cut_body(lines: Sequence[str], count: int, indent: str) -> Iterator[str]:
    """Yield the first lines of an implementation, each cut to a width, and a mark where more follow."""
    yield from (indent + shortened(line, 100) for line in lines[:count])
    if count and len(lines) > count:
        yield indent + MORE


def around_the_middle(lines: Sequence[str], head: int, tail: int, width: int) -> str:
    """Return the first and last lines, each in at most ``width`` characters, and between them how many are left out."""
    if len(lines) <= head + tail:
        return "\n".join(shortened(line, width) for line in lines)
    left_out = f"{MORE} {len(lines) - head - tail:,} more lines"
    last = [shortened(line, width) for line in lines[len(lines) - tail :]]
    return "\n".join([*(shortened(line, width) for line in lines[:head]), left_out, *last])


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
