"""Ask a model within its limits: a consultation, or one question without tools. Returns an answer in time, or says why not.

The conversation, whose state is in `Conversation`, runs in its own thread with its own event loop. So it also works inside a
program with an event loop, and a model client that blocks its thread can't delay the caller. All its tools run in one more
thread. Only `dialogue` loads the model's library; a missing one is reported as a failure.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.errors import CtxmgrError
from ctxmgr.recover.evidence.quotes import clip_middle, one_line
from ctxmgr.recover.model.config import ModelChoice, missing_extra
from ctxmgr.recover.model.exchange import Budget, Consultation, LeadAnswer, ModelAnswer
from ctxmgr.recover.model.tools import Toolkit
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.route import ModelUse

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


Check = Callable[[Proposal], list[str]]
Progress = Callable[[str], None]

GRACE = 0.25
"""Seconds after the deadline in which a conversation may still end by itself, or a tool finish."""


def load_library(choice: ModelChoice, model: Any = None) -> tuple[Any, Any, Any]:
    """Return the module `dialogue`, the model to ask and the connection to close after it. Nothing is contacted.

    Only this function loads the model's library, so nothing else pays for it. ``model`` is a model to ask instead.

    Raises:
        MissingExtra: a package is not installed; the hint names the command.
        InvalidInput: the provider is unknown, or its key is missing.
    """
    try:
        from ctxmgr.recover.model import dialogue

        return (dialogue, model, None) if model is not None else (dialogue, *dialogue.build(choice))
    except ImportError as error:
        raise missing_extra(choice, error) from None


def consult(
    question: Consultation, choice: ModelChoice, *, check: Check, progress: Progress | None = None, model: Any = None
) -> ModelAnswer:
    """Ask a model, and return the result within ``choice.seconds``.

    Args:
        question: the material for the model, and what it may do.
        choice: the model and its limits.
        check: returns the gate's objections to a proposal in the session's own names, none if it passes. Unknown agents, and
            entries that the model did not see, are refused before. Called in the thread of the tools.
        progress: called in the calling thread with each line of progress, first before anything is sent.
        model: a pydantic-ai model to ask instead of the configured one.

    Raises:
        MissingExtra, InvalidInput: as `load_library`; any other failure is reported in ``use.failure``.
    """
    call = _Call(question, choice, check, progress, model)
    heard: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    try:
        call.start(heard.put)
        # Only this thread prints. It waits for lines no longer than the call has time left, so nothing can hold it up.
        with suppress(queue.Empty):
            while (line := heard.get(timeout=max(0.001, call.patience))) is not None:
                call.tell(line)
    finally:
        call.end()
    return call.outcome()


_LOADING = 60.0
"""Seconds after which a library that is still loading counts as broken."""


class Preparation:
    """Imports the model's library and checks the model in a thread while the rules work.

    Args:
        choice: which model.
    """

    def __init__(self, choice: ModelChoice) -> None:
        self._error: CtxmgrError | None = None
        self._thread = threading.Thread(target=self._prepare, args=(choice,), name="ctxmgr-load", daemon=True)
        self._thread.start()

    def _prepare(self, choice: ModelChoice) -> None:
        try:
            load_library(choice)
        except CtxmgrError as error:
            self._error = error
        except Exception:
            return  # reported when the model is asked

    def wait(self) -> None:
        """Wait until the model can be asked.

        Raises:
            MissingExtra, InvalidInput: as `load_library`.
        """
        self._thread.join(_LOADING)
        if self._error is not None:
            raise self._error


class _Call:
    """One consultation and its thread."""

    def __init__(
        self, question: Consultation, choice: ModelChoice, check: Check, progress: Progress | None, model: Any
    ) -> None:
        self._progress = progress
        self._model = model
        self._finished = self._in_time = False
        self._unusable: CtxmgrError | None = None
        self._hear: Callable[[str | None], None] = lambda _line: None
        budget = Budget(choice)
        worker = Worker("ctxmgr-tools")
        self._talk = Conversation(
            question=question, choice=choice, budget=budget, kit=Toolkit(question, budget, self._say), worker=worker,
            check=check, say=self._say,
        )  # fmt: skip
        self._stop: Callable[[], None] = lambda: None
        self._kept: Any = ((), (), ())
        self._seconds = 0.0

    @property
    def patience(self) -> float:
        """Seconds to wait for the next line. Before the first request the library may still load, which does not count."""
        budget = self._talk.budget
        return (budget.left if budget.began else max(budget.left, _LOADING)) + GRACE

    def start(self, hear: Callable[[str | None], None]) -> None:
        """Start the conversation; ``hear`` gets each line, and None at the end."""
        choice = self._talk.choice
        self.tell(f"consulting {one_line(choice.name)} ({choice.mode} mode, at most {choice.seconds:g} s)")
        self._hear = hear
        threading.Thread(target=self._run, name="ctxmgr-model", daemon=True).start()

    def _run(self) -> None:
        try:
            # Load in this thread, not in the caller's: the import takes seconds on a busy machine.
            dialogue, model, client = load_library(self._talk.choice, self._model)
        except CtxmgrError as error:
            self._unusable = error
            return self._finish()
        except Exception as error:  # a library may break in any way; the rules' answer remains
            self._talk.failure = f"the model's library broke off: {type(error).__name__}"
            return self._finish()

        async def conversation() -> None:
            loop, task = asyncio.get_running_loop(), asyncio.current_task()
            assert task is not None, "a coroutine runs in a task"

            def stop() -> None:
                with suppress(RuntimeError):  # the event loop has just ended
                    loop.call_soon_threadsafe(task.cancel)

            self._stop = stop
            try:
                await dialogue.converse(self._talk, model, client)
            finally:  # in any case, the caller must not wait for the time limit
                self._finish()

        # Cancelled, or failed after the caller has its answer: nobody is left to report to.
        with suppress(Exception, asyncio.CancelledError):
            asyncio.run(conversation())

    def _finish(self) -> None:
        self._finished = True
        self._hear(None)

    def _say(self, line: str) -> None:
        self._hear(line)

    def tell(self, line: str) -> None:
        """Pass a line on. An error in the progress callback does not end the consultation."""
        if self._progress is not None:
            with suppress(Exception):
                self._progress(line)

    def end(self) -> None:
        """Close the tools in any case, and give a running tool a moment to finish."""
        talk = self._talk
        # Close first: then a late tool call can't write a note any more, and the collected ones are final.
        self._kept = talk.kit.close()
        self._in_time = self._finished
        self._seconds = talk.budget.spent
        self._stop()
        talk.worker.shutdown()
        talk.worker.rests(GRACE)

    def outcome(self) -> ModelAnswer:
        """Return the answer, or raise the error that prevented the consultation."""
        if self._unusable is not None:
            raise self._unusable
        talk, choice, budget = self._talk, self._talk.choice, self._talk.budget
        failure = talk.failure if self._in_time else f"no answer within {choice.seconds:g} s"
        if failure is None and talk.proposal is None and talk.lead is None:
            failure = "no answer was given"
        use = ModelUse(
            name=choice.name, mode=choice.mode, requests=budget.requests, tool_calls=budget.tool_calls, failure=failure,
            input_tokens=budget.input_tokens, output_tokens=budget.output_tokens, seconds=round(self._seconds, 3),
        )  # fmt: skip
        notes, snapshots, memories = self._kept
        answered = failure is None
        return ModelAnswer(
            use=use, proposal=talk.proposal if answered else None, lead=talk.lead if answered else None, notes=notes,
            snapshots=snapshots, memories=memories, seen=frozenset(talk.kit.seen.shown), transcript=talk.transcript,
        )  # fmt: skip


_QUESTION_GRACE = 0.5
_Answer = TypeVar("_Answer", bound=BaseModel)


def ask(
    choice: ModelChoice, instructions: str, prompt: str, shape: type[_Answer], model: Any = None
) -> tuple[_Answer | None, str | None]:
    """Return a model's answer, or None and why there is none within the seconds of the choice.

    Args:
        choice: the model and its limits.
        instructions: what the model has to do.
        prompt: the material for it; recorded text in it must be fenced.
        shape: the shape of the answer.
        model: a pydantic-ai model to ask instead of the named one.

    Raises:
        InvalidInput: the model can't be asked: a setting is wrong, a package or a key is missing.
    """
    heard: queue.SimpleQueue[tuple[_Answer | None, str | None] | CtxmgrError] = queue.SimpleQueue()

    def work() -> None:
        try:
            dialogue, built, client = load_library(choice, model)
            heard.put(asyncio.run(dialogue.put(choice, built, client, instructions, prompt, shape)))
        except CtxmgrError as error:
            heard.put(error)
        except Exception as error:  # a model's library may fail in any way; what needs no model remains
            heard.put((None, f"it broke off: {type(error).__name__}"))

    threading.Thread(target=work, name="ctxmgr-model", daemon=True).start()
    answered: tuple[_Answer | None, str | None] | CtxmgrError = (None, f"no answer within {choice.seconds:g} s")
    with suppress(queue.Empty):
        answered = heard.get(timeout=choice.seconds + _QUESTION_GRACE)
    if isinstance(answered, CtxmgrError):
        raise answered
    return answered
