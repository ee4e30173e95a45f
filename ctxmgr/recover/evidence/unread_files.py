"""Find files that an error points at and no action has named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxmgr.recover.evidence.brief import Brief
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.quotes import answer_text
from ctxmgr.recover.evidence.records import texts
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.view import EntryView

_MOST_PATHS = 6
_MOST_HITS = 60
_ENDINGS = (
    "c|cc|cfg|conf|cpp|cs|css|csv|env|ex|exs|go|gradle|h|hpp|hs|html|ini|ipynb|java|js|json|jsx|kt|lock|log|lua|md|mjs|ml|"
    "mod|php|pl|properties|proto|py|pyi|r|rb|rs|rst|scala|scss|sh|sql|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml"
)
# Bounded repetitions, so that no text can make it slow. A line number may follow as in tracebacks or in compilers' words.
PATH = lazy_pattern(
    rf"(?<![\w/.:~-])((?:~|\.{{1,2}})?/?(?:[\w.@+-]{{1,60}}/){{0,12}}[\w.@+-]{{1,80}}\.(?:{_ENDINGS}))(?![\w/])"
    r"(?:\"?,? line (\d{1,6})|:(\d{1,6}))?"
)
_MISSING = lazy_pattern(r"no such file|not found|does not exist|cannot find|ENOENT", re.IGNORECASE)
_FOREIGN = ("site-packages/", "dist-packages/", "node_modules/", "/usr/lib/", "/usr/local/lib/", "lib/python3", "/rustc/")


class Pointer(NamedTuple):
    """A file that an error names: its path and line as written, and whether the error says that it is missing."""

    path: str
    line: str | None
    missing: bool
    entry: EntryView


def unread(reader: HistoryReader, brief: Brief, most: int = 2) -> Iterator[Pointer]:
    """Yield up to ``most`` files that no action's input names, the last of an error first: there it happened."""
    seen: set[str] = set()
    found = 0
    for entry in brief.rounds:
        if entry.status not in ("error", "denied"):
            continue
        for pointer in reversed(_pointers(entry)):
            if pointer.path in seen:
                continue
            seen.add(pointer.path)
            if len(seen) > _MOST_PATHS or found >= most:
                return
            if not _is_named(reader, pointer.path):
                found += 1
                yield pointer


def _pointers(entry: EntryView) -> Sequence[Pointer]:
    found: dict[str, Pointer] = {}
    for line in answer_text(entry)[-8_000:].splitlines():
        for match in PATH.finditer(line):
            path = match.group(1)
            if not any(part in path for part in _FOREIGN):
                found.pop(path, None)
                missing = _MISSING.search(line) is not None
                found[path] = Pointer(path, match.group(2) or match.group(3), missing, entry)
    return list(found.values())


def _is_named(reader: HistoryReader, path: str) -> bool:
    """Whether the input of some action names the file, by whatever folder; when that can't be told, it does."""
    name = path.rpartition("/")[2]
    entries, total = reader.search(name, _MOST_HITS)
    return total > len(entries) or any(name.casefold() in text.casefold() for entry in entries for text in texts(entry.input))
