"""Requests for context packages and their answers (spec 003)."""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.types.base import Field, Json, Shape, Text
from ctxmgr.types.context_package import Assembly, Decision, Got, Included, Need
from ctxmgr.types.goal_source import GoalSource
from ctxmgr.types.project import AgentNeed

DEFAULT_BUDGET = 100_000
"""Tokens of a package when nobody says how many (spec 003, "Assemble Context")."""

ESTIMATE = "estimate"


class AssembleRequest(Shape):
    """A package for an agent.

    ``items`` are named by the caller, beside what the agent needs. A reserve that is null is the usual one of the budget.
    ``task_context`` is what is known of the task, ``goal`` where the goal stands: the item ``goal_context``. ``diff`` refers to
    what the agent holds from its last package instead of giving it again. ``dry_run`` records nothing.
    """

    agent: Text
    max_tokens: int = DEFAULT_BUDGET
    reserve_prompt: int | None = None
    reserve_task: int | None = None
    task: Text | None = None
    task_context: dict[Text, Json] | None = None
    goal: GoalSource | None = None
    version: int | None = None
    items: list[Text] = []
    counter: Text = ESTIMATE
    diff: bool = False
    dry_run: bool = False


class AssembleResponse(Assembly):
    """The package, the decisions behind it and its budget; ``id`` names it for ``context why``, null when not recorded."""

    id: Text | None


class RequestItemsRequest(Shape):
    """Items that an agent asks for by name, in the order in which they matter to it."""

    agent: Text
    items: Annotated[list[Text], Field(min_length=1)]
    max_tokens: int = DEFAULT_BUDGET
    version: int | None = None
    counter: Text = ESTIMATE


class RequestedItem(Shape):
    """One item that was asked for: its content, or that it is missing, which what may not be read is too (ruling 16).

    ``noRoom``: it is there, and what was asked for before it took the room. ``suggestions`` are names like the missing one.
    """

    source: Text
    name: Text
    status: Literal["success", "missing", "noRoom"]
    id: Text | None = None
    type: str | None = None
    version: int | None = None
    kind: str | None = None
    included: Included | None = None
    tokens: int | None = None
    original_tokens: int | None = None
    counter: Text
    content: Text | None = None
    reason: Text | None = None
    suggestions: list[Text] = []


class RequestItemsResponse(Shape):
    """The items, one for each name in the order asked for; ``partial`` when some are missing, ``empty`` when all are."""

    status: Literal["ok", "partial", "empty"]
    items: list[RequestedItem]


WhyGot = Literal[Got, "held", "absent"]
WhyRule = Literal[
    "held",  # the agent had it unchanged from the package before
    "everyPackage",  # the project's or the task's context
    "noNeed",  # nothing asked for it
    "later",  # needed now, but not when the package was assembled
    "denied",  # the agent may not read it; said to the operator alone
    "notThere",
]


class WhyRequest(Shape):
    """A question about one item of a package: the named one, else the latest of the agent, else the latest of all."""

    item: Text
    package: Text | None = None
    agent: Text | None = None


class Why(Shape):
    """What became of an item in a package: asked, got, by which rule, why; ``decisions`` has each need that asked for it.

    ``asked`` is null for what nothing asked for.
    """

    item: Text
    package: Text
    agent: Text
    assembled_at: Text | None
    asked: Literal["full", "summary"] | None
    got: WhyGot
    rule: Text
    reason: Text
    decisions: list[Decision] = []


class ChangeNeedsRequest(Shape):
    """Needs to put in force and needs to take away, all or none; an agent has one need for each pattern."""

    add: list[AgentNeed] = []
    remove: list[tuple[Text, Text]] = []


class NeedsChanged(Shape):
    """The needs that were named, as they are now, and how many were new, other, or went."""

    needs: list[AgentNeed]
    added: int
    changed: int
    removed: int


class ListNeedsRequest(Shape):
    """The needs of one agent, or of all."""

    agent: Text | None = None


class ListNeedsResponse(Shape):
    """Needs in the order in which they are served."""

    status: Literal["ok", "empty"]
    needs: list[AgentNeed]


NEEDS: tuple[Need, ...] = ("required", "optional", "if_exists", "reference")
