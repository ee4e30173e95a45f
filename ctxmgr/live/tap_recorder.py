"""Record the traffic of a tap, watch it for loops and hangs, and cancel a turn that hangs if the user wants that.

Start with `record_copies`, which the tap's second process runs. `acp_reader` turns the messages into records.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from ctxmgr.config import Config
from ctxmgr.errors import Busy, CtxmgrError, InvalidInput, StorageFailed
from ctxmgr.history.live.record_sources import Batch, Follower
from ctxmgr.live.acp_reader import AGENT, CLIENT, AcpReader, MessageLines
from ctxmgr.live.tap import FROM_AGENT, FROM_CLIENT, HEADER, LOST
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id
from ctxmgr.store import Store
from ctxmgr.workspace import Workspace

_SENDERS = {FROM_CLIENT: CLIENT, FROM_AGENT: AGENT}
# Seconds between two looks at the detectors, and between two tries to write to a locked store. Hangs are measured in minutes.
_EVERY = 1.0
# Number of records that wait for a locked or full store. Further ones are counted as lost.
_MAX_WAITING = 50_000
_PATIENCE = 30.0
"""Seconds for which a locked or full store is tried again at the end."""


class _NewRecords:
    """A source for the detectors: the records since their last look."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def poll(self) -> Batch | None:
        """Return the records since the last call, None if there are none."""
        taken, self.records = self.records, []
        return Batch(taken, fresh=False) if taken else None


class TapRecorder:
    """Turns copies of the traffic into records of a store.

    Args:
        store: the store to append to.
        config: the configuration with the detectors' thresholds.
        cancel: called with the session of a turn that hangs; None to let it run.
        say: function that writes a line for people.
        clock: function that returns seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        cancel: Callable[[str], None] | None,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._cancel = cancel
        self._say = say
        self._reader = AcpReader(new_id())
        self._lines = {sender: MessageLines() for sender in _SENDERS}
        self._waiting: deque[Record] = deque()
        self._new_records = _NewRecords()
        self._follower = Follower(self._new_records, config.detect, clock)
        self.lost = 0
        self._refusal = ""

    def take(self, sender: bytes, at: float, data: bytes) -> None:
        """Take a copy of a sender's bytes."""
        for message in self._lines[sender].take(data):
            self._add(self._reader.read(_SENDERS[sender], at, message))

    def lose(self, count: int) -> None:
        """Note that pieces were dropped, so that the messages around them are incomplete."""
        self.lost += count
        # The sender of the lost pieces is unknown.
        for lines in self._lines.values():
            lines.skip_line()

    def _add(self, records: Iterator[Record]) -> None:
        for record in records:
            if len(self._waiting) >= _MAX_WAITING:
                self.lost += 1
            else:
                self._waiting.append(record)
            # The detectors also see records that the store could not take in time.
            self._new_records.records.append(record)

    def look(self) -> None:
        """Write the waiting records, and report the findings of the detectors."""
        self._write()
        for sight in self._follower.tick():
            finding = sight.finding
            if sight.event not in ("raised", "escalated") or finding is None or finding.severity == "warn":
                continue
            self._say(f"ctxmgr: {finding.kind} in session {sight.session}: {finding.reason}")
            if finding.severity == "hung" and self._cancel is not None:
                self._say("ctxmgr: the turn is cancelled")
                self._cancel(sight.session)

    def close(self, pause: Callable[[float], None] = time.sleep) -> None:
        """Write the remaining records. Try a locked or full store again for a while."""
        self._add(self._reader.close())
        end = time.monotonic() + _PATIENCE
        self._write()
        while self._waiting and time.monotonic() < end:
            pause(_EVERY)
            self._write()
        self.lost += len(self._waiting)
        invalid = sum(lines.invalid for lines in self._lines.values())
        if self.lost:
            self._say(f"ctxmgr: {self.lost:,} pieces were passed on but not recorded{self._refusal and ': ' + self._refusal}")
        if invalid:
            self._say(f"ctxmgr: {invalid:,} lines were no message of the protocol: passed on, not recorded")

    def _write(self) -> None:
        while self._waiting:
            # Remove records from the queue only after they are stored, so that a locked store gets them later.
            part = [self._waiting[place] for place in range(min(1000, len(self._waiting)))]
            try:
                self._store.append(part, on_conflict="keep")
            except InvalidInput:
                if not self._one_by_one(part):
                    return
                continue
            except (Busy, StorageFailed) as error:
                self._refusal = error.message
                return
            for _ in part:
                self._waiting.popleft()

    def _one_by_one(self, records: list[Record]) -> bool:
        """Append the first waiting records one by one, because some can't be stored. Count these as lost.

        Return False if the store is locked or full; the rest then waits.
        """
        for record in records:
            try:
                self._store.append([record], on_conflict="keep")
            except (Busy, StorageFailed) as error:
                self._refusal = error.message
                return False
            except CtxmgrError as error:
                self.lost += 1
                self._refusal = error.message
            self._waiting.popleft()
        return True


def record_copies(copied: int, orders: int, location: str, config: Config, *, masked: bool, cancel: bool) -> None:
    """Record the copies from a descriptor until it ends. After any error of the store, go on reading the descriptor."""

    def write(line: bytes) -> None:
        with suppress(OSError):  # the tap is gone
            os.write(orders, line + b"\n")

    def send(session: str) -> None:
        message = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
        write(json.dumps(message).encode("ascii"))

    def say(line: str) -> None:
        """Write a line for people, without characters that control a terminal."""
        write("".join(letter if letter.isprintable() else "?" for letter in line).encode("utf-8", "replace"))

    with open(copied, "rb") as stream:
        try:
            with _open_store(location, masked=masked) as workspace:
                recorder = TapRecorder(workspace.store, config, send if cancel else None, say)
                _follow(stream.fileno(), recorder)
                recorder.close()
        except CtxmgrError as error:
            say(f"ctxmgr: nothing is recorded: {error.message}")
        # Without a reader the pipe would fill, and the tap would keep copies in memory up to its limit.
        while os.read(stream.fileno(), 1 << 20):
            pass


def _open_store(location: str, *, masked: bool) -> Workspace:
    """Open the store. Try a locked one again for a while; the copies wait in memory."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return Workspace.open(location, create=True, masked=masked)
        except Busy:
            if time.monotonic() > end:
                raise
            time.sleep(_EVERY)


def _follow(descriptor: int, recorder: TapRecorder) -> None:
    held = bytearray()
    looked = 0.0
    while True:
        ready = select.select([descriptor], [], [], _EVERY)[0]
        if ready:
            data = os.read(descriptor, 1 << 20)
            if not data:
                return
            held += data
            _take(held, recorder)
        # Also look during continuous traffic, because one call may hang while others go on.
        if not ready or time.monotonic() - looked >= _EVERY:
            recorder.look()
            looked = time.monotonic()


def _take(held: bytearray, recorder: TapRecorder) -> None:
    """Process the complete pieces in ``held`` and remove them."""
    place = 0
    while len(held) - place >= HEADER.size:
        sender, at, size = HEADER.unpack_from(held, place)
        if sender == LOST:
            recorder.lose(size)
            place += HEADER.size
            continue
        end = place + HEADER.size + size
        if len(held) < end:
            break
        recorder.take(sender, at, bytes(held[place + HEADER.size : end]))
        place = end
    del held[:place]
