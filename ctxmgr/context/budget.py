"""Decide what goes into a package within a token budget: a pure function of items, sizes and budget.

The order is that of spec 003, "Context assembly strategy". Required items come first and must fit. Optional items follow by
priority, in full or else as a summary, so that a lower priority never takes the room of a higher one. Then come references as
summaries, and last the beginnings of items that did not fit. The order of the input does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from ctxmgr.errors import BudgetExceeded, InvalidInput
from ctxmgr.types.context_package import Decision, Got, Rule
from ctxmgr.types.project_state import Need

SMALLEST_CUT = 40
"""Minimum number of free tokens for which the beginning of an item is worth its framing."""
MAX_READ_TOKENS = 8_000_000
"""Size of a required item that is read although there is no room for it, to say what it takes with its framing."""
LARGER = "give a larger budget"
"""Beginning of the hints of errors about a budget; `ctxmgr.context.packing` names the budget in its place."""
_MAX_NAMED = 5
STRENGTH: dict[str, int] = {"required": 0, "optional": 1, "if_exists": 1, "reference": 2}
"""Strength of a need or a dependency. A lower number is served first."""


@dataclass(frozen=True, slots=True)
class Reserves:
    """Tokens of the budget to keep free: for the agent's own prompt, and for project and task context."""

    prompt: int
    task: int


def usual_reserves(budget: int) -> Reserves:
    """Return the default reserves of a budget: 5 % for the prompt and 2 % for the task, at most 5,000 and 2,000 tokens.

    Spec 003 gives these figures for a budget of 100,000. As absolute numbers they would make every budget below 7,000 fail
    (ruling 27).
    """
    return Reserves(prompt=min(5_000, max(budget, 0) * 5 // 100), task=min(2_000, max(budget, 0) * 2 // 100))


@dataclass(frozen=True, slots=True)
class Item:
    """An existing item that a need asks for.

    Attributes:
        tokens: size of the full content, which is read only if it could fit.
        priority: lower numbers come first.
        max_tokens: limit of the content; a required item exceeds it with a warning.
        use_summary: ask for the summary instead of the full content.
        because: what asks for the item, in a few words.
    """

    id: str
    source: str
    name: str
    kind: str
    need: Need
    tokens: int
    priority: int = 100
    max_tokens: int | None = None
    use_summary: bool = False
    version: int | None = None
    type: str = "artifact"
    because: str = ""


class Piece(NamedTuple):
    """A text for the package: tokens of the content, ``cost`` in tokens with its framing, ``whole`` if nothing is left out."""

    text: str
    tokens: int
    cost: int
    whole: bool


class Provider(Protocol):
    """Provides the texts of items.

    It is called only for texts that may be used or are required, at most once each, or twice for a summary.
    """

    def full(self, item: Item) -> Piece:
        """Return the full content."""
        ...

    def summary(self, item: Item, most: int | None = None) -> Piece:
        """Return a summary, of about ``most`` tokens if given, or the full content if no summary is shorter."""
        ...

    def cut(self, item: Item, text: str, tokens: int | None, cost: int) -> Piece | None:
        """Return the longest beginning of the text within both limits, or None if not even a word fits."""
        ...


@dataclass(slots=True)
class BudgetPlan:
    """The decisions in the order of the package, and the remaining tokens."""

    left: int
    placed: list[tuple[Item, Piece, Decision]] = field(default_factory=lambda: list[tuple[Item, Piece, Decision]]())
    omitted: list[Decision] = field(default_factory=lambda: list[Decision]())


def available(budget: int, reserves: Reserves, head: int) -> int:
    """Return the tokens for items after the reserves. ``head`` is the actual size of project and task context.

    Raises:
        InvalidInput: the budget is not positive, or a reserve is negative.
        BudgetExceeded: the reserves alone exceed the budget.
    """
    if budget <= 0:
        raise InvalidInput(f"a budget of {budget:,} tokens can't hold anything", "give a positive number of tokens")
    if reserves.prompt < 0 or reserves.task < 0:
        raise InvalidInput("a reserve can't be negative", "give 0 for no reserve")
    # The reserve for the task is a minimum. A long context takes what it needs.
    room = budget - reserves.prompt - max(reserves.task, head)
    if room < 0:
        raise BudgetExceeded(
            f"the budget of {budget:,} tokens is {-room:,} short of what is set aside: {reserves.prompt:,} for the prompt and"
            f" {max(reserves.task, head):,} for project and task context",
            f"{LARGER}, or smaller reserves",
        )
    return room


def decide(items: Iterable[Item], room: int, provider: Provider, spare: int = 0) -> BudgetPlan:
    """Return what each item gets. ``spare`` tokens of the room are for required items only.

    Raises:
        BudgetExceeded: the required items don't fit; the error names them and the number of missing tokens.
    """
    plan = BudgetPlan(left=room)
    distinct = _distinct(items, plan)
    _require([item for item in distinct if item.need == "required"], plan, provider)
    # Reserved for warnings about the following items, which come after all of them.
    plan.left -= spare
    over: list[tuple[Item, Piece]] = []
    # From the strongest need to the weakest. Beginnings are cut last, from the remaining room.
    for item in distinct:
        if item.need in ("optional", "if_exists"):
            _offer(item, plan, provider, over)
    for item in distinct:
        if item.need == "reference":
            _summarise(item, plan, provider, "referenceSummary", over)
    for item, piece in over:
        _truncate(item, piece, plan, provider)
    plan.left += spare
    return plan


def _order(item: Item) -> tuple[int, str, str, int, str, str]:
    # A total order, because two packages of the same state must be equal, in whatever order the items were found.
    return (item.priority, item.source, item.name, -1 if item.version is None else item.version, item.type, item.id)


def _distinct(items: Iterable[Item], plan: BudgetPlan) -> list[Item]:
    """Return the distinct items by priority. If several needs ask for an item, the strongest one counts."""
    strongest: dict[tuple[str, str], Item] = {}
    for item in sorted(items, key=_need_order):
        first = strongest.setdefault((item.type, item.id), item)
        if first is not item:
            plan.omitted.append(_decision(item, "duplicate", f"given for its need as {first.need} already"))
    return sorted(strongest.values(), key=_order)


def _need_order(item: Item) -> tuple[object, ...]:
    # No limit comes before any limit, and a larger one before a smaller one, so that the more generous need counts.
    limit = (item.max_tokens is not None, -(item.max_tokens or 0))
    return (STRENGTH[item.need], item.use_summary, *_order(item), *limit, item.need, item.tokens, item.kind, item.because)


def _require(items: Sequence[Item], plan: BudgetPlan, provider: Provider) -> None:
    beyond: list[tuple[Item, int]] = []
    for item in items:
        if item.use_summary:
            piece = _summary(item, plan, provider)
        else:
            piece = provider.full(item) if item.tokens <= max(plan.left, MAX_READ_TOKENS) else None
        cost = piece.cost if piece is not None else item.tokens
        if piece is None or cost > plan.left:
            beyond.append((item, cost))
            continue
        rule: Rule = "requiredFull" if piece.whole else "requiredSummary"
        reason = "required" if piece.whole else "required, and its need asks for the summary"
        if item.max_tokens is not None and piece.tokens > item.max_tokens:
            reason += f"; it is over its limit of {item.max_tokens:,} tokens, but what is required is never cut"
        _place(item, piece, plan, "full" if piece.whole else "summary", rule, reason)
    if beyond:
        _fail(beyond, plan)


def _fail(beyond: Sequence[tuple[Item, int]], plan: BudgetPlan) -> None:
    short = sum(cost for _, cost in beyond) - plan.left
    named = ", ".join(f"{_label(item)} ({cost:,} tokens)" for item, cost in beyond[:_MAX_NAMED])
    more = f" and {len(beyond) - _MAX_NAMED:,} more" if len(beyond) > _MAX_NAMED else ""
    raise BudgetExceeded(
        f"the required items need {short:,} tokens more than the budget has room for: {named}{more} do not fit",
        f"{LARGER}, ask for their summaries, or make them optional",
    )


def _offer(item: Item, plan: BudgetPlan, provider: Provider, over: list[tuple[Item, Piece]]) -> None:
    """Place an optional item in full, else as its summary, else add it to ``over`` for later."""
    rule: Rule = "noRoomInFull"
    if item.use_summary:
        rule = "summaryAsked"
    elif item.max_tokens is not None and item.tokens > item.max_tokens:
        rule = "overMaxTokens"
    elif item.tokens <= plan.left:
        piece = provider.full(item)
        if piece.cost <= plan.left:
            _place(item, piece, plan, "full", "optionalFull", "optional, and there is room for all of it")
            return
    _summarise(item, plan, provider, rule, over)


_WHY: dict[Rule, str] = {
    "summaryAsked": "its need asks for the summary",
    "overMaxTokens": "all of it is {tokens:,} tokens, over its limit of {limit:,}",
    "noRoomInFull": "all of it is {tokens:,} tokens, and {left:,} were left",
    "referenceSummary": "a reference is given as its summary",
}


def _summary(item: Item, plan: BudgetPlan, provider: Provider) -> Piece:
    """Return the summary of an item, or a shorter one that fits if there is one."""
    piece = provider.summary(item)
    if _fits(item, piece, plan):
        return piece
    room = plan.left * piece.tokens // max(piece.cost, 1)  # the framing costs tokens too, so take its share from the room
    most = room if item.max_tokens is None else min(room, item.max_tokens)
    shorter = provider.summary(item, most) if most >= SMALLEST_CUT else piece
    return shorter if _fits(item, shorter, plan) else piece


def _fits(item: Item, piece: Piece, plan: BudgetPlan) -> bool:
    return piece.cost <= plan.left and (item.max_tokens is None or piece.tokens <= item.max_tokens)


def _summarise(item: Item, plan: BudgetPlan, provider: Provider, rule: Rule, over: list[tuple[Item, Piece]]) -> None:
    """Place an item as its summary, or add it to ``over`` if the summary does not fit."""
    piece = _summary(item, plan, provider)
    if not _fits(item, piece, plan):
        over.append((item, piece))
        return
    why = _WHY[rule].format(tokens=item.tokens, limit=item.max_tokens or 0, left=plan.left)
    why += "; nothing shorter says it" if piece.whole else ""
    _place(item, piece, plan, "full" if piece.whole else "summary", rule, why)


def _truncate(item: Item, piece: Piece, plan: BudgetPlan, provider: Provider) -> None:
    """Place the beginning of an item that did not fit, if there is room for more than a few words of it."""
    limited = item.max_tokens is not None and piece.tokens > item.max_tokens
    enough = plan.left >= SMALLEST_CUT and (item.max_tokens is None or item.max_tokens > 0)
    part = provider.cut(item, piece.text, item.max_tokens, plan.left) if enough else None
    shortest = "all of it" if piece.whole else "its summary"
    if part is None or part.cost > plan.left or (item.max_tokens is not None and part.tokens > item.max_tokens):
        plan.omitted.append(_decision(item, "noRoom", f"{shortest} takes {piece.cost:,} tokens, and {plan.left:,} were left"))
        return
    if limited and piece.cost <= plan.left:
        rule: Rule = "overMaxTokens"
        why = f"{shortest} is {piece.tokens:,} tokens, over its limit of {item.max_tokens:,}"
    else:
        rule, why = "lowestPriority", f"{shortest} takes {piece.cost:,} tokens, and {plan.left:,} were left"
    _place(item, part, plan, "truncated", rule, why)


def _place(item: Item, piece: Piece, plan: BudgetPlan, got: Got, rule: Rule, reason: str) -> None:
    plan.left -= piece.cost
    plan.placed.append((item, piece, _decision(item, rule, reason, got, piece)))


def _decision(item: Item, rule: Rule, reason: str, got: Got = "omitted", piece: Piece | None = None) -> Decision:
    asked: Literal["full", "summary"] = "summary" if item.use_summary or item.need == "reference" else "full"
    return Decision(
        id=item.id,
        type=item.type,
        source=item.source,
        name=item.name,
        version=item.version,
        need=item.need,
        priority=item.priority,
        max_tokens=item.max_tokens,
        asked=asked,
        asked_tokens=item.tokens,
        got=got,
        tokens=piece.tokens if piece is not None else 0,
        cost=piece.cost if piece is not None else 0,
        rule=rule,
        reason=reason,
        because=item.because,
    )


def _label(item: Item) -> str:
    return f"{item.source}/{item.name}" if item.source else item.name
