"""The stuck handler: what is known is written down, recovery is asked once, refusals are passed on, nothing recurses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import AttemptsUsedUp, DegenerateLoopError, HungError, InvalidInput, RecoveryRefused
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.history.live.bus import ActionFinished, ActionStarted, EventBus
from ctxmgr.recover.recovery import Limits
from ctxmgr.recover.stuck_handler import STUCK, RecoveryStuckHandler, StuckHandler, run_guarded
from ctxmgr.store import open_store
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import CONTEXT_MANAGER, Continuation
from tests.history.live_world import Clock, Tape, recorded, spin
from tests.history.live_world import clock as clock


def stuck(board: BlackboardHistory, *, agent: str = "coder") -> DegenerateLoopError:
    """Let an agent of the workflow go round until it is stopped; return the error."""
    with board.action("planner", "Plan", input="parser") as step:
        step.output = "read, then edit"
    for _ in range(2):
        _make(board, agent)
    with pytest.raises(DegenerateLoopError) as raised:
        _make(board, agent)
    return raised.value


def _make(board: BlackboardHistory, agent: str) -> None:
    with board.action(agent, "Bash", input="make") as step:
        step.output = "nothing to be done"


def finding_of(error: DegenerateLoopError | HungError) -> Finding:
    """Return the finding that an error carries."""
    assert isinstance(error.finding, Finding)
    return error.finding


@pytest.mark.requirement("FR-004", "US8-2", "AC-3-live")
def test_a_loop_is_handed_over(store_path: Path) -> None:
    """A live loop becomes exactly one continuation of the stuck handler's, about that loop, recorded in the session."""
    handler = RecoveryStuckHandler()
    with BlackboardHistory(EventBus(), store_path, session="s") as board:
        error = stuck(board)
        given = handler.handle(error, board)

    assert isinstance(handler, StuckHandler)
    assert given is not None
    assert (given.source, given.session, given.attempts) == ("stuckHandler", "s", 1)
    assert given.loop is not None
    assert (given.loop.finding, given.loop.count) == (finding_of(error).id, 3)
    assert given.do_not_repeat[0].action == "Bash"
    assert [record["id"] for record in recorded(store_path) if record["kind"] == "continuation"] == [given.id]


@pytest.mark.requirement("FR-004", "AC-3-live")
def test_what_is_known_is_written_down_first(store_path: Path) -> None:
    """Before recovery is asked, an event says what was found, where, and whether anything of the run was lost."""
    with BlackboardHistory(EventBus(), store_path, session="s") as board:
        error = stuck(board)
        RecoveryStuckHandler().handle(error, board)

    written = recorded(store_path)
    (event,) = [record for record in written if record.get("type") == STUCK]
    finding = finding_of(error)
    assert event["data"] == {"finding": finding.to_json(), "lost": 0, "handler": "RecoveryStuckHandler"}
    assert (event["entry"], event["agent"]) == (finding.last, "coder")
    kinds = [record["kind"] for record in written]
    assert kinds.index("event") < kinds.index("note") < kinds.index("continuation")


@pytest.mark.requirement("FR-004", "US11-1", "SC-003")
def test_a_stall_is_handed_over(store_path: Path, clock: Clock) -> None:
    """A workflow that stood still for the time limit is handed over with the last action and the silence."""
    with BlackboardHistory(None, store_path, session="s", clock=clock) as board:
        with board.action("coder", "Read", input="a.py") as step:
            step.output = "text"
        waiting = board.entry("coder", "Bash", "npm run dev", timeout_ms=60_000)
        clock.at += 121
        with pytest.raises(HungError) as raised:
            board.check()
        given = RecoveryStuckHandler().handle(raised.value, board)

    assert given is not None
    assert given.stall is not None
    assert (given.source, given.stall.kind, given.stall.members) == ("stuckHandler", "hung", [waiting])
    assert given.stall.last_progress is not None


def test_the_handler_writes_no_context_of_its_own(store_path: Path) -> None:
    """Between the loop and the continuation the handler adds one event; notes, snapshot and continuation are recovery's."""
    with BlackboardHistory(None, store_path, session="s") as board:
        error = stuck(board)
        before = len(recorded(store_path))
        RecoveryStuckHandler().handle(error, board)
        added = recorded(store_path)[before:]

    assert [record["kind"] for record in added][:1] == ["event"]
    assert {record["kind"] for record in added[1:]} == {"note", "snapshot", "continuation"}
    assert {record.get("author") for record in added if record["kind"] == "note"} == {CONTEXT_MANAGER}


@pytest.mark.requirement("FR-019", "SC-007")
def test_a_handler_never_handles_itself(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handling that is asked for within a handling of the same session is refused, and the next one afterwards is not."""
    handler = RecoveryStuckHandler()
    with BlackboardHistory(None, store_path, session="s") as board:
        error = stuck(board)

        def recursing(*_: Any, **__: Any) -> Continuation:
            assert handler.handle(error, board) is None
            raise AssertionError("handled within a handling")

        with monkeypatch.context() as patch:
            patch.setattr("ctxmgr.recover.stuck_handler.Recovery.answer", recursing)
            with pytest.raises(RecoveryRefused, match="being handled already"):
                handler.handle(error, board)

        assert handler.handle(error, board) is not None


@pytest.mark.requirement("FR-019", "SC-007")
def test_the_context_manager_is_never_handed_to_itself(store_path: Path) -> None:
    """When it is the context manager that goes in circles, nothing is written and a person is asked for."""
    with BlackboardHistory(None, store_path, session="s") as board:
        error = stuck(board, agent=CONTEXT_MANAGER.title())
        with pytest.raises(RecoveryRefused, match="never recovers itself"):
            RecoveryStuckHandler().handle(error, board)

    assert not [record for record in recorded(store_path) if record["kind"] in ("continuation", "event")]


@pytest.mark.requirement("R-11")
def test_refusals_are_passed_on(store_path: Path) -> None:
    """A recovery that is under way elsewhere, and attempts that are used up, are the caller's typed errors."""
    handler = RecoveryStuckHandler(limits=Limits(attempts=1))
    with BlackboardHistory(None, store_path, session="s") as board:
        error = stuck(board)
        store = open_store(str(store_path))
        assert store.leases.take("s", "another", store.clock(), 60)
        with pytest.raises(RecoveryRefused, match="already running"):
            handler.handle(error, board)
        store.leases.release("s", "another")
        store.close()
        given = handler.handle(error, board)
        assert given is not None
        again = handler.handle(error, board)
        assert again is not None
        assert (again.id, again.told_again) == (given.id, True)
        _make(board, "coder")
        with pytest.raises(AttemptsUsedUp):
            handler.handle(error, board)


def test_what_is_over_needs_no_answer() -> None:
    """A finding that is resolved, or no more than a warning, is not handed over."""
    board = BlackboardHistory(None, Tape(), on_loop="report")
    spin(board)
    (finding,) = board.findings()
    handler = RecoveryStuckHandler()

    assert handler.handle(finding.model_copy(update={"resolved": "progress"}), board) is None
    assert handler.handle(finding.model_copy(update={"severity": "warn"}), board) is None


def test_what_cannot_be_escalated_is_said(store_path: Path) -> None:
    """An error without a finding, and a history that lies in no store, are refused; another store may be given."""
    tape = Tape()
    board = BlackboardHistory(None, tape, session="s", on_loop="report")
    spin(board)
    (finding,) = board.findings()
    with pytest.raises(InvalidInput, match="says nothing"):
        RecoveryStuckHandler().handle(DegenerateLoopError("round"), board)
    with pytest.raises(InvalidInput, match="no store"):
        RecoveryStuckHandler().handle(finding, board)
    store = open_store(str(store_path), create=True)
    store.append(tape.records)
    given = RecoveryStuckHandler(store=store).handle(finding, board)
    store.close()

    assert given is not None


@pytest.mark.requirement("AC-3-live", "FR-018")
def test_a_guarded_workflow_goes_on(store_path: Path) -> None:
    """A workflow that gets stuck is run again with the continuation, and its outcome is returned."""
    seen: list[Continuation | None] = []
    with BlackboardHistory(None, store_path, session="s") as board:

        def workflow(continuation: Continuation | None) -> str:
            seen.append(continuation)
            for number in range(5):
                given = "make" if continuation is None else f"make part{number}"
                with board.action("coder", "Bash", input=given) as step:
                    step.output = given
            return "built"

        assert run_guarded(workflow, board, RecoveryStuckHandler()) == "built"

    assert [continuation and continuation.target for continuation in seen] == [None, "coder"]


@pytest.mark.requirement("FR-002", "FR-018")
def test_a_workflow_that_publishes_is_guarded(store_path: Path) -> None:
    """A workflow that does no more than publish its actions is stopped in the third round, run again, and goes on."""
    bus, heard, rounds = EventBus(), list[object](), 0

    def workflow(continuation: Continuation | None) -> str:
        nonlocal rounds
        for number in range(20):
            rounds += continuation is None
            given = "make" if continuation is None else f"make part{number}"
            bus.publish(ActionStarted(given, "Bash", given, agent="coder"))
            bus.publish(ActionFinished(given, output=given))
        return "built"

    with BlackboardHistory(bus, store_path, session="s") as board:
        bus.subscribe(lambda event, seq: heard.append(event))
        assert run_guarded(workflow, board, RecoveryStuckHandler()) == "built"

    assert (rounds, len(heard), bus.failed, board.lost) == (3, 2 * (3 + 20), 0, 0)


@pytest.mark.requirement("R-11")
def test_a_workflow_that_will_not_learn_ends_with_a_person(store_path: Path) -> None:
    """A workflow that repeats its loop after every answer is stopped each time, and in the end a person is asked for."""
    done: list[int] = []
    with BlackboardHistory(None, store_path, session="s") as board:

        def workflow(continuation: Continuation | None) -> None:
            while True:
                spin(board, 1)
                done.append(1)

        with pytest.raises(AttemptsUsedUp):
            run_guarded(workflow, board, RecoveryStuckHandler(to="coder"))

    # The third time the loop is known to come back after its answers, so one round less is enough.
    assert len(done) == 2 + 2 + 1
    assert sum(record["kind"] == "continuation" for record in recorded(store_path)) == 2


def test_a_guarded_workflow_has_an_end() -> None:
    """Without an answer, or after too many, the loop error itself is raised; other errors pass through untouched."""

    class Advice:
        def __init__(self, answer: Any) -> None:
            self.asked, self.answer = 0, answer

        def handle(self, stuck: object, board: BlackboardHistory) -> Any:
            self.asked += 1
            return self.answer

    def workflow(continuation: Continuation | None) -> None:
        spin(board)

    board = BlackboardHistory(None, Tape())
    for advice, asked in ((Advice(None), 1), (Advice("go on"), 4)):
        with pytest.raises(DegenerateLoopError):
            run_guarded(workflow, board, advice, at_most=4)
        assert advice.asked == asked
    with pytest.raises(ZeroDivisionError):
        run_guarded(lambda _: 1 / 0, board, Advice("go on"))
    with pytest.raises(InvalidInput):
        run_guarded(workflow, board, Advice("go on"), at_most=-1)
