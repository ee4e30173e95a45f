"""Judge agents whose results the log does not hold."""

from __future__ import annotations

from collections.abc import Callable

from ctxmgr.detect.agent_state import AgentScope
from ctxmgr.detect.finding_lifecycle import OpenFinding
from ctxmgr.detect.step import Call
from ctxmgr.detect.text.vocabulary import delegates
from ctxmgr.types.observation import Observation

_MAX_ASSIGNMENTS = 1000

Key = tuple[str | None, str | None]
"""Agent and process."""


class UnseenResults:
    """One scope for each agent and process until its first result comes.

    What a call brings is foreseen when the one before it is over (its agent has spoken since, so it had its answer, recorded
    or not) and nothing since makes the question a new one: no other agent was seen to change anything, and no work was
    handed over that nobody had been given before. Handing over is no change itself: what comes of it is in the log.
    """

    def __init__(self, make: Callable[[], AgentScope]) -> None:
        self._make = make
        self._scopes: dict[Key, AgentScope | None] = {}
        self._watched: dict[str | None, AgentScope] = {}
        self._seen: dict[Key, tuple[int, int]] = {}
        self._changes = 0
        self._assignments: dict[int, int] = {}
        self._assigned = -1

    def begin(self, start: Observation, key: Key) -> list[OpenFinding]:
        """Take the start of an entry; return the cases raised by it."""
        if key not in self._scopes:
            scope = self._scopes[key] = self._watched[start.agent] = self._make()
        elif not self._watched:
            return []
        else:
            scope = self._scopes[key]
        if delegates(start.action):
            self._assign(start)
        elif Call(start, None, 0).changes():
            self._changes += 1
        if scope is None:
            return []
        changes, place = self._seen.get(key, (0, 0))
        scope.foreseen = scope.spoke_since and changes == self._changes and self._assigned <= place
        scope.spoke_since = False
        self._seen[key] = (self._changes, start.seq)
        scope.begin(start)
        return scope.end(start, None)

    def is_over(self, key: Key) -> bool:
        """Whether the results of an agent were seen, and nobody is watched without: then an entry changes nothing here."""
        return not self._watched and self._scopes.get(key, self) is None

    def _assign(self, start: Observation) -> None:
        """Note where in the log what is handed over now was handed over first."""
        if len(self._assignments) >= _MAX_ASSIGNMENTS:
            self._assignments.clear()
        self._assigned = self._assignments.setdefault(Call.of(start, None).query, start.seq)

    def end(self, key: Key) -> None:
        """Leave an agent to those who see its results: they are recorded, so what was seen without is no evidence."""
        scope = self._scopes.get(key)
        if scope is None:
            return
        scope.reset("progress")
        self._scopes[key] = None
        if self._watched.get(key[0]) is scope:
            del self._watched[key[0]]

    def speak(self, agent: str | None) -> None:
        """Note that an agent said or thought something: the call before it is over."""
        scope = self._watched.get(agent)
        if scope is not None:
            scope.spoke_since = True

    def reset(self, why: str) -> None:
        """Forget all evidence: a person spoke."""
        for scope in self._scopes.values():
            if scope is not None:
                scope.reset(why)
