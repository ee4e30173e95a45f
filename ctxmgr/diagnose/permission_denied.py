"""A call is denied although a permitted way was named, or because a file may not be executed."""

from __future__ import annotations

import re

from ctxmgr.diagnose.calls import called, command_of
from ctxmgr.diagnose.error_table import best_step
from ctxmgr.diagnose.evidence import Evidence, Message, clock, given
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.paths import asked_paths
from ctxmgr.diagnose.spoken import ALLOWS, is_forbidden, sentences
from ctxmgr.diagnose.texts import capital, code, plain_name, spaced, words_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "permissionDenied"

_DENIED = lazy_pattern(
    r"permission (?:was )?denied|\bEACCES\b|\bEPERM\b|operation not permitted|read-only file system|access (?:is )?denied"
    r"|not permitted|denied by|blocked by (?:policy|permission|the user|a hook)|not allowed to"
    r"|insufficient (?:permissions?|privileges)|must be (?:run as )?root|requires? (?:permission|approval)|haven't granted"
    r"|user (?:rejected|denied|declined)|doesn't want to proceed",
    re.IGNORECASE,
)
_EXECUTED = lazy_pattern(r"(?:^|[\s:])(\.{0,2}/?[\w./-]{1,120}): Permission denied$", re.MULTILINE)
_WAY = lazy_pattern(
    r"(?:[~.]?/?(?:[\w.-]{1,60}/){1,8}[\w.-]{0,60}|`[^`\n]{2,120}`|\b[\w-]{2,40}\.(?:sh|py|md|txt|json|ya?ml)\b|\bMakefile\b"
    r"|\bmake [\w-]{2,40}\b|\bbranch\b)"
)
_RUNNERS = {".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".rb": "ruby", ".pl": "perl"}


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return the permitted way that a person named."""
    for entry in evidence.refusals():
        said = evidence.text(entry)
        if entry.status != "denied" and not _DENIED.search(spaced(said)):
            continue
        if re.search(r"permission denied \(publickey|pull access denied|access denied for user", said, re.IGNORECASE):
            continue
        line = evidence.line(entry, _DENIED) or said.split("\n")[0]
        script = _script(evidence, entry, said)
        if script is not None:
            return script
        way = _way(evidence, entry)
        if way is not None:
            return _told(evidence, entry, line, way)
        noted = _noted(evidence, entry, line)
        if noted is not None:
            return noted
        if entry.status == "denied" or evidence.times(entry) > 1:
            return _nobody(evidence, entry, line)
    return None


def _start(evidence: Evidence, entry: EntryView, line: str) -> str:
    call = called(entry, 80)
    times = evidence.times(entry)
    said = words_of(_DENIED, line)
    where = next((path for path in asked_paths(entry)[::-1] if "/" in path and plain_name(path)), None)
    place = f" for {code(evidence.name(where), 80)}" if where and where not in call else ""
    return f"{call} is denied{place}{f', {times} times' if times > 1 else ''}{f': {said}' if said else ''}."


def _told(evidence: Evidence, entry: EntryView, line: str, way: tuple[Message, str]) -> Diagnosis:
    message, sentence = way
    cause = f"{_start(evidence, entry, line)} The user named what is permitted{clock(message.at)}: {code(sentence, 150)}."
    step = f"Do it the permitted way, in the user's words: {code(sentence, 150)}."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, line), evidence.quote_of(message, sentence),
        check="It must work without a denial. If it is denied too, ask the user and change nothing else.",
    )  # fmt: skip


def _nobody(evidence: Evidence, entry: EntryView, line: str) -> Diagnosis:
    known = best_step(KIND, evidence)
    if known is not None and entry.status != "denied":
        return known
    step = (
        "Stop trying forms of this call: ask the user whether it may be done, and say what it is for. Meanwhile do the parts of"
        " the task that need no such permission."
    )
    cause = f"{_start(evidence, entry, line)} Making the call again can't change that."
    return diagnosis(KIND, cause, step, evidence.quote(entry, line), confidence="medium")


_PERMITS = lazy_pattern(
    r"\b(?:may|can|put|drop|write|use|instead|everybody|everyone|anyone|allowed|permitted|should|go(?:es)?|only"
    r"|writable|belongs?|submit|place|store|save)\b",
    re.IGNORECASE,
)
_PLACE = lazy_pattern(r"(?<![\w/.-])((?:[~.]{0,2}/)?(?:[\w.@-]{1,60}/){1,8}[\w.@-]{0,60})(?![\w/])")
_LOOKED_AT = 200


def _noted(evidence: Evidence, entry: EntryView, line: str) -> Diagnosis | None:
    """Say which other place a note of the project names beside the one that is refused."""
    refused = [path.rstrip("/") for path in asked_paths(entry) if "/" in path]
    folders = {
        folder
        for path in refused
        for folder in (evidence.inside(path), evidence.inside(path).rpartition("/")[0])
        if "/" in folder or len(folder) > 4
    }
    if not folders:
        return None
    failed = "\n".join(given(each) for each in evidence.failing)
    for other in list(evidence.before(entry.index))[:_LOOKED_AT]:
        if other.status != "ok" or evidence.failed(other):
            continue
        for text in re.findall(r"[^\n]{8,600}", evidence.text(other)[:20_000]):
            if not any(folder in text for folder in folders) or not _PERMITS.search(text):
                continue
            places = [place.rstrip("/.") for place in _PLACE.findall(text)]
            place = next(
                (
                    each
                    for each in places
                    if plain_name(each)
                    and each not in failed
                    and not any(evidence.same_place(each, folder) or folder.startswith(f"{each}/") for folder in folders)
                ),
                None,
            )
            if place is None:
                continue
            source = evidence.source(other)
            refused_one = next(each for each in sorted(folders, key=len, reverse=True) if each in text)
            cause = f"{_start(evidence, entry, line)} {capital(source)} names another place beside it, {code(place, 80)}."
            step = (
                f"Look at what that note says of {code(place, 80)}; if it is the place for this, use it in place of "
                f"{code(refused_one, 80)}, without changing any rights. If you are not sure, ask the user."
            )
            return diagnosis(
                KIND, cause, step, evidence.quote(entry, line), evidence.quote(other, text),
                check="It must work without a denial, and with nobody's rights changed.",
            )  # fmt: skip
    return None


def _way(evidence: Evidence, entry: EntryView) -> tuple[Message, str] | None:
    """Return the newest sentence of a person that names a permitted place or command which this call does not use."""
    command = command_of(entry)
    for message, sentence in sentences(evidence):
        ways = [way.strip("`") for way in _WAY.findall(sentence)]
        if not ways or not ALLOWS.search(sentence) or is_forbidden(sentence, ways):
            continue
        if not any(way in command or way in str(entry.input)[:4_000] for way in ways):
            return message, sentence
    return None


def _script(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Say that a script lacks the right to be executed, where the shell says that of the very command it was given."""
    command = command_of(entry)
    match = _EXECUTED.search(said)
    path = match.group(1) if match else ""
    words = command.split()
    runner = next((program for ending, program in _RUNNERS.items() if path.endswith(ending)), None if "." in path[2:] else "sh")
    if not words or path != words[0] or runner is None or "/" not in path or not plain_name(path):
        return None
    cause = (
        f"{code(command, 90)} can't start: {code(path, 80)} has no right to be executed,"
        f" {words_of(_DENIED, evidence.line(entry, _DENIED))}."
    )
    step = f"Run {code(f'{runner} {command}', 140)}: it reads the file and needs no such right (`chmod +x` would give it)."
    return diagnosis(KIND, cause, step, evidence.quote(entry))
