"""How languages are written, as far as one line tells: what opens a definition, and what is a comment.

A line is looked at with its blanks collapsed to one each (one at its start where it is indented), so that no pattern has
two ways to read a run of blanks; every repetition is bounded, for lines are anybody's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


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
    "python": Notation(re.compile(r" ?(?:(?:async )?def|class) \w|@\w"), ("#",)),
    "javascript": Notation(re.compile(_JS), _SLASHES),
    "typescript": Notation(re.compile(_JS), _SLASHES),
    "tsx": Notation(re.compile(_JS), _SLASHES),
    "go": Notation(re.compile(r"(?:func|type|package)\b| \w{1,80} (?:struct|interface) ?\{"), ("//",)),
    "rust": Notation(re.compile(_RUST), ("///", "//!", "/**", "*")),
    "java": Notation(re.compile(_JAVA), _SLASHES),
    "c": Notation(re.compile(_C), _SLASHES),
    "cpp": Notation(re.compile(_CPP), _SLASHES),
    "ruby": Notation(re.compile(r" ?(?:(?:private|protected|public) )?(?:def|class|module) \S"), ("#",)),
    "shell": Notation(re.compile(r" ?(?:function [\w:.-]{1,80}|[\w:.-]{1,80} ?\( ?\))"), ("#",)),
    "code": Notation(re.compile(_ANY), ("///", "//", "#", "--", "/*", "*")),
    "yaml": Notation(re.compile(r" ?(?:- ){0,4}[\"']?[\w./@-]{1,200}[\"']? ?:(?: |$)"), ("#",)),
    "json": Notation(re.compile(r' ?"[^"]{1,200}" ?:'), ("//",)),
    "markdown": Notation(re.compile(r" ?#{1,6}(?: |$)"), ()),
}
"""By kind; what has no entry is summarised as plain text."""
