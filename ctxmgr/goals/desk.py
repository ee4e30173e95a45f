"""Everything that can be asked of a goal: one method a request, the same for the library, the command line and others.

Each change is decided on the state, written to the history, synced, and only then folded in. A refused or illegal change
writes nothing but, where an action was refused, that it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import Conflict, InvalidInput, NotFound
from ctxmgr.goals import acting, planning
from ctxmgr.goals.brief import write_brief
from ctxmgr.goals.changes import CHANGES, find
from ctxmgr.goals.fold import ENDED
from ctxmgr.goals.judge import Judge
from ctxmgr.goals.ledger import Ledger
from ctxmgr.goals.resume import claims_of
from ctxmgr.goals.source import source_of
from ctxmgr.goals.state import State
from ctxmgr.goals.tree import Node
from ctxmgr.goals.views import owner_view, state_view
from ctxmgr.ids import new_id, now
from ctxmgr.journal import Durability, read
from ctxmgr.plain import plain
from ctxmgr.types.goal import (
    ActionRequest, AddRequest, BlockRequest, BriefAnswer, BriefRequest, DropRequest, EndRequest, GoalAnswer, GoalSource, GoalState,
    MessageRequest, NextRequest, Probe, ProbeResult, RecordAnswer, RecordRequest, ReorderRequest, ResumeAnswer, ResumeRequest,
    SplitRequest, StartRequest, UnblockRequest,
)  # fmt: skip
from ctxmgr.types.record import build
from ctxmgr.wire import Record

FOLDER = ".agent_context"
"""Where a goal is kept, in the folder that is worked in."""


class Goals:
    """A goal in a folder.

    Args:
        folder: where its files are; made by `start`, with mode 0700.
        agent: whose actions they are, where a request does not say.
        hold: whether this process keeps the goal from its first change on, until `close`; without it every call stands for
            itself, as commands do.
        settings: thresholds of the detection of loops.
        durability: what a change waits for; by default that it is on the disk.
        mask: whether secrets of known shapes are masked.
        timeout: seconds to wait for another process's change.
        root: the folder that recorded paths and probes are relative to; by default the one the folder is in.
        commands: whether probes may run commands.

    Raises (all methods):
        NotFound: there is no goal here, or no task of that id.
        InvalidInput: the change is not legal where the goal stands; nothing was written.
        Busy: another process holds the goal. Superseded: another took it over; nothing was written.
        StorageFailed: the system refused.
    """

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
        commands: bool = False,
        clock: Callable[[], str] = now,
    ) -> None:
        self.agent = agent
        self._commands = commands
        self.root = os.path.abspath(root if root is not None else os.path.join(os.path.abspath(folder), os.pardir))
        self._ledger = Ledger(folder, hold=hold, durability=durability, masked=mask, timeout=timeout, clock=clock)
        self._judge = Judge(settings)

    @classmethod
    def open(
        cls, project: str | os.PathLike[str] = ".", *, create: bool = False, hold: bool = False, commands: bool = False,
        agent: str = "agent", settings: DetectSettings | None = None,
    ) -> Goals:  # fmt: skip
        """Return the goal of a project: the one in its folder ``.agent_context``.

        Raises:
            NotFound: there is none, and ``create`` is false.
        """
        folder = os.path.join(os.fspath(project), FOLDER)
        goals = cls(folder, agent=agent, hold=hold, commands=commands, settings=settings)
        if not create:
            goals.state()
        return goals

    def __enter__(self) -> Goals:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def folder(self) -> str:
        """The absolute path of the goal's folder."""
        return self._ledger.folder

    @property
    def warnings(self) -> list[str]:
        """What was found damaged, and what was done about it."""
        return list(self._ledger.warnings)

    def close(self) -> None:
        """Let go of the goal, so that another process may hold it at once."""
        self._ledger.release()

    def start(self, request: StartRequest) -> GoalAnswer:
        """Begin a goal, or take up the one that is there.

        Raises:
            Conflict: another, unfinished goal is there. NotFound: the request names none, and there is none.
        """
        self._ledger.forget_claim()
        if request.goal is None:
            self._existing(self._ledger.look())
        with self._ledger.change(work=True, create=True) as change:
            state = change.state
            if state.exists and not request.replace and self._goes_on(state, request):
                change.write([])
                return self._answer([], "the goal goes on")
            text = request.goal or ""
            session = new_id()
            data = self._checked("create", {"text": text, "nodes": planning.tasks(request.tasks, 0)})
            records = [
                build("session", session, self._ledger.clock(), process=new_id(), workflow="goal", meta={"goal": text}),
                self._ledger.event(data, session=session),
            ]
            if request.probes:
                records.append(self._ledger.event(_probes(request.probes), session=session))
            change.write(records)
        return self._answer(["goal"])

    def add(self, request: AddRequest) -> GoalAnswer:
        """Add tasks, or subtasks of one."""

        def decide(state: State) -> dict[str, Any]:
            return planning.add(find(state, request.parent or "goal"), request)

        return self._steer("add", decide)

    def split(self, request: SplitRequest) -> GoalAnswer:
        """Replace a task or subtask by several."""

        def decide(state: State) -> dict[str, Any]:
            node = find(state, request.id)
            return planning.split(node, state.tree.parent(node) or state.goal, request)

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
            data = planning.unblock(state, request)
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

    def add_probe(self, probe: Probe) -> GoalAnswer:
        """Add a check of the files on disk, in the place of one with the same name."""
        known = [each for each in self.state().probes if each.name != probe.name]
        return self.set_probes([*known, probe])

    def set_probes(self, probes: Sequence[Probe]) -> GoalAnswer:
        """Set the checks of the files on disk."""
        return self._note(_probes(probes))

    def probed(self, results: Sequence[ProbeResult]) -> GoalAnswer:
        """Keep what the checks saw; nothing is written when it is what they saw before."""
        seen = [plain(each.to_json()) for each in results]
        with self._ledger.change(work=False) as change:
            if seen != self._existing(change.state).probe_state:
                change.write([self._ledger.event({"op": "probed", "results": seen})])
        return self._answer([])

    def check_probes(self) -> GoalAnswer:
        """Look at the files on disk now, and keep what was seen."""
        return self.probed(self._look_at_files())

    def check(self, request: ActionRequest) -> RecordAnswer:
        """Say whether an action would be allowed; nothing is written."""
        acting.check_action(request)
        state = self._existing(self._ledger.look())
        item, node = acting.candidate(state, request, self.agent, self._ledger.clock())
        return acting.answer(item, node, acting.refusal(state, item, node, self._judge), recorded=False)

    def begin(self, request: ActionRequest) -> RecordAnswer:
        """Begin an action, unless it is refused: until its result is recorded its effect is unknown."""
        return self._act(ActionRequest(action=request.action, args=request.args, agent=request.agent))

    def record(self, request: RecordRequest) -> RecordAnswer:
        """Record an action with its result (of an action begun before: its result), unless it is refused."""
        if request.entry is None:
            return self._act(request)
        with self._ledger.change(work=True) as change:
            state = self._existing(change.state)
            item = next((each for each in state.in_flight if each["id"] == request.entry), None)
            change.write([acting.result(state, request, state.session, self._ledger.clock())], save=False)
        place = item or {}
        return RecordAnswer(allowed=True, entry=request.entry, node=place.get("node"), attempt=place.get("attempt"))

    def _act(self, request: ActionRequest) -> RecordAnswer:
        acting.check_action(request)
        with self._ledger.change(work=True) as change:
            state = self._existing(change.state)
            item, node = acting.candidate(state, request, self.agent, self._ledger.clock())
            no = acting.refusal(state, item, node, self._judge)
            if no is not None:
                change.write([self._ledger.event(acting.refused_event(state, item, node, no))])
            else:
                change.write([acting.entry(state, item, node, request, state.session)], save=False)
        return acting.answer(item, node, no, recorded=True)

    def next(self, request: NextRequest) -> GoalAnswer:
        """Go to the next leaf that can be worked on, or to the one named."""
        with self._ledger.change(work=True) as change:
            state = self._existing(change.state)
            active = state.tree.get(state.active)
            if request.to is not None:
                node: Node | None = find(state, request.to)
            elif active is not None and state.tree.can_work(active):
                node = active if active.status == "failed" else state.tree.first_open(active) or active
            else:
                node = state.tree.first_open(active)
            if node is None:
                return self._answer([], planning.nothing_left(state))
            if node is active and node.status == "in_progress" and request.to is not None:
                return self._answer([], f"{node.id} is the one in progress")
            data = {"op": "enter", "id": node.id, "leave": request.to is not None}
            if node is active and node.status == "in_progress":
                raise InvalidInput(f"{node.id!r} is still in progress", "say 'goal done' or 'goal fail' first")
            change.write([self._ledger.event(self._checked("enter", data))])
        return self._answer([node.id])

    def done(self, request: EndRequest) -> GoalAnswer:
        """End the attempt at the current leaf as done."""
        return self._end(request, success=True)

    def fail(self, request: EndRequest) -> GoalAnswer:
        """End the attempt at the current leaf as failed; where that is one too many, the leaf is blocked."""
        return self._end(request, success=False)

    def _end(self, request: EndRequest, *, success: bool) -> GoalAnswer:
        with self._ledger.change(work=True) as change:
            state = self._existing(change.state)
            node = state.current() if request.id is None else find(state, request.id)
            if node is None:
                raise InvalidInput(planning.nothing_left(state))
            attempt = node.attempt
            open_ = attempt is not None and attempt.status == "in_progress"
            number = attempt.number + (not open_) if attempt else 1
            data: dict[str, Any] = {"subtask": node.id, "success": success, "attempt": number, "reason": request.reason}
            message = None
            self._checked("end", data)
            if not success and (finding := self._judge.failure(state, node.id)) is not None:
                message = data["blocked"] = f"{finding.count} failed attempts; try a different approach"
                data["finding"] = finding.id
            change.write([self._ledger.event({key: value for key, value in data.items() if value is not None}, ENDED)])
            message = f"{node.id} is blocked: {message}" if message else None
        return self._answer([node.id], message)

    def brief(self, request: BriefRequest | None = None) -> BriefAnswer:
        """Return what an agent needs to know now, in at most ``max_chars`` characters. Writes nothing."""
        asked = request or BriefRequest()
        return write_brief(self._existing(self._ledger.look()), asked.max_chars, asked.moment)

    def state(self) -> GoalState:
        """Return everything that is known of the goal. Writes nothing."""
        return self._view(self._existing(self._ledger.look()))

    def resume(self, request: ResumeRequest | None = None) -> ResumeAnswer:
        """Take the goal up where it was left, and say where that is; a second time nothing is written.

        What the probes see on the disk now is kept.
        """
        asked = request or ResumeRequest()
        probed = self._look_at_files()
        self._ledger.forget_claim()
        with self._ledger.change(work=True, take_over=asked.take_over) as change:
            state = self._existing(change.state)
            seen = [plain(each.to_json()) for each in probed]
            records = [self._ledger.event({"op": "probed", "results": seen})] if seen and seen != state.probe_state else []
            took, rebuilt = change.takes and change.previous is not None, list(self._ledger.damaged)
            previous, replayed = change.previous, self._ledger.replayed
            change.write(records)
        self._ledger.replayed = 0
        view = self._view(state)
        return ResumeAnswer(
            state=view, claims=claims_of(state, self.root, probed), in_flight=view.in_flight, replayed=replayed, took_over=took,
            previous=owner_view(state.epoch - 1, previous) if took and previous else None, rebuilt=rebuilt,
            brief=write_brief(state, BriefRequest().max_chars, "resume").text,
        )  # fmt: skip

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

    def source(self) -> GoalSource:
        """Return where the goal stands, for recovery and context packages. Writes nothing."""
        return source_of(self._existing(self._ledger.look()))

    def records(self) -> Iterator[Record]:
        """Yield the records of the goal's session, oldest first."""
        session = self._existing(self._ledger.look()).session
        for line in read(self._ledger.path):
            if line.record.get("session") == session:
                yield line.record

    def _look_at_files(self) -> list[ProbeResult]:
        probes = self.state().probes
        if not probes:
            return []
        from ctxmgr.goals.probes import check_all

        return check_all(probes, Path(self.root), commands=self._commands)

    def _steer(self, op: str, decide: Callable[[State], dict[str, Any]]) -> GoalAnswer:
        with self._ledger.change(work=False) as change:
            data = self._checked(op, decide(self._existing(change.state)))
            change.write([self._ledger.event({key: value for key, value in data.items() if value is not None})])
        named = [each["id"] for each in data.get("nodes", [])]
        return self._answer([*([data["id"]] if "id" in data else []), *named, *data.get("order", [])])

    def _note(self, data: dict[str, Any], kind: str = "goal") -> GoalAnswer:
        with self._ledger.change(work=False) as change:
            self._existing(change.state)
            change.write([self._ledger.event(data, kind)])
        return self._answer([])

    def _checked(self, op: str, data: dict[str, Any]) -> dict[str, Any]:
        """Return the data of a change that is legal now."""
        CHANGES[op][0](self._ledger.state, data)
        return {"op": op, **data}

    def _goes_on(self, state: State, request: StartRequest) -> bool:
        same = request.goal is None or request.goal.strip() == state.goal.text.strip()
        if same or state.goal.status == "done":
            return same
        raise Conflict(
            f"another goal is under way here: {state.goal.text[:200]!r}",
            "go on with it, or give it up for this one with 'ctxmgr goal start --replace'",
        )

    def _existing(self, state: State) -> State:
        if not state.exists:
            raise NotFound(f"there is no goal in {self.folder!r}", "begin one with 'ctxmgr goal start'")
        return state

    def _answer(self, changed: Sequence[str], message: str | None = None) -> GoalAnswer:
        return GoalAnswer(state=self._view(self._ledger.state), changed=list(changed), message=message)

    def _view(self, state: State) -> GoalState:
        ledger = self._ledger
        return state_view(state, ledger.generation, ledger.included.records, ledger.included.sum, ledger.warnings)


def _probes(probes: Sequence[Probe]) -> dict[str, Any]:
    return {"op": "probes", "probes": [plain(each.to_json()) for each in probes]}
