"""Record what agents do: one call per action, message or tool update, for any store.

Importing this module loads the standard library alone, so that it can live inside any agent. What it promises is the
journal's (see `ctxmgr.journal`): a call that has returned has been handed to the kernel, or is on the disk at level
``os``. Nothing here depends on an orderly end: an action whose process dies stays open, which is what happened.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Literal, Protocol, cast, runtime_checkable

from ctxmgr import ids
from ctxmgr.errors import Busy, CtxmgrError, InvalidInput
from ctxmgr.journal import Durability, Journal
from ctxmgr.liveness import Claim, claim, is_live, live_sessions
from ctxmgr.plain import describe, plain, shorten, type_name
from ctxmgr.wire import Record

__all__ = ["EVENT_ALIASES", "SINKS", "Recorder", "Sink", "Step", "is_live", "live_sessions"]

EVENT_ALIASES = {
    "NodeStreamDeltaEvent": "agent_message_chunk",
    "NodeThoughtDeltaEvent": "agent_thought_chunk",
    "ToolCallEvent": "tool_call",
}
"""The event names of other frameworks' buses and the types they are stored as."""

SINKS = {".db": "ctxmgr.store.sink:open_sink", ".sqlite": "ctxmgr.store.sink:open_sink"}
"""Where a target that is no ``.jsonl`` file is written: suffix to ``module:function(path, durability, mask) -> Sink``.

By name, because the recorder stands below the stores and may not import them: who records into a file of lines must
not have to load a database.
"""
_OTHER_SINK = "ctxmgr.store.sink:open_sink"

Status = Literal["ok", "error", "denied", "interrupted"]
Outcome = Literal["completed", "failed", "cancelled"]
OnLive = Literal["refuse", "join", "fork"]


@runtime_checkable
class Sink(Protocol):
    """What a recorder writes to."""

    def append(self, records: Sequence[Record]) -> object:
        """Store the records in order, all or none; return when they are as durable as promised."""
        ...

    def close(self) -> None:
        """Release what is held."""
        ...


class Recorder:
    """Writes one process of one session.

    Safe to share between threads. A forked child goes on as a process of its own in the same session.

    Args:
        target: path of a ``.jsonl`` log or of a database, or any `Sink`.
        session: id of the workflow; a new one by default.
        process: id of this execution; a new one by default.
        workflow: name of the workflow.
        agent: used where a call names none.
        durability: ``process`` (default) or ``os``; see `ctxmgr.journal`.
        mask: whether secrets of known shapes are masked before they are written.
        on_live: what to do when a live process holds the session: ``refuse`` it, ``join`` it (entries stay apart by
            process), or ``fork`` a new session that names the old one in ``meta.forkedFrom``.
        meta: anything worth knowing about this execution; pid and host are added.

    Attributes:
        session: id of the session.
        process: id of this execution.

    Raises:
        Busy: when the session is live and ``on_live`` is ``refuse``.
        StorageFailed: when the target can't be written.
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
    ) -> None:
        self.session = session or ids.new_id()
        self.process = process or ids.new_id()
        self._workflow = workflow
        self._agent = agent
        self._durability: Durability = durability
        self._mask = mask
        self._meta = dict(meta or {})
        self._path = os.fspath(target) if isinstance(target, (str, os.PathLike)) else None
        self._given = None if isinstance(target, (str, os.PathLike)) else target
        self._claim: Claim | None = None
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
        """Claim the session; return the one it was forked from, if it was."""
        if self._path is None or "://" in self._path:  # no file to lie beside: the store itself keeps writers apart
            return None
        try:
            self._claim = claim(self._path, self.session, self.process, join=on_live == "join")
        except Busy:
            if on_live != "fork":
                raise
            origin, self.session = self.session, ids.new_id()
            self._claim = claim(self._path, self.session, self.process)
            return origin
        return None

    def _open_sink(self) -> Sink:
        if self._path is None:
            return cast("Sink", self._given)
        suffix = os.path.splitext(self._path)[1].lower()
        if suffix == ".jsonl":
            return Journal(self._path, durability=self._durability, mask=self._mask)
        module, _, name = SINKS.get(suffix, _OTHER_SINK).partition(":")
        return cast("Sink", getattr(import_module(module), name)(self._path, self._durability, self._mask))

    def _start(self, **extra: str) -> None:
        meta = {"pid": os.getpid(), "host": os.uname().nodename, **self._meta, **extra}
        self._write("session", process=self.process, workflow=self._workflow, meta=meta)

    def leave_parent(self) -> None:
        """Become, in a forked child, a process of its own; what that needs happens at the first use."""
        self._fork_lock = threading.Lock()
        self._forked = True

    def _continue_as_child(self) -> None:
        with self._fork_lock:
            if not self._forked:
                return
            parent, self.process = self.process, ids.new_id()
            self._inherited = self._sink  # kept: closing a database that was opened before a fork damages it
            if self._path is not None and not isinstance(self._sink, Journal):
                self._sink = self._open_sink()
            if self._path is not None and self._claim is not None:
                self._claim = claim(self._path, self.session, self.process, join=True)
            self._forked = False
            self._start(forkedFrom=parent)

    def _write(self, kind: str, **fields: object) -> None:
        if self._forked:
            self._continue_as_child()
        if self._ended:
            raise InvalidInput(f"the recorder of session {self.session!r} has ended", "open a new one")
        record: Record = {"v": 1, "kind": kind, "session": self.session, "ts": ids.now()}
        record.update((name, value) for name, value in fields.items() if value is not None)
        if isinstance(self._sink, Journal):
            try:
                self._sink.append((record,))
                return
            except InvalidInput:  # an odd value; looking for one beforehand would cost every record
                pass
        record = {name: plain(value) for name, value in record.items()}
        try:
            self._sink.append((record,))
        except InvalidInput:
            self._sink.append(({name: _within_limits(value) for name, value in record.items()},))
