"""One session under watch: routes observations to the detectors of each agent and gathers what they found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from ctxmgr.detect import DETECTORS
from ctxmgr.detect.casebook import Case
from ctxmgr.detect.hung import StallWatch
from ctxmgr.detect.interface import Detector
from ctxmgr.detect.scope import AgentScope
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.types.finding import Finding
from ctxmgr.types.observation import Observation

RESETS = {"user_message": "user", "user_message_chunk": "user", "interrupt": "interrupt"}
"""Events by which a person steps in (design ruling 8). A nudge, a compaction and a continuation are none."""

BOUNDARIES = frozenset({"message", "turn_end", "round_end", "nudge", "compaction", "continuation"})
REPLAYS = frozenset({"retry"})

NO_TIMES = "no timestamps: stalls are not judged"
NO_CLOCK = "no time was given to judge a live run against: stalls are not judged"

_BLIND_ROUNDS = 1
_BLIND_DOUBT = 0.6

_Key = tuple[str | None, str | None]


class Monitor:
    """Watches one session.

    Feed it observations in the order of the log; the cost of one does not grow with the history. What it answers
    depends on what it was shown alone, never on how often it was asked.

    Attributes:
        notes: what could not be judged, and why.
    """

    def __init__(self, settings: DetectSettings | None = None, detectors: Sequence[type[Detector]] = DETECTORS) -> None:
        self.settings = settings or DetectSettings()
        self.notes: list[str] = []
        self._classes = [each for each in detectors if each.kind not in self.settings.disabled]
        self._blind_settings = _one_round_more(self.settings)
        self._session = ""
        self._watch: StallWatch | None = None
        self._open: dict[str, Observation] = {}
        self._scopes: dict[_Key, AgentScope] = {}
        self._by_agent: dict[str | None, list[AgentScope]] = {}
        self._blind: dict[_Key, AgentScope] | None = {}
        self._raised: list[Case] = []
        self._seen_processes: dict[str | None, tuple[int, int]] = {}

    def observe(self, observation: Observation) -> list[Finding]:
        """Take one more observation; return the findings that it raised."""
        watch = self._watch
        if watch is None:
            self._session = observation.session
            watch = self._watch = StallWatch(observation.session, self.settings)
        raised: list[Case] = []
        if observation.kind == "start":
            raised = self._begin(observation, watch)
        elif observation.kind == "finish":
            raised = self._end(observation, watch)
        elif observation.kind == "event":
            raised = self._hear(observation, watch)
        else:
            watch.close()
        if not raised:
            return []
        self._raised += raised
        return [case.finding() for case in raised]

    def findings(self, now: float | None = None, live: bool = False) -> list[Finding]:
        """Return every finding so far, resolved ones too, in the order in which they were raised, stalls last.

        Args:
            now: seconds since 1970 to judge stalls against; None when the log is all there will ever be.
            live: whether the process may still be running. Then an open call is no evidence without a ``now``.
        """
        found = [case.finding(self._superseded(case)) for case in self._raised]
        if self._watch is None or "hung" in self.settings.disabled:
            return found
        if live and now is None:
            self._note(NO_CLOCK)
        if self._watch.untimed:
            self._note(NO_TIMES)
        return found + self._watch.judge(now, live)

    def _begin(self, start: Observation, watch: StallWatch) -> list[Case]:
        if start.id in self._open:
            return []
        self._open[start.id] = start
        self._meet(start, watch)
        watch.begin(start)
        key = (start.agent, start.process)
        scope = self._scopes.get(key)
        if scope is None:
            scope = self._scopes[key] = self._scope(self.settings)
            self._by_agent.setdefault(start.agent, []).append(scope)
        scope.begin(start)
        if self._blind is None:
            return []
        blind = self._blind.get(key)
        if blind is None:
            blind = self._blind[key] = self._scope(self._blind_settings, _BLIND_DOUBT)
        blind.begin(start)
        return blind.end(start, None)

    def _end(self, finish: Observation, watch: StallWatch) -> list[Case]:
        start = self._open.pop(finish.id, None)
        if start is None:
            return []
        if self._blind is not None:
            for scope in self._blind.values():
                scope.reset("progress")
            self._blind = None
        watch.end(finish)
        if finish.status == "interrupted":
            self._reset("interrupt")
            return []
        return self._scopes[(start.agent, start.process)].end(start, finish)

    def _hear(self, event: Observation, watch: StallWatch) -> list[Case]:
        kind = event.type or ""
        why = RESETS.get(kind)
        if why is not None and not _is_synthetic(event):
            watch.hear(event)
            self._reset(why)
            return []
        if why is not None:
            event = replace(event, type="nudge")
            kind = "nudge"
        watch.hear(event)
        raised: list[Case] = []
        for scope in self._addressed(event):
            if kind in BOUNDARIES:
                scope.set_boundary()
            elif kind in REPLAYS:
                scope.replay()
            raised += scope.hear(event)
        return raised

    def _addressed(self, event: Observation) -> list[AgentScope]:
        """Return the scopes an event belongs to: its agent's, or all when it names none that is known."""
        if event.agent is None:
            return list(self._scopes.values())
        own = self._by_agent.get(event.agent, [])
        return list(self._scopes.values()) if not own and event.type in REPLAYS else own

    def _reset(self, why: str) -> None:
        for scope in (*self._scopes.values(), *(self._blind or {}).values()):
            scope.reset(why)

    def _scope(self, settings: DetectSettings, doubt: float = 1.0) -> AgentScope:
        return AgentScope(self._session, settings, [each(settings) for each in self._classes], doubt)

    def _meet(self, start: Observation, watch: StallWatch) -> None:
        seen = self._seen_processes.get(start.process)
        if seen is None:
            if self._seen_processes:
                watch.leave_open()
            self._seen_processes[start.process] = (start.seq, start.seq)
        else:
            self._seen_processes[start.process] = (seen[0], start.seq)

    def _superseded(self, case: Case) -> str | None:
        """Return "process" when a process that began later has taken over from the one the case is about."""
        own = self._seen_processes.get(case.process)
        if own is None or len(self._seen_processes) < 2:
            return None
        return "process" if any(first > own[1] for first, _ in self._seen_processes.values()) else None

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def detect(
    observations: Iterable[Observation],
    now: float | None = None,
    live: bool = False,
    settings: DetectSettings | None = None,
) -> list[Finding]:
    """Return all findings of one session's observations, in log order; see `Monitor.findings`."""
    monitor = Monitor(settings)
    for observation in observations:
        monitor.observe(observation)
    return monitor.findings(now, live)


def _one_round_more(settings: DetectSettings) -> DetectSettings:
    """Without results, inputs alone are compared, and one round more is wanted."""
    cycle_rounds = settings.cycle_rounds + _BLIND_ROUNDS
    return replace(
        settings,
        repeat_rounds=settings.repeat_rounds + _BLIND_ROUNDS,
        cycle_rounds=cycle_rounds,
        window=max(settings.window, cycle_rounds * settings.max_period),
    )


def _is_synthetic(event: Observation) -> bool:
    """Whether a user message was put there by a program, as its own data says."""
    if not isinstance(event.data, dict):
        return False
    return cast("dict[str, object]", event.data).get("synthetic") is True
