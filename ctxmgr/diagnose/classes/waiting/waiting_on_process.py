"""A call waits for a process or file in the record: it failed, it runs until it is stopped, or it is somewhere else."""

from __future__ import annotations

import re

from ctxmgr.diagnose.errors.lines import quotable_lines
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import ENDED, call_phrase, command_of
from ctxmgr.diagnose.evidence.files import mentions
from ctxmgr.diagnose.evidence.interactive_commands import RUNS_ON
from ctxmgr.diagnose.evidence.texts import capital, code, first_group, plain_name, quote_match
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "waitingOnProcess"

_PROCESS = lazy_pattern(
    r"\bwait (\d{2,8})\b|\bkill -0 (\d{2,8})\b|\bps (?:-o \S{1,40} )?-p ?(\d{2,8})\b|--pid[= ](\d{2,8})\b|/proc/(\d{2,8})\b"
)
_FILE = lazy_pattern(
    r"\b(?:until (?:\[{1,2}|test)|while ! (?:\[{1,2}|test)|while (?:\[{1,2}|test) !) -[efrs] [\"']?([\w./~-]{2,160})"
)
"""A loop that ends when a file exists. A loop that ends when a file is gone waits for a lock."""
_REDIRECT = lazy_pattern(r"(?<!2)>{1,2} ?([\w./-]{3,120})")
_MOST_STARTED = 6


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what a call waits for, and why it will not come or end."""
    for entry in [*evidence.hanging_calls, *evidence.failing_calls]:
        command = command_of(entry)
        process, file = _PROCESS.search(command), _FILE.search(command)
        found = None
        if process is not None and (entry.status == "open" or "timed" in evidence.text(entry)):
            found = _diagnose_process_wait(evidence, entry, first_group(process))
        elif file is not None and plain_name(file.group(1)):
            found = _diagnose_file_wait(evidence, entry, file.group(1))
        if found is not None:
            return found
    return None


def _diagnose_process_wait(evidence: Evidence, entry: EntryView, number: str) -> Diagnosis | None:
    """Say which call of the record started the awaited process."""
    shown = re.compile(rf"(?<!\d){number}(?!\d)")
    started = (each for each in evidence.background_calls(entry.index) if shown.search(evidence.text(each)[:200]))
    started_call = next(started, None)
    if started_call is None:
        return None
    cause = f"{call_phrase(entry)} waits for process {number}. That is what {evidence.source(started_call)} started"
    if RUNS_ON.search(command_of(started_call)):
        cause += ": it does not end by itself, but runs until it is stopped."
        step = f"Stop waiting, and go on while process {number} runs; `kill {number}` ends it when you need it no more."
    else:
        log = _find_log_file(started_call)
        look = f"at its output in {code(log, 90)}, and " if log is not None else ""
        cause += ", and the record does not show that it ends."
        step = f"Stop waiting. Look once {look}with `ps -o stat,etime,args -p {number}` whether it still runs and works."
    return diagnosis(
        KIND, cause, step, evidence.quote(started_call), evidence.quote(entry, command_of(entry)),
        check="If you wait again, set a limit: `timeout 60 COMMAND`.",
    )  # fmt: skip


def _diagnose_file_wait(evidence: Evidence, entry: EntryView, file: str) -> Diagnosis | None:
    """Say that the file is somewhere else, or that the call that should make it has failed."""
    started_calls = evidence.background_calls(entry.index)
    since = started_calls[0].index if started_calls else entry.index
    name = file.rpartition("/")[2]
    for mention in mentions(evidence, name, entry.index):
        # A file named before the start may be an old copy. A call that only names a path does not show that it exists.
        if mention.given or mention.entry.index <= since or not plain_name(mention.path):
            continue
        if not evidence.same_place(mention.path, file):
            place = code(mention.path, 90)
            cause = f"{call_phrase(entry)} waits for {code(file, 80)}. {capital(evidence.source(mention.entry))} has {place}."
            step = (
                f"Stop waiting, look at {place}, which that output names, and if it is what you need, use it in place of"
                f" {code(file, 80)}."
            )
            return diagnosis(
                KIND, cause, step, evidence.quote(mention.entry), evidence.quote(entry, command_of(entry)),
                check="The file must be there and be complete.", confidence="medium",
            )  # fmt: skip
    # Of several jobs, only one that names the file surely makes it.
    makers = started_calls if len(started_calls) == 1 else [each for each in started_calls if name in command_of(each)]
    for maker in makers[:_MOST_STARTED]:
        if (found := _diagnose_failed_maker(evidence, entry, maker, file)) is not None:
            return found
    return None


def _diagnose_failed_maker(evidence: Evidence, entry: EntryView, maker: EntryView, file: str) -> Diagnosis | None:
    """Say that the job that should make a file has failed, according to a look at its log."""
    log = _find_log_file(maker)
    for look in evidence.entries_before(entry.index):
        if look.index <= maker.index:
            return None
        if log is None or log.rpartition("/")[2] not in call_input(look):
            continue
        line = next((line for line in reversed(evidence.text(look).split("\n")) if ENDED.search(line)), None)
        # The newest look counts: a job that failed earlier may have been repaired.
        if line is None:
            return None
        said = quotable_lines([line.strip()]) or quote_match(ENDED, line)
        cause = (
            f"{call_phrase(entry)} waits for {code(file, 80)}, and what was to make it has failed:"
            f" {evidence.source(look)} shows {said}. Nothing in the record makes it any more."
        )
        step = (
            f"Stop waiting. Put right what {code(log, 80)} says, start {code(command_of(maker), 100)} again, and see in that"
            " log that it works before you wait."
        )
        return diagnosis(
            KIND, cause, step, evidence.quote(look), evidence.quote(maker, command_of(maker)),
            check=f"{code(file, 80)} must be there; if you wait for it, set a limit: `timeout 60 COMMAND`.",
        )  # fmt: skip
    return None


def _find_log_file(begun: EntryView) -> str | None:
    """Return the file into which a call that was left running writes, or None."""
    match = _REDIRECT.search(command_of(begun))
    return match.group(1) if match is not None and match.group(1) != "/dev/null" else None
