"""Summaries line by line: for languages without a parser here, and for what the parser of its kind can't read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxmgr.assemble.kinds import CODE, KINDS, LANGUAGES, MARKDOWN, PYTHON, TEXT
from ctxmgr.assemble.summaries.notation import NOTATIONS, Notation
from ctxmgr.assemble.summaries.plain_text import beginnings
from ctxmgr.assemble.summaries.wording import BODY_LINES, body_lines, cut_body, first_sentence, one_line, shortened

_CODE = frozenset({*LANGUAGES, PYTHON, CODE})
_LONGEST = 600
_MOSTLY = 0.8  # of a text that is nothing but definitions, all of them would be no summary
_COMMENT_SIGNS = " \t/*#!-<"


@dataclass(frozen=True, slots=True)
class _Definition:
    opening: str
    indent: int
    comment: str
    body: list[str]


class LineSummariser:
    """Lines that open a definition, a key or a heading, with the comment above each; of code, how it goes on below."""

    strategy = "lines/2"
    kinds = frozenset(KINDS) - {TEXT}
    target = 30
    limit = 64_000_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield summaries: with comments, without, then only the outer levels of data; plain text's where nothing opens."""
        notation = NOTATIONS[kind]
        found = list(_definitions(text, notation, fenced=kind == MARKDOWN))
        mark = "//" if notation.comments[:1] and notation.comments[0].startswith("//") else "#"
        for count in BODY_LINES if found and kind in _CODE else ():
            yield "\n".join(_written(found, 160, mark, count)) + "\n"
        for comment in (160, 80, 0):
            if found:
                yield "\n".join(_written(found, comment, mark)) + "\n"
        if kind in ("yaml", "json") and found:
            for levels in (3, 2, 1):
                yield from _outer(found, levels)
        told = sum(len(one.opening) for one in found)
        if not found or kind in ("yaml", "json") or told > len(text) * _MOSTLY:
            yield from beginnings(text)


def _definitions(text: str, notation: Notation, *, fenced: bool) -> Iterator[_Definition]:
    comments: list[str] = []
    body: list[str] = []  # of the definition before
    within = False
    for line in text.splitlines():
        bare = line.strip()
        if fenced and bare.startswith(("```", "~~~")):
            within = not within
        if within:
            continue
        if notation.comments and bare.startswith(notation.comments):
            comments.append(bare)
        elif bare and notation.opens.match((" " if line[0] in " \t" else "") + one_line(bare[:_LONGEST])):
            body = []
            yield _Definition(_opening(line), len(line) - len(line.lstrip()), _comment(comments), body)
            comments = []
        elif bare and not bare.startswith(("@", "#[")):
            comments = []
            if len(body) <= BODY_LINES[0]:
                body.append(line[: 2 * _LONGEST])


def _opening(line: str) -> str:
    """Return a definition's line without the brace that opens its body."""
    return re.sub(r"\s*\{\s*$", "", shortened(line.rstrip()[: _LONGEST + 1], _LONGEST))


def _comment(lines: Sequence[str]) -> str:
    words: list[str] = []
    for line in lines[:200]:
        bare = line.strip(_COMMENT_SIGNS)
        if words and not bare:
            break
        words += [bare] if bare else []
    return one_line(" ".join(words))


def _written(found: Sequence[_Definition], limit: int, mark: str, count: int = 0) -> Iterator[str]:
    for definition in found:
        told = first_sentence(definition.comment, limit) if limit and definition.comment else ""
        indent = " " * min(definition.indent, 40)
        yield f"{indent}{definition.opening.strip()}" + (f"  {mark} {told}" if told else "")
        if count:
            yield from cut_body(body_lines(definition.body), count, indent + "    ")


def _outer(found: Sequence[_Definition], levels: int) -> Iterator[str]:
    """Yield the definitions of the outermost levels, by how far they are indented, with what follows a key cut short."""
    kept = sorted({definition.indent for definition in found})[:levels]
    for width in (60, 30):
        yield "\n".join(shortened(one.opening, one.indent + width) for one in found if one.indent in kept) + "\n"
