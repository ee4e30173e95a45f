"""Write a package as YAML or JSON, record it in the history, and read such records back.

A text becomes a literal block if YAML can hold it unchanged there, otherwise it is quoted with escapes. All strings except the
plainest keys are quoted, so that YAML 1.1 and 1.2 read them in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, cast

from ctxmgr.context.budget import BudgetPlan, Item, Piece, Reserves, available, decide, usual_reserves
from ctxmgr.context.summaries import Summary
from ctxmgr.context.summaries.structured_data import WORDS_OF_YAML
from ctxmgr.errors import BudgetExceeded, InvalidInput
from ctxmgr.log.codec import Record, fingerprint
from ctxmgr.log.fast_json import json_array, json_object, json_objects, text_or_none
from ctxmgr.log.ids import new_id
from ctxmgr.log.json_value import plain
from ctxmgr.store import Store
from ctxmgr.store.project_session import PACKAGE, PROJECT
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.text.tokens import ESTIMATE, JSON, YAML, Counter
from ctxmgr.types.base import Shape
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
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Filters

_Shape = TypeVar("_Shape", bound=Shape)
_BARE_KEY = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_-]{0,60}", re.ASCII)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_UNSAFE = lazy_pattern(
    '[\x00-\x1f"\\\\\x7f-\xa0\u00ad\u0600-\u0605\u061c\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\ud800-\udfff\ufeff\ufff0-\uffff]'
    "|[\U000e0000-\U000e0fff]"
)
# Control characters and line breaks that a literal block can't hold or would change.
_NOT_LITERAL = lazy_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_MAX_KEY = 100  # a parser may refuse a simple key of more than 1,024 characters (YAML 1.2)
_MAX_BLOCK_DEPTH = 8


def quote_text(text: str) -> str:
    """Return the text in double quotes on one line, with escapes for all characters that are not plainly visible."""
    return '"' + _UNSAFE.sub(_escape, text) + '"'


def block(key: str, text: str, indent: int) -> str:
    """Return ``key: text`` with this indentation. The text is a literal block if that preserves it."""
    margin = " " * indent
    if not text.strip("\n") or _NOT_LITERAL.search(text) is not None:
        return f"{margin}{key}: {quote_text(text)}\n"
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    # A first line with leading blanks would change the block's indentation, so state the indentation.
    marker = "2" if body[0] in " \t\n" else ""
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    inner = margin + "  "
    lines = "\n".join(inner + line if line else "" for line in body.split("\n"))
    return f"{margin}{key}: |{marker}{chomping}\n{lines}\n" + "\n" * (ends - 1)


def mapping_lines(values: dict[str, Any], indent: int) -> Iterator[str]:
    """Yield the lines of a map with this indentation, without line ends. The values are plain JSON."""
    margin = " " * indent
    for key, value in values.items():
        opening = f"{margin}{_key(key)}:" if len(key) <= _MAX_KEY else f"{margin}? {quote_text(key)}\n{margin}:"
        yield from _member(opening, value, indent)


def _member(opening: str, value: object, indent: int) -> Iterator[str]:
    if isinstance(value, dict) and value and indent < 2 * _MAX_BLOCK_DEPTH:
        yield opening
        yield from mapping_lines(cast("dict[str, Any]", value), indent + 2)
    elif isinstance(value, list) and value and indent < 2 * _MAX_BLOCK_DEPTH:
        yield opening
        for item in cast("list[object]", value):
            yield f"{' ' * indent}- {flow(item)}"
    else:
        yield f"{opening} {flow(cast('object', value))}"


def flow(value: object) -> str:
    """Return a plain JSON value on one line."""
    if isinstance(value, str):
        return quote_text(value)
    if isinstance(value, dict):
        pairs = cast("dict[str, object]", value).items()
        return "{" + ", ".join(f"{_flow_key(key)}: {flow(inner)}" for key, inner in pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in cast("list[object]", value)) + "]"
    if isinstance(value, float):
        return _float(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    return str(value)


def _float(value: float) -> str:
    """Return the number with a point before its exponent, as YAML 1.1 requires."""
    text = repr(value)
    mantissa, sign, exponent = text.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}e{exponent}" if sign else text


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) and key.lower() not in WORDS_OF_YAML else quote_text(key)


def _flow_key(key: str) -> str:
    return quote_text(key) if len(key) <= _MAX_KEY else f"? {quote_text(key)} "


def _escape(found: re.Match[str]) -> str:
    sign = found.group()
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    code = ord(sign)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


Format = Literal["yaml", "json"]

_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def render(package: ContextPackage, form: Format = "yaml") -> str:
    """Return the package as text with a final line end and without lone surrogates."""
    return _yaml(package) if form == "yaml" else _json(package) + "\n"


def item_cost(item: PackageItem, counter: Counter) -> int:
    """Return the tokens of an item with its framing, in the longer of both formats, because the budget must hold for both."""
    written = (_yaml_item(item), _dump_json(item.to_json()) + ",")
    return max(counter.count(text, item.kind) for text in written)


def frame_cost(package: ContextPackage, counter: Counter) -> int:
    """Return the tokens of a package without its items, in the longer of both formats."""
    bare = package.model_copy(update={"artifacts": []})
    return max(counter.count(_yaml(bare), YAML), counter.count(_json(bare) + "\n", JSON))


def whole_cost(package: ContextPackage, counter: Counter) -> int:
    """Return the tokens of the package, counted as one text, in the longer of both formats."""
    return max(counter.count(render(package, form), "text") for form in ("yaml", "json"))


def _yaml(package: ContextPackage) -> str:
    metadata = {key: value for key, value in package.metadata.model_dump(by_alias=False).items() if value is not None}
    head: dict[str, Any] = {"metadata": metadata}
    for name, values in (("project_context", package.project_context), ("task_context", package.task_context)):
        if values:
            head[name] = plain(values)
    text = "\n".join(["context_package:", *mapping_lines(head, 2)]) + "\n"
    text += "  artifacts:\n" if package.artifacts else "  artifacts: []\n"
    text += "".join(_yaml_item(item) for item in package.artifacts)
    if package.held:
        refer = (one.model_dump(by_alias=False, exclude_none=True) for one in package.held)
        text += "  held:\n" + "".join(f"  - {flow(one)}\n" for one in refer)
    if package.warnings:
        text += "  warnings:\n" + "".join(f"  - {quote_text(warning)}\n" for warning in package.warnings)
    if package.missing:
        named = ({"source": one.source, "name": one.name} for one in package.missing)
        text += "  missing:\n" + "".join(f"  - {flow(one)}\n" for one in named)
    return text


def _yaml_item(item: PackageItem) -> str:
    fields = item.model_dump(by_alias=False, exclude={"content"}, exclude_none=True)
    lines = list(mapping_lines(fields, 4))
    lines[0] = "  - " + lines[0].removeprefix("    ")
    return "\n".join(lines) + "\n" + block("content", item.content, 4)


def _json(package: ContextPackage) -> str:
    values = package.to_json()
    for name in ("projectContext", "taskContext"):
        values[name] = plain(values[name])
    return _dump_json(values)


def _dump_json(values: object) -> str:
    """Return compact JSON with escapes for lone surrogates, which UTF-8 can't encode."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


MAX_OMITTED = 20_000
"""Maximum number of omitted items that a record lists."""


@dataclass(frozen=True, slots=True)
class RecordedPackage:
    """A package as read from its record.

    Attributes:
        marks: (type, id) -> fingerprint of the content of each item given in full; None for an artifact, whose id changes with
            its content.
        context: the keys of the project's context.
        task: whether the package had a task context.
    """

    id: str
    agent: str
    at: str | None
    decisions: list[Decision]
    held: list[HeldItem]
    marks: dict[tuple[str, str], str | None]
    context: list[str]
    task: bool


def package_record(assembly: Assembly, by: str, texts: dict[tuple[str, str], str]) -> Record:
    """Return the record of a package. ``texts`` maps (type, id) to the contents of its history items."""
    package = assembly.package
    meta = package.metadata
    included = [_make_row(made, texts) for made in assembly.decisions if made.got != "omitted"]
    omitted = [_make_row(made, texts) for made in assembly.decisions if made.got == "omitted"]
    data = {
        "agent": meta.assembled_for, "task": meta.task_id, "version": meta.version, "digest": package.digest,
        "counter": meta.counter, "totalTokens": meta.total_tokens, "tokenBudget": meta.token_budget, "items": included,
        "omitted": omitted[:MAX_OMITTED], "omittedCount": len(omitted),
        "held": [{**one.to_json(), "mark": _find_mark(one.type, one.id, texts)} for one in package.held],
        "missing": [one.to_json() for one in package.missing], "budget": [row.to_json() for row in assembly.budget],
        "context": list(package.project_context), "taskContext": bool(package.task_context), "by": by,
    }  # fmt: skip
    return build("event", PROJECT, meta.assembled_at, id=new_id(), type=PACKAGE, agent=by, data=data)


def read_record(record: Record) -> RecordedPackage:
    """Parse the record of a package."""
    data = json_object(record.get("data"))
    decisions: list[Decision] = []
    marks: dict[tuple[str, str], str | None] = {}
    for made, mark in (*_valid_rows(Decision, data.get("items")), *_valid_rows(Decision, data.get("omitted"))):
        decisions.append(made)
        # The agent holds only a part of a summary or a beginning, so such an item is given again.
        if made.got == "full":
            marks[made.type, made.id] = mark
    held: list[HeldItem] = []
    for one, mark in _valid_rows(HeldItem, data.get("held")):
        held.append(one)
        marks.setdefault((one.type, one.id), mark)
    return RecordedPackage(
        id=str(record.get("id")), agent=str(data.get("agent")), at=text_or_none(record.get("ts")),
        decisions=decisions, held=held, marks=marks, task=data.get("taskContext") is True,
        context=[str(key) for key in json_array(data.get("context"))],
    )  # fmt: skip


def last_package(store: Store, agent: str) -> RecordedPackage | None:
    """Return the agent's last package, or None if there is none or a later compaction removed it from the agent's context.

    A compaction without an agent affects its whole session, so it counts for all agents that acted in it.
    """
    record = store.shared.package(agent=agent)
    if record is None:
        return None
    place = _place(store, str(record.get("id")))
    compactions = store.queries.hits(None, Filters(event_type=["compaction"]), "event")
    for event in store.queries.rows([hit for hit in compactions if hit[0] > place]):
        if event.agent == agent:
            return None
        key = store.sessions.key(event.session) if event.agent is None else None
        if key is not None and agent in store.sessions.agents(key):
            return None
    return read_record(record)


def _place(store: Store, identity: str) -> int:
    key = store.sessions.key(PROJECT)
    hits = [] if key is None else store.queries.hits(key, Filters(event_type=[PACKAGE]), "event")
    # From the end, because the agent's latest package is the one to find.
    for hit in reversed(hits):
        if any(row.id == identity for row in store.queries.rows([hit])):
            return hit[0]
    return 0


def content_fingerprint(text: str) -> str:
    """Return the fingerprint of a content."""
    return fingerprint(text)


def _find_mark(kept_as: str, identity: str, texts: dict[tuple[str, str], str]) -> str | None:
    text = texts.get((kept_as, identity))
    return None if text is None else content_fingerprint(text)


def _make_row(made: Decision, texts: dict[tuple[str, str], str]) -> dict[str, Any]:
    return {**made.to_json(), "mark": _find_mark(made.type, made.id, texts)}


def _valid_rows(shape: type[_Shape], value: object) -> Iterator[tuple[_Shape, str | None]]:
    """Yield the valid rows of a record with their marks. Others are skipped, because anybody may have written the history."""
    for row in json_objects(value):
        with suppress(ValueError):
            own = {name: given for name, given in row.items() if name != "mark"}
            yield shape.model_validate(own), text_or_none(row.get("mark"))


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

    ``held`` are items that the agent already holds, ``notes`` are warnings known in advance. ``assembled_at`` is RFC 3339 with
    at most 32 characters; its length does not influence the decisions.
    """

    agent: str
    assembled_at: str
    budget: int
    items: Sequence[Item]
    texts: Texts
    counter: Counter = ESTIMATE
    reserves: Reserves | None = None
    version: int | None = None
    task_id: str | None = None
    project_context: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    task_context: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    missing: Sequence[tuple[str, str]] = ()
    held: Sequence[HeldItem] = ()
    notes: Sequence[str] = ()

    @property
    def set_aside(self) -> Reserves:
        """The chosen reserves, else the default ones for the budget."""
        return usual_reserves(self.budget) if self.reserves is None else self.reserves


def assemble(order: Order) -> Assembly:
    """Return the package, the decision on every item, and the budget table.

    Raises:
        InvalidInput: the budget is not positive, a reserve is negative, or the time is too long.
        BudgetExceeded: the reserves or the required items don't fit.
    """
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
    raise BudgetExceeded("the counter finds more tokens in the whole than in its parts", "give a larger budget")


def _pack(order: Order, frame: ContextPackage, head: int, room: int) -> Assembly:
    # Keep room for at least one warning, so that nothing is left out silently.
    least = _warned_cost(order, frame, [_summary_warning(10**9)]) if order.items or order.notes else 0
    if room < least:
        raise BudgetExceeded(
            f"the budget of {order.budget:,} tokens has {max(room, 0):,} left for items, which is too little for any",
            "give a larger budget, or smaller reserves",
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


class _CostProvider:
    """Provides the texts of items with their cost in the package, including the framing."""

    def __init__(self, order: Order) -> None:
        self._order = order

    def full(self, item: Item) -> Piece:
        return self._piece(item, self._order.texts.full(item), "full")

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
