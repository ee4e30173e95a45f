"""One daemon thread for blocking calls."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Job = tuple[Future[Any], Callable[[], Any]]


class Worker(Executor):
    """A pool of one daemon thread.

    A store answers one thread at a time, so the tools of a consultation share one. A job that hangs is left behind: unlike
    the threads of a usual pool, this one is not waited for when the program ends.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._lock = threading.Lock()
        self._waiting = 0
        self._ended = False
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Queue a job."""
        future: Future[_T] = Future()
        with self._lock:
            if self._ended:
                raise RuntimeError("the worker has ended")
            self._waiting += 1
            self._idle.clear()
            self._jobs.put((future, lambda: fn(*args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more jobs; those that wait are done unless they were cancelled. Never waits: see `rests`."""
        with self._lock:
            if not self._ended:
                self._ended = True
                self._jobs.put(None)

    def rests(self, seconds: float) -> bool:
        """Wait up to some seconds; return whether no job is at work."""
        return self._idle.wait(seconds)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            with self._lock:
                self._waiting -= 1
                if self._waiting == 0:
                    self._idle.set()
