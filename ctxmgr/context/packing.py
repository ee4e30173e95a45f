"""Pack the items of a package into its budget, and write the warnings and the budget table. It uses no store."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ctxmgr.context.budget import LARGER, BudgetPlan, Item, Piece, Reserves, available, decide, usual_reserves
from ctxmgr.context.packages import frame_cost, item_cost, whole_cost
from ctxmgr.context.summaries import Summary
from ctxmgr.errors import BudgetExceeded, InvalidInput
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.text.tokens import ESTIMATE, Counter
from ctxmgr.types.context_package import (
    Assembly,
    BudgetRow,
    ContextPackage,
    Decision,
    HeldItem,
    Included,
    MissingItem,
    PackageItem,
    PackageMetadata,
)
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER

MARK = "… cut here\n"


def cut(text: str, fits: Callable[[str], bool]) -> str | None:
    """Return the longest beginning that fits, with a mark at its end, or None if not even one character fits.

    Args:
        text: the text that is too long.
        fits: returns whether a text is short enough; must be true for every beginning of a text that fits.
    """
    # Cut at a line end if any line fits, because half a line of code or of a table misleads.
    ends = [number + 1 for number, sign in enumerate(text) if sign == "\n"]
    lines = _largest_that_fits(len(ends), lambda count: fits(text[: ends[count - 1]] + MARK))
    if lines:
        return text[: ends[lines - 1]] + MARK
    # No whole line fits, so cut within the first line.
    first = ends[0] - 1 if ends else len(text)
    signs = _largest_that_fits(first, lambda count: fits(text[:count] + MARK))
    return text[:signs] + MARK if signs else None


def _largest_that_fits(limit: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to the limit that fits, or 0 (binary search)."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


# Counted instead of the real time, so that the same state always gives the same package.
_ANY_TIME = "0000-00-00T00:00:00.000000+00:00"
_MAX_WARNING_TOKENS = 200
_TRIES = 8  # the margin more than doubles at each try
_FIRST_STEP = 64
_MAX_CHARS_PER_TOKEN = 40  # more than in any text; limits the attempts at a cut


class Texts(Protocol):
    """Source of the texts of items."""

    def full(self, item: Item) -> str:
        """Return the full text of an item. Called only if its stated size could fit."""
        ...

    def summary(self, item: Item, most: int | None = None) -> Summary:
        """Return the summary of an item, in ``most`` tokens if possible."""
        ...


@dataclass(frozen=True, slots=True)
class Order:
    """The input of an assembly: items, recipient and budget. ``missing`` are (source, name) requested but not found.

    A reserve that is None is the usual one of the budget. ``held`` are items that the agent already holds, ``notes`` are
    warnings known in advance. ``assembled_at`` is RFC 3339 with at most 32 characters; its length does not influence the
    decisions.
    """

    agent: str
    assembled_at: str
    budget: int
    items: Sequence[Item]
    texts: Texts
    counter: Counter = ESTIMATE
    reserve_prompt: int | None = None
    reserve_task: int | None = None
    version: int | None = None
    task_id: str | None = None
    project_context: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    task_context: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    missing: Sequence[tuple[str, str]] = ()
    held: Sequence[HeldItem] = ()
    notes: Sequence[str] = ()

    @property
    def set_aside(self) -> Reserves:
        """The reserves that were chosen, and for each that was not, the usual one of the budget."""
        usual = usual_reserves(self.budget)
        return Reserves(
            prompt=usual.prompt if self.reserve_prompt is None else self.reserve_prompt,
            task=usual.task if self.reserve_task is None else self.reserve_task,
        )


def assemble(order: Order, *, advise: bool = True) -> Assembly:
    """Return the package, the decision on every item, and the budget table.

    Raises:
        InvalidInput: the budget is not positive, a reserve is negative, or the time is too long.
        BudgetExceeded: the reserves or the required items don't fit; the hint names the smallest budget in which they do,
            unless ``advise`` is false: the search for it takes many times as long.
    """
    try:
        return _assemble(order)
    except BudgetExceeded as error:
        least = _find_smallest_budget(order) if advise else None
        if least is None:
            raise
        hint = (error.hint or "").replace(LARGER, f"give at least {least:,} tokens (--max-tokens {least})")
        raise BudgetExceeded(error.message, hint) from None


def _assemble(order: Order) -> Assembly:
    if len(order.assembled_at) > len(_ANY_TIME):
        raise InvalidInput("the time of assembly is no timestamp", "give RFC 3339, as in 2026-01-31T12:00:00Z")
    frame = _frame(order)
    head = frame_cost(frame, order.counter)
    room = available(order.budget, order.set_aside, head)
    # A counter may find more tokens in a text than in its parts together. Then give the items less room until it fits.
    margin = 0
    for _ in range(_TRIES):
        assembly = _pack(order, frame, head, room - margin)
        excess = assembly.package.metadata.total_tokens - (order.budget - order.set_aside.prompt)
        if excess <= 0:
            return assembly
        margin += excess + margin
    raise BudgetExceeded("the counter finds more tokens in the whole than in its parts", LARGER)


def _pack(order: Order, frame: ContextPackage, head: int, room: int) -> Assembly:
    least = _least_warning_cost(order, frame)
    if room < least:
        raise BudgetExceeded(
            f"the budget of {order.budget:,} tokens has {max(room, 0):,} left for items, which is too little for any",
            f"{LARGER}, or smaller reserves",
        )
    spare = min(_MAX_WARNING_TOKENS, room // 50)
    plan = decide(order.items, room - least, _CostProvider(order), min(spare, room - least))
    packed = [_package_item(item, piece, made.got) for item, piece, made in plan.placed]
    shortened = (_warning(made) for *_, made in plan.placed)
    every = [*order.notes, *map(masked_warning, packed), *shortened, *map(_omission, plan.omitted)]
    warnings = _fit_warnings([text for text in every if text], order, frame, plan.left + least)
    warning_cost = _warned_cost(order, frame, warnings)
    package = frame.model_copy(update={"artifacts": packed, "warnings": warnings})
    total = head + warning_cost + sum(piece.cost for _, piece, _ in plan.placed)
    package = _finish(package, max(total, whole_cost(package, order.counter)), order.assembled_at)
    decisions = [*(made for *_, made in plan.placed), *plan.omitted]
    return Assembly(package=package, decisions=decisions, budget=_budget_table(order, head, warning_cost, plan))


def _least_warning_cost(order: Order, frame: ContextPackage) -> int:
    """Return the room to keep for at least one warning, so that nothing is left out silently."""
    return _warned_cost(order, frame, [_summary_warning(10**9)]) if order.items or order.notes else 0


def _find_smallest_budget(order: Order) -> int | None:
    """Return the smallest budget in which the required items fit, or None if no budget is large enough.

    It is more than what is missing now: a larger budget has larger reserves, and its figures are longer.
    """
    provider = _CostProvider(order)
    required = [item for item in order.items if item.need == "required"]

    def fits(budget: int) -> bool:
        asked = replace(order, budget=budget)
        frame = _frame(asked)
        try:
            room = available(budget, asked.set_aside, frame_cost(frame, order.counter)) - _least_warning_cost(asked, frame)
            if room >= 0:
                decide(required, room, provider)
        except BudgetExceeded:
            return False
        return room >= 0

    low, step = max(order.budget, 1), _FIRST_STEP
    while not fits(low + step):
        low, step = low + step, 2 * step
        if low > MAX_EXACT_INTEGER:
            return None
    least = low + 1 + bisect_left(range(low + 1, low + step), True, key=fits)
    # A counter may find more tokens in the whole than in its parts, which only the whole shows.
    for _ in range(_TRIES):
        with suppress(BudgetExceeded):
            _assemble(replace(order, budget=least))
            return least
        least += least // 50 + 1
    return None


class _CostProvider:
    """Provides the texts of items with their cost in the package, including the framing."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._whole: dict[tuple[str, str], Piece] = {}

    def full(self, item: Item) -> Piece:
        key = (item.type, item.id)
        if key not in self._whole:
            self._whole[key] = self._piece(item, self._order.texts.full(item), "full")
        return self._whole[key]

    def summary(self, item: Item, most: int | None = None) -> Piece:
        summary = self._order.texts.summary(item, most)
        return self._piece(item, summary.text, "full" if summary.lossless else "summary")

    def cut(self, item: Item, text: str, tokens: int | None, cost: int) -> Piece | None:
        def fits(part: str) -> bool:
            piece = self._piece(item, part, "truncated")
            return piece.cost <= cost and (tokens is None or piece.tokens <= tokens)

        part = cut(text[: _MAX_CHARS_PER_TOKEN * cost + 1], fits)
        return None if part is None else self._piece(item, part, "truncated")

    def _piece(self, item: Item, text: str, included: Included) -> Piece:
        tokens = self._order.counter.count(text, item.kind)
        bare = Piece(text, tokens, 0, included == "full")
        return bare._replace(cost=item_cost(_package_item(item, bare, included), self._order.counter))


def _package_item(item: Item, piece: Piece, included: str) -> PackageItem:
    return PackageItem.model_validate(
        {
            "id": item.id,
            "type": item.type,
            "source": item.source,
            "name": item.name,
            "version": item.version,
            "kind": item.kind,
            "included": included,
            "tokens": piece.tokens,
            "original_tokens": None if included == "full" else item.tokens,
            "content": piece.text,
        }
    )


def _frame(order: Order) -> ContextPackage:
    """Return the package without items at its maximum size, so that its cost depends neither on the result nor on the clock."""
    metadata = PackageMetadata(
        version=order.version,
        assembled_at=_ANY_TIME,
        assembled_for=order.agent,
        task_id=order.task_id,
        total_tokens=max(order.budget, 0),
        token_budget=order.budget,
        counter=order.counter.name,
        error_band=order.counter.band,
    )
    return ContextPackage(
        metadata=metadata,
        project_context=dict(order.project_context),
        task_context=dict(order.task_context),
        missing=[MissingItem(source=source, name=name) for source, name in sorted(set(order.missing))],
        held=sorted(order.held, key=lambda one: (one.source, one.name, one.type, one.id)),
    )


def _finish(package: ContextPackage, total: int, time: str) -> ContextPackage:
    metadata = package.metadata.model_copy(update={"total_tokens": total, "assembled_at": time})
    return package.model_copy(update={"metadata": metadata})


def _warned_cost(order: Order, frame: ContextPackage, warnings: Sequence[str]) -> int:
    """Return the tokens that warnings add to the frame."""
    if not warnings:
        return 0
    warned = frame.model_copy(update={"warnings": list(warnings)})
    return frame_cost(warned, order.counter) - frame_cost(frame, order.counter)


def _fit_warnings(warnings: Sequence[str], order: Order, frame: ContextPackage, room: int) -> list[str]:
    """Return the warnings that fit. If some do not, the last one gives their number."""
    if _warned_cost(order, frame, warnings) <= room:
        return list(warnings)
    low, high = 0, len(warnings) - 1
    while low < high:
        middle = (low + high + 1) // 2
        shorter = [*warnings[:middle], _summary_warning(len(warnings) - middle)]
        low, high = (middle, high) if _warned_cost(order, frame, shorter) <= room else (low, middle - 1)
    return [*warnings[:low], _summary_warning(len(warnings) - low)]


def _summary_warning(count: int) -> str:
    return f"{count:,} more items were masked, shortened or left out"


_MASKED = lazy_pattern(r"\[masked:([a-z0-9-]{1,40})\]")


def masked_warning(item: PackageItem) -> str | None:
    """Return the warning that an item has masked secrets, with their kinds, or None if it has none."""
    kinds = list(dict.fromkeys(_MASKED.findall(item.content)))
    if not kinds:
        return None
    name = f"{item.source}/{item.name}"
    whole = f"; 'ctxmgr artifact get {name}' shows it as it was put" if item.type == "artifact" else ""
    return f"{name} holds what looks like a secret, which is masked ({', '.join(kinds[:5])}){whole}"


def _warning(made: Decision) -> str | None:
    name = f"{made.source}/{made.name}"
    if made.need == "required":
        return f"{name}: {made.reason}" if made.max_tokens is not None and made.tokens > made.max_tokens else None
    if made.got == "truncated":
        return f"{name} truncated from {made.asked_tokens:,} tokens: {made.reason}"
    return f"{name} summarised: {made.reason}" if made.got == "summary" and made.asked == "full" else None


def _omission(made: Decision) -> str | None:
    return None if made.rule == "duplicate" else f"{made.source}/{made.name} left out: {made.reason}"


def _budget_table(order: Order, head: int, warning_cost: int, plan: BudgetPlan) -> list[BudgetRow]:
    """Return the use of the budget as rows that add up to it."""
    rows = [
        BudgetRow(name="reserved for the prompt", tokens=order.set_aside.prompt),
        BudgetRow(name="project and task context", tokens=head),
    ]
    names = {"full": "in full", "summary": "as summaries", "truncated": "truncated"}
    for needs, title in ((("required",), "required"), (("optional", "if_exists"), "optional"), (("reference",), "references")):
        for got, how in names.items():
            costs = [made.cost for *_, made in plan.placed if made.need in needs and made.got == got]
            if costs:
                rows.append(BudgetRow(name=f"{title}, {how}", tokens=sum(costs), items=len(costs)))
    rows.append(BudgetRow(name="left out", tokens=0, items=sum(made.rule != "duplicate" for made in plan.omitted)))
    rows.append(BudgetRow(name="warnings", tokens=warning_cost))
    used = sum(row.tokens for row in rows)
    return [*rows, BudgetRow(name="left", tokens=order.budget - used)]
