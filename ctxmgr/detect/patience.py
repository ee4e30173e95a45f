"""Tell waiting from spinning: the same answer again is patience when time was given for it to change."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.detect import vocabulary
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Step


def gap(earlier: Step, later: Step) -> float | None:
    """Return the seconds from the start of one step to the start of the other, None without times."""
    if earlier.started is None or later.started is None:
        return None
    return later.started - earlier.started


def _idle(earlier: Step, later: Step) -> float | None:
    ended = earlier.ended if earlier.ended is not None else earlier.started
    return None if ended is None or later.started is None else later.started - ended


def waits(step: Step, settings: DetectSettings) -> bool:
    """Whether the step asks after something that is still under way."""
    if step.failed:
        return False
    return step.meaning(settings.pollers) == "poll" or vocabulary.is_waiting(step.answer())


def is_patient(earlier: Step, later: Step, settings: DetectSettings) -> bool:
    """Whether two identical steps lie so far apart that the second one is a new question.

    A poll counts from start to start, since many polls wait inside the call. Any other query must have been idle for
    long. Failures are patient only where waiting can cure them: rate limits and unreachable servers, not a command
    that itself runs into its time limit.
    """
    between = gap(earlier, later)
    if between is None or between < settings.poll_gap:
        return False
    meaning = later.meaning(settings.pollers)
    if later.failed:
        error = later.first.error()
        return vocabulary.is_transient(error) and not _own_timeout(error)
    if meaning in ("mutation", "sleep"):
        return False
    if waits(later, settings):
        return True
    idle = _idle(earlier, later)
    return idle is not None and idle >= settings.idle_gap


def backs_off(previous_gap: float | None, now_gap: float | None, later: Step) -> bool:
    """Whether a retry after trouble of the infrastructure waited longer than the one before."""
    if previous_gap is None or now_gap is None or not later.failed:
        return False
    return now_gap > previous_gap * 1.2 and now_gap >= 1 and vocabulary.is_transient(later.first.error())


def rounds_needed(step: Step, settings: DetectSettings, usual: int) -> int:
    """Return how many identical steps make a loop of this one; more where the log can't show whether it waited."""
    if step.failed:
        if step.started is None and vocabulary.is_transient(step.first.error()):
            return max(usual, settings.transient_rounds)
        return usual
    if step.meaning(settings.pollers) == "gesture":
        return max(usual, settings.gesture_rounds)
    if step.started is None and waits(step, settings):
        return max(usual, settings.poll_rounds)
    return usual


def is_paced(round_: Sequence[Step], settings: DetectSettings) -> bool:
    """Whether a round is a poll with a pause in it: a sleep beside queries and failures that waiting may cure."""
    paused = False
    for step in round_:
        meaning = step.meaning(settings.pollers)
        if meaning == "sleep":
            paused = True
        elif step.failed:
            if not vocabulary.is_transient(step.first.error()):
                return False
        elif meaning == "mutation" or (meaning == "other" and not waits(step, settings)):
            return False
    return paused


def _own_timeout(error: str) -> bool:
    text = error[:400].lower()
    return "timed out after" in text or "command timed out" in text or "timeout after" in text
