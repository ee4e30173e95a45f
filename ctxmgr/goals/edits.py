"""Edit a plan in progress: add, split, reorder, drop, block, unblock.

`GoalBase` is what all requests about a goal share. None of the edits needs the goal to oneself: whoever holds it learns of
the change before its next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.goals.changes import CHANGES, find
from ctxmgr.goals.reducer import EVENT
from ctxmgr.goals.repository import GoalRepository
from ctxmgr.goals.state import State
from ctxmgr.goals.tree import Node
from ctxmgr.goals.truncation import state_view
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id, now
from ctxmgr.log.journal import Durability
from ctxmgr.log.json_value import plain
from ctxmgr.types.goal import (
    AddRequest,
    BlockRequest,
    DropRequest,
    GoalAnswer,
    GoalState,
    MessageRequest,
    Probe,
    ProbeResult,
    ReorderRequest,
    SplitRequest,
    SubtaskDraft,
    TaskDraft,
    UnblockRequest,
)
from ctxmgr.types.plain_records import build

if TYPE_CHECKING:
    from ctxmgr.detect.settings import DetectSettings
    from ctxmgr.goals.loop_guard import LoopGuard


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
        self._repository = GoalRepository(folder, hold=hold, durability=durability, masked=mask, timeout=timeout, clock=clock)
        self._settings = settings

    @cached_property
    def _guard(self) -> LoopGuard:
        from ctxmgr.goals.loop_guard import LoopGuard  # with the detectors, which most requests have no need of

        return LoopGuard(self._settings)

    @property
    def folder(self) -> str:
        """The absolute path of the goal's folder."""
        return self._repository.folder

    @property
    def warnings(self) -> list[str]:
        """What was found damaged, and what was done about it."""
        return list(self._repository.warnings)

    def state(self) -> GoalState:
        """Return everything that is known of the goal. Writes nothing."""
        return self._view(self._existing(self._repository.look()))

    def _look_at_files(self) -> list[ProbeResult]:
        probes = self._existing(self._repository.look()).probes
        if not probes:
            return []
        from pathlib import Path

        from ctxmgr.goals.probes import check_all

        return check_all(probes, Path(self.root), commands=self._commands)

    def _checked(self, op: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return the data of a change that is legal now."""
        CHANGES[op][0](self._repository.state, data)
        return {"op": op, **data}

    def _existing(self, state: State) -> State:
        if not state.exists:
            raise NotFound(f"there is no goal in {self.folder!r}", "begin one with 'ctxmgr goal start'")
        return state

    def _answer(self, changed: Sequence[str], message: str | None = None) -> GoalAnswer:
        return GoalAnswer(state=self._view(self._repository.state), changed=list(changed), message=message)

    def _view(self, state: State) -> GoalState:
        repository = self._repository
        return state_view(
            state, repository.generation, repository.included.records, repository.included.sum, repository.warnings
        )


def tasks_data(drafts: Sequence[TaskDraft], minted: int) -> list[dict[str, Any]]:
    """Return new tasks with their subtasks, numbered from after ``minted``."""
    made: list[dict[str, Any]] = []
    for number, draft in enumerate(drafts, minted + 1):
        name = f"t{number}"
        made.append({**_leaf(name, draft), "nodes": subtasks(name, draft.subtasks, 0)})
    return made


def subtasks(parent: str, drafts: Sequence[SubtaskDraft], minted: int) -> list[dict[str, Any]]:
    """Return new subtasks of a task, numbered from after ``minted``."""
    return [_leaf(f"{parent}.{number}", draft) for number, draft in enumerate(drafts, minted + 1)]


def _leaf(name: str, draft: SubtaskDraft) -> dict[str, Any]:
    made: dict[str, Any] = {"id": name, "text": draft.description}
    return {**made, "done": True} if draft.done else made


def _below(parent: Node, drafts: Sequence[TaskDraft]) -> list[dict[str, Any]]:
    if parent.id == "goal":
        return tasks_data(drafts, parent.minted)
    if any(draft.subtasks for draft in drafts):
        raise InvalidInput("a subtask has no subtasks of its own", "add them as subtasks of the task")
    return subtasks(parent.id, drafts, parent.minted)


def add_data(parent: Node, request: AddRequest) -> dict[str, Any]:
    """Return the data of an addition."""
    return {"parent": parent.id, "at": request.at, "nodes": _below(parent, request.tasks)}


def split_data(node: Node, parent: Node, request: SplitRequest) -> dict[str, Any]:
    """Return the data of a split."""
    return {"id": node.id, "nodes": _below(parent, request.into), "reason": request.reason}


def unblock_data(state: State, request: UnblockRequest) -> dict[str, Any] | None:
    """Return the data of an unblocking, None when nothing is blocked.

    Raises:
        NotFound: what the request names is not blocked.
    """
    blocked = [node for node in state.goal.walk() if node.block is not None]
    if request.target is None:
        return {"all": True, "reason": request.reason} if blocked or state.blocked_actions else None
    node = state.tree.get(request.target)
    if node is not None:
        held = {each.node for each in state.blocked_actions}
        if not any(each.block is not None or each.id in held for each in node.walk()):
            raise NotFound(f"{node.id!r} is not blocked", "'ctxmgr goal tree' shows what is")
        return {"nodes": [node.id], "actions": [], "reason": request.reason}
    keys = [each.key for each in state.blocked_actions if request.target in (each.key, each.action)]
    if not keys:
        raise NotFound(f"{request.target[:80]!r} is no blocked task or action", "'ctxmgr goal tree' shows what is blocked")
    return {"nodes": [], "actions": keys, "reason": request.reason}


def nothing_left(state: State) -> str:
    """Return why no leaf can be worked on."""
    if state.goal.status == "done":
        return "everything is done"
    if any(node.status == "blocked" for node in state.goal.walk()):
        return "what is left is blocked: unblock it, or ask with 'ctxmgr goal recover'"
    return "nothing is left to do"


class PlanEdits(GoalBase):
    """The requests that change the plan."""

    def add(self, request: AddRequest) -> GoalAnswer:
        """Add tasks, or subtasks of one."""

        def decide(state: State) -> dict[str, Any]:
            return add_data(find(state, request.parent or "goal"), request)

        return self._steer("add", decide)

    def split(self, request: SplitRequest) -> GoalAnswer:
        """Replace a task or subtask by several."""

        def decide(state: State) -> dict[str, Any]:
            node = find(state, request.id)
            return split_data(node, state.tree.parent(node) or state.goal, request)

        return self._steer("split", decide)

    def reorder(self, request: ReorderRequest) -> GoalAnswer:
        """Put tasks, or the subtasks of one, into another order."""
        return self._steer("order", lambda state: {"parent": request.parent or "goal", "order": list(request.order)})

    def drop(self, request: DropRequest) -> GoalAnswer:
        """Give a task or subtask up."""
        return self._steer("drop", lambda state: {"id": request.id, "reason": request.reason})

    def block(self, request: BlockRequest) -> GoalAnswer:
        """Block a task or subtask by hand."""
        return self._steer("block", lambda state: {"id": request.id, "reason": request.reason})

    def unblock(self, request: UnblockRequest) -> GoalAnswer:
        """Lift a block, or all; the detection of loops starts anew."""
        with self._repository.change(work=False) as change:
            state = self._existing(change.state)
            data = unblock_data(state, request)
            if data is None:
                return self._answer([], "nothing is blocked")
            change.write([self._repository.event(self._checked("unblock", data))])
        return self._answer([*data.get("nodes", []), *data.get("actions", [])], "unblocked")

    def message(self, request: MessageRequest) -> GoalAnswer:
        """Take a human message: it lifts what the guard blocked."""
        return self._note({"text": request.text}, "user_message")

    def compacted(self) -> GoalAnswer:
        """Note that the agent's context was compacted: its next brief has other words."""
        return self._note({}, "compaction")

    def set_probes(self, probes: Sequence[Probe]) -> GoalAnswer:
        """Set the checks of the files on disk."""
        return self._note(probes_data(probes))

    def add_probe(self, probe: Probe) -> GoalAnswer:
        """Add a check of the files on disk, in the place of one with the same name."""
        known = [each for each in self.state().probes if each.name != probe.name]
        return self.set_probes([*known, probe])

    def check_probes(self) -> GoalAnswer:
        """Look at the files on disk now, and keep what was seen."""
        return self.keep_probe_results(self._look_at_files())

    def keep_probe_results(self, results: Sequence[ProbeResult]) -> GoalAnswer:
        """Keep what the checks saw; nothing is written when it is what they saw before."""
        with self._repository.change(work=False) as change:
            if records := self._probe_event(self._existing(change.state), results):
                change.write(records)
        return self._answer([])

    probed = keep_probe_results  # its name until 0.2

    def _probe_event(self, state: State, results: Sequence[ProbeResult]) -> list[Record]:
        """Return the event that keeps what the checks saw, none where it is what they saw before."""
        if list(results) == state.probe_state:
            return []
        return [self._repository.event({"op": "probed", "results": [plain(each.to_json()) for each in results]})]

    def apply(self, continuation: Mapping[str, Any]) -> GoalAnswer:
        """Take a continuation that recovery gave (its wire form): what the guard blocked is lifted, the next step noted."""
        fields: dict[str, Any] = {
            key: value for key, value in plain(dict(continuation)).items() if key not in ("v", "kind", "ts")
        }
        fields["id"] = fields["id"] if isinstance(fields.get("id"), str) and fields["id"] else new_id()
        fields["of"] = fields.pop("session", None)
        with self._repository.change(work=False) as change:
            state = self._existing(change.state)
            change.write([build("continuation", state.session, self._repository.clock(), **fields)])
        return self._answer([], "the continuation was taken up")

    def _steer(self, op: str, decide: Callable[[State], dict[str, Any]]) -> GoalAnswer:
        with self._repository.change(work=False) as change:
            data = self._checked(op, decide(self._existing(change.state)))
            change.write([self._repository.event({key: value for key, value in data.items() if value is not None})])
        named = [each["id"] for each in data.get("nodes", [])]
        return self._answer([*([data["id"]] if "id" in data else []), *named, *data.get("order", [])])

    def _note(self, data: dict[str, Any], kind: str = EVENT) -> GoalAnswer:
        with self._repository.change(work=False) as change:
            self._existing(change.state)
            change.write([self._repository.event(data, kind)])
        return self._answer([])


def probes_data(probes: Sequence[Probe]) -> dict[str, Any]:
    """Return the data of the event that sets the probes."""
    return {"op": "probes", "probes": [plain(each.to_json()) for each in probes]}
