"""Edit a plan in progress: add, split, reorder, drop, block, unblock.

`GoalBase` is the common base of all requests about a goal. Edits also work while another process holds the goal. That process
reads the change before its own next change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.goals.changes import CHANGES, EVENT, find_node
from ctxmgr.goals.repository import GoalRepository
from ctxmgr.goals.state import Node, State, state_view
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
"""Name of a goal's folder in the project's folder (spec 004)."""


class GoalBase:
    """The folder of a goal; see `ctxmgr.goals.service.Goals` for the arguments."""

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
        from ctxmgr.goals.loop_guard import LoopGuard  # it loads the detectors, which most requests do not need

        return LoopGuard(self._settings)

    @property
    def folder(self) -> str:
        """The absolute path of the goal's folder."""
        return self._repository.folder

    @property
    def warnings(self) -> list[str]:
        """Damage that was found, and how it was handled."""
        return list(self._repository.warnings)

    def state(self) -> GoalState:
        """Return the full state of the goal. Writes nothing."""
        return self._view(self._require_goal(self._repository.look()))

    def _run_probes(self) -> list[ProbeResult]:
        probes = self._require_goal(self._repository.look()).probes
        if not probes:
            return []
        # Imported only if there are probes, because an agent reads its goal at every step.
        from pathlib import Path

        from ctxmgr.goals.probes import check_all

        return check_all(probes, Path(self.root), commands=self._commands)

    def _require_legal(self, op: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return the data of an event, its reason as one line, after checking that the change is legal now."""
        if "reason" in data:
            data = {**data, "reason": join_lines(data["reason"])}
        CHANGES[op][0](self._repository.state, data)
        return {"op": op, **data}

    def _require_goal(self, state: State) -> State:
        if not state.exists:
            raise self._repository.missing_goal()
        return state

    def _answer(self, changed: Sequence[str], message: str | None = None) -> GoalAnswer:
        return GoalAnswer(state=self._view(self._repository.state), changed=list(changed), message=message)

    def _view(self, state: State) -> GoalState:
        repository = self._repository
        return state_view(
            state, repository.generation, repository.included.records, repository.included.sum, repository.warnings
        )


def tasks_data(drafts: Sequence[TaskDraft], minted: int) -> list[dict[str, Any]]:
    """Return new tasks with their subtasks as event data. Ids continue after ``minted``, so that no id is used twice."""
    made: list[dict[str, Any]] = []
    for number, draft in enumerate(drafts, minted + 1):
        name = f"t{number}"
        made.append({**_make_leaf(name, draft), "nodes": subtasks(name, draft.subtasks, 0)})
    return made


def subtasks(parent: str, drafts: Sequence[SubtaskDraft], minted: int) -> list[dict[str, Any]]:
    """Return new subtasks of a task as event data. Ids continue after ``minted``."""
    return [_make_leaf(f"{parent}.{number}", draft) for number, draft in enumerate(drafts, minted + 1)]


def join_lines(text: str | None) -> str | None:
    """Return a text as one line, as the tree and the brief show it; None for a reason that says nothing."""
    return " ".join(text.split()) or None if text is not None else None


def _make_leaf(name: str, draft: SubtaskDraft) -> dict[str, Any]:
    made: dict[str, Any] = {"id": name, "text": join_lines(draft.description)}
    return {**made, "done": True} if draft.done else made


def _list_children(parent: Node, drafts: Sequence[TaskDraft]) -> list[dict[str, Any]]:
    if parent.id == "goal":
        return tasks_data(drafts, parent.minted)
    if any(draft.subtasks for draft in drafts):
        raise InvalidInput("a subtask has no subtasks of its own", "add them as subtasks of the task")
    return subtasks(parent.id, drafts, parent.minted)


def add_data(parent: Node, request: AddRequest) -> dict[str, Any]:
    """Return the event data of an addition: {parent, at, nodes}, the nodes as `tasks_data` returns them."""
    return {"parent": parent.id, "at": request.at, "nodes": _list_children(parent, request.tasks)}


def split_data(node: Node, parent: Node, request: SplitRequest) -> dict[str, Any]:
    """Return the event data of a split: {id, nodes, reason}, the nodes as in `add_data`."""
    return {"id": node.id, "nodes": _list_children(parent, request.into), "reason": request.reason}


def unblock_data(state: State, request: UnblockRequest) -> dict[str, Any] | None:
    """Return the event data of an unblocking, or None if nothing is blocked.

    Raises:
        NotFound: the request names something that is not blocked.
    """
    blocked = [node for node in state.goal.walk() if node.block is not None]
    if request.target is None:
        return {"all": True, "reason": request.reason} if blocked or state.blocked_actions else None
    # Ids of nodes take precedence: an action may also be called ``t2``, but has its key as a second name.
    node = state.tree.get(request.target)
    if node is not None:
        with_blocked_actions = {each.node for each in state.blocked_actions}
        if not any(each.block is not None or each.id in with_blocked_actions for each in node.walk()):
            raise NotFound(f"{node.id!r} is not blocked", "'ctxmgr goal tree' shows what is")
        return {"nodes": [node.id], "actions": [], "reason": request.reason}
    keys = [each.key for each in state.blocked_actions if request.target in (each.key, each.action)]
    if not keys:
        raise NotFound(f"{request.target[:80]!r} is no blocked task or action", "'ctxmgr goal tree' shows what is blocked")
    return {"nodes": [], "actions": keys, "reason": request.reason}


def explain_no_work(state: State) -> str:
    """Return why no leaf can be worked on."""
    if state.goal.status == "done":
        return "everything is done"
    if any(node.status == "blocked" for node in state.goal.walk()):
        return "what is left is blocked: unblock it, or ask with 'ctxmgr goal recover'"
    return "nothing is left to do"


class PlanEdits(GoalBase):
    """The requests that change the plan."""

    def add(self, request: AddRequest) -> GoalAnswer:
        """Add tasks, or subtasks of a task."""

        def decide(state: State) -> dict[str, Any]:
            return add_data(find_node(state, request.parent or "goal"), request)

        return self._edit("add", decide)

    def split(self, request: SplitRequest) -> GoalAnswer:
        """Replace a task or subtask by several."""

        def decide(state: State) -> dict[str, Any]:
            node = find_node(state, request.id)
            return split_data(node, state.tree.parent(node) or state.goal, request)

        return self._edit("split", decide)

    def reorder(self, request: ReorderRequest) -> GoalAnswer:
        """Reorder the tasks, or the subtasks of a task."""
        return self._edit("order", lambda state: {"parent": request.parent or "goal", "order": list(request.order)})

    def drop(self, request: DropRequest) -> GoalAnswer:
        """Drop a task or subtask. It stays in the history but does not count for progress."""
        return self._edit("drop", lambda state: {"id": request.id, "reason": request.reason})

    def block(self, request: BlockRequest) -> GoalAnswer:
        """Block a task or subtask on behalf of a person."""
        return self._edit("block", lambda state: {"id": request.id, "reason": request.reason})

    def unblock(self, request: UnblockRequest) -> GoalAnswer:
        """Lift a block, or all blocks. Loop detection starts again, because a person has seen the earlier actions."""
        with self._repository.change(work=False) as change:
            state = self._require_goal(change.state)
            data = unblock_data(state, request)
            if data is None:
                return self._answer([], "nothing is blocked")
            change.write([self._repository.event(self._require_legal("unblock", data))])
        return self._answer([*data.get("nodes", []), *data.get("actions", [])], "unblocked")

    def message(self, request: MessageRequest) -> GoalAnswer:
        """Record a message of a person. It lifts the guard's blocks, but no blocks by a person."""
        return self._append_event({"text": request.text}, "user_message")

    def record_compaction(self) -> GoalAnswer:
        """Record a compaction of the agent's context. The next brief begins with other words."""
        return self._append_event({}, "compaction")

    def set_probes(self, probes: Sequence[Probe]) -> GoalAnswer:
        """Replace all probes, the checks of files on disk."""
        return self._append_event(probes_data(probes))

    def add_probe(self, probe: Probe) -> GoalAnswer:
        """Add a probe, or replace the one of the same name."""
        with self._repository.change(work=False) as change:
            known = [each for each in self._require_goal(change.state).probes if each.name != probe.name]
            change.write([self._repository.event(probes_data([*known, probe]))])
        return self._answer([])

    def check_probes(self) -> GoalAnswer:
        """Run the probes and record their results."""
        return self.keep_probe_results(self._run_probes())

    def keep_probe_results(self, results: Sequence[ProbeResult]) -> GoalAnswer:
        """Record results of probes. Unchanged results are not written."""
        with self._repository.change(work=False) as change:
            if records := self._probe_event(self._require_goal(change.state), results):
                change.write(records)
        return self._answer([])

    probed = keep_probe_results  # its name until 0.2

    def _probe_event(self, state: State, results: Sequence[ProbeResult]) -> list[Record]:
        """Return the event with the results in a list, or an empty list if they are unchanged."""
        if list(results) == state.probe_state:
            return []
        return [self._repository.event({"op": "probed", "results": [plain(each.to_json()) for each in results]})]

    def apply(self, continuation: Mapping[str, Any]) -> GoalAnswer:
        """Record the continuation of a recovery (in JSON form). It lifts the guard's blocks and sets the next step."""
        # The record that contains the continuation has its own ``v``, ``kind`` and ``ts``.
        fields: dict[str, Any] = {
            key: value for key, value in plain(dict(continuation)).items() if key not in ("v", "kind", "ts")
        }
        fields["id"] = fields["id"] if isinstance(fields.get("id"), str) and fields["id"] else new_id()
        fields["of"] = fields.pop("session", None)  # the record itself belongs to the goal's session
        with self._repository.change(work=False) as change:
            state = self._require_goal(change.state)
            change.write([build("continuation", state.session, self._repository.clock(), **fields)])
        return self._answer([], "the continuation was taken up")

    def _edit(self, op: str, decide: Callable[[State], dict[str, Any]]) -> GoalAnswer:
        with self._repository.change(work=False) as change:
            data = self._require_legal(op, decide(self._require_goal(change.state)))
            change.write([self._repository.event({key: value for key, value in data.items() if value is not None})])
        named = [each["id"] for each in data.get("nodes", [])]
        return self._answer([*([data["id"]] if "id" in data else []), *named, *data.get("order", [])])

    def _append_event(self, data: dict[str, Any], kind: str = EVENT) -> GoalAnswer:
        with self._repository.change(work=False) as change:
            self._require_goal(change.state)
            change.write([self._repository.event(data, kind)])
        return self._answer([])


def probes_data(probes: Sequence[Probe]) -> dict[str, Any]:
    """Return the event data that sets the probes: {op, probes}, each probe as JSON."""
    return {"op": "probes", "probes": [plain(each.to_json()) for each in probes]}
