"""Record what agents do, with one call per action, message or tool update, into any store.

Importing this module loads only the standard library, so that it can run inside any agent. `ctxmgr.log.journal` defines its
guarantee: when a call returns, the kernel has the record, or the disk at level ``os``. Nothing depends on an orderly end. If a
process dies, its action stays open, which is the truth.

`RecordTemplate` writes most entries and results. It encodes the constant parts of a record once, and its bytes equal those of
`ctxmgr.log.codec.encode` with masking. Records with an unusual shape are encoded in the ordinary way.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any, Literal, Protocol, TypedDict, Unpack, cast

from ctxmgr.errors import Busy, CtxmgrError, InvalidInput
from ctxmgr.log import ids
from ctxmgr.log.codec import Record, encode_value, event_origin
from ctxmgr.log.journal import Durability, Journal
from ctxmgr.log.json_value import describe, fit_field, is_plain, plain, type_name
from ctxmgr.log.record_schema import OUTCOMES, STATUSES
from ctxmgr.log.session_lock import SessionLock, is_live, live_sessions, lock_session

Status = Literal["ok", "error", "denied", "interrupted"]

_current: ContextVar[tuple[str, str] | None] = ContextVar("ctxmgr_action", default=None)


def current_entry(session: str) -> str | None:
    """Return the id of the entry whose `action` is running in this thread or task, or None."""
    current = _current.get()
    return current[1] if current and current[0] == session else None


class Context(TypedDict, total=False):
    """Optional arguments of `Recorder.entry`, apart from agent, action and input."""

    input_type: str | None
    turn: str | int | None
    step: str | int | None
    parent: str | None
    task: str | None
    timeout_ms: float | None
    meta: dict[str, Any] | None


class Details(Context, total=False):
    """Optional arguments of `Recorder.entry`, apart from agent and action."""

    input: object


class Step:
    """An action while it runs.

    Attributes:
        id: id of its entry, after entering the context.
        output: set this to the output.
        usage: set this to ``{"inputTokens", "outputTokens"}``.
    """

    def __init__(self, recorder: Recorder, agent: str | None, name: str, details: Details) -> None:
        self.id = ""
        self.output: object = None
        self.usage: dict[str, Any] | None = None
        self._recorder = recorder
        self._what = (agent, name, details)
        self._status: Status = "ok"
        self._error: dict[str, Any] | None = None

    def fail(self, message: str, type: str = "Error") -> None:  # noqa: A002
        """Mark the action as failed without an exception."""
        self._status, self._error = "error", {"type": type, "message": message}

    def deny(self, message: str = "denied", type: str = "Denied") -> None:  # noqa: A002
        """Mark the action as denied, by a person or a rule."""
        self._status, self._error = "denied", {"type": type, "message": message}

    def __enter__(self) -> Step:
        agent, name, details = self._what
        self.id = self._recorder.entry(agent, name, **details)
        self._outside = _current.get()
        _current.set((self._recorder.session, self.id))
        self._began = time.monotonic_ns()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        took = (time.monotonic_ns() - self._began) / 1e6
        _current.set(self._outside)
        status, failure = self._status, self._error
        if error is not None:
            status, failure = "interrupted" if is_interruption(error) else "error", error_body(error)
        with KeepOriginalError(error):
            self._recorder.result(
                self.id, status, output=self.output, error=failure, duration_ms=round(took, 3), usage=self.usage
            )

    async def __aenter__(self) -> Step:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)


class KeepOriginalError:
    """Keeps a failure of recording from replacing the agent's own exception. The failure becomes a note on the exception."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> bool:
        if self._error is None or not isinstance(failure, CtxmgrError):
            return False
        self._error.add_note(f"ctxmgr could not record this: {failure.message}")
        return True


def error_body(error: BaseException | dict[str, Any] | str | None) -> dict[str, Any] | None:
    """Return the ``error`` field for an exception, a message, or a finished field."""
    if isinstance(error, BaseException):
        return {"type": type(error).__name__, "message": describe(error)}
    return {"type": "Error", "message": error} if isinstance(error, str) else error


def is_interruption(error: BaseException) -> bool:
    """Return whether the exception comes from outside of the action: Ctrl-C, exit, or a cancelled task."""
    # Compare names, to recognise the cancellations of asyncio, trio and concurrent.futures without importing these.
    names = {kind.__name__ for kind in type(error).__mro__}
    return not isinstance(error, Exception) or bool(names & {"CancelledError", "Cancelled"})


__all__ = ["SINKS", "Recorder", "Sink", "Step", "is_live", "live_sessions"]

SINKS = {".db": "ctxmgr.store.recorder_sink:open_sink", ".sqlite": "ctxmgr.store.recorder_sink:open_sink"}
"""Suffix of a target other than ``.jsonl`` -> its sink, as ``module:function(path, durability, mask) -> Sink``.

Given by name, because the recorder lies below the stores and may not import them. Recording into a log must not load a
database.
"""
_OTHER_SINK = "ctxmgr.store.recorder_sink:open_sink"
_EPISODES = "ctxmgr.memory.episodes:retain_at"
"""The function that stores the episode of an ended session: ``module:function(path, session)``, by name like the sinks."""

Outcome = Literal["completed", "failed", "cancelled"]
OnLive = Literal["refuse", "join", "fork"]


class Sink(Protocol):
    """The target of a recorder."""

    def append(self, records: Sequence[Record]) -> object:
        """Store the records in order, all or none. When it returns, they are as durable as promised."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class Recorder:
    """Records one process of one session.

    Threads may share a recorder. A forked child continues as its own process in the same session.

    Args:
        target: path of a ``.jsonl`` log or of a database, or any `Sink`.
        session: id of the workflow; a new one by default.
        process: id of this execution; a new one by default.
        workflow: name of the workflow.
        agent: default agent of calls that name none.
        durability: ``process`` (default) or ``os``; see `ctxmgr.log.journal`.
        mask: whether to mask secrets of known shapes before writing.
        on_live: what to do if a live process holds the session: ``refuse`` it, ``join`` it (entries stay separate by process),
            or ``fork`` a new session that names the old one in ``meta.forkedFrom``.
        meta: further facts about this execution; pid and host are added.
        episode: whether to store in memory, at the end, what the session decided, learned and left open (see
            `ctxmgr.memory.episodes`). Only a session with a failure or an event has an episode. Then `end` opens the target as
            a store, which loads more than the standard library.

    Attributes:
        session: id of the session.
        process: id of this execution.

    Raises:
        InvalidInput: the target is neither a path nor a sink.
        Busy: the session is live and ``on_live`` is ``refuse``.
        StorageFailed: the target can't be written.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | Sink,
        *,
        session: str | None = None,
        process: str | None = None,
        workflow: str | None = None,
        agent: str | None = None,
        durability: Durability = "process",
        mask: bool = True,
        on_live: OnLive = "refuse",
        meta: dict[str, Any] | None = None,
        episode: bool = True,
    ) -> None:
        names: dict[str, object] = {"session": session, "process": process, "workflow": workflow, "agent": agent}
        for name, value in names.items():
            if not isinstance(value, str | None):
                raise InvalidInput(f"the {name} of a recorder is a text, not {value!r}", f"pass {name}={str(value)!r}")
        self._episode, self._has_episode = episode, False
        self._unfinished: set[str] = set()
        self.session = session or ids.new_id()
        self.process = process or ids.new_id()
        self._workflow, self._agent = workflow, agent
        self._durability: Durability = durability
        self._mask = mask
        self._meta = dict(meta or {})
        self._path = self._sink_argument = None
        if isinstance(target, (str, os.PathLike)):
            name = os.fspath(target)
            # Absolute, because the working directory may change before a forked child opens the target again.
            self._path = name if "://" in name else os.path.abspath(name)
        elif callable(getattr(target, "append", None)) and callable(getattr(target, "close", None)):
            self._sink_argument = target
        else:
            raise InvalidInput(
                f"can't record into a {type(target).__name__}", "pass a path, or an object with append() and close()"
            )
        self._lock: SessionLock | None = None
        self._ended = self._forked = False
        self._fork_lock = threading.Lock()
        origin = self._take_session(on_live)
        try:
            self._sink = self._open_sink()
            self._start(**({"forkedFrom": origin} if origin else {}))
        except BaseException:
            self._release()
            raise
        _open_recorders.add(self)

    def _take_session(self, on_live: OnLive) -> str | None:
        """Lock the session. Return the session that it was forked from, or None."""
        if self._path is None or "://" in self._path:  # there is no file to lock; the store itself keeps writers apart
            return None
        try:
            self._lock = lock_session(self._path, self.session, self.process, join=on_live == "join")
        except Busy:
            if on_live != "fork":
                raise
            origin, self.session = self.session, ids.new_id()
            self._lock = lock_session(self._path, self.session, self.process)
            return origin
        return None

    def _open_sink(self) -> Sink:
        if self._path is None:
            return cast("Sink", self._sink_argument)
        suffix = os.path.splitext(self._path)[1].lower()
        if suffix == ".jsonl":
            return Journal(self._path, durability=self._durability, mask=self._mask)
        module, _, name = SINKS.get(suffix, _OTHER_SINK).partition(":")
        return cast("Sink", getattr(import_module(module), name)(self._path, self._durability, self._mask))

    def _start(self, **extra: str) -> None:
        # Ask the class: a wrapper around a sink may forward unknown attributes past its own `append`.
        encoded = cast("EncodedSink", self._sink) if hasattr(type(self._sink), "append_made") else None
        self._template = RecordTemplate(encoded, self.session, self.process) if encoded is not None else None
        meta = {"pid": os.getpid(), "host": os.uname().nodename, **self._meta, **extra}
        self._put(self._record("session", {"process": self.process, "workflow": self._workflow, "meta": meta}))

    def leave_parent(self) -> None:
        """Mark a forked child as its own process. The work for that is done at the next call."""
        self._fork_lock = threading.Lock()
        self._forked = True

    def _continue_as_child(self) -> None:
        with self._fork_lock:
            if not self._forked:
                return
            parent, self.process = self.process, ids.new_id()
            if self._path is not None and not isinstance(self._sink, Journal):
                self._inherited = self._sink  # keep it open, because closing a database opened before the fork can damage it
                self._sink = self._open_sink()
            # The parent may be alive and hold the session too.
            if self._path is not None and self._lock is not None:
                self._lock = lock_session(self._path, self.session, self.process, join=True)
            self._start(forkedFrom=parent)
            # Set last, so that the next call tries again if anything above fails.
            self._forked = False

    def _record(self, kind: str, fields: dict[str, Any], present: str | None = None) -> Record:
        # null is a valid input
        present_fields = {name: value for name, value in fields.items() if value is not None or name == "input"}
        return {"v": 1, "kind": kind, "session": self.session, "ts": present or ids.now(), **present_fields}

    def _write(self, kind: str, fields: dict[str, Any]) -> None:
        if self._forked or self._ended:
            self._require_open()
        if "process" in fields:
            fields["process"] = self.process
        self._put(self._record(kind, fields))

    def _require_open(self) -> None:
        if self._forked:
            self._continue_as_child()
        if self._ended:
            raise InvalidInput(f"the recorder of session {self.session!r} has ended", "open a new one")

    def _put(self, record: Record) -> None:
        checks = _record_checks()
        is_sound = checks.is_plain(record)
        if is_sound and isinstance(self._sink, Journal):
            try:
                self._sink.append((record,))
                return
            except InvalidInput:  # an odd value; checking for one in advance would slow down every record
                pass
        # Two steps: convert values that are not JSON, and cut large values only if the record is still refused.
        record = {name: value if type(value) is str else plain(value) for name, value in record.items()}
        if not is_sound:
            checks.check(record)
        try:
            self._sink.append((record,))
        except InvalidInput:
            self._sink.append(({name: fit_field(value) for name, value in record.items()},))

    def entry(
        self,
        agent: str | None,
        action: str,
        input: object = None,  # noqa: A002
        *,
        input_type: str | None = None,
        turn: str | int | None = None,
        step: str | int | None = None,
        parent: str | None = None,
        task: str | None = None,
        timeout_ms: float | None = None,
        meta: dict[str, Any] | None = None,
    ) -> str:
        """Record the beginning of an action and return its id. The entry stays open until `result` is called for it.

        Args:
            agent: the acting agent; None for the recorder's default.
            action: name of the tool or step.
            input: the arguments; values that are not JSON are converted, never refused.
            input_type: by default the JSON type of the input or the name of its class.
            turn: a value shared by all entries of one human turn.
            step: a value shared by all entries that one model response asked for.
            parent: id of the entry within which this action runs; by default the surrounding `action`.
            task: id of the task that the action serves.
            timeout_ms: declared time limit, in milliseconds.
            meta: anything else.

        Raises:
            InvalidInput, StorageFailed, Busy: an argument is of a wrong type, or it could not be written. Nothing is recorded.
        """
        if self._forked or self._ended:
            self._require_open()
        entry, present = ids.new_id_and_time()
        agent = agent or self._agent or "agent"
        kind = input_type or type_name(input)
        parent = parent or current_entry(self.session)
        bare = turn is step is parent is task is timeout_ms is meta is None
        if bare and self._template is not None:
            try:
                self._template.entry(entry, present, (agent, action, kind), input)
                self._unfinished.add(entry)
                return entry
            except (InvalidInput, TypeError):  # the template refused the value, so encode the record in the ordinary way
                pass
        fields: dict[str, Any] = {"id": entry, "agent": agent, "action": action, "inputType": kind, "input": input}
        fields["process"] = self.process
        if not bare:
            fields |= {"turn": turn, "step": step, "parent": parent, "task": task, "timeoutMs": timeout_ms, "meta": meta}
        self._put(self._record("entry", fields, present))
        self._unfinished.add(entry)
        return entry

    def register_entry(self, entry: str) -> None:
        """Let `result` be called for an entry that another process began, or a recorder before this one."""
        self._unfinished.add(entry)

    def result(
        self,
        entry: str,
        status: Status = "ok",
        *,
        output: object = None,
        error: BaseException | dict[str, Any] | str | None = None,
        duration_ms: float | None = None,
        usage: dict[str, Any] | None = None,
    ) -> None:
        """Record the result of an entry. It has only one.

        Args:
            entry: id from `entry`, or one given to `register_entry`.
            status: ``ok``, ``error``, ``denied`` or ``interrupted``.
            output: the output.
            error: an exception, a message, or ``{"type", "message"}``.
            duration_ms: duration in milliseconds.
            usage: ``{"inputTokens", "outputTokens"}``.

        Raises:
            InvalidInput: the status is unknown, no such entry is open, another argument has the wrong type, or the recorder
                has ended. Nothing was written.
            StorageFailed, Busy: it could not be written; the entry stays open.
        """
        if self._forked or self._ended:
            self._require_open()
        if status not in STATUSES:
            raise InvalidInput(f"unknown status {status!r}", f"statuses: {', '.join(STATUSES)}; say more in output or error")
        try:
            self._unfinished.remove(entry)
        except (KeyError, TypeError):
            raise InvalidInput(
                f"no open entry {entry!r} in session {self.session!r}: it has a result, or this recorder did not begin it",
                "pass the id that entry() returned, once; for an entry of another process call register_entry() first",
            ) from None
        self._has_episode |= status != "ok"
        present = ids.now()
        try:
            if self._template is not None and error is usage is None:
                try:
                    self._template.result(present, entry, status, output, duration_ms)
                    return
                except (InvalidInput, TypeError):  # as in `entry`
                    pass
            fields = {"entry": entry, "status": status, "output": output, "error": error_body(error)}
            self._put(self._record("result", {**fields, "durationMs": duration_ms, "usage": usage}, present))
        except BaseException:
            self._unfinished.add(entry)
            raise

    def event(self, type: str, data: object = None, *, entry: str | None = None, agent: str | None = None) -> str:  # noqa: A002
        """Record a message, thought or tool update and return its id.

        Args:
            type: ``user_message`` for a person's words, ``message`` for an agent's, ``thought``, ``compaction``, ``interrupt``,
                an alias from `ctxmgr.log.codec.EVENT_ALIASES`, or any other name, which is kept.
            data: its content; a message is a text, or an object with ``text`` or ``content``.
            entry: the entry that it belongs to; by default the surrounding `action`.
            agent: who said it; by default who a message is ``from`` (see `ctxmgr.log.codec.event_origin`), or the recorder's.
        """
        self._has_episode = True
        event = ids.new_id()
        kind, speaker = event_origin(type, data, agent)
        fields = {"id": event, "type": kind, "entry": entry or current_entry(self.session)}
        self._write("event", {**fields, "agent": speaker or self._agent, "data": data})
        return event

    def action(self, agent: str | None, name: str, **details: Unpack[Details]) -> Step:
        """Return a context manager that records the action: its beginning on entering, its result on leaving.

        It takes the arguments of `entry`. An exception is recorded as the result and propagates. ``async with`` works too.
        """
        return Step(self, agent, name, details)

    def end(self, outcome: Outcome = "completed") -> None:
        """Record the end of the session, close the target, and store the episode. A second call does nothing.

        Raises:
            InvalidInput: the outcome is unknown, so the session goes on.
            StorageFailed, Busy: the end could not be written. The recorder has ended nevertheless.
        """
        if self._ended:
            return
        if outcome not in OUTCOMES:
            raise InvalidInput(f"unknown outcome {outcome!r}", f"outcomes: {', '.join(OUTCOMES)}")
        try:
            self._write("sessionEnd", {"outcome": outcome, "process": self.process})
        finally:
            self._ended = True
            self._release()
        if self._episode and self._has_episode and self._path is not None:
            self._retain(self._path)

    close = end

    def _retain(self, path: str) -> None:
        module, _, name = _EPISODES.partition(":")
        with suppress(Exception):  # a failed episode must not disturb the agent's end
            getattr(import_module(module), name)(path, self.session)

    def _release(self) -> None:
        sink: Sink | None = getattr(self, "_sink", None)
        try:
            if sink is not None and self._path is not None:
                sink.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        outcome: Outcome = "completed" if error is None else "cancelled" if is_interruption(error) else "failed"
        with KeepOriginalError(error):
            self.end(outcome)


@cache
def _record_checks() -> Any:
    # By name, like the sinks. Only a record that looks wrong loads a model library.
    return import_module("ctxmgr.types.record")


_open_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _leave_parent() -> None:
    for recorder in list(_open_recorders):
        recorder.leave_parent()


os.register_at_fork(after_in_child=_leave_parent)


_MAX_NAMES = 1_000  # cached combinations of agent, action and input type, because a program may make up names
_ID_LENGTH, _ID_SIGNS = 36, b"0123456789abcdef-"


class EncodedSink(Protocol):
    """A sink that also accepts encoded records; see `ctxmgr.log.journal.Journal`."""

    masked: Callable[[bytes], bytes]

    def append_made(self, head: bytes, value: bytes, tail: bytes) -> None:
        """Store one record, made of these parts. Only ``value`` still needs masking."""
        ...


class RecordTemplate:
    """Writes the entries and results of one process into a sink, with most parts encoded in advance.

    It refuses a record of an unusual shape with a TypeError. The recorder then encodes it in the ordinary way.
    """

    def __init__(self, sink: EncodedSink, session: str, process: str) -> None:
        self._sink = sink
        self._takes_any = isinstance(sink, Journal)
        # The parts can be masked separately, because each ends after a field or its name, and no secret spans two of them.
        self._entry = sink.masked(b'{"v":1,"kind":"entry","session":%b,"ts":"' % encode_value(session, 1)).decode("ascii")
        # The first "entry" is the kind, because the session comes after it.
        self._result = self._entry.replace("entry", "result", 1)
        self._tail = sink.masked(b',"process":%b}' % encode_value(process, 1))
        self._names: dict[tuple[str, str, str], str] = {}

    def entry(self, entry: str, present: str, names: tuple[str, str, str], value: object) -> None:
        """Append the entry. ``names`` are its agent, action and input type.

        Raises:
            InvalidInput, TypeError: a part can't be written unchanged; nothing was written.
        """
        if not (self._takes_any or is_plain(value)):  # a log accepts any value that JSON can express
            raise TypeError("a value to be converted")
        members = self._names.get(names) or self._remember(names)
        head = f'{self._entry}{present}","id":"{entry}"{members}'.encode("ascii")
        self._sink.append_made(head, encode_value(value, 1), self._tail)

    def result(self, present: str, entry: str, status: str, output: object, took: float | None) -> None:
        """Append a result without error and usage. An ``output`` of None is left out.

        Raises:
            InvalidInput, TypeError: as `entry`.
        """
        if type(status) is not str or not _is_id(entry) or not (self._takes_any or is_plain(output)):
            raise TypeError("a value to be converted")
        head = f'{self._result}{present}","entry":"{entry}","status":"{status}"'.encode("ascii")
        tail = b"}" if took is None else b',"durationMs":%b}' % encode_value(took, 1)
        if output is None:
            self._sink.append_made(head, b"", tail)
        else:
            self._sink.append_made(head + b',"output":', encode_value(output, 1), tail)

    def _remember(self, names: tuple[str, str, str]) -> str:
        if not all(type(name) is str for name in names):
            raise TypeError("a name that is no text")
        if len(self._names) >= _MAX_NAMES:
            self._names.clear()
        members = b',"agent":%b,"action":%b,"inputType":%b,"input":' % tuple(encode_value(name, 1) for name in names)
        self._names[names] = text = self._sink.masked(members).decode("ascii")
        return text


def _is_id(text: object) -> bool:
    """Whether the text looks like an id from `ids.new_id`. Such ids need no escapes and are never taken for secrets."""
    return (
        type(text) is str and len(text) == _ID_LENGTH and text.isascii() and not text.encode("ascii").translate(None, _ID_SIGNS)
    )
