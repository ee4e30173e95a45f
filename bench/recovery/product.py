"""The product as an adviser: a fresh store that holds the case, asked through the public interface only."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from bench.recovery.case import Ask, Case
from bench.recovery.world import Adviser, Answer, own_words
from ctxmgr.errors import CtxmgrError
from ctxmgr.log.codec import Record
from ctxmgr.types.operations import AgentRequest, RecoverRequest
from ctxmgr.types.route import Continuation
from ctxmgr.workspace import Workspace


@contextmanager
def product(case: Case, window: int) -> Generator[Adviser]:
    """Open a store in a temporary folder; each question first brings it what has happened since the last one."""
    del window
    with tempfile.TemporaryDirectory(prefix="ctxmgr-bench-") as folder:
        place = Path(folder)
        with Workspace.open(str(place / "history.db"), create=True, folder=place, environment={}) as workspace:
            written = 0

            def advise(history: Sequence[Record], attempt: int) -> Answer:
                del attempt
                nonlocal written
                workspace.store.append(history[written:])
                written = len(history)
                return _asked(workspace, case.session, case.ask, history)

            yield advise


def _asked(workspace: Workspace, session: str, ask: Ask, history: Sequence[Record]) -> Answer:
    try:
        if ask.type is None:
            now = ask.now or str(history[-1]["ts"])
            found = workspace.recover(RecoverRequest(session=session, to=ask.to, now=max(now, str(history[-1]["ts"]))))
        else:
            found = workspace.request(_request(session, ask))
    except CtxmgrError as error:
        return Answer(failure=error.kind)
    except Exception as error:  # a crash is a result of the measurement, and must not end it
        return Answer(failure=f"crash: {type(error).__name__}: {error}")
    return read_off(found.continuation)


def _request(session: str, ask: Ask) -> AgentRequest:
    return AgentRequest.model_validate(
        {
            "session": session, "type": ask.type, "requester": ask.requester, "to": ask.to, "return_to": list(ask.return_to),
            "reason": ask.reason, "goal": ask.goal, "additional_context": ask.context, "review": ask.review,
        }
    )  # fmt: skip


def read_off(continuation: Continuation) -> Answer:
    """Return what the one branch of a continuation gives its agent."""
    wire = continuation.to_json()
    branches = {agent: branch for agent, branch in cast("dict[str, Any]", wire["returnTo"]).items() if branch is not None}
    if len(branches) != 1:
        return Answer(failure="branches", branches=len(branches))
    ((target, branch),) = branches.items()
    asked = json.dumps(branch["request"], ensure_ascii=False)
    context = str(branch["context"])
    return Answer(
        target=target, text=f"{asked}\n{context}", said=own_words(context), branches=1, cited=_cited(continuation),
        unanswered=bool(continuation.context.unanswered),
    )  # fmt: skip


def _cited(continuation: Continuation) -> frozenset[str]:
    """Return every record that the continuation references: by facts, what not to repeat, alternatives, the pattern."""
    parts = [*continuation.context.facts, *continuation.do_not_repeat, *continuation.alternatives]
    found = {name for part in parts for name in part.entries}
    for pattern in (continuation.loop, continuation.stall):
        if pattern is not None:
            found |= {*pattern.members, pattern.start or "", pattern.last_progress or ""}
    return frozenset(found - {""})
