"""Something is polled that can't change any more: it has failed, or it is done."""

from __future__ import annotations

import re

from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.volatile_fields import blur
from ctxmgr.diagnose.calls import command_of, tool
from ctxmgr.diagnose.evidence import Evidence, call_key, clock, given, may_change
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "pollingFrozen"

_STATE = lazy_pattern(
    r"\b(?:state|status|phase|conclusion|outcome|result|job_status|runstate)\b[\"']?\s*[:=|]\s*[\"']?([A-Za-z_-]{3,30})",
    re.IGNORECASE,
)
_FAILED = lazy_pattern(r"^(?:fail(?:ed|ure)|cancell?ed|aborted|timed[_-]?out|rejected|crashed|expired)$", re.IGNORECASE)
_OF_JOBS = lazy_pattern(r"^(?:fail|error(?:ed)?|dead|killed|terminated|stopped)$", re.IGNORECASE)
"""States that are final for a job; a service may come back from them."""
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
_LEAST = 3
_FEW = 48
_PLAIN = lazy_pattern(r"[\w ,.()%-]+")


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return which final state is polled."""
    for entry in evidence.rounds:
        if entry.status != "ok" or evidence.failed(entry) or may_change(entry):
            continue
        same = [each for each in evidence.loop if call_key(each) == call_key(entry)]
        said = evidence.text(entry)
        if len(same) < _LEAST or len(said) > 4_000 or len({blur(evidence.text(each), ids=True) for each in same[-_LEAST:]}) > 1:
            continue
        states = _STATE.findall(said)
        if not states or _ALIVE.search(" ".join(states)):
            continue
        state = states[0] if len(states) == 1 or _FAILED.match(states[0]) or _DONE.match(states[0]) else states[-1]
        if _FAILED.match(state) or (_OF_JOBS.match(state) and _is_job(entry)):
            return _failed(evidence, entry, state, same)
        if _DONE.match(state) and _is_poll(entry, len(same)):
            return _done(evidence, entry, state, same)
    return None


def _is_poll(entry: EntryView, times: int) -> bool:
    return times > _LEAST or vocabulary.classify(entry.action, "", command_of(entry)) in ("poll", "paced")


def _is_job(entry: EntryView) -> bool:
    return (
        re.search(
            r"job|run|build|task|deploy|pipeline|workflow|release|import|export",
            given(entry),
            re.IGNORECASE,
        )
        is not None
    )


def _start(entry: EntryView, state: str, same: list[EntryView]) -> str:
    call = code(command_of(entry) or tool(entry), 80)
    return (
        f"{call} has answered {len(same)} times since{clock(same[0].ts).replace(' at', '') or ' it was first asked'} that the"
        f" state is {code(state, 40)}"
    )


def _failed(evidence: Evidence, entry: EntryView, state: str, same: list[EntryView]) -> Diagnosis:
    said = evidence.text(entry)
    reason = _REASON.search(said)
    words = reason.group(1).strip() if reason else ""
    plain = 0 < len(words) <= _FEW and _PLAIN.fullmatch(words) is not None
    why = f" The answer gives the reason: {code(words)}." if plain else " The answer gives a reason." if words else ""
    cause = f"{_start(entry, state, same)}. That is a final state, so waiting can't change it.{why}"
    look = "Find out what to do about the reason" if reason else "Look at the log of that job for the reason, or tell the user"
    step = f"Stop polling. {look}; only then start the work anew, as a new job."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), check="Ask for the state again only after you have started something new."
    )


def _done(evidence: Evidence, entry: EntryView, state: str, same: list[EntryView]) -> Diagnosis:
    cause = f"{_start(entry, state, same)}: what you wait for has happened."
    step = "Stop polling and go on with what was to come after it in the task."
    return diagnosis(KIND, cause, step, evidence.quote(entry))
