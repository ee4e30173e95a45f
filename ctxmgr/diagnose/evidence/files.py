"""What the record knows of files: the last known content of each, and the paths that it mentions.

A content is what was read or written of a file, with the session's later edits applied. Paths stand in inputs, in listings and
in messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctxmgr.base.light_dataclass import dataclass, replace
from ctxmgr.diagnose.evidence.calls import (
    Change,
    call_input,
    command_of,
    fields_of,
    find_written_file,
    list_changes,
    patch_changes,
    patched_paths,
    path_of,
    same_file,
    split_command,
    written_content,
)
from ctxmgr.diagnose.evidence.messages import Message, split_sentences
from ctxmgr.diagnose.evidence.numbered_lines import read_numbered_lines
from ctxmgr.diagnose.evidence.texts import ORDERS, agent_name, clean, clock, code, plain_name, text_of
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView

if TYPE_CHECKING:  # `session` imports this module
    from ctxmgr.diagnose.evidence.session import Evidence

_READS = frozenset(("read", "view", "open", "cat", "show"))
_WORD = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_RANGE = lazy_pattern(r"(\d{1,7}),(\d{1,7})p")
_MOST_LINES = 20_000
REWRITES = lazy_pattern(
    r"\b(?:git (?:checkout|restore|reset|stash|pull|merge|rebase|apply|revert|switch|am|cherry-pick)|ruff format|black|isort"
    r"|prettier|gofmt|goimports|rustfmt|cargo fmt|clang-format|eslint .{0,40}--fix|ruff check .{0,40}--fix|autopep8|patch)\b"
)
"""Commands that change files without naming the new content."""


@dataclass(frozen=True, slots=True)
class Content:
    """The known content of a file.

    Attributes:
        first: number of the first known line.
        whole: the whole file is known.
        entry: the call that showed or wrote it last.
        edits: number of later edits of the session that are applied.
        doubtful: something else may have changed the file since.
    """

    path: str
    lines: tuple[str, ...]
    first: int
    whole: bool
    entry: EntryView
    edits: int = 0
    doubtful: bool = False

    @property
    def text(self) -> str:
        """The known lines as one text."""
        return "\n".join(self.lines)

    def find_line_numbers(self, text: str) -> list[int]:
        """Return the numbers of the first 20 lines at which a text begins."""
        whole, found, start = self.text, list[int](), 0
        while text and len(found) < 20 and (start := whole.find(text, start)) >= 0:
            found.append(self.first + whole.count("\n", 0, start))
            start += len(text)
        return found


def find_last_content(entries: Sequence[EntryView], path: str, said: Callable[[EntryView], str]) -> Content | None:
    """Return the last known content of a file.

    Args:
        entries: the entries, oldest first.
        path: the file, by any part of its path.
        said: returns the text of an entry's result.
    """
    start, known = None, None
    for place in range(len(entries) - 1, -1, -1):
        known = _content_of_entry(entries[place], path, said, entries)
        if known is not None:
            start = place
            break
    if known is None or start is None:
        return None
    for entry in entries[start + 1 :]:
        # A failed edit has changed nothing.
        if entry.status == "ok":
            known = _apply_change(known, entry, path)
    return known


def _content_of_entry(
    entry: EntryView, path: str, said: Callable[[EntryView], str], entries: Sequence[EntryView]
) -> Content | None:
    """Return the content of a file that an entry shows or writes."""
    if entry.status != "ok":
        return None
    own = path_of(entry) or next(iter(find_written_file(entry) or ()), None)
    if own is not None and same_file(own, path):
        content = written_content(entry)
        if content is not None:
            return Content(path, _split_lines(content), 1, True, entry)
        return _content_of_read(entry, path, said, entries) if _is_read(entry) else None
    command = command_of(entry)
    name = path.rpartition("/")[2]
    return _content_of_command(entry, command, path, said) if command and name and name in command else None


def _is_read(entry: EntryView) -> bool:
    words = {word.lower() for word in _WORD.findall(entry.action[:80])}
    return (bool(words & _READS) or fields_of(entry).get("command") == "view") and not list_changes(entry)


def _content_of_read(
    entry: EntryView, path: str, said: Callable[[EntryView], str], entries: Sequence[EntryView]
) -> Content | None:
    text = _raw_output(entry, said)
    fields = fields_of(entry)
    asked = next((fields[name] for name in ("offset", "start_line", "line_start") if isinstance(fields.get(name), int)), 1)
    view = fields.get("view_range")
    if isinstance(view, list) and view and isinstance(view[0], int):
        asked = view[0]
    # Lines are counted from 0 or from 1. Both mean the beginning.
    partly = any(fields.get(name) not in (None, 0, 1) for name in ("offset", "limit", "view_range", "start_line", "end_line"))
    others = (
        _split_lines(_raw_output(each, said))
        for each in entries
        if each.action == entry.action and each is not entry and each.status == "ok" and _is_read(each)
    )
    return _make_content(_split_lines(text), path, max(1, asked), entry, whole=not partly, others=others)


def _raw_output(entry: EntryView, said: Callable[[EntryView], str]) -> str:
    # Not `said`, which keeps only the two ends of a long text.
    return entry.output[:400_000] if isinstance(entry.output, str) else text_of(entry.output, 400_000) or said(entry)


def _content_of_command(entry: EntryView, command: str, path: str, said: Callable[[EntryView], str]) -> Content | None:
    """Return the content that a command shows if it prints one file: cat, nl, head, tail, sed -n."""
    parts = [words for words in split_command(command) if words[0] != "cd"]
    if len(parts) != 1:
        return None
    words = parts[0]
    files = [word for word in words[1:] if same_file(word, path)]
    # The output of a command that writes is not the file.
    if not files or ">" in command or "<<" in command:
        return None
    others = [word for word in words[1:] if word not in files and not word.startswith("-")]
    options = "".join(word for word in words[1:] if word.startswith("-") and not word.startswith("--"))
    lines = _split_lines(_raw_output(entry, said))
    # Another word may be a second file. `cat -A` shows signs that the file does not have.
    if words[0] in ("cat", "nl", "bat") and not others and not (words[0] == "cat" and set("AEeTtv") & set(options)):
        numbers = words[0] != "cat" or set("nb") & set(options) or "--number" in words
        return _make_content(lines, path, 1, entry, whole=True, others=() if numbers else None)
    if words[0] == "head":
        return _make_content(lines, path, 1, entry, whole=False)
    if words[0] == "sed" and "-n" in words and len(others) == 1 and (asked := _RANGE.fullmatch(others[0])):
        return _make_content(lines, path, int(asked.group(1)), entry, whole=False)
    return None


def _make_content(
    lines: tuple[str, ...],
    path: str,
    first: int,
    entry: EntryView,
    *,
    whole: bool,
    others: Iterable[Sequence[str]] | None = None,
) -> Content | None:
    """Return the content that a view shows; ``others`` are views by the same tool, None if it puts no numbers before lines."""
    view = None if others is None else read_numbered_lines(lines, others)
    first, lines = view or (first, lines)
    return Content(path, lines, first, whole and first == 1, entry) if lines else None


def _split_lines(text: str) -> tuple[str, ...]:
    return tuple(clean_line(line) for line in text.replace("\r\n", "\n").removesuffix("\n").split("\n")[:_MOST_LINES])


def clean_line(line: str) -> str:
    """Return a line of a file in the form to be compared and quoted. Tabs are kept."""
    return line if line.isprintable() else "\t".join(clean(part) for part in line.split("\t"))


def _apply_change(known: Content, entry: EntryView, path: str) -> Content:
    own = path_of(entry)
    changes: list[Change] = []
    if own is not None and same_file(own, path):
        changes = list_changes(entry)
    elif any(same_file(named, path) for named in patched_paths(entry)):
        changes = patch_changes(entry, path)
    else:
        command = command_of(entry)
        name = path.rpartition("/")[2]
        touches = bool(command) and (REWRITES.search(command) is not None or (name in command and _writes_to(command, name)))
        # Something unknown wrote the file, so everything known about it is doubtful.
        return replace(known, doubtful=True) if touches else known
    text = known.text
    missed = False
    for change in changes:
        if change.old and change.old.strip("\n") in text:
            count = -1 if fields_of(entry).get("replace_all") is True else 1
            text = text.replace(
                change.old.strip("\n") if change.old not in text else change.old, _fit_change(change, text), count
            )
        else:
            missed = True
    if not changes:
        return known
    lines = tuple(text.split("\n")[:_MOST_LINES])
    # If only a part of the file is known, the edit may be in the rest.
    return replace(known, lines=lines, edits=known.edits + 1, doubtful=known.doubtful or (missed and known.whole))


def _fit_change(change: Change, text: str) -> str:
    return change.new if change.old in text else change.new.strip("\n")


def _writes_to(command: str, name: str) -> bool:
    quoted = re.escape(name)
    return re.search(rf"(?:sed\s+(?:-\w+\s+)*-i|>>?\s*\S*{quoted}|\btee\b|\b(?:mv|cp|rm|truncate)\b)", command) is not None


FOREIGN = (
    "site-packages/", "dist-packages/", "node_modules/", "/usr/lib/", "/usr/local/lib/", "lib/python3", "/rustc/", "<frozen",
    "node:internal/", "internal/modules/",
)  # fmt: skip
"""Parts of paths outside of the project's own code."""
PATH = lazy_pattern(r"(?<![\w/.:~@-])((?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){0,14}[\w.@+-]{1,100})(?![\w/])")
_FILE = lazy_pattern(r"[\w@+-][\w.@+-]*\.\w{1,8}$|(?:Makefile|Dockerfile|justfile|Procfile|LICENSE|README)$")
_MOST_LISTED = 4_000
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
        if not evidence.has_succeeded(entry):
            continue
        for path in _list_given_paths(entry):
            if path.rstrip("/").rpartition("/")[2] == name:
                yield Mention(path, entry, True)
        said = evidence.text(entry)
        if name in said:
            yield from (Mention(path, entry, False) for path in listed_paths(entry, said, name))


def _list_given_paths(entry: EntryView) -> list[str]:
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
    for line in said.split("\n")[:_MOST_LISTED]:
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
    return [*_list_given_paths(entry), *words, *loose][:60]


_MOVED = lazy_pattern(
    r"\b(?:instead|no longer|any ?more|moved (?:it |them )?(?:to|into)|now (?:in|at|under|lives?|goes)|from now on"
    r"|change of plan|renamed|replaced by|in place of|rather than)\b",
    re.IGNORECASE,
)
_NAME_PART = lazy_pattern(r"[a-z]{3,}")
_MOST_MESSAGES, _MOST_SAID = 100, 4_000


class Move(NamedTuple):
    """What somebody said of a file that is elsewhere now: the message, its sentence, the new place, and who said it."""

    message: Message
    sentence: str
    place: str
    who: str

    @property
    def description(self) -> str:
        """The message in words: who said it, when, and the sentence."""
        return f"{self.who} said{clock(self.message.at)}: {code(self.sentence, 170)}"


def find_move(evidence: Evidence, entry: EntryView, name: str) -> Move | None:
    """Return the newest message, of anybody but the agent of a call, that names another place for a file of the call."""
    parts = set(_NAME_PART.findall(name.rpartition("/")[2].casefold()))
    for message in reversed(evidence.messages[-_MOST_MESSAGES:] if "/" in name or is_file_name(name) else ()):
        said = message.text[:_MOST_SAID]
        if message.by == "program" or message.who == entry.agent or not _MOVED.search(said):
            continue
        # A single part of the name may be about anything.
        if name not in said and not (len(parts) > 1 and parts <= set(_NAME_PART.findall(said.casefold()))):
            continue
        place, sentence = _find_new_place(said, asked_paths(entry))
        if place and not ORDERS.search(sentence):
            who = "the user" if message.by == "user" else agent_name(message.who)
            return Move(message, sentence, place, who)
    return None


def _find_new_place(text: str, known: list[str]) -> tuple[str, str]:
    """Return the file that a message names beside those of a call, and its sentence; a move comes first."""
    found: list[tuple[str, str]] = []
    for sentence in split_sentences(text):
        for match in PATH.finditer(sentence):
            place = match.group(1).rstrip("/.")
            other = is_file_name(place) and plain_name(place) and not any(same_file(place, each) for each in known)
            if other and not _is_given_up(sentence[: match.start()], sentence[match.end() :]):
                found.append((place, sentence))
    return next((each for each in found if _MOVED.search(each[1])), found[0] if found else ("", ""))


_OLD_BEFORE = lazy_pattern(
    r"\b(?:instead of|rather than|in place of|from|moved|renamed|replaced?s?|deleted|removed|not)\s(?:the |our |in )*[`'\"]?\Z",
    re.IGNORECASE,
)
_OLD_AFTER = lazy_pattern(
    r"\A[`'\"]?\s(?:was |is |are |has been |got )*(?:now )?"
    r"(?:renamed|moved|replaced|gone|no longer|not|deleted|removed|old|empty|stale)\b",
    re.IGNORECASE,
)
_NO_MORE = lazy_pattern(r"\b(?:no longer|any ?more|never)\b", re.IGNORECASE)
_CLAUSE_END = lazy_pattern(r"[,;:]\s|\bbut\b|\binstead\b(?! of)")


def _is_given_up(before: str, after: str) -> bool:
    """Whether the words around a file in a sentence say that it is the old place, and not the new one."""
    clause = f"{_CLAUSE_END.split(before)[-1]} {_CLAUSE_END.split(after)[0]}"
    near = _OLD_BEFORE.search(before) is not None or _OLD_AFTER.search(after) is not None
    return near or _NO_MORE.search(clause) is not None
