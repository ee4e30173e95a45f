"""One run of an agent in any framework: its calls are recorded, and a loop in them is answered by a continuation.

The modules beside this one tie it to a framework each: `langgraph`, `openai_agents`, `pydantic_ai`, `claude_agent_sdk`. None of
them loads a framework before it is asked for its objects.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from ctxmgr.detect.settings import DetectSettings
from ctxmgr.errors import DegenerateLoopError
from ctxmgr.history.live.blackboard import BlackboardHistory
from ctxmgr.importers.chat import content_words
from ctxmgr.recover.recovery import Limits
from ctxmgr.recover.stuck_handler import RecoveryStuckHandler

MARK = "[ctxmgr] "
"""Prefix of every text for an agent: it tells what is ours from what the tool returned."""


class GuardedRun:
    """The history of one run, and the handler of its loops.

    Use it as a ``with`` block, or call `end`. A framework's tool may fail, be retried or run beside others; each call is one
    action with its own result.

    Args:
        target: path of a ``.jsonl`` log or of a database that keeps the history.
        session: name of the session; a new one by default.
        agent: name of the agent whose calls these are, where the framework names none.
        attempts: continuations for the same loop, before a person is needed.
        settings: thresholds of the detectors, as an object or a table.

    Attributes:
        board: the history that records.
        told: the continuations that were handed to the agent, in order.

    Raises:
        InvalidInput, Busy, StorageFailed: as `BlackboardHistory`.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        session: str | None = None,
        agent: str = "agent",
        attempts: int = 2,
        settings: DetectSettings | Mapping[str, object] | None = None,
    ) -> None:
        self.agent = agent
        self.told: list[str] = []
        self.board = BlackboardHistory(None, target, session=session, agent=agent, settings=settings, workflow="guarded")
        self._recorded_messages = 0
        self._handler = RecoveryStuckHandler(limits=Limits(attempts=attempts))

    @property
    def session(self) -> str:
        """The name of the session."""
        return self.board.session

    def user(self, text: object) -> None:
        """Record what a person said, a text or blocks of content; what came before counts no more."""
        self.board.event("user_message", {"text": plain_text(text)})

    def hear(self, messages: Sequence[object]) -> None:
        """Record the new ones among a conversation's user messages; ``messages`` are the texts of all of them, in order."""
        # Frameworks hand over the whole conversation each time; how many were recorded tells which are new.
        for text in messages[self._recorded_messages :]:
            self.user(text)
        self._recorded_messages = len(messages)

    def begin(self, action: str, given: object = None, *, agent: str | None = None) -> str:
        """Record that a call begins, and return its id."""
        return self.board.entry(agent or self.agent, action, given)

    def finish(self, entry: str, output: object = None, *, error: BaseException | str | None = None) -> str | None:
        """Record the result of a call; return the text for the agent when it closes a loop, else None.

        Raises:
            AttemptsUsedUp: this loop was answered as often as allowed; a person is needed.
        """
        try:
            if error is None:
                self.board.result(entry, "ok", output=output)
            else:
                self.board.result(entry, "error", error=str(error) or type(error).__name__)
        except DegenerateLoopError as stuck:
            return self._recover(stuck)
        return None

    def _recover(self, stuck: DegenerateLoopError) -> str | None:
        continuation = self._handler.handle(stuck, self.board)
        if continuation is None:
            return None
        # A prompt that the rules wrote begins with the mark already.
        text = MARK + continuation.prompt.removeprefix(MARK)
        self.told.append(text)
        return text

    def end(self) -> None:
        """Record that the run is over, and close the history; again does nothing."""
        self.board.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Not `end`: a block that was left by an exception is recorded as a run that failed.
        self.board.__exit__(kind, error, trace)


def plain_text(content: object) -> str:
    """Return the words of a message's content: of blocks those that are texts, one a line."""
    return content_words(cast("object", content)) if isinstance(content, list | str) else str(content)


def with_text(content: Any, text: str) -> Any:
    """Return a tool message's content followed by a text: a string is extended, a list of blocks gets one more block."""
    if isinstance(content, list):
        return [*cast("list[Any]", content), {"type": "text", "text": text}]
    return f"{content}\n\n{text}"
