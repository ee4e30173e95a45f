"""Choose the most informative look if the record holds no cause, by the kind of call and how it ended."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, cast

from ctxmgr.diagnose.errors.lines import is_telling, quotable_lines, telling_line
from ctxmgr.diagnose.errors.table import read_table
from ctxmgr.diagnose.evidence import CHECKS, Evidence, call_input, call_key, may_change
from ctxmgr.diagnose.evidence.calls import command_of, path_of, split_command
from ctxmgr.diagnose.evidence.items import answers, find_ids
from ctxmgr.diagnose.evidence.texts import clip_ends, code, join_texts, plain_name
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.view import EntryView


class _Look(NamedTuple):
    """A look, and the calls to which it applies.

    Attributes:
        call: must match in the command or the name of the tool; "" for any.
        said: must match in the result; "" for any.
        look: one or two sentences; ``{command}`` is the command, if it is plain and short.
    """

    call: str
    said: str
    look: str


# A shell adds 128 to the signal: 132 is SIGILL, 134 SIGABRT, 135 SIGBUS, 136 SIGFPE, 139 SIGSEGV. 137 is SIGKILL, see below.
_CRASH = (
    r"segmentation fault|bus error|core dumped|SIGSEGV|SIGABRT|SIGBUS|SIGILL|illegal instruction|floating point "
    r"exception|stack smashing|exit(?:ed with)?(?: code| status):? 13[2-69]\b|\bAborted\b|double free|access violation"
)
_KILLED = (
    r"\bKilled\b|SIGKILL|exit(?:ed with)?(?: code| status):? 137\b|OOMKilled|out of memory|heap out of memory"
    r"|MemoryError|Cannot allocate memory|OutOfMemoryError|signal 9\b"
)
_SERVER = (
    r"\b50[0-4]\b|internal server error|bad gateway|service unavailable|gateway time-?out|internal[ _]error"
    r"|unexpected error|something went wrong|unknown error"
)
# curl exits with 52 after an empty answer, with 56 if receiving failed, and with 18 after a partial body.
_CUT_OFF = (
    r"empty reply|connection (?:was )?reset|connection closed|unexpected EOF|broken pipe|remote end closed|socket "
    r"hang up|ECONNRESET|EOF occurred|server disconnected|curl: \((?:52|56|18)\)|premature"
)
# curl exits with 7 if it can't connect, and with 28 after a time-out.
_UNREACHED = (
    r"connection refused|ECONNREFUSED|timed? ?out|ETIMEDOUT|no route to host|network is unreachable|curl: \((?:7|28)\)"
    r"|deadline exceeded"
)
# A gift certificate or a travel certificate is none of TLS.
_TLS = (
    r"(?:\bx509|\b(?:SSL|TLS)(?![a-z])|_SSL|handshake"
    r"|certificate (?=verif|has expired|is not trusted|problem|chain)|CERTIFICATE_VERIFY|(?=self[- ]signed))"
)

_LOOKS = (
    _Look(
        "",
        _CRASH,
        "Find the place where it crashes: run it once under a debugger, `gdb -batch -ex run -ex bt --args "
        "PROGRAM ARGUMENTS`, or build it with"
        " `-g -fsanitize=address` (or use `valgrind`), and read the first frame of your own code.",
    ),
    _Look(
        "",
        _KILLED,
        "See whether memory ran out: look at `dmesg | tail` and at the memory limit, measure the peak with "
        "`/usr/bin/time -v`, and run it once on a much"
        " smaller input.",
    ),
    _Look(
        # Answers and jobs are submitted too, so that word alone is not about a page.
        r"^[\w.:-]*(?:click|tap\b|navigate|hover|type_text|browser)|playwright|puppeteer|selenium|page\."
        r"|^[\w.:-]*(?:press|fill|submit)_?(?:form|button|key|element|field)",
        "",
        "Look at the page itself right after the action: a screenshot, the element (is it covered, disabled, or "
        "another one?), the console and the network requests.",
    ),
    _Look(
        r"\bselect\b|\bfrom\b .*\bwhere\b|query|psql|sqlite3|mysql|\bsql\b",
        r"^\s*(?:\(?0 rows?\)?|\[\s*\]|empty set|0)?\s*$|\b0 rows\b|\"rows?\":\s*\[\s*\]|no rows",
        "Find the condition that removes the rows: count the rows of each table alone, look at the distinct "
        "values of the columns in the condition, and add the conditions back one by one.",
    ),
    _Look(
        "",
        _TLS + r".{0,80}(?:fail|error|verif|expired|unknown|self)",
        "Look at the certificate that the other side shows: `openssl s_client -connect HOST:PORT -servername "
        "HOST`, its names, its dates and its issuer.",
    ),
    _Look(
        r"\bcurl\b|\bwget\b|https?://|\bhttp\b",
        _CUT_OFF,
        "See at which point the connection ends: make the call once with `curl -v`, and look at the log of the "
        "server, or whether its process still runs, at that very moment.",
    ),
    _Look(
        "",
        _CUT_OFF,
        "See at which point the connection ends: look at the log of the server, or whether its process still "
        "runs, at that very moment; then make the call once in its most verbose form.",
    ),
    _Look(
        "",
        _UNREACHED,
        "See whether anything answers there: resolve the name (`getent hosts HOST`), try the port (`nc -vz HOST "
        "PORT`, `ss -ltn`), and look at the log of what should listen.",
    ),
    _Look(
        "",
        _SERVER,
        "Only the log of the server tells the cause: look there for the time or the request id of the last "
        "answer{request}; if you can't, give both to the user or to whoever operates it, and ask.",
    ),
    _Look(
        r"\bssh\b|\bscp\b|\brsync\b|\bsftp\b",
        # Its own failures. Otherwise the command on the other side failed, and ssh worked.
        r"^(?:ssh|scp|sftp|kex\w*|rsync)[:\[]|permission denied \(|host key|connection (?:closed|reset|timed out|refused)"
        r"|could not resolve|exit(?:ed with)?(?: code| status):? 255\b|lost connection|too many authentication",
        "Make it tell more: add `-v` to the ssh call, and read the last step before the refusal.",
    ),
    _Look(
        r"\bdocker build\b|\bbuildx\b",
        "",
        "Run the step that fails alone, with `--progress=plain --no-cache`, and read its whole output.",
    ),
    _Look(
        r"\bkubectl\b|\bhelm\b",
        "",
        "Look at the events and the log of the object itself: `kubectl describe` and `kubectl logs --previous`.",
    ),
    _Look(r"\bsystemctl\b|\bservice\b", "", "Look at the log of the unit: `journalctl -u UNIT -n 50 --no-pager`."),
    _Look(r"\bterraform\b", "", "Set `TF_LOG=DEBUG` for one run, and read the last request before the error."),
    _Look(
        r"(?:^|[;&|(]\s*|\bsudo )(?:make|ninja|cmake)\b",
        "",
        "Run it once so that it shows each command: `make V=1 -j1` or `ninja -v -j1`, and then run the first "
        "command that fails alone.",
    ),
)
_REQUEST = lazy_pattern(
    r"(?:request|trace|correlation|incident|error|x-request)[-_ ]?(?:id)?[\"']?\s?[:=]\s?[\"']?(?=[\w-]{0,40}\d)([\w-]{6,60})",
    re.IGNORECASE,
)
_RUNTIMES = (
    (r"\bpython|\.py\b|pytest", "`py-spy dump --pid PID`"),
    (r"\bjava|mvn|gradle", "`jstack PID`"),
    (r"\bnode|npm|yarn|jest|vitest", "`node --inspect` or a SIGUSR1 to the process"),
    (r"\bgo (?:run|test)", "a SIGQUIT to the process, which prints all stacks"),
)
_SEARCHES = lazy_pattern(r"^(?:grep|rg|find|ag|fd|ack|git grep|locate)\b")


def next_look(evidence: Evidence, step: EntryView, error_text: str) -> str | None:
    """Return the most informative look at a call that ended in the same way again, or None.

    Args:
        evidence: the session.
        step: the call.
        error_text: the most informative lines of its output.
    """
    if (known := _find_known_look(evidence, step, error_text)) is not None:
        return known
    command = command_of(step)
    said = evidence.text(step)
    works = evidence.has_succeeded(step)
    if _is_search_in_files(step) and _NOTHING.search(said):
        return _LOOK_AROUND
    # The call works, so something after it must change.
    if works and said.strip() and not may_change(step) and not _SEARCHES.search(command):
        return _choose_look_behind_answer(evidence, step)
    if CHECKS.search(command):
        return (
            "Run one test that fails by itself, with its whole traceback and its variables printed, and read the "
            "first line of your own code in it."
        )
    if split_command(command) and _SEARCHES.search(" ".join(split_command(command)[0])):
        return _LOOK_AROUND
    if command and len(said.strip()) < 3:
        return (
            'It prints nothing: run it once so that errors and the exit code show, `set -x; COMMAND; echo "exit '
            '$?"`, and without `2>/dev/null`.'
        )
    return None


def _find_known_look(evidence: Evidence, step: EntryView, error_text: str) -> str | None:
    """Return the look of the first row of ``_LOOKS`` that applies, or a known way out."""
    said = evidence.text(step)
    call = command_of(step) or f"{step.action} {step.input if isinstance(step.input, str) else ''}"
    for place, look in enumerate(_LOOKS):
        # Known remedies come before a debugger. The looks before them are even surer.
        if place == _CRASHES and (way := find_way_out(error_text)) is not None:
            return way
        # A log that was read is not to be read again.
        if not _is_look_for(look, call, said) or ("journalctl" in look.look and evidence.log_of(step) is not None):
            continue
        if look.said == _SERVER and (seen := _find_advice_in_log(evidence, step)):
            return seen
        match = _REQUEST.search(f"{said}\n{_input_text(step.error)}\n{_input_text(step.output)}")
        request = f", {code(match.group(1), 60)}" if match and plain_name(match.group(1)) else ""
        return look.look.replace("{request}", request)
    return None


def _is_look_for(look: _Look, call: str, said: str) -> bool:
    if look.call and not re.search(look.call, call[:2_000], re.IGNORECASE):
        return False
    flags = re.IGNORECASE | (re.MULTILINE if len(said) > 200 else 0)
    return not look.said or re.search(look.said, clip_ends(said, 2_000), flags) is not None


def _choose_look_behind_answer(evidence: Evidence, step: EntryView) -> str:
    rule = _find_rule(evidence, step)
    if rule is not None:
        name, other = rule
        return f"See what the rule {code(name, 40)} wants, which {evidence.source(other)} names: it may set it back each time."
    of_file = path_of(step) and not _is_search_in_files(step)
    if (command_of(step) or of_file or _STATE.search(f"{_RUN_VERB.sub('', step.action)} {call_input(step)}")) and _has_machine(
        evidence
    ):
        return (
            "It answers, and the answer does not change: look at what should change it, whether the process, worker or job "
            "behind it runs, and what its log says, and not at the answer again."
        )
    same = evidence.equal_calls(step)
    outdated = find_look_before_change(evidence, step)
    if evidence.possible_changes(same[0], same[-1]) and (outdated is not None or not _LOOKS_UP.match(step.action)):
        # It may show a fault still, of which the repeated answer only tells the effect.
        again = "" if outdated is None else f"{_describe_look_again(evidence, outdated)} "
        return (
            f"{again}What was done in between has not changed the answer: see on what else it depends that no call has looked "
            "at or set, change that, and ask again then. If nothing is left, tell the user what it says, and ask."
        )
    return (
        "It answers, and asking again does not change the answer: go on with it as it is, or ask for another value if the "
        "task means another one. If the task can't go on with it, tell the user what it says, and ask."
    )


def find_look_before_change(evidence: Evidence, step: EntryView) -> EntryView | None:
    """Return the newest look at something else that showed a fault, if a call that may change something followed it.

    A look whose states later answers speak of again is out of date anyway.
    """
    for entry in evidence.entries_before(step.index):
        if entry.agent != step.agent or call_key(entry) == call_key(step) or not _LOOK.match(entry.action):
            continue
        newest = evidence.equal_calls(entry)[-1] is entry
        if newest and _FAULT.search(evidence.text(entry)) and evidence.possible_changes(entry, step):
            states = _list_states(evidence, entry)
            if not states or _list_lasting_states(evidence, entry, states):
                return entry
    return None


def _list_states(evidence: Evidence, look: EntryView) -> list[str]:
    """Return the lines of a look that name a state which is off or missing."""
    lines = (line.strip() for line in evidence.text(look).split("\n") if _FAULT.search(line))
    return [line for line in lines if _STATE_LINE.fullmatch(line) and not _BETTER_OFF.search(line)]


def _list_lasting_states(evidence: Evidence, look: EntryView, states: Sequence[str]) -> list[str]:
    """Return the states of which no later answer speaks: "Mobile Data is now on" ends "Mobile Data Enabled: No"."""
    since = "\n".join(evidence.text(each)[:_MOST_STATE_TEXT] for each in evidence.recent if each.index > look.index).casefold()
    return [state for state in states if " ".join(state.casefold().partition(":")[0].split()[:2]) not in since]


def _describe_look_again(evidence: Evidence, look: EntryView) -> str:
    """Return the advice to make a look again, with the first states in it that are off or missing."""
    states = _list_lasting_states(evidence, look, _list_states(evidence, look))[:_MOST_STATES]
    shown = f"it showed {join_texts([code(each, 60) for each in states])}" if states else "it showed what may be a fault"
    return f"Make {evidence.source(look)} again: {shown}, and changes followed."


def _has_machine(evidence: Evidence) -> bool:
    """Whether a session shows commands, files, jobs or logs. A service's API or a phone has no process to look at."""
    return any(command_of(each) or path_of(each) or _MACHINE.search(each.action) for each in evidence.recent)


def _is_search_in_files(step: EntryView) -> bool:
    command = split_command(command_of(step))
    return _SEARCHES.search(" ".join(command[0])) is not None if command else _SEARCH_TOOL.search(step.action) is not None


_SEARCH_TOOL = lazy_pattern(
    r"(?i)(?:^|[_.])(?:grep|glob|rip_?grep|list_?dir\w*)"
    r"|(?:find|search|locate)_?(?:in_?|for_?)?(?:files?|code\w*|text|content|symbol)|(?:file|code\w*|symbol)_?(?:search|find)"
)
_NOTHING = lazy_pattern(
    r"(?i)\A\W{0,3}(?:no (?:match(?:es|ing \w+)?|files|results)\b|(?:found )?0 (?:match|result|file)|nothing found)|\A\s*\Z"
)
_LOOK_AROUND = (
    "List the folder that you search, one level higher too, and see whether what you look for is there under another name."
)
_LOOK = lazy_pattern(
    r"(?:\w+(?:__|\.))?(?:check|get|show|read|list|query|test|inspect|describe|view|status|can|is|has)(?=[_A-Z]|$)"
)
_FAULT = lazy_pattern(
    r"(?i)\b(?:no|not|none|cannot|can't|never|off|disabled|disconnected|missing|denied|locked|expired|inactive|blocked|error|fail\w*)\b"
)
# `Data Roaming Enabled: No`
_STATE_LINE, _MOST_STATES = lazy_pattern(r"[A-Za-z][\w ./-]{1,40}: [\w.%/-]{1,20}(?: [\w.%/-]{1,20}){0,2}"), 2
_MOST_STATE_TEXT = 2_000
_BETTER_OFF = lazy_pattern(
    r"(?i)^[^:]*(?:airplane|flight mode|saver|\bvpn|block|limit|restrict|suspen|maintenance|lock|expired|error|fail|full)[^:]*:"
)
"""A state whose absence is no fault: `Airplane Mode: OFF`, `Errors: none`."""
_LOOKS_UP = lazy_pattern(
    r"(?:\w+(?:__|\.))?(?:search|find|look_?up|query|get|list|read|fetch|show|describe|count|check|verify)(?=[_A-Z]|$)"
)
_STATE = lazy_pattern(
    r"(?i)stat(?:us|e)(?![a-z])|health|ready|progress|poll|(?<![a-z])(?:jobs?|builds?|deploy\w*|runs?|tasks?|queues?|workers?|process\w*"
    r"|pipelines?|logs?|pods?|services?|messages?|events?|instances?)(?![a-z])"
)
"""Names of things that change by themselves, so that a call asks for them again."""
_RUN_VERB = lazy_pattern(r"(?i)^runs?(?=_)")
_MACHINE = lazy_pattern(
    r"(?i)(?<![a-z])(?:jobs?|builds?|deploy\w*|workers?|process\w*|pipelines?|logs?|pods?|queues?|runs|tasks?|instances?|servers?|containers?)(?![a-z])"
)
_RULE = lazy_pattern(r"(?:\w{1,20}_)?(?:rule|automation|trigger|policy|workflow)(?:_?(?:id|name))?", re.IGNORECASE)


def _find_rule(evidence: Evidence, step: EntryView) -> tuple[str, EntryView] | None:
    """Return the rule that an answer names as the author of a change to the thing, with that answer."""
    about = find_ids(call_input(step))
    for entry, item in answers(evidence):
        if entry.index == step.index or not about & find_ids(call_input(entry)):
            continue
        name = next((value.split()[0] for key, value in item.fields.items() if _RULE.fullmatch(key) and value), "")
        # A word without digits may be any setting.
        if plain_name(name) and any(map(str.isdigit, name)):
            return name, entry
    return None


def _find_advice_in_log(evidence: Evidence, step: EntryView) -> str:
    """Return advice on an error in a log that was read already; "" if there is none."""
    for entry in evidence.latest:
        # The call's own output is no log of its server.
        if entry.status != "ok" or entry.action == step.action or not _LOG.search(command_of(entry) or entry.action):
            continue
        line = telling_line(evidence, entry)
        if is_telling(line) and (quotable := quotable_lines([line])):
            return f"Go by the log that {evidence.source(entry)} shows, {quotable}: find what that needs, and mend it there."
    return ""


_LOG = lazy_pattern(r"(?i)(?<![a-z])(?<!git )logs?(?![a-z])|journalctl")

_CRASHES = 2
"""Number of looks, at the beginning, that are about a crash. They come before any other remedy."""


@cache
def _load_ways() -> tuple[tuple[re.Pattern[str], str, bool, bool], ...]:
    return tuple(
        (re.compile(row["said"]), row["way"], bool(row.get("general", False)), bool(row.get("shell", False)))
        for row in read_table("way")
    )


def find_way_out(said: str, *, general: bool = False, shell: bool = True) -> str | None:
    """Return what helps against the kind of failure in the decisive lines of an error, or None.

    Args:
        said: these lines.
        general: use the remedies that fit nearly every error.
        shell: the call is a command. Some remedies are about folders, branches and the like, which other tools may not have.
    """
    return next(
        (
            way for pattern, way, broad, of_shell in _load_ways()
            if broad == general and (shell or not of_shell) and pattern.search(said)
        ), None,
    )  # fmt: skip


def _input_text(value: object) -> str:
    return str(cast("dict[str, object]", value))[:4_000] if isinstance(value, dict) else ""


def process_look(command: str) -> str:
    """Return how to see what a process does that does not return."""
    stack = next((way for pattern, way in _RUNTIMES if re.search(pattern, command)), "`gdb -p PID -batch -ex bt`")
    return (
        "See whether its process still runs, and what it does: `ps -o pid,stat,time,wchan,args` shows whether it uses CPU "
        f"or waits, and {stack} or `strace -p PID`"
        " in which function or on which file."
    )


def is_flaky(evidence: Evidence, step: EntryView) -> bool:
    """Whether the very same call sometimes works and sometimes fails, with nothing changed in between, or often by turns."""
    same = [each for each in evidence.tail if call_key(each) == call_key(step)]
    outcomes = [evidence.has_failed(each) for each in same]
    # If all failures come before or after all successes, something has changed, and the call is not flaky.
    if len(same) < 3 or len(set(outcomes)) < 2 or outcomes == sorted(outcomes, reverse=True) or outcomes == sorted(outcomes):
        return False
    return evidence.is_unchanged(same[0], same[-1]) or sum(a != b for a, b in itertools.pairwise(outcomes)) >= 3
