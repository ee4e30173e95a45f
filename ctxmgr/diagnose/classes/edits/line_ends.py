"""Line ends of a file that the record shows: a text of several lines with other ends is never found in it."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import (
    Change,
    command_of,
    edited_paths,
    list_changes,
    path_of,
    same_file,
    split_command,
    written_content,
)
from ctxmgr.diagnose.evidence.files import REWRITES, Content
from ctxmgr.diagnose.evidence.texts import ORDERS
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

# A line of `git ls-files --eol`, and one of `file`
_GIT = lazy_pattern(r"^i/\S{1,12}\s+w/(\S{1,12})\s+attr/[^\n]{0,80}?\s{2,}(\S[^\n]{0,300})$", re.MULTILINE)
_FILE = lazy_pattern(r"^(\S[^:\n]{0,300}):\s[^\n]{0,200}\btext\b([^\n]{0,200})$", re.MULTILINE)
_ONLY_CRLF = lazy_pattern(r"with (?:very long lines(?: \(\d+\))?, with )?CRLF line terminators")
# `cat -A` shows `^M$`, `cat -v` `^M`, `sed -n l` `\r$`; `od -c` and a quoted text have `\r` and `\n`
_SHOWN = lazy_pattern(r"(?:\^M\$?|\\r\$)$")
_BREAK, _CRLF = lazy_pattern(r"\\n"), lazy_pattern(r"\\r {0,4}\\n")
_CONVERTS = lazy_pattern(
    r"\bdos2unix\b|\bunix2dos\b|\bfromdos\b|\btodos\b|\\r|renormalize|\bsed\b[^\n]{0,80} -\w*i|\btee\b|\bmv\b|\bcp\b"
)
_LEAST_SHOWN, _MOST_SHOWN, _MOST_TEXT = 2, 3, 20_000
"""Lines that show how a file's lines end, single lines that are named for edits, characters of an output that are read."""


class LineEnds(NamedTuple):
    """What shows that all lines of a file end in CRLF: the call, and its words."""

    entry: EntryView
    shown: str


def find_line_ends(evidence: Evidence, path: str, before: int) -> LineEnds | None:
    """Return what shows that a file has CRLF line ends, if that is the newest word about it."""
    later: list[EntryView] = []
    for entry in evidence.entries_before(before):
        ends = _read_line_ends(evidence, entry, path)
        if ends is not None:
            is_rewritten = any(_may_convert(each, path) for each in later)
            return LineEnds(entry, ends) if ends and not is_rewritten else None
        if entry.status == "ok":
            later.append(entry)
    return None


def _read_line_ends(evidence: Evidence, entry: EntryView, path: str) -> str | None:
    """Return the words by which a call shows that a file has CRLF ends; "" if it shows others, None if it shows none."""
    said = evidence.text(entry)[:_MOST_TEXT]
    for ends, name in _GIT.findall(said):
        if same_file(name.strip(), path):
            return "w/crlf" if ends == "crlf" else ""
    if any(words[0] == "file" for words in split_command(command_of(entry))):
        for name, about in _FILE.findall(said):
            if same_file(name.strip(), path):
                return "CRLF line terminators" if _ONLY_CRLF.search(about) else ""
    if not evidence.has_succeeded(entry) or edited_paths(entry) or "\n@@" in said:
        return None
    words = [word for part in split_command(command_of(entry)) for word in part[1:]]
    named = [word for word in [path_of(entry) or "", *words] if same_file(word, path)]
    return _read_shown_ends(said, entry) if named else None


def _read_shown_ends(said: str, entry: EntryView) -> str | None:
    lines = [line.rstrip() for line in said.split("\n") if line.strip()]
    ended = [match.group() for line in lines if (match := _SHOWN.search(line))]
    # Where only some lines have the sign, the file has both ends, or these are changed lines.
    if len(ended) >= _LEAST_SHOWN and len(ended) == len(lines):
        return ended[0]
    breaks = len(_BREAK.findall(said))
    if breaks >= _LEAST_SHOWN and len(_CRLF.findall(said)) == breaks:
        return "\\r\\n"
    # A terminal ends each line of each output so, a tool that reads files does not.
    raw = entry.output if isinstance(entry.output, str) and path_of(entry) and not command_of(entry) else ""
    return "\\r\\n" if raw.count("\n") == raw.count("\r\n") >= _LEAST_SHOWN else None


def _may_convert(entry: EntryView, path: str) -> bool:
    command = command_of(entry)
    if written_content(entry) is not None:
        return same_file(path_of(entry) or "", path)
    named = path.rpartition("/")[2] in command or "renormalize" in command or REWRITES.search(command) is not None
    return named and (REWRITES.search(command) is not None or _CONVERTS.search(command) is not None or ">" in command)


def find_place(old: str, known: Content) -> int | None:
    """Return the number of the first of the lines that a text of several lines has in a file, whatever the blanks beside them.

    None for a single line, for one that has CRLF ends itself, and if not all lines stand there together once.
    """
    wanted = [line.strip() for line in old.strip("\n").split("\n")]
    if len(wanted) < 2 or "\r" in old or not wanted[0]:
        return None
    have = [line.strip() for line in known.lines]
    places = [place for place, line in enumerate(have) if line == wanted[0] and have[place : place + len(wanted)] == wanted]
    return known.first + places[0] if len(places) == 1 else None


def takes_line_breaks(evidence: Evidence, entry: EntryView, path: str) -> bool:
    """Whether the same tool has replaced a text of several lines in that file, whatever its line ends."""
    return any(
        each.action == entry.action and any(same_file(path, one) for one in edited_paths(each))
        and any("\n" in change.old.strip("\n") for change in list_changes(each))
        for each in evidence.edits
    )  # fmt: skip


def list_single_changes(evidence: Evidence, changes: list[Change], before: int) -> list[tuple[str, str]]:
    """Return the single lines that changes replace, each with its new line, if the record shows them in the file."""
    found: dict[str, str] = {}
    for change in changes:
        old, new = change.old.strip("\n").split("\n"), change.new.strip("\n").split("\n")
        pairs = [(one.strip(), two.strip()) for one, two in zip(old, new, strict=False) if one.strip() != two.strip()]
        if len(old) == len(new) and all(one and two for one, two in pairs):
            found |= {one: two for one, two in pairs if one not in found and not ORDERS.search(f"{one} {two}")}
    read = [evidence.text(each) for each in evidence.entries_before(before) if evidence.has_succeeded(each)]
    return [(one, two) for one, two in found.items() if any(one in text for text in read)][:_MOST_SHOWN]
