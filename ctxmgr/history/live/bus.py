"""Publish and subscribe inside one process, in one order and without loss.

The reasons against blinker (1.9 was tried): it calls receivers in no defined order (a set). A receiver that raises keeps the
event from the next ones and stops the publisher. A lambda is dropped, because receivers are held weakly. And a receiver gets
the events of several publishing threads interleaved. Without these four features, blinker would be only a list.
"""

from __future__ import annotations

import inspect
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast, runtime_checkable

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import DegenerateLoopError, HungError, InvalidInput
from ctxmgr.log.fast_json import text_or_none
from ctxmgr.recorder import Status

_MAX_FAILURES = 100  # latest failures that are kept
_MAX_DEPTH = 50  # events published in answer to each other; more are an endless exchange
_log = logging.getLogger("ctxmgr.bus")
_buses: weakref.WeakSet[EventBus] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class Event:
    """A message, a thought, a tool-call update, an interrupt or any other event.

    Attributes:
        type: one of the types of log format 1, an alias of one, or any other name, which is kept.
        data: its content.
        agent: the agent that it comes from.
        entry: the action that it belongs to, by its id in the history or by the id with which it was published.
    """

    type: str
    data: object = None
    agent: str | None = None
    entry: str | None = None


@dataclass(frozen=True, slots=True)
class ActionStarted:
    """An action begins; ``id`` is the publisher's own id for it until it finishes. For the rest see `Recorder.entry`."""

    id: str
    action: str
    input: object = None
    agent: str | None = None
    input_type: str | None = None
    turn: str | int | None = None
    step: str | int | None = None
    parent: str | None = None
    task: str | None = None
    timeout_ms: float | None = None
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ActionFinished:
    """The action published as ``id`` has finished. For the rest see `Recorder.result`."""

    id: str
    status: Status = "ok"
    output: object = None
    error: BaseException | dict[str, Any] | str | None = None
    duration_ms: float | None = None
    usage: dict[str, Any] | None = None


def describe(event: object) -> Event:
    """Return any published object as an event. Never raises.

    A mapping is read by its keys ``type``, ``data``, ``agent`` and ``entry``. Without ``data``, its other keys are the data.
    Any other object is itself the data. Its type is its attribute ``type``, else the name of its class.
    """
    if isinstance(event, Event):
        return event
    published = event
    try:
        return (
            _event_from_mapping(cast("Mapping[object, object]", event))
            if isinstance(event, Mapping)
            else _event_of_object(event)
        )
    except Exception:  # properties and mappings are foreign code and may raise anything
        return Event(_class_name(published), published)


def _event_of_object(event: object) -> Event:
    kind, agent, entry = (text_or_none(getattr(event, name, None)) or None for name in ("type", "agent", "entry"))
    return Event(kind or _class_name(event), event, agent, entry)


def _class_name(event: object) -> str:
    return type(event).__name__


def _event_from_mapping(fields: Mapping[object, object]) -> Event:
    rest = {name: value for name, value in fields.items() if name not in ("type", "agent", "entry")}
    kind, agent, entry = (text_or_none(fields.get(name)) or None for name in ("type", "agent", "entry"))
    return Event(kind or "event", rest.get("data", cast("object", rest)), agent, entry)


@runtime_checkable
class EventSubscriber(Protocol):
    """Receives the events of a bus."""

    def receive(self, event: object, seq: int) -> None:
        """Receive one event.

        Args:
            event: the event as published.
            seq: its number among the events published while this subscriber was subscribed: 1, 2, 3, without a gap.
        """
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a subscriber: the subscriber's name, the event with its number, and the error."""

    subscriber: str
    event: object
    seq: int
    error: BaseException


class Subscription:
    """The subscription of one subscriber to a bus. It ends with `close`, or with its ``with`` block.

    Attributes:
        published: number of events published since it began, which is the number of the latest one.
        is_closed: it has ended.
    """

    def __init__(self, bus: EventBus, receive: Callable[[object, int], object], name: str) -> None:
        self.published = 0
        self.is_closed = False
        self.receive = receive
        self.name = name
        self._bus = bus

    def close(self) -> None:
        """Unsubscribe. After this returns, the subscriber receives nothing more. A second call does nothing."""
        self._bus.unsubscribe(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@dataclass(slots=True)
class _Delivery:
    event: object
    to: list[tuple[Subscription, int]]
    depth: int
    guard: bool = False


class EventBus:
    """Delivers every event to every subscriber, in the order of subscription, before `publish` returns.

    All subscribers see all events in one order, whichever threads publish. An event that a subscriber publishes while it
    receives another one is delivered after that one, to everyone. A subscriber that raises is reported and stops nobody. Only
    a `DegenerateLoopError` or `HungError` is raised to the publisher. Subscribers are held strongly: they stay until they are
    closed.

    A subscriber must not wait for another thread that publishes, because that thread waits for the subscriber.

    Args:
        on_error: called with every failure of a subscriber; without it, failures are logged as warnings.

    Attributes:
        failed: number of deliveries in which a subscriber raised.
        failures: the latest of these failures.
    """

    def __init__(self, on_error: Callable[[Failure], None] | None = None) -> None:
        self.failed = 0
        self.failures: deque[Failure] = deque(maxlen=_MAX_FAILURES)
        self._on_error = on_error
        # Held during delivery, to give all threads one order. Reentrant, because subscribers publish too.
        self._lock = threading.RLock()
        self._subscriptions: list[Subscription] = []
        self._queue: deque[_Delivery] = deque()
        self._depth = 0  # of the event being delivered; 0 for none
        _buses.add(self)

    def subscribe(self, subscriber: EventSubscriber | Callable[[object, int], object]) -> Subscription:
        """Deliver from now on to an `EventSubscriber`, or to any callable that takes an event and its number.

        Raises:
            InvalidInput: it is neither, or it is a coroutine function, which nobody would await.
        """
        receive = subscriber.receive if isinstance(subscriber, EventSubscriber) else subscriber
        if not callable(receive) or inspect.iscoroutinefunction(receive):
            raise InvalidInput(
                f"a {type(subscriber).__name__} can't subscribe", "give an object with receive(event, seq), or a plain function"
            )
        subscription = Subscription(self, receive, type(subscriber).__qualname__)
        with self._lock:
            self._subscriptions.append(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; see `Subscription.close`."""
        with self._lock:
            # This also stops events on their way, which were addressed to it when they were published.
            subscription.is_closed = True
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def publish(self, event: object, *, guard: bool = True) -> None:
        """Deliver an event. Returns when every subscriber has received it.

        If a subscriber calls this, it returns at once, and the event is delivered next.

        Args:
            event: anything.
            guard: after all subscribers have received the event, raise a `DegenerateLoopError` or `HungError` of one of them.
                If a subscriber publishes, the error is raised to the publisher of the event that this subscriber received.
                Without ``guard``, such an error is a failure like any other.

        Raises:
            DegenerateLoopError, HungError: a subscriber says that the workflow is stuck.
            InvalidInput: subscribers answer each other's events endlessly.
        """
        with self._lock:
            depth = self._depth + 1
            if depth > _MAX_DEPTH:
                raise InvalidInput(
                    f"{_MAX_DEPTH} events were published in answer to each other", "look for subscribers in a loop"
                )
            # Number events when they are published, not when they are delivered: a subscriber closed meanwhile still counts it.
            self._queue.append(_Delivery(event, [(each, _next_number(each)) for each in self._subscriptions], depth, guard))
            # Within a subscriber: the loop below, further up the stack, delivers the event next, so that all see one order.
            if self._depth:
                return
            stops = self._deliver_all()
        if stops:
            raise stops[0]

    def _deliver_all(self) -> list[BaseException]:
        """Empty the queue. Return the errors to raise to the publisher: stuck errors, or an interruption such as Ctrl-C."""
        stops: list[BaseException] = []
        try:
            while self._queue:
                delivery = self._queue.popleft()
                self._depth = delivery.depth
                for subscription, seq in delivery.to:
                    if subscription.is_closed:
                        continue
                    try:
                        subscription.receive(delivery.event, seq)
                    except Exception as error:
                        # Held back until all have received the event, because the recorder must not miss this action.
                        if delivery.guard and isinstance(error, (DegenerateLoopError, HungError)):
                            stops.append(error)
                        else:
                            self._report(Failure(subscription.name, delivery.event, seq, error))
                    except BaseException as interruption:
                        # The others still receive the event, so that Ctrl-C leaves no gap in the history.
                        stops.insert(0, interruption)
        finally:
            self._depth = 0
        return stops

    def _report(self, failure: Failure) -> None:
        self.failed += 1
        self.failures.append(failure)
        if self._on_error is None:
            kind = type(failure.error).__name__  # without its message, which may quote a published secret
            _log.warning("subscriber %s raised %s at event %d", failure.subscriber, kind, failure.seq)
            return
        with suppress(Exception):
            self._on_error(failure)

    def leave_parent(self) -> None:
        """Reset the bus in a forked child. There, a lock held by another thread would never be released."""
        self._lock = threading.RLock()
        self._queue.clear()
        self._depth = 0


def _next_number(subscription: Subscription) -> int:
    subscription.published += 1
    return subscription.published


def _leave_parent() -> None:
    for bus in list(_buses):
        bus.leave_parent()


os.register_at_fork(after_in_child=_leave_parent)
