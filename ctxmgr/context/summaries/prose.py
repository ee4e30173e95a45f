"""Summaries of text that no parser here reads: the telling sentences of prose, and the telling lines of code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxmgr.text.content_kind import CODE, KINDS, LANGUAGES, MARKDOWN, PYTHON, TEXT
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
    sentence = first_sentence(text, limit)
    for end in _END.finditer(line):
        if end.end() > limit:
            break
        if end.end() > len(sentence) and not _NO_END.search(line[max(0, end.start() - 10) : end.start() + 1]):
            sentence = line[: end.end()]
    return sentence


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


@dataclass(frozen=True, slots=True)
class Notation:
    """One language: lines that open a definition, and the beginnings of comment lines."""

    opens: re.Pattern[str]
    comments: tuple[str, ...]


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
"""By kind; what has no entry is summarised as plain text."""


_CODE = frozenset({*LANGUAGES, PYTHON, CODE})
_MAX_LINE_CHARS = 600
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
        openings = sum(len(one.opening) for one in found)
        if not found or kind in ("yaml", "json") or openings > len(text) * _MOSTLY:
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
        elif bare and notation.opens.match((" " if line[0] in " \t" else "") + one_line(bare[:_MAX_LINE_CHARS])):
            body = []
            yield _Definition(_opening(line), len(line) - len(line.lstrip()), _comment(comments), body)
            comments = []
        elif bare and not bare.startswith(("@", "#[")):
            comments = []
            if len(body) <= BODY_LINES[0]:
                body.append(line[: 2 * _MAX_LINE_CHARS])


def _opening(line: str) -> str:
    """Return a definition's line without the brace that opens its body."""
    return re.sub(r"\s*\{\s*$", "", shortened(line.rstrip()[: _MAX_LINE_CHARS + 1], _MAX_LINE_CHARS))


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
        sentence = first_sentence(definition.comment, limit) if limit and definition.comment else ""
        indent = " " * min(definition.indent, 40)
        yield f"{indent}{definition.opening.strip()}" + (f"  {mark} {sentence}" if sentence else "")
        if count:
            yield from cut_body(body_lines(definition.body), count, indent + "    ")


def _outer(found: Sequence[_Definition], levels: int) -> Iterator[str]:
    """Yield the definitions of the outermost levels, by how far they are indented, with what follows a key cut short."""
    kept = sorted({definition.indent for definition in found})[:levels]
    for width in (60, 30):
        yield "\n".join(shortened(one.opening, one.indent + width) for one in found if one.indent in kept) + "\n"
