"""A file is looked for in the wrong place. The record shows the right place, or that only a similar file exists."""

from __future__ import annotations

import re

from ctxmgr.diagnose.evidence import MOST_CURRENT, Evidence, clock
from ctxmgr.diagnose.evidence.calls import command_of, same_file, tool_phrase
from ctxmgr.diagnose.evidence.files import Mention, asked_paths, is_file_name, listed_paths, mentions
from ctxmgr.diagnose.evidence.texts import capital, code, find_line, find_nearest, how_often, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "wrongPlace"

_MISSING = lazy_pattern(
    r"no such file|does not exist|doesn't exist|cannot access|can't open|cannot open|not found|ENOENT|cannot find"
    r"|no files? (?:found|match)|did not match any file|file not found|unable to (?:open|read)|could not (?:open|read|find)",
    re.IGNORECASE,
)
_OF_FILE = lazy_pattern(
    r"\b(?:file|path|directory|folder)\b.{0,30}(?:not found|does not exist|doesn't exist)|no such file|ENOENT",
    re.IGNORECASE,
)
# Nearly every folder has one of these, so that one in another folder proves nothing.
_COMMON = lazy_pattern(r"^(?:__init__\.py|index\.\w+|main\.\w+|mod\.rs|README(?:\.\w+)?)$")
_QUOTED = lazy_pattern(
    r"[`'\"‘]([^`'\"’\n]{2,300})[`'\"’]|(?<![\w/.~-])((?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){0,14}[\w@+-][\w.@+-]{0,100})(?![\w/])"
)
_MOST_NAMES, _MOST_LINES, _MOST_MESSAGES = 12, 400, 6
"""Paths in a message; lines of a result in which messages are searched for, and messages that are read."""
_LEAST_NAME, _MOST_ELSEWHERE, _MOST_LISTED = 3, 4, 200
"""Characters of a name that is rare, places that are compared, names in a useful listing."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return where the record has the missing file."""
    for entry in evidence.failing_calls:
        said = evidence.text(entry)
        # A long log may hold many such lines. The first ones are about the call.
        for line in [line for line in said.split("\n")[:_MOST_LINES] if _MISSING.search(line)][:_MOST_MESSAGES]:
            for path in _list_missing_paths(entry, line):
                found = _diagnose_path(evidence, entry, path, line)
                if found is not None:
                    return found
    return None


def _list_missing_paths(entry: EntryView, line: str) -> list[str]:
    """Return the paths that a message calls missing and that the call itself or its program named."""
    groups: list[tuple[str, str]] = _QUOTED.findall(line[:1_000])
    named = [one or other for one, other in groups]
    asked = asked_paths(entry)
    named = [path.rstrip(":.,") for path in named if "/" in path or path in asked or is_file_name(path.rstrip(":.,"))]
    own = [path for path in named if any(same_file(path, each) for each in asked)]
    # A message without a name is about the call's only path.
    generic = not named and len(asked) == 1 and _OF_FILE.search(line) is not None
    every: list[str] = [*own, *named, *(asked if generic else [])]
    return list(dict.fromkeys(every))[:_MOST_NAMES]


def _diagnose_path(evidence: Evidence, entry: EntryView, path: str, line: str) -> Diagnosis | None:
    name = path.rstrip("/").rpartition("/")[2]
    # Short and common names occur everywhere.
    if len(name) < _LEAST_NAME or not plain_name(path) or _COMMON.match(name):
        return None
    if _was_seen(evidence, entry, path):
        return None
    elsewhere: dict[str, Mention] = {}
    for mention in mentions(evidence, name, entry.index):
        # A place that was refused too is no better.
        if (
            not evidence.same_place(mention.path, path)
            and plain_name(mention.path)
            and not _is_in_failing_call(evidence, mention.path)
        ):
            elsewhere.setdefault(mention.path.removeprefix("./"), mention)
        # With more places, the name is more likely to be a common one.
        if len(elsewhere) >= _MOST_ELSEWHERE:
            break
    if elsewhere:
        return _diagnose_other_place(evidence, entry, path, line, list(elsewhere.values()))
    return _diagnose_similar_names(evidence, entry, path, name, line)


def _was_seen(evidence: Evidence, entry: EntryView, path: str) -> bool:
    """Whether the same path was seen before. Then the file is gone, and the place was right."""
    return any(
        each.given and evidence.same_place(each.path, path) for each in mentions(evidence, path.rpartition("/")[2], entry.index)
    )


def _is_in_failing_call(evidence: Evidence, path: str) -> bool:
    return any(evidence.same_place(path, asked) for entry in evidence.failing_calls for asked in asked_paths(entry))


def _describe_failure(evidence: Evidence, entry: EntryView, path: str) -> str:
    times = evidence.count_failures(entry)
    call = code(command_of(entry), 80) if command_of(entry) else f"The {tool_phrase(entry)} of {evidence.name(path)}"
    return f"{call} fails{how_often(times)}: {code(evidence.name(path), 100)} is not there."


def _diagnose_other_place(evidence: Evidence, entry: EntryView, path: str, line: str, found: list[Mention]) -> Diagnosis:
    mention = found[0]
    where = evidence.name(mention.path)
    shown = evidence.source(mention.entry)
    cause = (
        f"{_describe_failure(evidence, entry, path)} {capital(shown)} {'used' if mention.given else 'shows'} "
        f"{code(where, 100)}."
    )
    if len(found) > 1:
        cause += f" There is also {code(evidence.name(found[1].path), 80)}."
    step = f"Use {code(where, 100)} in place of {code(evidence.name(path), 100)}."
    # A path that only an output named may be planted there.
    if not mention.given and not evidence.is_known_to_agent(mention.path):
        step = (
            f"Look at {code(where, 100)}, which the output names, and if it is what you need, use it in place of"
            f" {code(evidence.name(path), 80)}."
        )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, line), evidence.quote(mention.entry, _find_mention_line(evidence, mention)),
        check="The message that the file is missing must be gone.",
    )  # fmt: skip


def _diagnose_similar_names(evidence: Evidence, entry: EntryView, path: str, name: str, line: str) -> Diagnosis | None:
    """Say what is in the folder instead of the file, if a listing of that folder was recorded."""
    folder = path.rstrip("/").rpartition("/")[0]
    for other in evidence.latest_before(entry.index, MOST_CURRENT):
        if other.status != "ok" or not re.search(r"\b(?:ls|find|tree|dir)\b|LS$|Glob$|list", command_of(other) or other.action):
            continue
        said = evidence.text(other)
        there = [each for each in _list_names_in_folder(other, said, folder) if plain_name(each)]
        near = find_nearest(name, there, 0.72)
        # The very name is listed, so the place is right.
        if near is None or name in there:
            continue
        beside = f"{folder}/{near}" if folder else near
        # The similar name was refused as well.
        if _is_in_failing_call(evidence, beside):
            return None
        cause = (
            f"{_describe_failure(evidence, entry, path)} The listing of its folder{clock(other.ts)} has "
            f"{code(near, 80)}, and no"
            f" {code(name, 80)}."
        )
        cause += " They differ in upper and lower case only." if near.casefold() == name.casefold() else ""
        step = (
            f"Do not run this again until {code(name, 80)} exists. If {code(near, 80)} is meant, use that name; if it is not,"
            f" ask the user where {code(name, 80)} comes from."
        )
        check = f"List {evidence.name(folder) or 'the folder'} before you run it again."
        quotes = (evidence.quote(entry, line), evidence.quote(other))
        return diagnosis(KIND, cause, step, *quotes, check=check, confidence="medium")
    return None


def _list_names_in_folder(entry: EntryView, said: str, folder: str) -> list[str]:
    names: list[str] = []
    for word in dict.fromkeys(re.findall(r"[\w.@+-]{3,100}", said[:40_000])):
        # A word without an ending may be anything.
        if not is_file_name(word):
            continue
        for path in listed_paths(entry, said, word):
            parent = path.rpartition("/")[0].removeprefix("./")
            if parent == folder.removeprefix("./") or (folder and (folder.endswith(f"/{parent}") and parent)) or not folder:
                names.append(word)
                break
        # A listing of thousands is no help.
        if len(names) > _MOST_LISTED:
            break
    return names


def _find_mention_line(evidence: Evidence, mention: Mention) -> str:
    name = mention.path.rpartition("/")[2]
    if mention.given:
        return mention.path
    return find_line(evidence.text(mention.entry), name, mention.path)
