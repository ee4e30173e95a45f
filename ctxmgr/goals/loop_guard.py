"""Ask the detectors whether an action would close a loop, or whether an attempt has failed too often.

The answer depends only on the bounded window in the state and on the candidate. It therefore costs the same after ten actions
and after a hundred thousand, and is the same before and after a crash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ctxmgr.base.light_dataclass import replace
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.goals.state import Action, OpenAction, Outcome, State
from ctxmgr.log.ids import parse_time
from ctxmgr.types.finding import Finding, Observation
from ctxmgr.types.goal import LoopType

if TYPE_CHECKING:
    from ctxmgr.detect.interface import Detector

_REPEATS_OF_A_POLL = 12
"""Number of repeats after which even a poll or a key press is a repetition. The detectors allow these more repeats."""


class Verdict(NamedTuple):
    """A loop that the candidate would close."""

    type: LoopType
    finding: Finding


class LoopGuard:
    """Applies the thresholds of the three types of loops: A repetition, B alternation, C failed attempts (spec 004).

    Args:
        settings: detection settings. Ruling 6: a detector finds a repetition at its n-th round, and the guard refuses the next
            one. Of two alternating actions, it refuses the last one in the round before the threshold.
    """

    def __init__(self, settings: DetectSettings | None = None) -> None:
        common = settings or DetectSettings()
        self._settings = common
        own = {name: _one_more(each) for name, each in common.actions.items()}
        self._guarded = replace(_one_more(common), actions=own)
        self._alternation = replace(self._guarded, cycle_rounds=max(2, common.cycle_rounds - 1), max_period=2)

    def action(self, state: State, candidate: OpenAction) -> Verdict | None:
        """Return the loop that an action would close, or None.

        A ``candidate`` without a result is assumed to return the same result as the same call last time.
        """
        window = [each for each in state.actions if each.n > state.fresh]
        periods = _periods([each for each in window if each.agent == candidate.agent], candidate)
        if not periods:
            return None  # a cheap comparison of keys saves most actions the import of the engine
        if not isinstance(candidate, Action):
            # It exists, because a period means that the call was made before.
            last = next(each for each in reversed(window) if each.key == candidate.key)
            candidate = candidate.finish(last.n + 1, last.status, last.output, last.error, candidate.began)
        shown = list(_observations(state.session, [*window, candidate]))
        # Alternation has a lower threshold than the rest, so each setting is used only for its periods.
        for settings in (self._alternation, self._guarded):
            if periods == {2} if settings is self._guarded else 2 not in periods:
                continue
            finding = _find_raised_last(settings, shown)
            if finding is not None and finding.severity == "loop":
                return Verdict("A" if finding.period == 1 else "B", finding)
        return None

    def is_old_news(self, state: State, item: Action) -> bool:
        """Whether an action returned the same result as the last time. True if there is nothing to compare with."""
        last = next((each for each in reversed(state.actions) if each.key == item.key), None)
        if last is None:
            return True
        # The engine compares: after enough repeats of the former result, it finds a repetition
        # only if the new result is equal.
        repeats = [last.replace(id=f"told-{number}", ts=item.ts, began=None) for number in range(_REPEATS_OF_A_POLL)]
        return _find_raised_last(self._guarded, list(_observations(state.session, [*repeats, item]))) is not None

    def failure(self, state: State, node: str) -> Finding | None:
        """Return the engine's finding if another failure of ``node`` is one too many, or None if it may be tried again."""
        from ctxmgr.detect.detectors.cycles import EscalatingFailureDetector

        outcomes = [*state.outcomes, Outcome(node=node, success=False)]
        shown = [
            Observation(
                "event", number, f"attempt-{number}", state.session, type="subtask_result",
                data={"subtask": each.node, "success": each.success},
            )
            for number, each in enumerate(outcomes)
        ]  # fmt: skip
        found = _find_unresolved(self._settings, [EscalatingFailureDetector], shown)
        found = [each for each in found if each.severity == "loop"]
        return next((each for each in found if each.evidence.get("task") == node), None)


def _periods(own: Sequence[Action], candidate: OpenAction) -> set[int]:
    """Return the periods p for which the last p calls, including the candidate, equal the p calls before them."""
    keys = [*(each.key for each in own), candidate.key]
    return {
        period
        for period in range(1, len(keys) // 2 + 1)
        if keys[-period:] == keys[-2 * period : -period] and _may_be_equal(own[-period], candidate)
    }


def _may_be_equal(earlier: Action, candidate: OpenAction) -> bool:
    """Whether the engine may take two results for equal. An unknown result may be anything."""
    if not isinstance(candidate, Action):
        return True
    if earlier.status != candidate.status:
        return False
    one, two = earlier.output, candidate.output
    return not (isinstance(one, str) and isinstance(two, str)) or mask_volatile(one, ids=True) == mask_volatile(two, ids=True)


def _one_more(settings: DetectSettings) -> DetectSettings:
    return replace(settings, repeat_rounds=settings.repeat_rounds + 1)


def _observations(session: str, items: Sequence[Action]) -> Iterable[Observation]:
    for place, item in enumerate(items):
        common: Mapping[str, Any] = {
            "id": item.id, "session": session, "index": place, "agent": item.agent, "action": item.action, "input": item.args,
        }  # fmt: skip
        ended, began = parse_time(item.ts), parse_time(item.began)
        yield Observation("start", 2 * place, at=ended if began is None else began, **common)
        known: Mapping[str, Any] = {"status": item.status, "output": item.output, "error": item.error}
        yield Observation("finish", 2 * place + 1, at=ended, **known, **common)


def _find_raised_last(settings: DetectSettings, shown: Sequence[Observation]) -> Finding | None:
    """Return the unresolved repetition or cycle whose last member is the last observation."""
    from ctxmgr.detect.detectors.cycles import CycleDetector
    from ctxmgr.detect.detectors.repeated_calls import RepetitionDetector

    found = _find_unresolved(settings, [RepetitionDetector, CycleDetector], shown)
    return next((each for each in found if each.kind != "hung" and each.last == shown[-1].id), None)


def _find_unresolved(
    settings: DetectSettings, detectors: Sequence[type[Detector]], shown: Sequence[Observation]
) -> list[Finding]:
    """Return the findings that are unresolved at the end. Imports the engine, which most actions do not need."""
    from ctxmgr.detect.monitor import Monitor

    monitor = Monitor(settings, detectors)
    for each in shown:
        monitor.observe(each)
    return [each for each in monitor.findings(live=True) if each.resolved is None]
