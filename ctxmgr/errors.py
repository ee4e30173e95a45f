"""Every error that ctxmgr raises on purpose. Its message says what happened to what, its hint what to do next.

Programs read ``kind``, which is part of the contract (design section 5); the message is for people. The command line maps kinds
to exit codes; the library has none.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class CtxmgrError(Exception):
    """Base of all deliberate errors.

    Attributes:
        kind: stable machine-readable name.
        message: one sentence that says what happened and to what.
        hint: what to do next, or None.
        retryable: whether the same call may succeed later without any change.
    """

    kind = "internal"
    retryable = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidInput(CtxmgrError):
    """A request, flag or record that can't be used as given."""

    kind = "invalid"


class Conflict(CtxmgrError):
    """A record has a known id but other content; nothing was written."""

    kind = "conflict"


class NotFound(CtxmgrError):
    """A named thing does not exist, or the agent may not see it."""

    kind = "notFound"


class NoSession(NotFound):
    """No session has this name. Front ends that know files may add to the hint."""

    def __init__(self, named: str) -> None:
        super().__init__(f"no session {named!r}", "'ctxmgr sessions' lists them")
        self.named = named


class Denied(CtxmgrError):
    """The access rules do not grant the agent this write; nothing was written. A denied read is `NotFound`."""

    kind = "denied"


class OutOfBounds(CtxmgrError):
    """An index lies outside of the session's history."""

    kind = "outOfBounds"

    def __init__(self, *, hint: str | None = None) -> None:
        super().__init__("Index out of bounds", hint)


class NoHistory(CtxmgrError):
    """An operation needs at least one entry, but the history is empty."""

    kind = "noHistory"

    def __init__(self, *, hint: str | None = None) -> None:
        super().__init__("No history available", hint)


class Damaged(CtxmgrError):
    """A store or log can't be read or written safely."""

    kind = "damaged"


class StorageFailed(CtxmgrError):
    """The operating system refused to read or write: no space, no permission, input/output error."""

    kind = "storage"
    retryable = True


class Busy(CtxmgrError):
    """Another live process holds a required resource."""

    kind = "busy"
    retryable = True


class Superseded(CtxmgrError):
    """Another owner has taken over the work; nothing was written."""

    kind = "superseded"


class BudgetExceeded(CtxmgrError):
    """The token budget is too small for the required content; nothing was assembled."""

    kind = "budget"


class RecoveryRefused(CtxmgrError):
    """A recovery is already running, or the request would make the context manager recover itself (FR-019)."""

    kind = "refused"


class AttemptsUsedUp(CtxmgrError):
    """The same loop has used up its attempts; a person is needed."""

    kind = "needsHuman"


class NotStuck(CtxmgrError):
    """A recovery was requested for a session in which nothing is wrong."""

    kind = "healthy"


class DegenerateLoopError(CtxmgrError):
    """A workflow repeats itself without progress (FR-002). ``finding`` holds the pattern."""

    kind = "degenerateLoop"

    def __init__(self, message: str, finding: object = None) -> None:
        super().__init__(message, "run 'ctxmgr recover' for one continuation request")
        self.finding = finding


class HungError(CtxmgrError):
    """A workflow has stopped making progress (FR-003). ``finding`` holds the last action and the length of the silence."""

    kind = "hung"

    def __init__(self, message: str, finding: object = None) -> None:
        super().__init__(message, "run 'ctxmgr recover' for one continuation request")
        self.finding = finding


_NAMED = 5


def candidates(names: Iterable[str]) -> str:
    """Return the hint of an error about an ambiguous id: the ids that match, or the first ones of many."""
    shown = list(dict.fromkeys(names))
    return f"one of: {', '.join(shown[:_NAMED])}" + (", and more" if len(shown) > _NAMED else "")
