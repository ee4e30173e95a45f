"""Models of a context package, of the requests for one, and of the reasons why each item is in it or not.

The shape is that of spec 003, "Context package", corrected by rulings 16 and 17: the package names its counter, and what
may not be read is listed as missing, and only where the caller named it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from ctxmgr.log.codec import fingerprint
from ctxmgr.types.base import Field, Json, Shape, Text
from ctxmgr.types.goal import GoalSource
from ctxmgr.types.project_state import Need

Included = Literal["full", "summary", "truncated"]
Got = Literal["full", "summary", "truncated", "omitted"]
Rule = Literal[
    "requiredFull",
    "requiredSummary",
    "optionalFull",
    "summaryAsked",
    "overMaxTokens",
    "noRoomInFull",
    "referenceSummary",
    "lowestPriority",
    "noRoom",
    "duplicate",
]


class PackageMetadata(Shape):
    """For whom and when, and what it cost.

    ``version`` is that of the context. ``total_tokens`` is the size of the whole package with its framing, at most
    ``token_budget`` less the reserve for the agent's own prompt; ``counter`` is what counted it, and the true number lies
    within the factor ``error_band`` of it.
    """

    version: int | None = None
    assembled_at: Text
    assembled_for: Text
    task_id: Text | None = None
    total_tokens: int
    token_budget: int
    counter: str
    error_band: float


class PackageItem(Shape):
    """One item; ``tokens`` is the size of its content, ``original_tokens`` that of the whole where it is not given whole."""

    id: Text
    type: str = "artifact"
    source: Text
    name: Text
    version: int | None = None
    kind: str
    included: Included
    tokens: int
    original_tokens: int | None = None
    content: Text


class MissingItem(Shape):
    """Something that the caller named and that is not there, or may not be read: the two look the same (ruling 16)."""

    source: Text
    name: Text


class HeldItem(Shape):
    """Something that the agent holds unchanged, so this package refers to the one that gave it.

    ``included`` says what was given: all of it, or the same summary or beginning that would be given again.
    """

    id: Text
    type: str = "artifact"
    source: Text
    name: Text
    version: int | None = None
    included: Included = "full"
    package: Text


class ContextPackage(Shape):
    """All that one agent is given for one task; two of the same state differ in ``metadata.assembled_at`` alone."""

    metadata: PackageMetadata
    project_context: dict[Text, Json] = {}
    task_context: dict[Text, Json] = {}
    artifacts: list[PackageItem] = []
    held: list[HeldItem] = []
    warnings: list[Text] = []
    missing: list[MissingItem] = []

    @property
    def digest(self) -> str:
        """What the package says, whenever it was assembled, as 16 hexadecimal digits."""
        values = self.to_json()
        values["metadata"].pop("assembledAt")  # the only value that differs between two packages of one state
        return fingerprint(values)


class Decision(Shape):
    """What became of one item: what was asked for, what it got, by which rule, and why in a sentence.

    ``asked_tokens`` is the size of its whole content, ``tokens`` that of what it got, ``cost`` what that takes of the
    budget with its framing. ``because`` is what asks for it: a need, another item that depends on it, or the caller.
    """

    id: Text
    type: str
    source: Text
    name: Text
    version: int | None
    need: Need
    priority: int
    max_tokens: int | None
    asked: Literal["full", "summary"]
    asked_tokens: int
    got: Got
    tokens: int
    cost: int
    rule: Rule
    reason: Text
    because: Text = ""


class BudgetRow(Shape):
    """One line of the budget table: how many tokens went where, and for how many items."""

    name: str
    tokens: int
    items: int | None = None


class Assembly(Shape):
    """A package with the decisions behind it and its budget table, whose rows add up to the budget."""

    package: ContextPackage
    decisions: list[Decision]
    budget: list[BudgetRow]


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
    # The figures of spec 003 are absolute and fail every budget below 7,000, so the usual ones are shares (ruling 27).
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
    # There is no "denied": it would say that there is something to be denied (ruling 16).
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
    """The items, one for each name in the order asked for; ``partial`` when some are missing, ``empty`` when all are.

    ``warnings`` name the items in which secrets are masked.
    """

    status: Literal["ok", "partial", "empty"]
    items: list[RequestedItem]
    warnings: list[Text] = []


WhyGot = Literal[Got, "held", "absent"]


class WhyRequest(Shape):
    """A question about one item of a package: the named one, else the latest of the agent, else the latest of all."""

    item: Text
    package: Text | None = None
    agent: Text | None = None


class ItemExplanation(Shape):
    """What became of an item in a package: asked, got, by which rule, why; ``decisions`` has each need that asked for it.

    ``asked`` is null for what nothing asked for.
    """

    item: Text
    package: Text
    agent: Text
    assembled_at: Text | None
    asked: Literal["full", "summary"] | None
    got: WhyGot
    # The rule of a decision, or where none was made: ``held`` (the agent had it unchanged from the package before),
    # ``everyPackage`` (the project's or the task's context), ``noNeed`` (nothing asked for it), ``later`` (needed now, but not
    # when the package was assembled), ``denied`` (the agent may not read it; said to the operator alone), ``notThere``.
    rule: Text
    reason: Text
    decisions: list[Decision] = []
