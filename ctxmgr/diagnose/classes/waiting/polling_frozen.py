"""The polled state can't change any more, because the work has failed or is done."""

from __future__ import annotations

import re

from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.evidence import CHECKS, MOST_CURRENT, Evidence, call_input, call_key, clock, may_change
from ctxmgr.diagnose.evidence.calls import ENDED, command_of, tool_phrase
from ctxmgr.diagnose.evidence.texts import capital, code, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "pollingFrozen"

_STATE = lazy_pattern(
    r"\b(?:state|status|phase|conclusion|outcome|result|job_status|runstate)\b[\"']?\s*[:=|]\s*[\"']?([A-Za-z_-]{3,30})",
    re.IGNORECASE,
)
_FAILED = lazy_pattern(r"^(?:fail(?:ed|ure)|cancell?ed|aborted|timed[_-]?out|rejected|crashed|expired)$", re.IGNORECASE)
_OF_JOBS = lazy_pattern(r"^(?:fail|error(?:ed)?|dead|killed|terminated|stopped)$", re.IGNORECASE)
"""States that are final for a job. A service may come back from them."""
_DONE = lazy_pattern(
    r"^(?:complete(?:d)?|success(?:ful)?|succeeded|done|finished|merged|closed|passed|deployed)$", re.IGNORECASE
)
_ALIVE = lazy_pattern(
    r"\b(?:running|pending|queued|in[ _-]progress|waiting|starting|building|retrying|processing|active)\b",
    re.IGNORECASE,
)
_REASON = lazy_pattern(
    r"\b(?:reason|message|error|detail|cause|description)[\"']?\s*[:=]\s*[\"']?([^\"'\n,}]{3,160})",
    re.IGNORECASE,
)
_LEAST_POLLS, _MOST_BEFORE, _MOST_ANSWER, _MOST_QUOTED = 3, 8, 4_000, 48
"""Equal polls; entries before them that show the same run; characters of the answer to a poll, and of a reason in it."""
_PLAIN = lazy_pattern(r"[\w ,.()%-]+")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the final state that is polled."""
    if (found := _diagnose_other_name(evidence) or _diagnose_repeated_remedy(evidence)) is not None:
        return found
    if any(_STARTS.search(entry.action) or _STARTS.search(command_of(entry)) for entry in evidence.rounds):
        return None  # each round starts new work, so each time another run is polled
    for entry in evidence.rounds:
        if not evidence.has_succeeded(entry) or may_change(entry):
            continue
        same = [each for each in evidence.loop if call_key(each) == call_key(entry)]
        said = evidence.text(entry)
        # A changing answer is progress. A long one is a log with many words for states.
        if len(same) < _LEAST_POLLS or len(said) > _MOST_ANSWER or not _are_answered_alike(evidence, same):
            continue
        states = _STATE.findall(said) or _list_bare_states(entry, said)
        # A single running part may still change the rest.
        if not states or _ALIVE.search(" ".join(states)):
            continue
        # Of several states, the first if it is final, else the last, which represents the whole.
        state = states[0] if len(states) == 1 or _FAILED.match(states[0]) or _DONE.match(states[0]) else states[-1]
        # A stopped service may come back, but a job may not.
        if _FAILED.match(state) or (_OF_JOBS.match(state) and _is_job(entry)):
            return _diagnose_failed_state(evidence, entry, state, same)
        # Reading that something is done is a poll only if it is read again and again.
        if _DONE.match(state) and _is_poll(entry, len(same)):
            return _diagnose_final_state(evidence, entry, state, same)
    return _diagnose_awaited_failure(evidence)


_QUANTITY = lazy_pattern(r"\b\d[\d.]*\s?(?:[KMGT]i?B?|[kmgt]b|ms|seconds|minutes|%)(?!\w)")


def _diagnose_repeated_remedy(evidence: Evidence) -> Diagnosis | None:
    """Say that a remedy is repeated, and that the same failure follows it each time."""
    for step in evidence.repeated_calls:
        same = evidence.equal_calls(step)
        follows = [each for each in evidence.recent if any(each.index == one.index + 1 for one in same)]
        endings = [{match.group(0).strip() for match in ENDED.finditer(evidence.text(each)[:4_000])} for each in follows]
        words = endings[0].intersection(*endings[1:]) if endings else set[str]()
        remedy = may_change(step) or _STARTS.search(f"{step.action} {call_input(step)}") is not None
        # Another change in between may be the reason.
        if not remedy or len(follows) < _LEAST_POLLS or not words or any(may_change(each) for each in follows):
            continue
        word = max(words, key=len)
        cause = (
            f"{code(command_of(step) or f'{tool_phrase(step)} {call_input(step)}', 80)} was made {len(same)} times, "
            "and each time what"
            f" follows shows {code(word, 60)}: to make it again can't change that."
        )
        quotes = [evidence.quote(follows[-1])]
        known = {each.id for each in follows}
        for other in evidence.latest[:MOST_CURRENT]:
            said = evidence.text(other)[:4_000]
            amounts = list(dict.fromkeys(_QUANTITY.findall(said)))
            if other.id not in known and word in said and amounts:
                source = evidence.source(other)
                cause += f" {capital(source)} shows it too, with the limit or amount {join_names(amounts, 3)}."
                quotes.append(evidence.quote(other))
                break
        step_ = (
            f"Stop repeating it. Change what {code(word, 60)} says is wrong (a limit, a setting, the image), where "
            "the task lets you; then make the call once."
        )
        return diagnosis(KIND, cause, step_, *quotes, check="What follows must no longer show it.", confidence="medium")
    return None


_ID = lazy_pattern(r"(?<![\w-])(?=[\w-]*\d)[A-Za-z0-9][\w-]{3,59}(?![\w-])")


def _diagnose_other_name(evidence: Evidence) -> Diagnosis | None:
    """Say that the polled name differs a little from the name that the starting call returned."""
    for entry in evidence.repeated_calls:
        asked = set(_ID.findall(call_input(entry)))
        started_names = [
            each
            for each in evidence.entries_before(entry.index)
            if _STARTS.search(each.action) or _STARTS.search(command_of(each))
        ]
        for start in started_names[:_MOST_STARTED]:
            made = set(_ID.findall(evidence.text(start)[:2_000]))
            near = [
                (own, one) for own in asked - made for one in made if one not in call_input(entry) and _is_nearly_same(own, one)
            ]
            # An id that the start returned as well, or received, is no mistake.
            if not near or start.status != "ok" or asked & made or near[0][0] in call_input(start):
                continue
            polled, started = near[0]
            cause = (
                f"You poll {code(polled, 60)}, {len(evidence.equal_calls(entry))} times; what {evidence.maker(start)} started"
                f" is {code(started, 60)}, as {evidence.source(start)} answered. They are two."
            )
            step = f"Ask once for {code(started, 60)} in place of {code(polled, 60)}."
            return diagnosis(
                KIND, cause, step, evidence.quote(start), evidence.quote(entry), check="Its state must move on, or be final."
            )
    return None


def _is_nearly_same(one: str, other: str) -> bool:
    """Whether two names differ only in a letter or two."""
    longer, shorter = sorted((one, other), key=len, reverse=True)
    same = sum(a == b for a, b in zip(longer, shorter, strict=False))
    # Short ids are alike by chance.
    return one != other and len(longer) - len(shorter) <= 2 and len(shorter) - same <= 2 and same >= 4


def _list_bare_states(entry: EntryView, said: str) -> list[str]:
    """Return the states in a short answer of nothing but words, if the call asked for a state."""
    words = said.split()
    # A longer answer holds words like "done" by chance.
    if len(words) > _MOST_STATE_WORDS or not _ASKS_STATE.search(call_input(entry)):
        return []
    final = [word for word in words if _FAILED.match(word) or _OF_JOBS.match(word)]
    return final or [word for word in words if _DONE.match(word) or _ALIVE.search(word)]


_ASKS_STATE = lazy_pattern(r"status|state|conclusion|\brun\b|\bjob|pipeline|poll|wait|progress", re.IGNORECASE)
_MOST_STATE_WORDS = 12
_STARTS = lazy_pattern(
    r"(?:^|[\W_])(?:trigger|start|submit|rerun|retry|launch|dispatch|enqueue|redeploy|restart|kick)(?:[\W_]|$)", re.IGNORECASE
)
_SETS = lazy_pattern(r"\s*(?:export|cd|source|\.|set|unset|alias|ulimit|umask|true|:)(?:\s|$)")
_LOGS = (
    (lazy_pattern(r"\bgh run (?:view|watch) (\d{3,15})"), "gh run view {} --log-failed"),
    (lazy_pattern(r"\bkubectl\b.{0,60}\bjobs?[/ ]([\w.-]{1,80})"), "kubectl logs job/{}"),
    (lazy_pattern(r"\bkubectl\b.{0,60}\bpods?[/ ]([\w.-]{1,80})"), "kubectl logs {} --previous"),
    (lazy_pattern(r"\bsystemctl (?:status|is-active) ([\w@.-]{1,80})"), "journalctl -u {} -n 50 --no-pager"),
    (lazy_pattern(r"\bdocker (?:inspect|ps)\b.{0,60}?\b([\w-]{3,80})$"), "docker logs {}"),
    (
        lazy_pattern(r"\bcloudformation\b.{0,60}--stack-name[ =]([\w-]{1,80})"),
        "aws cloudformation describe-stack-events --stack-name {}",
    ),
    (lazy_pattern(r"\bglab ci\b.{0,40}?(\d{3,15})"), "glab ci trace {}"),
)
"""Calls that show the log of ended work, by the call that asks for its state."""


def _describe_log_call(entry: EntryView) -> str:
    """Return in words the call that shows why the work ended, or "the log of that job"."""
    for pattern, shown in _LOGS:
        match = pattern.search(command_of(entry))
        if match is not None:
            return code(shown.format(match.group(1)), 100)
    return "the log of that job"


def _is_poll(entry: EntryView, times: int) -> bool:
    return times > _LEAST_POLLS or vocabulary.classify(entry.action, "", command_of(entry)) in ("poll", "paced")


def _is_job(entry: EntryView) -> bool:
    return (
        re.search(
            r"job|run|build|task|deploy|pipeline|workflow|release|import|export",
            call_input(entry),
            re.IGNORECASE,
        )
        is not None
    )


def _describe_poll(entry: EntryView, state: str, same: list[EntryView]) -> str:
    call = code(command_of(entry) or tool_phrase(entry), 80)
    return (
        f"{call} has answered {len(same)} times since{clock(same[0].ts).replace(' at', '') or ' it was first asked'} that the"
        f" state is {code(state, 40)}"
    )


def _diagnose_failed_state(evidence: Evidence, entry: EntryView, state: str, same: list[EntryView]) -> Diagnosis:
    said = evidence.text(entry)
    reason = _REASON.search(said)
    words = reason.group(1).strip() if reason else ""
    plain = 0 < len(words) <= _MOST_QUOTED and _PLAIN.fullmatch(words) is not None
    why = f" The answer gives the reason: {code(words)}." if plain else " The answer gives a reason." if words else ""
    cause = f"{_describe_poll(entry, state, same)}. That is a final state, so waiting can't change it.{why}"
    look = (
        "Find out what to do about the reason"
        if reason
        else f"Look at {_describe_log_call(entry)} for the reason, or tell the user"
    )
    step = f"Stop polling. {look}; only then start it again, as a new job."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), check="Ask for the state again only after you have started something new."
    )


def _diagnose_final_state(evidence: Evidence, entry: EntryView, state: str, same: list[EntryView]) -> Diagnosis:
    cause = f"{_describe_poll(entry, state, same)}: what you wait for has happened."
    step = "Stop polling and go on with what was to come after it in the task."
    return diagnosis(KIND, cause, step, evidence.quote(entry))


# Also `0/3` replicas, an empty answer, and `grep -c`, which prints 0 and exits with 1
_WAITS = lazy_pattern(
    r"timed out waiting|waiting for|not (?:yet )?(?:ready|found|done|finished|complete|available|there)|still"
    r"|pending|running|in progress|queued|^0$|\b0/[1-9]\d*\b|^\s*$|no such file|Exit code:? 1\s*0?\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_SUBJECT = lazy_pattern(r"[A-Za-z][\w.-]{3,60}|\b\d{3,8}\b")
_COMMON = word_set(
    "status rollout deploy deployment curl http https localhost grep done error tail cat head sleep json name output echo "
    "timeout kubectl docker watch true false null 2>&1 dev grep -c -n get list show describe wait logs bash python python3 "
    "node test tests file files line exit code"
)
_QUOTED = lazy_pattern(r"[\"'`]([\w./:@+-]{4,120})[\"'`]")
_MOST_STARTED = 3


def _diagnose_awaited_failure(evidence: Evidence) -> Diagnosis | None:
    """Say that the awaited work has already failed, according to another recorded output."""
    calls: dict[str, list[EntryView]] = {}
    for entry in evidence.tail:
        calls.setdefault(call_key(entry), []).append(entry)
    for same in sorted(calls.values(), key=len, reverse=True):
        if _is_wait(evidence, same):
            found = _list_shown_failures(evidence, same)
            if found:
                telling = next((each for each in found if any(_QUOTED.search(line) for line in each[1])), found[0])
                return _diagnose_ended_log(evidence, same[-1], same, *telling)
    return None


def _is_wait(evidence: Evidence, same: list[EntryView]) -> bool:
    """Whether equal calls, repeated up to now, ask for something that has not come."""
    last = same[-1]
    if len(same) < _LEAST_POLLS + 1 or last.status == "open" or evidence.is_past(last):
        return False
    # A repeated test is no poll.
    if may_change(last) or CHECKS.search(command_of(last)) or _SETS.match(command_of(last)):
        return False
    said = evidence.text(last)
    # A poll that itself reports the failure was judged above.
    if len(said) > _MOST_ANSWER or ENDED.search(said) or not (_WAITS.search(said) or _reads_started_log(evidence, last)):
        return False
    return _are_answered_alike(evidence, same)


def _are_answered_alike(evidence: Evidence, same: list[EntryView]) -> bool:
    """Whether the last answers to equal calls differ in times and ids alone."""
    return len({mask_volatile(evidence.text(each), ids=True) for each in same[-_LEAST_POLLS:]}) == 1


def _list_shown_failures(evidence: Evidence, same: list[EntryView]) -> list[tuple[EntryView, list[str]]]:
    """Return the other calls that show an end of what equal calls wait for, the newest first, each with the lines that do."""
    last = same[-1]
    started_calls = evidence.background_calls(last.index)[:_MOST_STARTED]
    named = " ".join([call_input(last), *(f"{command_of(each)} {evidence.text(each)[:60]}" for each in started_calls)])
    subjects = {word.casefold() for word in _SUBJECT.findall(named)} - _COMMON
    found: list[tuple[EntryView, list[str]]] = []
    for other in evidence.latest[:MOST_CURRENT]:
        # An output from before the first poll may belong to an earlier run.
        is_earlier = other.index < same[0].index - _MOST_BEFORE
        if is_earlier or call_key(other) == call_key(last) or other.status == "open" or may_change(other):
            continue
        shown = evidence.text(other)[-8_000:]
        words = {word.casefold() for word in _SUBJECT.findall(f"{call_input(other)}\n{shown}")}
        lines = [line for line in shown.split("\n") if ENDED.search(line)]
        if (
            lines
            and any(word.startswith(each) for each in subjects for word in words)
            and (command_of(other) or other.status == "ok")
            # After a restart, the recorded failure is over.
            and not _was_restarted(evidence, other)
        ):
            found.append((other, lines))
    return found


def _reads_started_log(evidence: Evidence, poll: EntryView) -> bool:
    """Whether a call looks at the file into which a background process of the agent writes."""
    commands = map(command_of, evidence.background_calls(poll.index))
    return any(file.rpartition("/")[2] in call_input(poll) for command in commands for file in _REDIRECT.findall(command))


_REDIRECT = lazy_pattern(r">{1,2} ?([\w./-]{3,120})")


def _was_restarted(evidence: Evidence, shown: EntryView) -> bool:
    """Whether something was started or changed after an output, which then may no longer hold."""
    return any(may_change(entry) for entry in evidence.changes(shown.index))


def _diagnose_ended_log(
    evidence: Evidence, last: EntryView, same: list[EntryView], other: EntryView, lines: list[str]
) -> Diagnosis:
    source = evidence.source(other)
    endings = list(
        dict.fromkeys(code(max((match.group(0) for match in ENDED.finditer(line)), key=len).strip(), 70) for line in lines)
    )[-3:]
    about = next((name for line in reversed(lines) for name in _QUOTED.findall(line) if plain_name(name)), None)
    named = f", about {code(about, 90)}" if about else ""
    cause = (
        f"{code(command_of(last) or tool_phrase(last), 90)} has answered the same {len(same)} times, and waiting can't "
        f"change it: what it waits for has failed. {capital(source)}"
        f" shows {' and '.join(endings)}{named}."
    )
    what = code(about, 90) if about else f"the reason, {endings[-1]}"
    step = (
        f"Stop polling. Find out about {what}{' (is that name right, and is it there?)' if about else ''}, correct "
        "it, and only then start it again; tell the user if you can't correct it."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(other, "\n".join(lines[-4:])), evidence.quote(last),
        check="Ask for the state again only after you have started something new.",
    )  # fmt: skip
