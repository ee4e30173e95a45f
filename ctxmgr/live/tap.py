"""Pass bytes between an ACP client and its agent, unchanged and at once, with a copy for a process that records them.

Recording never delays the traffic. Copies wait in memory up to a limit; further ones are counted and dropped. JSON is parsed
in a process of its own, because one large message can hold the interpreter's lock for seconds.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from ctxmgr.errors import InvalidInput

HEADER = struct.Struct(">cdI")
"""Header of each piece for the recorder: the sender, the time, and the number of bytes that follow."""

FROM_CLIENT, FROM_AGENT, LOST = b"c", b"a", b"l"
_CHUNK = 1 << 18
# If the store stays locked until this is full, records are lost, but the conversation goes on.
_MAX_HELD_BYTES = 64 << 20
_PATIENCE = 2.0
"""Seconds to wait for the recorder at the end. If it needs longer, it goes on by itself."""

# Editors end an agent by a signal to the process that they started, which is the tap.
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Copies:
    """Sends copies of the traffic to the recorder, in order, from a thread of its own."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._held: deque[bytes] = deque()
        self._size = self._lost = 0
        self._changed = threading.Condition()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def offer(self, sender: bytes, data: bytes) -> None:
        """Take a copy. If there is no room for it, drop and count it."""
        with self._changed:
            if self._over or self._size + HEADER.size + len(data) > _MAX_HELD_BYTES:
                self._lost += not self._over
                return
            # Report the loss at its position, so that the recorder does not join a message across the gap.
            self._report_loss()
            self._hold(HEADER.pack(sender, time.time(), len(data)) + data)
            self._changed.notify()

    def _report_loss(self) -> None:
        if self._lost:
            self._hold(HEADER.pack(LOST, time.time(), self._lost))
            self._lost = 0

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._size += len(piece)

    def close(self, patience: float) -> None:
        """Send the remaining copies, for at most this many seconds, and close the pipe, which ends the recorder."""
        with self._changed:
            # No further copy follows that would report the loss.
            self._report_loss()
            self._over = True
            self._changed.notify()
        self._thread.join(patience)
        with contextlib.suppress(OSError):
            os.close(self._pipe)

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the recorder is gone; the traffic goes on
            while True:
                with self._changed:
                    while not self._held and not self._over:
                        self._changed.wait()
                    if not self._held:
                        return
                    piece = self._held.popleft()
                    self._size -= len(piece)
                write_all(self._pipe, piece)  # outside the lock: it blocks while the recorder is busy
        with self._changed:
            self._over = True
            self._held.clear()


class Tap:
    """The agent, and the traffic between it and the client on stdin and stdout.

    Args:
        command: the command that starts the agent.
        environment: the environment of the agent.
        copies: takes a copy of the traffic.
        orders: the descriptor on which the recorder sends messages for the agent (lines of JSON) and lines for people.

    Raises:
        InvalidInput: the agent can't be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], copies: Copies, orders: int) -> None:
        try:
            self._agent = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise InvalidInput(f"can't run {command[0]}: {reason}", "check the command after --") from None
        self._copies = copies
        self._orders = orders
        self._writing = threading.Lock()
        self._inside = False  # whether the agent has received only the beginning of a line from the client
        self._due: list[bytes] = []  # the recorder's messages that wait for the end of that line
        self._order_thread = threading.Thread(target=self._follow_orders, daemon=True)

    def run(self) -> int:
        """Pass everything on until the agent ends. Return its exit code; after a signal 128 + its number, as in a shell."""
        before = {number: signal.signal(number, self._forward) for number in _FORWARDED}
        threading.Thread(target=self._client_to_agent, daemon=True).start()
        self._order_thread.start()
        back = threading.Thread(target=self._agent_to_client, daemon=True)
        back.start()
        try:
            code = self._agent.wait()
            back.join()  # what the agent wrote before it ended may still be in the pipe
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return code if code >= 0 else 128 - code

    def last_words(self, patience: float) -> None:
        """Wait for the recorder's last lines, at most this many seconds."""
        self._order_thread.join(patience)

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        with contextlib.suppress(OSError):
            self._agent.send_signal(number)

    def _client_to_agent(self) -> None:
        """Pass on bytes from client to agent, until the client closes its end or the agent stops reading."""
        assert self._agent.stdin is not None, "a pipe was asked for"
        with contextlib.suppress(OSError):
            while data := read_some(0):
                self._copies.offer(FROM_CLIENT, data)
                with self._writing:
                    self._write(self._agent.stdin.fileno(), data)
        with contextlib.suppress(OSError), self._writing:
            self._agent.stdin.close()
        with contextlib.suppress(OSError):
            os.close(0)  # a client that goes on writing gets the same error as from the agent itself

    def _write(self, agent: int, data: bytes) -> None:
        # Send a message of the recorder only between two lines. In the middle of a line it would destroy both.
        end = data.find(b"\n") + 1
        if self._due and end:
            write_all(agent, data[:end])
            self._send(agent)
            data = data[end:]
        write_all(agent, data)
        if data:
            self._inside = not data.endswith(b"\n")

    def _send(self, agent: int) -> None:
        while self._due:
            line = self._due.pop(0)
            self._copies.offer(FROM_CLIENT, line)
            write_all(agent, line)
        self._inside = False

    def _follow_orders(self) -> None:
        """Send the recorder's messages between two messages of the client. Write its other lines to stderr."""
        assert self._agent.stdin is not None, "a pipe was asked for"
        with contextlib.suppress(OSError, ValueError), open(self._orders, "rb") as orders:
            for line in orders:
                if not line.startswith(b"{"):
                    write_all(2, line)
                    continue
                with self._writing:
                    self._due.append(line)
                    if not self._inside:
                        self._send(self._agent.stdin.fileno())

    def _agent_to_client(self) -> None:
        """Pass on bytes from agent to client, until the agent closes its end or the client is gone."""
        assert self._agent.stdout is not None, "a pipe was asked for"
        with contextlib.suppress(OSError):
            while data := read_some(self._agent.stdout.fileno()):
                self._copies.offer(FROM_AGENT, data)
                write_all(1, data)
        self._agent.stdout.close()


def read_some(descriptor: int) -> bytes:
    """Return the next bytes of a descriptor, waiting for them; empty at the end."""
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:  # a parent may have left the descriptor non-blocking, as programs in Node.js do
            select.select([descriptor], [], [])


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes, in as many writes as needed.

    Raises:
        OSError: the reader is gone.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def run_tap(
    command: Sequence[str], environment: Mapping[str, str], record: Callable[[int, int], None]
) -> int:  # fmt: skip
    """Run an agent behind the tap and return its exit code.

    Args:
        command: the command that starts the agent.
        environment: the environment of the agent.
        record: called in a process of its own with two descriptors, one for reading copies and one for writing orders.

    Raises:
        InvalidInput: the agent can't be started.
    """
    copied, copies = os.pipe()
    ordered, orders = os.pipe()
    # Fork before any thread starts, because a fork copies only the calling thread, but locks in any state.
    child = os.fork()
    if child == 0:
        _recorder(record, copied, orders, (copies, ordered))
    # Close the recorder's ends, or neither process would notice the end of the other.
    for descriptor in (copied, orders):
        os.close(descriptor)
    held = Copies(copies)
    try:
        tap = Tap(command, environment, held, ordered)
    except InvalidInput:
        # Closes the pipe, which ends the recorder.
        held.close(_PATIENCE)
        raise
    code = tap.run()
    held.close(_PATIENCE)
    end = time.monotonic() + _PATIENCE
    while os.waitpid(child, os.WNOHANG)[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    tap.last_words(_PATIENCE / 4)
    return code


def _recorder(record: Callable[[int, int], None], copied: int, orders: int, others: Sequence[int]) -> None:
    """Run the recorder in this process. It goes on writing its data after a signal that ends the tap."""
    code = 1
    try:
        os.setsid()  # Ctrl-C and the editor's signals to the process group must not reach it; the end of the pipe ends it
        for descriptor in others:
            os.close(descriptor)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.dup2(null, 2)  # an editor that waits for the end of stderr must not wait for the store
        record(copied, orders)
        code = 0
    finally:
        os._exit(code)
