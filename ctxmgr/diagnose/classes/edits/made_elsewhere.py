"""Edits have no effect because another file decides: the edited one is made from it, built into it, copied, or overridden."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ctxmgr.diagnose.classes.edits.edits_not_used import unaffected_calls
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import command_of, edited_paths, list_changes, path_of
from ctxmgr.diagnose.evidence.texts import code, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "madeElsewhere"

_MADE = lazy_pattern(
    r"\b(?:auto-?)?(?:generated|made|built|created|compiled|produced|rendered)\b.{0,40}?\b(?:by|from|with|out of)\b"
    r"|\bdo not edit\b",
    re.IGNORECASE,
)
_FILE = lazy_pattern(r"(?<![\w/.-])((?:[\w.@+-]{1,60}/){0,8}[\w@+-][\w.@+-]{0,60}\.[A-Za-z]\w{0,7})(?![\w/-])")
# A rule of make, with or without a line number before it: `dist/app.js: src/app.ts`. `CC := gcc` is none.
_RULE = lazy_pattern(r"^(?:\s*\d+\s)?([\w./-]{2,80})\s?:(?!=)\s([^\n=]{2,200})$", re.MULTILINE)
_BUILDS = lazy_pattern(r"\b(?:make|ninja|cmake|gcc|cc|clang|g\+\+|build|compile|setup\.py)\b")
_LOOKED_AT, _HEAD, _MOST = 200, 6, 8_000

_OtherFile = tuple[str, str, EntryView, str]
"""Why, what to do, the entry that shows it, and the line."""


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return the file that decides instead of the edited one."""
    for entry, same, edits in unaffected_calls(evidence):
        for path in dict.fromkeys(path for each in reversed(edits) for path in edited_paths(each)):
            file = evidence.relative_path(path)
            # The answer to an edit repeats the edited text.
            shown = [e for e in list(evidence.recent)[-_LOOKED_AT:] if e.status == "ok" and not edited_paths(e)]
            for form in _FORMS:
                found = next(form(evidence, file, shown, edits[0].index), None)
                if found is not None:
                    why, step, other, line = found
                    call = code(command_of(entry), 80) if command_of(entry) else f"The {entry.action[:40]} call"
                    cause = f"{call} ends the same after {len(edits)} edits, {len(same)} times: {why}."
                    return diagnosis(
                        KIND, cause, step, evidence.quote(other, line), evidence.quote(entry),
                        check="The outcome must change; if it does not, undo that change.", confidence="medium",
                    )  # fmt: skip
    return None


def _find_source(evidence: Evidence, file: str, shown: list[EntryView], _: int) -> Iterator[_OtherFile]:
    """Yield the source from which the edited file is made, according to its head."""
    for other in reversed(shown):
        path = path_of(other) or next((word for word in command_of(other).split() if word.endswith(file)), "")
        # The head of another file says nothing about this one.
        if not path or not evidence.same_place(path, file):
            continue
        for line in evidence.text(other).split("\n")[:_HEAD]:
            names = [name for name in _FILE.findall(line) if plain_name(name) and name.rpartition("/")[2] != _file_name(file)]
            if _MADE.search(line) and names:
                shown_names = " and ".join(code(name, 80) for name in names[:2])
                sources = f"{code(names[0], 80)} (or {code(names[1], 80)})" if len(names) > 1 else shown_names
                yield (
                    f"{code(file, 80)} is generated, as its head says, and written anew from {shown_names}, so edits "
                    "of it are lost",
                    f"Make the change in {sources}, not in what comes of it: generate {code(file, 80)} anew, and leave that "
                    "file alone.",
                    other,
                    line,
                )  # fmt: skip


def _find_build_target(evidence: Evidence, file: str, shown: list[EntryView], first: int) -> Iterator[_OtherFile]:
    """Yield what a makefile builds from the edited file, if nothing has built it since."""
    # Any build since may have been this target.
    if any(each.index > first and _BUILDS.search(call_input(each)) for each in evidence.recent):
        return
    for other in reversed(shown):
        for match in _RULE.finditer(evidence.text(other)[:_MOST]):
            target, needs = match.groups()
            if (
                _file_name(file) in {_file_name(word) for word in needs.split()}
                and plain_name(target)
                # A target without a dot or a folder is a task such as `test`, not a file.
                and ("." in target or "/" in target)
            ):
                yield (
                    f"{code(target, 80)} is compiled from {code(file, 80)}, and no build of it is recorded since the edits, so "
                    "the old one is used",
                    f"Rebuild {code(target, 80)} first (run make for it, as the rule says), and then run this once.",
                    other,
                    match.group(0).strip(),
                )


def _find_loaded_copy(evidence: Evidence, file: str, shown: list[EntryView], _: int) -> Iterator[_OtherFile]:
    """Yield the other copy of the file that is loaded according to a look-up."""
    parts = file.split("/")
    for other in reversed(shown):
        said = evidence.text(other).strip()
        # A single path on a line answers "which file is loaded". A list of paths does not.
        if "\n" in said or len(parts) < 2 or not plain_name(said) or evidence.same_place(said, file):
            continue
        if said.split("/")[-2:] == parts[-2:]:
            yield (
                f"what is loaded is another copy, {code(evidence.relative_path(said), 90)}, and not {code(file, 80)}",
                f"Renew that copy {code(evidence.relative_path(said), 90)} or make it a link to the edited folder (install the "
                "package anew, or use a workspace), and do not edit it by hand.",
                other,
                said,
            )


def _find_second_setting(evidence: Evidence, file: str, shown: list[EntryView], _: int) -> Iterator[_OtherFile]:
    """Yield another file that gives a name the value that it had before the edits."""
    own = [each for each in evidence.edits if any(evidence.same_place(path, file) for path in edited_paths(each))]
    old = evidence.last_content(file, own[0].index) if own else None
    replaced = [change for each in own for change in list_changes(each)]
    written = "\n".join(change.new for change in replaced) or "\n".join(map(call_input, own))
    texts = ["\n".join(old.lines) if old is not None else "", *(change.old for change in replaced)]
    before = {setting for text in texts for setting in _settings(text) if setting[0] in written}
    before -= set(_settings(replaced[-1].new if replaced else ""))
    edited = [path for each in evidence.edits for path in edited_paths(each)] if before else []
    for other in reversed(shown) if before else ():
        for line in evidence.text(other)[:_MOST].split("\n"):
            setting = next(_settings(_PLACE.sub("", line)), ("", ""))
            if setting not in before:
                continue
            place = _PLACE.match(line)
            path = (place.group(1) if place else None) or path_of(other) or ""
            if not plain_name(path) or any(evidence.same_place(path, each) for each in edited):
                continue
            name, there = code(setting[0], 60), code(evidence.name(path), 80)
            read = _find_import(evidence, shown, path)
            yield (
                f"{there} gives {name} a value too, the one from before the edits of {code(file, 80)}"
                f"{f', and {evidence.source(read[0])} shows that it is read: {code(read[1], 80)}' if read else ''}",
                f"See which of the two is read last, {code(file, 80)} or {there}: set {name} there, and undo the edits that had"
                " no effect.",
                other,
                line.strip(),
            )


def _find_import(evidence: Evidence, shown: list[EntryView], path: str) -> tuple[EntryView, str] | None:
    """Return a line that imports or includes a file, with the entry that shows it."""
    stem = _file_name(path).partition(".")[0]
    reads = re.compile(
        rf"(?:\b(?:from|import|require|include|source|load|use|extends)\b).*(?<![\w-]){re.escape(stem)}(?![\w-])"
    )
    lines = ((each, line) for each in reversed(shown) for line in evidence.text(each)[:_MOST].split("\n"))
    return next(((each, _PLACE.sub("", line).strip()) for each, line in lines if len(stem) > 2 and reads.search(line)), None)


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names to which the lines of a text give values, with these."""
    return ((match.group("name"), match.group("value").strip().rstrip(";,")) for match in _SETTING.finditer(text))


_SETTING = lazy_pattern(
    r"^\s*(?:export |const |let |var |final |static )*[\"']?(?P<name>[A-Za-z_][\w.-]{2,60})[\"']?\s{0,4}(?:[:=]|:=)\s{0,4}"
    r"(?P<value>[^\s=#][^\n#]{0,120})$",
    re.MULTILINE,
)
# The place before a line that grep or a reading tool shows
_PLACE = lazy_pattern(r"^(?:([\w./@+-]{1,200}):\d{1,6}[:-]|\s{0,8}\d{1,6}(?:\t|→| {4}|\| ?))")


def _find_overriding_file(evidence: Evidence, file: str, shown: list[EntryView], _: int) -> Iterator[_OtherFile]:
    """Yield the file with a similar name that a program reads besides the edited one."""
    stem, _dot, ending = _file_name(file).rpartition(".")
    if not stem:
        return
    like = re.compile(rf"(?<![\w.-])((?:[\w.-]+/)*{re.escape(stem)}[._-][\w-]{{1,20}}\.{re.escape(ending)})(?![\w.-])")
    for other in reversed(shown):
        text = evidence.text(other)[:_MOST]
        match = like.search(text)
        # Both names must be in one text, and in code: a list of files shows that they exist, not that they are read.
        if (
            match
            and re.search(rf"(?<![\w.-]){re.escape(_file_name(file))}(?![\w.-])", text)
            and ("(" in text or "import" in text)
        ):
            name = match.group(1)
            line = next(line.strip() for line in text.split("\n") if name in line)
            yield (
                f"the program reads {code(name, 80)} beside {code(file, 80)}, and what stands there may override it",
                f"Read {code(name, 80)}: if it sets the same thing, change it there.",
                other,
                line,
            )


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


_FORMS: tuple[Callable[[Evidence, str, list[EntryView], int], Iterator[_OtherFile]], ...] = (
    _find_source, _find_build_target, _find_loaded_copy, _find_second_setting, _find_overriding_file,
)  # fmt: skip
