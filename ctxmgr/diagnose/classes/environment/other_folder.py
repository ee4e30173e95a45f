"""A program runs in a folder without its manifest, or with another one. The record shows the right folder."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ctxmgr.diagnose.errors.table import read_table
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import command_of, folder_of, path_of
from ctxmgr.diagnose.evidence.texts import capital, code, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "otherFolder"


class _ManifestNeed(NamedTuple):
    """What a program says if it does not find its manifest, and the name of the manifest."""

    program: str
    said: str
    name: str
    called: str


@cache
def _load_manifest_needs() -> tuple[_ManifestNeed, ...]:
    return tuple(_ManifestNeed(**row) for row in read_table("manifest"))


_PATH = r"(?<![\w./-])((?:/|\.{{1,2}}/|~/)?(?:[\w.@+-]{{1,60}}/){{1,10}}){name}(?![\w/-])"
_MOVED = lazy_pattern(r"^\s*cd\s+([\w./~@+-]{1,160})\s*$")
_FOREIGN = ("node_modules", "site-packages", "vendor", ".git", "target", "dist", "build", ".terraform", ".venv")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the folder in which the call must be made."""
    for entry in evidence.failing_calls:
        command = command_of(entry)
        said = evidence.text(entry)[:8_000]
        for need in _load_manifest_needs() if command else ():
            if re.search(need.program, command) and re.search(need.said, said, re.IGNORECASE):
                found = _find_manifest_folder(evidence, entry, need)
                if found is not None:
                    return _explain_folder(evidence, entry, need, *found)
    return None


def _find_current_folder(evidence: Evidence, entry: EntryView) -> str:
    """Return the folder in which a call runs, as far as the call itself names it."""
    return evidence.relative_path(folder_of(entry).rstrip("/"))


def _find_manifest_folder(evidence: Evidence, entry: EntryView, need: _ManifestNeed) -> tuple[str, EntryView, bool] | None:
    """Return the folder with the manifest, the call that shows it, and whether a `cd` of an earlier call went there."""
    path = re.compile(_PATH.format(name=need.name))
    here = _find_current_folder(evidence, entry)
    tried_folders = {_find_current_folder(evidence, each) for each in evidence.failing_calls}
    lacking = "\n".join(evidence.text(each)[:8_000] for each in evidence.failing_calls)
    tried_folders |= {evidence.relative_path(match.group(1).rstrip("/")) for match in path.finditer(lacking)}
    task = " ".join(message.text for message in evidence.user_texts).casefold()
    found: dict[str, EntryView] = {}
    moved: dict[str, EntryView] = {}
    for other in evidence.latest_before(entry.index):
        if other.status != "ok":
            continue
        alone = _MOVED.match(command_of(other))
        if alone:
            moved.setdefault(evidence.relative_path(alone.group(1).rstrip("/")), other)
        text = f"{path_of(other) or ''}\n{call_input(other)[:2_000]}\n{evidence.text(other)[:12_000]}"
        for match in path.finditer(text):
            folder = evidence.relative_path(match.group(1).rstrip("/"))
            if (
                folder
                and folder not in (here, ".", evidence.folder)
                and folder not in tried_folders
                and not set(folder.split("/")) & set(_FOREIGN)
                and plain_name(folder)
            ):
                found.setdefault(folder, other)
    # An earlier call went there, so the folder is known, and only its `cd` has not lasted.
    both = [folder for folder in found if folder in moved] or [
        folder for folder in moved if folder and folder not in tried_folders
    ]
    if both:
        return both[0], moved[both[0]], True
    # If several folders have a manifest, the words of the task decide.
    named = [folder for folder in found if any(len(part) > 2 and part.casefold() in task for part in folder.split("/"))]
    # If the folder has such a file itself, only a word of the task can point to another one.
    if named or (len(found) == 1 and not _has_own_manifest(evidence, need, here)):
        folder = named[0] if named else next(iter(found))
        return folder, found[folder], False
    return None


def _has_own_manifest(evidence: Evidence, need: _ManifestNeed, here: str) -> bool:
    root = re.escape(f"{here}/") if here else "" if evidence.folder else r"(?:/.*/)?"
    own = re.compile(rf"{root}{need.name}")
    return any(
        own.fullmatch(evidence.relative_path(path))
        for entry in evidence.recent
        if entry.status == "ok" and (path := path_of(entry))
    )


def _explain_folder(
    evidence: Evidence, entry: EntryView, need: _ManifestNeed, folder: str, other: EntryView, moved: bool
) -> Diagnosis:
    command = command_of(entry)
    here = _find_current_folder(evidence, entry)
    where = code(here, 60) if here and plain_name(here) else "the root folder of the project"
    source = evidence.source(other)
    cause = (
        f"{evidence.describe_failure(entry, 90)}: it runs in {where}, and the {code(need.called, 40)} that is meant is in"
        " another folder. "
    )
    if moved:
        cause += f"The `cd {folder}` of an earlier call does not last: each call starts in its own folder again."
    else:
        cause += f"{capital(source)} shows one in {code(folder, 80)}."
    last = " && ".join(part.strip() for part in command.split("&&") if not part.strip().startswith("cd "))
    step = f"Change the folder in the same call: {code(f'cd {folder} && {last}', 150)}."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), evidence.quote(other),
        check="It must start its work there instead of missing it.",
    )  # fmt: skip
