"""Write a package as YAML or JSON, record it in the history, and read such records back.

A text becomes a literal block if YAML can hold it unchanged there, otherwise it is quoted with escapes. All strings except the
plainest keys are quoted, so that YAML 1.1 and 1.2 read them in the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from ctxmgr.context.summaries.structured_data import WORDS_OF_YAML
from ctxmgr.log.codec import Record, fingerprint
from ctxmgr.log.fast_json import json_array, json_object, json_objects, text_or_none
from ctxmgr.log.ids import new_id
from ctxmgr.log.json_value import plain
from ctxmgr.store import Store
from ctxmgr.store.project_session import PACKAGE, PROJECT
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.text.tokens import JSON, YAML, Counter
from ctxmgr.types.base import Shape
from ctxmgr.types.context_package import Assembly, ContextPackage, Decision, HeldItem, Included, PackageItem
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


Marks = dict[tuple[str, str], tuple[Included, str | None]]

MAX_OMITTED = 20_000
"""Maximum number of omitted items that a record lists."""


@dataclass(frozen=True, slots=True)
class RecordedPackage:
    """A package as read from its record.

    Attributes:
        marks: (type, id) -> what the agent holds of each item (``full``, ``summary`` or ``truncated``) and the fingerprint of
            that text; None for an artifact in full, whose id changes with its content.
        context: the keys of the project's context.
        task: whether the package had a task context.
    """

    id: str
    agent: str
    at: str | None
    decisions: list[Decision]
    held: list[HeldItem]
    marks: Marks
    context: list[str]
    task: bool

    def origins(self) -> dict[tuple[str, str], str]:
        """Return (type, id) -> the package that gave an item, for items to which this one only refers."""
        return {(one.type, one.id): one.package for one in self.held}


def package_record(assembly: Assembly, by: str, texts: dict[tuple[str, str], str], before: Marks) -> Record:
    """Return the record of a package.

    Args:
        assembly: the package with its decisions.
        by: who made it.
        texts: (type, id) -> the whole content of its history items.
        before: the marks of the package before, for what the agent holds in part.
    """
    package = assembly.package
    meta = package.metadata
    marks: dict[tuple[str, str], str | None] = {key: content_fingerprint(text) for key, text in texts.items()}
    marks |= {(one.type, one.id): before[one.type, one.id][1] for one in package.held if one.included != "full"}
    marks |= {(one.type, one.id): content_fingerprint(one.content) for one in package.artifacts if one.included != "full"}
    included = [_make_row(made, marks) for made in assembly.decisions if made.got != "omitted"]
    omitted = [_make_row(made, marks) for made in assembly.decisions if made.got == "omitted"]
    data = {
        "agent": meta.assembled_for, "task": meta.task_id, "version": meta.version, "digest": package.digest,
        "counter": meta.counter, "totalTokens": meta.total_tokens, "tokenBudget": meta.token_budget, "items": included,
        "omitted": omitted[:MAX_OMITTED], "omittedCount": len(omitted),
        "held": [_make_row(one, marks) for one in package.held],
        "missing": [one.to_json() for one in package.missing], "budget": [row.to_json() for row in assembly.budget],
        "context": list(package.project_context), "taskContext": bool(package.task_context), "by": by,
    }  # fmt: skip
    return build("event", PROJECT, meta.assembled_at, id=new_id(), type=PACKAGE, agent=by, data=data)


def read_record(record: Record) -> RecordedPackage:
    """Parse the record of a package."""
    data = json_object(record.get("data"))
    decisions: list[Decision] = []
    marks: Marks = {}
    for made, mark in (*_valid_rows(Decision, data.get("items")), *_valid_rows(Decision, data.get("omitted"))):
        decisions.append(made)
        if made.got != "omitted":
            marks[made.type, made.id] = made.got, mark
    held: list[HeldItem] = []
    for one, mark in _valid_rows(HeldItem, data.get("held")):
        held.append(one)
        marks.setdefault((one.type, one.id), (one.included, mark))
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


def _make_row(made: Decision | HeldItem, marks: dict[tuple[str, str], str | None]) -> dict[str, Any]:
    return {**made.to_json(), "mark": marks.get((made.type, made.id))}


def _valid_rows(shape: type[_Shape], value: object) -> Iterator[tuple[_Shape, str | None]]:
    """Yield the valid rows of a record with their marks. Others are skipped, because anybody may have written the history."""
    for row in json_objects(value):
        with suppress(ValueError):
            own = {name: given for name, given in row.items() if name != "mark"}
            yield shape.model_validate(own), text_or_none(row.get("mark"))
