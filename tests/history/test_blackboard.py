"""The history of a running workflow: everything published is recorded and counted, loops stop it, stalls are seen."""

from __future__ import annotations

import asyncio
import os
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import Busy, Conflict, DegenerateLoopError, HungError, InvalidInput, StorageFailed
from ctxmgr.history.blackboard import BlackboardHistory
from ctxmgr.history.bus import EventBus, EventSubscriber
from ctxmgr.history.published import ActionFinished, ActionStarted, Event, described
from ctxmgr.store import open_store
from ctxmgr.types.desk import DetectRequest
from ctxmgr.types.finding import Finding
from ctxmgr.workspace import Workspace
from tests.history.live import Clock, Tape, recorded, spin
from tests.history.live import clock as clock


def _finding(error: DegenerateLoopError | HungError) -> Finding:
    assert isinstance(error.finding, Finding)
    return error.finding


@pytest.mark.requirement("FR-014", "FR-016")
def test_subscribed_from_start_to_end(store_path: Path) -> None:
    """What is published before and after the workflow is not its own; what is published meanwhile is."""
    bus = EventBus()
    bus.publish("before")
    with BlackboardHistory(bus, store_path, session="s") as board:
        assert isinstance(board, EventSubscriber)
        bus.publish({"type": "message", "data": "meanwhile"})
    bus.publish("after")

    assert [record["data"] for record in recorded(store_path) if record["kind"] == "event"] == ["meanwhile"]
    assert board.published == 1


@pytest.mark.requirement("FR-016")
@pytest.mark.parametrize(("raised", "outcome"), [(None, "completed"), (ValueError, "failed"), (KeyboardInterrupt, "cancelled")])
def test_unsubscribed_however_it_ends(raised: type[BaseException] | None, outcome: str) -> None:
    """The history unsubscribes and records the outcome also when the workflow raises, whose exception goes on its way."""
    bus, tape = EventBus(), Tape()

    def work() -> None:
        with BlackboardHistory(bus, tape):
            if raised is not None:
                raise raised

    if raised is None:
        work()
    else:
        with pytest.raises(raised):
            work()
    bus.publish("after")

    assert [record["outcome"] for record in tape.of("sessionEnd")] == [outcome]
    assert tape.of("event") == []


@pytest.mark.requirement("FR-015")
@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("NodeStreamDeltaEvent", "agent_message_chunk"),
        ("NodeThoughtDeltaEvent", "agent_thought_chunk"),
        ("ToolCallEvent", "tool_call"),
        ("plan", "plan"),
        ("something.of:my own", "something.of:my own"),
    ],
)
def test_events_keep_their_type(name: str, stored: str) -> None:
    """The names of the source documents are stored under the types they stand for, all others as they are."""
    bus, tape = EventBus(), Tape()
    made = type(name, (), {"__init__": lambda self: None, "model_dump": lambda self: {"text": "hi"}})()
    with BlackboardHistory(bus, tape):
        bus.publish(Event(name, {"text": "hi"}, agent="coder"))
        bus.publish({"type": name, "data": {"text": "hi"}, "agent": "coder"})
        bus.publish(made)

    assert [(record["type"], record["data"]) for record in tape.of("event")] == [(stored, {"text": "hi"})] * 3
    assert [record.get("agent") for record in tape.of("event")] == ["coder", "coder", None]


@dataclass
class Delta:
    text: str
    type: str = "NodeStreamDeltaEvent"
    agent: str = "coder"


class Odd:
    @property
    def type(self) -> str:
        raise RuntimeError("no")


def test_any_object_is_an_event() -> None:
    """Dataclasses, mappings without data, plain values and objects that raise are all described, never refused."""
    assert described(Delta("a")) == Event("NodeStreamDeltaEvent", Delta("a"), "coder")
    assert described({"type": "x", "text": "a", "entry": "e"}) == Event("x", {"text": "a"}, None, "e")
    assert described({"type": 3}) == Event("event", {})
    assert described("hi") == Event("str", "hi")
    assert described(None) == Event("NoneType", None)
    assert described(odd := Odd()) == Event("Odd", odd)


@settings(max_examples=30)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner), max_leaves=20))  # fmt: skip
def test_odd_events_are_all_captured(event: Any) -> None:
    """Whatever is published is recorded: one event each, nothing lost, nothing reported."""
    bus, tape = EventBus(), Tape()
    with BlackboardHistory(bus, tape) as board:
        bus.publish(event)

    assert len(tape.of("event")) == 1
    assert (board.lost, bus.failed, list(board.failures)) == (0, 0, [])


@pytest.mark.requirement("SC-011", "R-21")
def test_a_burst_is_captured_whole(tmp_path: Path) -> None:
    """Of 50,000 events at once every one is on disk, numbered in order; the loss counter is stored and reads 0."""
    bus, log = EventBus(), tmp_path / "run.jsonl"
    with BlackboardHistory(bus, log, session="s", mask=False) as board:
        for number in range(50_000):
            bus.publish(Event("agent_message_chunk", number))

    written = recorded(log)
    events = [record for record in written if record["kind"] == "event"]
    assert [(record["seq"], record["data"]) for record in events] == [(number + 1, number) for number in range(50_000)]
    assert written[-1]["capture"] == {"published": 50_000, "captured": 50_000, "lost": 0}
    assert (board.published, board.captured, board.lost) == (50_000, 50_000, 0)


@pytest.mark.requirement("SC-011", "R-21")
def test_many_publishers_lose_nothing(store_path: Path) -> None:
    """What eight threads publish and record at once is all stored, its numbers in the order of the log."""
    bus = EventBus()
    with BlackboardHistory(bus, store_path, session="s") as board:

        def work(number: int) -> None:
            for step in range(10):
                bus.publish(Event("plan", [number, step]))
                with board.action(f"agent{number}", "Read", input=step) as done:
                    done.output = step

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    events = [record for record in recorded(store_path) if record["kind"] == "event"]
    assert [record["seq"] for record in events] == list(range(1, 81))
    assert sorted(record["data"] for record in events) == [[number, step] for number in range(8) for step in range(10)]
    assert (board.lost, board.retries, list(board.failures)) == (0, 0, [])


@pytest.mark.requirement("R-21")
@pytest.mark.parametrize("fault", [StorageFailed("disk full"), Busy("locked")])
def test_a_failed_write_is_tried_again(fault: Exception) -> None:
    """A write that fails once is repeated: the event is stored once, nothing is lost, and the retry is counted."""
    bus, tape = EventBus(), Tape()
    with BlackboardHistory(bus, tape) as board:
        tape.failing = [fault]
        bus.publish("a")
        bus.publish("b")

    assert [record["seq"] for record in tape.of("event")] == [1, 2]
    assert (board.lost, board.retries, bus.failed) == (0, 1, 0)


@pytest.mark.requirement("R-21")
def test_what_is_lost_is_counted_and_told() -> None:
    """An event whose write fails twice, or for good, is counted, kept as a failure, told by the bus, and stored as lost."""
    bus, tape = EventBus(on_error=lambda failure: None), Tape()
    with BlackboardHistory(bus, tape) as board:
        bus.publish("a")
        tape.failing = [StorageFailed("disk full"), StorageFailed("disk full")]
        bus.publish("b")
        tape.failing = [Conflict("known")]
        bus.publish("c")
        bus.publish("d")

    assert [record["seq"] for record in tape.of("event")] == [1, 4]
    assert tape.of("sessionEnd")[0]["capture"] == {"published": 4, "captured": 2, "lost": 2}
    assert (board.lost, bus.failed, len(board.failures)) == (2, 2, 2)


def test_without_a_bus_nothing_is_counted() -> None:
    """A history that is fed by calls alone records them, and claims nothing about events."""
    tape = Tape()
    with BlackboardHistory(None, tape, agent="coder") as board:
        board.result(board.entry(None, "Read", "a.py"), output="text")
        board.event("message", "done")

    assert [record["kind"] for record in tape.records] == ["session", "entry", "result", "event", "sessionEnd"]
    assert "capture" not in tape.records[-1]
    assert tape.records[1]["agent"] == "coder"


def test_secrets_are_masked_before_anything_sees_them(store_path: Path) -> None:
    """A secret of a known shape reaches neither the store nor a finding."""
    secret = "ghp_" + "a1B2" * 9
    with BlackboardHistory(None, store_path, session="s", on_loop="report") as board:
        spin(board, given=f"curl -H 'Authorization: Bearer {secret}'", output=secret)
        found = board.findings()

    assert [finding.kind for finding in found] == ["repetition"]
    assert secret not in str(found[0].to_json())
    assert secret not in str(recorded(store_path))


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
    raised: list[int] = []
    for number in range(6):
        entry = board.entry("coder", "Edit" if number % 2 else "Test", "a.py")
        try:
            board.result(entry, output="failed" if number % 2 else "ok")
        except DegenerateLoopError as error:
            raised.append(number)
            assert (_finding(error).kind, _finding(error).period) == ("cycle", 2)

    assert raised == [5]


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
    raised: list[int] = []
    for number in range(1, 11):
        try:
            spin(board, 1)
        except DegenerateLoopError as error:
            raised.append(number)
            assert _finding(error).count == number
    spin(board, 1, given="other", output="new")
    spin(board, 1, given="another", output="newer")
    spin(board, 2)

    assert raised == [3, 6, 9]


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
    """Starts and ends of actions come over the bus too; the loop error reaches the publisher who asks for it."""
    bus, tape = EventBus(on_error=lambda failure: None), Tape()
    with BlackboardHistory(bus, tape) as board:
        for number in range(3):
            bus.publish(ActionStarted(f"a{number}", "Bash", "ls", agent="coder", step=number))
            bus.publish(Event("tool_call_update", "running", entry=f"a{number}"))
            finished = ActionFinished(f"a{number}", output="same", duration_ms=3)
            if number < 2:
                bus.publish(finished, guard=True)
        with pytest.raises(DegenerateLoopError):
            bus.publish(finished, guard=True)

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

    assert [finding.to_json() for finding in live] == [finding.to_json() for finding in replayed]
    assert len(live) == 1


def test_a_second_live_process_is_refused(store_path: Path) -> None:
    """While a history holds its session no other may; it may join or fork, as with any recorder."""
    with BlackboardHistory(None, store_path, session="s") as board:
        with pytest.raises(Busy):
            BlackboardHistory(None, store_path, session="s")
        with BlackboardHistory(None, store_path, session="s", on_live="join") as joined:
            assert (joined.session, joined.process == board.process) == ("s", False)


def test_what_changes_later_was_recorded_as_it_was() -> None:
    """The detectors compare what was recorded: an input that the workflow changes afterwards stays what it was."""
    board = BlackboardHistory(None, Tape())
    given: dict[str, Any] = {"n": 0}
    for _ in range(10):
        given["n"] += 1
        spin(board, 1, given=given)

    assert board.findings() == []


def test_a_fault_in_a_detector_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When judging fails the record is kept, the workflow goes on, and the fault is kept to be looked at."""
    tape = Tape()
    board = BlackboardHistory(None, tape)
    monkeypatch.setattr("ctxmgr.history.guard.Guard.take", lambda *_, **__: 1 / 0)
    spin(board, 1)

    assert len(tape.of("result")) == 1
    assert [type(failure) for failure in board.failures] == [ZeroDivisionError] * 2


def test_a_forked_child_records_as_a_process_of_its_own(store_path: Path) -> None:
    """What a forked child publishes is recorded in the same session under its own process, beside its parent's."""
    bus = EventBus()
    with BlackboardHistory(bus, store_path, session="s"):
        bus.publish(Event("plan", "parent"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn when threads are about
            child = os.fork()
        if child == 0:
            bus.publish(Event("plan", "child"))
            os._exit(bus.failed)
        _, status = os.waitpid(child, 0)
        bus.publish(Event("plan", "parent"))

    events = [record for record in recorded(store_path) if record["kind"] == "event"]
    assert os.waitstatus_to_exitcode(status) == 0
    assert [record["data"] for record in events] == ["parent", "child", "parent"]
    assert [record["process"] == events[0]["process"] for record in events] == [True, False, True]


def test_forgetting_to_end_leaves_an_open_session() -> None:
    """Records after the end are refused, and ending twice does nothing."""
    tape = Tape()
    board = BlackboardHistory(None, tape)
    board.end("failed")
    board.end()
    with pytest.raises(InvalidInput):
        board.entry("coder", "Read")

    assert [record["outcome"] for record in tape.of("sessionEnd")] == ["failed"]
