"""The thresholds of the detectors, with defaults and checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast, get_args

from ctxmgr.base.light_dataclass import dataclass, field, replace
from ctxmgr.errors import InvalidInput
from ctxmgr.types.finding import FindingKind

_ROUNDS = (
    "repeat_rounds", "cycle_rounds", "error_same_rounds", "error_varied_rounds", "error_varied_loop_rounds",
    "failing_rounds", "failing_loop_rounds", "poll_rounds", "gesture_rounds", "transient_rounds", "interleaved_rounds",
    "interleaved_loop_rounds", "futile_rounds", "futile_loop_rounds", "near_rounds", "drift_rounds", "sweep_rounds",
    "stagnation_rounds", "barren_rounds", "trivial_rounds", "trivial_loop_rounds", "unknown_rounds", "denied_rounds",
    "denied_varied_rounds", "monologue_rounds", "paraphrase_rounds", "chant_rounds", "compaction_rounds",
    "context_error_rounds", "revert_rounds", "handoff_rounds",
)  # fmt: skip
# These count over messages, and no window of steps must hold all of them.
_UNWINDOWED = frozenset({"chant_rounds", "monologue_rounds", "paraphrase_rounds"})
MAX_CHANT_ROUNDS = 132
"""Number of phrases kept of a stream. A phrase that needs more repeats would never count as chanted."""
_COUNTS = ("escalate_attempts", "recovery_rounds", "volume_chars", "stalled_ledgers", "ignored_updates", "sleep_rounds")
_SECONDS = ("poll_gap", "idle_gap", "stall_seconds", "call_seconds", "volume_seconds", "sleep_seconds")


@dataclass(frozen=True, slots=True)
class DetectSettings:
    """When a pattern becomes a finding.

    Attributes:
        repeat_rounds: identical calls (action, input, result) in a row; found at this one (design ruling 6).
        cycle_rounds: complete identical rounds of two or more steps.
        max_period: longest round that is sought, in steps.
        window: steps kept for each agent and process; must hold every round that a threshold needs.
        error_same_rounds: times one call fails with one error, other steps that change nothing may lie between.
        error_varied_rounds: times one specific error comes back whatever is tried: a warning;
            ``error_varied_loop_rounds``: a loop.
        failing_rounds: failures in a row of one action with one error, once what its input put into the error is taken out:
            a warning; ``failing_loop_rounds``: a loop. Fewer where they change one thing, and no loop where they search.
        error_gap: steps after which an error that comes back is a new story.
        poll_rounds: identical answers of a poll when the log has no times that show whether it waited.
        gesture_rounds: identical key presses, scrolls and the like, whose answer does not show what they did.
        transient_rounds: rate limits, time-outs and unreachable servers when the log has no times.
        interleaved_rounds: times one call brings one result with other calls, but no change of the world, between: a
            warning; ``interleaved_loop_rounds``: a loop.
        futile_rounds: times one call says that it does not work, whatever is done between (but for writing new
            content): a warning; ``futile_loop_rounds``: a loop.
        near_rounds: calls that differ in volatile or cosmetic parts alone, with one result.
        drift_rounds: calls that differ in numbers alone, with one result.
        sweep_rounds: reads of lines of one file that were all read before.
        stagnation_rounds: different questions about one thing with one answer; a third more where they name nothing they
            are about, twice as many for different things.
        barren_rounds: the same, where the answer is that there is none.
        trivial_rounds: identical calls whose results differ in clock times, ids and the like alone: a warning;
            ``trivial_loop_rounds``: a loop.
        unknown_rounds: calls of tools that do not exist.
        denied_rounds: refusals of one call; ``denied_varied_rounds``: of one action with varying input.
        monologue_rounds: identical or empty messages, or identical thoughts, without an action between.
        paraphrase_rounds: messages without an action between that say the same in other words.
        chant_rounds: repeats of one phrase within one message or stream, at most 132.
        volume_chars, volume_seconds: text without an action: more than both is a warning; in at least
            ``monologue_rounds`` messages on end, a loop.
        compaction_rounds: compactions of the context without new work between.
        context_error_rounds: errors that say the context is full, without a success between.
        escalate_attempts: failed attempts of a subtask, and failed subtasks of a task.
        revert_rounds: times a change and its undoing came round.
        recovery_rounds: continuations for one loop after which it came back.
        handoff_rounds: times agents gave each other the same words.
        sleep_rounds, sleep_seconds: pauses in a row, and seconds they took together.
        stalled_ledgers: progress reports in a row that say there is none.
        ignored_updates: rejected progress updates without an accepted one between.
        busy_window: steps over which activity is judged; ``busy_novelty``: share of them that must be new.
        poll_gap: seconds between two polls that count as patience.
        idle_gap: idle seconds between any two identical queries that count as patience.
        left_after: different steps outside a loop after which the agent has left it.
        stall_seconds: silence with nothing in flight.
        call_seconds: limit of a call that declares none; a declared limit comes first.
        call_grace: seconds granted on top of a limit.
        exempt_actions: actions that no loop detector looks at.
        pollers: further actions that are polls by nature.
        disabled: kinds of findings that are switched off.
        actions: for single actions, by name, the settings that hold for them; see `from_table`.

    Raises:
        InvalidInput: when a threshold can never fire or is no number.
    """

    repeat_rounds: int = 3
    cycle_rounds: int = 3
    max_period: int = 12
    window: int = 64
    error_same_rounds: int = 3
    error_varied_rounds: int = 4
    error_varied_loop_rounds: int = 5
    failing_rounds: int = 6
    failing_loop_rounds: int = 10
    error_gap: int = 6
    poll_rounds: int = 10
    gesture_rounds: int = 10
    transient_rounds: int = 8
    interleaved_rounds: int = 4
    interleaved_loop_rounds: int = 6
    futile_rounds: int = 3
    futile_loop_rounds: int = 5
    near_rounds: int = 3
    drift_rounds: int = 5
    sweep_rounds: int = 6
    stagnation_rounds: int = 6
    barren_rounds: int = 10
    trivial_rounds: int = 10
    trivial_loop_rounds: int = 20
    unknown_rounds: int = 3
    denied_rounds: int = 3
    denied_varied_rounds: int = 6
    monologue_rounds: int = 3
    paraphrase_rounds: int = 4
    chant_rounds: int = 10
    volume_chars: int = 15_000
    volume_seconds: float = 60.0
    compaction_rounds: int = 3
    context_error_rounds: int = 3
    escalate_attempts: int = 2
    revert_rounds: int = 2
    recovery_rounds: int = 2
    handoff_rounds: int = 3
    sleep_rounds: int = 3
    sleep_seconds: float = 120.0
    stalled_ledgers: int = 3
    ignored_updates: int = 10
    busy_window: int = 60
    busy_novelty: float = 0.1
    poll_gap: float = 5.0
    idle_gap: float = 120.0
    left_after: int = 2
    stall_seconds: float = 120.0
    call_seconds: float = 600.0
    call_grace: float = 5.0
    exempt_actions: frozenset[str] = frozenset()
    pollers: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    actions: Mapping[str, DetectSettings] = field(default_factory=dict[str, "DetectSettings"], compare=False)

    def for_action(self, action: str) -> DetectSettings:
        """Return the settings for an action: its own table over the common settings."""
        return self.actions.get(action, self) if self.actions else self

    @classmethod
    def from_table(cls, table: Mapping[str, object]) -> DetectSettings:
        """Return settings from a configuration table: numbers as numbers, names as lists of texts.

        The table ``actions`` holds a table for each action with settings of its own: the thresholds that count repeats of an
        action, ``disabled``, and the switches ``exempt`` and ``poller``.

        Raises:
            InvalidInput: an unknown setting, or a value of the wrong type.
        """
        common = cls(**_values({name: value for name, value in table.items() if name != "actions"}))
        tables = table.get("actions", {})
        if not isinstance(tables, Mapping):
            raise InvalidInput("actions must be a table of tables", '[detect.actions."wait_for_build"]')
        rows = cast("Mapping[str, object]", tables)
        return common.with_actions({str(name): _action_table(str(name), row) for name, row in rows.items()})

    def with_actions(self, tables: Mapping[str, Mapping[str, object]]) -> DetectSettings:
        """Return these settings with tables for single actions over them.

        Raises:
            InvalidInput: as `from_table`.
        """
        exempt, pollers = set(self.exempt_actions), set(self.pollers)
        for name, table in tables.items():
            if _switch(name, table, "exempt"):
                exempt.add(name)
            if _switch(name, table, "poller"):
                pollers.add(name)
        common = replace(self, exempt_actions=frozenset(exempt), pollers=frozenset(pollers))
        own: dict[str, DetectSettings] = {}
        for name, table in tables.items():
            values = _values({key: value for key, value in table.items() if key not in ("exempt", "poller")})
            odd = set(values) - _PER_ACTION
            if odd:
                raise InvalidInput(
                    f"{min(odd)} can't be set for the single action {name!r}",
                    f"for one action: {', '.join(sorted(_PER_ACTION))}",
                )
            if values:
                if "disabled" in values:
                    values["disabled"] |= self.disabled
                own[name] = replace(common, **values)
        return replace(common, actions=own)

    def __post_init__(self) -> None:
        for name in self.__match_args__:
            value: object = getattr(self, name)
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidInput(f"{name} must be a finite number, not {value}")
        self._check_amounts()
        unknown = self.disabled - frozenset(get_args(FindingKind))
        if unknown:
            raise InvalidInput(f"{min(unknown)!r} is no kind of finding", f"kinds: {', '.join(get_args(FindingKind))}")
        # Another tool kept 20 events and could never reach thresholds above 10. Such settings are refused here.
        counted = [getattr(self, name) for name in _ROUNDS if name not in _UNWINDOWED]
        needed = max(self.cycle_rounds * self.max_period, *counted)
        if self.window < needed:
            raise InvalidInput(
                f"a window of {self.window} steps can never hold what the thresholds need ({needed} steps)",
                "raise window, or lower the rounds or max_period",
            )

    def _check_amounts(self) -> None:
        for names, least, why in (
            (_ROUNDS, 2, ": one call is no repetition"),
            (_COUNTS, 1, ""),
            (("max_period",), 2, ": a period of 1 is a repetition"),
        ):
            for name in names:
                if getattr(self, name) < least:
                    raise InvalidInput(f"{name} must be at least {least}{why}")
        if self.chant_rounds > MAX_CHANT_ROUNDS:
            raise InvalidInput(f"chant_rounds must be at most {MAX_CHANT_ROUNDS}: no more phrases are kept")
        for name in _SECONDS:
            if getattr(self, name) <= 0:
                raise InvalidInput(f"{name} must be more than 0 seconds")
        if self.left_after < 1 or self.error_gap < 1 or self.call_grace < 0:
            raise InvalidInput("left_after and error_gap must be at least 1, call_grace at least 0")
        if not 0 <= self.busy_novelty <= 1 or self.busy_window < 2:
            raise InvalidInput("busy_novelty must be a share from 0 to 1, busy_window at least 2")


# Without settings that count rounds of several actions or events.
_PER_ACTION = frozenset({*_ROUNDS, "disabled", "left_after", "poll_gap", "idle_gap"}) - {
    "cycle_rounds",
    "compaction_rounds",
    *_UNWINDOWED,
}


def _values(table: Mapping[str, object]) -> dict[str, Any]:
    built_in = DetectSettings()
    known = {name: getattr(built_in, name) for name in DetectSettings.__match_args__ if name != "actions"}
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            raise InvalidInput(f"unknown setting {name!r} for detection", f"known: {', '.join(known)}, actions")
        values[name] = _read_setting(name, known[name], value)
    return values


def _action_table(name: str, table: object) -> Mapping[str, object]:
    if not isinstance(table, Mapping):
        raise InvalidInput(f"the settings of the action {name!r} must be a table", f'[detect.actions."{name}"]')
    return cast("Mapping[str, object]", table)


def _switch(action: str, table: Mapping[str, object], name: str) -> bool:
    value = table.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} of the action {action!r} must be true or false", f"e.g. {name} = true")
    return value


def _read_setting(name: str, default: object, value: object) -> object:
    if isinstance(default, frozenset):
        if isinstance(value, list | tuple | set | frozenset):
            names = list(cast("Iterable[object]", value))
            if all(isinstance(item, str) for item in names):
                return frozenset(names)
        raise InvalidInput(f"{name} must be a list of names", f'e.g. {name} = ["wait_for_build"]')
    if isinstance(value, bool) or not isinstance(value, int if isinstance(default, int) else int | float):
        raise InvalidInput(f"{name} must be a {'whole ' if isinstance(default, int) else ''}number", f"e.g. {name} = {default}")
    return value
