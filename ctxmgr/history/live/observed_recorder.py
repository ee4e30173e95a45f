"""A recorder that shows each record to a listener after it is written."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from ctxmgr.errors import Busy, StorageFailed
from ctxmgr.log.codec import Record, decode, encode
from ctxmgr.log.journal import Durability
from ctxmgr.log.masking import mask as mask_secrets
from ctxmgr.recorder import OnLive, Recorder, Sink

Listener = Callable[[Record], None]


class Options(TypedDict, total=False):
    """What a `Recorder` takes besides its target; see there."""

    session: str | None
    process: str | None
    workflow: str | None
    agent: str | None
    durability: Durability
    on_live: OnLive
    meta: dict[str, Any] | None
    episode: bool


class ObservedRecorder(Recorder):
    """A recorder whose records are completed before, and shown after, they are written.

    What is shown is what a reader of the log will find: plain JSON with the secrets masked, not the agent's own objects,
    which may change later. A write that fails is tried once more.

    Args:
        target: see `Recorder`.
        mask: whether secrets of known shapes are masked.
        complete: may add fields to a record before it is written.
        written: is shown each record after that.
        options: see `Recorder`.

    Attributes:
        lock: held while a record is written and shown.
        retries: how many writes failed at first.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | Sink,
        *,
        mask: bool,
        complete: Listener,
        written: Listener,
        options: Options,
    ) -> None:
        self.lock = threading.RLock()
        self.retries = 0
        self._masks = mask
        self._complete = complete
        self._written = written
        super().__init__(target, mask=False, **options)  # masked here, where it is shown as well

    def _open_sink(self) -> Sink:
        return _Shown(super()._open_sink(), self)

    def write(self, sink: Sink, records: Sequence[Record]) -> None:
        """Write records to the sink and show them.

        Raises:
            InvalidInput: a record can't be stored as it is.
            StorageFailed, Busy: it could not be written, twice.
        """
        with self.lock:
            ready = [self._ready(record) for record in records]
            try:
                sink.append(ready)
            except (StorageFailed, Busy):
                self.retries += 1
                sink.append(ready)
            for record in ready:
                self._written(record)

    def _ready(self, record: Record) -> Record:
        completed = dict(record)
        self._complete(completed)
        if not self._masks:
            return completed
        body = encode(completed)
        hidden = mask_secrets(body)
        return completed if hidden == body else decode(hidden)

    def leave_parent(self) -> None:
        """Become a process of its own in a forked child."""
        self.lock = threading.RLock()
        super().leave_parent()


class _Shown:
    """The sink of a tape: the real one, with the tape in between."""

    def __init__(self, sink: Sink, tape: ObservedRecorder) -> None:
        self._sink = sink
        self._tape = tape

    def append(self, records: Sequence[Record]) -> None:
        self._tape.write(self._sink, records)

    def close(self) -> None:
        self._sink.close()
