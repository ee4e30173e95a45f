"""Detect cycles: rounds of calls, work passed to and fro, and trouble that returns after help.

The last kind is a loop that comes back after a recovery, or a task that fails again: its failures escalate from attempts to
subtasks to tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from ctxmgr.base.light_dataclass import replace
from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake, asks_for_pending, is_paced, is_patient, is_poll_only
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep, excerpt
from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.comparison import MESSAGES, MessageText, event_text
from ctxmgr.detect.text.fingerprints import mask_numbers, mask_volatile
from ctxmgr.detect.text.vocabulary import delegates, hands_over, looks_for_news, passes_on, tells_trouble
from ctxmgr.log.fast_json import json_array, json_object, json_texts
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import FindingKind, Observation

_MAX_LENGTH_DIFFERENCE, _MAX_COMPARED = 24, 4_000
"""Maximum difference in length of similar answers, and maximum characters of each that are compared.

Other dates, ids and numbers change a length by less. Comparing lengths first avoids the blurring of most pairs.
"""


class _Counts(NamedTuple):
    """For each period p, how many of the latest steps in a row equal the step p places before, and how many are similar."""

    same: tuple[int, ...]
    alike: tuple[int, ...]


class CycleDetector(StepDetector):
    """Counts, for each period p, consecutive steps that equal the step p places before. A new question resets all counts.

    Answers that differ only in times, ids and numbers are similar. Numbers may be progress, so similar answers must meet
    three conditions: twice as many rounds, one act with the same outcome in each, and trouble reported in the last one.
    """

    kind: FindingKind = "cycle"
    wake = Wake.NEAR

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if this step completes a round, or continues it after its last needed repeat."""
        longest = min(self._settings.max_period, len(past))
        if not self._may_go_round(step, past, longest):
            self.state = ()
            return None
        query = step.query
        if self.state and self.state.same[1] >= self._settings.max_period and past[-1].query == query and step.same(past[-1]):
            return None  # still the same step, which the counters include already
        counts = self._count(step, past[len(past) - longest :])
        if counts.same[1] >= self._settings.max_period:
            return None  # the same step over and over, not a round of different ones
        rounds = self._settings.cycle_rounds
        for period in range(2, longest + 1):
            for count, needed in ((counts.same[period], rounds), (counts.alike[period], 2 * rounds)):
                # A round seen n times has n - 1 times as many steps that equal the one a period before.
                if count >= period * (needed - 1):
                    sighting = self._sighting(period, (*past[len(past) - period * needed + 1 :], step), needed)
                    if sighting is not None:
                        return sighting
        return None

    def _may_go_round(self, step: ObservedStep, past: Sequence[ObservedStep], longest: int) -> bool:
        """Whether a step may be part of a round of at most ``longest`` steps."""
        query = step.query
        for earlier in past[len(past) - longest :]:  # a plain loop: most steps end here
            if earlier.query == query:
                # Seven questions in turn, 8 s apart, go round though one is answered "pending": `_polls` looks at all of them.
                return not is_patient(past[-1], step, self._settings) or is_poll_only(past[-1], step, self._settings)
        return False  # a question that is new within the longest period breaks every round

    def _count(self, step: ObservedStep, past: Sequence[ObservedStep]) -> _Counts:
        size = self._settings.max_period + 1
        old: _Counts = self.state or _Counts((0,) * size, (0,) * size)
        same: list[int] = [0] * size
        alike: list[int] = [0] * size
        for period in range(1, len(past) + 1):
            earlier = past[-period]
            if earlier.query != step.query:
                continue
            if step.same(earlier):
                same[period] = old.same[period] + 1
            if same[period] or _is_alike(step, earlier):
                alike[period] = old.alike[period] + 1
        self.state = _Counts(tuple(same), tuple(alike))
        return self.state

    def _sighting(self, period: int, steps: tuple[ObservedStep, ...], rounds: int) -> Sighting | None:
        round_ = steps[-period:]
        queries = [step.query for step in round_]
        # If the questions of a round have a shorter period, only answers differ. A new answer is news, even if it alternates.
        for shorter in range(1, period):
            if period % shorter == 0 and queries == queries[shorter:] + queries[:shorter]:
                return None
        if is_paced(round_, self._settings) or self._polls(round_):
            return None
        if rounds > self._settings.cycle_rounds and not self._is_futile(round_, steps):
            return None
        confidence = 0.95 if rounds == self._settings.cycle_rounds else 0.75
        return Sighting("cycle", tuple(sorted(queries)), period, steps, rounds, confidence)

    def _is_futile(self, round_: Sequence[ObservedStep], steps: Sequence[ObservedStep]) -> bool:
        """Whether one act of the round had the same outcome each time, and an answer in the last round reports trouble."""
        acts = [step for step in round_ if step.meaning(self._settings.pollers) in ("mutation", "other")]
        constant = any(all(step.same(other) for other in steps if other.query == step.query) for step in acts)
        return constant and any(step.failed or tells_trouble(step.answer()) for step in round_)

    def _polls(self, round_: Sequence[ObservedStep]) -> bool:
        """Whether at least half of a round asks about something under way, with enough time for it to change.

        A single look at something pending, in a round of other questions, does not make the round a poll.
        """
        waiting = [step for step in round_ if asks_for_pending(step, self._settings)]
        if 2 * len(waiting) < len(round_):
            return False
        return any(is_poll_only(before, step, self._settings) for before, step in pairwise(round_) if step in waiting)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return the period that fits best, and how many rounds of it were seen."""
        rounds = self._settings.cycle_rounds
        counts: tuple[int, ...] = self.state.same if self.state else ()
        # Of periods that fit equally well, name the shortest: a round of 2 is also a round of 4.
        fits = [(count / period, period) for period, count in enumerate(counts) if period >= 2 and count]
        if not fits:
            return Opinion(self.kind, excerpt(step), 0, rounds, f"no round of 2 to {self._settings.max_period} steps came back")
        seen, period = max(fits, key=lambda fit: (fit[0], -fit[1]))
        count = int(seen) + 1
        why = f"period {period}: " + ("seen" if count >= rounds else f"{rounds - count} more rounds wanted")
        return Opinion(self.kind, excerpt(step), count, rounds, why)

    def reset(self) -> None:
        """Forget all counters."""
        self.state: _Counts | tuple[()] = ()


def _is_alike(step: ObservedStep, other: ObservedStep) -> bool:
    """Whether two answers to one question differ only in times, ids and numbers."""
    # `answer` returns the first call's answer only, so it does not describe a batch.
    if step.failed != other.failed or len(step.calls) > 1 or len(other.calls) > 1 or step.first.finish is None:
        return False
    one, two = step.answer(), other.answer()
    return -_MAX_LENGTH_DIFFERENCE <= len(one) - len(two) <= _MAX_LENGTH_DIFFERENCE and _mask_all(one) == _mask_all(two)


def _mask_all(text: str) -> str:
    return mask_numbers(mask_volatile(text[:_MAX_COMPARED], ids=True))


_MAX_AGENTS = 4
# The longest sighting has four agents in turn: 4 * rounds + 1 things passed on, 13 by default.
_MAX_WORDS = 32
_LEAVE_PING_PONG = 2
_MAX_NAME = 64
_NO_RUNS: tuple[int, ...] = (0,) * (_MAX_AGENTS + 1)


class _Word(NamedTuple):
    """One utterance of an agent: a message, or a ``step`` that hands something over."""

    speaker: tuple[str | None, str | None]
    what: MessageText | Hashable
    step: ObservedStep | None
    about: Hashable = None

    def repeats(self, other: _Word) -> bool:
        """Whether the same speaker uses the same words."""
        return self.speaker == other.speaker and self.what == other.what

    def is_about_the_same(self, other: _Word) -> bool:
        """Whether the same speaker hands over the same thing, in whatever words."""
        return self.speaker == other.speaker and self.about is not None and self.about == other.about

    def as_step(self) -> ObservedStep:
        """Return the utterance as a step of a round."""
        if isinstance(self.what, MessageText):
            return ObservedStep((Call.from_event(self.what.event, self.what.plain),))
        return cast("ObservedStep", self.step)

    def as_key(self) -> Hashable:
        """Return speaker and words, without the event that carried them."""
        return self.speaker, self.what.plain if isinstance(self.what, MessageText) else self.what


class _State(NamedTuple):
    """All utterances with the lengths of their cycles, and the same for the things passed on and for questions after agents."""

    words: tuple[_Word, ...]
    runs: tuple[int, ...]
    passed: tuple[_Word, ...] = ()
    passes: tuple[int, ...] = _NO_RUNS
    waits: tuple[_Word, ...] = ()
    waited: tuple[int, ...] = _NO_RUNS


class PingPongDetector:
    """Follows messages and hand-overs of all agents of a session, and counts how long they repeat with a period.

    A ping-pong is seen when the same words come for the third time although the same reply came twice. It is also seen when
    one thing (a ticket, a case) is passed on for the fourth time, in whatever words. A change by one of the agents in between
    starts a new conversation.

    Agents that only look for news of each other, with the same answer each time, wait for nothing. Twice as many rounds show
    that none of them does anything else.
    """

    kind: FindingKind = "pingPong"
    wake: int = Wake.ALWAYS
    hears = MESSAGES
    watchful = True
    session_wide = True

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: _State | None = None

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Take a hand-over. A change of the world ends the conversation."""
        start = step.first.start
        if hands_over(start.action):
            word = _Word((start.agent, start.process), (step.query, step.results()), step, _find_passed_on(start))
            return self._add(word)
        if not step.failed and looks_for_news(start.action):
            return self._wait(_Word((start.agent, start.process), (step.query, step.results()), step))
        self._stop_waiting(start.agent)
        changed = self.state is not None and not step.failed and step.changes(self._settings.pollers)
        if changed and self.state is not None:
            who = (start.agent, start.process)
            # Work of other agents does not stop the thing from going round: two desks return a ticket while a third deploys.
            mine = any(word.speaker == who for word in self.state.passed)
            passed, passes = ((), _NO_RUNS) if mine else (self.state.passed, self.state.passes)
            left = _State((), _NO_RUNS, passed, passes, self.state.waits, self.state.waited)
            self.state = left if passed or left.waits else None
        return None

    def _wait(self, word: _Word) -> Sighting | None:
        state = self.state or _State((), _NO_RUNS)
        waits, waited = _extend(state.waits, state.waited, word, _Word.repeats)
        self.state = state._replace(waits=waits, waited=waited)
        found = self._sighting(waits, waited, 2 * self._settings.handoff_rounds, _Word.as_key)
        if found is None or not _name_each_other(found.steps[-found.period :]):
            return None
        return replace(found, facts=(*found.facts, ("waits", True)))

    def _stop_waiting(self, agent: str | None) -> None:
        if self.state is not None and any(word.speaker[0] == agent for word in self.state.waits):
            left = self.state._replace(waits=(), waited=_NO_RUNS)
            self.state = left if left.words or left.passed else None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting if the conversation goes in circles."""
        text = event_text(event)
        if not text or event.agent is None:
            return None
        self._stop_waiting(event.agent)
        return self._add(_Word((event.agent, event.process), MessageText(event, text), None))

    def _add(self, word: _Word) -> Sighting | None:
        state = self.state or _State((), _NO_RUNS)
        words, runs = _extend(state.words, state.runs, word, _Word.repeats)
        passed, passes = state.passed, state.passes
        if word.about is not None:
            passed, passes = _extend(passed, passes, word, _Word.is_about_the_same)
        self.state = state._replace(words=words, runs=runs, passed=passed, passes=passes)
        rounds = self._settings.handoff_rounds
        found = self._sighting(words, runs, rounds, _Word.as_key)
        if found is None and word.about is not None:
            found = self._sighting(passed, passes, rounds + 1, lambda each: (each.speaker, each.about))
        return found

    def _sighting(
        self, words: Sequence[_Word], runs: Sequence[int], rounds: int, key_of: Callable[[_Word], Hashable]
    ) -> Sighting | None:
        for period in range(2, _MAX_AGENTS + 1):
            # One utterance of the last round is enough: no answer has changed what its speaker says.
            if runs[period] <= period * (rounds - 2):
                continue
            seen = words[-period * (rounds - 1) - 1 :]
            if len({said.speaker for said in seen[-period:]}) == period:  # an agent that answers itself is a monologue
                agents = sorted({str(said.speaker[0]) for said in seen[-period:]})
                return Sighting(
                    self.kind, frozenset(map(key_of, seen[-period:])), period, tuple(said.as_step() for said in seen), rounds,
                    0.85, leave=_LEAVE_PING_PONG, facts=(("agents", agents),), everyone=True,
                )  # fmt: skip
        return None

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often the same words went round."""
        rounds = self._settings.handoff_rounds
        if not hands_over(step.action):
            return Opinion(self.kind, excerpt(step), 0, rounds, "it hands nothing over to another agent")
        runs = self.state.runs if self.state else ()
        count = max((run // period + 1 for period, run in enumerate(runs) if period > 1 and run), default=1)
        return Opinion(self.kind, excerpt(step), count, rounds, "seen" if count >= rounds else "more wanted")

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        self.state = None


def _given_texts(start: Observation) -> list[str]:
    """Return the texts that a call was given as values."""
    return [value for value in json_object(start.input).values() if isinstance(value, str)]


def _name_each_other(round_: Sequence[ObservedStep]) -> bool:
    """Whether each agent of a round names another one of it."""
    agents = {step.first.start.agent for step in round_}
    return all(not (agents - {step.first.start.agent}).isdisjoint(_given_texts(step.first.start)) for step in round_)


def _extend(
    words: tuple[_Word, ...], runs: Sequence[int], word: _Word, is_same: Callable[[_Word, _Word], bool]
) -> tuple[tuple[_Word, ...], tuple[int, ...]]:
    """Return the words with a new one; and for each period p, how many of the last words equal the one p places before."""
    now = list(_NO_RUNS)
    for period in range(2, min(_MAX_AGENTS, len(words)) + 1):
        if is_same(words[-period], word):
            now[period] = runs[period] + 1
    return (*words, word)[-_MAX_WORDS:], tuple(now)


def _find_passed_on(start: Observation) -> Hashable:
    """Return the names and numbers in a call that passes something on (a ticket, a team); None if it has only words.

    A thing that goes round among agents gets new words each time, but keeps its number and its receivers.
    """
    if not passes_on(start.action) or not isinstance(start.input, dict):
        return None
    fields = cast("dict[object, object]", start.input)
    named = [
        (str(key), str(value)) for key, value in fields.items()
        # Words with spaces are talk. True and False, which are ints too, name nothing.
        if type(value) is int or (isinstance(value, str) and 0 < len(value) <= _MAX_NAME and " " not in value)
    ]  # fmt: skip
    # A single name is only the receiver: all tickets that go to "billing" would count as one thing.
    return tuple(sorted(named)) if len(named) > 1 else None


LOOP_SEEN = "loop_seen"
"""Type of the event by which the monitor reports that a loop was raised, or went on after its answer."""
# Identities are read from records, so a hostile log may name any number of loops.
_MAX_LOOPS = 32


class _LoopAnswers(NamedTuple):
    """The continuations given for one loop, and how often it came ``back`` after one."""

    continuations: tuple[ObservedStep, ...]
    back: int
    waiting: bool


class RecoveryLoopDetector:
    """Counts, for each loop by its identity, after how many continuations it came back."""

    kind: FindingKind = "recoveryLoop"
    wake: int = Wake.NEVER
    hears = frozenset({"continuation", LOOP_SEEN})
    watchful = False
    session_wide = True

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: dict[str, _LoopAnswers] = {}

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Ignore steps: only reported loops and continuations count."""
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting if a loop is back, or must be answered again, after enough continuations."""
        found: Sighting | None = None
        # An agent asked a question. The answer to it is no attempt to end its loop.
        if json_object(event.data).get("asked") is True:
            return None
        for identity in _identities(event.data):
            old = self.state.get(identity)
            if event.type == LOOP_SEEN:
                if old is None or not old.waiting:
                    continue
                new = old._replace(back=old.back + 1, waiting=False)
            else:
                step = ObservedStep((Call.from_event(event, identity),))
                previous = old or _LoopAnswers((), 0, False)
                # A second continuation while the first waits for its effect: the loop must be back, or nobody would ask.
                back = previous.back + previous.waiting
                new = _LoopAnswers((*previous.continuations, step)[-self._settings.window :], back, True)
            others = {name: answered for name, answered in self.state.items() if name != identity}
            while len(others) >= _MAX_LOOPS:
                del others[next(iter(others))]
            self.state = {**others, identity: new}
            if new.back >= self._settings.recovery_rounds:
                steps = new.continuations[-self._settings.recovery_rounds - 1 :]
                facts = (("loopIdentity", identity), ("cameBack", new.back))
                found = Sighting(self.kind, identity, 1, steps, len(steps), 0.9, facts=facts, everyone=True, at=event)
        return found

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often any loop came back."""
        back = max((answered.back for answered in self.state.values()), default=0)
        return Opinion(self.kind, "", back, self._settings.recovery_rounds, "it rests on continuations, not on single steps")

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        self.state = {}


def _identities(data: object) -> list[str]:
    return json_texts(json_array(json_object(data).get("answers"))[:64])


RESULTS = frozenset({"subtask_result", "task_result", "attempt_result"})
# Task names are recorded text, so a hostile log may hold any number of them.
_MAX_TASKS = 32
_LEFT_AFTER = 6
_PARTS = lazy_pattern(r"[/.:>]+")
_TASKS = ("task", "task_id", "taskId", "parent", "goal")
_SUBTASKS = ("subtask", "subtask_id", "subtaskId", "subtask_name", "subtaskName")
_NAMES = ("name", "title", "description")
_FAILED = frozenset({"error", "failed", "failure", "fail", "blocked", "denied", "exhausted", "aborted"})
_DONE = frozenset({"ok", "success", "succeeded", "completed", "complete", "done", "passed"})
_QUIET = ("query", "poll", "sleep", "paced", "gesture")


class _Attempts(NamedTuple):
    """The failed attempts at one subtask since its last success. ``by_result``: results of subtasks reported the failures."""

    failures: tuple[ObservedStep, ...]
    by_result: bool


class EscalatingFailureDetector:
    """Counts the failed attempts of each task that entries or results name.

    The result of a subtask is an attempt if it says so itself; so is delegated work that comes back failed. Any other failed
    entry is an attempt only if it was meant to change something: a failed question is none. Two failed attempts put the
    subtask in doubt (a loop if its results reported them). Twice as many, or a second subtask of the same task in doubt, put
    the task itself in doubt.
    """

    kind: FindingKind = "escalatingFailure"
    wake: int = Wake.TASK
    hears = RESULTS
    watchful = False
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: dict[str, _Attempts] = {}

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the step is one failed attempt too many."""
        task = _step_task(step)
        if not task or step.meaning(self._settings.pollers) in _QUIET:
            return None
        return self._count_attempt(task, step, step.failed, by_result=False)

    def hear(self, event: Observation) -> Sighting | None:
        """Take the result of a subtask."""
        task, failed = _result(event)
        if failed is None:
            return None
        return self._count_attempt(task, ObservedStep((Call.from_event(event, task),)), failed, by_result=True)

    def _count_attempt(self, task: str, step: ObservedStep, failed: bool, *, by_result: bool) -> Sighting | None:
        old = self.state.get(task, _Attempts((), by_result))
        if not failed:
            self.state = {name: attempts for name, attempts in self.state.items() if name != task}
            return None
        new = _Attempts((*old.failures, step)[-self._settings.window :], by_result or old.by_result)
        others = {name: attempts for name, attempts in self.state.items() if name != task}
        while len(others) >= _MAX_TASKS:
            del others[next(iter(others))]
        self.state = {**others, task: new}
        needed = self._settings.escalate_attempts
        if len(new.failures) < needed:
            return None
        # Names like "build/tests" contain their parent. A second failing subtask of one parent is a failure of the task.
        parent = _parent(task)
        siblings = sum(
            len(attempts.failures) >= needed for name, attempts in self.state.items() if parent and _parent(name) == parent
        )
        climbed = siblings >= needed or len(new.failures) >= 2 * needed
        facts = (("task", task), ("level", "task" if climbed else "subtask"), ("failedSubtasks", max(1, siblings)))
        return Sighting(
            self.kind, ("task", task), 1, new.failures[-needed:], needed, 0.85 if climbed or new.by_result else 0.6,
            severity="loop" if climbed or new.by_result else "warn", leave=_LEFT_AFTER, facts=facts,
        )  # fmt: skip

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how many attempts of the step's task failed."""
        needed = self._settings.escalate_attempts
        task = _step_task(step)
        if not task:
            return Opinion(self.kind, excerpt(step), 0, needed, "the entry names no task")
        count = len(self.state[task].failures) if task in self.state else 0
        return Opinion(
            self.kind, f"task {task[:80]}", count, needed, "seen" if count >= needed else "more failed attempts wanted"
        )

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        self.state = {}


def _step_task(step: ObservedStep) -> str:
    """Return the task that a step belongs to or hands over; "" if there is none."""
    start = step.first.start
    if start.task is not None:
        return start.task[:200]
    if isinstance(start.input, dict) and len(step.calls) == 1 and delegates(start.action):
        return _task_name(cast("dict[str, object]", start.input), None)
    return ""


def _parent(task: str) -> str:
    parts = _PARTS.split(task)
    return "/".join(parts[:-1])


def _task_name(fields: Mapping[str, object], given: object) -> str:
    """Return the name of a result's task: its own name below that of its parent, else its input.

    Results are attempts at one subtask only if all parts of this name are equal.
    """
    own = _first_value(fields, _SUBTASKS) or _first_value(fields, _NAMES)
    parts = [part for part in (_first_value(fields, _TASKS), own) if part]
    if not parts:
        parts = [_first_value(fields, ("id",)) or (fingerprints.canonical(given) or "" if given else "")]
    return "/".join(parts)[:200]


def _first_value(fields: Mapping[str, object], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, dict):
            # The task may be an object: {"task": {"id": "m3"}}.
            value = _first_value(cast("dict[str, object]", value), ("id", *_NAMES)) or None
        if isinstance(value, str | int) and str(value):
            return str(value)
    return ""


def _result(event: Observation) -> tuple[str, bool | None]:
    """Return the task that an event is about, and whether it failed (None: the event does not say)."""
    if not isinstance(event.data, dict):
        return "", None
    data = cast("dict[str, object]", event.data)
    inner = data.get("input")
    # The event's own fields override the input: a "status" in the input is a request, not an outcome.
    fields = {**cast("dict[str, object]", inner), **data} if isinstance(inner, dict) else data
    name = _task_name(fields, cast("object", inner))
    # A boolean decides. The texts below may be prose, so only a text that is a known word as a whole counts.
    for key in ("success", "ok", "passed"):
        if isinstance(fields.get(key), bool):
            return name, not fields[key]
    for key in ("result", "status", "outcome", "output"):
        value = fields.get(key)
        if isinstance(value, str) and value.lower() in _FAILED | _DONE:
            return name, value.lower() in _FAILED
    return name, None
