"""An edit that worked is gone after a check ran, because the check first runs something that writes the file anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.evidence.calls import (
    call_key,
    call_phrase,
    command_of,
    edited_paths,
    list_changes,
    same_file,
    split_command,
    written_content,
)
from ctxmgr.diagnose.evidence.files import REWRITES
from ctxmgr.diagnose.evidence.manifests import Step, list_steps
from ctxmgr.diagnose.evidence.texts import clock, code, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_LAST_ENTRIES, _LEAST_WRITTEN, _MOST_SOURCES = 40, 4, 3
"""Newest entries that are read, letters of a line that is not there by chance, files that are named as a source."""
_READS = frozenset(("query", "poll", "sleep"))
_PATTERN = lazy_pattern(r"[\w.-]{3,80}")
_SCRIPT = lazy_pattern(
    r"(?<![\w./-])((?:\./)?(?:[\w.-]{1,60}/){0,6}[\w-][\w.-]{0,60}\.(?:py|js|mjs|cjs|ts|rb|pl|sh|php|R|go|jl))(?![\w/-])"
)
_MAKES = lazy_pattern(
    r"\b(?:\w*gen(?:erate\w*|erator|code)?|codegen|protoc|render\w*|build\w*|template\w*|j2|make_\w+|mk\w+|export\w*|sync\w*|update\w*)\b",
    re.IGNORECASE,
)
_TESTS = lazy_pattern(
    r"\b(?:pytest|unittest|jest|vitest|mocha|rspec|phpunit|tox|nox|go test|cargo test|lint|eslint|mypy|compileall)\b"
)
# Formatters and fixers change lines of any file, and take some away
_FIXES = lazy_pattern(
    r"--(?:fix|write|in-place)\b|\b(?:ruff|black|isort|prettier|eslint|autoflake|gofmt|goimports|pre-commit|fmt|format)\b"
)
_DATA = lazy_pattern(
    r"(?<![\w./-])((?:[\w.-]{1,60}/){0,8}[\w-][\w.-]{0,60}\.(?:ya?ml|json|csv|tsv|toml|xml|tmpl|tpl|j2|in|proto|idl|avsc|graphql))(?![\w/-])"
)
_NO_FILE = lazy_pattern(r"\bno such\b|\bdenied\b|\bis a directory\b|\bos error\b", re.IGNORECASE)
_SETTINGS = lazy_pattern(
    r"(?:^|/)(?:\.|package|tsconfig|pyproject|cargo|composer|poetry|docker-?compose|compose|mkdocs|renovate|setup|tests?/|fixtures/|node_modules/)",
    re.IGNORECASE,
)
_LISTS = ("ls", "find", "tree", "git", "rg", "fd")


class _Vanished(NamedTuple):
    """An edit, the call that took it away, the look that does not find it, and what it does not find."""

    edit: EntryView
    check: EntryView
    look: EntryView
    line: str


def diagnose_vanished_edit(evidence: Evidence, kind: str) -> Diagnosis | None:
    """Return which call takes an edit away again, with what it runs by the manifest."""
    for look in reversed(evidence.recent[-_LAST_ENTRIES:]):
        found = next(_list_vanished(evidence, look), None)
        if found is not None:
            return _explain(evidence, kind, found)
    return None


def _list_vanished(evidence: Evidence, look: EntryView) -> Iterator[_Vanished]:
    for edit in reversed([each for each in evidence.edits if each.index < look.index]):
        for path in edited_paths(edit)[:1]:
            line = _find_missing(evidence, look, edit, path)
            check = _find_check(evidence, edit, look, path) if line else None
            if line and check is not None:
                yield _Vanished(edit, check, look, line)
        # An older edit says nothing that the newest one does not.
        if edited_paths(edit) and _shows(look, edited_paths(edit)[0]):
            return


def _shows(look: EntryView, path: str) -> bool:
    words = [word for part in split_command(command_of(look)) for word in part[1:]]
    return any(same_file(word, path) for word in words)


def _find_missing(evidence: Evidence, look: EntryView, edit: EntryView, path: str) -> str:
    """Return what an edit wrote into a file and a later look does not find there; "" if it finds it, or does not look."""
    wrote = _list_written_lines(edit)
    parts = split_command(command_of(look))
    if len(parts) == 1 and parts[0][0] in ("grep", "egrep", "fgrep", "rg") and "-v" not in parts[0]:
        words = [word for word in parts[0][1:] if not word.startswith("-")]
        said = look.output.strip() if isinstance(look.output, str) else ""
        # Only the file itself is searched, for a plain word, and it is there.
        if _NO_FILE.search(evidence.text(look)):
            return ""
        if len(words) == 2 and same_file(words[1], path) and _PATTERN.fullmatch(words[0]) and said in ("", "0"):
            return words[0] if any(words[0] in line for line in wrote) else ""
        return ""
    known = evidence.last_content(path, look.index + 1)
    if known is None or known.entry.index != look.index or edited_paths(look) or not known.whole:
        return ""
    # A formatter changes blanks, quotes and breaks of a line, and leaves its words.
    have = _letters(known.text)
    lost = [line for line in wrote if len(_letters(line)) >= _LEAST_WRITTEN and _letters(line) not in have]
    return lost[0] if lost and (len(lost) == len(wrote) or written_content(edit) is not None) else ""


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text)


def _list_written_lines(edit: EntryView) -> list[str]:
    """Return the lines that an edit adds."""
    content = written_content(edit)
    pairs = [("", content)] if content is not None else [(each.old, each.new) for each in list_changes(edit)]
    return [
        line.strip() for old, new in pairs for line in new.split("\n")[:400] if line.strip() and line.strip() not in old
    ]  # fmt: skip


def _find_check(evidence: Evidence, edit: EntryView, look: EntryView, path: str) -> EntryView | None:
    """Return the one call between an edit and a look that may have written the file, whatever it is meant for."""
    between = [each for each in evidence.recent if edit.index < each.index < look.index]
    if any(same_file(one, path) for each in between for one in edited_paths(each)):
        return None
    runs = [each for each in between if _runs_something(each)]
    checks = {call_key(each): each for each in runs}
    # What takes back or formats files has its own reasons, and an open call has not ended.
    if len(checks) != 1 or any(REWRITES.search(command_of(each)) or _FIXES.search(command_of(each)) for each in runs):
        return None
    check = runs[-1]
    writes = path.rpartition("/")[2] in command_of(check)
    steps = list_steps(evidence, command_of(check), look.index)
    return None if writes or check.status == "open" or any(_FIXES.search(step.line) for step in steps) else check


def _runs_something(entry: EntryView) -> bool:
    command = command_of(entry)
    if not command:
        return not edited_paths(entry) and vocabulary.classify(entry.action, "", "") == "mutation"
    return any(vocabulary.classify("", "", " ".join(words)) not in _READS for words in split_command(command))


def _explain(evidence: Evidence, kind: str, found: _Vanished) -> Diagnosis | None:
    path = edited_paths(found.edit)[0]
    name, check = code(evidence.name(path), 80), found.check
    cause = (
        f"{call_phrase(check, 80)} takes your change of {name} away: your edit{clock(found.edit.ts)} put "
        f"{code(found.line, 60)} there, and after that call {evidence.source(found.look)} does not find it."
    )
    if not evidence.is_own(found.edit):
        cause = cause.replace("your change", "the change").replace("your edit", "the edit")
    quotes = [evidence.quote(found.edit), evidence.quote(found.look)]
    steps = list_steps(evidence, command_of(check), found.look.index)
    maker = _find_maker(evidence, steps, path)
    if maker is None:
        # An editing tool that works in another place than the shell would leave the same trace.
        if not _was_seen(evidence, found, path):
            return None
        step = (
            f"Look at what {code(command_of(check) or check.action, 60)} runs before its own work (its target, script or hook) "
            f"for what writes {name}, and make the change in what that reads; do not edit {name} once more."
        )
        return diagnosis(kind, cause, step, *quotes, check=_CHECK, confidence="medium")
    manifest = evidence.last_content(maker.manifest, found.look.index)
    if manifest is not None:
        target, asked = code(maker.name, 40), command_of(check).split()[-1]
        needs = "its target" if maker.name == asked else "it first runs"
        cause += f" By {evidence.source(manifest.entry)} {needs} {target}, which runs {code(maker.line, 80)}."
        quotes.insert(0, evidence.quote(manifest.entry, manifest.text[:600]))
    return diagnosis(kind, cause, _describe_step(evidence, found, maker, name), *quotes, check=_CHECK, confidence="medium")


def _was_seen(evidence: Evidence, found: _Vanished, path: str) -> bool:
    """Whether a look at the file showed what was written, after an edit and before any other call, by the look's own tool."""
    seen = False
    for entry in evidence.recent:
        if any(same_file(each, path) for each in edited_paths(entry)):
            seen = True
        elif _runs_something(entry):
            seen = False
        elif seen and entry.action == found.look.action and found.line in evidence.text(entry):
            return True
    return False


_CHECK = "After it, the file must still have the new text, and the check must see it."


def _find_maker(evidence: Evidence, steps: list[Step], path: str) -> Step | None:
    """Return the step that most likely writes a file: it or its script names the file, or it is named like one that makes."""
    name = path.rpartition("/")[2]
    rest = [step for step in steps if not _TESTS.search(step.line)]
    naming = [step for step in rest if name in step.line or name in _script_text(evidence, step)]
    making = [step for step in rest if _MAKES.search(f"{step.name} {step.line}".replace("_", " ").replace("/", " "))]
    alone = [step for step in rest if _SCRIPT.search(step.line)]
    return next(iter([*naming, *making, *(alone if len(alone) == 1 else [])]), None)


def _script_text(evidence: Evidence, step: Step) -> str:
    script = _SCRIPT.search(step.line)
    known = evidence.last_content(script.group(1)) if script else None
    return known.text if known is not None else ""


def _describe_step(evidence: Evidence, found: _Vanished, maker: Step, name: str) -> str:
    """Return the step that leads from what makes a file to what it is made from."""
    script = _SCRIPT.search(maker.line)
    run = code(command_of(found.check), 60)
    if script is None or not plain_name(script.group(1)):
        return f"Make the change in what {code(maker.line, 80)} reads, not in {name} that it writes; then run {run} once."
    shown, text = code(script.group(1), 80), _script_text(evidence, maker)
    sources = [each for each in dict.fromkeys(_DATA.findall(text)) if plain_name(each) and not _is_edited(each, found.edit)]
    if sources:
        return (
            f"Make the change in what {shown} reads ({join_names(sources, _MOST_SOURCES)}), not in {name}; then run {run} once."
        )
    listed, other = _find_data_file(evidence, found)
    perhaps = f" (perhaps {code(listed, 80)}, which {evidence.source(other)} lists)" if other is not None else ""
    return (
        f"Read {shown}: it shows what {name} is made from{perhaps}. Make the change there, not in {name}; then run {run} once."
    )


def _is_edited(path: str, edit: EntryView) -> bool:
    """Whether a path may be the edited file."""
    return any(same_file(path, each) for each in edited_paths(edit))


def _find_data_file(evidence: Evidence, found: _Vanished) -> tuple[str, EntryView | None]:
    """Return the only file of data that a listing of the project has, and that listing."""
    for entry in evidence.entries_before(found.look.index):
        if not evidence.has_succeeded(entry) or not any(part[0] in _LISTS for part in split_command(command_of(entry))):
            continue
        names = [
            line.strip() for line in evidence.text(entry).split("\n")
            if _DATA.fullmatch(line.strip()) and not _SETTINGS.search(line.strip()) and not _is_edited(line.strip(), found.edit)
        ]  # fmt: skip
        if len(names) == 1 and plain_name(names[0]):
            return names[0], entry
    return "", None
