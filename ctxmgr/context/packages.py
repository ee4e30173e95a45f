"""Write a package as YAML or JSON, record it in the history, and read such records back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from ctxmgr.log.codec import Record, fingerprint
from ctxmgr.log.ids import new_id
from ctxmgr.log.json_value import plain
from ctxmgr.store import Store
from ctxmgr.store.reserved import PACKAGE, PROJECT
from ctxmgr.text.content_kind import JSON, YAML
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.tokens import Counter
from ctxmgr.text.yaml_writer import block, flow, mapping, quoted
from ctxmgr.types.context_package import Assembly, ContextPackage, Decision, HeldItem, PackageItem
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Filters

Format = Literal["yaml", "json"]

_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def render(package: ContextPackage, form: Format = "yaml") -> str:
    """Return the package as text in UTF-8's reach, ending with a line end."""
    return _yaml(package) if form == "yaml" else _json(package) + "\n"


def item_cost(item: PackageItem, counter: Counter) -> int:
    """Return the tokens that an item takes with its framing, in the format in which it takes more."""
    written = (_yaml_item(item), _dumped(item.to_json()) + ",")
    return max(counter.count(text, item.kind) for text in written)


def frame_cost(package: ContextPackage, counter: Counter) -> int:
    """Return the tokens that a package takes besides its items, in the format in which that is more."""
    bare = package.model_copy(update={"artifacts": []})
    return max(counter.count(_yaml(bare), YAML), counter.count(_json(bare) + "\n", JSON))


def whole_cost(package: ContextPackage, counter: Counter) -> int:
    """Return the tokens of the package counted as one text at the rate of prose, in the format in which that is more."""
    return max(counter.count(render(package, form), "text") for form in ("yaml", "json"))


def _yaml(package: ContextPackage) -> str:
    metadata = {key: value for key, value in package.metadata.model_dump(by_alias=False).items() if value is not None}
    head: dict[str, Any] = {"metadata": metadata}
    for name, values in (("project_context", package.project_context), ("task_context", package.task_context)):
        if values:
            head[name] = plain(values)
    text = "\n".join(["context_package:", *mapping(head, 2)]) + "\n"
    text += "  artifacts:\n" if package.artifacts else "  artifacts: []\n"
    text += "".join(_yaml_item(item) for item in package.artifacts)
    if package.held:
        refer = (one.model_dump(by_alias=False, exclude_none=True) for one in package.held)
        text += "  held:\n" + "".join(f"  - {flow(one)}\n" for one in refer)
    if package.warnings:
        text += "  warnings:\n" + "".join(f"  - {quoted(warning)}\n" for warning in package.warnings)
    if package.missing:
        named = ({"source": one.source, "name": one.name} for one in package.missing)
        text += "  missing:\n" + "".join(f"  - {flow(one)}\n" for one in named)
    return text


def _yaml_item(item: PackageItem) -> str:
    fields = item.model_dump(by_alias=False, exclude={"content"}, exclude_none=True)
    lines = list(mapping(fields, 4))
    lines[0] = "  - " + lines[0].removeprefix("    ")
    return "\n".join(lines) + "\n" + block("content", item.content, 4)


def _json(package: ContextPackage) -> str:
    values = package.to_json()
    for name in ("projectContext", "taskContext"):
        values[name] = plain(values[name])
    return _dumped(values)


def _dumped(values: object) -> str:
    """Return compact JSON; lone surrogates, which no UTF-8 can hold, as escapes."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


MAX_OMITTED = 20_000
"""Items left out that a record names."""


@dataclass(frozen=True, slots=True)
class RecordedPackage:
    """A package as its record tells of it.

    Attributes:
        marks: of each item that was given in full, (type, id) -> the mark of its content; artifacts need none, as another
            content of theirs has another id.
        context: the keys of the project's context, and whether there was one of the task.
    """

    id: str
    agent: str
    at: str | None
    decisions: list[Decision]
    held: list[HeldItem]
    marks: dict[tuple[str, str], str | None]
    context: list[str]
    task: bool


def record_of(assembly: Assembly, by: str, texts: dict[tuple[str, str], str]) -> Record:
    """Return the record of a package; ``texts`` are those of the items that are parts of the history."""
    package = assembly.package
    meta = package.metadata
    given = [_row(made, texts) for made in assembly.decisions if made.got != "omitted"]
    omitted = [_row(made, texts) for made in assembly.decisions if made.got == "omitted"]
    data = {
        "agent": meta.assembled_for, "task": meta.task_id, "version": meta.version, "digest": package.digest,
        "counter": meta.counter, "totalTokens": meta.total_tokens, "tokenBudget": meta.token_budget, "items": given,
        "omitted": omitted[:MAX_OMITTED], "omittedCount": len(omitted),
        "held": [{**one.to_json(), "mark": _mark(one.type, one.id, texts)} for one in package.held],
        "missing": [one.to_json() for one in package.missing], "budget": [row.to_json() for row in assembly.budget],
        "context": list(package.project_context), "taskContext": bool(package.task_context), "by": by,
    }  # fmt: skip
    return build("event", PROJECT, meta.assembled_at, id=new_id(), type=PACKAGE, agent=by, data=data)


def read_record(record: Record) -> RecordedPackage:
    """Return what a record tells; rows that are no decisions are passed over."""
    data = _dict(record.get("data"))
    decisions: list[Decision] = []
    marks: dict[tuple[str, str], str | None] = {}
    for row in [*_rows(data.get("items")), *_rows(data.get("omitted"))]:
        mark = row.pop("mark", None)
        try:
            made = Decision.model_validate(row)
        except ValueError:
            continue
        decisions.append(made)
        if made.got == "full":
            marks[made.type, made.id] = mark if isinstance(mark, str) else None
    held: list[HeldItem] = []
    for row in _rows(data.get("held")):
        mark = row.pop("mark", None)
        try:
            one = HeldItem.model_validate(row)
        except ValueError:
            continue
        held.append(one)
        marks.setdefault((one.type, one.id), mark if isinstance(mark, str) else None)
    moment, keys = record.get("ts"), data.get("context")
    return RecordedPackage(
        id=str(record.get("id")), agent=str(data.get("agent")), at=moment if isinstance(moment, str) else None,
        decisions=decisions, held=held, marks=marks, task=data.get("taskContext") is True,
        context=[str(key) for key in cast("list[object]", keys)] if isinstance(keys, list) else [],
    )  # fmt: skip


def last_held(store: Store, agent: str) -> RecordedPackage | None:
    """Return the agent's last package, or None where it has none or its context was compacted since: it holds nothing then.

    A compaction that names no agent is one of its whole session, and counts for those that acted in it.
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
    for hit in reversed(hits):
        if store.queries.rows([hit])[0].id == identity:
            return hit[0]
    return 0


def mark_of(text: str) -> str:
    """Return what tells one content from another."""
    return fingerprint(text)


def _mark(kept_as: str, identity: str, texts: dict[tuple[str, str], str]) -> str | None:
    text = texts.get((kept_as, identity))
    return None if text is None else mark_of(text)


def _row(made: Decision, texts: dict[tuple[str, str], str]) -> dict[str, Any]:
    return {**made.to_json(), "mark": _mark(made.type, made.id, texts)}


def _rows(value: object) -> Iterator[dict[str, Any]]:
    for item in cast("Sequence[object]", value) if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield dict(cast("dict[str, Any]", item))


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
