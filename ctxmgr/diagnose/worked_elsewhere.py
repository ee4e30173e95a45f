"""The same call worked before, from another folder, with another value, or for another agent: what differs is the cause."""

from __future__ import annotations

import json
import re

from ctxmgr.diagnose.calls import command_of, fields_of, parts_of, tool
from ctxmgr.diagnose.counterparts import likeness
from ctxmgr.diagnose.evidence import CHECKS, Evidence, call_key, clock
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import clean, code, plain_name
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "workedElsewhere"

_FOLDER_FIELDS = ("workdir", "cwd", "working_directory", "directory")
_LOOKED_AT = 300
_ABSENT = lazy_pattern(
    r"not found|no such|unknown|does not exist|doesn't exist|ENOENT|invalid|cannot find|can't find|could not "
    r"(?:find|read|open|locate)|missing|no \w+ (?:with|for|matches)|404\b|not a git|is not in",
    re.IGNORECASE,
)
_ASSIGNED = lazy_pattern(r"^[A-Za-z_]\w*=")


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return what the last successful form of a failing call had that the failing one lacks."""
    for entry in evidence.failing:
        said = evidence.text(entry)[:6_000]
        if evidence.times(entry) < 2 and len(evidence.failing) < 2:
            continue
        if not _ABSENT.search(said):
            continue
        found = _command(evidence, entry) if command_of(entry) else _value(evidence, entry) or _named(evidence, entry)
        if found is not None:
            return found
    return None


def _command(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say from which folder, or with which variables, the same command worked."""
    command = command_of(entry)
    last = _last(command)
    if not last:
        return None
    for other in list(evidence.before(entry.index))[:_LOOKED_AT]:
        if (
            other.status != "ok"
            or evidence.failed(other)
            or call_key(other) == call_key(entry)
            or _last(command_of(other)) != last
        ):
            continue
        here, there = _folder(entry), _folder(other)
        assigned = [word for word in _assignments(command_of(other)) if word not in command]
        if there and not evidence.same_place(here or ".", there) and plain_name(there):
            if CHECKS.search(command) and not re.search(
                r"ENOENT|no such file|not found|cannot find|could not|can't", evidence.text(entry), re.IGNORECASE
            ):
                return None
            name = evidence.name(there)
            cause = (
                f"{code(last, 80)} fails here, {evidence.times(entry)} times. It worked{clock(other.ts)} from another "
                f"folder, {code(name, 80)}: {code(command_of(other), 90)}."
            )
            step = f"Run it from {code(name, 80)} again, as it worked: {code(f'cd {name} && {last}', 140)}."
        elif assigned and all(plain_name(each) for each in assigned):
            cause = (
                f"{code(last, 80)} fails, {evidence.times(entry)} times. It worked{clock(other.ts)} with "
                f"{' '.join(code(each, 50) for each in assigned[:3])}, which the failing call lacks."
            )
            step = f"Run it as it worked: {code(command_of(other), 160)}."
        else:
            continue
        who = "" if evidence.agent in (None, other.agent) else f" That was {clean(other.agent)[:40]}."
        return diagnosis(
            KIND, cause + who, step, evidence.quote(other, command_of(other)), evidence.quote(entry),
            check="It must end as it did then.",
        )  # fmt: skip
    return None


def _last(command: str) -> str:
    parts = [words for words in parts_of(command) if words[0] != "cd"]
    return " ".join(parts[-1]) if parts else ""


def _folder(entry: EntryView) -> str:
    """Return the folder that a call names for itself, or ""."""
    moved = [words[1] for words in parts_of(command_of(entry)) if words[0] == "cd" and len(words) > 1]
    fields = fields_of(entry)
    return moved[-1] if moved else next((str(fields[name]) for name in _FOLDER_FIELDS if isinstance(fields.get(name), str)), "")


def _assignments(command: str) -> list[str]:
    return [word for word in re.split(r"[\s;&|]+", command)[:20] if _ASSIGNED.match(word)]


def _value(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say which value differs from the last call that worked, where a person named it or it is nearly the same."""
    fields = fields_of(entry)
    for other in list(evidence.before(entry.index))[:_LOOKED_AT]:
        theirs = fields_of(other)
        if other.action != entry.action or other.status != "ok" or evidence.failed(other) or set(theirs) != set(fields):
            continue
        changed = [name for name in fields if fields[name] != theirs[name]]
        if len(changed) != 1 or not isinstance(fields[changed[0]], str) or not isinstance(theirs[changed[0]], str):
            continue
        name, now, then = changed[0], str(fields[changed[0]])[:120], str(theirs[changed[0]])[:120]
        if (
            evidence.by_user(now)
            or not (evidence.by_user(then) or _alike(now, then))
            or not plain_name(then)
            or then in json.dumps([fields_of(each) for each in evidence.failing])
        ):
            continue
        cause = (
            f"The {tool(entry)} call fails, {evidence.times(entry)} times, with {code(name, 40)} {code(now, 60)}. It "
            f"worked{clock(other.ts)} with "
            f"{code(then, 60)}{', which the user named' if evidence.by_user(then) else ''}; nobody has named "
            f"{code(now, 60)}."
        )
        return diagnosis(
            KIND, cause, f"Make the call with {code(name, 40)} set "
                f"to {code(then, 60)}.", evidence.quote(other), evidence.quote(entry),
            check="The answer must be about the one that the task names.",
        )  # fmt: skip
    return None


_VALUE = lazy_pattern(r"[\w@][\w.@/:+-]{2,60}\w")


def _named(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say which value a person gave that is nearly, but not quite, what the call uses."""
    fields = {
        name: str(value)
        for name, value in fields_of(entry).items()
        if isinstance(value, str | int)
        and not isinstance(value, bool)
        and 3 < len(str(value)) < _LONGEST
        and any(map(str.isdigit, str(value)))
    }
    used = json.dumps([fields_of(each) for each in evidence.failing], ensure_ascii=False)
    for message in reversed(evidence.user_texts):
        for word in dict.fromkeys(_VALUE.findall(message.text[:8_000])):
            for name, value in fields.items():
                near = (
                    any(letter.isdigit() for letter in word)
                    and len(word) == len(value)
                    and sum(a != b for a, b in zip(word, value, strict=True)) in (1, 2)
                )
                if (
                    word in used
                    or evidence.by_user(value)
                    or not (near or likeness(value, word) >= _NEAR)
                    or not plain_name(word)
                ):
                    continue
                cause = (
                    f"The {tool(entry)} call fails, {evidence.times(entry)} times, with {code(name, 40)} "
                    f"{code(value, 60)}. The user said{clock(message.at)} {code(word, 60)}, which no call has used."
                )
                return diagnosis(
                    KIND, cause, f"Make the call with {code(name, 40)} set "
                        f"to {code(word, 60)}, as the user said.", evidence.quote_of(message), evidence.quote(entry),
                    check="The answer must be about the one that the task names.",
                )  # fmt: skip
    return None


_LONGEST, _NEAR = 60, 0.85


def _alike(one: str, other: str) -> bool:
    return len(one) == len(other) and sorted(one.casefold()) == sorted(other.casefold())
