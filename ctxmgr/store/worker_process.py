"""Run a generator in a second process and yield its items here, in order.

The process is a new interpreter that imports what this one imports. It is not forked, since threads may run here, and it
does not run the main module again. What goes there and comes back is plain data, as `marshal` writes it.

A generator that reads records there opens the store anew (`open_records`).
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
"""The variable that says how many processes may work at once: with 1 there is never a second one."""

_ITEM, _END, _FAILED = b"ctx item", b"ctx end.", b"ctx fail"
"""What a frame begins with, before the length of what follows."""

_SIZE = 8

WAITING = 2
"""Items that are ready and not sent yet, at most."""

# Nothing of the environment says where the package is, and the folder of the program that runs is not looked into by
# chance: the interpreter starts isolated, and is told what is imported from where.
_BEGIN = (
    "import marshal, sys; source = open(int(sys.argv[1]), 'rb', closefd=False); sys.path[:] = marshal.load(source); "
    "from ctxmgr.store.worker_process import serve; serve(source)"
)


class ProcessLost(Exception):  # noqa: N818  # named after what happened, as the other errors are
    """There is no second process, or it ended before its work did: whoever asked does the rest himself."""


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
        function: its name, as ``package.module:function``.
        arguments: of it; they and what it yields are None, truth values, numbers, text, bytes, and lists, tuples, dicts
            and sets of them.
    """
    return SecondProcess(function, arguments)


class SecondProcess:
    """What a generator in a second process yields; the process ends with the last item, with `close`, or with this one.

    Whatever goes wrong there is raised here as `ProcessLost`, behind the items that came whole.
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

        # An empty entry stands for the current folder, which the isolated interpreter would not look into.
        given = marshal.dumps([os.path.abspath(entry) for entry in sys.path]), _encode_frame(_ITEM, (function, arguments))
        self._socket, there = socket.socketpair()
        # The terminal sends an interrupt to both, and it is this process's to tell the other: that one never hears of it.
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
            # No signal, where the program has one that ends it.
            self._socket.sendall(part, getattr(socket, "MSG_NOSIGNAL", 0))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        """Return the next item.

        Raises:
            ProcessLost: there will be no more, though there should be.
        """
        if self._lost:
            raise ProcessLost(self._lost)
        if self._reader is None:
            raise StopIteration
        try:
            kind, value = _frame(self._reader)
        except (OSError, EOFError, ValueError, TypeError) as error:
            self._lost = f"it ended before its work did: {error}"
        except BaseException:  # what comes next would begin in the middle
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
        """End the process, wherever it is."""
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
        # Where the interpreter ends its modules may be gone; the other process then sees that this one is.
        if getattr(self, "_child", None) is not None and not ending():
            self.close()


def _interpreter() -> list[str]:
    """Return how this interpreter is started again: isolated, and else as it runs."""
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
    """Return the kind of the next frame, and what it holds.

    Raises:
        EOFError: it is not whole.
        ValueError, TypeError: it is no frame.
    """
    kind, size = source.read(len(_ITEM)), source.read(_SIZE)
    if kind not in (_ITEM, _END, _FAILED) or len(size) < _SIZE:
        raise ValueError("what came is no frame") if size else EOFError("the process is gone")
    wanted = int.from_bytes(size, "little")
    body = source.read(wanted)
    if len(body) < wanted:
        raise EOFError("the process is gone")
    # From our own child alone: what marshal reads must not come from strangers.
    return kind, marshal.loads(body)


def serve(source: BufferedReader) -> None:
    """Be the second process: do what is asked for, tell what comes of it, and end."""
    import _thread
    from queue import Queue
    from threading import Thread

    try:
        _, (function, arguments) = _frame(source)
        # Before any work: this process must not go on for hours for one that is gone.
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
    """Send what is ready while more is being made: the other process takes it when it has time."""
    try:
        with open(descriptor, "wb", buffering=0, closefd=False) as stream:
            while frame := next_frame():
                _write(stream.write, frame)
    except BaseException:  # nobody is there any more
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
    """End this process when the other one is gone, or wants no more: nothing else ever comes from there."""
    try:
        os.read(descriptor, 1)
    finally:
        os._exit(0)


_LINES = "(SELECT seq, session, kind, id, log_body(offset, length) AS body FROM main.line)"


class Place(NamedTuple):
    """Where another process finds the records of a store, as plain data.

    Attributes:
        database: path of the database.
        log: path of the log whose index that is; "" for none.
        born: tells this building of an index from the next, whose places are others.
    """

    database: str
    log: str
    born: str


def find_place(engine: Engine, location: str) -> Place | None:
    """Return where another process finds a store's records, None where it can't; ``location`` is the store's."""
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
    """Open the records in another process; return the engine, and what statements call them there.

    Raises:
        CtxmgrError: they can't be read, or the log is not the one that was indexed.
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
    """Yield the stored records of a session behind a place, some at a time with the place of the last of them."""
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
    """Yield the same in another process than that which has the store open; nothing is written.

    Raises:
        CtxmgrError: it can't be read, or the log is not the one that was indexed.
    """
    engine, records = open_records(place)
    yield from stored_bodies(engine, key, kinds, records=records)
