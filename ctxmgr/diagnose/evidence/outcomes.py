"""Decide whether a result reports a failure, whatever its status: a pipe hides exit codes, and servers refuse in words."""

from __future__ import annotations

import re

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.evidence.calls import command_of, path_of, split_command
from ctxmgr.diagnose.evidence.texts import strip_wrapper
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EntryView

_EXIT = lazy_pattern(r"\b(?:exit(?:ed with)?(?: exit)?(?: code| status)|returncode|exit_code)\W{1,4}(\d{1,3})\b", re.IGNORECASE)
# The first line of an answer, a field `"status": 404`, or a lone `404`, as printed by `curl -w '%{http_code}'`
_HTTP = lazy_pattern(
    r"^(?:< )?HTTP(?:/[\d.]{1,3})?[ :=]{1,3}[45]\d\d\b|^\s{0,4}[\"']?(?:http_?)?(?:status"
    r"|code)(?:_?code)?[\"']?\s{0,2}[:=]\s{0,2}[45]\d\d\b|^[45]\d\d$"
    r"|^\s{0,4}\{\s{0,4}\"(?:status|code|statusCode)\"\s{0,2}:\s{0,2}[45]\d\d\b",
    re.MULTILINE | re.IGNORECASE,
)
_REFUSAL = lazy_pattern(
    r"\A\s{0,4}[\[{].{0,300}?\"(?:error|errors|error_code|errorMessage|fault|exception)\"\s{0,2}:"
    r"(?!\s{0,2}(?:null|false|\[\s?\]|\{\s?\}|\"\"|0\b))"
    r"|\A\s{0,4}\{.{0,200}?\"(?:isError|is_error|failed)\"\s{0,2}:\s{0,2}true"
    r"|\A\s{0,4}\{\s{0,4}\"(?:detail|message|msg|title)\"\s{0,2}:\s{0,2}(?:\[|\"[^\"\n]{0,200}(?:not found|invalid"
    r"|required|denied|unauthori[sz]ed|forbidden|must be|unknown|no such|not allowed|failed))"
    r"|\A\s{0,4}\{.{0,200}?\"(?:ok|success|successful)\"\s{0,2}:\s{0,2}false"
    r"|\A\s{0,4}\{.{0,80}?\"(?:status|result|outcome)\"\s{0,2}:\s{0,2}\"(?:error|fail(?:ed|ure)?|rejected|refused"
    r"|denied|invalid)\"",
    re.DOTALL | re.IGNORECASE,
)
# In this order: TAP, Go, pytest, Gradle, Python, git and Go, npm, compilers, make and ninja, shells, exceptions,
# the summary of pytest, curl
_REPORT = lazy_pattern(
    r"^(?:not ok \d|--- FAIL|FAILED\b|FAIL(?:URE)?[:!]|BUILD FAILED|Traceback \(most recent call last\)|(?:fatal"
    r"|panic): |npm (?:ERR!|error)"
    r"|\s{0,4}(?:\S{1,200}:\d{1,6}:(?:\d{1,5}:)? )?(?:fatal )?error(?:\[\w{1,12}\])?: |(?:g?make"
    r"|ninja)(?:\[\d\])?: (?:\*\*\*|error|build stopped)"
    r"|(?:/\S{0,60}/)?(?:ba|z|da|k)?sh: (?:line \d{1,5}: |\d{1,5}: )|(?:\w{1,40}\.){0,6}\w{0,40}(?:Error|Exception): "
    r"|={3,}.{0,80}\b[1-9]\d{0,5} (?:failed|errors?)\b|curl: \(\d)",
    re.MULTILINE,
)
_SHOWS = word_set(
    "cat head tail less more sed grep rg ag awk ls find tree git diff wc sort uniq echo printf jq nl bat strings journalctl "
    "stat file history sleep date pwd env which type"
)
"""Programs that show what others have recorded. An error in their output is not their own."""
_COUNTED = lazy_pattern(r"(?: {2,6}\d{1,6} [1-5]\d\d\n?){0,8} {2,6}\d{1,6} [45]\d\d\n?(?: {2,6}\d{1,6} [45]\d\d\n?){0,8}")
"""HTTP status codes as `uniq -c` counts them, with refusals at the end."""
_HEAD = 20_000
ENDED = lazy_pattern(
    r"\b(?:ImagePullBackOff|ErrImagePull|CrashLoopBackOff|OOMKilled|InvalidImageName|CreateContainerConfigError"
    r"|FailedScheduling|Evicted|manifest unknown|\d+/\d+ +(?:Init:)?(?:Error|Unknown|Completed"
    r"|ContainerStatusUnknown)"
    r"|ROLLBACK_\w{4,20}|(?:CREATE|UPDATE|DELETE)_FAILED|exit(?:ed)?(?: with)?(?: exit| error)?(?: status| code)[ "
    r"=:]{0,2}[1-9]\d{0,2}|Exited \([1-9]\d{0,2}\)"
    r"|(?:was |been |got |is )?(?:killed|aborted|crashed|terminated|cancelled)\b|no such (?:table|column|file|host"
    r"|image)[: ]{0,2}[\w./-]{0,60}|oom-kill|Killed process|segmentation fault|core dumped|out of memory"
    r"|Traceback|(?:fatal|FATAL|panic)\b|No space left on device|connection refused|permission denied|gave up"
    r"|giving up|BackoffLimitExceeded|DeadlineExceeded"
    r"|[Ff]ailed to \w{3,15}|(?:[Ss]tatus|[Ss]tate|[Rr]esult|[Cc]onclusion)\W{1,4}(?:failed|failure|error|dead"
    r"|cancelled)|\w{0,30}(?:Error|Exception)(?=:|$)"
    r"|(?:import|job|build|run|task|upload|export|migration|deploy\w*|sync|backup|worker|process"
    r"|pipeline)\b[^\n]{0,30}\b(?:failed|died|stopped))"
)
"""Messages about a job, a process or a service that has failed and will not go on."""


def reports_failure(entry: EntryView, text: str) -> bool:
    """Whether a finished call failed, by its status, its exit code, or a text in a form that only failures have.

    Args:
        entry: the call.
        text: the text of its result.
    """
    if entry.status in ("error", "denied"):
        return True
    if entry.status != "ok":
        return False
    command = command_of(entry)
    if not command:
        return (
            # The content of a file may hold any words.
            path_of(entry) is None
            and vocabulary.classify(entry.action, "", "") != "sleep"
            and (_REFUSAL.search(text[:2_000]) is not None or _REPORT.match(strip_wrapper(text[:2_000]).strip()) is not None)
        )
    # Clients put the exit code before or after the output. Within the output, it may be part of the content.
    exits = _EXIT.findall(text[:200]) + _EXIT.findall(text[-200:])
    # If several commands were run, the last exit code counts.
    if exits and exits[-1] != "0":
        return True
    # A format that prints only the status ends the output with it.
    if "http_code" in command and re.search(r"[45]\d\d\s{0,4}\Z", text):
        return True
    said = strip_wrapper(text[:_HEAD])
    if _COUNTED.fullmatch(said.strip("\n")):
        return True
    # These show the output of other programs.
    if all(words[0].rpartition("/")[2] in _SHOWS for words in split_command(command)[:1]):
        return False
    return any(pattern.search(said) is not None for pattern in (_REPORT, _HTTP, _REFUSAL))
