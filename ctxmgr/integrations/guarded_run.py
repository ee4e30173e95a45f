"""Guard a run of an agent in any framework: record its calls, and answer a loop with a continuation.

The modules beside this one adapt it to frameworks: `langgraph`, `openai_agents`, `pydantic_ai`, `claude_agent_sdk`. They import
their framework only when its objects are requested.
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
"""Prefix of every text for an agent. It distinguishes our texts from those of tools."""


class GuardedRun:
    """The history of one run, which also answers loops in the run.

    Use it in a ``with`` block, or call `end`. A tool of the framework may fail, be retried or run concurrently. Each call is
    one action with its own result.

    Args:
        target: path of a ``.jsonl`` log or of a database for the history.
        session: name of the session; a new one by default.
        agent: name of the agent if the framework names none.
        attempts: number of continuations for the same loop before a person is needed.
        settings: thresholds of the detectors, as an object or a table.

    Attributes:
        board: the history that records the run.
        told: the continuations that the agent got, in order.

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
        """Record a message of a person, as text or content blocks. The detectors then ignore earlier calls."""
        self.board.event("user_message", {"text": plain_text(text)})

    def hear(self, messages: Sequence[object]) -> None:
        """Record the new user messages of a conversation; ``messages`` are the texts of all of them, in order."""
        # Frameworks pass the whole conversation each time, so the number of recorded messages tells which are new.
        for text in messages[self._recorded_messages :]:
            self.user(text)
        self._recorded_messages = len(messages)

    def begin(self, action: str, given: object = None, *, agent: str | None = None) -> str:
        """Record the beginning of a call, and return the id of its entry."""
        return self.board.entry(agent or self.agent, action, given)

    def finish(self, entry: str, output: object = None, *, error: BaseException | str | None = None) -> str | None:
        """Record the result of a call. If it closes a loop, return the text for the agent, else None.

        Raises:
            AttemptsUsedUp: this loop has used up its attempts; a person is needed.
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
        # Prompts by the rules already begin with the mark.
        text = MARK + continuation.prompt.removeprefix(MARK)
        self.told.append(text)
        return text

    def end(self) -> None:
        """Record the end of the run and close the history. A second call does nothing."""
        self.board.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # Not `end`, because a block that an exception leaves is recorded as a failed run.
        self.board.__exit__(kind, error, trace)


def plain_text(content: object) -> str:
    """Return the text of a message's content; the text blocks of a list, one per line."""
    return content_words(cast("object", content)) if isinstance(content, list | str) else str(content)


def with_text(content: Any, text: str) -> Any:
    """Return a tool message's content with a text added: appended to a string, or as a new block of a list."""
    if isinstance(content, list):
        return [*cast("list[Any]", content), {"type": "text", "text": text}]
    return f"{content}\n\n{text}"
