"""Run a generator in a second process and yield its items here, in order.

The process is a new interpreter with the same ``sys.path``. It is not forked, because threads may run here, and it does not
run the main module again. Arguments and items are plain data in the format of `marshal`.

A generator that reads records opens the store again in the second process (`open_records`).
"""

from __future__ import annotations

import marshal
import os
import sys
from typing import NamedTuple

from ctxmgr.errors import StorageFailed
from ctxmgr.store.engine.disposable_files import BORN
from ctxmgr.store.engine.log_bytes import LogBytes
from ctxmgr.store.engine.sqlite import MEMORY, SqliteEngine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import BufferedReader
    from socket import socket
    from subprocess import Popen
    from types import TracebackType
    from typing import Any

    from ctxmgr.store.engine.interface import Engine

PROCESSES = "CTXMGR_PROCESSES"
"""The environment variable with the number of processes that may work at once. With 1 there is never a second one."""

_ITEM, _END, _FAILED = b"ctx item", b"ctx end.", b"ctx fail"
"""The kinds of frames. A frame is its kind, the length of its body, and the body."""

_SIZE = 8

WAITING = 2
"""Largest number of items that are ready and not sent yet."""

# The interpreter starts isolated and gets ``sys.path`` from here. So neither the environment nor the current folder decides
# which package it imports.
_BEGIN = (
    "import marshal, sys; source = open(int(sys.argv[1]), 'rb', closefd=False); sys.path[:] = marshal.load(source); "
    "from ctxmgr.store.worker_process import serve; serve(source)"
)


class ProcessLost(Exception):  # noqa: N818  # named after what happened, as the other errors are
    """There is no second process, or it ended too early. The caller does the rest itself."""


def is_of_use() -> bool:
    """Whether a second process can work while this one does."""
    if os.environ.get(PROCESSES, "").strip() == "1":
        return False
    try:
        return len(os.sched_getaffinity(0)) > 1
    except (AttributeError, OSError):  # not on every system
        return (os.cpu_count() or 1) > 1


def run_in_second_process(function: str, *arguments: object) -> SecondProcess:
    """Start a generator function in a second process.

    Args:
        function: the name of the function, as ``package.module:function``.
        arguments: its arguments. They and the items may be None, booleans, numbers, texts, bytes, and lists, tuples, dicts
            and sets of these.
    """
    return SecondProcess(function, arguments)


class SecondProcess:
    """An iterator over the items of a generator in a second process.

    The second process ends with the last item, with `close`, or with this process. If it fails, `ProcessLost` is raised here
    after the items that arrived whole.
    """

    def __init__(self, function: str, arguments: tuple[object, ...]) -> None:
        self._child: Popen[bytes] | None = None
        self._socket: socket | None = None
        self._reader: BufferedReader | None = None
        self._owner = os.getpid()
        self._lost = ""
        try:
            self._start(function, arguments)
        except (OSError, ValueError) as error:
            self._lost = f"it can't be started: {error}"
            self.close()
        except BaseException:
            self.close()
            raise

    def _start(self, function: str, arguments: tuple[object, ...]) -> None:
        if not is_of_use():
            raise ValueError("there is no processor for it")
        if not sys.executable or getattr(sys, "frozen", False):
            raise ValueError("the interpreter is part of a program")
        import signal
        import socket
        import subprocess

        # An empty entry means the current folder, which an isolated interpreter would not search.
        given = marshal.dumps([os.path.abspath(entry) for entry in sys.path]), _encode_frame(_ITEM, (function, arguments))
        self._socket, there = socket.socketpair()
        # The terminal sends an interrupt to both processes. The second one must ignore it, because this one ends it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._child = subprocess.Popen(
                [*_interpreter(), "-c", _BEGIN, str(there.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[there.fileno()],
            )  # fmt: skip
        finally:
            there.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._reader = open(self._socket.fileno(), "rb", closefd=False)  # noqa: SIM115  # closed by `close`
        for part in given:
            # MSG_NOSIGNAL, because SIGPIPE may end this program.
            self._socket.sendall(part, getattr(socket, "MSG_NOSIGNAL", 0))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """Return the next item.

        Raises:
            ProcessLost: the second process ended or failed before its last item.
        """
        if self._lost:
            raise ProcessLost(self._lost)
        if self._reader is None:
            raise StopIteration
        try:
            kind, value = _frame(self._reader)
        except (OSError, EOFError, ValueError, TypeError) as error:
            self._lost = f"it ended before its work did: {error}"
        except BaseException:  # the next read would begin in the middle of a frame
            self._lost = "it was interrupted"
            self.close()
            raise
        else:
            if kind == _ITEM:
                return value
            self._lost = str(value)
        self.close()
        if self._lost:
            raise ProcessLost(self._lost)
        raise StopIteration

    def close(self) -> None:
        """Kill the second process, at whatever point it is."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._child is not None and self._owner == os.getpid():  # a fork of this process leaves it alone
            self._child.kill()
            self._child.wait()
            self._child = None

    def __enter__(self) -> SecondProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # At interpreter shutdown, modules may be gone. The second process then ends by itself.
        if getattr(self, "_child", None) is not None and not ending():
            self.close()


def _interpreter() -> list[str]:
    """Return the command that starts this interpreter again, isolated but otherwise with the same flags."""
    flags = ["-I", "-X", f"utf8={sys.flags.utf8_mode:d}"]
    if sys.flags.no_site:
        flags.append("-S")
    if sys.dont_write_bytecode:
        flags.append("-B")
    return [sys.executable, *flags]


def _encode_frame(kind: bytes, value: Any) -> bytes:
    body = marshal.dumps(value)
    return kind + len(body).to_bytes(_SIZE, "little") + body


def _frame(source: BufferedReader) -> tuple[bytes, Any]:
    """Return the kind and the value of the next frame.

    Raises:
        EOFError: the frame is incomplete.
        ValueError, TypeError: the bytes are not a frame.
    """
    kind, size = source.read(len(_ITEM)), source.read(_SIZE)
    if kind not in (_ITEM, _END, _FAILED) or len(size) < _SIZE:
        raise ValueError("what came is no frame") if size else EOFError("the process is gone")
    wanted = int.from_bytes(size, "little")
    body = source.read(wanted)
    if len(body) < wanted:
        raise EOFError("the process is gone")
    # marshal must not read data of strangers; these bytes come from our own child process only.
    return kind, marshal.loads(body)


def serve(source: BufferedReader) -> None:
    """Run as the second process: read the request, send the items, and exit."""
    import _thread
    from queue import Queue
    from threading import Thread

    try:
        _, (function, arguments) = _frame(source)
        # Start this before any work, because the process must not go on for hours after its parent is gone.
        _thread.start_new_thread(_end_with_parent, (source.fileno(),))
        waiting: Queue[bytes] = Queue(WAITING)
        telling = Thread(target=_tell, args=(source.fileno(), waiting.get))
        telling.start()
        try:
            for item in _load(function)(*arguments):
                waiting.put(_encode_frame(_ITEM, item))
            waiting.put(_encode_frame(_END, ""))
        except Exception as error:
            waiting.put(_encode_frame(_FAILED, f"{type(error).__name__}: {error}"))
        waiting.put(b"")
        telling.join()
    finally:
        os._exit(0)  # without waiting for the other threads


def _tell(descriptor: int, next_frame: Callable[[], bytes]) -> None:
    """Send frames from a thread while the generator makes more, until an empty one. The parent reads when it has time."""
    try:
        with open(descriptor, "wb", buffering=0, closefd=False) as stream:
            while frame := next_frame():
                _write(stream.write, frame)
    except BaseException:  # the parent is gone
        os._exit(0)


def _load(function: str) -> Callable[..., Iterator[object]]:
    from importlib import import_module

    module, _, name = function.partition(":")
    return getattr(import_module(module), name)


def _write(write: Callable[[memoryview], int | None], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[write(rest) or 0 :]


def _end_with_parent(descriptor: int) -> None:
    """Exit when the parent is gone or has closed its socket. It never sends anything else."""
    try:
        os.read(descriptor, 1)
    finally:
        os._exit(0)


_LINES = "(SELECT seq, session, kind, id, log_body(offset, length) AS body FROM main.line)"


class Place(NamedTuple):
    """The files in which another process finds the records of a store, as plain data.

    Attributes:
        database: path of the database.
        log: path of the log whose index the database is; "" for none.
        born: identifies the build of the index, because places differ between builds.
    """

    database: str
    log: str
    born: str


def find_place(engine: Engine, location: str) -> Place | None:
    """Return where another process finds the records of the store at ``location``; None if it can't read them."""
    if not isinstance(engine, SqliteEngine) or engine.path == MEMORY:
        return None
    in_place = engine.query("SELECT count(*) FROM temp.sqlite_schema WHERE name = 'record'")[0][0]
    log = os.path.abspath(location) if in_place else ""
    return Place(os.path.abspath(engine.path), log, creation_mark(engine))


def creation_mark(engine: Engine) -> str:
    """Return the generation of an index, by which a rebuild is detected; "" if it is never rebuilt."""
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": BORN})
    return str(rows[0][0]) if rows else ""


def open_records(place: Place) -> tuple[SqliteEngine, str]:
    """Open the records in another process. Return the engine, and the SQL name of the table of records.

    Raises:
        CtxmgrError: the records can't be read, or the log is not the one that was indexed.
    """
    engine = SqliteEngine(place.database, readonly=True)
    if place.born != creation_mark(engine):
        raise StorageFailed(f"{place.database} was made anew", "run the command again")
    if not place.log:
        return engine, "record"
    _serve_lines(engine, place.log)
    return engine, _LINES


def _serve_lines(engine: SqliteEngine, path: str) -> None:
    log = LogBytes(path)
    size = log.follow()
    state = dict(engine.query("SELECT name, value FROM state"))
    end = int(state["offset"])
    if size < end or not log.head().startswith(state["head"]) or log.digest_before(end) != state["before"]:
        raise StorageFailed(f"{path} was replaced", "run the command again")
    log.serve(engine)


_ROWS = 256


def stored_bodies(
    engine: Engine, key: int, kinds: Sequence[str], after: int = 0, records: str = "record"
) -> Iterator[tuple[int, list[str]]]:
    """Yield the stored records of a session behind a place in groups, as (place of the last one, bodies)."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    sql = f"SELECT seq, body FROM {records} WHERE session = :key AND seq > :after AND kind IN ({names}) ORDER BY seq"
    bodies: list[str] = []
    for seq, body in engine.stream(sql, {"key": key, "after": after}):
        bodies.append(str(body))
        if len(bodies) == _ROWS:
            yield int(seq), bodies
            bodies = []
        after = int(seq)
    if bodies:
        yield after, bodies


def stored_bodies_in_worker(place: Place, key: int, kinds: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the groups of `stored_bodies` in another process than the one that has the store open. Writes nothing.

    Raises:
        CtxmgrError: the records can't be read, or the log is not the one that was indexed.
    """
    engine, records = open_records(place)
    yield from stored_bodies(engine, key, kinds, records=records)
