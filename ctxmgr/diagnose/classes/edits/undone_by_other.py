"""Two agents, or two tools, write one file by turns, each undoing the other's work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from ctxmgr.diagnose.classes.edits.overwritten import diagnose_inverse_replacements, diagnose_lost_write
from ctxmgr.diagnose.evidence import Evidence, clock
from ctxmgr.diagnose.evidence.calls import command_of, edited_paths, fields_of, list_changes, split_command, tool_phrase
from ctxmgr.diagnose.evidence.texts import agent_name, code, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "undoneByOther"

_WRITES = lazy_pattern(
    r"--write\b|--fix\b|\bformat\b|\bfmt\b|-i\b|\bblack\b|\bisort\b|\bgit (?:checkout|restore|reset|revert|stash)\b|>\s*\S"
    r"|\bcp\b|\bmv\b|\btee\b"
)
_SETS = lazy_pattern(r"checkout|switch|use|use-context|select|set(?:-\w+)?|config|scale|activate|default|link|alternatives|tag")
_STATE = lazy_pattern(
    r"(?:^|_|[a-z](?=[A-Z]))(?:status|state|assignee|owner|branch|context|mode|enabled|priority|value|label|replicas|version"
    r"|environment|title|phase)$",
    re.IGNORECASE,
)
"""Words of a command, or fields of a tool, that set a state."""
_LAST_ENTRIES, _LAST_WRITES, _LEAST_TURNS, _MOST_WORDS = 40, 4, 3, 8
"""Newest entries that are read, last writes of a file by only two agents, changes of hands, words or fields of a call."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return which file changes hands, and between whom."""
    writers: dict[str, list[tuple[str, EntryView]]] = {}
    for entry in evidence.recent[-_LAST_ENTRIES:]:
        if entry.status == "ok":
            for path in _list_written_files(entry):
                writers.setdefault(evidence.relative_path(path), []).append((entry.agent, entry))
    for path, writes in sorted(writers.items(), key=lambda each: -each[1][-1][1].index):
        turns = [(one, two) for one, two in pairwise(writes) if one[0] != two[0]]
        agents = {who for who, _ in writes[-_LAST_WRITES:]}
        # One hand-over of a file is teamwork. It is a conflict only if most writes alternate between two agents.
        if len(turns) >= _LEAST_TURNS and len(agents) == 2 and len(turns) * 2 > len(writes) and plain_name(path):
            return _explain_turns(evidence, path, writes, len(turns))
    return (
        _diagnose_switched_state(evidence)
        or diagnose_inverse_replacements(KIND, evidence)
        or diagnose_lost_write(KIND, evidence)
    )


def _diagnose_switched_state(evidence: Evidence) -> Diagnosis | None:
    """Return which state two agents set by turns, each to its own value: a branch, a context, a field."""
    settings: dict[tuple[str, ...], list[tuple[str, str, str, EntryView]]] = {}
    for entry in evidence.recent[-_LAST_ENTRIES:]:
        # A failed command sets no state.
        if evidence.has_succeeded(entry):
            for slot, value, shown in _list_settings(entry):
                settings.setdefault(slot, []).append((entry.agent, value, shown, entry))
    for sets in settings.values():
        turns = [(one, two) for one, two in pairwise(sets) if one[0] != two[0] and one[1] != two[1]]
        # A state with more than two values moves on, like that of a ticket.
        if len(turns) >= _LEAST_TURNS and len({who for who, *_ in sets}) == 2 and len({value for _, value, *_ in sets}) == 2:
            return _explain_switched_state(evidence, *turns[-1], len(turns))
    return None


def _list_settings(entry: EntryView) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Yield what a call sets: the call without one of its values, that value, and the call in words for a reader."""
    for words in split_command(command_of(entry)):
        plain = [word for word in words if not word.startswith("-")]
        # The last word is the value, so there must be a program, a verb and a value.
        if 3 <= len(plain) <= _MOST_WORDS and any(_SETS.fullmatch(word) for word in plain[1:-1]):
            yield ("$", *plain[:-1]), plain[-1], code(" ".join(plain), 60)
    fields = {name: str(value)[:100] for name, value in fields_of(entry).items()} if not command_of(entry) else {}
    # A single field does not show what is set.
    for name, value in fields.items() if 2 <= len(fields) <= _MOST_WORDS else ():
        if not _STATE.search(name):
            continue
        rest = sorted(f"{other}={said}" for other, said in fields.items() if other != name)
        yield (entry.action, name, *rest), value, f"{tool_phrase(entry)} with {code(name, 30)} {code(value, 40)}"


def _explain_switched_state(
    evidence: Evidence, one: tuple[str, str, str, EntryView], two: tuple[str, str, str, EntryView], turns: int
) -> Diagnosis:
    first, second = (name if plain_name(name := agent_name(who)) else "another agent" for who in (one[0], two[0]))
    cause = (
        f"{first} and {second} set one shared state by turns, {turns} times, and each takes away what the other set: {first}'s "
        f"{one[2]}{clock(one[3].ts)}, then {second}'s {two[2]}{clock(two[3].ts)}."
    )
    step = (
        f"Do not set it once more. Give {first} and {second} each its own place (a separate clone or `git worktree`, its own "
        "context, session or record), or let one of them be done first; ask the user where only one value can count."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(one[3]), evidence.quote(two[3]), check="What one has set must stay as it is.",
        confidence="medium",
    )  # fmt: skip


def _list_written_files(entry: EntryView) -> list[str]:
    edited = edited_paths(entry)
    # A command that writes nothing may name files that it reads.
    if edited or not _WRITES.search(command_of(entry)):
        return edited
    words = (word for part in split_command(command_of(entry)) for word in part[1:])
    # However often a command names a file, it is one turn.
    return list(dict.fromkeys(word for word in words if re.fullmatch(r"[\w./@+-]{1,160}\.\w{1,8}", word)))


def _explain_turns(evidence: Evidence, path: str, writes: list[tuple[str, EntryView]], turns: int) -> Diagnosis:
    (one, first), (two, second) = next(pair for pair in reversed(list(pairwise(writes))) if pair[0][0] != pair[1][0])
    names = [name if plain_name(name := agent_name(who)) else "another agent" for who in (one, two)]
    values = [code(changes[-1].new, 60) if (changes := list_changes(entry)) else "" for entry in (first, second)]
    to = [f" to {value}" if value else "" for value in values]
    cause = (
        f"{names[0]} and {names[1]} change {code(path, 80)} by turns, {turns} times, and each undoes what the other did: last"
        f" {names[0]}{to[0]}{clock(first.ts)}, then {names[1]}{to[1]}{clock(second.ts)}. They follow different rules for the "
        "same file."
    )
    step = (
        f"Stop changing {code(path, 80)}. Let {names[0]} and {names[1]} agree on one rule for it (one configuration, or "
        "one of them alone"
        " writes that file); where the task gives both rules, ask the user which one counts. Then change it once."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(first), evidence.quote(second),
        check=f"{code(path, 60)} must stay as it is after that.",
    )  # fmt: skip
