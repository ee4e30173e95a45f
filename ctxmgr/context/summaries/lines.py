"""Summarise code line by line, for languages without a parser here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxmgr.context.summaries.prose import BODY_LINES, beginnings, body_lines, cut_body, first_sentence, one_line, shortened
from ctxmgr.text.content_kind import CODE, KINDS, LANGUAGES, MARKDOWN, PYTHON, TEXT
from ctxmgr.text.lazy_pattern import lazy_pattern


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
