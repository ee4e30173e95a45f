"""Watch one session: pass observations to each agent's detectors, and collect findings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from ctxmgr.base.light_dataclass import replace
from ctxmgr.detect.agent_state import AgentScope
from ctxmgr.detect.detectors import DETECTORS
from ctxmgr.detect.detectors.cycles import LOOP_SEEN
from ctxmgr.detect.detectors.hung import BEGINS, Key, StallWatch, UnseenResults
from ctxmgr.detect.finding_lifecycle import OpenFinding
from ctxmgr.detect.interface import Detector, Opinion
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import has_failed
from ctxmgr.detect.text.comparison import MESSAGES, THOUGHTS, event_text, is_farewell
from ctxmgr.detect.text.vocabulary import calls_a_person, hands_over, is_shell, looks_for_news, writes
from ctxmgr.log.fast_json import json_object, json_texts
from ctxmgr.types.finding import Finding, Observation, Progress

RESETS = {"user_message": "user", "user_message_chunk": "user", "interrupt": "interrupt"}
"""Events by which a person steps in (design ruling 8). A nudge, a compaction and a continuation do not count."""

BOUNDARIES = frozenset({"message", "turn_end", "round_end", "nudge", "compaction", "continuation"})
REPLAYS = frozenset({"retry"})
_SPOKEN = MESSAGES | THOUGHTS
_MAX_TYPES = 1000


class EventEffects(NamedTuple):
    """The effects of the events of one type.

    Attributes:
        resets: reason to forget evidence; None to keep it.
        bounds: an attempt may begin here.
        replays: an attempt is repeated.
        converses: its agent says something to others.
        speaks: it is a message or a thought.
        is_wide: a detector of all agents together listens to it.
        is_heard: a detector of single agents listens to it.
    """

    resets: str | None
    bounds: bool
    replays: bool
    converses: bool
    speaks: bool
    is_wide: bool
    is_heard: bool


class EffectsTable:
    """Cache of the effects by event type, since most events have few types."""

    def __init__(self, detectors: Iterable[type[Detector]], wide: Iterable[type[Detector]]) -> None:
        self._heard = frozenset(kind for detector in detectors for kind in detector.hears)
        self._wide = frozenset(kind for detector in wide for kind in detector.hears)
        self._known: dict[str, EventEffects] = {}

    def effects_for(self, kind: str) -> EventEffects:
        """Return the effects of the events of this type."""
        effects = self._known.get(kind)
        if effects is not None:
            return effects
        if len(self._known) >= _MAX_TYPES:  # types are recorded text: a hostile log may hold any number
            self._known.clear()
        effects = self._known[kind] = EventEffects(
            RESETS.get(kind), kind in BOUNDARIES, kind in REPLAYS, kind in MESSAGES or kind == "nudge", kind in _SPOKEN,
            kind in self._wide, kind in self._heard,
        )  # fmt: skip
        return effects


def is_synthetic(event: Observation) -> bool:
    """Whether a program inserted a user message, according to the message's own data."""
    if not isinstance(event.data, dict):
        return False
    return cast("dict[str, object]", event.data).get("synthetic") is True


NO_TIMES = "no timestamps: stalls are not judged"
NO_CLOCK = "no time was given to judge a live run against: stalls are not judged"

_MAX_ACTIONS = 1000
_BLIND_ROUNDS = 1
"""Rounds needed in addition to the usual ones if the log holds no results."""
_BLIND_DOUBT = 0.6
"""Factor on the confidence of findings that rest on inputs alone."""


class Monitor:
    """Watches one session.

    Feed it observations in the order of the log. The cost of an observation does not grow with the history. Its answers
    depend only on what it was shown, never on how often it was asked.

    Attributes:
        notes: what could not be judged, and why.
    """

    def __init__(
        self,
        settings: DetectSettings | None = None,
        detectors: Sequence[type[Detector]] = DETECTORS,
        explain: int | None = None,
    ) -> None:
        self.settings = settings or DetectSettings()
        self.notes: list[str] = []
        enabled = [detector for detector in detectors if detector.kind not in self.settings.disabled]
        self._classes = [detector for detector in enabled if not detector.session_wide]
        wide = [detector for detector in enabled if detector.session_wide]
        self._effects = EffectsTable(self._classes, wide)
        self._wide = AgentScope("", self.settings, [detector(self.settings) for detector in wide])
        self._current: dict[str | None, AgentScope] = {}
        self._latest: AgentScope | None = None
        self._explain = explain
        self._explained: tuple[AgentScope, str] | None = None
        blind = _one_round_more(self.settings)
        self._unseen = UnseenResults(lambda: self._scope(blind, _BLIND_DOUBT))
        self._session = ""
        self._watch: StallWatch | None = None
        self._progress: Progress | None = None
        self._open: dict[str, tuple[Observation, AgentScope]] = {}
        self._scopes: dict[Key, AgentScope] = {}
        self._by_agent: dict[str | None, list[AgentScope]] = {}
        self._all_changes = self._all_writings = 0
        self._talking: dict[str, bool] = {}
        self._last_words: dict[str | None, str] = {}
        self._speaker: AgentScope | None = None
        self._raised: list[OpenFinding] = []
        self._seen_processes: dict[str | None, list[int]] = {}
        self._announced: set[str | None] = set()
        # To a person; with a farewell; with a success. Nothing was done since.
        self._passed_on = self._closed = self._completed = False
        self._user: str | None = None

    def observe_all(self, observations: Iterable[Observation]) -> None:
        """Take observations as `observe` does, but return no findings. This is faster for replays of long histories."""
        # Hold a start until the next observation shows whether its result came with it: such an entry needs less work.
        waiting: Observation | None = None
        for observation in observations:
            if waiting is not None:
                if observation.kind == "finish" and observation.id == waiting.id and self._take_whole(waiting, observation):
                    waiting = None
                    continue
                self._observe(waiting)
                waiting = None
            if observation.kind == "start":
                waiting = observation
            else:
                self._observe(observation)
        if waiting is not None:
            self._observe(waiting)

    def observe(self, observation: Observation) -> list[Finding]:
        """Take one more observation. Return the findings that it raised."""
        return [case.finding() for case in self._observe(observation)]

    def _observe(self, observation: Observation) -> list[OpenFinding]:
        watch = self._watch
        if watch is None:
            self._session = self._wide.session = observation.session
            watch = self._watch = StallWatch(observation.session, self.settings)
        kind = observation.kind
        if kind == "start":
            raised = self._begin(observation, watch)
        elif kind == "finish":
            raised = self._end(observation, watch)
        elif kind == "event":
            raised = self._hear(observation, watch)
        else:
            watch.close()
            self._completed = observation.data == "completed"
            return []
        self._add_raised(raised)
        return raised

    def _add_raised(self, raised: Sequence[OpenFinding]) -> None:
        """Keep the cases raised for the first time. A loop is raised again if its severity rises or it comes back."""
        for case in raised:
            if not case.is_listed:
                case.is_listed = True
                self._raised.append(case)

    def _take_whole(self, start: Observation, finish: Observation) -> bool:
        """Take an entry together with its result. Return False if `_begin` and `_end` must do it in two steps.

        It does the work of both for an entry that was open for no time, without the parts that cancel each other.
        """
        watch, key = self._watch, (start.agent, start.process)
        scope = self._scopes.get(key)
        if (
            scope is None
            or watch is None
            or finish.at is not start.at  # the result came later
            or finish.status == "interrupted"
            # Opinions are requested at the start of an entry, before its result is known.
            or self._explain is not None
            or start.id in self._open
            or not self._unseen.is_over(key)
        ):
            return False
        seen = self._seen_processes.get(start.process)
        if seen is None or start.process in self._announced:
            return False
        seen[1] = start.seq
        self._closed = self._completed = False
        start.progress = self._progress
        watch.take_whole(start, finish)
        if start.step is not None or start.turn is not None:
            scope.begin(start)
        self._latest = self._current[start.agent] = scope
        self._progress = read_progress(finish) or self._progress
        raised = self._conclude(start, finish, scope)
        self._add_raised(raised)
        return True

    def findings(self, now: float | None = None, live: bool = False) -> list[Finding]:
        """Return every finding so far, including resolved ones, in the order in which they were raised, with stalls last.

        Args:
            now: seconds since 1970 against which stalls are judged; None if the log is complete.
            live: the process may still be running. Then an open call is no evidence without a ``now``.
        """
        found = [case.finding(self._superseded_reason(case)) for case in self._raised]
        if self._watch is None or "hung" in self.settings.disabled:
            return found
        if live and now is None:
            self._add_note(NO_CLOCK)
        if self._watch.has_untimed:
            self._add_note(NO_TIMES)
        return found + self._watch.judge(now, live, self._progress)

    @property
    def last_progress(self) -> Progress | None:
        """The session's last achievement: that before the oldest loop that lasts, if one lasts (see `read_progress`)."""
        for case in self._raised:
            if case.end_reason(self._superseded_reason(case)) is None:
                return case.last_progress
        return self._progress

    def _begin(self, start: Observation, watch: StallWatch) -> list[OpenFinding]:
        if start.id in self._open:
            return []
        seen = self._seen_processes.get(start.process)
        if seen is None or start.process in self._announced:
            self._begin_process(start, watch)
        else:
            seen[1] = start.seq
        self._passed_on = self._closed = self._completed = False
        start.progress = self._progress
        watch.begin(start)
        key = (start.agent, start.process)
        scope = self._scopes.get(key) or self._new_scope(key)
        self._open[start.id] = (start, scope)
        if start.step is not None or start.turn is not None:
            scope.begin(start)
        self._latest = self._current[start.agent] = scope
        if start.index is not None and start.index == self._explain:
            self._explained = (scope, start.id)
            scope.opinions = []
        return self._unseen.begin(start, key)

    def _end(self, finish: Observation, watch: StallWatch) -> list[OpenFinding]:
        known = self._open.pop(finish.id, None)
        if known is None:
            return []
        start, scope = known
        # A first result proves that the log holds this agent's results.
        self._unseen.end((start.agent, start.process))
        finish.progress = self._progress
        watch.end(finish)
        self._progress = read_progress(finish) or self._progress
        if finish.status == "interrupted":  # a person stepped in (design ruling 8)
            self._reset("interrupt")
            return []
        return self._conclude(start, finish, scope)

    def _conclude(self, start: Observation, finish: Observation, scope: AgentScope) -> list[OpenFinding]:
        """Show an entry with its result to its agent's detectors, and to those of all agents if it may matter to them."""
        # Update this before the step is judged: changes by others make its question a new one.
        if len(self._scopes) > 1:
            scope.others_changes = self._all_changes - scope.changes
            scope.others_writings = self._all_writings - scope.writings
        self._passed_on = calls_a_person(start.action) and finish.status == "ok" and not has_failed(finish)
        raised = scope.end(start, finish)
        if len(self._scopes) > 1 and finish.status == "ok" and scope.last_changed_the_world():
            scope.changes += 1
            self._all_changes += 1
            if not is_shell(start.action) and writes(start):
                scope.writings += 1
                self._all_writings += 1
        if raised or scope.came_back:
            raised = [*raised, *self._report_loops(raised, scope)]
        talks = self._talking.get(start.action)
        if talks is None:
            talks = self._talks(start.action)
        # Detectors of all agents wake at calls that hand something over or look for news. Asleep, they need no other calls.
        if talks or self._wide.is_awake or self._wide.active:
            raised = [*raised, *self._wide.end(start, finish, scope.call)]
        return raised

    def _talks(self, action: str) -> bool:
        # Names of actions are recorded text, so a hostile log may hold any number of them.
        if len(self._talking) >= _MAX_ACTIONS:
            self._talking.clear()
        talks = self._talking[action] = hands_over(action) or looks_for_news(action)
        return talks

    def _report_loops(self, raised: Sequence[OpenFinding], scope: AgentScope) -> list[OpenFinding]:
        """Report loops that were raised or came back to the detector of recovery loops. Return what it raises."""
        found: list[OpenFinding] = []
        for case in (*raised, *scope.came_back):
            record, index = case.raisings[-1][1:]
            data = {"answers": [case.identity]}
            seen = Observation("event", 0, record, self._session, index, type=LOOP_SEEN, data=data, progress=case.last_progress)
            found += self._wide.hear(seen)
        scope.came_back.clear()
        return found

    def _hear(self, event: Observation, watch: StallWatch) -> list[OpenFinding]:
        kind = event.type or ""
        effects = self._effects.effects_for(kind)
        event.progress = self._progress
        if kind == "nudge":
            self._correct(event)
        if effects.resets is not None:
            if not is_synthetic(event):
                watch.hear(event)
                self._reset(effects.resets)
                return []
            self._closed = is_farewell(event_text(event) or "")
            if not self._closed:
                self._user = event.agent
                self._note_talk(asks=True)
            # A program's message in a person's name resets no evidence (design ruling 8). It corrects nobody either: it may
            # belong to a conversation of programs, while a nudge is meant as a correction.
            event = replace(event, type="nudge")
            kind = "nudge"
            effects = self._effects.effects_for(kind)
        watch.hear(event)
        if kind == BEGINS:
            self._announce(event, watch)
        if effects.replays:
            for scope in self._event_scopes(event):
                scope.replay()
        raised = self._hear_words(event, effects)
        if effects.bounds:
            for scope in self._event_scopes(event):
                scope.set_boundary()
        return raised

    def _hear_words(self, event: Observation, effects: EventEffects) -> list[OpenFinding]:
        if event.type == "continuation":
            event = self._record_answer(event)
        elif effects.converses and event.agent is not None:
            self._converse(event)
        if effects.speaks:
            self._unseen.speak(event.agent)
        raised = self._wide.hear(event) if effects.is_wide else []
        if effects.is_heard and not self._wide.covers(event.id):
            scope = self._scope_hearing(event)
            scope.others_changes = self._all_changes - scope.changes
            spoken = scope.hear(event)
            if spoken or scope.came_back:
                raised = [*raised, *spoken, *self._report_loops(spoken, scope)]
        return raised

    def _correct(self, nudge: Observation) -> None:
        """Note which agents were told to change course: the nudge's agent, or all agents if it names none that is known."""
        for scope in (*(self._by_agent.get(nudge.agent) or self._scopes.values()), self._wide):
            scope.tell()

    def _converse(self, event: Observation) -> None:
        """Note that an agent that acts in this session said something new, and who may have been waiting for it.

        An agent that spoke before gets an answer by that, so its next questions to its tools are new ones.
        """
        own = self._current.get(event.agent)
        text = event_text(event)
        if own is None or not text or self._last_words.get(event.agent) == text:
            return
        self._last_words[event.agent] = text
        if event.agent != self._user:
            self._note_talk(asks=False)
        own.speak()
        # By now, all earlier speakers but the last one have been answered.
        if self._speaker is not None and self._speaker is not own:
            self._speaker.heard += 1
        self._speaker = own

    def _note_talk(self, *, asks: bool) -> None:
        """Tell the loops of calls that the user asked for something, or that an agent answered."""
        for scope in (*self._scopes.values(), self._wide):
            scope.converse(asks=asks)

    def _record_answer(self, event: Observation) -> Observation:
        """Take a continuation. It answers the loops that it names, else all active ones."""
        data = json_object(event.data)
        named = json_texts(data.get("answers"))
        for scope in (*self._scopes.values(), self._wide):
            for identity in named or (None,):
                scope.answer(identity)
        if named:
            return event
        lasting = [case.identity for scope in self._scopes.values() for case in scope.active]
        return replace(event, data={**data, "answers": lasting})

    def _scope_hearing(self, event: Observation) -> AgentScope:
        """Return the scope in which an event counts: its agent's newest, or the scope that acted last if it names no agent."""
        if event.agent is None and event.process is None and self._latest is not None:
            return self._latest
        if event.process is None and event.agent in self._current:
            return self._current[event.agent]
        key = (event.agent, event.process)
        scope = self._scopes.get(key) or self._new_scope(key)
        self._current.setdefault(event.agent, scope)
        return scope

    def _new_scope(self, key: Key) -> AgentScope:
        spoken = self._scopes.get((key[0], None)) if key[0] is not None else None
        if spoken is not None and not spoken.has_acted:
            # Before its first action, an agent's messages name no process. It is still the same agent.
            del self._scopes[key[0], None]
            self._scopes[key] = spoken
            return spoken
        scope = self._scopes[key] = self._scope(self.settings)
        self._by_agent.setdefault(key[0], []).append(scope)
        return scope

    def explain(self, index: int) -> list[Opinion]:
        """Return what each detector thought of the entry with this index.

        The monitor must have been created with ``explain=index``: opinions are formed only for that entry, so other monitors
        pay nothing. Empty while the entry has no result, or if its action is exempt.
        """
        if self._explained is None or index != self._explain:
            return []
        scope, entry = self._explained
        own = [(step, opinion) for step, opinion in scope.opinions or [] if any(call.start.id == entry for call in step.calls)]
        if not own:
            return []
        last = own[-1][0]
        return [*self._wide.think(last), *(opinion for step, opinion in own if step is last)]

    def _event_scopes(self, event: Observation) -> list[AgentScope]:
        """Return the scopes of an event: its agent's; all if it names no agent, or replays an attempt of an unknown one."""
        if event.agent is None:
            return list(self._scopes.values())
        own = self._by_agent.get(event.agent, [])
        return list(self._scopes.values()) if not own and event.type in REPLAYS else own

    def _reset(self, why: str) -> None:
        for scope in (*self._scopes.values(), self._unseen, self._wide):
            scope.reset(why)

    def _scope(self, settings: DetectSettings, doubt: float = 1.0) -> AgentScope:
        scope = AgentScope(self._session, settings, [detector(settings) for detector in self._classes], doubt)
        scope.is_explained = self._explain is not None
        return scope

    def _announce(self, beginning: Observation, watch: StallWatch) -> None:
        """Note that a process begins, before it has done anything."""
        if beginning.process in self._seen_processes:
            return
        if self._seen_processes:
            watch.take_over(beginning)
        self._seen_processes[beginning.process] = [beginning.seq, beginning.seq]
        self._announced.add(beginning.process)

    def _begin_process(self, start: Observation, watch: StallWatch) -> None:
        """Take the first entry of a process."""
        if self._seen_processes.keys() - {start.process}:
            watch.leave_open()
        self._seen_processes[start.process] = [start.seq, start.seq]
        self._announced.discard(start.process)

    def _superseded_reason(self, case: OpenFinding) -> str | None:
        """Return "process" if a process that began later has replaced that of the case, "end" if the run is over."""
        # Two programs that thank each other without end are a loop themselves.
        closed = self._closed and not case.is_spoken and (case.severity == "warn" or case.is_left(completed=False))
        if self._passed_on or closed or (self._completed and case.is_left(completed=True)):
            return "end"
        own = self._seen_processes.get(case.process)
        if own is None or len(self._seen_processes) < 2:
            return None
        return "process" if any(first > own[1] for first, _ in self._seen_processes.values()) else None

    def _add_note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _one_round_more(settings: DetectSettings) -> DetectSettings:
    """Return settings for logs without results: only inputs are compared, so one more round is needed (see `rounds_needed`)."""
    cycle_rounds = settings.cycle_rounds + _BLIND_ROUNDS
    return replace(
        settings,
        cycle_rounds=cycle_rounds,
        window=max(settings.window, cycle_rounds * settings.max_period),
    )


def read_progress(finish: Observation) -> Progress | None:
    """Return the progress that a result represents, or None if it is no progress.

    An entry is progress if its result says that it succeeded, for any agent. The last progress of a finding is the last such
    entry before its first member; that of a stall is the last one when it was seen. A session with a lasting finding has that
    finding's last progress, because the rounds of a loop bring nothing even if they succeed. A message of a person resets the
    evidence of loops, but not the progress.

    Silence is measured differently (design ruling 9): from any new entry or result, even a failed one.
    """
    return Progress(finish.id, finish.index, finish.at) if finish.status == "ok" and not has_failed(finish) else None
