"""Summarise Markdown: headings, first sentences, and the starts of code, lists and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ctxmgr.context.summaries.prose import MORE, first_sentence, first_sentences, one_line, shortened
from ctxmgr.text.content_kind import MARKDOWN

if TYPE_CHECKING:
    from markdown_it.token import Token

_MATTER = "~~~"
Role = Literal["heading", "text", "code", "list", "table", "matter"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the document: its lines (of a list one line an item), and what opens and closes it."""

    role: Role
    lines: tuple[str, ...]
    fence: str = ""
    info: str = ""


@dataclass(frozen=True, slots=True)
class _Detail:
    sentence: int
    code: int
    items: int
    item: int
    rows: int
    paragraphs: int = 0


_LEVELS = (
    *(
        _Detail(100 * size, 2 * size, size + 1, 25 * size, size, max(1, size // 4))
        for size in (80, 56, 40, 28, 20, 16, 12, 10, 8, 7, 6, 5, 4)
    ),
    _Detail(320, 8, 5, 100, 4, 1),
    _Detail(260, 7, 4, 90, 3, 1),
    _Detail(210, 6, 4, 80, 3, 1),
    _Detail(160, 5, 3, 80, 2, 1),
    _Detail(120, 5, 3, 80, 2, 1),
    _Detail(400, 8, 5, 100, 4),
    _Detail(300, 5, 3, 80, 2),
    _Detail(240, 3, 2, 70, 1),
    _Detail(200, 2, 1, 60, 0),
    _Detail(160, 1, 1, 40, 0),
    _Detail(120, 1, 0, 0, 0),
    _Detail(90, 0, 0, 0, 0),
    _Detail(60, 0, 0, 0, 0),
    _Detail(30, 0, 0, 0, 0),
    _Detail(0, 0, 0, 0, 0),
)


"""From the most to the least. ``paragraphs`` of a section are told in whole sentences; where it is 0, the first sentence is."""


class MarkdownSummariser:
    """CommonMark with tables; inline markup is text here and stays as it is written."""

    strategy = "markdown/2"
    kinds = frozenset({MARKDOWN})
    target = 25
    limit = 1_000_000

    def drafts(self, text: str, kind: str) -> Iterator[str]:
        """Yield summaries; the last has the headings alone, or the first sentence where there is no heading."""
        found = blocks(text)
        for detail in _LEVELS:
            draft = "\n".join(_written(found, detail))
            if draft:
                yield draft + "\n"


def blocks(text: str) -> list[Block]:
    """Return the document as a list of blocks in their order; blocks within quotes and lists are among them."""
    from markdown_it import MarkdownIt

    matter, body = _front_matter(text)
    parser = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
    tokens, source = parser.parse(body), body.splitlines()
    found = [Block("matter", tuple(matter))] if matter else []
    within: list[str] = []  # the items of the list that is being read, outermost list only
    depth = number = 0
    while number < len(tokens):
        token = tokens[number]
        opening = token.type in ("bullet_list_open", "ordered_list_open")
        depth += opening - (token.type in ("bullet_list_close", "ordered_list_close"))
        if token.type == "heading_open":
            within = _flushed(within, found)
            found.append(_heading(token, tokens[number + 1]))
            number += 1
        elif token.type == "inline" and depth:
            within.append(token.content)
        elif token.type == "inline":
            found.append(Block("text", (token.content,)))
        elif token.type in ("fence", "code_block"):
            within = _flushed(within, found)
            found.append(Block("code", tuple(token.content.splitlines()), token.markup or "```", token.info))
        elif token.type == "table_open":
            within = _flushed(within, found)
            found.append(_table(token, source))
            number = _closing(tokens, number)
        if not depth:
            within = _flushed(within, found)
        number += 1
    _flushed(within, found)
    return found


def _flushed(items: list[str], found: list[Block]) -> list[str]:
    if items:
        found.append(Block("list", tuple(items)))
    return []


def _heading(opening: Token, inline: Token) -> Block:
    title = one_line(inline.content)
    if title.rstrip("#") != title and (title.rstrip("#")[-1:] in ("", " ")):
        title = f"{title} #"  # else its last signs would be taken for a closing sequence
    return Block("heading", (f"{'#' * int(opening.tag[1:])} {title}".rstrip(),))


def _table(opening: Token, source: Sequence[str]) -> Block:
    first, last = opening.map or [0, 0]
    return Block("table", tuple(line.strip() for line in source[first:last]) if opening.level == 0 else ())


def _closing(tokens: Sequence[Token], number: int) -> int:
    level = tokens[number].level
    while number < len(tokens) and not (tokens[number].type == "table_close" and tokens[number].level == level):
        number += 1
    return number


def _front_matter(text: str) -> tuple[list[str], str]:
    if not text.startswith(("---\n", "---\r\n")):
        return [], text
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines[1:200], 1) if line.rstrip() == "---"), 0)
    return ([line.rstrip() for line in lines[1:end]], "\n".join(lines[end + 1 :])) if end else ([], text)


def _written(found: Sequence[Block], detail: _Detail) -> Iterator[str]:
    """Yield the lines; a paragraph counts where it is one of the first of its section."""
    most = max(1, detail.paragraphs)
    left, only = most, not any(block.role == "heading" for block in found)
    shorten = first_sentences if detail.paragraphs else first_sentence
    for block in found:
        if block.role == "heading":
            left = most
            yield block.lines[0]
        elif block.role == "text":
            least = 80 if only else 0
            if left and (text := shorten(block.lines[0], max(detail.sentence, least))):
                yield from (text, "")
                left, only = left - 1, False
        else:
            lines = list(_part(block, detail))
            yield from lines
            if lines and block.role == "list" and not detail.paragraphs:
                left = 0


def _part(block: Block, detail: _Detail) -> Iterator[str]:
    if block.role == "matter" and detail.items:
        lines = (shortened(line, 2 * detail.item) for line in block.lines[: 2 * detail.items] if _MATTER not in line)
        yield from (f"{_MATTER}yaml", *lines, _MATTER)  # between dashes it would be a heading below the summary's first line
    elif block.role == "code" and detail.code and block.lines:
        more = len(block.lines) - detail.code
        info = shortened(one_line(block.info), 40)
        yield f"{block.fence}{info}"
        yield from (shortened(line.rstrip(), 120) for line in block.lines[: detail.code])
        yield from [f"{MORE} {more:,} more lines"] if more > 1 else block.lines[detail.code :]
        yield from (block.fence, "")
    elif block.role == "list" and detail.items:
        yield from (f"- {first_sentence(item, detail.item)}" for item in block.lines[: detail.items])
        more = len(block.lines) - detail.items
        yield from ([f"- {MORE} {more:,} more"] if more > 0 else [])
        yield ""
    elif block.role == "table" and detail.items and block.lines:
        yield from (shortened(line, 200) for line in block.lines[: 2 + detail.rows])
        more = len(block.lines) - 2 - detail.rows
        yield from ([f"{MORE} {more:,} more rows"] if more > 0 else [])
        yield ""
