"""Recognise the kind of a text, count its tokens exactly or by an estimate, and normalise its words for recall.

The file's name decides the kind, else the beginning of the text. Stemming is light and for English: it joins ``retry``,
``retries`` and ``retried`` but leaves names alone. Words of scripts without spaces, or with marks inside words (Chinese,
Hindi, Thai, Arabic), are found inside running text instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import InvalidInput
from ctxmgr.text.patterns import lazy_pattern

TEXT = "text"
MARKDOWN = "markdown"
YAML = "yaml"
JSON = "json"
PYTHON = "python"
CODE = "code"

LANGUAGES = ("javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "ruby", "shell")
"""The programming languages besides Python whose signatures are known."""

KINDS = (TEXT, MARKDOWN, YAML, JSON, PYTHON, *LANGUAGES, CODE)
"""All kinds. `CODE` is an unknown programming language."""

DENSE = frozenset(KINDS) - {TEXT, MARKDOWN}
"""The kinds in which a token has fewer characters than in prose (ruling 17)."""

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
# A header ``.h`` is C or C++. Lines that begin with these are C++.
_CPP = lazy_pattern(r"^\s*(?:class \w|namespace\b|template ?<|using namespace|public:|private:)", re.MULTILINE)
_KEY = lazy_pattern(r"[A-Za-z_][\w.-]*:(?: |$)")


def content_kind(name: str, text: str) -> str:
    """Return the kind, one of `KINDS`: by the suffix of the name if it decides, else by the first lines; `TEXT` if unknown."""
    from pathlib import PurePosixPath

    path = PurePosixPath(name.replace("\\", "/"))
    known = _SUFFIXES.get(path.suffix.lower()) or _NAMES.get(path.name.lower())
    if known == "c" and _CPP.search(text[:100_000]):
        return "cpp"
    return known or _kind_by_content(text[:_MAX_HEAD].lstrip("\ufeff \t\r\n"), text[-_MAX_HEAD:].rstrip())


def known_kind(kind: str) -> str:
    """Return the kind that a word means, in any case or short form. An unknown word means `TEXT`."""
    word = kind.strip().lower()
    word = _ALIASES.get(word, word)
    return word if word in KINDS else TEXT


def _kind_by_content(head: str, tail: str) -> str:
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
    # The limit may have cut off the last line.
    if lines and all(_KEY.match(line) or line[0] in " -" for line in lines[:-1] or lines) and _KEY.match(lines[0]):
        return YAML
    return MARKDOWN if any(_HEADING.match(line) for line in head.splitlines()) else TEXT


_BRACKETS = lazy_pattern(r"[\[\]{}]")
_DASHES = lazy_pattern(r"(?:[-?:][ \t]+){8,}")  # fewer are cheap, and frequent in plain words


def nesting_depth(text: str) -> int:
    """Return the maximum of brackets open at once, including those in texts and comments, or of list dashes in a row.

    Check this before a YAML parser reads foreign text: the parser's time grows with the square of this number.
    """
    depth = deepest = 0
    for found in _BRACKETS.finditer(text):
        # A closing bracket inside a text must not hide the brackets that open after it.
        depth = depth + 1 if found.group() in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return max(deepest, max((len(found.group().split()) for found in _DASHES.finditer(text)), default=0))


VOCABULARIES = ("o200k_base", "cl100k_base")
"""Names of the exact counters, which are those of their vocabularies."""


class Counter(Protocol):
    """Counts tokens.

    Attributes:
        name: the name of the counter in a package.
        band: its error as a factor of at least 1: the true number lies between ``count / band`` and ``count * band`` for
            nineteen of twenty texts of the sort it was measured on. 1 for an exact counter.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - see the class

    @property
    def band(self) -> float: ...  # noqa: D102 - see the class

    def count(self, text: str, kind: str) -> int:
        """Return the number of tokens in a text, 0 for an empty one. ``kind`` is one of `KINDS`."""
        ...


class Estimate:
    """Counts characters at a fixed rate, rounded up: 4 per token in prose, 3.5 in code, YAML and JSON (ruling 17).

    The band held for 94 % of 1,760 files of prose, code, YAML and JSON against both vocabularies. 2 % had more than 1.5 times
    the estimate, mostly tables of numbers. The band does not hold for scripts in which each character is a token: Chinese and
    Japanese have up to four times the estimate.
    """

    name = "estimate"
    band = 1.5

    def count(self, text: str, kind: str) -> int:
        """Return the estimate. It uses only whole numbers, so it is the same on every machine."""
        return self.of_size(len(text), kind)

    @staticmethod
    def of_size(size: int, kind: str) -> int:
        """Return the estimate for a text of this size in characters, without the text itself."""
        # In whole numbers: size / 3.5 and size / 4, rounded up.
        return (2 * size + 6) // 7 if known_kind(kind) in DENSE else (size + 3) // 4


class Exact:
    """Counts in one vocabulary, offline. Made by `counter_by_name`."""

    band = 1.0

    def __init__(self, vocabulary: str) -> None:
        from bpe_openai import get_encoding  # from the extra "tokens"; the import takes a second and 75 MB

        self.name = vocabulary
        self._encoding = get_encoding(vocabulary)

    def count(self, text: str, kind: str) -> int:
        """Return the number of tokens. Control tokens spelled out in the text count as ordinary text."""
        return len(self._encoding.encode_ordinary(text))


ESTIMATE: Counter = Estimate()


def counter_by_name(name: str) -> Counter:
    """Return the counter with this name: ``estimate``, or one of `VOCABULARIES`.

    Raises:
        InvalidInput: no counter has this name, or it is exact and the extra ``tokens`` is not installed.
    """
    if name == ESTIMATE.name:
        return ESTIMATE
    if name not in VOCABULARIES:
        raise InvalidInput(f"no token counter is called {name!r}", f"use one of: {', '.join((ESTIMATE.name, *VOCABULARIES))}")
    return _load_exact(name)


@lru_cache(maxsize=len(VOCABULARIES))
def _load_exact(vocabulary: str) -> Counter:
    try:
        return Exact(vocabulary)
    except ImportError:
        raise InvalidInput(
            f"the token counter {vocabulary!r} is not installed", "install it with: pip install 'ctxmgr-cli[tokens]'"
        ) from None


MAX_TERMS = 32
"""Number of words of a query that count. A longer query is a text, whose first words say what it is about."""
MIN_INFIX = 4
"""Letters from which a word is also found inside other words: "auth" in "authenticate", but not "in" in "line"."""
_MAX_READ = 20_000

_WORD = lazy_pattern(r"[^\W_]+")
_HUMP = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MARKS = lazy_pattern("[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")
# The time to normalise grows with the square of the number of marks on one letter. A hostile text may have a million.
_MARK_PILE = lazy_pattern(r"[^\w\s\x00-\x7f]{32,}")
# In scripts from Hebrew on, words may hold marks that are no letters, or have no spaces around them.
_RUNNING_SCRIPT = lazy_pattern("[\u0590-\u10ff\u1100-\u1dbf\u2e80-\ud7ff\uf900-\ufdff\ufe70-\ufeff\U00010800-\U0003ffff]")
_PIECE = lazy_pattern(r"[^\s\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+")

EMPTY = frozenset(
    _WORD.findall(
        "a about after all an and any are as at be been but by can could did do does for from had has have how i if in into is "
        "it its me my of on or our should so that the their them then there these they this to us was we were what when where "
        "which who why will with would you your"
    )
)
"""Words that say nothing if the query also has another word."""


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query.

    Attributes:
        stem: equal for two forms of the same word.
        needle: a beginning of the stem that every text with the word contains.
        running: it counts in full inside longer words, for scripts without spaces and for signs.
    """

    stem: str
    needle: str
    running: bool = False

    def count(self, text: str) -> int:
        """Return how often a folded text seems to contain the word. Never 0 if it does."""
        if self.needle not in text:
            return 0
        if self.running or len(self.needle) >= MIN_INFIX:
            return text.count(self.needle)
        return len(_beginning_pattern(self.needle).findall(text))


@lru_cache(256)
def _beginning_pattern(needle: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){re.escape(needle)}")


def fold(text: str) -> str:
    """Return the text without case, accents and compatibility forms."""
    if text.isascii():
        return text.lower()
    # Remove marks before decomposing, which costs the square of their number, and again after it, since it separates more.
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", _MARK_PILE.sub(" ", _MARKS.sub("", text))))
    return unicodedata.normalize("NFC", bare.casefold())


@lru_cache(65_536)
def stem(word: str) -> str:
    """Return the stem of a folded word: at least three of its letters, or all of a shorter word."""
    if len(word) < MIN_INFIX or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ment", "ing", "ion", "ly", "ed"):
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < MIN_INFIX or (ending == "ion" and rest[-1] not in "st"):
            continue
        word = rest[:-1] if ending in ("ing", "ed") and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
        break
    else:
        word = word[:-1] if word.endswith("ed") and len(word) > MIN_INFIX else word
    if len(word) > MIN_INFIX and word.endswith("e"):
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 3 and word[-1] == "y" and word[-2] not in "aeiou" else word


def stems(text: str) -> Iterator[str]:
    """Yield the stems of the words in a text's first 20,000 characters. ``camelCase`` yields the word and its parts."""
    read = text[:_MAX_READ]
    for word in _WORD.findall(fold(read)):
        yield stem(word)
    for name in _WORD.findall(read):
        parts = _HUMP.split(name)
        if len(parts) > 1:
            for part in parts:
                yield stem(fold(part))


def terms(query: str) -> list[Term]:
    """Return the telling words of a query, each once. A query that has only signs is one term, its text."""
    found: dict[str, Term] = {}
    for piece in _PIECE.findall(fold(query[:_MAX_READ])):
        if _RUNNING_SCRIPT.search(piece):
            found.setdefault(piece, Term(piece, piece, running=True))
            continue
        for word in _WORD.findall(piece):
            root = stem(word)
            # An i at the end of a stem may be a y in the text: "retri" of "retry".
            found.setdefault(root, Term(root, root[:-1] if root.endswith("i") and len(root) > 3 else root))
    telling = [term for term in found.values() if term.stem not in _EMPTY_STEMS] or list(found.values())
    if not telling and (literal := " ".join(fold(query[:_MAX_READ]).replace("\0", " ").split())):
        telling = [Term(literal, literal, running=True)]
    return telling[:MAX_TERMS]


_EMPTY_STEMS = frozenset(stem(word) for word in EMPTY)
