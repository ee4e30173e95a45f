"""Edit a plan in progress: add, split, reorder, drop, block, unblock.

None of this needs the goal to oneself: whoever holds it learns of the change before its next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ctxmgr.goals import change_requests
from ctxmgr.goals.base import GoalBase
from ctxmgr.goals.changes import find
from ctxmgr.goals.reducer import EVENT
from ctxmgr.goals.state import State
from ctxmgr.log.ids import new_id
from ctxmgr.log.json_value import plain
from ctxmgr.types.goal import (
    AddRequest,
    BlockRequest,
    DropRequest,
    GoalAnswer,
    MessageRequest,
    Probe,
    ProbeResult,
    ReorderRequest,
    SplitRequest,
    UnblockRequest,
)
from ctxmgr.types.record import build


class PlanEdits(GoalBase):
    """The requests that change the plan."""

    def add(self, request: AddRequest) -> GoalAnswer:
        """Add tasks, or subtasks of one."""

        def decide(state: State) -> dict[str, Any]:
            return change_requests.add(find(state, request.parent or "goal"), request)

        return self._steer("add", decide)

    def split(self, request: SplitRequest) -> GoalAnswer:
        """Replace a task or subtask by several."""

        def decide(state: State) -> dict[str, Any]:
            node = find(state, request.id)
            return change_requests.split(node, state.tree.parent(node) or state.goal, request)

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
        with self._ledger.change(work=False) as change:
            state = self._existing(change.state)
            data = change_requests.unblock(state, request)
            if data is None:
                return self._answer([], "nothing is blocked")
            change.write([self._ledger.event(self._checked("unblock", data))])
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
        return self.probed(self._look_at_files())

    def probed(self, results: Sequence[ProbeResult]) -> GoalAnswer:
        """Keep what the checks saw; nothing is written when it is what they saw before."""
        seen = [plain(each.to_json()) for each in results]
        with self._ledger.change(work=False) as change:
            if seen != self._existing(change.state).probe_state:
                change.write([self._ledger.event({"op": "probed", "results": seen})])
        return self._answer([])

    def apply(self, continuation: Mapping[str, Any]) -> GoalAnswer:
        """Take a continuation that recovery gave (its wire form): what the guard blocked is lifted, the next step noted."""
        fields: dict[str, Any] = {
            key: value for key, value in plain(dict(continuation)).items() if key not in ("v", "kind", "ts")
        }
        fields["id"] = fields["id"] if isinstance(fields.get("id"), str) and fields["id"] else new_id()
        fields["of"] = fields.pop("session", None)
        with self._ledger.change(work=False) as change:
            state = self._existing(change.state)
            change.write([build("continuation", state.session, self._ledger.clock(), **fields)])
        return self._answer([], "the continuation was taken up")

    def _steer(self, op: str, decide: Callable[[State], dict[str, Any]]) -> GoalAnswer:
        with self._ledger.change(work=False) as change:
            data = self._checked(op, decide(self._existing(change.state)))
            change.write([self._ledger.event({key: value for key, value in data.items() if value is not None})])
        named = [each["id"] for each in data.get("nodes", [])]
        return self._answer([*([data["id"]] if "id" in data else []), *named, *data.get("order", [])])

    def _note(self, data: dict[str, Any], kind: str = EVENT) -> GoalAnswer:
        with self._ledger.change(work=False) as change:
            self._existing(change.state)
            change.write([self._ledger.event(data, kind)])
        return self._answer([])


def probes_data(probes: Sequence[Probe]) -> dict[str, Any]:
    """Return the data of the event that sets the probes."""
    return {"op": "probes", "probes": [plain(each.to_json()) for each in probes]}
