"""Models of a context package, and why each item is in it or not.

The shape is that of spec 003, "Context package", corrected by rulings 16 and 17: the package names its counter, and what
may not be read is listed as missing, and only where the caller named it.
"""

from __future__ import annotations

from typing import Literal

from ctxmgr.log.codec import fingerprint
from ctxmgr.types.base import Json, Shape, Text

Need = Literal["required", "optional", "if_exists", "reference"]
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
    """Something that the agent holds unchanged: the named package gave it in full, so this one refers to it."""

    id: Text
    type: str = "artifact"
    source: Text
    name: Text
    version: int | None = None
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
        values["metadata"].pop("assembledAt")
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
