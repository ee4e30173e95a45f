"""The state of one conversation with a model, the reason if it failed, and the thread of its tools."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.recover.evidence.quotes import clip_middle, quote_text
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.recover.model.exchange import Budget, Consultation, LeadAnswer
from ctxmgr.recover.model.tools import Toolkit
from ctxmgr.types.model_proposal import Proposal

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Job = tuple[Future[Any], Callable[[], Any]]


class Worker(Executor):
    """A pool of one daemon thread.

    A store serves one thread at a time, so all tools of a consultation share this thread. A hanging job is abandoned: unlike
    the threads of `concurrent.futures`, a daemon thread is not joined at the end of the program.
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
        """Accept no more jobs. Queued jobs still run unless they are cancelled. Never waits; see `rests`."""
        with self._lock:
            if not self._ended:
                self._ended = True
                self._jobs.put(None)

    def rests(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the jobs to end. Return whether none is running."""
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


_LINE = 300


@dataclass(slots=True)
class Conversation:
    """The state of one conversation with a model.

    Attributes:
        check: returns the gate's objections to a proposal, none if it passes.
        say: called with each line of progress.
        refused: the last objection to an answer.
        refusals: number of refused answers.
        transcript: all messages as JSON; set when the conversation ends by itself.
    """

    question: Consultation
    choice: ModelChoice
    budget: Budget
    kit: Toolkit
    worker: Worker
    check: Callable[[Proposal], list[str]]
    say: Callable[[str], None]
    refused: str = ""
    refusals: int = 0
    transcript: bytes = b"[]"
    proposal: Proposal | None = None
    lead: LeadAnswer | None = None
    failure: str | None = None

    def refuse(self, reason: str) -> None:
        """Note an objection to an answer, and report it."""
        self.refused, self.refusals = one_line(reason), self.refusals + 1
        self.say(f"answer refused: {clip_middle(self.refused, 160)}, asking again")


def one_line(text: str) -> str:
    """Return text of a server or model, which may be anything, as one printable line of at most 300 characters."""
    plain = " ".join(text.split())
    shown = quote_text(plain, _LINE)
    return clip_middle(plain, _LINE) if shown[1:-1] == plain else shown[1:-1].replace('\\"', '"')
