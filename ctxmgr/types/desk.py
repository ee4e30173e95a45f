"""Requests and responses of what lies around the seven tools: sessions, detection, recovery."""

from __future__ import annotations

from typing import Any

from ctxmgr.types.base import Shape, Text
from ctxmgr.types.finding import SessionVerdict
from ctxmgr.types.query import DEFAULT_LIMIT, Limit, Offset, Page, Status
from ctxmgr.types.route import Continuation, RequestType
from ctxmgr.types.view import EntryView, SessionView


class SessionsRequest(Shape):
    """The sessions of the store, latest activity first; ``judge`` replays each shown one through the detectors."""

    agent: Text | None = None
    offset: Offset = 0
    limit: Limit = DEFAULT_LIMIT
    judge: bool = True


class SessionsResponse(Shape):
    """One page of sessions."""

    status: Status
    sessions: list[SessionView]
    page: Page


class DetectRequest(Shape):
    """Replay history through the detectors.

    ``now`` (RFC 3339) is what stalls are judged against; by default the clock for a live session and the end of the log
    for one whose process is gone.
    """

    session: Text | None = None
    all_sessions: bool = False
    now: str | None = None


class DetectResponse(Shape):
    """A verdict for each session; ``entries`` holds the entries that the findings name, for showing them."""

    status: Status
    verdicts: list[SessionVerdict]
    entries: dict[str, EntryView]
    notes: list[Text]


class RecoverRequest(Shape):
    """The stuck handler's way in: one continuation for what is wrong with a session.

    ``finding`` chooses one finding by id; ``force`` asks for a continuation though nothing is wrong; ``plan`` shows it
    without recording anything.
    """

    session: Text | None = None
    to: Text | None = None
    finding: Text | None = None
    force: bool = False
    plan: bool = False
    now: str | None = None


class AgentRequest(Shape):
    """An agent's own way in (user stories 9 and 10).

    ``review`` says that the requester is a review or merge agent; such a one never gets its PROCEED sent straight back.
    """

    session: Text | None = None
    type: RequestType
    requester: Text
    to: Text | None = None
    return_to: list[Text] = []
    reason: Text
    goal: Text
    additional_context: Text | None = None
    review: bool = False
    plan: bool = False


class RecoverResponse(Shape):
    """Exactly one continuation."""

    continuation: Continuation

    def to_json(self) -> dict[str, Any]:
        """Return the wire form: ``data.continuation``."""
        return {"continuation": self.continuation.to_json()}
