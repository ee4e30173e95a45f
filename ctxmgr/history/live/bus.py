"""Publish and subscribe inside one process, in one order and without loss.

Why not blinker (1.9 was tried): its order of receivers is undefined (a set); a receiver that raises keeps the event from the
next ones and stops the publisher; a lambda is dropped, being held weakly; and events that several threads publish at once
reach a receiver interleaved. Without these four only a list would be left of it.
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
from ctxmgr.recorder import Status

_MAX_FAILURES = 100  # the latest failures that are kept
_MAX_DEPTH = 50  # events published in answer to each other; more is an endless exchange
_log = logging.getLogger("ctxmgr.bus")
_buses: weakref.WeakSet[EventBus] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class Event:
    """A message, a thought, a tool-call update, an interrupt or any other event.

    Attributes:
        type: one of the types of log format 1, an alias of one, or any other name, which is kept.
        data: its content.
        agent: the agent that it is from.
        entry: the action it belongs to, by its id in the history, or by the id it was published with.
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
    """Return any published object as an event.

    A mapping is read by its keys ``type``, ``data``, ``agent`` and ``entry``; without ``data`` its other keys are the data. Any
    other object has the type that its attribute ``type`` says, else the name of its class, and is itself the data. Never
    raises.
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
    except Exception:  # properties and mappings are their author's code and may raise anything
        return Event(_class_name(published), published)


def _event_of_object(event: object) -> Event:
    kind, agent, entry = (_text(getattr(event, name, None)) for name in ("type", "agent", "entry"))
    return Event(kind or _class_name(event), event, agent, entry)


def _class_name(event: object) -> str:
    return type(event).__name__


def _event_from_mapping(fields: Mapping[object, object]) -> Event:
    rest = {name: value for name, value in fields.items() if name not in ("type", "agent", "entry")}
    kind, agent, entry = (_text(fields.get(name)) for name in ("type", "agent", "entry"))
    return Event(kind or "event", rest.get("data", cast("object", rest)), agent, entry)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


@runtime_checkable
class EventSubscriber(Protocol):
    """Receives the events of a bus."""

    def receive(self, event: object, seq: int) -> None:
        """Receive one event.

        Args:
            event: as it was published.
            seq: its number among all that were published while this subscriber was subscribed: 1, 2, 3, without a gap.
        """
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """A subscriber raised: its name, the event with its number, and the error."""

    subscriber: str
    event: object
    seq: int
    error: BaseException


class Subscription:
    """The subscription of one subscriber to a bus; ends with `close`, or with its ``with`` block.

    Attributes:
        published: number of events published since it began, i.e. the number of the latest one.
        is_closed: whether it has ended.
    """

    def __init__(self, bus: EventBus, receive: Callable[[object, int], object], name: str) -> None:
        self.published = 0
        self.is_closed = False
        self.receive = receive
        self.name = name
        self._bus = bus

    def close(self) -> None:
        """Unsubscribe; after this returns, the subscriber receives nothing more. A second call does nothing."""
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

    All subscribers see all events in one order, whichever threads publish. What a subscriber publishes while it receives is
    delivered after the event it received, to everyone. A subscriber that raises is reported and stops nobody, except by a
    `DegenerateLoopError` or `HungError`: whoever published hears of these. Subscribers are held strongly: they stay until
    they are closed.

    A subscriber must not wait for another thread that publishes: that thread waits for the subscriber.

    Args:
        on_error: called with every failure of a subscriber; without it failures are logged as warnings.

    Attributes:
        failed: number of deliveries in which a subscriber raised.
        failures: the latest of them.
    """

    def __init__(self, on_error: Callable[[Failure], None] | None = None) -> None:
        self.failed = 0
        self.failures: deque[Failure] = deque(maxlen=_MAX_FAILURES)
        self._on_error = on_error
        # Held while delivering, which gives all threads one order; reentrant, since subscribers publish too.
        self._lock = threading.RLock()
        self._subscriptions: list[Subscription] = []
        self._queue: deque[_Delivery] = deque()
        self._depth = 0  # of the event that is being delivered; 0 for none
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
            # Also for the events on their way: it was listed for them when they were published
            subscription.is_closed = True
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)

    def publish(self, event: object, *, guard: bool = True) -> None:
        """Deliver an event; returns when every subscriber has had it.

        Called from within a subscriber it returns at once, and the event is next.

        Args:
            event: anything.
            guard: raise the `DegenerateLoopError` or `HungError` that a subscriber answers with, after all have had the event.
                From within a subscriber it is raised to the publisher of the event that this subscriber received. Without
                it such an error is a failure like any other.

        Raises:
            DegenerateLoopError, HungError: the workflow is stuck, and a subscriber says so.
            InvalidInput: subscribers answer each other's events without an end.
        """
        with self._lock:
            depth = self._depth + 1
            if depth > _MAX_DEPTH:
                raise InvalidInput(
                    f"{_MAX_DEPTH} events were published in answer to each other", "look for subscribers in a loop"
                )
            # Numbered when published, not when delivered: a subscriber that is closed meanwhile has counted the event all the
            # same.
            self._queue.append(_Delivery(event, [(each, _next_number(each)) for each in self._subscriptions], depth, guard))
            # Within a subscriber: the loop below, further up the stack, delivers it next, so that all see one order.
            if self._depth:
                return
            stops = self._deliver_all()
        if stops:
            raise stops[0]

    def _deliver_all(self) -> list[BaseException]:
        """Empty the queue; return the errors to raise to the publisher: stuck errors, or an interruption such as Ctrl-C."""
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
                        # Kept until all have had the event: the recorder must not miss the action that was one too many.
                        if delivery.guard and isinstance(error, (DegenerateLoopError, HungError)):
                            stops.append(error)
                        else:
                            self._report(Failure(subscription.name, delivery.event, seq, error))
                    except BaseException as interruption:
                        # The others still receive the event: Ctrl-C must leave no gap in the history.
                        stops.insert(0, interruption)
        finally:
            self._depth = 0
        return stops

    def _report(self, failure: Failure) -> None:
        self.failed += 1
        self.failures.append(failure)
        if self._on_error is None:
            kind = type(failure.error).__name__  # not its message, which may quote a published secret
            _log.warning("subscriber %s raised %s at event %d", failure.subscriber, kind, failure.seq)
            return
        with suppress(Exception):
            self._on_error(failure)

    def leave_parent(self) -> None:
        """Reset the bus in a forked child, where a lock that another thread held would never be released."""
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
