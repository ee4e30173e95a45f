"""Paths that the record mentions: in inputs, in listings, in messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence.calls import call_input, command_of, patched_paths, path_of, split_command
from ctxmgr.diagnose.evidence.session import Evidence
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.view import EntryView

FOREIGN = (
    "site-packages/", "dist-packages/", "node_modules/", "/usr/lib/", "/usr/local/lib/", "lib/python3", "/rustc/", "<frozen",
    "node:internal/", "internal/modules/",
)  # fmt: skip
"""Parts of paths outside of the project's own code."""
PATH = lazy_pattern(r"(?<![\w/.:~@-])((?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){0,14}[\w.@+-]{1,100})(?![\w/])")
_FILE = lazy_pattern(r"[\w@+-][\w.@+-]*\.\w{1,8}$|(?:Makefile|Dockerfile|justfile|Procfile|LICENSE|README)$")
_MOST = 4_000
# The folder name that `ls -R`, and `ls` of two folders, print above the files: `src/app:`
_HEADER = lazy_pattern(r"^(\S[^\n:]{0,300}):$")


class Mention(NamedTuple):
    """A path in an entry: listed in its output, or passed to a call that worked."""

    path: str
    entry: EntryView
    given: bool


def mentions(evidence: Evidence, name: str, before: int) -> Iterator[Mention]:
    """Yield where the record has a file or folder with this name, newest first: in calls that worked and in their output."""
    for entry in evidence.entries_before(before):
        if entry.status != "ok" or evidence.has_failed(entry):
            continue
        for path in _given_paths(entry):
            if path.rstrip("/").rpartition("/")[2] == name:
                yield Mention(path, entry, True)
        said = evidence.text(entry)
        if name in said:
            yield from (Mention(path, entry, False) for path in listed_paths(entry, said, name))


def _given_paths(entry: EntryView) -> list[str]:
    own = path_of(entry)
    return [path for path in (own, *patched_paths(entry)) if path]


def listed_paths(entry: EntryView, said: str, name: str) -> list[str]:
    """Return the paths in an output that end in a name; in the output of ``ls``, joined with their folder."""
    command = command_of(entry)
    parts = [words for words in split_command(command) if words[0] in ("ls", "tree", "find")] if command else []
    folder = ""
    if parts and parts[-1][0] == "ls" and not re.search(rf"(?m)\s{re.escape((parts[-1][1:] or ['-'])[-1])}$", said[:4_000]):
        folders = [word for word in parts[-1][1:] if not word.startswith("-")]
        folder = folders[0] if len(folders) == 1 else ""
    found: list[str] = []
    for line in said.split("\n")[:_MOST]:
        header = _HEADER.match(line)
        if header is not None and parts:
            folder = header.group(1)
            continue
        if name not in line:
            continue
        for match in PATH.finditer(line[:2_000]):
            path = match.group(1).rstrip("/.")
            if path.rpartition("/")[2] == name:
                bare = "/" not in path and folder not in ("", ".")
                found.append(f"{folder.rstrip('/')}/{path}" if bare else path)
    return found[:20]


def is_file_name(name: str) -> bool:
    """Whether a word looks like a file name."""
    return _FILE.search(name) is not None


def asked_paths(entry: EntryView) -> list[str]:
    """Return the paths that a call names: in its own field, its patch, the words of its command."""
    words = [word for part in split_command(command_of(entry)) for word in part[1:] if not word.startswith("-")]
    text = call_input(entry) if not words and path_of(entry) is None else ""
    loose = [match.group(1) for match in PATH.finditer(text[:2_000]) if "/" in match.group(1) or is_file_name(match.group(1))]
    return [*_given_paths(entry), *words, *loose][:60]
