"""Record what a tap copies, watch it for loops and hangs, and have a turn that hangs cancelled where that was asked for."""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ctxmgr.config import Config
from ctxmgr.errors import Busy, CtxmgrError, InvalidInput, StorageFailed
from ctxmgr.history.live.record_sources import Batch, Follower
from ctxmgr.live.acp import AGENT, CLIENT, AcpReader
from ctxmgr.live.tap import FROM_AGENT, FROM_CLIENT, HEADER, LOST
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id
from ctxmgr.store import Store
from ctxmgr.workspace import Workspace

_SENDERS = {FROM_CLIENT: CLIENT, FROM_AGENT: AGENT}
_EVERY = 1.0
_LONGEST = 64 << 20
_MOST_WAITING = 50_000
_PATIENCE = 30.0
"""Seconds that a store which refuses is asked again at the end."""


class Lines:
    """Puts the messages of one sender together, one a line; what is longer than any message is passed over."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._skipped = False
        self.odd = 0

    def take(self, data: bytes) -> Iterator[Any]:
        """Yield the messages that are complete now; what is no JSON is counted."""
        *whole, rest = data.split(b"\n")
        for line in whole:
            content = b"".join([*self._parts, line])
            self._parts.clear()
            self._size = 0
            if self._skipped:
                self._skipped = False
            elif content.strip():
                try:
                    yield json.loads(content)
                except (ValueError, RecursionError):
                    self.odd += 1
        self._size += len(rest)
        if self._size > _LONGEST:
            self.break_off()
        elif rest and not self._skipped:
            self._parts.append(rest)

    def break_off(self) -> None:
        """Pass over the rest of this line: some of it is not there."""
        self._parts.clear()
        self._size = 0
        self._skipped = True
        self.odd += 1


class _Heard:
    """What was recorded since the detectors last looked."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def poll(self) -> Batch | None:
        """Return it."""
        taken, self.records = self.records, []
        return Batch(taken, fresh=False) if taken else None


class TapRecorder:
    """Turns copies into records of a store.

    Args:
        store: to append to.
        config: whose thresholds hold.
        cancel: is given the session of a turn that hangs; None to leave it.
        say: tells people a line.
        clock: returns seconds since 1970.
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
        self._lines = {sender: Lines() for sender in _SENDERS}
        self._waiting: deque[Record] = deque()
        self._heard = _Heard()
        self._follower = Follower(self._heard, config.detect, clock)
        self.lost = 0
        self._refusal = ""

    def take(self, sender: bytes, at: float, data: bytes) -> None:
        """Take a copy of what a sender sent."""
        for message in self._lines[sender].take(data):
            self._add(self._reader.read(_SENDERS[sender], at, message))

    def lose(self, count: int) -> None:
        """Note that pieces were left out: the messages they belong to are not whole."""
        self.lost += count
        for lines in self._lines.values():
            lines.break_off()

    def _add(self, records: Iterator[Record]) -> None:
        for record in records:
            if len(self._waiting) >= _MOST_WAITING:
                self.lost += 1
            else:
                self._waiting.append(record)
            self._heard.records.append(record)

    def look(self) -> None:
        """Write what waits, and say what the detectors see."""
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
        """Write the rest; a store that refuses is asked again for a while."""
        self._add(self._reader.close())
        end = time.monotonic() + _PATIENCE
        self._write()
        while self._waiting and time.monotonic() < end:
            pause(_EVERY)
            self._write()
        self.lost += len(self._waiting)
        odd = sum(lines.odd for lines in self._lines.values())
        if self.lost:
            self._say(f"ctxmgr: {self.lost:,} pieces were passed on but not recorded{self._refusal and ': ' + self._refusal}")
        if odd:
            self._say(f"ctxmgr: {odd:,} lines were no message of the protocol: passed on, not recorded")

    def _write(self) -> None:
        while self._waiting:
            part = [self._waiting[place] for place in range(min(1000, len(self._waiting)))]
            try:
                self._store.append(part, on_conflict="keep")
            except InvalidInput:
                self._one_by_one(part)
            except (Busy, StorageFailed) as error:
                self._refusal = error.message
                return
            for _ in part:
                self._waiting.popleft()

    def _one_by_one(self, records: list[Record]) -> None:
        """Append what can be of records of which some can't be stored as they are."""
        for record in records:
            try:
                self._store.append([record], on_conflict="keep")
            except CtxmgrError as error:
                self.lost += 1
                self._refusal = error.message


def record_copies(copied: int, orders: int, location: str, config: Config, *, masked: bool, cancel: bool) -> None:
    """Record what comes on a descriptor until it ends; whatever is wrong with the store, what comes is taken."""

    def write(line: bytes) -> None:
        with suppress(OSError):  # the tap is gone
            os.write(orders, line + b"\n")

    def send(session: str) -> None:
        message = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
        write(json.dumps(message).encode("ascii"))

    def say(line: str) -> None:
        """Write a line for people, without anything in it that a terminal would obey."""
        write("".join(letter if letter.isprintable() else "?" for letter in line).encode("utf-8", "replace"))

    with open(copied, "rb") as stream:
        try:
            with _opened(location, masked=masked) as workspace:
                recorder = TapRecorder(workspace.store, config, send if cancel else None, say)
                _follow(stream.fileno(), recorder)
                recorder.close()
        except CtxmgrError as error:
            say(f"ctxmgr: nothing is recorded: {error.message}")
        while os.read(stream.fileno(), 1 << 20):
            pass


def _opened(location: str, *, masked: bool) -> Workspace:
    """Open the store; one that is locked is asked again for a while, as what passes waits in memory."""
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
        if not ready or time.monotonic() - looked >= _EVERY:
            recorder.look()
            looked = time.monotonic()


def _take(held: bytearray, recorder: TapRecorder) -> None:
    """Take the whole pieces out of what is held."""
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
