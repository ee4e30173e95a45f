"""A call is denied although a permitted way was named, or because a file is not executable."""

from __future__ import annotations

import re

from ctxmgr.diagnose.errors.lines import quotable_lines
from ctxmgr.diagnose.errors.table import any_known_error, known_error
from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of
from ctxmgr.diagnose.evidence.files import asked_paths
from ctxmgr.diagnose.evidence.messages import ALLOWS, is_forbidden, split_sentences, user_sentences
from ctxmgr.diagnose.evidence.texts import (
    ORDERS,
    blanks_for_underscores,
    capital,
    clean,
    code,
    contains_word,
    how_often,
    join_names,
    plain_name,
    quote_match,
)
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.notes import find_way_in_note
from ctxmgr.diagnose.related.related_lines import find_names
from ctxmgr.text.patterns import lazy_pattern
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
# A script that is not executable: `bash: ./deploy.sh: Permission denied`
_EXECUTED = lazy_pattern(r"(?:^|[\s:])(\.{0,2}/?[\w./-]{1,120}): Permission denied$", re.MULTILINE)
_WAY = lazy_pattern(
    r"(?:[~.]?/?(?:[\w.-]{1,60}/){1,8}[\w.-]{0,60}|`[^`\n]{2,120}`|\b[\w-]{2,40}\.(?:sh|py|md|txt|json|ya?ml)\b|\bMakefile\b"
    r"|\bmake [\w-]{2,40}\b|\bbranch\b|(?<!\w)'[\w.-]{3,40}'(?!\w)|\"[\w.-]{3,40}\")"
)
_OF_KIND = lazy_pattern(
    r"\b(?:role|account|profile|user|group|host|queue|project|workspace|remote|proxy)"
    r" ([a-z][\w.@]*[-_.@\d][\w.@-]{1,40})(?<![.,])"
)
_QUALIFIED = lazy_pattern(r"(?<![\w./-])[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,3}(?![\w./(])")
_RUNNERS = {".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".rb": "ruby", ".pl": "perl"}


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the permitted way that a person named."""
    for entry in evidence.refusals():
        said = evidence.text(entry)
        closed = _CLOSED.search(said) is not None
        if entry.status != "denied" and not closed and not _DENIED.search(blanks_for_underscores(said)):
            policy = evidence.line(entry, _BY_POLICY)
            found = _diagnose_other_way(evidence, entry, policy) if policy else None
            if found is not None:
                return found
            continue
        # authentication_refused handles refused logins.
        if re.search(r"permission denied \(publickey|pull access denied|access denied for user", said, re.IGNORECASE):
            continue
        line = evidence.line(entry, _DENIED) or evidence.line(entry, _CLOSED) or said.split("\n")[0]
        script = _diagnose_script(evidence, entry, said)
        if script is not None:
            # With several failing forms, chmod was probably tried, and a note knows more.
            return _diagnose_note(evidence, entry, line) or script if len(evidence.failing_calls) > 1 else script
        way = _find_permitted_way(evidence, entry)
        if way is not None:
            return _explain_permitted_way(evidence, entry, line, way)
        if (noted := _diagnose_other_way(evidence, entry, line)) is not None:
            return noted
        # A single refusal may belong to a search that goes on.
        if entry.status == "denied" or (evidence.times(entry) > 1 and _DENIED.search(blanks_for_underscores(said))):
            return _diagnose_no_permitted_way(evidence, entry, line)
    return None


def _describe_refusal(evidence: Evidence, entry: EntryView, line: str) -> str:
    call = call_phrase(entry, 80)
    times = evidence.count_failures(entry)
    said = quotable_lines([line]) or quote_match(_DENIED, line) or quote_match(_CLOSED, line)
    where = next((path for path in asked_paths(entry)[::-1] if "/" in path and plain_name(path)), None)
    place = f" for {code(evidence.name(where), 80)}" if where and where not in call else ""
    place = place or _describe_object(entry, line)
    return f"{call} is denied{place}{how_often(times)}{f': {said}' if said else ''}."


def _describe_object(entry: EntryView, line: str) -> str:
    """Return the thing that a refusal names, with the schema that only the call names, as a part of a sentence."""
    whole = next((each for each in _QUALIFIED.findall(call_input(entry)) if each.rpartition(".")[2] in line.split()), "")
    return f" for {code(whole, 80)}" if whole and whole not in line else ""


def _explain_permitted_way(evidence: Evidence, entry: EntryView, line: str, way: tuple[Message, str]) -> Diagnosis:
    message, sentence = way
    cause = (
        f"{_describe_refusal(evidence, entry, line)} The user named what is permitted{clock(message.at)}: "
        f"{code(sentence, 150)}."
    )
    step = f"Do it the permitted way, in the user's words: {code(sentence, 150)}."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, line), evidence.quote_message(message, sentence),
        check="It must work without a denial. If it is denied too, ask the user and change nothing else.",
    )  # fmt: skip


def _diagnose_no_permitted_way(evidence: Evidence, entry: EntryView, line: str) -> Diagnosis:
    # The user's own no needs another step than a missing permission.
    refused = _BY_USER.search(evidence.text(entry)[:_HEAD]) is not None
    known = known_error(KIND, evidence, late=False, once=True) if refused else any_known_error(KIND, evidence)
    if known is not None and (refused or entry.status != "denied"):
        return known
    step = (
        "Stop trying forms of this call: ask the user whether it may be done, and say what it is for. Meanwhile do the parts of"
        " the task that need no such permission."
    )
    cause = f"{_describe_refusal(evidence, entry, line)} Making the call again can't change that."
    return diagnosis(KIND, cause, step, evidence.quote(entry, line), confidence="medium")


_BY_USER = lazy_pattern(
    r"\buser (?:rejected|denied|declined|doesn['’]t want to proceed)|(?:rejected|denied|declined) by (?:the )?user",
    re.IGNORECASE,
)
_HEAD = 400


_BY_POLICY = lazy_pattern(
    r"AccessDenied|not authori[sz]ed to\b|explicit deny|\b403\b|\bforbidden\b|UnauthorizedOperation|AuthorizationFailed",
    re.IGNORECASE,
)
_PERMITS = lazy_pattern(r"\b(?:only|may|can|must|allowed|permitted|instead)\b", re.IGNORECASE)
_PART = lazy_pattern(r"[A-Za-z][\w-]{3,40}")


def _diagnose_other_way(evidence: Evidence, entry: EntryView, line: str) -> Diagnosis | None:
    """Say which way another agent or a note names."""
    return _diagnose_way_of_agent(evidence, entry) or _diagnose_note(evidence, entry, line)


def _diagnose_way_of_agent(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say which way into the refused place another agent has named, if no failing call has gone it."""
    steps = [entry, *(each for each in evidence.failing_calls if each.agent == entry.agent)]
    asked = "\n".join(call_input(each) for each in steps)
    line = evidence.line(entry, _DENIED) or evidence.line(entry, _BY_POLICY) or evidence.text(entry).split("\n")[0]
    # A part of the refused place must be in the message.
    places = {part for path in asked_paths(entry) if "/" in path for part in _PART.findall(path) if part in line}
    for message in reversed(evidence.messages):
        if message.by != "agent" or message.who == entry.agent or message.kind == "thought":
            continue
        if not any(contains_word(part, message.text) for part in places):
            continue
        for sentence in split_sentences(message.text):
            names = [name for name in find_names(sentence) if plain_name(name) and not name.isalpha()]
            new = [name for name in names if name not in asked]
            if new and _PERMITS.search(sentence) and not is_forbidden(sentence, new) and not ORDERS.search(sentence):
                return _explain_agents_way(evidence, entry, line, message, sentence, names)
    return None


def _explain_agents_way(
    evidence: Evidence, entry: EntryView, line: str, message: Message, sentence: str, names: list[str]
) -> Diagnosis:
    who = clean(message.who)[:40]
    words = _BY_POLICY.search(line) if not _DENIED.search(blanks_for_underscores(line)) else None
    refusal = _describe_refusal(evidence, entry, words.group(0) if words else line)
    cause = f"{refusal} {capital(who)} said{clock(message.at)}: {code(sentence, 170)}."
    step = (
        f"Leave the refused place. {capital(who)} named what is permitted, {join_names(names, 4)}: if that is the way for this "
        "task, make the call once with it, without changing any rights. If you are not sure, ask the user."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote_message(message, sentence), evidence.quote(entry, line),
        check="It must work without a denial, and with nobody's rights changed.",
    )  # fmt: skip


def _diagnose_note(evidence: Evidence, entry: EntryView, line: str) -> Diagnosis | None:
    """Say which other place, account or setting a note names beside the refused one."""
    way = find_way_in_note(evidence, entry, _RIGHTS)
    if way is None:
        return None
    cause = (
        f"{_describe_refusal(evidence, entry, line)} {way.source}{way.exclusion} names another way beside it: "
        f"{way.joined_names}."
    )
    step = (
        f"Look at what that note says of {way.joined_names}; if it is the way for this, take it in place of what is refused, "
        "without changing any rights. If you are not sure, ask the user."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, line), way.quote,
        check="It must work without a denial, and with nobody's rights changed.",
    )  # fmt: skip


_RIGHTS = lazy_pattern(
    r"\b(?:root|rights?|owne[dr]|belongs?|read-only|noexec|permissions?|protected|writable|closed)\b", re.IGNORECASE
)
_CLOSED = lazy_pattern(
    r"hook declined|remote rejected|protected branch|\bis (?:closed|protected|read-only|locked down)\b|\bmay not (?:be )?\w+"
    r"|not writable|only the owner|not (?:a member|the owner) of|policy (?:prohibits|forbids|violation)",
    re.IGNORECASE,
)
"""Messages that a place is closed to a call. They don't say what to do, but a note may."""


def _find_permitted_way(evidence: Evidence, entry: EntryView) -> tuple[Message, str] | None:
    """Return the newest sentence of a person that names a permitted place or command that no refused call uses."""
    calls = [entry, *(each for each in evidence.failing_calls if each.agent == entry.agent)]
    asked = "\n".join(f"{command_of(each)}\n{str(each.input)[:4_000]}" for each in calls)
    for message, sentence in user_sentences(evidence):
        ways = [way.strip("`'\"") for way in [*_WAY.findall(sentence), *_OF_KIND.findall(sentence)]]
        # A sentence that names a place only to forbid it permits nothing.
        if not ways or not ALLOWS.search(sentence) or is_forbidden(sentence, ways):
            continue
        # The permitted way was tried, so it is not what is missing.
        if not any(way in asked or way.replace("-", "_") in asked.replace("-", "_") for way in ways):
            return message, sentence
    return None


def _diagnose_script(evidence: Evidence, entry: EntryView, said: str) -> Diagnosis | None:
    """Say that a script is not executable, if the shell says so about the very command."""
    command = command_of(entry)
    match = _EXECUTED.search(said)
    path = match.group(1) if match else ""
    words = command.split()
    runner = next((program for ending, program in _RUNNERS.items() if path.endswith(ending)), None if "." in path[2:] else "sh")
    # Only for the file that the command itself runs, the missing permission is that to execute.
    if not words or path != words[0] or runner is None or "/" not in path or not plain_name(path):
        return None
    cause = (
        f"{code(command, 90)} can't start: {code(path, 80)} has no right to be executed,"
        f" {quote_match(_DENIED, evidence.line(entry, _DENIED))}."
    )
    step = f"Run {code(f'{runner} {command}', 140)}: it reads the file and needs no such right (`chmod +x` would give it)."
    return diagnosis(KIND, cause, step, evidence.quote(entry))
