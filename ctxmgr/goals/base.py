"""What all requests about a goal share: its folder, its state, the answer to a change."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ctxmgr.errors import NotFound
from ctxmgr.goals.changes import CHANGES
from ctxmgr.goals.repository import Ledger
from ctxmgr.goals.responses import state_view
from ctxmgr.goals.state import State
from ctxmgr.log.ids import now
from ctxmgr.log.journal import Durability
from ctxmgr.types.goal import GoalAnswer, GoalState, ProbeResult

if TYPE_CHECKING:
    from ctxmgr.detect.settings import DetectSettings
    from ctxmgr.goals.loop_guard import Judge

FOLDER = ".agent_context"
"""Where a goal is kept, in the folder that is worked in."""


class GoalBase:
    """A goal's folder; see `ctxmgr.goals.service.Goals` for the arguments."""

    def __init__(
        self,
        folder: str | os.PathLike[str] = FOLDER,
        *,
        agent: str = "agent",
        hold: bool = False,
        settings: DetectSettings | None = None,
        durability: Durability = "os",
        mask: bool = True,
        timeout: float = 10.0,
        root: str | os.PathLike[str] | None = None,
        commands: bool | Collection[str] = False,
        clock: Callable[[], str] = now,
    ) -> None:
        self.agent = agent
        self._commands = commands
        self.root = os.path.abspath(root if root is not None else os.path.join(os.path.abspath(folder), os.pardir))
        self._ledger = Ledger(folder, hold=hold, durability=durability, masked=mask, timeout=timeout, clock=clock)
        self._settings = settings

    @cached_property
    def _judge(self) -> Judge:
        from ctxmgr.goals.loop_guard import Judge  # with the detectors, which most requests have no need of

        return Judge(self._settings)

    @property
    def folder(self) -> str:
        """The absolute path of the goal's folder."""
        return self._ledger.folder

    @property
    def warnings(self) -> list[str]:
        """What was found damaged, and what was done about it."""
        return list(self._ledger.warnings)

    def state(self) -> GoalState:
        """Return everything that is known of the goal. Writes nothing."""
        return self._view(self._existing(self._ledger.look()))

    def _look_at_files(self) -> list[ProbeResult]:
        probes = self.state().probes
        if not probes:
            return []
        from ctxmgr.goals.probes import check_all

        return check_all(probes, Path(self.root), commands=self._commands)

    def _checked(self, op: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return the data of a change that is legal now."""
        CHANGES[op][0](self._ledger.state, data)
        return {"op": op, **data}

    def _existing(self, state: State) -> State:
        if not state.exists:
            raise NotFound(f"there is no goal in {self.folder!r}", "begin one with 'ctxmgr goal start'")
        return state

    def _answer(self, changed: Sequence[str], message: str | None = None) -> GoalAnswer:
        return GoalAnswer(state=self._view(self._ledger.state), changed=list(changed), message=message)

    def _view(self, state: State) -> GoalState:
        ledger = self._ledger
        return state_view(state, ledger.generation, ledger.included.records, ledger.included.sum, ledger.warnings)
