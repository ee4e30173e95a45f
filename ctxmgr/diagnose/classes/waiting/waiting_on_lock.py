"""A lock that somebody holds according to the record blocks a call, or makes it fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.diagnose.classes.waiting.lock_holders import (
    diagnose_asking_holder,
    diagnose_open_transaction,
    find_open_prompt,
    find_open_transaction,
)
from ctxmgr.diagnose.errors.table import known_error
from ctxmgr.diagnose.evidence import MOST_CURRENT, Evidence, Message, call_input, clock, start_clause
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, fields_of, runs_in_background, split_command
from ctxmgr.diagnose.evidence.files import Content
from ctxmgr.diagnose.evidence.interactive_commands import find_command_wait
from ctxmgr.diagnose.evidence.messages import user_sentences
from ctxmgr.diagnose.evidence.texts import code, first_group, plain_name, quote_match, text_of
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "waitingOnLock"

_LOCKED = lazy_pattern(
    r"database (?:table )?is locked|could not (?:get|obtain|acquire) (?:the )?lock"
    r"|unable to (?:acquire|lock|create '[^'\n]{1,200}\.lock')|waiting for (?:the )?(?:\w+ )?lock"
    r"|blocking waiting for file lock|lock (?:is )?(?:held|owned) by|is locked by|state lock(?:ed)?"
    r"|another (?:\w+ ){0,3}process (?:seems to be|is|has|holds)|lock wait timeout|deadlock detected"
    r"|(?:waiting|timeout|timed out|failed|unable|trying)[ \w]{0,20} (?:to|for) (?:\w+ ){0,2}(?:acquire|lock"
    r"|obtain)\b|in use by another|(?:being )?used by another process|\blocked by|LockTimeout|lock (?:request "
    r")?(?:timed out|timeout|timeout expired)"
    r"|could not (?:lock|acquire)|cannot (?:acquire|obtain|get) (?:the |a )?lock|lock (?:could not|cannot) be"
    r"|already running(?: \(?pid)?|lock[^\n]{0,80}resource temporarily unavailable|resource busy|text file busy|ETXTBSY|EBUSY"
    r"|another (?:\w+ ){0,2}(?:command|instance|build|run|job|copy)\b[^\n]{0,40}\bis (?:already |still |currently )?"
    r"(?:running|active|in progress)"
    r"|\block\S*[^\n]{0,40}\bheld\b|\bheld by\b|already locked|lock file (?:exists|already)"
    r"|\b(?:is|are|was) (?:currently |already )?(?:checked out|locked|reserved|leased|claimed)\b|checked out (?:by|to)\b"
    r"|being edited by|(?:status|code|http)\W{1,4}423\b|\"(?:locked|document_?locked|resource_?locked|lock_?conflict)\"",
    re.IGNORECASE,
)
_FILE = lazy_pattern(r"((?:[\w.~@+-]{0,80}/){0,12}[\w.@+-]{0,80}(?:\.lock|\.lck|\.pid|lock\.json|lockfile|/lock))(?![\w/-])")
_DATABASE = lazy_pattern(r"([\w./~-]{1,200}\.(?:db|sqlite3?))\b")
# Terraform shows the holder of a locked state as `Who: me@host`.
_WHO = lazy_pattern(r"(?:^|\s)[^\w\n]{0,10}Who: +([\w.@-]{2,60})", re.MULTILINE)
_PROGRAM = lazy_pattern(
    r"(?!(?:by|is|process|running|with)\b)\b([A-Za-z][\w./-]{1,40})[ ,(]{1,3}pid[ =:]{1,2}(\d{2,8})\b", re.IGNORECASE
)
_SHOWS_HOLDER = lazy_pattern(r"\b(?:fuser|lsof|ps|pgrep|cat)\b")
_PID = lazy_pattern(r"\b(?:pid|process)[ =:]{1,3}(\d{2,8})\b|\b(\d{2,8})\b\s*\((?:pid|process)", re.IGNORECASE)
# Files that are named "lock" but only pin versions
_MANIFEST = lazy_pattern(r"package-lock\.json|\b(?:poetry|Cargo|yarn|uv|Gemfile|composer|Pipfile|flake|bun)\.lock")
_COMMON = frozenset(("cd", "timeout", "nohup", "echo", "sleep", "bash", "sh", "python3", "python", "node", "export", "set"))


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return which lock a call waits for, and who holds it."""
    for entry in evidence.failing_calls:
        said = evidence.text(entry)
        match = _LOCKED.search(said)
        if match is not None:
            line = evidence.line(entry, _LOCKED)
            return _diagnose_refusal(evidence, entry, said, line)
    for entry in evidence.open_calls:
        said = evidence.output_so_far(entry)
        if _LOCKED.search(said) and command_of(entry):
            line = next(line for line in reversed(said.split("\n")) if _LOCKED.search(line))
            return _diagnose_refusal(evidence, entry, said, line)
        if (found := _diagnose_open_call(evidence, entry)) is not None:
            return found
    return None


def _diagnose_refusal(evidence: Evidence, entry: EntryView, said: str, line: str) -> Diagnosis | None:
    call = call_phrase(entry, 90)
    named = _FILE.search(said) or _FILE.search(command_of(entry)) or _DATABASE.search(command_of(entry))
    lock = named.group(1) if named else next((file for _, file, _ in _list_named_locks(evidence, entry)), None)
    ends = f"fails{_describe_times(evidence, entry)} because of a lock"
    if entry.status == "open":
        call, ends = f"{call}{start_clause(entry)}", "has not returned: it waits for a lock"
    cause = f"{call} {ends}: {quote_match(_LOCKED, line)}."
    quotes = [evidence.quote(entry, line)]
    holder = _find_holder(evidence, entry, lock) or _find_started_holder(evidence, entry, lock)
    # A call in the record is the surest holder. The answer's own words come second.
    if holder is not None and _shows_as_holder(evidence, holder, lock):
        return _diagnose_own_holder(evidence, holder, cause, quotes)
    begun = find_open_transaction(evidence, entry, lock)
    if begun is not None:
        return diagnose_open_transaction(evidence, begun, cause, quotes)
    who = _WHO.search(said)
    if who is not None:
        name = code(who.group(1), 60)
        step = (
            f"Wait until {name} has finished, or ask the user whether it still works on it; do not remove the lock yourself"
            " (`force-unlock`) unless the user says so."
        )
        return diagnosis(KIND, f"{cause} The message names who holds it, {name}.", step, *quotes)
    return _diagnose_process_holder(evidence, said, lock, cause, quotes) or _diagnose_unknown_holder(
        evidence, entry, lock, cause, quotes
    )


def _diagnose_own_holder(evidence: Evidence, holder: EntryView, cause: str, quotes: list[Quote]) -> Diagnosis:
    """Say which call that was left running holds the lock, and what that call waits for."""
    cause += f" {_describe_own_holder(evidence, holder)}."
    quotes.append(evidence.quote(holder, command_of(holder)))
    number = _find_process_number(holder)
    which = f"process {number}, {code(command_of(holder), 80)}" if number else code(command_of(holder), 90)
    shown = _find_output_place(evidence, holder)
    waits = find_command_wait(command_of(holder))
    question = find_open_prompt(evidence, holder, number) if waits is None else None
    if question is not None:
        return diagnose_asking_holder(evidence, holder, number, question, cause, quotes)
    cause += f" There {waits.why}." if waits else ""
    holder_start = f"{which}, which {evidence.maker(holder)} started{clock(holder.ts)}"
    allowed = _find_stop_permission(evidence, holder)
    if allowed is not None:
        cause += f" The user said{clock(allowed[0].at)}: {code(allowed[1], 120)}."
        quotes.append(evidence.quote_message(*allowed))
    step = (
        f"{f'End {holder_start}' if evidence.is_own(holder) else _ask_to_end(evidence, holder, holder_start)}"
        # One that waits for a person does not end by itself.
        f"{'' if waits else ', or wait until it has ended'}"
        f"{f'; {shown} shows what it waits for' if shown else ''}. Then run this once more."
        f"{f' For next time: {waits.step}' if waits else ''}"
    )
    return diagnosis(KIND, cause, step, *quotes, check="Make sure that process is gone before you run it again.")


def _shows_as_holder(evidence: Evidence, holder: EntryView, lock: str | None) -> bool:
    """Whether the record shows that a call left running holds the lock, or at least that it has not ended."""
    name = (lock or "").rpartition("/")[2]
    # git's own lock lasts as long as its command: one that went to the background may have ended, or never took it.
    return (
        holder.status == "open" or not name.startswith("index.lock") or name in command_of(holder)
        # One that waits for a person has not ended.
        or find_command_wait(command_of(holder)) is not None
        or _find_started_holder(evidence, evidence.recent[-1], lock) is holder
    )  # fmt: skip


_PLAIN = lazy_pattern(r"[A-Za-z]{4,30}")
_STOPPABLE = lazy_pattern(r"\b(?:may|can|could|feel free to)\b[^.]{0,40}\b(?:stop|kill|end|interrupt|terminate)", re.IGNORECASE)


def _find_stop_permission(evidence: Evidence, holder: EntryView) -> tuple[Message, str] | None:
    """Return the user's sentence that allows to stop what a call runs, identified by a word in both."""
    names = {word[:4].casefold() for word in _PLAIN.findall(command_of(holder)) if word not in _COMMON}
    return next(
        (
            (message, sentence)
            for message, sentence in user_sentences(evidence)
            if _STOPPABLE.search(sentence) and any(word[:4].casefold() in names for word in _PLAIN.findall(sentence))
        ),
        None,
    )


def _diagnose_process_holder(
    evidence: Evidence, said: str, lock: str | None, cause: str, quotes: list[Quote]
) -> Diagnosis | None:
    """Say which process the message names as the holder, or that the process is gone."""
    named = _PROGRAM.search(said)
    # A process that a look-up did not find holds nothing any more.
    if named is not None and plain_name(named.group(1)) and _find_failed_lookup(evidence, named.group(2), lock) is None:
        name, number = code(named.group(1), 50), named.group(2)
        step = (
            f"Wait until {name} has finished: `ps -p {number}` shows whether it still runs. If it does not, tell the user that"
            " the lock is left over, and ask before you remove it."
        )
        return diagnosis(KIND, f"{cause} It is held by {name}, process {number}.", step, *quotes)
    pid = _PID.search(said)
    if pid is not None:
        number = first_group(pid)
        gone = _find_failed_lookup(evidence, number, lock)
        if gone is not None:
            file = code(lock, 90) if lock and plain_name(lock) else "the file that holds its number"
            cause += f" Process {number} is gone: {evidence.source(gone)} shows none, so {file} is left over (stale)."
            step = (
                f"Make sure with `ps -p {number}` that no such process runs, ask the user whether {file} may be removed, and "
                "start it once after that."
            )
            return diagnosis(KIND, cause, step, *quotes, evidence.quote(gone))
        step = (
            f"Look with `ps -p {number}` whether process {number} still runs. If it does, wait for it; if it does not, ask the"
            " user before you remove the lock."
        )
        return diagnosis(KIND, f"{cause} It is held by process {number}.", step, *quotes)
    return None


def _diagnose_unknown_holder(
    evidence: Evidence, entry: EntryView, lock: str | None, cause: str, quotes: list[Quote]
) -> Diagnosis:
    """Say that the holder of the lock must be found."""
    # The table knows locks that are none: a mount point in use, a limit of processes, a missing right to the lock's file.
    if (known := known_error(KIND, evidence, late=False)) is not None:
        return known
    what = f" {code(lock, 80)}" if lock and plain_name(lock) else ""
    # A lease that a tool grants has neither a process nor a file.
    if not what and not command_of(entry):
        step = (
            "See who has it, and until when, in the answer or with the call that shows it; do other work until it is given"
            " back."
        )
        return diagnosis(
            KIND, cause, step, *quotes, check="Its state must say that it is free before you try again.", confidence="medium"
        )
    step = (
        f"Find out which process holds the lock{what} with `ps` or `fuser`, and wait for it. Ask the user before you remove a"
        " lock."
    )
    return diagnosis(KIND, cause, step, *quotes, check="The lock must be free before you run it again.", confidence="medium")


def _find_process_number(holder: EntryView) -> str | None:
    """Return the number of the process that a call left running, or the id that its client has for it."""
    said = text_of(holder.output, 400)
    match = (
        re.fullmatch(r"\D{0,20}(\d{2,8})\s*", said)
        or re.search(r"\b(?:with )?ID:? (\w{2,24})\b", said)
        or re.search(r"^(?:started|process)[ =:]{1,2}(\d{2,8})$", said, re.IGNORECASE | re.MULTILINE)
        or re.search(r"\bpid[ =:]{1,3}(\d{2,8})\b|^\[\d{1,3}\]\+? +(\d{2,8})$", said, re.IGNORECASE | re.MULTILINE)
    )
    # A number within other words may count anything.
    number = first_group(match)
    return number if plain_name(number) else None


def _find_output_place(evidence: Evidence, holder: EntryView) -> str | None:
    """Return the file or the look-up with the output of a call that was left running."""
    file = re.search(r">{1,2} ?([\w./-]{3,80})", command_of(holder))
    if file is not None and file.group(1) != "/dev/null":
        return code(file.group(1), 60)
    number = _find_process_number(holder)
    looks = (each for each in reversed(evidence.recent) if each.index > holder.index and number and number in call_input(each))
    look = next(looks, None)
    return evidence.source(look) if look is not None else None


def _find_failed_lookup(evidence: Evidence, number: str, lock: str | None) -> EntryView | None:
    """Return the look-up that found no process with that number, or with the number in the lock's file; else None."""
    named = re.compile(rf"\b(?:ps|pgrep|kill|pidof)\b[^\n]{{0,80}}\b{number}\b")
    name = (lock or "").rpartition("/")[2]
    by_file = re.compile(rf"\bps -p ?\"?(?:\$\(|`)(?:cat|<) ?[\w./-]{{0,80}}{re.escape(name)}[)`]")
    none = re.compile(
        rf"no (?:such )?process\b[^\n]{{0,20}}\b{number}\b|\b{number}\b[^\n]{{0,30}}no such process", re.IGNORECASE
    )
    for each in evidence.latest[:MOST_CURRENT]:
        said = evidence.text(each)
        # An open or denied look-up has found nothing.
        if each.status == "open" or (each.status == "denied"):
            continue
        looked = re.match(r"ps\b", command_of(each)) and (
            named.search(command_of(each)) or (name and by_file.search(command_of(each)) and "PID" in said)
        )
        if none.search(said) or (looked and number not in said):
            return each
    return None


def _diagnose_open_call(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say which lock an open call waits for, if its command names it."""
    command = command_of(entry)
    # flock names its file on the command line.
    asked = _FILE.search(command) if re.search(r"\bflock\b|\blockfile\b", command) else None
    return None if asked is None else _explain_awaited_lock(evidence, entry, asked.group(1))


def _list_named_locks(evidence: Evidence, entry: EntryView) -> Iterator[tuple[Content, str, str]]:
    """Yield the first lock that each program of a call names in its source, if that was read: source, lock and line."""
    for word in dict.fromkeys(re.findall(r"[\w./-]{1,200}\.(?:py|sh|js|ts|rb|pl)\b", command_of(entry))):
        content = evidence.last_content(word, entry.index)
        for line in content.lines[:2_000] if content is not None else ():
            match = _FILE.search(line)
            if content is not None and match is not None and not _MANIFEST.search(line):
                yield content, match.group(1), line
                break


def _explain_awaited_lock(evidence: Evidence, entry: EntryView, lock: str) -> Diagnosis:
    command = command_of(entry)
    cause = f"{code(command, 90)}{start_clause(entry)} has not returned: it waits for the lock {code(lock, 80)}."
    quotes = [evidence.quote(entry, command)]
    holder = _find_holder(evidence, entry, lock)
    if holder is not None:
        cause += f" {_describe_own_holder(evidence, holder)}."
        quotes.append(evidence.quote(holder, command_of(holder)))
        holder_text = f"{code(command_of(holder), 80)}, which holds the lock"
        step = (
            f"Stop this call, end {holder_text}, and run it once more."
            if evidence.is_own(holder)
            else f"Stop this call. {_ask_to_end(evidence, holder, holder_text)}, and run yours once more when it has ended."
        )
        return diagnosis(KIND, cause, step, *quotes, check="Make sure the holder is gone before you run it again.")
    name = lock if plain_name(lock) else "the lock file"
    step = (
        f"Stop the call. Look at {code(name, 80)} and find out which process holds it, with `fuser` or `ps`; if none does, ask"
        " the user whether it may be removed. Run the call again only with a time limit."
    )
    return diagnosis(KIND, cause, step, *quotes, check="It must return within the limit.", confidence="medium")


def _find_holder(evidence: Evidence, entry: EntryView, lock: str | None) -> EntryView | None:
    """Return an earlier call that names the same lock and has not ended, or was sent to the background."""
    heads = {
        word for words in split_command(command_of(entry)) for word in words[:3] if word not in _COMMON and not word.isdigit()
    }
    # If the program makes the lock itself, another call of that program holds it.
    if not lock or _is_of_program(entry, lock):
        own = (other for other in evidence.latest_before(entry.index) if _may_hold(evidence, other))
        found = next(
            (
                other
                for other in own
                if (
                    heads & {word for words in split_command(command_of(other)) for word in words[:3]}
                    or (not lock and _runs_or_locks_for(evidence, other, heads))
                )
            ),
            None,
        )
        if found is not None or not lock:
            return found
    name = lock.rpartition("/")[2]
    for other in evidence.latest_before(entry.index):
        command = command_of(other)
        if _may_hold(evidence, other) and (name in command or _does_source_name(evidence, other, name)):
            return other
    return None


def _may_hold(evidence: Evidence, entry: EntryView) -> bool:
    """Whether a call was left running, and did not find the lock taken itself."""
    return _is_left_running(entry) and not evidence.has_failed(entry) and not _LOCKED.search(evidence.text(entry))


def _is_left_running(entry: EntryView) -> bool:
    """Whether a call was left running: it is open, or it was sent to the background, by its command or its client."""
    flags = (value for name, value in fields_of(entry).items() if "background" in name.casefold())
    return entry.status == "open" or runs_in_background(command_of(entry)) or any(value is True for value in flags)


def _is_of_program(entry: EntryView, lock: str) -> bool:
    """Whether the program of a call makes a lock for itself, such as `.git/index.lock`."""
    heads = {words[0].rpartition("/")[2] for words in split_command(command_of(entry))} - _COMMON
    # Short names occur in many paths.
    return any(re.search(rf"(?:^|/)\.?{re.escape(head)}(?:/|\b)", lock) for head in heads if len(head) > 2)


def _does_source_name(evidence: Evidence, started: EntryView, name: str) -> bool:
    """Whether the source of the program that a call started was read, and names a file."""
    words = (word for words in split_command(command_of(started)) for word in words if re.fullmatch(r"[\w./-]+\.\w{1,4}", word))
    return any((seen := evidence.last_content(word, started.index)) is not None and name in seen.text for word in words)


def _runs_or_locks_for(evidence: Evidence, started: EntryView, programs: set[str]) -> bool:
    """Whether a call names a lock of one of these programs, or starts a script whose recorded source runs one."""
    command = command_of(started)
    if any(re.search(rf"(?<![\w-]){re.escape(each)}[._-]lock(?![\w-])", command) for each in programs):
        return True
    scripts = [word for words in split_command(command) for word in words if re.fullmatch(r"[\w./-]+\.\w{1,4}", word)]
    seen = [content for word in scripts if (content := evidence.last_content(word, started.index)) is not None]
    return any(re.search(rf"(?:^|[;&|]|\bdo) ?{re.escape(each)} ", one.text, re.M) for one in seen for each in programs)


def _find_started_holder(evidence: Evidence, entry: EntryView, lock: str | None) -> EntryView | None:
    """Return the call left running whose number the lock's file shows as its holder."""
    name = (lock or "").rpartition("/")[2]
    looks = [
        other for other in evidence.latest
        if name and other.status == "ok" and name in command_of(other) and _SHOWS_HOLDER.search(command_of(other))
    ]  # fmt: skip
    numbers = {number for other in looks for number in re.findall(r"\b\d{2,8}\b", evidence.text(other)[:2_000])}
    started_calls = (each for each in evidence.entries_before(entry.index) if _may_hold(evidence, each))
    return next((each for each in started_calls if numbers & set(re.findall(r"\b\d{2,8}\b", evidence.text(each)[:200]))), None)


def _ask_to_end(evidence: Evidence, holder: EntryView, what: str) -> str:
    """Return the step that leaves it to another agent to end what it started."""
    return f"Ask {evidence.maker(holder)} to end {what}"


def _describe_own_holder(evidence: Evidence, holder: EntryView) -> str:
    number = _find_process_number(holder)
    process = f" ({'process ' if number.isdigit() else ''}{number})" if number else ""
    who = "You hold it yourself" if evidence.is_own(holder) else f"{evidence.maker(holder)} holds it"
    return f"{who}: {code(command_of(holder), 90)}{process}, started{clock(holder.ts)}, was not ended"


def _describe_times(evidence: Evidence, entry: EntryView) -> str:
    times = evidence.times(entry)
    return f", {times} times," if times > 1 else ""
