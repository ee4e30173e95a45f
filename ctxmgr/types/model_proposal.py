"""The answer of a model: a flat proposal, which the gate checks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

MAX_FACTS = 12
MAX_ADVICE = 5
_CITES = "The entries that show it, as @12: only such as you were shown."


class Answered(BaseModel):
    """Base of what a model answers; its client needs models of pydantic itself."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid", serialize_by_alias=True, defer_build=True
    )


class ProposedFact(Answered):
    """Something the next agent must know, in the model's words, and the entries it rests on (ids)."""

    text: Annotated[str, Field(min_length=1, max_length=600, description="One thing that is so, figures copied exactly.")]
    entries: Annotated[list[Annotated[str, Field(max_length=200)]], Field(min_length=1, max_length=6, description=_CITES)]


class Advice(Answered):
    """What to do instead, and the entries that speak for it (ids)."""

    text: Annotated[str, Field(min_length=1, max_length=300, description="One concrete action that was not tried yet.")]
    entries: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=6, description=_CITES)]


class Dropped(Answered):
    """An entry that the rules cited and the model leaves out, and why; without a reason it stays in."""

    entry: Annotated[str, Field(max_length=200, description="An entry that the brief rests on, as @12.")]
    reason: Annotated[str, Field(max_length=300, description="Why it misleads or is out of date.")]


class Proposal(Answered):
    """A model's whole answer in the tool mode.

    Attributes:
        target: the one agent that continues, out of those allowed.
        reason: why this agent, in a sentence.
        summary: where the work stands and what is wrong, in at most 1,200 characters.
        cause, next_step: why it fails and the one thing to do now, as a diagnosis of the rules has them; both or neither.
        check: what to look at after that step.
        facts: what the next agent must know beyond what the rules cite.
        advice: what to do instead of what was tried.
        dropped: which of the entries that the rules cited are left out, each with its reason.
        unanswered: what was asked for that no record of the history holds.
    """

    target: Annotated[str, Field(min_length=1, max_length=256, description="The one agent that continues.")]
    reason: Annotated[str, Field(min_length=1, max_length=400, description="Why this agent, in a sentence.")]
    summary: Annotated[str, Field(min_length=1, max_length=1_200, description="Where the work stands and why it is stuck.")]
    cause: Annotated[
        ProposedFact | None,
        Field(description="Why it fails: what the call assumes, what the record shows instead. Leave out if unknown."),
    ] = None
    next_step: Annotated[Advice | None, Field(description="The one thing to do now; given together with a cause.")] = None
    check: Annotated[str | None, Field(max_length=200, description="What to look at after that step.")] = None
    facts: Annotated[
        list[ProposedFact], Field(max_length=MAX_FACTS, description="What the agent must know beyond the brief.")
    ] = []
    advice: Annotated[list[Advice], Field(max_length=MAX_ADVICE, description="What to do instead, the best first.")] = []
    dropped: Annotated[
        list[Dropped], Field(max_length=MAX_FACTS, description="Entries of the brief that are to be left out.")
    ] = []
    unanswered: Annotated[
        list[Annotated[str, Field(max_length=300)]], Field(max_length=5, description="What was asked and no record holds.")
    ] = []

    @property
    def claims(self) -> list[tuple[str, ProposedFact]]:
        """What it states about the record, each with its place in the answer."""
        cause = [] if self.cause is None else [("the cause", self.cause)]
        return [*cause, *((f"fact {number}", fact) for number, fact in enumerate(self.facts, start=1))]

    @property
    def steps(self) -> list[tuple[str, Advice]]:
        """What it advises to do, each with its place in the answer."""
        step = [] if self.next_step is None else [("the next step", self.next_step)]
        return [*step, *((f"advice {number}", item) for number, item in enumerate(self.advice, start=1))]

    @property
    def cited(self) -> list[str]:
        """The entries that its claims and steps rest on."""
        return list(dict.fromkeys(name for _, item in (*self.claims, *self.steps) for name in item.entries))

    @property
    def texts(self) -> list[tuple[str, str]]:
        """All that it says in its own words, each with its place in the answer."""
        return [
            ("the reason", self.reason),
            ("the summary", self.summary),
            *((where, item.text) for where, item in (*self.claims, *self.steps)),
            *([] if self.check is None else [("the check", self.check)]),
            *(("what is unanswered", text) for text in self.unanswered),
            *(("the reason for leaving an entry out", item.reason) for item in self.dropped),
        ]


class Lead(Answered):
    """A small model's answer to the one narrow question: what is needed, then which of the numbered entries answers it.

    ``need`` comes before ``answer``: a small model that has to say first what is missing finds it far more often.
    ``answer`` is 0 where none of them does.
    """

    need: Annotated[str, Field(min_length=1, max_length=300, description="What is needed, in one sentence.")]
    answer: Annotated[int, Field(ge=0, le=200, description="Number of the entry that holds it, 0 for none.")]
