"""One action while it happens: entered, filled, left, whatever way it is left.

Standard library only; a part of the recorder.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ctxmgr.errors import CtxmgrError
from ctxmgr.plain import describe

if TYPE_CHECKING:
    from ctxmgr.recorder import Recorder

Status = Literal["ok", "error", "denied", "interrupted"]

_current: ContextVar[tuple[str, str] | None] = ContextVar("ctxmgr_action", default=None)


def surrounding(session: str) -> str | None:
    """Return the id of the entry whose action of this session is going on in this thread or task."""
    current = _current.get()
    return current[1] if current and current[0] == session else None


class Details(TypedDict, total=False):
    """What `Recorder.entry` takes besides agent and action."""

    input: object
    input_type: str | None
    turn: str | int | None
    step: str | int | None
    parent: str | None
    task: str | None
    timeout_ms: float | None
    meta: dict[str, Any] | None


class Step:
    """One action while it happens.

    Attributes:
        id: of its entry, once entered.
        output: set it to what came out.
        usage: set it to ``{"inputTokens", "outputTokens"}``.
    """

    def __init__(self, recorder: Recorder, agent: str | None, name: str, details: Details) -> None:
        self.id = ""
        self.output: object = None
        self.usage: dict[str, Any] | None = None
        self._recorder = recorder
        self._what = (agent, name, details)
        self._status: Status = "ok"
        self._error: dict[str, Any] | None = None

    def fail(self, message: str, type: str = "Error") -> None:  # noqa: A002
        """Let the action count as failed without raising."""
        self._status, self._error = "error", {"type": type, "message": message}

    def deny(self, message: str = "denied", type: str = "Denied") -> None:  # noqa: A002
        """Let the action count as denied: somebody or some rule did not allow it."""
        self._status, self._error = "denied", {"type": type, "message": message}

    def __enter__(self) -> Step:
        agent, name, details = self._what
        self.id = self._recorder.entry(agent, name, **details)
        self._outside = _current.get()
        _current.set((self._recorder.session, self.id))
        self._began = time.monotonic_ns()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        took = (time.monotonic_ns() - self._began) / 1e6
        _current.set(self._outside)
        status, failure = self._status, self._error
        if error is not None:
            status, failure = "interrupted" if is_interruption(error) else "error", error_body(error)
        with Beside(error):
            self._recorder.result(
                self.id, status, output=self.output, error=failure, duration_ms=round(took, 3), usage=self.usage
            )

    async def __aenter__(self) -> Step:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.__exit__(kind, error, trace)


class Beside:
    """Keeps a failure to record from replacing an exception of the agent that is on its way; it becomes a note."""

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> bool:
        if self._error is None or not isinstance(failure, CtxmgrError):
            return False
        self._error.add_note(f"ctxmgr could not record this: {failure.message}")
        return True


def error_body(error: BaseException | dict[str, Any] | str | None) -> dict[str, Any] | None:
    """Return the ``error`` field for an exception, a message or a finished field."""
    if isinstance(error, BaseException):
        return {"type": type(error).__name__, "message": describe(error)}
    return {"type": "Error", "message": error} if isinstance(error, str) else error


def is_interruption(error: BaseException) -> bool:
    """Return whether the exception comes from outside the action: Ctrl-C, exit, or a cancelled task."""
    # By name: asyncio's, trio's and concurrent.futures' cancellations, without importing any of them.
    names = {kind.__name__ for kind in type(error).__mro__}
    return not isinstance(error, Exception) or bool(names & {"CancelledError", "Cancelled"})
