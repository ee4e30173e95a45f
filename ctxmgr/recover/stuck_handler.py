"""Catch a loop or stall of a running workflow, and hand it over to recovery.

This module only detects and escalates. The context manager decides what the next agent is told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, nullcontext
from typing import Protocol, TypeVar, runtime_checkable

from ctxmgr.errors import DegenerateLoopError, HungError, InvalidInput, NoHistory, RecoveryRefused
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.recover.recovery import Limits, Recovery, RecoveryOptions
from ctxmgr.recover.routes import RoutingTable
from ctxmgr.recover.stuck_request import build_request, other_findings
from ctxmgr.store import Store, open_store
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Continuation, is_context_manager

_T = TypeVar("_T")

STUCK = "stuck"
"""Type of the event that a handler records in the history."""


@runtime_checkable
class StuckHandler(Protocol):
    """Decides what happens to a workflow that is stuck."""

    def handle(self, stuck: DegenerateLoopError | HungError | Finding, board: BlackboardHistory) -> Continuation | None:
        """Return the one continuation with which the workflow goes on, or None if there is nothing to do.

        Raises:
            RecoveryRefused: a recovery of this session is under way.
            AttemptsUsedUp: this loop was answered as often as allowed; a person is needed.
        """
        ...


class RecoveryStuckHandler:
    """Records the finding in the history, and asks the context manager for exactly one continuation.

    Args:
        to: the agent that has to continue; None to choose one.
        limits: attempt cap and lease time.
        table: the routing table; by default it is derived from the history.
        store: the store of the history; by default the history's own target is opened for the recovery.
    """

    def __init__(
        self,
        *,
        to: str | None = None,
        limits: Limits | None = None,
        table: RoutingTable | None = None,
        store: Store | None = None,
    ) -> None:
        self._options = RecoveryOptions(to=to, limits=limits or Limits(), table=table)
        self._store = store

    def handle(self, stuck: DegenerateLoopError | HungError | Finding, board: BlackboardHistory) -> Continuation | None:
        """Record and answer a finding; return None if it is over or only a warning.

        Raises:
            RecoveryRefused: this session's handler already runs (in any thread), another recovery holds the session, or the
                context manager itself is stuck.
            AttemptsUsedUp: this loop was answered as often as allowed; a person is needed.
            InvalidInput: the error carries no finding, the history has no store, or ``to`` may not continue.
        """
        finding = _require_finding(stuck)
        if finding.resolved is not None or finding.severity == "warn":
            return None
        if finding.scope.agent is not None and is_context_manager(finding.scope.agent):
            raise RecoveryRefused("the context manager is stuck itself, and never recovers itself", "a person is needed")
        with _single_handler((board.location, board.session)):
            told = {"finding": finding.to_json(), "lost": board.lost, "handler": type(self).__name__}
            board.event(STUCK, told, entry=finding.last or None, agent=finding.scope.agent)
            return self._escalate(finding, board)

    def _escalate(self, finding: Finding, board: BlackboardHistory) -> Continuation:
        request = build_request(board.session, finding, force=False)
        side = other_findings(board.findings(), finding)
        with self._open_store(board) as store:
            key = store.sessions.key(board.session)
            if key is None:
                raise NoHistory(hint="nothing was recorded in this session")
            given = Recovery(store, key, request, finding, side=side, options=self._options).answer()
        # The recovery has written it past the running history. Its detectors must know that advice was given.
        board.follow({"v": 1, "kind": "continuation", "session": board.session, "id": given.id})
        return given

    def _open_store(self, board: BlackboardHistory) -> closing[Store] | nullcontext[Store]:
        if self._store is not None:
            return nullcontext(self._store)
        if board.location is None:
            raise InvalidInput("this history has no store that could be read", "give the handler one: store=...")
        return closing(open_store(board.location))


def run_guarded(
    workflow: Callable[[Continuation | None], _T], board: BlackboardHistory, handler: StuckHandler, *, at_most: int = 10
) -> _T:
    """Run a workflow. Whenever it gets stuck, run it again with the continuation that the handler returns.

    Args:
        workflow: called with None at first, then with each continuation; returns the outcome.
        board: the history that raises the loops, and in which the workflow may check for stalls.
        handler: decides what to do if the workflow is stuck.
        at_most: maximum continuations, over all loops.

    Raises:
        DegenerateLoopError, HungError: the handler had no continuation, or too many were tried.
        CtxmgrError: what the handler raises: `AttemptsUsedUp`, `RecoveryRefused`.
    """
    continuation: Continuation | None = None
    for left in range(at_most, -1, -1):
        try:
            return workflow(continuation)
        except (DegenerateLoopError, HungError) as stuck:
            continuation = handler.handle(stuck, board) if left else None
            if continuation is None:
                raise
    raise InvalidInput("at_most can't be negative")


_busy: set[tuple[str | None, str]] = set()
_busy_lock = threading.Lock()


@contextmanager
def _single_handler(session: tuple[str | None, str]) -> Generator[None]:
    """Allow one handler per session at a time in this process. A nested one would recover a recovery (FR-019)."""
    with _busy_lock:
        if session in _busy:
            raise RecoveryRefused(
                f"session {session[1]!r} is being handled already", "a handler is never called from within a handling"
            )
        _busy.add(session)
    try:
        yield
    finally:
        with _busy_lock:
            _busy.discard(session)


def _require_finding(stuck: DegenerateLoopError | HungError | Finding) -> Finding:
    finding = stuck if isinstance(stuck, Finding) else stuck.finding
    if not isinstance(finding, Finding):
        raise InvalidInput("the error says nothing of what was found", "pass an error of a BlackboardHistory, or a Finding")
    return finding
