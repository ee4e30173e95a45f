"""Tell honest polling from a tight loop."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Step
from ctxmgr.detect.text.vocabulary import is_lookout, is_own_limit


def gap(earlier: Step, later: Step) -> float | None:
    """Return the seconds from the start of one step to the start of the other, None without times."""
    if earlier.started is None or later.started is None:
        return None
    return later.started - earlier.started


def waits(step: Step, settings: DetectSettings) -> bool:
    """Whether the step asks after something that is still under way."""
    return not step.failed and (step.waiting or step.meaning(settings.pollers) == "poll")


def is_patient(before: Step, step: Step, settings: DetectSettings) -> bool:
    """Whether ``step`` came so long after the step ``before`` it that its question is a new one.

    A poll may have waited inside the call too. Any other query must have been idle for long. Failures are patient only
    where waiting can cure them: rate limits and unreachable servers, not a command that runs into its own time limit.
    """
    if step.meaning(settings.pollers) == "paced" and (step.transient or not step.failed):  # it slept before it asked
        return True
    if step.world != before.world and not step.falls_short and step.meaning(settings.pollers) in ("query", "poll"):
        return True  # another agent has changed something since: asking again is asking anew
    if step.started is None or before.started is None:
        return False
    idle = step.started - (before.started if before.ended is None else before.ended)
    inside = 0.0 if step.ended is None else step.ended - step.started
    # A call that blocks until something happens waits inside of itself, so either kind of waiting counts.
    if idle < settings.poll_gap and inside < settings.poll_gap:
        return False
    if step.failed:
        return step.transient and idle >= settings.poll_gap and not is_own_limit(step.first.error())
    if waits(step, settings):
        return True
    return idle >= settings.idle_gap and step.meaning(settings.pollers) not in ("mutation", "sleep")


def is_poll_only(before: Step, step: Step, settings: DetectSettings) -> bool:
    """Whether a step is patient only because it asks after something under way, not for how long it was idle."""
    if step.world != before.world or not waits(step, settings) or step.meaning(settings.pollers) == "paced":
        return False
    if step.started is None or before.started is None:
        return False
    idle = step.started - (before.started if before.ended is None else before.ended)
    inside = 0.0 if step.ended is None else step.ended - step.started
    return idle < settings.idle_gap and max(idle, inside) >= settings.poll_gap


def backs_off(previous_gap: float | None, now_gap: float | None, step: Step) -> bool:
    """Whether a retry after trouble of the infrastructure waited longer than the one before."""
    if previous_gap is None or now_gap is None or now_gap < 1:
        return False
    # A fifth longer at least: less may be the jitter of a constant delay.
    return now_gap > previous_gap * 1.2 and step.transient


def rounds_needed(step: Step, settings: DetectSettings, foreseen: bool = False) -> int:
    """Return how many identical steps make a loop of this one; more where the log can't show whether it waited.

    Where it holds no results, one more is wanted; but not of steps whose answer is ``foreseen`` and that read what
    does not change of itself: reading it again brought nothing new, recorded or not.
    """
    usual = settings.repeat_rounds
    if step.first.finish is None:
        reads = step.meaning(settings.pollers) == "query" and not is_lookout(step.first.start)
        usual += 0 if foreseen and reads else 1
    # Without times a patient client and a tight loop look the same, so the log must show many more rounds.
    if step.failed:
        return max(usual, settings.transient_rounds) if step.started is None and step.transient else usual
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
        if meaning in ("sleep", "paced"):
            paused = True
        elif step.failed:
            if not step.transient:
                return False
        elif meaning == "mutation" or (meaning == "other" and not step.waiting):
            return False
    return paused
