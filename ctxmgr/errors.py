"""Every error that ctxmgr raises on purpose: what happened, to what, and what to do next.

``kind`` is the contract that programs read (design section 5); the message is for people. How a kind becomes an exit
code is the command line's business, not the library's.
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
    """A record with a known id and other content; nothing was written."""

    kind = "conflict"


class NotFound(CtxmgrError):
    """A named thing does not exist (or may not be seen)."""

    kind = "notFound"


class NoSession(NotFound):
    """No session has this name; a front end that knows files may say more about it."""

    def __init__(self, named: str) -> None:
        super().__init__(f"no session {named!r}", "'ctxmgr sessions' lists them")
        self.named = named


class Denied(CtxmgrError):
    """A write that the access rules don't grant to the agent that asks; nothing was written (a denied read is `NotFound`)."""

    kind = "denied"


class OutOfBounds(CtxmgrError):
    """An index that the session's history does not reach."""

    kind = "outOfBounds"

    def __init__(self, hint: str | None = None) -> None:
        super().__init__("Index out of bounds", hint)


class NoHistory(CtxmgrError):
    """An operation that needs at least one entry met an empty history."""

    kind = "noHistory"

    def __init__(self, hint: str | None = None) -> None:
        super().__init__("No history available", hint)


class Damaged(CtxmgrError):
    """A store or log that can't be read or written safely."""

    kind = "damaged"


class StorageFailed(CtxmgrError):
    """The operating system refused a read or write: no space, no permission, input/output error."""

    kind = "storage"
    retryable = True


class Busy(CtxmgrError):
    """Another live process holds what is needed."""

    kind = "busy"
    retryable = True


class Superseded(CtxmgrError):
    """Another owner has taken over what this one was working on; nothing was written."""

    kind = "superseded"


class BudgetExceeded(CtxmgrError):
    """A token budget that can't hold what is required; nothing was assembled."""

    kind = "budget"


class RecoveryRefused(CtxmgrError):
    """A recovery is already running, or the request would make the context manager recover itself (FR-019)."""

    kind = "refused"


class AttemptsUsedUp(CtxmgrError):
    """The same loop has been recovered as often as allowed; a person is needed."""

    kind = "needsHuman"


class NotStuck(CtxmgrError):
    """Recovery was asked for a session in which nothing is wrong."""

    kind = "healthy"


class DegenerateLoopError(CtxmgrError):
    """A workflow repeats itself without progress (FR-002); ``finding`` holds the pattern."""

    kind = "degenerateLoop"

    def __init__(self, message: str, finding: object = None) -> None:
        super().__init__(message, "run 'ctxmgr recover' for one continuation request")
        self.finding = finding


class HungError(CtxmgrError):
    """A workflow stopped making progress (FR-003); ``finding`` holds the last action and the silence."""

    kind = "hung"

    def __init__(self, message: str, finding: object = None) -> None:
        super().__init__(message, "run 'ctxmgr recover' for one continuation request")
        self.finding = finding


_NAMED = 5


def candidates(names: Iterable[str]) -> str:
    """Return the hint of an error about an id that fits several: those it fits, of many the first ones."""
    shown = list(dict.fromkeys(names))
    return f"one of: {', '.join(shown[:_NAMED])}" + (", and more" if len(shown) > _NAMED else "")
