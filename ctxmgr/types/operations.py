"""Requests and responses of sessions, detection, its explanation, and recovery."""

from __future__ import annotations

from typing import Any

from ctxmgr.types.base import Json, Shape, Text
from ctxmgr.types.finding import Finding, FindingKind, SessionVerdict
from ctxmgr.types.goal import GoalSource
from ctxmgr.types.query import DEFAULT_LIMIT, Limit, Offset, Page, Status
from ctxmgr.types.route import Continuation, Mode, RequestType, Role, Routing
from ctxmgr.types.view import EntryView, SessionView


class SessionsRequest(Shape):
    """The sessions of the store, latest activity first; ``judge`` replays each shown one through the detectors.

    ``project`` keeps those that worked in this folder, or in one of this name; ``since`` those with a record from then on
    (RFC 3339); ``stuck`` those in a loop or hung.
    """

    agent: Text | None = None
    project: Text | None = None
    since: str | None = None
    stuck: bool = False
    offset: Offset = 0
    limit: Limit = DEFAULT_LIMIT
    judge: bool = True


class SessionsResponse(Shape):
    """One page of sessions."""

    status: Status
    sessions: list[SessionView]
    page: Page


class PromptRequest(Shape):
    """The text for an agent that may ask the context manager; ``routes`` is the path of a routing table."""

    agent: Text | None = None
    routes: Text | None = None


class AgentPrompt(Shape):
    """What to put into an agent's own prompt, so that it knows when and how to ask the context manager.

    ``routing`` says whether a routing table named the agents, or the history did; ``next`` are those that may follow.
    """

    agent: Text | None
    role: Role
    routing: Routing
    agents: list[Text]
    next: list[Text]
    prompt: Text


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


class ModelRequest(Shape):
    """Which model may be asked, and how far; what is null is taken from the environment and the configuration.

    ``off`` asks none whatever they say. ``seconds`` is wall clock for the whole recovery. ``transcript`` is the path of a
    file that keeps what was said.
    """

    name: Text | None = None
    base_url: Text | None = None
    mode: Mode | None = None
    seconds: float | None = None
    max_tokens: int | None = None
    max_tool_calls: int | None = None
    # Settings can name a model for all runs, so a single one needs a word that asks none.
    off: bool = False
    transcript: Text | None = None


class RecoverRequest(Shape):
    """The stuck handler's way in: one continuation for what is wrong with a session.

    The same history gives the same answer, which is recorded once and told again (ruling 24); ``last`` reads the session's
    last one again, whatever it was about. ``finding`` chooses one finding by id; ``force`` asks for a continuation though
    nothing is wrong; ``plan`` shows it without recording anything or asking a model. ``diff`` leaves out what the target
    was given before (null: as configured). ``routes`` is the path of a routing table. ``goal`` says where the goal stands
    that is worked on; it is told beside what the history says. ``only_session`` keeps related sessions and memory out.
    """

    session: Text | None = None
    to: Text | None = None
    finding: Text | None = None
    force: bool = False
    plan: bool = False
    now: str | None = None
    diff: bool | None = None
    routes: Text | None = None
    goal: GoalSource | None = None
    last: bool = False
    # A recovery reads related sessions and memory too, which a session that has to stand by itself must not (ruling 25).
    only_session: bool = False
    model: ModelRequest = ModelRequest()


class AgentRequest(Shape):
    """An agent's own way in (user stories 9 and 10).

    ``review`` says that the requester is a review or merge agent, as a routing table may do too; such a one never gets its
    PROCEED sent straight back. ``drafts`` holds, for agents it may be answered to, the request they shall get. The rest is
    as in a `RecoverRequest`.
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
    drafts: dict[Text, Json] = {}
    diff: bool | None = None
    routes: Text | None = None
    only_session: bool = False
    model: ModelRequest = ModelRequest()


class PlanView(Shape):
    """What a recovery would do: for ``--plan``.

    ``model`` and ``sends`` say which model would be asked and what it would be sent where; both null when none would be.
    ``prompt_tokens`` is the estimated size of the first prompt; ``candidates`` are the agents it could choose among.
    """

    candidates: list[Text]
    fixed: bool
    prompt_tokens: int
    prompt: Text | None
    model: Text | None
    sends: Text | None


class RecoverResponse(Shape):
    """Exactly one continuation; ``plan`` only where it was asked for.

    On the wire ``toldAgain`` says whether it was recorded by an earlier call and is told again. ``stored`` is there where it
    is false: the store could not be written.
    """

    continuation: Continuation
    plan: PlanView | None = None
    told_again: bool = False
    stored: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the wire form: ``data.continuation``."""
        fields: dict[str, Any] = {"continuation": self.continuation.to_json(), "toldAgain": self.continuation.told_again}
        fields |= {} if self.stored else {"stored": False}
        return fields if self.plan is None else {**fields, "plan": self.plan.to_json()}


class ExplainRequest(Shape):
    """Name an entry as `ShowRequest` does: by index (negative: from the end) or by id."""

    session: Text | None = None
    index: int | None = None
    entry_id: Text | None = None


class DetectorCheck(Shape):
    """What one detector thought of the entry.

    Attributes:
        detector: the kind of finding that it looks for.
        compared: excerpt of what it compared.
        count: how often it had seen its pattern by then, the entry included; 0 when the entry is no part of one.
        threshold: how often makes a finding.
        why: why it raised nothing, or that it saw its pattern.
        rule: what it goes by, where several detectors look for one kind of finding.
    """

    detector: FindingKind
    compared: Text
    count: int
    threshold: int
    why: Text
    rule: Text | None = None


class Explanation(Shape):
    """One entry with the thoughts of the detectors and the findings that it is a member of.

    ``thoughts`` is empty, and ``note`` says so, when the detectors were not shown the entry: it has no result, or its
    action is exempt.
    """

    entry: EntryView
    thoughts: list[DetectorCheck]
    findings: list[Finding]
    note: Text | None = None
