"""The event bus: one order for all, gap-free numbers, nobody stopped by another, nobody forgotten."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.errors import DegenerateLoopError, HungError, InvalidInput
from ctxmgr.history.live.bus import EventBus, EventSubscriber, Failure


class Listener:
    """Keeps what it receives."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, int]] = []

    def receive(self, event: object, seq: int) -> None:
        self.heard.append((event, seq))


def test_events_come_in_order_and_at_once() -> None:
    """When ``publish`` returns every subscriber has had the event, in the order of publishing, numbered from 1."""
    bus, one, two = EventBus(), Listener(), Listener()
    bus.subscribe(one)
    bus.publish("a")
    bus.subscribe(two)
    bus.publish("b")
    bus.publish("c")

    assert one.heard == [("a", 1), ("b", 2), ("c", 3)]
    assert two.heard == [("b", 1), ("c", 2)]


def test_subscribers_are_served_in_the_order_of_subscription() -> None:
    """Who subscribed first hears first, however many there are and whatever their hashes."""
    bus = EventBus()
    order: list[int] = []
    for number in range(50):
        bus.subscribe(lambda event, seq, number=number: order.append(number))
    bus.publish("a")

    assert order == list(range(50))


def test_a_lambda_does_not_vanish() -> None:
    """A subscriber that nobody else refers to stays subscribed."""
    bus = EventBus()
    heard: list[object] = []
    bus.subscribe(lambda event, seq: heard.append(event))
    gc.collect()
    bus.publish("a")

    assert heard == ["a"]


def test_the_same_subscriber_twice_hears_twice() -> None:
    """Each subscription counts for itself, and closing one leaves the other."""
    bus, listener = EventBus(), Listener()
    first = bus.subscribe(listener)
    bus.publish("a")
    bus.subscribe(listener)
    bus.publish("b")
    first.close()
    first.close()
    bus.publish("c")

    assert listener.heard == [("a", 1), ("b", 2), ("b", 1), ("c", 2)]
    assert first.published == 2


def test_a_failing_subscriber_stops_nobody() -> None:
    """The others get the event, the publisher goes on, and the failure is counted and told with its event and number."""
    told: list[Failure] = []
    bus, listener = EventBus(on_error=told.append), Listener()

    def fail(event: object, seq: int) -> None:
        raise ValueError("no")

    bus.subscribe(fail)
    bus.subscribe(listener)
    bus.publish("a")
    bus.publish("b")

    assert listener.heard == [("a", 1), ("b", 2)]
    assert bus.failed == 2
    assert [(each.event, each.seq, str(each.error)) for each in told] == [("a", 1, "no"), ("b", 2, "no")]
    assert list(bus.failures) == told


def test_failures_are_logged_without_what_was_published(caplog: pytest.LogCaptureFixture) -> None:
    """Without a listener for failures a warning names the subscriber and the kind of error, and quotes nothing."""
    bus = EventBus()

    def fail(event: object, seq: int) -> None:
        raise ValueError(event)

    bus.subscribe(fail)
    with caplog.at_level(logging.WARNING):
        bus.publish("\x1b]0;secret")

    assert [record.getMessage() for record in caplog.records] == ["subscriber function raised ValueError at event 1"]


def test_a_failing_failure_listener_harms_nothing() -> None:
    """An error of ``on_error`` itself stays inside."""

    def broken(failure: Failure) -> None:
        raise RuntimeError

    bus, listener = EventBus(on_error=broken), Listener()
    bus.subscribe(lambda event, seq: 1 / 0)
    bus.subscribe(listener)
    bus.publish("a")

    assert listener.heard == [("a", 1)]


@pytest.mark.parametrize("kind", [DegenerateLoopError, HungError])
def test_that_it_is_stuck_reaches_the_publisher(kind: type[Exception]) -> None:
    """A loop or a stall is raised after everyone has had the event; without ``guard`` it is a failure like any other."""
    bus, listener = EventBus(on_error=lambda failure: None), Listener()

    def guard(event: object, seq: int) -> None:
        raise kind("round and round")

    bus.subscribe(guard)
    bus.subscribe(listener)
    with pytest.raises(kind, match="round and round"):
        bus.publish("a")
    assert bus.failed == 0
    bus.publish("b", guard=False)

    assert listener.heard == [("a", 1), ("b", 2)]
    assert bus.failed == 1


def test_a_loop_reaches_the_outermost_publisher() -> None:
    """What a subscriber publishes in answer is guarded as well: the first publisher hears of it."""
    bus, listener = EventBus(on_error=lambda failure: None), Listener()

    def act(event: object, seq: int) -> None:
        if event == "go":
            bus.publish("act")

    def guard(event: object, seq: int) -> None:
        if event == "act":
            raise DegenerateLoopError("round and round")

    for subscriber in (act, guard, listener):
        bus.subscribe(subscriber)
    with pytest.raises(DegenerateLoopError):
        bus.publish("go")

    assert listener.heard == [("go", 1), ("act", 2)]


def test_other_errors_never_reach_the_publisher() -> None:
    """Nothing is let through but that the workflow is stuck."""
    bus = EventBus(on_error=lambda failure: None)
    bus.subscribe(lambda event, seq: 1 / 0)
    bus.publish("a")

    assert bus.failed == 1


def test_an_interruption_leaves_no_hole() -> None:
    """Ctrl-C inside a subscriber is raised to the publisher after the others have had the event."""
    bus, listener = EventBus(), Listener()

    def interrupt(event: object, seq: int) -> None:
        raise KeyboardInterrupt

    bus.subscribe(interrupt)
    bus.subscribe(listener)
    with pytest.raises(KeyboardInterrupt):
        bus.publish("a")
    bus.unsubscribe(bus.subscribe(interrupt))

    assert listener.heard == [("a", 1)]


def test_an_answer_comes_after_its_question_for_everyone() -> None:
    """What a subscriber publishes while it receives is the next event for all, also for those who hear after it."""
    bus, late = EventBus(), Listener()

    def answer(event: object, seq: int) -> None:
        if event == "question":
            bus.publish("answer")

    bus.subscribe(answer)
    bus.subscribe(late)
    bus.publish("question")
    bus.publish("end")

    assert late.heard == [("question", 1), ("answer", 2), ("end", 3)]


def test_endless_answers_end() -> None:
    """Subscribers that answer their own answers are stopped, told, and the publisher goes on."""
    bus = EventBus(on_error=lambda failure: None)
    heard: list[object] = []

    def echo(event: object, seq: int) -> None:
        heard.append(event)
        bus.publish("echo")

    bus.subscribe(echo)
    bus.publish("a")

    assert len(heard) == 50
    assert [type(each.error) for each in bus.failures] == [InvalidInput]


def test_joining_and_leaving_while_events_are_delivered() -> None:
    """Who subscribes in the midst of an event hears the next one first; who leaves hears no later one."""
    bus, newcomer = EventBus(), Listener()
    heard: list[object] = []

    def once(event: object, seq: int) -> None:
        heard.append(event)
        own.close()
        bus.subscribe(newcomer)

    own = bus.subscribe(once)
    bus.publish("a")
    bus.publish("b")

    assert heard == ["a"]
    assert newcomer.heard == [("b", 1)]


def test_who_was_closed_hears_nothing_more() -> None:
    """An event that is on its way reaches nobody who was closed while others received it, nor one in the queue behind it."""
    bus, closed = EventBus(), Listener()

    def closing(event: object, seq: int) -> None:
        if event == "a":
            bus.publish("b")
            other.close()

    bus.subscribe(closing)
    other = bus.subscribe(closed)
    bus.publish("a")

    assert closed.heard == []


def test_only_what_can_receive_may_subscribe() -> None:
    """Coroutine functions, which nobody would await, and other objects are refused at once."""

    async def receive(event: object, seq: int) -> None:
        await asyncio.sleep(0)

    bus = EventBus()
    for odd in (receive, 3, None):
        with pytest.raises(InvalidInput):
            bus.subscribe(odd)  # pyright: ignore[reportArgumentType]

    assert isinstance(Listener(), EventSubscriber)


@pytest.mark.requirement("SC-011")
@settings(max_examples=10)
@given(plan=st.lists(st.integers(1, 40), min_size=8, max_size=8), nested=st.booleans())
def test_eight_threads_leave_no_gap(plan: list[int], nested: bool) -> None:
    """Whatever eight threads publish at once, each subscriber gets all of it once, in one order, numbered without a gap."""
    bus, one, two = EventBus(), Listener(), Listener()
    bus.subscribe(one)
    if nested:
        bus.subscribe(lambda event, seq: bus.publish((-1, seq)) if isinstance(event, tuple) and event[1] == 0 else None)
    bus.subscribe(two)
    gate = threading.Barrier(8)

    def work(number: int) -> None:
        gate.wait()
        for step in range(plan[number]):
            bus.publish((number, step))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    total = sum(plan) + (8 if nested else 0)
    assert [seq for _, seq in one.heard] == list(range(1, total + 1))
    assert one.heard == two.heard
    for number in range(8):
        mine = [event for event, _ in one.heard if event in {(number, step) for step in range(plan[number])}]
        assert mine == [(number, step) for step in range(plan[number])]


def test_a_forked_child_goes_on() -> None:
    """A child that was forked while another thread delivered can publish, and its parent is not disturbed."""
    bus, listener = EventBus(), Listener()
    inside, leave = threading.Event(), threading.Event()

    def wait(event: object, seq: int) -> None:
        if event == "slow":
            inside.set()
            leave.wait(60)

    bus.subscribe(wait)
    bus.subscribe(listener)
    publisher = threading.Thread(target=bus.publish, args=("slow",))
    publisher.start()
    assert inside.wait(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of the very thing that is tried here
        child = os.fork()
    if child == 0:
        bus.publish("child")
        os._exit(0 if [event for event, _ in listener.heard] == ["child"] else 1)
    _, status = os.waitpid(child, 0)
    leave.set()
    publisher.join()

    assert os.waitstatus_to_exitcode(status) == 0
    assert listener.heard == [("slow", 1)]
