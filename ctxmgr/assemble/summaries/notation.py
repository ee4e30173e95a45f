"""How languages are written, as far as one line tells: what opens a definition, and what is a comment."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notation:
    """One language: lines that open a definition, and the beginnings of comment lines."""

    opens: re.Pattern[str]
    comments: tuple[str, ...]


_SLASHES = ("//", "/*", "*")
_JS = (
    r"\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\b|class\s+\w|interface\s+\w|enum\s+\w"
    r"|const\s+enum\s+\w|namespace\s+\w|module\s+[\w'\"]|type\s+\w[\w<>, ]*=)"
    r"|\s*(?:export\s+)?(?:const|let|var)\s+\w+\s*(?::[^=]{1,200})?=\s*(?:async\s*)?(?:function\b|\([^)]{0,400}\)\s*(?::[^=]{1,200})?=>|\w+\s*=>)"
    r"|\s+(?:(?:public|private|protected|static|readonly|abstract|override|async|get|set|\*)\s+){0,5}#?"
    r"(?!if\b|for\b|while\b|switch\b|catch\b|return\b|function\b|with\b|await\b|super\b|throw\b|new\b)[\w$]+\s*(?:<[^>]{0,100}>)?"
    r"\([^;{}]{0,400}\)\s*(?::[^{;]{1,200})?\{\s*$"
)
_C = (
    r"(?:typedef\b|(?:static\s+|extern\s+|inline\s+)*(?:struct|enum|union)\s+\w+\s*\{?\s*$|#\s*define\s+\w+\()"
    r"|(?!return\b|else\b|if\b|for\b|while\b|switch\b|case\b|goto\b|do\b)[A-Za-z_][\w\s*,&:<>~\[\]]{0,200}?[\s*&~:]\w+\s*\([^;]{0,600}$"
    r"|(?!return\b|else\b)[A-Za-z_][\w\s*]{0,120}[\s*]\w+\s*\([^()]{0,400}\)\s*;\s*$"
)
_CPP = (
    rf"{_C}|\s*(?:template\s*<|class\s+\w|struct\s+\w|namespace\b|enum\s+(?:class\s+)?\w|union\s+\w|using\s+\w+\s*=)"
    r"|\s+(?!return\b|else\b|if\b|for\b|while\b|switch\b|case\b|delete\b|throw\b|new\b)(?:[\w:<>,*&~\[\]]+\s+){0,6}[\w~:*&]+\s*\([^;{}]{0,300}\)"
    r"\s*(?:const|noexcept|override|final|=\s*\w+|\s)*[;{]\s*(?:\}\s*)?$"
)
_JAVA = (
    r"\s*(?:(?:public|protected|private|static|final|abstract|synchronized|native|default|sealed|strictfp)\s+){0,6}"
    r"(?:(?:class|interface|enum|record|@interface)\s+\w"
    r"|(?:<[^>]{0,100}>\s*)?(?!return\b|new\b|else\b|throw\b)[\w.<>\[\], ?]{1,100}\s+"
    r"(?!if\b|for\b|while\b|switch\b|catch\b)\w+\s*\([^;{}=]{0,400}\)"
    r"\s*(?:throws\s+[\w., ]+)?\s*[{;]\s*\}?\s*$"
    r"|(?:public|protected|private)\s+\w+\s*\([^;]{0,400}$)"
)

NOTATIONS = {
    "python": Notation(re.compile(r"\s*(?:async\s+def|def|class)\s+\w|@\w"), ("#",)),
    "javascript": Notation(re.compile(_JS), _SLASHES),
    "typescript": Notation(re.compile(_JS), _SLASHES),
    "tsx": Notation(re.compile(_JS), _SLASHES),
    "go": Notation(re.compile(r"(?:func|type|package)\b|\t\w+\s+(?:struct|interface)\s*\{"), ("//",)),
    "rust": Notation(
        re.compile(
            r"\s*(?:pub(?:\([^)]{0,40}\))?\s+)?(?:default\s+)?(?:const\s+)?(?:async\s+)?(?:unsafe\s+)?(?:extern\s+\"[^\"]{0,20}\"\s+)?"
            r"(?:(?:fn|struct|enum|trait|mod|union|type)\s+\w|impl\b|macro_rules!)"
        ),
        ("///", "//!", "/**", "*"),
    ),
    "java": Notation(re.compile(_JAVA), _SLASHES),
    "c": Notation(re.compile(_C), _SLASHES),
    "cpp": Notation(re.compile(_CPP), _SLASHES),
    "ruby": Notation(re.compile(r"\s*(?:(?:private|protected|public)\s+)?(?:def|class|module)\s+\S"), ("#",)),
    "shell": Notation(re.compile(r"\s*(?:function\s+[\w:.-]+|[\w:.-]+\s*\(\s*\))"), ("#",)),
    "code": Notation(
        re.compile(
            r"\s*(?:[\w@]+\s+){0,5}(?:class|interface|trait|struct|enum|record|object|protocol|module|namespace|package|function|func|fun|"
            r"fn|def|sub|proc|defmodule|type|message|service|rpc|resource|table|view)\s+[\w\"]"
            r"|\[[\w. \"-]+\]\s*$|[A-Za-z0-9_.%-]+:(?:\s|$)"
            r"|CREATE\s+\w+|(?:FROM|COPY|RUN|ENTRYPOINT)\s",
        ),
        ("///", "//", "#", "--", "/*", "*"),
    ),
    "yaml": Notation(re.compile(r"\s*(?:- )?[\"']?[\w./@-]+[\"']?:(?:\s|$)"), ("#",)),
    "json": Notation(re.compile(r'\s*"[^"]{1,200}"\s*:'), ("//",)),
    "markdown": Notation(re.compile(r" {0,3}#{1,6}(?:[ \t]|$)"), ()),
}
"""By kind; what has no entry is summarised as plain text. Every repetition is bounded: lines are anybody's."""
