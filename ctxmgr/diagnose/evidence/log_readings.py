"""Readings of logs: what a log says about a call that failed without a reason.

A service that does not come up answers `activating`, and a job `failed`. Why stands in a log that is read afterwards: by
`journalctl -u NAME`, `docker logs NAME`, `tail NAME.log`, or a tool such as `job.log`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ctxmgr.diagnose.evidence.calls import call_input, command_of, fields_of
from ctxmgr.diagnose.evidence.texts import contains_word, plain_name
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EntryView

_READS = lazy_pattern(
    r"\bjournalctl\b[^|;&\n]*?\s(?:-\w*u|--unit|-t)[ =]?(?P<unit>[\w@.:-]{3,80})"
    r"|\bsystemctl\b[^|;&\n]*?\sstatus\s(?:-\S+\s)*(?P<status>[\w@.:-]{3,80})"
    r"|\b(?:docker|podman|nerdctl)\b[^|;&\n]*?\slogs\s(?:--?\w[\w-]*(?:[= ](?:\d\S*|all))?\s)*(?P<container>[\w.-]{3,80})"
    r"|\b(?:kubectl|oc)\b[^|;&\n]*?\slogs\s(?:--?\w[\w-]*(?:[= ](?:\d\S*|all))?\s)*(?:\w+/)?(?P<pod>[\w.-]{3,80})"
    r"|\b(?:tail|cat|less|grep|head|sed|awk|zcat)\b[^|;&\n]*?(?P<file>[\w./@+-]{1,200}\.(?:log|err|out))(?![\w/.-])"
)
_READER = lazy_pattern(r"(?i)(?:^|[._:/-])(?:\w+_)?logs?(?![._-]?(?:in|out|on|off)(?![a-z]))(?:$|[._:/-])|[a-z]Logs?$")
_SUBJECTS = (
    "service", "unit", "job", "job_id", "name", "app", "pod", "container", "task", "task_id", "run", "run_id", "id",
    "deployment", "build", "build_id", "process", "file", "path", "worker", "pipeline", "function", "instance",
)  # fmt: skip
"""Fields of a tool that reads logs which name what the log is of."""
_REPLICA = lazy_pattern(r"(?:-[a-z0-9]{6,10}-[a-z0-9]{5}|-\d{1,3})$")
"""The end of the name of a pod or a container, which names one of several."""
_SHOWN_BEFORE = lazy_pattern(
    r"^(?:\w{3} {1,2}\d{1,2} (?:\d\d:\d\d:\d\d )?[\w.-]{1,80} [\w./@-]{1,80}(?:\[\d{1,8}\])?: |[\w.-]{1,60} +\| "
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? )",
    re.MULTILINE,
)
"""What a journal, Compose or a program writes before each line: time, host and program."""
_STANDARD = lazy_pattern(
    r"(?im)^job for \S{1,80} failed because [^\n]*$|^see \"?(?:systemctl|journalctl)[^\n]*$|^a dependency job for [^\n]*$"
    r"|^g?make(?:\[\d+\])?: \*\*\*[^\n]* error \d+$|^[^\n]{0,60}is unhealthy$|^[^\n]{0,60}exceeded its progress deadline$"
    r"|\"?\b[\w-]{1,40}\"\s*:|[\w-]{1,40}="
)
"""Sentences of systemd, make and others that only say that something failed, and names of fields."""
_STATES = word_set(
    "exit exited code status state error errors failed failure fail failing activating inactive deactivating active "
    "reloading dead starting start restart restarting auto-restart started stopped stop exit-code unhealthy not running run "
    "down crashed crash false null none true pending with command process returned ended end job task build service unit "
    "container result the is was in of a to did it come up nonzero non-zero unknown unavailable offline crashloopbackoff "
    "ago seconds second minute minutes about an main control exitcode type message"
)
_WORD = lazy_pattern(r"[^\W\d_][\w.@/-]*")
_ERRORS = lazy_pattern(
    r"(?i)error|exception|traceback|\bfail(?:ed|ure|s)?\b|fatal|panic|cannot|can't|could not|couldn't|denied|refused|not found"
    r"|no such|missing|invalid|in use|unable|unknown|timed? ?out|required|out of|killed|\bcode: '"
)
_MOST_OWN, _MOST_LOG, _MOST_LINES = 400, 12_000, 14


class LogReading(NamedTuple):
    """The lines of a log that say what went wrong, and the call that read them."""

    entry: EntryView
    text: str


def find_log_reading(
    entry: EntryView, said: str, later: Iterable[EntryView], read_text: Callable[[EntryView], str]
) -> LogReading | None:
    """Return the newest reading of a log about what a call is about, if its own result says no reason.

    Args:
        entry: the call, which failed.
        said: its result.
        later: the calls behind it, newest first.
        read_text: returns the result of a call.
    """
    asked = f"{call_input(entry)[:_MOST_LOG]}\n{said[:_MOST_OWN]}"
    if not _says_no_reason(said, asked) or _list_log_subjects(entry):
        return None
    for other in later:
        subjects = _list_log_subjects(other) if other.status == "ok" else []
        if subjects and all(contains_word(subject, asked) for subject in subjects):
            lines = _SHOWN_BEFORE.sub("", read_text(other)[-_MOST_LOG:]).strip("\n").split("\n")
            places = [place for place, line in enumerate(lines) if _ERRORS.search(line)]
            shown = lines if len(lines) <= _MOST_LINES else lines[places[0] :] if places else []
            if places:
                return LogReading(other, "\n".join(shown[:_MOST_LINES]))
    return None


def _says_no_reason(said: str, asked: str) -> bool:
    """Whether a result has only a state, an exit code, and names that the call has given."""
    if len(said) > _MOST_OWN:
        return False
    given = {word.casefold() for word in _WORD.findall(asked[: -len(said)] if said else asked)}
    words = (word.strip(".:").casefold() for word in _WORD.findall(_STANDARD.sub(" ", said)))
    return all(word in _STATES or word in given or any(map(str.isdigit, word)) for word in words)


def _list_log_subjects(entry: EntryView) -> list[str]:
    """Return the names of what a call reads the log of; empty if it reads none."""
    found: list[Any] = []
    if command := command_of(entry):
        match = _READS.search(command)
        found = [name for name in match.groups() if name] if match is not None else []
    elif _READER.search(entry.action):
        fields = fields_of(entry)
        found = [fields[name] for name in _SUBJECTS if isinstance(fields.get(name), str)]
    names = (_REPLICA.sub("", re.sub(r"\.(?:service|log|err|out)$", "", name.rpartition("/")[2])) for name in found)
    return [name for name in names if len(name) > 2 and plain_name(name)]
