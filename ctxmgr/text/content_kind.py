"""Detect what a text is written in, by file name first and by its beginning otherwise."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from ctxmgr.text.lazy_pattern import lazy_pattern

TEXT = "text"
MARKDOWN = "markdown"
YAML = "yaml"
JSON = "json"
PYTHON = "python"
CODE = "code"

LANGUAGES = ("javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "ruby", "shell")
"""The programming languages besides Python whose signatures are known."""

KINDS = (TEXT, MARKDOWN, YAML, JSON, PYTHON, *LANGUAGES, CODE)
"""Every kind there is; `CODE` is a language of which no more is known."""

DENSE = frozenset(KINDS) - {TEXT, MARKDOWN}
"""The kinds in which a token is shorter than in prose (ruling 17)."""

_SUFFIXES = {
    ".md": MARKDOWN, ".markdown": MARKDOWN, ".mdx": MARKDOWN,
    ".yaml": YAML, ".yml": YAML,
    ".json": JSON, ".jsonc": JSON, ".json5": JSON, ".ipynb": JSON, ".geojson": JSON,
    ".py": PYTHON, ".pyi": PYTHON, ".pyw": PYTHON,
    ".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript",
    ".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "tsx",
    ".go": "go", ".rs": "rust", ".java": "java",
    ".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
    ".rb": "ruby", ".rake": "ruby", ".sh": "shell", ".bash": "shell", ".zsh": "shell", ".ksh": "shell",
    ".txt": TEXT, ".rst": TEXT, ".log": TEXT, ".csv": TEXT, ".tsv": TEXT,
    ".kt": CODE, ".swift": CODE, ".scala": CODE, ".php": CODE, ".cs": CODE, ".lua": CODE, ".pl": CODE, ".sql": CODE,
    ".dart": CODE, ".ex": CODE, ".exs": CODE, ".hs": CODE, ".zig": CODE, ".toml": CODE, ".ini": CODE, ".cfg": CODE,
    ".xml": CODE, ".html": CODE, ".css": CODE, ".proto": CODE, ".graphql": CODE, ".tf": CODE,
}  # fmt: skip
_NAMES = {"gemfile": "ruby", "rakefile": "ruby", "makefile": CODE, "dockerfile": CODE, "readme": MARKDOWN}
_INTERPRETERS = (("python", PYTHON), ("node", "javascript"), ("ruby", "ruby"), ("sh", "shell"))
_ALIASES = {
    "prose": TEXT, "plain": TEXT, "md": MARKDOWN, "yml": YAML, "py": PYTHON, "js": "javascript", "ts": "typescript",
    "golang": "go", "rs": "rust", "c++": "cpp", "rb": "ruby", "sh": "shell", "bash": "shell",
}  # fmt: skip
_MAX_HEAD = 4_096
_HEADING = lazy_pattern(r"#{1,6} +\S")
# A header ``.h`` is C or C++; these begin lines of C++ alone.
_CPP = lazy_pattern(r"^\s*(?:class \w|namespace\b|template ?<|using namespace|public:|private:)", re.MULTILINE)
_KEY = lazy_pattern(r"[A-Za-z_][\w.-]*:(?: |$)")


def kind_of(name: str, text: str) -> str:
    """Return the kind, one of `KINDS`: by the name where its suffix tells, else by the first lines; `TEXT` at a loss."""
    path = PurePosixPath(name.replace("\\", "/"))
    known = _SUFFIXES.get(path.suffix.lower()) or _NAMES.get(path.name.lower())
    if known == "c" and _CPP.search(text[:100_000]):
        return "cpp"
    return known or _by_content(text[:_MAX_HEAD].lstrip("\ufeff \t\r\n"), text[-_MAX_HEAD:].rstrip())


def known_kind(kind: str) -> str:
    """Return the kind that a word means, whatever its case or short form; an unknown word means `TEXT`."""
    word = kind.strip().lower()
    word = _ALIASES.get(word, word)
    return word if word in KINDS else TEXT


def _by_content(head: str, tail: str) -> str:
    first, _, rest = head.partition("\n")
    if first.startswith("#!"):
        return next((kind for word, kind in _INTERPRETERS if word in first), TEXT)
    if (first[:1], tail[-1:]) in (("{", "}"), ("[", "]")) and re.match(r'[\[{]\s*(?:["\[{\]}\d]|true|false|null|-)', head):
        return JSON
    if _HEADING.match(first):
        return MARKDOWN
    if first.strip() == "---" and rest.count("\n---") == 0:  # a second one ends the front matter of Markdown
        return YAML
    lines = [line for line in head.splitlines()[:20] if line.strip() and not line.lstrip().startswith("#")]
    if lines and all(_KEY.match(line) or line[0] in " -" for line in lines[:-1] or lines) and _KEY.match(lines[0]):
        return YAML
    return MARKDOWN if any(_HEADING.match(line) for line in head.splitlines()) else TEXT


_BRACKETS = lazy_pattern(r"[\[\]{}]")
_DASHES = lazy_pattern(r"(?:[-?:][ \t]+){8,}")  # fewer are cheap, and frequent in plain words


def nesting(text: str) -> int:
    """Return the most brackets open at once, also inside texts and comments, or the most list dashes in a row.

    Ask before a parser of YAML is given the text of others: its time grows with the square of this number.
    """
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        depth = depth + 1 if found.group() in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return max(deepest, max((len(found.group().split()) for found in _DASHES.finditer(text)), default=0))
