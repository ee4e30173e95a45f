"""Detect calls that keep failing: with one error, in a row, after refusals, with a missing tool, or in a full context."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake, backs_off, is_patient, seconds_between
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, ObservedStep, excerpt
from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.detect.text.comparison import MESSAGES, PATH_KEYS, call_target, event_text
from ctxmgr.log.fast_json import json_object
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import FindingKind, Observation

_MAX_STREAKS = 16


class _ErrorStreak(NamedTuple):
    """Failures with one error since the world last changed: all of them, and the latest ones without a success between."""

    failures: tuple[ObservedStep, ...]
    unbroken: tuple[ObservedStep, ...]
    gap: float | None


class ErrorRepetitionDetector(StepDetector):
    """Keeps a streak for each error.

    A first failure is kept under None until a second one comes. Most failures come alone, and finding the cause of an error
    costs more than everything else.

    There are two rules. First: one call fails with one error three times, and nothing between could have changed that (an
    edit could, a read could not). Second: one *specific* error comes back under varying calls. Four times in a row are a
    suspicion, since an agent that varies a call is trying something; the fifth proves that it does not help. "Exit code 1" is
    not specific. Trouble of the infrastructure (rate limits, time-outs) is not the agent's fault.
    """

    kind: FindingKind = "errorRepetition"
    wake = Wake.FAILED

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the step's error has come back often enough."""
        if not step.failed:
            if self.state:
                self.state = self._after_success(step)
            return None
        if step.first.finish is not None and step.first.finish.status == "denied":
            return None  # a refusal is an answer by a person or a rule, not a failure of the call
        if not self.state:
            self.state = {None: _ErrorStreak((step,), (step,), None)}
            return None
        self._name_error()
        core = fingerprints.error_core(step.first.error())
        streak = self._extend(core, step, past)
        # Removed and inserted again as the newest, so that the oldest streak is dropped first.
        streaks = {error: self._without_query(other, step) for error, other in self.state.items() if error != core}
        while len(streaks) >= _MAX_STREAKS:
            del streaks[next(iter(streaks))]
        streaks[core] = streak
        self.state = streaks
        return self._sighting(core, streak, past)

    def _name_error(self) -> None:
        """Determine the error of a failure that was kept without one."""
        alone = self.state.get(None)
        if alone is not None:
            self.state = {fingerprints.error_core(alone.failures[-1].first.error()): alone}

    def _extend(self, core: str, step: ObservedStep, past: Sequence[ObservedStep]) -> _ErrorStreak:
        old = self.state.get(core)
        if old is None or step.number - old.failures[-1].number > self._settings.error_gap:
            return _ErrorStreak((step,), (step,), None)
        last = old.failures[-1]
        gap = seconds_between(last, step)
        if is_patient(past[-1] if past else last, step, self._settings) or backs_off(old.gap, gap, step):
            return _ErrorStreak((step,), (step,), gap)
        keep = self._settings.window
        return _ErrorStreak((*old.failures, step)[-keep:], (*old.unbroken, step)[-keep:], gap)

    @staticmethod
    def _without_query(streak: _ErrorStreak, step: ObservedStep) -> _ErrorStreak:
        """Return the streak without a call that has now failed differently: that is a new answer to it."""
        if any(failure.query == step.query for failure in streak.failures[:-1]):
            failures = tuple(failure for failure in streak.failures if failure.query != step.query)
            return streak._replace(failures=failures or streak.failures[-1:])
        return streak

    def _after_success(self, step: ObservedStep) -> dict[str | None, _ErrorStreak]:
        meaning = step.meaning(self._settings.pollers)
        if meaning in ("mutation", "other"):
            return {}  # the world may have changed
        if meaning == "sleep":  # waiting cures only trouble of the infrastructure
            return {error: streak for error, streak in self.state.items() if not streak.failures[-1].transient}
        streaks: dict[str | None, _ErrorStreak] = {}
        for error, streak in self.state.items():
            failures = tuple(failure for failure in streak.failures if failure.query != step.query)
            if failures:
                # The action has now succeeded, so the error does not come from the tool.
                actions = {failure.action for failure in streak.unbroken}
                unbroken = () if step.action in actions else streak.unbroken
                streaks[error] = streak._replace(failures=failures, unbroken=unbroken)
        return streaks

    def _sighting(self, core: str, streak: _ErrorStreak, past: Sequence[ObservedStep]) -> Sighting | None:
        step = streak.failures[-1]
        settings = self._settings.for_action(step.action)
        same = tuple(failure for failure in streak.failures if failure.query == step.query)
        transient = step.transient
        # Without times, growing waits look like a tight loop, so many more rounds are needed.
        untimed = transient and step.started is None
        needed = settings.transient_rounds if untimed else settings.error_same_rounds
        if len(same) >= needed and not _is_round(same, past):
            return Sighting("errorRepetition", core, 1, same[-needed:], needed, 0.9, core)
        tried = len({failure.query for failure in streak.unbroken})
        needed = settings.transient_rounds if transient else settings.error_varied_rounds
        # Fewer than three different calls are a repetition or an alternation, which have their own detectors.
        if len(streak.unbroken) < needed or tried < 3 or not fingerprints.is_specific(core):
            return None
        proved = transient or len(streak.unbroken) >= settings.error_varied_loop_rounds
        return Sighting(
            "errorRepetition", core, 1, streak.unbroken[-needed:], needed, 0.8 if proved else 0.6, core,
            severity="loop" if proved else "warn",
        )  # fmt: skip

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often this error came, from this call or from any call."""
        settings = self._settings.for_action(step.action)
        if not step.failed:
            return Opinion(self.kind, excerpt(step), 0, settings.error_same_rounds, "it did not fail")
        self._name_error()
        core = fingerprints.error_core(step.first.error())
        streak = self.state.get(core)
        if streak is None:
            return Opinion(self.kind, fingerprints.one_line(core), 0, settings.error_same_rounds, "a refusal, not a failure")
        same = sum(failure.query == step.query for failure in streak.failures)
        count, needed, why = same, settings.error_same_rounds, "more failures of this call wanted"
        if len(streak.unbroken) > same:
            count, needed = len(streak.unbroken), settings.error_varied_rounds
            why = "more failures wanted" if fingerprints.is_specific(core) else "the error says too little to be one cause"
        return Opinion(
            self.kind, fingerprints.one_line(core), count, needed, "seen" if self._sighting(core, streak, past) else why
        )

    def reset(self) -> None:
        """Forget all streaks."""
        self.state: dict[str | None, _ErrorStreak] = {}


def _is_round(same: tuple[ObservedStep, ...], past: Sequence[ObservedStep]) -> bool:
    """Whether the steps between the last failures repeat as well. Then the round is the pattern, not the error."""
    length = same[-1].number - same[-2].number
    # Consecutive failures have no round between them.
    if length < 2 or len(past) < 2 * length - 1:
        return False
    return all(past[-place].query == past[-place - length].query for place in range(1, length))


_RULE = "in a row"
_PROVIDER = None
"""Key for the provider's errors beside the keys for actions. No action can have it, since names of actions are texts."""


class _Streak(NamedTuple):
    """Consecutive failures. ``cause`` is determined only when a second one comes, because most come alone."""

    steps: tuple[ObservedStep, ...]
    cause: str | None


class FailureStreakDetector(StepDetector):
    """Counts failures of one action that are equal once the parts of the input are removed from the error.

    "Plan P7 not found" after "Plan P6 not found" has one cause. So has an error that names nothing ("not found") if it comes
    back time after time. How much that proves depends on the call:

    * a refused login is one cause whatever was asked for, and so is a time limit that call after call exceeds;
    * changes of one target: every attempt was wrong;
    * changes of, and questions about, different things by name: more of them are needed;
    * searches, commands, and reads of one path after another are exploration, whose misses are answers: only a late suspicion.

    Successful questions may lie between. A success of the action itself, or of any change, ends the streak. Errors that the
    log reports as events (the model's provider refused) are a streak of their own; any success and any message end it.
    """

    kind: FindingKind = "errorRepetition"
    wake = Wake.FAILED
    hears = MESSAGES | {"error"}

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the action has failed alike often enough."""
        if not step.failed:
            if self.state and self._ends_streak(step):
                self.state = {}
            return None
        # Refusals have their own detector, and transient trouble proves nothing.
        if len(step.calls) > 1 or _is_refused(step) or (step.transient and not vocabulary.is_own_limit(step.first.error())):
            return None
        streaks: dict[str | None, _Streak] = self.state
        old = streaks.get(step.action)
        if old is None or step.number - old.steps[-1].number > self._settings.error_gap:
            streak = _Streak((step,), None)
        else:
            cause = _failure_cause(step)
            known = old.cause if old.cause is not None else _failure_cause(old.steps[-1])
            keep = self._settings.window
            streak = _Streak((*old.steps, step)[-keep:], cause) if cause == known else _Streak((step,), cause)
        # Another action's failure begins a new streak. The provider's errors are events, so it does not end their streak.
        self.state = {step.action: streak} | {name: other for name, other in streaks.items() if name is _PROVIDER}
        return self._sighting(streak)

    def _ends_streak(self, step: ObservedStep) -> bool:
        meaning = step.meaning(self._settings.pollers)
        return step.action in self.state or _PROVIDER in self.state or meaning in ("mutation", "other")

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting if this is one error of the provider too many."""
        message = event_text(event)
        if event.type != "error":
            if message and _PROVIDER in self.state:
                self.state = {name: other for name, other in self.state.items() if name is not _PROVIDER}
            return None
        if not message:
            return None
        cause = fingerprints.error_core(message)
        old: _Streak | None = self.state.get(_PROVIDER)
        step = ObservedStep((Call.from_event(event, cause),))
        steps = (*old.steps, step)[-self._settings.window :] if old is not None and old.cause == cause else (step,)
        self.state = {**self.state, _PROVIDER: _Streak(steps, cause)}
        transient = vocabulary.is_transient(message)
        needed = self._settings.error_same_rounds
        if len(steps) < needed:
            return None
        # An overloaded provider (529) recovers by itself, so a few such errors are only a suspicion.
        proved = len(steps) >= self._settings.transient_rounds if transient else True
        return Sighting(
            self.kind, (_PROVIDER, cause), 1, steps[-needed:], needed, 0.8 if proved else 0.6,
            severity="loop" if proved else "warn", leave=1, facts=(("said", fingerprints.one_line(message, 300)),),
        )  # fmt: skip

    def _sighting(self, streak: _Streak) -> Sighting | None:
        count = len(streak.steps)
        if streak.cause is None or count < self._settings.error_varied_rounds:
            return None
        warned, proved = _rounds_needed(streak, self._settings.for_action(streak.steps[-1].action))
        # This detector is for varying input. It ignores one call that fails over and over.
        tried = len({step.query for step in streak.steps[-warned:]})
        if count < warned or tried < min(3, warned):
            return None
        is_proved = proved is not None and count >= proved
        return Sighting(
            self.kind, (streak.steps[-1].action, streak.cause), 1, streak.steps[-warned:], warned, 0.75 if is_proved else 0.5,
            streak.cause, severity="loop" if is_proved else "warn",
        )  # fmt: skip

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often the action has failed alike."""
        settings = self._settings.for_action(step.action)
        streak: _Streak | None = self.state.get(step.action)
        if not step.failed or streak is None:
            why = "a refusal, or trouble that may pass" if step.failed else "it did not fail"
            return Opinion(self.kind, excerpt(step), 0, settings.failing_rounds, why, _RULE)
        needed = _rounds_needed(streak, settings)[0]
        why = "seen" if self._sighting(streak) else "more failures in a row wanted, of different calls"
        compared = fingerprints.one_line(streak.cause or step.first.error())
        return Opinion(self.kind, compared, len(streak.steps), needed, why, _RULE)

    def reset(self) -> None:
        """Forget all failures."""
        self.state: dict[str | None, _Streak] = {}


def _failure_cause(step: ObservedStep) -> str:
    call = step.first
    return fingerprints.error_core(
        fingerprints.without_input(call.error()[-fingerprints.MAX_TEXT :], cast("object", call.start.input))
    )


def _is_refused(step: ObservedStep) -> bool:
    return step.first.finish is not None and step.first.finish.status == "denied"


def _rounds_needed(streak: _Streak, settings: DetectSettings) -> tuple[int, int | None]:
    """Return the number of failures for a warning, and the number that proves a loop (None: no number does)."""
    last = streak.steps[-1]
    # Before `_explores`: a 401 at one address after another would look like a search, which is never proof.
    if vocabulary.is_login_error(streak.cause or ""):
        return settings.error_varied_rounds, settings.error_varied_loop_rounds
    # Also before `_explores`: every command counts as a search, but a command that exceeds its limit finds nothing.
    if vocabulary.is_own_limit(last.first.error()):
        return settings.error_varied_rounds, settings.failing_rounds
    if _explores(streak.steps, settings) or not fingerprints.says_anything(streak.cause or ""):
        return settings.failing_loop_rounds, None
    about = {call_target(step.first.start) for step in streak.steps[-settings.failing_rounds :]}
    if last.meaning(settings.pollers) in ("mutation", "other") and len(about) == 1 and about != {""}:
        return settings.error_varied_rounds, settings.failing_rounds
    return settings.failing_rounds, settings.failing_loop_rounds


def _explores(steps: Sequence[ObservedStep], settings: DetectSettings) -> bool:
    """Whether the calls look for something: they search, run commands, or read one path after another."""
    start = steps[-1].first.start
    if vocabulary.searches(start):
        return True
    if steps[-1].meaning(settings.pollers) != "query":
        return False
    return len({_list_paths(step.first.start.input) for step in steps[-settings.failing_rounds :]}) > 1


def _list_paths(given: object) -> tuple[str, ...]:
    if not isinstance(given, dict):
        return ()
    fields = cast("dict[Any, Any]", given)
    return tuple(str(value)[:500] for key, value in fields.items() if key in PATH_KEYS or key in ("url", "uri"))


_MAX_REFUSAL_GAP = 6
"""Steps after which another refusal starts a new count."""
# Clients record a refusal as an ordinary error with these words in it. "permission denied" alone comes from the system.
_WORDS = (
    "denied by", "rejected by", "blocked by", "not permitted by", "disallowed by", "forbidden by", "refused by", "declined by",
    "vetoed", "user denied", "user rejected", "user declined", "user refused", "doesn't want to proceed",
    "does not want to proceed", "permission to use", "requires approval", "not allowed by", "violates policy",
    "policy violation", "against policy",
)  # fmt: skip


class DeniedDetector(StepDetector):
    """Counts refusals of one call, or of one action with any input. A denial by the operating system is an error instead."""

    kind: FindingKind = "denied"
    wake = Wake.FAILED

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the step was refused often enough."""
        old: tuple[ObservedStep, ...] = self.state or ()
        if old and step.number - old[-1].number > _MAX_REFUSAL_GAP:
            old = ()
        if not is_denied(step):
            if not step.failed:
                # The action is allowed after all, so the earlier refusals had another reason.
                old = tuple(refusal for refusal in old if refusal.action != step.action)
            self.state = old or None
            return None
        settings = self._settings.for_action(step.action)
        self.state = (*old, step)[-settings.window :]
        same, alike = self._counts(step)
        if len(same) >= settings.denied_rounds:
            return Sighting(self.kind, step.action, 1, same[-settings.denied_rounds :], settings.denied_rounds, 0.9)
        if len(alike) >= settings.denied_varied_rounds:
            return Sighting(
                self.kind, step.action, 1, alike[-settings.denied_varied_rounds :], settings.denied_varied_rounds, 0.8
            )
        return None

    def _counts(self, step: ObservedStep) -> tuple[tuple[ObservedStep, ...], tuple[ObservedStep, ...]]:
        alike = tuple(refusal for refusal in self.state or () if refusal.action == step.action)
        return tuple(refusal for refusal in alike if refusal.query == step.query), alike

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often the call, or its action, was refused."""
        settings = self._settings.for_action(step.action)
        if not is_denied(step):
            return Opinion(self.kind, excerpt(step), 0, settings.denied_rounds, "it was not refused")
        same, alike = self._counts(step)
        if len(same) >= settings.denied_rounds or len(same) == len(alike):
            count, needed = len(same), settings.denied_rounds
        else:
            count, needed = len(alike), settings.denied_varied_rounds
        return Opinion(self.kind, excerpt(step), count, needed, "seen" if count >= needed else "more wanted")


def is_denied(step: ObservedStep) -> bool:
    """Whether every call of the step was refused, by its status or by the words of its answer."""
    return step.failed and all(
        (call.finish is not None and call.finish.status == "denied")
        or _says_denied(call.finish and call.finish.output, call.error())
        for call in step.calls
    )


def _says_denied(output: object, error: str) -> bool:
    if isinstance(output, dict) and cast("dict[str, object]", output).get("status") in ("blocked", "denied", "rejected"):
        return True
    head = error[:400].lower()  # a refusal begins the text; further on, it may be a quote
    return any(words in head for words in _WORDS)


_MAX_TOOL_GAP = 6
"""Steps after which another unknown tool starts a new count."""
# As `_error_type` writes them: "ToolNotFoundError" and "tool_not_found_error" are one.
_TYPES = frozenset({"unknowntool", "toolnotfound", "nosuchtool", "unknownfunction", "toolnotfounderror", "nosuchtoolerror"})
# The 80 characters are for a name in between: "Tool 'search_web' is not available". After a colon or a word for failure, the
# tool itself speaks: "Error executing tool read_config: a.py not found".
_TOOL = lazy_pattern(
    r"\b(?:unknown|no such|unrecogni[sz]ed|unsupported|invalid) tool\b|\bno tool (?:named|called)\b"
    r"|\btool\b:?(?:(?!: | - |\b(?:fail(?:ed|s|ure)?|error|because)\b).){1,80}"
    r"\b(?:not found|does not exist|doesn't exist|is not (?:available|registered|defined))",
    re.IGNORECASE,
)
# The words after the name of the action. "read_config does not exist" is about the tool, "Read failed: a.py does not exist"
# about a file.
_NAMED = lazy_pattern(
    r"['\"`]?(?:\(\))?:? (?:(?:tool|function|is|was|could) ){0,2}"
    r"(?:not found|not be found|does not exist|unknown function|no such function|not a (?:known|valid) )"
)


class UnknownToolDetector(StepDetector):
    """Counts failed calls, with any input, whose error says that the tool does not exist."""

    kind: FindingKind = "unknownTool"
    wake = Wake.FAILED
    watchful = False

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if missing tools were called often enough."""
        old: tuple[ObservedStep, ...] = self.state or ()
        if old and step.number - old[-1].number > _MAX_TOOL_GAP:
            old = ()
        if not is_unknown_tool(step):
            self.state = old or None
            return None
        needed = self._settings.for_action(step.action).unknown_rounds
        self.state = calls = (*old, step)[-self._settings.window :]
        if len(calls) < needed:
            return None
        tools = sorted({fingerprints.one_line(call.action, 60) for call in calls})
        return Sighting(self.kind, "unknown tool", 1, calls[-needed:], needed, 0.9, facts=(("tools", tools[:8]),))

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return the number of calls of unknown tools."""
        needed = self._settings.for_action(step.action).unknown_rounds
        if not is_unknown_tool(step):
            return Opinion(self.kind, excerpt(step), 0, needed, "no error that says there is no such tool")
        count = len(self.state or ())
        return Opinion(self.kind, excerpt(step), count, needed, "seen" if count >= needed else "more wanted")


def is_unknown_tool(step: ObservedStep) -> bool:
    """Whether every call of the step failed because its tool does not exist."""
    return step.failed and all(
        _is_unknown(call.start.action, call.start.meta, call.error()[:600], _error_type(call.finish)) for call in step.calls
    )


def _is_unknown(action: str, meta: object, error: str, kind: str) -> bool:
    if kind in _TYPES or (isinstance(meta, dict) and cast("dict[str, object]", meta).get("unknown_tool") is True):
        return True
    if "tool" in error.lower() and _TOOL.search(error):
        return True
    # "a.py not found" is about a file. Only an error that names the action itself is about the tool.
    said = error.strip("`'\" ").lower().removeprefix("function ").lstrip("`'\"")
    return bool(action) and said.startswith(action.lower()) and _NAMED.match(said, len(action.lower())) is not None


def _error_type(finish: object) -> str:
    kind = json_object(getattr(finish, "error", None)).get("type")
    return "".join(char for char in kind[:80].lower() if char.isalnum()) if isinstance(kind, str) else ""


_ACROSS_TURNS = 2
"""Factor on the number of compactions if a person spoke between them."""
_LEFT_AFTER = 4
_CONTEXT_WORDS = (
    "context length", "context window", "context_length", "maximum context", "context limit", "prompt is too long",
    "input is too long", "too many tokens", "token limit exceeded", "exceeds the maximum number of tokens",
    "reduce the length of the messages", "context size", "contextwindowexceeded",
)  # fmt: skip

_CONTEXT_HINTS = ("context", "is too long", "token", "reduce the length")
"""Each of `_CONTEXT_WORDS` holds one of these. Most errors need only these four searches instead of the longer list."""


class _ContextErrors(NamedTuple):
    """Compactions since the last new work. ``older`` of them came before the last message of a person."""

    compactions: tuple[ObservedStep, ...] = ()
    older: int = 0
    errors: tuple[ObservedStep, ...] = ()


class ContextLoopDetector:
    """Counts compactions without new work between them, and context-length errors without a success between them.

    A message of a person does not make the context smaller: compactions on both sides of it still count, only more of them
    are needed. A loop that survives a compaction needs no rule, since a compaction resets nothing.
    """

    kind: FindingKind = "contextLoop"
    wake: int = Wake.FAILED
    hears = frozenset({"compaction", "error"})
    watchful = True
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: _ContextErrors | None = None

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the step says once too often that the context is full."""
        state = self.state or _ContextErrors()
        if not step.failed:
            # Reading again what the compaction removed is no new work.
            new = not any(earlier.query == step.query for earlier in past)
            state = _ContextErrors() if new else state._replace(errors=())
        elif is_context_error(step.first.error()):
            state = state._replace(errors=(*state.errors, step)[-self._settings.window :])
            self.state = state
            return self._too_long(state.errors)
        self.state = state if state != _ContextErrors() else None
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting if this is one compaction, or one error, too many."""
        state = self.state or _ContextErrors()
        keep = self._settings.window
        if event.type == "error":
            text = event_text(event)
            if text is None or not is_context_error(text):
                return None
            self.state = state._replace(errors=(*state.errors, ObservedStep((Call.from_event(event, "context"),)))[-keep:])
            return self._too_long(self.state.errors)
        step = ObservedStep((Call.from_event(event, "compaction"),))
        compactions = (*state.compactions, step)[-keep:]
        # Some of the older ones may have just left the window.
        self.state = state = state._replace(compactions=compactions, older=min(state.older, len(compactions)))
        rounds = self._settings.compaction_rounds
        fresh = len(compactions) - state.older
        if fresh >= rounds:
            return Sighting(self.kind, "compaction", 1, compactions[-rounds:], rounds, 0.9, leave=_LEFT_AFTER)
        if len(compactions) >= rounds * _ACROSS_TURNS:
            return Sighting(self.kind, "compaction", 1, compactions, len(compactions), 0.8, leave=_LEFT_AFTER)
        return None

    def _too_long(self, errors: tuple[ObservedStep, ...]) -> Sighting | None:
        rounds = self._settings.context_error_rounds
        if len(errors) < rounds:
            return None
        return Sighting(self.kind, "context error", 1, errors[-rounds:], rounds, 0.9, leave=_LEFT_AFTER)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return the number of consecutive errors that say that the context is full."""
        rounds = self._settings.context_error_rounds
        if not step.failed or not is_context_error(step.first.error()):
            return Opinion(self.kind, excerpt(step), 0, rounds, "no error that says the context is full")
        count = len(self.state.errors) if self.state else 0
        return Opinion(
            self.kind, fingerprints.one_line(step.first.error()), count, rounds, "seen" if count >= rounds else "more wanted"
        )

    def reset(self) -> None:
        """Note that a person spoke: forget earlier errors, and count earlier compactions less."""
        if self.state is not None:
            compactions = self.state.compactions
            self.state = _ContextErrors(compactions, len(compactions)) if compactions else None


def is_context_error(error: str) -> bool:
    """Whether an error says that the model's context is full."""
    head = error[:2000].lower()
    return any(hint in head for hint in _CONTEXT_HINTS) and any(words in head for words in _CONTEXT_WORDS)
