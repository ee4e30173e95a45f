"""Edits have no effect because another file decides: the edited one is made from it, built into it, copied, or overridden."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.classes.edits.edits_not_used import unaffected_calls
from ctxmgr.diagnose.classes.edits.vanished_edit import diagnose_vanished_edit
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import (
    call_phrase,
    command_of,
    edited_paths,
    list_changes,
    path_of,
    same_file,
    split_command,
)
from ctxmgr.diagnose.evidence.files import asked_paths, is_file_name, listed_paths
from ctxmgr.diagnose.evidence.manifests import find_build_command
from ctxmgr.diagnose.evidence.texts import code, plain_name, strip_line_numbers
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
_HEAD_LINES, _MOST_TEXT, _MOST_COPIES = 6, 8_000, 12

_OtherFile = tuple[str, str, EntryView, str]
"""Why, what to do, the entry that shows it, and the line."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the file that decides instead of the edited one."""
    found = diagnose_vanished_edit(evidence, KIND) or _diagnose_earlier_header(evidence)
    return found or _diagnose_unaffected_call(evidence)


_SEARCHED = lazy_pattern(r"(?<!\S)(-iquote|-I|-isystem)[ \t]?(?:\./)?([\w./+-]{1,100}?)/?(?!\S)")
_HEADER = lazy_pattern(r"\.(?:h|hh|hpp|hxx|inc|inl|def)$")
_LAST_LINES = 2
_LISTS = ("ls", "find", "tree", "git", "fd")
_QUOTED = lazy_pattern(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")


class _EarlierHeader(NamedTuple):
    """A header that the compiler takes before an edited one, the words for their folders, and the compiler's line."""

    path: str
    instead: str
    folders: tuple[str, str]
    line: str


def _diagnose_earlier_header(evidence: Evidence) -> Diagnosis | None:
    """Return the header of an earlier folder of the compiler's search, if an edited one of the same name is not reached."""
    for entry in evidence.failing_calls:
        lines = [line for line in evidence.text(entry)[:_MOST_TEXT].split("\n") if len(_SEARCHED.findall(line)) > 1]
        changes = [(evidence.relative_path(path), each) for each in evidence.recent if lines for path in _list_changed(each)]
        edited = dict(reversed(changes))
        for path, first in edited.items():
            if not _HEADER.search(path) or not plain_name(path) or not _failed_before(evidence, entry, first):
                continue
            found = next((one for line in lines[:_HEAD_LINES] if (one := _find_earlier(evidence, path, line))), None)
            if found is not None and found.path not in edited:
                return _explain_earlier(evidence, entry, found)
    return None


def _failed_before(evidence: Evidence, entry: EntryView, change: EntryView) -> bool:
    """Whether a call ended before a change as another one does after it."""
    before = [each for each in evidence.entries_before(change.index) if evidence.has_failed(each)]
    return change.index <= entry.index and any(_read_end(evidence, each) == _read_end(evidence, entry) for each in before)


def _read_end(evidence: Evidence, entry: EntryView) -> str:
    return mask_volatile("\n".join(evidence.text(entry).split("\n")[-_LAST_LINES:]))


def _list_changed(entry: EntryView) -> list[str]:
    """Return the files that a call changes, with an editing tool or by `sed -i`."""
    bare = _QUOTED.sub("''", command_of(entry))
    edits = (part for part in split_command(bare) if part[0] == "sed" and any(word.startswith("-i") for word in part))
    return [*(edited_paths(entry) if entry.status == "ok" else ()), *(word for part in edits for word in part[2:])]


def _find_earlier(evidence: Evidence, path: str, line: str) -> _EarlierHeader | None:
    searched = sorted(_SEARCHED.findall(line), key=lambda each: ("-iquote", "-I", "-isystem").index(each[0]))
    own = next((place for place, (_, folder) in enumerate(searched) if path.startswith(f"{folder}/")), 0)
    name = path.removeprefix(f"{searched[own][1]}/")
    included = re.compile(rf"^\s*(?:\d+\s+)?#\s*include\s+([\"<]){re.escape(name)}[\">]", re.MULTILINE)
    readers = [(each, match) for each in evidence.latest if (match := included.search(evidence.text(each)[:_MOST_TEXT]))]
    # The folder of the file that includes it comes first of all.
    if any(
        evidence.relative_path(word).startswith(f"{searched[own][1]}/") for each, _ in readers for word in asked_paths(each)
    ):
        return None
    for option, folder in searched[:own]:
        # Only names in quotes are looked for in the folders of `-iquote`.
        reads = any(option != "-iquote" or match[1] == '"' for _, match in readers)
        if reads and _is_listed(evidence, f"{folder}/{name}"):
            return _EarlierHeader(f"{folder}/{name}", path, (f"{option} {folder}", " ".join(searched[own])), line)
    return None


def _is_listed(evidence: Evidence, path: str) -> bool:
    """Whether a look has listed a file, or read it."""
    for each in evidence.latest:
        words = {words[0] for words in split_command(command_of(each))}
        paths = listed_paths(each, evidence.text(each), _file_name(path)) if words & set(_LISTS) else asked_paths(each)
        if evidence.has_succeeded(each) and any(evidence.same_place(one, path) for one in paths):
            return True
    return False


def _explain_earlier(evidence: Evidence, entry: EntryView, found: _EarlierHeader) -> Diagnosis:
    made, own, (first, second) = code(found.path, 80), code(found.instead, 80), (code(each, 60) for each in found.folders)
    cause = (
        f"{evidence.describe_failure(entry, 60)}: the edits of {own} are not used, because the compiler takes {made} before it:"
        f" {first} comes before {second} on its line."
    )
    source = _find_recipe(evidence, found.path, entry.index)
    step = f"Read {made}, and make the change there or in what it is made from; then run {code(command_of(entry), 60)} once."
    quotes = [evidence.quote(entry, found.line)]
    if source is not None:
        other, name, line, build = source
        cause += f" That one is made from {code(name, 80)}, as {evidence.source(other)} shows."
        how = f"run {code(build, 60)}" if build else f"make {made} anew"
        step = f"Make the change in {code(name, 80)}, {how}, and then run {code(command_of(entry), 60)} once."
        quotes.insert(0, evidence.quote(other, line))
    return diagnosis(
        KIND, cause, step, *quotes, check=f"{made} must have the new values, and the outcome must change.",
        confidence="medium" if source is None else "high",
    )  # fmt: skip


def _find_recipe(evidence: Evidence, made: str, before: int) -> tuple[EntryView, str, str, str | None] | None:
    """Return what a file is made from: the entry that shows it, the source, the line, and the command that makes it."""
    arrow = re.compile(rf"{_FILE.pattern}\s*(?:->|→|=>)\s*(?:\./)?{re.escape(made)}(?![\w/-])")
    for other in evidence.latest:
        text = evidence.text(other)[:_MOST_TEXT]
        for line in text.split("\n") if made in text and evidence.has_succeeded(other) and not edited_paths(other) else ():
            names = [name for name in _FILE.findall(line) if plain_name(name) and _file_name(name) != _file_name(made)]
            if names and (arrow.search(line) or _MADE.search(line)):
                script = next((path for path in asked_paths(other) if is_file_name(path)), "")
                build = find_build_command(evidence, script, before)[0] if script else None
                return other, names[0], line.strip(), build
    return None


def _diagnose_unaffected_call(evidence: Evidence) -> Diagnosis | None:
    """Return the file that decides, if a call answers the same before and after edits of another one."""
    for entry, same, edits in unaffected_calls(evidence):
        for path in dict.fromkeys(path for each in reversed(edits) for path in edited_paths(each)):
            file = evidence.relative_path(path)
            # The answer to an edit repeats the edited text.
            shown = [e for e in evidence.latest if e.status == "ok" and not edited_paths(e)]
            for form in _FORMS:
                found = next(form(evidence, file, shown, edits[0].index), None)
                if found is not None:
                    why, step, other, line = found
                    call = call_phrase(entry, 80)
                    cause = f"{call} ends the same after {len(edits)} edits, {len(same)} times: {why}."
                    return diagnosis(
                        KIND, cause, step, evidence.quote(other, line), evidence.quote(entry),
                        check="The outcome must change; if it does not, undo that change.", confidence="medium",
                    )  # fmt: skip
    return None


def _find_source(evidence: Evidence, file: str, shown: list[EntryView], _: int) -> Iterator[_OtherFile]:
    """Yield the source from which the edited file is made, according to its head."""
    for other in shown:
        path = path_of(other) or next((word for word in command_of(other).split() if word.endswith(file)), "")
        # The head of another file says nothing about this one.
        if not path or not evidence.same_place(path, file):
            continue
        for line in evidence.text(other).split("\n")[:_HEAD_LINES]:
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
    for other in shown:
        for match in _RULE.finditer(evidence.text(other)[:_MOST_TEXT]):
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
    for other in shown:
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
    before = {setting for text in texts for setting in _list_settings(text) if setting[0] in written}
    before -= set(_list_settings(replaced[-1].new if replaced else ""))
    edited = [path for each in evidence.edits for path in edited_paths(each)] if before else []
    for other in shown if before else ():
        for line in evidence.text(other)[:_MOST_TEXT].split("\n"):
            setting = next(_list_settings(_PLACE.sub("", line)), ("", ""))
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
    lines = ((each, line) for each in shown for line in evidence.text(each)[:_MOST_TEXT].split("\n"))
    return next(((each, _PLACE.sub("", line).strip()) for each, line in lines if len(stem) > 2 and reads.search(line)), None)


def _list_settings(text: str) -> Iterator[tuple[str, str]]:
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
    for other in shown:
        text = evidence.text(other)[:_MOST_TEXT]
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


# Only calls that copy whole folders or files to a named place
_COPY_CALL = lazy_pattern(
    r"\b(?:copytree|copy_tree|copyfile|copy2|cpSync|copySync|copyFileSync)\(\s*[\"']([^\"'\n]{1,100})[\"'],\s*[\"']([^\"'\n]{1,100})[\"']"
)
_COPY_COMMAND = lazy_pattern(r"(?<![\w./-])(?:cp|rsync|ditto|xcopy|robocopy)((?:[ \t]+[^\s|;&<>,]{1,120}){2,12})")
_TASK = lazy_pattern(r"^([\w.-]{1,40})\s?:(?!=)")
_SCRIPT = lazy_pattern(r"\"([\w:.-]{1,40})\"\s?:\s?\"")
# The name of a setting from which a program takes files, and of one to which it writes them
_TAKES = lazy_pattern(
    r"(?:path|root|dir|director(?:y|ie)|folder|src|source|module|include|serve|static|public|base|context|package|main|entry"
    r"|import|input|from|lib)s?$",
    re.IGNORECASE,
)
_WRITES = lazy_pattern(r"out|dest|target|backup|save|dist|archive|cache|temp|tmp", re.IGNORECASE)
_NO_SETTING = lazy_pattern(r"^(?:#|//|;|\.PHONY)")


def _find_copy(evidence: Evidence, file: str, shown: list[EntryView], first: int) -> Iterator[_OtherFile]:
    """Yield the copy of the edited file that a setting or the check itself uses, if nothing has renewed it since."""
    since = [each for each in evidence.recent if each.index > first and command_of(each)]
    # The output of the check names the edited file, so it runs that one.
    if any(same_file(name, file) for each in since for name in _FILE.findall(evidence.text(each)) if "/" in name):
        return
    seen: set[str] = set()
    for other, source, copy, how, line in _list_recorded_copies(evidence, shown, first):
        known = copy in seen or len(seen) >= _MOST_COPIES
        if known or not _is_within(file, source) or _is_within(file, copy) or not plain_name(copy):
            continue
        seen.add(copy)
        user = _find_trace(evidence, f"{copy}{file.removeprefix(source)}", since) or _find_user(
            evidence, copy, line, shown, since
        )
        if user is None or any(_may_renew(each, copy, how) for each in since):
            continue
        yield (
            f"it uses {code(copy, 60)}, as {evidence.source(user[0])} shows ({code(user[1], 90)}), a copy of {code(source, 60)}"
            f" that {code(how, 80)} renews, and no renewal of it is recorded since the edits",
            f"Run {code(how, 80)}, so that {code(copy, 60)} is copied anew from {code(source, 60)} with the edits of"
            f" {code(file, 80)}, and then run the check once. Do not edit the copy.",
            other,
            line.strip(),
        )


def _list_recorded_copies(
    evidence: Evidence, shown: list[EntryView], first: int
) -> Iterator[tuple[EntryView, str, str, str, str]]:
    """Yield what a shown file, or a call before the edits, copies: the entry, from where, to where, what does so, the line."""
    for other in shown:
        lines = strip_line_numbers(evidence.text(other)[:_MOST_TEXT]).split("\n")
        for place, line in enumerate(lines):
            for source, copy in _list_copies(line):
                yield other, source, copy, _name_renewal(evidence, other, lines, place), line
        for match in _COPY_COMMAND.finditer(command_of(other) if other.index < first else ""):
            for source, copy in _list_copies(match.group(0)):
                yield other, source, copy, match.group(0), command_of(other)


def _list_copies(line: str) -> Iterator[tuple[str, str]]:
    """Yield what a line copies, and to where."""
    pairs: list[tuple[str, str]] = _COPY_CALL.findall(line)
    for match in _COPY_COMMAND.finditer(line):
        names = [name for word in match.group(1).split() if not (name := word.strip("\"'")).startswith("-")]
        pairs += [(name, names[-1]) for name in names[:-1]]
    for source, copy in pairs:
        yield source.removesuffix("*").removesuffix("/.").rstrip("/").removeprefix("./"), copy.rstrip("/.").removeprefix("./")


def _is_within(file: str, place: str) -> bool:
    return bool(place) and (file == place or file.startswith(f"{place}/"))


def _find_trace(evidence: Evidence, twin: str, since: list[EntryView]) -> tuple[EntryView, str] | None:
    """Return the line of a failing call that comes from the copied file."""
    named = re.compile(rf"(?<![\w.-]){re.escape(twin)}[\"']?(?:[:,(]|$)")
    for entry in reversed(since):
        for line in evidence.text(entry)[:_MOST_TEXT].split("\n") if evidence.has_failed(entry) else ():
            if named.search(line):
                return entry, line.strip()
    return None


def _find_user(
    evidence: Evidence, copy: str, line: str, shown: list[EntryView], since: list[EntryView]
) -> tuple[EntryView, str] | None:
    """Return the line of a setting, a script or the check that names a copy as the place to take files from."""
    given = re.compile(rf"([\w.-]{{1,40}})[\"']?\s{{0,4}}[=:]\s{{0,4}}[\[\"' ]{{0,4}}(?:\./)?{re.escape(copy)}(?:/|(?![\w.-]))")
    ran = ((entry, command_of(entry)) for entry in since)
    read = (
        (entry, each.strip())
        for entry in shown
        for each in strip_line_numbers(evidence.text(entry)[:_MOST_TEXT]).split("\n")
        if each != line and not _NO_SETTING.match(each.strip()) and not _RULE.match(each)
    )
    for entry, each in (*ran, *read):
        names = [match.group(1) for match in given.finditer(each)]
        if any(_TAKES.search(name) and not _WRITES.search(name) for name in names):
            return entry, each
    return None


def _name_renewal(evidence: Evidence, entry: EntryView, lines: list[str], place: int) -> str:
    """Return the command that runs a line of a file: the target of a makefile, a script, or else the line itself."""
    words = [word for part in split_command(command_of(entry)) for word in part[1:] if is_file_name(word)]
    files = [evidence.relative_path(path)] if (path := path_of(entry)) else words
    starts = [at for at, line in enumerate(lines) if line.startswith("#!")]
    if len(starts) == len(files) > 1:
        files = [files[sum(at <= place for at in starts) - 1]]
    name = files[0] if len(files) == 1 else ""
    if _file_name(name).casefold() in ("makefile", "justfile"):
        task = next((match.group(1) for line in reversed(lines[:place]) if (match := _TASK.match(line))), "")
        return f"{'make' if _file_name(name).casefold() == 'makefile' else 'just'} {task}" if task else lines[place].strip()
    if name.endswith(".json") and (match := _SCRIPT.search(lines[place])):
        return f"npm run {match.group(1)}"
    if name.endswith((".sh", ".bash")) and plain_name(name):
        return name if "/" in name else f"./{name}"
    return f"{program} {name}" if (program := _PROGRAMS.get(name.rpartition(".")[2])) else lines[place].strip()


_PROGRAMS = {"py": "python3", "js": "node", "mjs": "node", "cjs": "node", "rb": "ruby", "pl": "perl"}


def _may_renew(entry: EntryView, copy: str, how: str) -> bool:
    """Whether a call may have renewed a copy: it runs what renews it, or copies to that place itself."""
    command = command_of(entry)
    # A call that only shows the script does not run it.
    script = how.split()[-1]
    name = _file_name(script) if is_file_name(script) else how
    runs = name in command and vocabulary.classify(entry.action, "", command) != "query"
    return runs or any(_is_within(to, copy) for _, to in _list_copies(command))


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


_FORMS: tuple[Callable[[Evidence, str, list[EntryView], int], Iterator[_OtherFile]], ...] = (
    _find_source, _find_build_target, _find_loaded_copy, _find_copy, _find_second_setting, _find_overriding_file,
)  # fmt: skip
