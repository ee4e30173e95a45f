"""A workflow that records itself is stopped where it goes round, and told of where it stands still."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import DegenerateLoopError, HungError, InvalidInput
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.history.live.bus import ActionFinished, ActionStarted, Event, EventBus
from ctxmgr.store import open_store
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import DetectRequest
from ctxmgr.workspace import Workspace
from tests.history.live_world import Clock, Tape, recorded, spin
from tests.history.live_world import clock as clock


def _finding(error: DegenerateLoopError | HungError) -> Finding:
    assert isinstance(error.finding, Finding)
    return error.finding


@pytest.mark.requirement("FR-002", "SC-002", "FR-005", "US8-1")
def test_the_third_identical_iteration_is_raised(store_path: Path) -> None:
    """The third identical action raises, with the pattern and where it is; what was done is recorded all the same."""
    with BlackboardHistory(None, store_path, session="s") as board:
        spin(board, 2)
        with pytest.raises(DegenerateLoopError, match="coder ran Bash") as raised:
            spin(board, 1)

    finding = _finding(raised.value)
    entries = [record["id"] for record in recorded(store_path) if record["kind"] == "entry"]
    assert (finding.kind, finding.count, finding.period, finding.members) == ("repetition", 3, 1, entries)
    assert (finding.first, finding.raised_at) == (entries[0], entries[2])
    assert finding.evidence["steps"] == [{"action": "Bash", "inputType": "string", "input": "ls"}]


@pytest.mark.requirement("FR-002")
def test_a_cycle_is_raised_in_its_third_round() -> None:
    """Two actions in turn raise at the end of their third round, through plain calls as well."""
    board = BlackboardHistory(None, Tape())
    for number in range(5):
        entry = board.entry("coder", "Edit" if number % 2 else "Test", "a.py")
        board.result(entry, output="failed" if number % 2 else "ok")
    last = board.entry("coder", "Edit", "a.py")
    with pytest.raises(DegenerateLoopError) as raised:
        board.result(last, output="failed")

    assert (_finding(raised.value).kind, _finding(raised.value).period) == ("cycle", 2)


def test_progress_raises_nothing() -> None:
    """New inputs, new results, and a changed answer in between are no loop."""
    with BlackboardHistory(None, Tape()) as board:
        for number in range(20):
            spin(board, 1, given=number, output="same")
            spin(board, 1, given="poll", output=f"line {'x' * number}")
        assert board.findings() == []


def test_a_loop_that_goes_on_is_raised_again() -> None:
    """A workflow that goes on with the loop is stopped after every further three iterations; once it left, no more."""
    board = BlackboardHistory(None, Tape())
    raised: list[tuple[int, int]] = []
    for number in range(1, 11):
        try:
            spin(board, 1)
        except DegenerateLoopError as error:
            raised.append((number, _finding(error).count))
    spin(board, 1, given="other", output="new")
    spin(board, 1, given="another", output="newer")
    spin(board, 2)

    assert raised == [(3, 3), (6, 6), (9, 9)]


def test_the_loop_error_takes_the_place_of_the_tool_error() -> None:
    """A workflow that catches its tool's errors and tries again is stopped all the same; the tool's error is the cause."""
    board = BlackboardHistory(None, Tape())

    def work() -> int:
        for attempt in range(10):
            try:
                with board.action("coder", "Bash", input="make"):
                    raise OSError("no such target")
            except OSError:
                continue
            finally:
                tried.append(attempt)
        return 0

    tried: list[int] = []
    with pytest.raises(DegenerateLoopError) as raised:
        work()

    assert tried == [0, 1, 2]
    assert isinstance(raised.value.__cause__, OSError)


def test_an_interruption_goes_first() -> None:
    """Ctrl-C inside an action is never replaced by a loop error, and the action counts as interrupted."""
    tape = Tape()
    board = BlackboardHistory(None, tape)
    spin(board, 2)
    with pytest.raises(KeyboardInterrupt), board.action("coder", "Bash", input="ls"):
        raise KeyboardInterrupt

    assert [record["status"] for record in tape.of("result")] == ["ok", "ok", "interrupted"]


def test_one_loop_raises_once_through_nested_actions() -> None:
    """A loop inside an action is raised through it; the outer action is recorded as failed and raises nothing of its own."""
    tape = Tape()
    board = BlackboardHistory(None, tape)
    with pytest.raises(DegenerateLoopError) as raised, board.action("main", "Task", input="all"):
        spin(board)
    assert _finding(raised.value).kind == "repetition"
    spin(board, 1, action="Read")

    outer = tape.of("entry")[0]["id"]
    results = [record for record in tape.of("result") if record["entry"] == outer]
    assert [(result["status"], result["error"]["type"]) for result in results] == [("error", "DegenerateLoopError")]
    assert [record.get("parent") for record in tape.of("entry")] == [None, outer, outer, outer, None]


def test_asynchronous_actions() -> None:
    """``async with`` records and raises in the same way."""

    async def work() -> None:
        for _ in range(3):
            async with board.action("coder", "Bash", input="ls") as step:
                await asyncio.sleep(0)
                step.output = "same"

    board = BlackboardHistory(None, Tape())
    with pytest.raises(DegenerateLoopError):
        asyncio.run(work())


def test_loops_may_be_reported_or_handled() -> None:
    """``report`` raises nothing and keeps the finding; a function gets it, and may raise what it likes."""
    with BlackboardHistory(None, Tape(), on_loop="report") as quiet:
        spin(quiet, 5)
        assert [(finding.kind, finding.count) for finding in quiet.findings()] == [("repetition", 5)]

    def handle(finding: Finding) -> None:
        raise LookupError(finding.kind)

    handled = BlackboardHistory(None, Tape(), on_loop=handle)
    with pytest.raises(LookupError, match="repetition"):
        spin(handled)


@pytest.mark.requirement("FR-002")
def test_actions_may_be_published() -> None:
    """Starts and ends of actions come over the bus too; the loop error reaches the publisher."""
    bus, tape = EventBus(on_error=lambda failure: None), Tape()
    with BlackboardHistory(bus, tape) as board:
        finished = [ActionFinished(f"a{number}", output="same", duration_ms=3) for number in range(3)]
        for number in range(3):
            bus.publish(ActionStarted(f"a{number}", "Bash", "ls", agent="coder", step=number))
            bus.publish(Event("tool_call_update", "running", entry=f"a{number}"))
            if number < 2:
                bus.publish(finished[number])
        with pytest.raises(DegenerateLoopError):
            bus.publish(finished[2])

    entries = [record["id"] for record in tape.of("entry")]
    assert [record["entry"] for record in tape.of("result")] == entries
    assert [record["entry"] for record in tape.of("event")] == entries
    assert [record["seq"] for record in tape.records[1:-1]] == list(range(1, 10))
    assert {record["process"] for record in tape.records[1:-1]} == {board.process}
    assert board.lost == 0


@pytest.mark.requirement("FR-006", "SC-013", "R-08")
@pytest.mark.parametrize("kind", ["interrupt", "user_message"])
def test_a_person_resets_detection_with_the_very_record(kind: str) -> None:
    """After an interrupt or a human message, by call or over the bus, two iterations more raise nothing; a third does."""
    bus = EventBus()
    board = BlackboardHistory(bus, Tape())
    spin(board, 2)
    board.event(kind, "stop that")
    spin(board, 2)
    bus.publish(Event(kind, "stop that"))
    spin(board, 2)
    with pytest.raises(DegenerateLoopError):
        spin(board, 1)


@pytest.mark.requirement("R-08")
@pytest.mark.parametrize("kind", ["nudge", "compaction", "agent_message_chunk", "heartbeat"])
def test_nothing_else_resets_detection(kind: str) -> None:
    """A nudge, a compaction, a message of the agent and a heartbeat leave the count as it is."""
    board = BlackboardHistory(None, Tape())
    spin(board, 2)
    board.event(kind, "go on", agent="coder")
    with pytest.raises(DegenerateLoopError):
        spin(board, 1)


@pytest.mark.requirement("SC-003", "FR-003")
def test_a_stall_is_seen_within_two_minutes(clock: Clock) -> None:
    """Up to 120 seconds of silence are no stall; a moment later the check raises, with what was last done."""
    board = BlackboardHistory(None, Tape(), clock=clock)
    spin(board, 1, given="make")
    quiet_since = clock.at
    clock.at = quiet_since + 119.9
    board.check()
    clock.at = quiet_since + 120.1
    with pytest.raises(HungError, match="nothing has happened for") as raised:
        board.check()
    with pytest.raises(HungError):
        board.check(quiet_since + 500)

    assert (_finding(raised.value).kind, _finding(raised.value).evidence["limitSeconds"]) == ("hung", 120.0)
    board.end()
    board.check(quiet_since + 5_000)


def test_a_call_in_flight_has_its_own_limit(clock: Clock) -> None:
    """A call that declares a limit is overdue after that, and its result ends the stall; heartbeats are no progress."""
    board = BlackboardHistory(None, Tape(), clock=clock)
    entry = board.entry("coder", "Bash", "make", timeout_ms=30_000)
    clock.at += 20
    board.check()
    board.event("heartbeat", entry=entry)
    clock.at += 20
    with pytest.raises(HungError) as raised:
        board.check()
    board.result(entry, output="done")
    board.check()

    assert _finding(raised.value).members == [entry]


def test_each_stall_is_told_once(clock: Clock) -> None:
    """The alarm hears of a stall once however often it looks, and of the next one again; its own errors are kept."""
    heard: list[str] = []

    def hear(stall: HungError) -> None:
        heard.append(_finding(stall).first)
        raise RuntimeError("listener")

    board = BlackboardHistory(None, Tape(), clock=clock, on_hung=hear)
    for _ in range(2):
        spin(board, 1, given=len(heard))
        board.tick()
        for _ in range(3):
            clock.at += 130
            board.tick()
    board.end()
    board.tick(clock.at + 1_000)

    assert len(heard) == len(set(heard)) == 2
    assert [str(failure) for failure in board.failures] == ["listener"] * 2


def test_a_thread_may_look_for_stalls(clock: Clock) -> None:
    """With ``watch_every`` a stall is told without anyone asking, and the thread ends with the history."""
    heard = threading.Event()
    with BlackboardHistory(None, Tape(), clock=clock, watch_every=0.001, on_hung=lambda stall: heard.set()) as board:
        watching = [thread for thread in threading.enumerate() if thread.name == "ctxmgr-stall-alarm"]
        spin(board, 1)
        clock.at += 121
        assert heard.wait(60)
    for thread in watching:
        thread.join(60)

    assert [thread.is_alive() for thread in watching] == [False]


def test_a_watch_needs_someone_who_hears() -> None:
    """A thread without a listener, and a time that is none, are refused before anything is recorded."""
    tape = Tape()
    with pytest.raises(InvalidInput):
        BlackboardHistory(None, tape, watch_every=1)
    with pytest.raises(InvalidInput):
        BlackboardHistory(None, tape, watch_every=0, on_hung=print)
    with pytest.raises(InvalidInput):
        BlackboardHistory(None, tape, settings={"repeat_rounds": 1})

    assert tape.records == []


def test_thresholds_are_settings() -> None:
    """Thresholds come as a table or as an object."""
    for chosen in ({"repeat_rounds": 5}, DetectSettings(repeat_rounds=5)):
        board = BlackboardHistory(None, Tape(), settings=chosen)
        spin(board, 4)
        with pytest.raises(DegenerateLoopError):
            spin(board, 1)


@pytest.mark.requirement("FR-002")
def test_checking_raises_loops_too(clock: Clock) -> None:
    """`check` raises a loop that lasts, until a continuation answers it, and again after as many rounds."""
    board = BlackboardHistory(None, Tape(), on_loop="report", clock=clock)
    spin(board, 2)
    board.check()
    spin(board, 1)
    for _ in range(2):
        with pytest.raises(DegenerateLoopError):
            board.check()
    board.follow({"v": 1, "kind": "continuation", "session": board.session, "id": "c"})
    board.check()
    spin(board, 2)
    board.check()
    spin(board, 1)
    with pytest.raises(DegenerateLoopError):
        board.check()


def test_a_resumed_session_is_known(store_path: Path, clock: Clock) -> None:
    """A session that goes on in a new process shows its earlier findings; what that process left open is no stall."""
    with BlackboardHistory(None, store_path, session="s", on_loop="report") as first:
        spin(first, 4)
        first.entry("coder", "Bash", "sleep 1000")
    clock.at += 10_000
    with BlackboardHistory(None, store_path, session="s", clock=clock) as second:
        before = second.findings()
        second.check()
        spin(second, 2, action="Read")
        with pytest.raises(DegenerateLoopError) as raised:
            spin(second, 1, action="Read")
        indexes = _finding(raised.value).evidence["indexes"]["members"]

    assert [(finding.kind, finding.count) for finding in before] == [("repetition", 4)]
    assert indexes == [5, 6, 7]


def test_a_session_that_cannot_be_read_back_is_recorded_all_the_same(tmp_path: Path) -> None:
    """What is wrong with the past is kept as a failure; the present is recorded."""
    place = tmp_path / "history.db"
    open_store(str(place), create=True).close()
    with BlackboardHistory(None, place, session="s") as board:
        spin(board, 1)
    store = open_store(str(place))
    store.engine.execute("UPDATE record SET body = '{' WHERE kind = 'result'")
    store.close()
    with BlackboardHistory(None, place, session="s") as again:
        spin(again, 1)

    assert [type(failure).__name__ for failure in again.failures] == ["Damaged"]


def test_live_and_recorded_agree(store_path: Path) -> None:
    """What was raised live is, id for id, what ``detect`` finds in the record afterwards."""
    with BlackboardHistory(None, store_path, session="s", on_loop="report") as board:
        spin(board, 2, given="other")
        spin(board, 4, given={"b": 1, "a": float("nan"), 3: {"x", "y"}}, output=object)
        live = board.findings()
    with Workspace.open(str(store_path)) as workspace:
        replayed = workspace.detect(DetectRequest()).verdicts[0].findings

    assert [finding.to_json() for finding in live] == [
        finding.model_copy(update={"diagnosis": None}).to_json() for finding in replayed
    ]
    assert len(live) == 1
    assert replayed[0].diagnosis is not None  # only what lies in a store is diagnosed
