"""Find one action that fails in a row for one cause, though each error names another thing: what its input put in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step, excerpt
from ctxmgr.detect.text import fingerprints, vocabulary
from ctxmgr.detect.text.message_text import MESSAGES, text_of
from ctxmgr.detect.text.similarity import PATH_KEYS, target_of
from ctxmgr.types.finding import FindingKind, Observation

_RULE = "in a row"
_PROVIDER = "provider"


class _Streak(NamedTuple):
    """Failures in a row. ``cause`` is worked out when a second one comes, for most come alone."""

    steps: tuple[Step, ...]
    cause: str | None


class FailureStreakDetector(StepDetector):
    """Counts failures of one action that say the same once everything the input put into the error is taken out.

    "Plan P7 not found" after "Plan P6 not found" is one cause, and an error that names nothing at all ("not found") is one
    too when it comes back time after time. How much that proves depends on the call:

    * a refused login is a cause by itself, whatever was asked for, and so is a time limit that call after call runs into;
    * changes of one target: nothing that was tried was right;
    * changes of, and questions about, different things by name: more of them are wanted;
    * searches, commands, and reads of one path after another explore, and a miss is an answer: a suspicion, and late.

    Questions that succeed may lie between. A success of the action itself, or of any change, ends the streak. Errors that
    the log tells of as events (the model's provider refused) are a streak of their own, ended by any success and by words.
    """

    kind: FindingKind = "errorRepetition"
    wake = Wake.FAILED
    hears = MESSAGES | {"error"}

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the action has failed alike often enough."""
        if not step.failed:
            if self.state and self._ends(step):
                self.state = {}
            return None
        if len(step.calls) > 1 or _is_refused(step) or (step.transient and not vocabulary.is_own_limit(step.first.error())):
            return None
        streaks: dict[str, _Streak] = self.state
        old = streaks.get(step.action)
        if old is None or step.number - old.steps[-1].number > self._settings.error_gap:
            streak = _Streak((step,), None)
        else:
            cause = _cause_of(step)
            known = old.cause if old.cause is not None else _cause_of(old.steps[-1])
            keep = self._settings.window
            streak = _Streak((*old.steps, step)[-keep:], cause) if cause == known else _Streak((step,), cause)
        self.state = {step.action: streak} | {name: each for name, each in streaks.items() if name == _PROVIDER}
        return self._sighting(streak)

    def _ends(self, step: Step) -> bool:
        meaning = step.meaning(self._settings.pollers)
        return step.action in self.state or _PROVIDER in self.state or meaning in ("mutation", "other")

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when this is one error of the provider too many."""
        said = text_of(event)
        if event.type != "error":
            if said and _PROVIDER in self.state:
                self.state = {name: each for name, each in self.state.items() if name != _PROVIDER}
            return None
        if not said:
            return None
        cause = fingerprints.error_core(said)
        old: _Streak | None = self.state.get(_PROVIDER)
        step = Step((Call.said(event, cause),))
        steps = (*old.steps, step)[-self._settings.window :] if old is not None and old.cause == cause else (step,)
        self.state = {**self.state, _PROVIDER: _Streak(steps, cause)}
        transient = vocabulary.is_transient(said)
        needed = self._settings.error_same_rounds
        if len(steps) < needed:
            return None
        proved = len(steps) >= self._settings.transient_rounds if transient else True
        return Sighting(
            self.kind, (_PROVIDER, cause), 1, steps[-needed:], needed, 0.8 if proved else 0.6,
            severity="loop" if proved else "warn", leave=1, facts=(("said", fingerprints.one_line(said, 300)),),
        )  # fmt: skip

    def _sighting(self, streak: _Streak) -> Sighting | None:
        count = len(streak.steps)
        if streak.cause is None or count < self._settings.error_varied_rounds:
            return None
        warned, proved = _needed(streak, self._settings.of(streak.steps[-1].action))
        # One call that fails over and over is not for this detector: here the input varies.
        tried = len({step.query for step in streak.steps[-warned:]})
        if count < warned or tried < min(3, warned):
            return None
        is_proved = proved is not None and count >= proved
        return Sighting(
            self.kind, (streak.steps[-1].action, streak.cause), 1, streak.steps[-warned:], warned, 0.75 if is_proved else 0.5,
            streak.cause, severity="loop" if is_proved else "warn",
        )  # fmt: skip

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often the action has failed alike."""
        settings = self._settings.of(step.action)
        streak: _Streak | None = self.state.get(step.action)
        if not step.failed or streak is None:
            why = "a refusal, or trouble that may pass" if step.failed else "it did not fail"
            return Opinion(self.kind, excerpt(step), 0, settings.failing_rounds, why, _RULE)
        needed = _needed(streak, settings)[0]
        why = "seen" if self._sighting(streak) else "more failures in a row wanted, of different calls"
        compared = fingerprints.one_line(streak.cause or step.first.error())
        return Opinion(self.kind, compared, len(streak.steps), needed, why, _RULE)

    def reset(self) -> None:
        """Forget all failures."""
        self.state: dict[str, _Streak] = {}


def _cause_of(step: Step) -> str:
    call = step.first
    return fingerprints.error_core(
        fingerprints.without_input(call.error()[-fingerprints.MAX_TEXT :], cast("object", call.start.input))
    )


def _is_refused(step: Step) -> bool:
    return step.first.finish is not None and step.first.finish.status == "denied"


def _needed(streak: _Streak, settings: DetectSettings) -> tuple[int, int | None]:
    """Return after how many failures to warn, and how many prove a loop (None: no number of them)."""
    last = streak.steps[-1]
    if vocabulary.is_login_error(streak.cause or ""):
        return settings.error_varied_rounds, settings.error_varied_loop_rounds
    if vocabulary.is_own_limit(last.first.error()):
        return settings.error_varied_rounds, settings.failing_rounds
    if _explores(streak.steps, settings) or not fingerprints.says_anything(streak.cause or ""):
        return settings.failing_loop_rounds, None
    about = {target_of(step.first.start) for step in streak.steps[-settings.failing_rounds :]}
    if last.meaning(settings.pollers) in ("mutation", "other") and len(about) == 1 and about != {""}:
        return settings.error_varied_rounds, settings.failing_rounds
    return settings.failing_rounds, settings.failing_loop_rounds


def _explores(steps: Sequence[Step], settings: DetectSettings) -> bool:
    """Whether the calls look for something: they search, run commands, or ask for one path after the other."""
    start = steps[-1].first.start
    if vocabulary.searches(start):
        return True
    if steps[-1].meaning(settings.pollers) != "query":
        return False
    return len({_paths(step.first.start.input) for step in steps[-settings.failing_rounds :]}) > 1


def _paths(given: object) -> tuple[str, ...]:
    if not isinstance(given, dict):
        return ()
    fields = cast("dict[Any, Any]", given)
    return tuple(str(value)[:500] for key, value in fields.items() if key in PATH_KEYS or key in ("url", "uri"))
