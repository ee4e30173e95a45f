"""Summarise text without a parser: prose by its first sentences, code by its opening lines, Markdown by blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.text.tokens import CODE, KINDS, LANGUAGES, MARKDOWN, PYTHON, TEXT

if TYPE_CHECKING:
    from markdown_it.token import Token


MORE = "…"
BODY_LINES = (60, 40, 28, 20, 14, 10, 7, 5, 4, 3, 2, 1)
"""Lines per function body in the drafts of a code summary, the most detailed draft first."""
_END = lazy_pattern(r"[.!?]['\")\]*_`]*(?=\s|$)|[。！？]")
# Abbreviations, initials and list numbers, whose full stop does not end a sentence.
_NO_END = lazy_pattern(
    r"(?:\b(?:e\.g|i\.e|cf|vs|etc|approx|incl|resp|Mr|Mrs|Ms|Dr|Prof|St|No|Fig|Sec|Inc|Ltd|Co)|\b[A-Za-z]|^\d+)\.$"
)


Draft = str | tuple[str, ...]
"""A draft of a summary. In parts, of which each draft has as many, because the first parts may be taken from a longer draft."""


def join_lines(lines: Iterable[str]) -> str:
    """Return the lines as text, each with its line end."""
    return "".join(f"{line}\n" for line in lines)


def one_line(text: str) -> str:
    """Return the text with every run of blanks and line ends as one space."""
    return " ".join(text.split())


def shorten(text: str, limit: int) -> str:
    """Return the text in at most ``limit`` characters, cut at a blank if possible, with an ellipsis at the cut."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - 1, 0)]
    blank = head.rfind(" ")
    # Cut within a word if the last blank would leave more than half of the room empty.
    return (head[:blank] if blank > limit // 2 else head).rstrip() + MORE if limit > 0 else ""


def first_sentence(text: str, limit: int) -> str:
    """Return the first sentence as one line of at most ``limit`` characters."""
    # Cut before normalising the blanks: only the beginning is needed, and there may be many blanks.
    line = one_line(text[: 4 * limit + 200])
    for end in _END.finditer(line):
        if not _NO_END.search(line[max(0, end.start() - 10) : end.start() + 1]):
            return shorten(line[: end.end()], limit)
    return shorten(line, limit)


def first_sentences(text: str, limit: int) -> str:
    """Return as many sentences as fit into ``limit`` characters, as one line. The first one is cut if necessary."""
    line = one_line(text[: 4 * limit + 200])
    sentence = first_sentence(text, limit)
    for end in _END.finditer(line):
        if end.end() > limit:
            break
        if end.end() > len(sentence) and not _NO_END.search(line[max(0, end.start() - 10) : end.start() + 1]):
            sentence = line[: end.end()]
    return sentence


def first_paragraph(text: str) -> str:
    """Return the text before the first blank line, as one line."""
    return one_line(re.split(r"\n[ \t]*\n", text.strip()[:10_000], maxsplit=1)[0])


def body_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the first lines of a body, without lines of brackets only, with their relative indentation."""
    shown = [line.rstrip().expandtabs(4) for line in lines if line.strip(" \t{}();,")][: BODY_LINES[0] + 1]
    # The first line may begin in the middle of a line, without its indentation.
    least = min((len(line) - len(line.lstrip()) for line in shown[1:] or shown), default=0)
    return tuple(line[min(least, len(line) - len(line.lstrip())) :] for line in shown)


def cut_body(lines: Sequence[str], count: int, indent: str) -> Iterator[str]:
    """Yield the first lines of a body, each in at most 100 characters, and an ellipsis if more follow."""
    yield from (indent + shorten(line, 100) for line in lines[:count])
    if count and len(lines) > count:
        yield indent + MORE


def around_the_middle(lines: Sequence[str], head: int, tail: int, width: int) -> str:
    """Return the first and the last lines, each in at most ``width`` characters, with the number of lines left out between."""
    if len(lines) <= head + tail:
        return "\n".join(shorten(line, width) for line in lines)
    left_out = f"{MORE} {len(lines) - head - tail:,} more lines"
    last = [shorten(line, width) for line in lines[len(lines) - tail :]]
    return "\n".join([*(shorten(line, width) for line in lines[:head]), left_out, *last])


_MIN_PARAGRAPHS = 3  # a text with fewer is more likely a log or a table
_LIMITS = (300, 160, 100, 60)


class TextSummariser:
    """Summarises prose by its paragraphs, and a log, a table or one very long line by its first and last lines."""

    strategy = "text/2"
    kinds = frozenset({TEXT})
    target = 25
    limit = 64_000_000

    def drafts(self, text: str, kind: str) -> Iterator[Draft]:
        """Yield summaries by paragraph, then by lines, the last one in a single line."""
        if len(text) <= 1_000_000:
            paragraphs = [part for part in re.split(r"\n[ \t\r]*\n", text.strip()) if part.strip()]
            if len(paragraphs) >= _MIN_PARAGRAPHS:
                for limit in _LIMITS:
                    first, *others = (f"{first_sentence(part, limit)}\n" for part in paragraphs)
                    yield (first, *(f"\n{sentence}" for sentence in others))
        yield from beginnings(text)


def beginnings(text: str) -> Iterator[str]:
    """Yield the first and last lines of a text, fewer and shorter each time. The last draft is one short line."""
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
            yield f"{shorten(whole[: part + 1], part)} {MORE} {len(whole):,} characters\n"
    yield shorten(lines[0], 80) + "\n"


@dataclass(frozen=True, slots=True)
class Notation:
    """The syntax of a language: a pattern for lines that open a definition, and the prefixes of comment lines."""

    opens: re.Pattern[str]
    comments: tuple[str, ...]


# All patterns below match one line with folded blanks, and one leading blank if the line is indented. Every repetition is
# bounded, so that a hostile line takes linear time.
_SLASHES = ("//", "/*", "*")
_NO_NAME = r"(?!(?:if|else|for|while|switch|case|catch|return|do|goto|throw|new|delete|await|super|with|function|typeof)\b)"
_ARGUMENTS = r"\([^;{}]{0,400}\)"
_JS = (
    r" ?(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:async )?"
    r"(?:function\b|(?:class|interface|enum|namespace) \w|const enum \w|module [\w'\"]|type \w{1,80}(?:<[^=]{0,100})? ?=)"
    r"| ?(?:export )?(?:const|let|var) \w{1,80}(?: ?:[^=]{1,200})? ?= ?(?:async )?"
    r"(?:function\b|\([^)]{0,400}\)(?: ?:[^=]{1,200})? ?=>|\w{1,80} ?=>)"
    rf"| (?:(?:public|private|protected|static|readonly|abstract|override|async|get|set|\*) ){{0,5}}#?{_NO_NAME}"
    rf"[\w$]{{1,80}}(?:<[^>]{{0,100}}>)? ?{_ARGUMENTS}(?: ?:[^{{;]{{1,200}})? ?\{{$"
)
_C = (
    r"(?:typedef\b|(?:static |extern |inline ){0,3}(?:struct|enum|union) \w{1,80} ?\{?$|# ?define \w{1,80}\()"
    rf"|{_NO_NAME}[A-Za-z_][\w ,&:<>~*\[\]]{{0,200}}[ *&~:]\w{{1,80}} ?\([^;]{{0,600}}$"
    rf"|{_NO_NAME}[A-Za-z_][\w *]{{0,120}}[ *]\w{{1,80}} ?\([^()]{{0,400}}\) ?;$"
)
_CPP = (
    rf"{_C}| ?(?:template ?<|(?:class|struct|union) \w|namespace\b|enum (?:class )?\w|using \w{{1,80}} ?=)"
    rf"| {_NO_NAME}[\w:<>,*&~\[\] ]{{0,160}}[\w~] ?\([^;{{}}]{{0,300}}\)"
    r"(?: ?(?:const|noexcept|override|final|= ?\w{1,20})){0,4} ?[;{](?: ?\})?$"
)
_JAVA = (
    r" ?(?:(?:public|protected|private|static|final|abstract|synchronized|native|default|sealed|strictfp) ){0,6}"
    rf"(?:(?:class|interface|enum|record|@interface) \w|(?:<[^>]{{0,100}}> )?{_NO_NAME}[\w.<>\[\], ?]{{1,100}} {_NO_NAME}"
    r"\w{1,80} ?\([^;{}=]{0,400}\)(?: throws [\w., ]{1,200})? ?[{;](?: ?\})?$)"
    r"| ?(?:public|protected|private) \w{1,80} ?\([^;]{0,400}$"
)
_ANY = (
    r" ?(?:[\w@]{1,40} ){0,5}(?:class|interface|trait|struct|enum|record|object|protocol|module|namespace|package|function|func"
    r"|fun|fn|def|sub|proc|defmodule|type|message|service|rpc|resource|table|view) [\w\"]"
    r"| ?\[[\w. \"-]{1,100}\]$|[A-Za-z0-9_.%-]{1,100}:(?: |$)|CREATE \w|(?:FROM|COPY|RUN|ENTRYPOINT) "
)
_RUST = (
    r" ?(?:pub(?:\([^)]{0,40}\))? )?(?:default )?(?:const )?(?:async )?(?:unsafe )?(?:extern \"[^\"]{0,20}\" )?"
    r"(?:(?:fn|struct|enum|trait|mod|union|type) \w|impl\b|macro_rules!)"
)

NOTATIONS = {
    "python": Notation(lazy_pattern(r" ?(?:(?:async )?def|class) \w|@\w"), ("#",)),
    "javascript": Notation(lazy_pattern(_JS), _SLASHES),
    "typescript": Notation(lazy_pattern(_JS), _SLASHES),
    "tsx": Notation(lazy_pattern(_JS), _SLASHES),
    "go": Notation(lazy_pattern(r"(?:func|type|package)\b| \w{1,80} (?:struct|interface) ?\{"), ("//",)),
    "rust": Notation(lazy_pattern(_RUST), ("///", "//!", "/**", "*")),
    "java": Notation(lazy_pattern(_JAVA), _SLASHES),
    "c": Notation(lazy_pattern(_C), _SLASHES),
    "cpp": Notation(lazy_pattern(_CPP), _SLASHES),
    "ruby": Notation(lazy_pattern(r" ?(?:(?:private|protected|public) )?(?:def|class|module) \S"), ("#",)),
    "shell": Notation(lazy_pattern(r" ?(?:function [\w:.-]{1,80}|[\w:.-]{1,80} ?\( ?\))"), ("#",)),
    "code": Notation(lazy_pattern(_ANY), ("///", "//", "#", "--", "/*", "*")),
    "yaml": Notation(lazy_pattern(r" ?(?:- ){0,4}[\"']?[\w./@-]{1,200}[\"']? ?:(?: |$)"), ("#",)),
    "json": Notation(lazy_pattern(r' ?"[^"]{1,200}" ?:'), ("//",)),
    "markdown": Notation(lazy_pattern(r" ?#{1,6}(?: |$)"), ()),
}
"""Kind -> its syntax. Kinds without an entry are summarised as plain text."""


_CODE = frozenset({*LANGUAGES, PYTHON, CODE})
_MAX_LINE_CHARS = 600
_MAX_OPENING_SHARE = 0.8  # if nearly all of a text is definitions, a list of them is no summary
_COMMENT_SIGNS = " \t/*#!-<"


@dataclass(frozen=True, slots=True)
class _Definition:
    opening: str
    indent: int
    comment: str
    body: list[str]


class LineSummariser:
    """Lists the lines that open a definition, a key or a heading, with the comment above; for code, also lines of the body."""

    strategy = "lines/3"
    kinds = frozenset(KINDS) - {TEXT}
    target = 30
    limit = 64_000_000

    def drafts(self, text: str, kind: str) -> Iterator[Draft]:
        """Yield summaries: with comments, without them, with only the outer levels of data; else those of plain text."""
        notation = NOTATIONS[kind]
        found = list(_definitions(text, notation, fenced=kind == MARKDOWN))
        mark = "//" if notation.comments[:1] and notation.comments[0].startswith("//") else "#"
        for count in BODY_LINES if found and kind in _CODE else ():
            yield tuple(_write(found, 160, mark, count))
        for comment in (160, 80, 0):
            if found:
                yield tuple(_write(found, comment, mark))
        if kind in ("yaml", "json") and found:
            for levels in (3, 2, 1):
                yield from _outer(found, levels)
        openings = sum(len(one.opening) for one in found)
        if not found or kind in ("yaml", "json") or openings > len(text) * _MAX_OPENING_SHARE:
            yield from beginnings(text)


def _definitions(text: str, notation: Notation, *, fenced: bool) -> Iterator[_Definition]:
    comments: list[str] = []
    body: list[str] = []  # of the previous definition
    within = False
    for line in text.splitlines():
        bare = line.strip()
        # A ``#`` inside a code block is a comment of that language, not a heading.
        if fenced and bare.startswith(("```", "~~~")):
            within = not within
        if within:
            continue
        if notation.comments and bare.startswith(notation.comments):
            comments.append(bare)
        elif bare and notation.opens.match((" " if line[0] in " \t" else "") + one_line(bare[:_MAX_LINE_CHARS])):
            body = []
            yield _Definition(_opening_line(line), len(line) - len(line.lstrip()), _comment(comments), body)
            comments = []
        # Decorators and attributes stand between a comment and its definition.
        elif bare and not bare.startswith(("@", "#[")):
            comments = []
            # No draft shows more lines of a body.
            if len(body) <= BODY_LINES[0]:
                body.append(line[: 2 * _MAX_LINE_CHARS])


def _opening_line(line: str) -> str:
    """Return the first line of a definition without the opening brace of its body."""
    return re.sub(r"\s*\{\s*$", "", shorten(line.rstrip()[: _MAX_LINE_CHARS + 1], _MAX_LINE_CHARS))


def _comment(lines: Sequence[str]) -> str:
    words: list[str] = []
    for line in lines[:200]:
        bare = line.strip(_COMMENT_SIGNS)
        if words and not bare:
            break
        words += [bare] if bare else []
    return one_line(" ".join(words))


def _write(found: Sequence[_Definition], limit: int, mark: str, count: int = 0) -> Iterator[str]:
    for definition in found:
        sentence = first_sentence(definition.comment, limit) if limit and definition.comment else ""
        indent = " " * min(definition.indent, 40)
        opening = f"{indent}{definition.opening.strip()}" + (f"  {mark} {sentence}" if sentence else "")
        body = cut_body(body_lines(definition.body), count, indent + "    ") if count else ()
        yield join_lines([opening, *body])


def _outer(found: Sequence[_Definition], levels: int) -> Iterator[str]:
    """Yield the definitions of the outermost levels of indentation, with values cut short."""
    indents = sorted({definition.indent for definition in found})[:levels]
    for width in (60, 30):
        yield "\n".join(shorten(one.opening, one.indent + width) for one in found if one.indent in indents) + "\n"


_MATTER = "~~~"
Role = Literal["heading", "text", "code", "list", "table", "matter"]


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document: its lines (one per item for a list), and for a code block the fence with its info string."""

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
    _Detail(0, 0, 0, 0, 0),
)


"""From the most detailed to the shortest. ``paragraphs`` per section are given in sentences; 0 means the first sentence."""


class MarkdownSummariser:
    """Summarises CommonMark with tables; inline markup is not parsed and stays as it is."""

    strategy = "markdown/3"
    kinds = frozenset({MARKDOWN})
    target = 25
    limit = 1_000_000

    def drafts(self, text: str, kind: str) -> Iterator[Draft]:
        """Yield summaries by section. The last one has only the headings, or the first sentence if there is no heading."""
        found = blocks(text)
        for detail in _LEVELS:
            sections = _sections(found, detail)
            if any(sections):
                yield tuple(map(join_lines, sections))


def blocks(text: str) -> list[Block]:
    """Return the blocks of the document in order, including those inside quotes and lists."""
    from markdown_it import MarkdownIt

    matter, body = _front_matter(text)
    # Inline markup is copied unchanged, so it need not be parsed.
    parser = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
    tokens, source = parser.parse(body), body.splitlines()
    found = [Block("matter", tuple(matter))] if matter else []
    within: list[str] = []  # items of the current list (outermost lists only)
    depth = number = 0
    while number < len(tokens):
        token = tokens[number]
        opening = token.type in ("bullet_list_open", "ordered_list_open")
        depth += opening - (token.type in ("bullet_list_close", "ordered_list_close"))
        if token.type == "heading_open":
            within = _flush_list(within, found)
            found.append(_heading(token, tokens[number + 1]))
            number += 1
        elif token.type == "inline" and depth:
            within.append(token.content)
        elif token.type == "inline":
            found.append(Block("text", (token.content,)))
        elif token.type in ("fence", "code_block"):
            within = _flush_list(within, found)
            found.append(Block("code", tuple(token.content.splitlines()), token.markup or "```", token.info))
        elif token.type == "table_open":
            within = _flush_list(within, found)
            found.append(_table(token, source))
            number = _table_end(tokens, number)
        if not depth:
            within = _flush_list(within, found)
        number += 1
    _flush_list(within, found)
    return found


def _flush_list(items: list[str], found: list[Block]) -> list[str]:
    if items:
        found.append(Block("list", tuple(items)))
    return []


def _heading(opening: Token, inline: Token) -> Block:
    title = one_line(inline.content)
    if title.rstrip("#") != title and (title.rstrip("#")[-1:] in ("", " ")):
        title = f"{title} #"  # otherwise a parser takes a trailing # for a closing sequence
    return Block("heading", (f"{'#' * int(opening.tag[1:])} {title}".rstrip(),))


def _table(opening: Token, source: Sequence[str]) -> Block:
    first, last = opening.map or [0, 0]
    return Block("table", tuple(line.strip() for line in source[first:last]) if opening.level == 0 else ())


def _table_end(tokens: Sequence[Token], number: int) -> int:
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


def _sections(found: Sequence[Block], detail: _Detail) -> list[list[str]]:
    """Return the lines of a summary by section: the part before the first heading, then that of each heading.

    Of each section it has only the first paragraphs.
    """
    sections: list[list[str]] = [[]]
    most = max(1, detail.paragraphs)
    remaining, only = most, not any(block.role == "heading" for block in found)
    shorten = first_sentences if detail.paragraphs else first_sentence
    for block in found:
        if block.role == "heading":
            remaining = most
            sections.append([block.lines[0]])
        elif block.role == "text":
            least = 80 if only else 0
            if remaining and (text := shorten(block.lines[0], max(detail.sentence, least))):
                sections[-1] += [text, ""]
                remaining, only = remaining - 1, False
        else:
            lines = list(_block_lines(block, detail))
            sections[-1] += lines
            if lines and block.role == "list" and not detail.paragraphs:
                remaining = 0
    return sections


def _block_lines(block: Block, detail: _Detail) -> Iterator[str]:
    if block.role == "matter" and detail.items:
        lines = (shorten(line, 2 * detail.item) for line in block.lines[: 2 * detail.items] if _MATTER not in line)
        yield from (f"{_MATTER}yaml", *lines, _MATTER)  # fenced: below the note of a summary, bare dashes would make a heading
    elif block.role == "code" and detail.code and block.lines:
        more = len(block.lines) - detail.code
        info = shorten(one_line(block.info), 40)
        yield f"{block.fence}{info}"
        yield from (shorten(line.rstrip(), 120) for line in block.lines[: detail.code])
        yield from [f"{MORE} {more:,} more lines"] if more > 1 else block.lines[detail.code :]
        yield from (block.fence, "")
    elif block.role == "list" and detail.items:
        yield from (f"- {first_sentence(item, detail.item)}" for item in block.lines[: detail.items])
        more = len(block.lines) - detail.items
        yield from ([f"- {MORE} {more:,} more"] if more > 0 else [])
        yield ""
    elif block.role == "table" and detail.items and block.lines:
        yield from (shorten(line, 200) for line in block.lines[: 2 + detail.rows])
        more = len(block.lines) - 2 - detail.rows
        yield from ([f"{MORE} {more:,} more rows"] if more > 0 else [])
        yield ""
