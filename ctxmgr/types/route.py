"""The routing request and the one continuation (spec 000).

A continuation has exactly one ``target``, so Python code can't build one with no branch or with two. Only on the wire does it
have the form with one branch per agent (ruling 20).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from ctxmgr.log.codec import fingerprint
from ctxmgr.types.base import ComputedField, Field, Json, Shape, Text
from ctxmgr.types.finding import Diagnosis

RequestType = Literal["INTROSPECT_AGENT_CONTEXT", "PROCEED"]
# The entry points are explicit: nothing routes to the context manager that nobody asked (ruling 22, FR-017).
Source = Literal["agentRequest", "stuckHandler", "reviewMerge"]
Label = Literal["verified", "recorded", "reconstructed", "unknown"]
By = Literal["rules", "model"]
Mode = Literal["tools", "lead"]
Routing = Literal["table", "history"]
Role = Literal["ordinary", "review", "merge"]
"""What an agent does in a workflow; review and merge agents never go straight back to who asked them."""

CONTEXT_MANAGER = "context-manager"
"""The context manager agent's own name; never a target (FR-019)."""


# Names are recorded text, which has no limit of its own.
_MAX_NAME = 200


def is_context_manager(agent: str) -> bool:
    """Whether a name is the context manager's own, however it is written."""
    # Capitals, signs and look-alikes of other widths are no way around the guard against recursion (FR-019).
    plain = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", agent[:_MAX_NAME]).casefold()))
    return plain in ("contextmanager", "contextmanageragent")


class ContextRequest(Shape):
    """A request to the context manager.

    Attributes:
        type: ``INTROSPECT_AGENT_CONTEXT`` goes back to the requester, richer; ``PROCEED`` on to a downstream agent.
        source: which of the three entry points it came through (FR-017).
        requester: the agent that asks; null when the stuck handler does.
        return_to: the agents it may be answered to; empty means those of the session.
        drafts: for some of these agents the request they shall get, as far as the requester knows it.
    """

    session: Text
    type: RequestType
    source: Source
    requester: Text | None = None
    reason: Text
    goal: Text
    additional_context: Text | None = None
    return_to: list[Text] = []
    drafts: dict[Text, Json] = {}


class Fact(Shape):
    """One thing the next agent must know.

    ``text`` is what is stated, in words of ours and of people. ``quote`` is what a tool or an agent wrote, to the letter: that
    it was recorded is all that is stated about it, whatever it claims.

    ``recorded``: it is in records that exist, whether or not their words are true; ``verified``: a probe of a goal looked
    at the thing itself; ``reconstructed``: concluded from records; ``unknown``: the record it would rest on is gone (ruling
    12), or its quote claims what records can't show: an approval, a permission, what to run. Answers of earlier versions say
    ``verified`` for ``recorded``. ``hash`` is equal for facts that say the same: by it a later context refers to what is held.
    """

    text: Text
    entries: list[Text]
    label: Label
    quote: Text | None = None

    @property
    def whole(self) -> str:
        """The statement with what it quotes."""
        return self.text if self.quote is None else f"{self.text}: {self.quote}"

    @ComputedField
    def hash(self) -> str:
        """What the fact says, as 12 hexadecimal digits."""
        # Without a quote it is made as it always was, so that stored answers and later ones name the same facts.
        return fingerprint([self.text, self.label] if self.quote is None else [self.text, self.label, self.quote])[:12]


class KnownFact(Shape):
    """A fact that the agent was given before: its hash, the continuation that gave it, the records it rests on."""

    # By the hash and not by the text: a diff leaves the text out, which the agent holds already.
    hash: str
    given: Text
    entries: list[Text]


class Section(Shape):
    """A titled part of the context, ready to be put into a prompt."""

    title: Text
    text: Text

    @ComputedField
    def hash(self) -> str:
        """What the section says, as 12 hexadecimal digits."""
        return fingerprint([self.title, self.text])[:12]


class Context(Shape):
    """The rebuilt context.

    ``facts`` and ``sections`` are its parts, none told twice. ``prompt`` is the text for the agent that continues (ruling
    23): on the wire also the ``context`` of the one branch of ``returnTo``. ``brief`` is all of it with the ids of its
    records, for whoever works on it; it is not stored.
    ``token_count`` is its size, estimated by the named ``counter``. ``unanswered`` are the parts of the question about
    which the history holds nothing: they are said, never invented. In a diff ``diff_of`` names the earlier continuation
    and ``held`` what the agent has of it already.
    """

    summary: Text
    facts: list[Fact]
    sections: list[Section]
    # An estimate, so it names what counted: a package or another model may count otherwise (ruling 17).
    token_count: int
    counter: str
    unanswered: list[Text] = []
    diff_of: Text | None = None
    held: list[KnownFact] = []
    prompt: Text = ""
    brief: Annotated[Text, Field(exclude=True)] = ""


class Pattern(Shape):
    """The loop or stall that is answered; of many ``members`` (entry ids) the first and the last are given."""

    finding: str
    identity: str
    kind: str
    period: int
    count: int
    # A loop may have thousands of members, and a continuation is stored whole and told again.
    members: list[Text]
    start: Text | None
    last_progress: Text | None
    reason: Text


class DoNotRepeat(Shape):
    """An action that was tried and did not help, in the words of the record; long inputs and outcomes are cut."""

    action: Text
    input: Json
    times: int
    outcome: Text
    entries: list[Text]


class Alternative(Shape):
    """Something the history shows was not tried here, or last worked."""

    text: Text
    basis: Text
    entries: list[Text]


class ModelUse(Shape):
    """How a model took part: what it was asked to do, what that took, and why its answer does not count, if so.

    ``seconds`` is wall clock. ``failure`` is null when the model's answer passed the gate.
    """

    name: Text
    mode: Mode
    requests: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    failure: Text | None = None


class Continuation(Shape):
    """Exactly one request for another agent, which resumes the workflow (FR-018).

    Attributes:
        target: the one agent that continues.
        candidates: every agent that was allowed, the target among them; the branches of ``returnTo``.
        loop, stall: what it answers; both null for an explicit request in a healthy session.
        snapshot: id of the stored bundle of the entries used; notes: ids of the notes attached to them.
        routing: whether a routing table said who may follow, or it was read off the history.
        request: what the target is asked, valid against its schema where the table has one.
        quarantined: entries whose text reads like instructions to an agent: it is withheld, not passed on.
        by: rules or model; fallback: the rules answered because the model could not; model: how it took part.
        attempts: how many times the agent was sent on from this same loop, this one included; asking again before it went
            on is the same attempt. Of a question always 1.
        diagnosis: why the calls fail and what to do next, as far as the record shows it; null for a question.
        basis: what the history held of agents and people when this was worked out, as 12 hexadecimal digits; equal as long
            as nobody did or said anything.
        question: what was asked for, and how, as 12 hexadecimal digits: equal questions with an equal basis have one answer.
        told_again: whether it was recorded earlier and is told again; it is returned beside a continuation, never in it.
    """

    id: str
    session: Text
    request_type: RequestType
    source: Source
    target: Annotated[Text, Field(min_length=1)]
    candidates: list[Text]
    target_reason: Text
    reason: Text
    goal: Text
    context: Context
    loop: Pattern | None
    stall: Pattern | None
    do_not_repeat: list[DoNotRepeat]
    alternatives: list[Alternative]
    snapshot: Text | None
    notes: list[Text]
    by: By
    fallback: bool
    # The cap on attempts is by loop and not by session: a session may have several loops, each with its own (ruling 11).
    attempts: int
    routing: Routing = "history"
    request: Json = None
    quarantined: list[Text] = []
    model: ModelUse | None = None
    diagnosis: Diagnosis | None = None
    basis: Text | None = None
    question: Text | None = None
    # It says something of the call and not of the answer: what is stored stays the same however often it is told (ruling 24).
    told_again: Annotated[bool, Field(exclude=True)] = False

    @property
    def prompt(self) -> str:
        """The text for the agent that continues, alone."""
        return self.context.prompt or self.context.summary

    def model_check(self) -> None:
        """Refuse a target that is not allowed."""
        # A recovery that sends the context manager on would be a recovery of itself (FR-019, ruling 11).
        if any(is_context_manager(agent) for agent in self.candidates):
            raise ValueError("the context manager is never a target")
        if self.target not in self.candidates or len(set(self.candidates)) != len(self.candidates):
            raise ValueError("the target must be one of the distinct candidates")

    def to_json(self) -> dict[str, Any]:
        """Return the wire form: ``returnTo`` holds every allowed branch, exactly one of them not null."""
        data = super().to_json()
        if self.diagnosis is not None:
            # JSON has no tuples: the answer reads back as it was written.
            data["diagnosis"]["evidence"] = list(data["diagnosis"]["evidence"])
        # Spec 000 writes one branch for each allowed agent; kept so in Python, zero or two of them could be built (ruling 20).
        branches: dict[str, Any] = dict.fromkeys(data.pop("candidates"))
        plain = {"type": self.request_type, "reason": self.reason, "goal": self.goal}
        asked = data.pop("request")
        branches[self.target] = {
            "request": plain if asked is None else asked,
            "context": self.prompt,
        }
        return {**data, "returnTo": branches}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the continuation of which this is the wire form, or the record; what else it holds is left out.

        Raises:
            ValidationError: it is no continuation.
        """
        known = {field.alias for field in cls.model_fields.values()}
        fields = {"loop": None, "stall": None, "snapshot": None}  # a record leaves out what is null
        # A record has members of its own, and those of a later version: neither makes it less of a continuation.
        fields |= {name: value for name, value in data.items() if name in known}
        branches = cast("dict[str, Any]", data.get("returnTo") or {})
        context = dict(cast("dict[str, Any]", data.get("context") or {}))
        for name in ("facts", "sections"):  # a hash is worked out from what it is the hash of
            parts = cast("list[dict[str, Any]]", context.get(name) or [])
            context[name] = [{key: value for key, value in part.items() if key != "hash"} for part in parts]
        branch = cast("dict[str, Any]", branches.get(str(data.get("target"))) or {})
        plain = {"type": data.get("requestType"), "reason": data.get("reason"), "goal": data.get("goal")}
        asked = branch.get("request")
        context.setdefault("prompt", branch.get("context") or "")
        return cls.model_validate(
            {**fields, "candidates": list(branches), "request": None if asked == plain else asked, "context": context}
        )
