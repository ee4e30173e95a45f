"""The same call worked before from another folder, or with an option or field that it lacks now. That is the cause."""

from __future__ import annotations

import itertools
import re

from ctxmgr.diagnose.evidence import CHECKS, Evidence, Message, call_input, call_key, clock, program_name
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, folder_of, last_command, split_command, tool_phrase
from ctxmgr.diagnose.evidence.texts import agent_name, code, plain_name, quote_match
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "workedElsewhere"

_ABSENT = lazy_pattern(
    r"not found|no such|unknown|does not exist|doesn't exist|ENOENT|invalid|cannot find|can't find|could not "
    r"(?:find|read|open|locate)|missing|no rule|no \w+ (?:with|for|matches)|404\b|not a git|is not in",
    re.IGNORECASE,
)
_NO_PLACE = lazy_pattern(r"ENOENT|no such file|no rule to make|not found|cannot find|could not|can't", re.IGNORECASE)
_ASSIGNED = lazy_pattern(r"^[A-Za-z_]\w*=")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what the last successful form of a failing call had, and the failing one lacks."""
    for entry in evidence.failing_calls:
        said = evidence.text(entry)[:6_000]
        # A single failure may be a slip, so there must be something to compare.
        if evidence.times(entry) < 2 and len(evidence.failing_calls) < 2:
            continue
        # A call that reached the wrong place, or none, may lack something that earlier calls had.
        if _OUTSIDE.search(said) and (way := _diagnose_settings(evidence, entry)) is not None:
            return way
        if not _ABSENT.search(said):
            continue
        if (found := _diagnose_command(evidence, entry)) is not None:
            return found
    return None


def _diagnose_command(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say from which folder the same command worked."""
    command = command_of(entry)
    last = last_command(command)
    if not last:
        return None
    for other in evidence.latest_before(entry.index):
        if not evidence.has_succeeded(other) or call_key(other) == call_key(entry) or last_command(command_of(other)) != last:
            continue
        there = folder_of(other)
        if there and not evidence.same_place(folder_of(entry) or ".", there) and plain_name(there):
            # A failing test does not fail for lack of its folder.
            if CHECKS.search(command) and not _NO_PLACE.search(evidence.text(entry)):
                return None
            return _explain_folder(evidence, entry, other, " ".join(last), evidence.name(there))
    return None


def _explain_folder(evidence: Evidence, entry: EntryView, other: EntryView, last: str, name: str) -> Diagnosis:
    cause = (
        f"{code(last, 80)} fails here, {evidence.times(entry)} times. It worked{clock(other.ts)} from another "
        f"folder, {code(name, 80)}: {code(command_of(other), 90)}."
    )
    step = f"Run it from {code(name, 80)} again, as it worked: {code(f'cd {name} && {last}', 140)}."
    who = "" if evidence.agent in (None, other.agent) else f" That was {agent_name(other.agent)}."
    return diagnosis(
        KIND, cause + who, step, evidence.quote(other, command_of(other)), evidence.quote(entry),
        check="It must end as it did then.",
    )  # fmt: skip


def _diagnose_settings(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say which option, variable or field every successful call of the program had, and no failing one has."""
    # A test runner's options change what is run, not whether it can run.
    if CHECKS.search(command_of(entry)):
        return None
    failing = [each for each in evidence.tail if evidence.has_failed(each) and _is_same_tool(each, entry)]
    first = min((each.index for each in failing), default=entry.index)
    worked = [each for each in evidence.entries_before(first) if evidence.has_succeeded(each) and _is_same_tool(each, entry)]
    lost = _find_lost_settings(evidence, entry, failing, worked)
    # Many differences prove nothing. One failure is too few to speak of all.
    if not lost or len(lost) > _MOST_LOST or len(failing) < _LEAST_CALLS:
        return None
    settings = " and ".join(code(_describe_setting(entry, *pair), 60) for pair in lost)
    having = [each for each in worked if set(lost) <= _list_settings(each)]
    last, often = having[0], f"{len(having)} times, last" if len(having) > 1 else "once,"
    what = program_name(entry) if command_of(entry) else tool_phrase(entry)
    cause = f"{code(what, 50)} fails {len(failing)} times, {quote_match(_OUTSIDE, evidence.text(entry))}. It worked"
    cause += f" {often}{clock(last.ts)}, with {settings}, which no failing call has."
    summary = next((each for each in evidence.messages if each.kind == "compaction" and (each.after or 0) >= last.index), None)
    # The summary lost the value, which explains why the calls lack it.
    if summary is not None and all(value not in summary.text for _, value in lost):
        cause += f" The summary of the compaction{clock(summary.at)} has lost it."
    message = _find_message(evidence, lost[0][1])
    if message is not None:
        cause += f" The user named it{clock(message.at)}."
    step = f"Make the call with {settings} again, as in {code(command_of(last), 110)}." if command_of(last) else (
        f"Make the call with {settings} again, as{clock(last.ts)}; keep the other arguments.")  # fmt: skip
    quotes = [] if message is None else [evidence.quote_message(message)]
    return diagnosis(
        KIND, cause, step, evidence.quote(last, command_of(last) or call_input(last)), evidence.quote(entry), *quotes,
        check="It must end as it did then.",
    )  # fmt: skip


def _find_lost_settings(
    evidence: Evidence, entry: EntryView, tried: list[EntryView], worked: list[EntryView]
) -> list[tuple[str, str]]:
    """Return name and value of the settings that the calls which worked share, and no failing one has, sorted.

    Args:
        evidence: the session.
        entry: the failing call.
        tried: the failing calls of its program since the last progress.
        worked: the successful ones before these, the newest first.
    """
    common: set[tuple[str, str]] = _list_settings(worked[0]) if worked else set()
    for each in worked[1:_MOST_COMPARED]:
        common &= _list_settings(each)
    failed = [each for each in evidence.recent if evidence.has_failed(each) and _is_same_tool(each, entry)]
    common -= {pair for each in failed for pair in _list_settings(each)}
    unnamed = {name for name, _ in common if any(name not in dict(_list_settings(each)) for each in tried)}

    def may_be_cause(name: str, value: str) -> bool:
        # An option counts as the cause if all successful calls had it, or if the user named it.
        by_calls = len(worked) >= _LEAST_CALLS and name in unnamed
        return by_calls or _find_message(evidence, value) is not None

    return sorted(
        (name, value)
        for name, value in common
        if _SETTING.fullmatch(name) and plain_name(value) and len(value) > 1 and may_be_cause(name, value)
    )


_OUTSIDE = lazy_pattern(
    r"(?i:connection refused|could not connect|can(?:no|')t connect|unreachable|no such host|not known|timed? ?out|denied"
    r"|unauthori[sz]ed|forbidden|read[- ]only|not found|no such|does not exist|doesn't exist|unknown|credential\w*"
    r"|not logged in|required|missing|not allowed|permission|no route|login|\b40[134]\b)"
)
"""Errors of a call that goes to the wrong place, or by the wrong way."""
_MOST_LOST, _LEAST_CALLS, _MOST_COMPARED = 2, 2, 4
"""Differences from which on none is the cause; failing or successful calls that make a rule; successful calls compared."""


def _find_message(evidence: Evidence, value: str) -> Message | None:
    """Return the message in which the user named a value."""
    word = re.compile(rf"(?<![\w.-]){re.escape(value)}(?![\w-])")
    return next((each for each in reversed(evidence.user_texts) if word.search(each.text)), None)


def _is_same_tool(one: EntryView, other: EntryView) -> bool:
    if bool(command_of(one)) != bool(command_of(other)) or one.agent != other.agent:
        return False
    return program_name(one) == program_name(other) if command_of(one) else one.action == other.action


def _list_settings(entry: EntryView) -> set[tuple[str, str]]:
    """Return the options with values and the variables of a command, or the plain fields of another call."""
    command = command_of(entry)
    if not command:
        plain = {name: value for name, value in fields_of(entry).items() if isinstance(value, str | int)}
        return {(name, str(value)) for name, value in plain.items() if len(str(value)) <= _LONGEST_VALUE}
    program = program_name(entry)
    found: set[tuple[str, str]] = {
        (name, value) for word in _list_assignments(command) for name, _, value in [word.partition("=")]
    }
    for words in split_command(command):
        if words[0].rpartition("/")[2] != program:
            continue
        for word, after in itertools.zip_longest(words[1:], words[2:], fillvalue=""):
            name, equals, value = word.partition("=")
            if _OPTION.fullmatch(name) and (value or (after and not equals and not after.startswith("-"))):
                found.add((name, value or after))
    return {(name, value) for name, value in found if 0 < len(value) <= _LONGEST_VALUE}


_OPTION = lazy_pattern(r"--?[A-Za-z][\w-]{0,30}")
_SETTING = lazy_pattern(
    r"-[CDFHJPRSUcdfhiknpsu]|(?i:.*(?:namespace|context|profile|region|zone|host|port|user|config|project|repo|account|cluster"
    r"|env|workspace|server|url|endpoint|token|key|identity|tenant|realm|database|db|socket|cert|ca|proxy|schema|folder|dir"
    r"|directory|path|file|home|root|site|org|organi[sz]ation|team|group|role|subscription|bucket|branch|locale|lang|version"
    r"|instance|warehouse|catalog|company|client|mandant|scope|space|store|shop|vault|registry|remote|settings|mode).*)"
)
"""Options, variables and fields for the place or the identity of a call, not for its action."""


def _describe_setting(entry: EntryView, name: str, value: str) -> str:
    return f"{name} {value}" if name.startswith("-") or not command_of(entry) else f"{name}={value}"


def _list_assignments(command: str) -> list[str]:
    return [word for word in re.split(r"[\s;&|]+", command)[:20] if _ASSIGNED.match(word)]


_LONGEST_VALUE = 60
"""Characters of a value that is compared."""
