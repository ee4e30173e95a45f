"""Count what a consultation may still use: time, calls, tokens, characters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ctxmgr.recover.model.config import ModelChoice

_WIND_UP_SECONDS, _WIND_UP_SHARE = 6.0, 0.25
_WIND_UP_CHARACTERS = 600
_WIND_UP_TOKENS = 0.75


class BudgetError(Exception):
    """The consultation ends here; the message names the limit."""


class Budget:
    """Counts what was used of a choice's limits.

    Attributes:
        requests: sent to the model.
        tool_calls: that the model made, refused ones included.
        tokens: used so far, estimated where the server does not say.
        began: whether the first request was sent: from then on the time counts. Loading the model's library is no part of it.
        closed: the consultation is over; a tool that is still at work must not touch anything any more.
    """

    def __init__(self, choice: ModelChoice, clock: Callable[[], float] = time.monotonic) -> None:
        self._choice = choice
        self._clock = clock
        self._lock = threading.Lock()
        self._characters = choice.max_characters
        self._started: float | None = None
        self.requests = 0
        self.tool_calls = 0
        self.tokens = 0
        self.closed = False

    @property
    def began(self) -> bool:
        """Whether a request was sent."""
        return self._started is not None

    @property
    def spent(self) -> float:
        """Seconds since the first request."""
        return 0.0 if self._started is None else self._clock() - self._started

    @property
    def left(self) -> float:
        """Seconds until the end, never negative."""
        return max(0.0, self._choice.seconds - self.spent)

    @property
    def characters(self) -> int:
        """Characters that the tools may still tell."""
        return self._characters

    def request(self) -> None:
        """Count a request to the model that is about to be sent.

        Raises:
            BudgetError: it would be one too many, or the tokens are used up.
        """
        if self.requests >= self._choice.max_requests:
            raise BudgetError(f"the limit of {self._choice.max_requests} requests was reached without an answer")
        self.require_tokens()
        self.requests += 1
        if self._started is None:
            self._started = self._clock()

    def require_tokens(self) -> None:
        """Return while tokens are left.

        Raises:
            BudgetError: they are used up.
        """
        if self.tokens > self._choice.max_tokens:
            raise BudgetError(f"the limit of {self._choice.max_tokens:,} tokens was reached without an answer")

    def call(self) -> bool:
        """Count a tool call; False when it is beyond the limit."""
        with self._lock:
            self.tool_calls += 1
            return self.tool_calls <= self._choice.max_tool_calls

    def tell(self, characters: int) -> None:
        """Count what a tool told."""
        with self._lock:
            self._characters = max(0, self._characters - characters)

    @property
    def is_low(self) -> bool:
        """Whether it is time to answer instead of reading on."""
        choice = self._choice
        return (
            self.requests >= choice.max_requests - 2
            or self.tool_calls >= choice.max_tool_calls
            or self.characters < _WIND_UP_CHARACTERS
            or self.tokens > choice.max_tokens * _WIND_UP_TOKENS
            or self.left < min(_WIND_UP_SECONDS, choice.seconds * _WIND_UP_SHARE)
        )
