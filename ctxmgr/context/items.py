"""The items of a package: their names, and records of the history as their YAML text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ctxmgr.access.patterns import check_owner, is_unnameable, parse_pattern, quoted
from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import Record
from ctxmgr.log.json_value import plain
from ctxmgr.store.repositories.artifacts import ARTIFACT_ID
from ctxmgr.store.reserved import EXECUTION
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.text.yaml_writer import block, mapping
from ctxmgr.types.context_package import Execution
from ctxmgr.types.goal import GoalSource
from ctxmgr.types.view import EntryView

Form = Literal["owner", "artifact", "id", "context", "record"]
Context = Literal["project_context", "task_context", "error_context", "execution_history", "goal_context"]
RecordType = Literal["entry", "snapshot", "continuation"]

CONTEXTS = ("project_context", "task_context", "error_context", "execution_history", "goal_context")
RECORDS = ("entry", "snapshot", "continuation")
FORMS = (
    "use AGENT/*, AGENT/NAME, the id of an artifact, project_context, task_context, error_context, execution_history, "
    "goal_context, entry:SESSION@42, entry:ID, snapshot:ID or continuation:ID"
)
_MAX_NAME_LENGTH = 1_024


@dataclass(frozen=True, slots=True)
class ItemName:
    """Something that was named.

    Attributes:
        text: as it was written.
        form: all artifacts of an owner, one artifact by its owner and name or by its id, a context, or a record.
        source: the owner; of a context or record what kind it is.
        name: of the artifact; of a record what identifies it.
    """

    text: str
    form: Form
    source: str
    name: str


def parse_named(text: str) -> ItemName:
    """Return what a text names.

    Raises:
        InvalidInput: it has none of the forms.
    """
    if text in CONTEXTS:
        return ItemName(text, "context", text, text)
    kind, colon, identity = text.partition(":")
    if colon and kind in RECORDS:
        if not identity.strip() or len(text) > _MAX_NAME_LENGTH or is_unnameable(text):
            raise InvalidInput(f"{quoted(text)} names no {kind}", FORMS)
        return ItemName(text, "record", kind, identity)
    if ARTIFACT_ID.fullmatch(text):
        return ItemName(text, "id", "", text)
    try:
        pattern = parse_pattern(text)
    except InvalidInput as error:
        raise InvalidInput(error.message, FORMS) from None
    if pattern.form not in ("agent", "exact"):
        raise InvalidInput(f"{quoted(text)} names no owner of artifacts", FORMS)
    if pattern.form == "agent":
        return ItemName(text, "owner", check_owner(pattern.agent), "*")
    return ItemName(text, "artifact", pattern.agent, pattern.name)


def as_context(named: ItemName) -> Context:
    """Return which context is named."""
    return cast("Context", named.source)


_PLAIN_KEY = lazy_pattern(r"(?!(?:true|false|null|yes|no|on|off|y|n)$)[A-Za-z_][A-Za-z0-9_]{0,40}", re.ASCII | re.IGNORECASE)
_UNSAID = ("v", "kind", "sum")
_DEEPEST = 6


def written(fields: Mapping[str, Any], indent: int = 0) -> str:
    """Return the fields that are not None as YAML; texts of several lines, in maps inside too, as literal blocks."""
    return "".join(_field(key, value, indent) for key, value in fields.items() if value is not None)


def listed(rows: Iterable[Mapping[str, Any]], indent: int = 0) -> str:
    """Return rows as a YAML list."""
    margin = " " * indent
    return "".join(f"{margin}- {written(row, indent + 2)[indent + 2 :]}" for row in rows)


def _field(key: str, value: Any, indent: int) -> str:
    if _PLAIN_KEY.fullmatch(key) is not None:
        if isinstance(value, str) and "\n" in value:
            return block(key, value, indent)
        if isinstance(value, dict) and value and indent < 2 * _DEEPEST:
            inside = cast("dict[str, Any]", value).items()
            return f"{' ' * indent}{key}:\n" + "".join(_field(name, part, indent + 2) for name, part in inside)
    return "\n".join(mapping({key: plain(cast("object", value))}, indent)) + "\n"


def entry_fields(entry: EntryView) -> dict[str, Any]:
    """Return what a package tells of an entry."""
    return {
        "id": entry.id, "session": entry.session, "index": entry.index, "at": entry.ts, "agent": entry.agent,
        "action": entry.action, "task": entry.task, "input_type": entry.input_type, "status": entry.status,
        "error": entry.error, "input": _given(entry, entry.input), "output": _given(entry, entry.output),
    }  # fmt: skip


def goal_fields(source: GoalSource) -> dict[str, Any]:
    """Return what a package tells of where a goal stands."""
    seen = {each.name: "not asked" if each.ok is None else each.ok for each in source.probe_state}
    return {
        "goal": source.goal, "status": source.status, "percent": source.percent, "task": source.task,
        "subtask": source.subtask, "attempt": source.attempt, "next_step": source.next_step, "next": source.next,
        "blocked": source.blocked or None, "in_flight": source.in_flight or None, "probes": seen or None,
        "done": source.done or None, "open": source.open or None,
    }  # fmt: skip


def failure_fields(entry: EntryView) -> dict[str, Any]:
    """Return what a package tells of something that failed."""
    return {
        "id": entry.id, "session": entry.session, "at": entry.ts, "agent": entry.agent, "action": entry.action,
        "task": entry.task,
        "error": entry.error if entry.error is not None else entry.status,
        "input": _given(entry, entry.input),
    }  # fmt: skip


def _given(entry: EntryView, value: Any) -> Any:
    """Return what went in or came out; of a run without the ids of artifacts, which not everybody may know."""
    if entry.action == EXECUTION and isinstance(value, dict):
        return {name: part for name, part in cast("dict[str, Any]", value).items() if name != "artifacts"}
    return value


def execution_fields(run: Execution) -> dict[str, Any]:
    """Return what a package tells of a run."""
    fields = run.model_dump(by_alias=False, exclude_none=True)
    return {key: value for key, value in fields.items() if value != [] and key not in ("session", "index")}


def record_fields(record: Record) -> dict[str, Any]:
    """Return a record without what only the log needs."""
    return {key: value for key, value in record.items() if key not in _UNSAID}
