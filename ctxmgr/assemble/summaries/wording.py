"""Shorten prose: the first sentence of a paragraph, a line cut at a word, a file with its middle left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

MORE = "…"
_END = re.compile(r"[.!?]['\")\]*_`]*(?=\s|$)|[。！？]")
_NO_END = re.compile(
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


def first_paragraph(text: str) -> str:
    """Return what comes before the first blank line, as one line."""
    return one_line(re.split(r"\n[ \t]*\n", text.strip()[:10_000], maxsplit=1)[0])


def around_the_middle(lines: Sequence[str], head: int, tail: int, width: int) -> str:
    """Return the first and last lines, each in at most ``width`` characters, and between them how many are left out."""
    if len(lines) <= head + tail:
        return "\n".join(shortened(line, width) for line in lines)
    left_out = f"{MORE} {len(lines) - head - tail:,} more lines"
    last = [shortened(line, width) for line in lines[len(lines) - tail :]]
    return "\n".join([*(shortened(line, width) for line in lines[:head]), left_out, *last])
