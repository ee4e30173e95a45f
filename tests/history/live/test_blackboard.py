"""The history of a running workflow: everything published is recorded and counted, loops stop it, stalls are seen."""

from __future__ import annotations

import os
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.errors import Busy, Conflict, InvalidInput, StorageFailed
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.history.live.bus import Event, EventBus, EventSubscriber, describe
from tests.history.live_world import Tape, recorded, spin
from tests.history.live_world import clock as clock


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


class Said:
    """What a platform's event class may look like."""

    def model_dump(self) -> dict[str, str]:
        return {"text": "hi"}


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
    made = type(name, (Said,), {})()
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
    assert describe(Delta("a")) == Event("NodeStreamDeltaEvent", Delta("a"), "coder")
    assert describe({"type": "x", "text": "a", "entry": "e"}) == Event("x", {"text": "a"}, None, "e")
    assert describe({"type": 3}) == Event("event", {})
    assert describe("hi") == Event("str", "hi")
    assert describe(None) == Event("NoneType", None)
    assert describe(odd := Odd()) == Event("Odd", odd)


_ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()


@settings(max_examples=30)
@given(st.recursive(_ATOMS, lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner), max_leaves=20))
def test_odd_events_are_all_captured(event: Any) -> None:
    """Whatever is published is recorded: one event each, nothing lost, nothing reported."""
    bus, tape = EventBus(), Tape()
    with BlackboardHistory(bus, tape) as board:
        bus.publish(event)

    assert len(tape.of("event")) == 1
    assert (board.lost, bus.failed, list(board.failures)) == (0, 0, [])


@pytest.mark.slow
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


def test_content_that_cannot_be_stored_is_lost(caplog: pytest.LogCaptureFixture) -> None:
    """An event that holds an object without readable content is recorded, counts as lost, and is told of."""
    bus, tape = EventBus(), Tape()
    with BlackboardHistory(bus, tape) as board:
        bus.publish({"type": "tool_call", "data": {"handle": object(), "kept": 1}})
        bus.publish({"type": "tool_call", "data": {"kept": 2}})

    assert [record["data"] for record in tape.of("event")] == [{"handle": "<object>", "kept": 1}, {"kept": 2}]
    assert tape.of("sessionEnd")[0]["capture"] == {"published": 2, "captured": 1, "lost": 1}
    assert (board.lost, bus.failed, len(board.failures)) == (1, 1, 1)
    assert "event 1" in caplog.text


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
    given: dict[str, Any] = {}
    for path in ("alpha", "beta", "gamma"):
        given["path"] = path
        spin(board, 1, given=given)

    assert board.findings() == []


def test_a_fault_in_a_detector_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """When judging fails the record is kept, the workflow goes on, and the fault is kept to be looked at."""
    tape = Tape()
    board = BlackboardHistory(None, tape)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ctxmgr.history.live.monitor.LiveMonitor.take", broken)
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
