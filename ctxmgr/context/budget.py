"""Decide what goes into a package under a token budget; a pure function of items, sizes and room.

The order (spec 003, "Context assembly strategy"): required items, which must fit; optional ones by priority, in full or
else as a summary, so that a lower priority never takes the room of a higher one; references as summaries; the beginning
of what is left over. The place of an item in the input decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from ctxmgr.errors import BudgetExceeded, InvalidInput
from ctxmgr.types.context_package import Decision, Got, Need, Rule

SMALLEST_CUT = 40
"""Tokens of the budget below which the beginning of an item is not worth a place."""
_NAMED = 5
_STRENGTH: dict[Need, int] = {"required": 0, "optional": 1, "if_exists": 1, "reference": 2}


@dataclass(frozen=True, slots=True)
class Reserves:
    """Tokens of the budget that items may not take: for the agent's own prompt, and for project and task context."""

    prompt: int
    task: int


def usual_reserves(budget: int) -> Reserves:
    """Return the reserves of a budget that nobody chose: 5 % of it for the prompt and 2 % for the task.

    They are at most 5,000 and 2,000 tokens, which 100,000 have (spec 003, "Context assembly strategy"): a small budget keeps
    its room.
    """
    return Reserves(prompt=min(5_000, max(budget, 0) * 5 // 100), task=min(2_000, max(budget, 0) * 2 // 100))


@dataclass(frozen=True, slots=True)
class Item:
    """Something that a need asks for and that exists.

    Attributes:
        tokens: size of the whole content; the content itself is only asked for where that could fit.
        priority: the lower, the earlier.
        max_tokens: the most that the content may take; a required item is given whole all the same, with a warning.
        use_summary: ask for the summary instead of the whole.
        because: what asks for it, in a few words.
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
    """A text for the package: the tokens of its content, and its cost with the framing; ``whole`` says it is all there is."""

    text: str
    tokens: int
    cost: int
    whole: bool


class Provider(Protocol):
    """Gives the texts of items; each is asked for only when it may be used, and at most once, but for a shorter summary."""

    def full(self, item: Item) -> Piece:
        """Return the whole content."""
        ...

    def summary(self, item: Item, most: int | None = None) -> Piece:
        """Return a shorter content, or the whole one where nothing shorter says it; ``most`` tokens are aimed at, if given."""
        ...

    def cut(self, item: Item, text: str, tokens: int | None, cost: int) -> Piece | None:
        """Return a beginning of the text within both limits, or None where not even a word fits."""
        ...


@dataclass(slots=True)
class BudgetPlan:
    """What was decided, in the order of the package, and the room that is left."""

    left: int
    placed: list[tuple[Item, Piece, Decision]] = field(default_factory=lambda: list[tuple[Item, Piece, Decision]]())
    omitted: list[Decision] = field(default_factory=lambda: list[Decision]())


def available(budget: int, reserves: Reserves, head: int) -> int:
    """Return the room for items beside the reserves; ``head`` is what project and task context really take.

    Raises:
        InvalidInput: the budget is no positive number, or a reserve is negative.
        BudgetExceeded: the reserves alone take more than the budget.
    """
    if budget <= 0:
        raise InvalidInput(f"a budget of {budget:,} tokens can't hold anything", "give a positive number of tokens")
    if reserves.prompt < 0 or reserves.task < 0:
        raise InvalidInput("a reserve can't be negative", "give 0 for no reserve")
    room = budget - reserves.prompt - max(reserves.task, head)
    if room < 0:
        raise BudgetExceeded(
            f"the budget of {budget:,} tokens is {-room:,} short of what is set aside: {reserves.prompt:,} for the prompt and"
            f" {max(reserves.task, head):,} for project and task context",
            "give a larger budget, or smaller reserves",
        )
    return room


def decide(items: Iterable[Item], room: int, provider: Provider, spare: int = 0) -> BudgetPlan:
    """Return what each item gets; of the room, ``spare`` tokens are for required items only.

    Raises:
        BudgetExceeded: the required items don't fit; it names those that are beyond the room, and by how much.
    """
    plan = BudgetPlan(left=room)
    distinct = _distinct(items, plan)
    _require([item for item in distinct if item.need == "required"], plan, provider)
    plan.left -= spare
    over: list[tuple[Item, Piece]] = []
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
    return (item.priority, item.source, item.name, -1 if item.version is None else item.version, item.type, item.id)


def _distinct(items: Iterable[Item], plan: BudgetPlan) -> list[Item]:
    """Return the items by priority; of several needs for one item the strongest counts."""
    strongest: dict[tuple[str, str], Item] = {}
    for item in sorted(items, key=_claim):
        first = strongest.setdefault((item.type, item.id), item)
        if first is not item:
            plan.omitted.append(_decision(item, "duplicate", f"given for its need as {first.need} already"))
    return sorted(strongest.values(), key=_order)


def _claim(item: Item) -> tuple[object, ...]:
    limit = (item.max_tokens is not None, -(item.max_tokens or 0))
    return (_STRENGTH[item.need], item.use_summary, *_order(item), *limit, item.need, item.tokens, item.kind, item.because)


def _require(items: Sequence[Item], plan: BudgetPlan, provider: Provider) -> None:
    beyond: list[tuple[Item, int]] = []
    for item in items:
        piece = (
            _summary(item, plan, provider) if item.use_summary else provider.full(item) if item.tokens <= plan.left else None
        )
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
    named = ", ".join(f"{_called(item)} ({cost:,} tokens)" for item, cost in beyond[:_NAMED])
    more = f" and {len(beyond) - _NAMED:,} more" if len(beyond) > _NAMED else ""
    raise BudgetExceeded(
        f"the required items need {short:,} tokens more than the budget has room for: {named}{more} do not fit",
        "give a larger budget, ask for their summaries, or make them optional",
    )


def _offer(item: Item, plan: BudgetPlan, provider: Provider, over: list[tuple[Item, Piece]]) -> None:
    """Give an optional item in full, else as its summary, else put it off."""
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
    """Return the summary of an item; where that does not fit, a shorter one that does, if there is one."""
    piece = provider.summary(item)
    if _fits(item, piece, plan):
        return piece
    room = plan.left * piece.tokens // max(piece.cost, 1)  # a text costs more than its own tokens
    most = room if item.max_tokens is None else min(room, item.max_tokens)
    shorter = provider.summary(item, most) if most >= SMALLEST_CUT else piece
    return shorter if _fits(item, shorter, plan) else piece


def _fits(item: Item, piece: Piece, plan: BudgetPlan) -> bool:
    return piece.cost <= plan.left and (item.max_tokens is None or piece.tokens <= item.max_tokens)


def _summarise(item: Item, plan: BudgetPlan, provider: Provider, rule: Rule, over: list[tuple[Item, Piece]]) -> None:
    """Give an item as its summary; put it off where that does not fit."""
    piece = _summary(item, plan, provider)
    if not _fits(item, piece, plan):
        over.append((item, piece))
        return
    why = _WHY[rule].format(tokens=item.tokens, limit=item.max_tokens or 0, left=plan.left)
    why += "; nothing shorter says it" if piece.whole else ""
    _place(item, piece, plan, "full" if piece.whole else "summary", rule, why)


def _truncate(item: Item, piece: Piece, plan: BudgetPlan, provider: Provider) -> None:
    """Give the beginning of what did not fit, where there is room for more than a few words of it."""
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


def _called(item: Item) -> str:
    return f"{item.source}/{item.name}" if item.source else item.name
