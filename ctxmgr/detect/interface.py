"""The interface of a detector (steps in, sightings out, one instance per agent and process); what is honest polling."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, Protocol

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import ObservedStep
from ctxmgr.detect.text.vocabulary import is_lookout, is_own_limit
from ctxmgr.types.finding import FindingKind, Observation


class Wake:
    """Flags of a step that wake a sleeping detector. A detector that remembers nothing sees only steps with its flags.

    ``AGAIN``: its question was asked before, within the window. ``FAILED``: it ended in an error. ``ECHO``: it got the same
    answer as the last step with the same action. ``SPAN``: its input names a part of something (a range of lines).
    ``CHANGE``: its input holds a change or a complete new content. ``TASK``: it belongs to a task. ``SLEEP``: it may be a
    pause. ``IN_BATCH``: the step before it was a parallel batch. Three flags refine ``AGAIN``: ``NEXT`` directly follows the
    step with the same question, ``NEAR`` follows within the longest period, ``REPEATED`` also got the same answer. A detector
    that wakes on ``REPEATED`` and remembers something sees all steps that are ``AGAIN``.
    """

    # Plain integers, because combining members of enum.Flag costs more than the detectors themselves.
    AGAIN = 1
    FAILED = 2
    ECHO = 4
    SPAN = 8
    CHANGE = 16
    TASK = 32
    SLEEP = 64
    NEVER = 0
    ALWAYS = 128
    IN_BATCH = 256
    NEXT = 512
    NEAR = 1024
    REPEATED = 2048


@dataclass(frozen=True, slots=True)
class Sighting:
    """A pattern that holds as of the step just shown.

    Attributes:
        kind: kind of loop.
        key: equal for the same loop within one process, in any rotation.
        period: steps of one round.
        steps: the steps that prove it, oldest first; the last one is the step just shown.
        rounds: number of rounds in ``steps``.
        confidence: 0 to 1.
        error: the shared error, for kinds that rest on one.
        severity: ``warn`` if the pattern is not yet proof.
        leave: number of different steps outside the loop after which it was left; None for the number in the settings.
        facts: further evidence, as plain JSON values by name.
        everyone: it is about all agents together.
        at: the record that raised it, if that is not the last step.
        total: how often the pattern was seen in all, if that is more than ``steps`` show.
        over: the pattern ended again within the record that completed it.
    """

    kind: FindingKind
    key: Hashable
    period: int
    steps: tuple[ObservedStep, ...]
    rounds: int
    confidence: float
    error: str | None = None
    severity: Literal["warn", "loop", "hung"] = "loop"
    leave: int | None = None
    facts: tuple[tuple[str, Any], ...] = ()
    everyone: bool = False
    at: Observation | None = None
    total: int | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class Opinion:
    """A detector's opinion on one step.

    Attributes:
        detector: kind of finding it looks for.
        compared: excerpt of what it compared.
        count: how often the pattern was seen so far, this step included (0: the step is not part of it).
        threshold: count from which there is a finding.
        why: why it raised nothing, or that it saw the pattern.
        rule: name of its rule, if several detectors look for one kind of finding.
    """

    detector: FindingKind
    compared: str
    count: int
    threshold: int
    why: str
    rule: str | None = None


class Detector(Protocol):
    """One pattern.

    Every detector obeys these rules (the contract battery in the tests checks them):

    * The cost of a step does not grow with the history: ``past`` holds ``settings.window`` steps.
    * All its memory is ``state``, a value that is replaced and never changed. So a reference to it is enough to take steps back
      (after a broken stream, or for a late member of a parallel batch).
    * ``state`` is falsy while the detector remembers nothing. Then it sees only the steps that ``wake`` names. If it is not
      ``watchful``, it never sees any others.
    * From the threshold on, it returns a sighting for every step that continues the pattern (`OpenFinding` collects them).
    * It never raises on recorded content.

    Attributes:
        kind: kind of finding it looks for.
        wake: flags of the steps that it sees while it remembers nothing.
        hears: types of the events that it sees.
        watchful: it sees every step while it remembers something.
        session_wide: one instance follows all agents of the session together.
    """

    kind: FindingKind
    wake: int
    hears: frozenset[str]
    watchful: bool
    session_wide: bool
    state: Any

    def __init__(self, settings: DetectSettings) -> None: ...

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Take one more step. ``past`` holds the steps before it, newest last."""
        ...

    def hear(self, event: Observation) -> Sighting | None:
        """Take an event that is no reset (a message, a thought, a compaction)."""
        ...

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return its opinion on the step just shown, or on a step that it was not shown."""
        ...

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        ...


class StepDetector:
    """Base class of detectors that look only at steps and ignore events."""

    kind: FindingKind
    wake: int = Wake.ALWAYS
    hears: frozenset[str] = frozenset()
    watchful = True
    session_wide = False
    state: Any

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.reset()

    def hear(self, event: Observation) -> Sighting | None:
        """Ignore events: a message between two calls does not make the calls different."""
        return None

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        self.state = None


def seconds_between(earlier: ObservedStep, later: ObservedStep) -> float | None:
    """Return the seconds between the starts of two steps; None without times."""
    if earlier.started is None or later.started is None:
        return None
    return later.started - earlier.started


def asks_for_pending(step: ObservedStep, settings: DetectSettings) -> bool:
    """Whether the step asks about something that is still under way."""
    return not step.failed and (step.is_pending or step.meaning(settings.pollers) == "poll")


def is_patient(before: ObservedStep, step: ObservedStep, settings: DetectSettings) -> bool:
    """Whether ``step`` came so long after the step ``before`` it that its question is a new one.

    A poll may also wait inside the call. Any other query must follow a long idle time. Failures are patient only if waiting
    can cure them: rate limits and unreachable servers, but not a command that exceeds its own time limit.
    """
    if step.meaning(settings.pollers) == "paced" and (step.transient or not step.failed):  # it slept before it asked
        return True
    if step.world != before.world and not step.falls_short and step.meaning(settings.pollers) in ("query", "poll"):
        return True  # another agent has changed something, so the same question is a new one
    idle, longest = _waiting_seconds(before, step)
    if longest < settings.poll_gap:
        return False
    if step.failed:
        return step.transient and idle >= settings.poll_gap and not is_own_limit(step.first.error())
    if asks_for_pending(step, settings):
        return True
    return idle >= settings.idle_gap and step.meaning(settings.pollers) not in ("mutation", "sleep")


def is_poll_only(before: ObservedStep, step: ObservedStep, settings: DetectSettings) -> bool:
    """Whether a step is patient only because it asks about something under way, not because of a long idle time."""
    if step.world != before.world or not asks_for_pending(step, settings) or step.meaning(settings.pollers) == "paced":
        return False
    idle, longest = _waiting_seconds(before, step)
    return idle < settings.idle_gap and longest >= settings.poll_gap


def _waiting_seconds(before: ObservedStep, step: ObservedStep) -> tuple[float, float]:
    """Return the seconds between two steps, and the longer of these and those inside the second; zeros without times."""
    if step.started is None or before.started is None:
        return 0.0, 0.0
    idle = step.started - (before.started if before.ended is None else before.ended)
    # A call that blocks until something happens waits inside itself, so both kinds of waiting count.
    return idle, max(idle, 0.0 if step.ended is None else step.ended - step.started)


def backs_off(previous_gap: float | None, now_gap: float | None, step: ObservedStep) -> bool:
    """Whether a retry after trouble of the infrastructure waited longer than the one before; gaps in seconds."""
    # Waits are at least a second. A change from 0.2 s to 0.5 s is only the duration of the calls.
    if previous_gap is None or now_gap is None or now_gap < 1:
        return False
    # At least a fifth longer: a smaller difference may be the jitter of a constant delay.
    return now_gap > previous_gap * 1.2 and step.transient


def rounds_needed(step: ObservedStep, settings: DetectSettings, foreseen: bool = False) -> int:
    """Return how many identical steps make a loop of this one; more if the log can't show whether it waited.

    A log without results needs one more. The exception is a step with a ``foreseen`` answer that reads what does not change
    by itself: reading it again brings nothing new, recorded or not.
    """
    usual = settings.repeat_rounds
    if step.first.finish is None:
        reads = step.meaning(settings.pollers) == "query" and not is_lookout(step.first.start)
        usual += 0 if foreseen and reads else 1
    # Without times, a patient client and a tight loop look the same, so many more rounds are needed.
    if step.failed:
        return max(usual, settings.transient_rounds) if step.started is None and step.transient else usual
    if step.meaning(settings.pollers) == "gesture":
        return max(usual, settings.gesture_rounds)
    if step.started is None and asks_for_pending(step, settings):
        return max(usual, settings.poll_rounds)
    return usual


def is_paced(round_: Sequence[ObservedStep], settings: DetectSettings) -> bool:
    """Whether a round is a poll with a pause: a sleep, besides queries and failures that waiting may cure."""
    paused = False
    for step in round_:
        meaning = step.meaning(settings.pollers)
        if meaning in ("sleep", "paced"):
            paused = True
        elif step.failed:
            if not step.transient:
                return False
        elif meaning == "mutation" or (meaning == "other" and not step.is_pending):
            return False
    return paused
