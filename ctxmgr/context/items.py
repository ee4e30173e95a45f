"""The items of a package: parse their names, and write records of the history as YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, cast

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import check_agent, check_owner, is_unnameable, parse_pattern, quote_name
from ctxmgr.access.project_state import list_executions
from ctxmgr.access.rules import Rules
from ctxmgr.context.packages import block, mapping_lines
from ctxmgr.errors import CtxmgrError, InvalidInput, NoHistory, NotFound, OutOfBounds
from ctxmgr.history.query.address import find_named_entry, session_key
from ctxmgr.log.codec import Record
from ctxmgr.log.json_value import plain
from ctxmgr.store import Store
from ctxmgr.store.project_session import EXECUTION
from ctxmgr.store.repositories.queries import find_record
from ctxmgr.store.repositories.shared_state import ARTIFACT_ID, ArtifactRow
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.access import Asked, ResourceType
from ctxmgr.types.goal import GoalSource
from ctxmgr.types.project_state import Execution, ListExecutionsRequest
from ctxmgr.types.query import Filters
from ctxmgr.types.view import EntryView

Form = Literal["owner", "artifact", "id", "context", "record"]
Context = Literal["project_context", "task_context", "error_context", "execution_history", "goal_context"]

CONTEXTS = ("project_context", "task_context", "error_context", "execution_history", "goal_context")
RECORDS = ("entry", "snapshot", "continuation")
FORMS = (
    "use AGENT/*, AGENT/NAME, the id of an artifact, project_context, task_context, error_context, execution_history, "
    "goal_context, entry:SESSION@42, entry:ID, snapshot:ID or continuation:ID"
)
_MAX_NAME_LENGTH = 1_024


@dataclass(frozen=True, slots=True)
class ItemName:
    """The parsed name of an item.

    Attributes:
        text: the name as written.
        form: all artifacts of an owner, one artifact by owner and name or by id, a context, or a record.
        source: the owner; for a context or a record, its kind.
        name: name of the artifact; for a record, its id or address.
    """

    text: str
    form: Form
    source: str
    name: str


def parse_item_name(text: str) -> ItemName:
    """Parse the name of an item.

    Raises:
        InvalidInput: the name has no known form.
    """
    if text in CONTEXTS:
        return ItemName(text, "context", text, text)
    kind, colon, identity = text.partition(":")
    if colon and kind in RECORDS:
        if not identity.strip() or len(text) > _MAX_NAME_LENGTH or is_unnameable(text):
            raise InvalidInput(f"{quote_name(text)} names no {kind}", FORMS)
        return ItemName(text, "record", kind, identity)
    if ARTIFACT_ID.fullmatch(text):
        return ItemName(text, "id", "", text)
    try:
        pattern = parse_pattern(text)
    except InvalidInput as error:
        raise InvalidInput(error.message, FORMS) from None
    if pattern.form not in ("agent", "exact"):
        raise InvalidInput(f"{quote_name(text)} names no owner of artifacts", FORMS)
    if pattern.form == "agent":
        return ItemName(text, "owner", check_owner(pattern.agent), "*")
    return ItemName(text, "artifact", pattern.agent, pattern.name)


_PLAIN_KEY = lazy_pattern(r"(?!(?:true|false|null|yes|no|on|off|y|n)$)[A-Za-z_][A-Za-z0-9_]{0,40}", re.ASCII | re.IGNORECASE)
_LOG_FIELDS = ("v", "kind", "sum")
_MAX_DEPTH = 6


def write_yaml(fields: Mapping[str, Any], indent: int = 0) -> str:
    """Return the fields that are not None as YAML. Texts of several lines, also in nested maps, become literal blocks."""
    return "".join(_write_field(key, value, indent) for key, value in fields.items() if value is not None)


def list_yaml(rows: Iterable[Mapping[str, Any]], indent: int = 0) -> str:
    """Return rows as a YAML list."""
    margin = " " * indent
    return "".join(f"{margin}- {write_yaml(row, indent + 2)[indent + 2 :]}" for row in rows)


def _write_field(key: str, value: Any, indent: int) -> str:
    if _PLAIN_KEY.fullmatch(key) is not None:
        if isinstance(value, str) and "\n" in value:
            return block(key, value, indent)
        # Deeper maps are written on one line, because recorded JSON may be nested without limit.
        if isinstance(value, dict) and value and indent < 2 * _MAX_DEPTH:
            inside = cast("dict[str, Any]", value).items()
            return f"{' ' * indent}{key}:\n" + "".join(_write_field(name, part, indent + 2) for name, part in inside)
    return "\n".join(mapping_lines({key: plain(cast("object", value))}, indent)) + "\n"


def entry_fields(entry: EntryView) -> dict[str, Any]:
    """Return the fields of an entry that a package contains, ``ts`` as ``at``; an input or output names no artifact by id."""
    return {
        "id": entry.id, "session": entry.session, "index": entry.index, "at": entry.ts, "agent": entry.agent,
        "action": entry.action, "task": entry.task, "input_type": entry.input_type, "status": entry.status,
        "error": entry.error,
        "input": _no_artifact_ids(entry, entry.input), "output": _no_artifact_ids(entry, entry.output),
    }  # fmt: skip


def goal_fields(source: GoalSource) -> dict[str, Any]:
    """Return the fields of a goal's state that a package contains, from ``goal`` to ``open``; a list without items is None."""
    probes = {each.name: "not asked" if each.ok is None else each.ok for each in source.probe_state}
    return {
        "goal": source.goal, "status": source.status, "percent": source.percent, "task": source.task,
        "subtask": source.subtask, "attempt": source.attempt, "next_step": source.next_step, "next": source.next,
        "blocked": source.blocked or None, "in_flight": source.in_flight or None, "probes": probes or None,
        "done": source.done or None, "open": source.open or None,
    }  # fmt: skip


def failure_fields(entry: EntryView) -> dict[str, Any]:
    """Return the fields of a failed entry that a package contains: whose call it was, its error and its input."""
    return {
        "id": entry.id, "session": entry.session, "at": entry.ts, "agent": entry.agent, "action": entry.action,
        "task": entry.task,
        "error": entry.error if entry.error is not None else entry.status,
        "input": _no_artifact_ids(entry, entry.input),
    }  # fmt: skip


def _no_artifact_ids(entry: EntryView, value: Any) -> Any:
    """Return an input or output. For a run, remove the ids of artifacts, which may be hidden from the reader."""
    if entry.action == EXECUTION and isinstance(value, dict):
        return {name: part for name, part in cast("dict[str, Any]", value).items() if name != "artifacts"}
    return value


def execution_fields(run: Execution) -> dict[str, Any]:
    """Return the fields of a run that a package contains, {name: value}; empty lists and its place in the log are left out."""
    fields = run.model_dump(by_alias=False, exclude_none=True)
    return {key: value for key, value in fields.items() if value != [] and key not in ("session", "index")}


def record_fields(record: Record) -> dict[str, Any]:
    """Return a record without the fields that only a log needs."""
    return {key: value for key, value in record.items() if key not in _LOG_FIELDS}


class Readers(AccessGuard):
    """Checks whether both the package's agent and the asker may read a resource.

    If the operator makes a package for an agent, the agent's rules decide. In a store without rules, everything is allowed.

    Args:
        store: the whole store.
        recipient: the agent that gets the package.
        asker: access checks for the asker.
        visible: the history as the asker sees it.

    Attributes:
        agent: the recipient, or None if everything may be read.
        recipient: the agent that gets the package, whatever the rules.
        store: the whole store.
        asker: access checks for the asker.

    Raises:
        InvalidInput: the recipient's name is invalid.
    """

    def __init__(self, store: Store, recipient: str, asker: AccessGuard, visible: Store) -> None:
        self.recipient = check_agent(recipient)
        unruled = asker.agent is None and not len(asker.rules)
        super().__init__(store, None if unruled else recipient, asker.rules)
        self.store = store
        self.asker = asker
        self._visible = visible
        self._recipient_history: Store | None = None

    def may(self, permission: Asked, resource_type: ResourceType, owner: str, name: str) -> bool:
        """Whether both may read or write this resource."""
        return super().may(permission, resource_type, owner, name) and self.asker.may(permission, resource_type, owner, name)

    def histories(self) -> list[Store]:
        """Return the history as each reader sees it, the recipient's first. A record must be in all of them."""
        # Without rules, or if both readers are the same, one view of the history is enough.
        if self.agent is None or self.asker.agent == self.agent:
            return [self._visible]
        if self._recipient_history is None:
            from ctxmgr.history.query.filtered_store import FilteredStore

            self._recipient_history = FilteredStore(self.store, self.agent, self.rules)
        return [self._recipient_history] if self.asker.agent is None else [self._recipient_history, self._visible]

    def reader(self) -> AccessGuard:
        """Return the guard for logging reads: the asking agent's, else the recipient's."""
        return self.asker if self.asker.agent is not None else AccessGuard(self.store, self.agent, self.rules)

    def without_rules(self) -> Readers:
        """Return readers who may read everything, for answers to the operator."""
        return Readers(self.store, self.recipient, AccessGuard(self.store, None, Rules()), self.store)

    def close(self) -> None:
        """Close the recipient's view of the history. The store itself stays open."""
        if self._recipient_history is not None:
            with suppress(CtxmgrError):
                self._recipient_history.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


_MAX_COMPARED = 5_000  # names that difflib compares with the requested one
_MAX_SUGGESTED = 3


class VisibleArtifacts:
    """Looks up readable artifacts in a version, by default the current one.

    Attributes:
        version: number of the version; None if there is none yet.
        denied: (owner, name) of named artifacts that may not be read; a dict used as an ordered set.
        hidden: number of other artifacts that may not be read.

    Raises:
        NotFound: the version does not exist, or was pruned.
    """

    def __init__(self, audience: Readers, version: int | None) -> None:
        self._audience = audience
        self._artifacts = audience.store.artifacts
        if version is not None:
            row = self._artifacts.version(version)
            if row is None or row.pruned is not None:
                raise NotFound(f"no version {version}", "'ctxmgr version list' shows them")
        self.version = self._artifacts.current() if version is None else version
        self.denied: dict[tuple[str, str], None] = {}
        self.hidden = 0
        self._known: dict[tuple[str, str], ArtifactRow | None] = {}

    def list_by_owner(self, owner: str) -> list[ArtifactRow]:
        """Return the artifacts of an owner, ordered by name."""
        rows = [] if self.version is None else self._artifacts.state(self.version, owner)
        self._known.update({(row.agent, row.name): row for row in rows})
        readable = [row for row in rows if self._audience.reads(row.agent, row.name)]
        self.hidden += len(rows) - len(readable)
        return readable

    def find(self, owner: str, name: str) -> ArtifactRow | None:
        """Return a named artifact, or None if it does not exist or may not be read."""
        if not self._audience.reads(owner, name):
            self.denied[owner, name] = None
            return None
        return self._row(owner, name)

    def find_dependency(self, owner: str, name: str) -> ArtifactRow | None:
        """Return a dependency of an artifact, or None if it does not exist or may not be read."""
        if not self._audience.reads(owner, name):
            # Counted without its name: the caller did not name it, so it must not learn that it exists (ruling 16).
            self.hidden += 1
            return None
        return self._row(owner, name)

    def by_id(self, identity: str) -> ArtifactRow | None:
        """Return an artifact of any version by its id, or None if it does not exist or may not be read."""
        row = self._artifacts.by_id(identity)
        if row is not None and not self._audience.reads(row.agent, row.name):
            self.denied[row.agent, row.name] = None
            return None
        return row

    def suggestions(self, named: ItemName) -> list[str]:
        """Return up to three readable names that are similar to a missing one."""
        if self.version is None or named.form != "artifact":
            return []
        from difflib import get_close_matches

        own = self.list_by_owner(named.source)
        # Names of the owner come first, because a wrong name is more likely than a wrong owner.
        every = own if len(own) >= _MAX_COMPARED else [*own, *self._artifacts.state(self.version)]
        names = dict.fromkeys(f"{row.agent}/{row.name}" for row in every if self._audience.reads(row.agent, row.name))
        return get_close_matches(named.text, list(names)[:_MAX_COMPARED], n=_MAX_SUGGESTED)

    def _row(self, owner: str, name: str) -> ArtifactRow | None:
        if (owner, name) not in self._known:
            self._known[owner, name] = None if self.version is None else self._artifacts.find(owner, name, self.version)
        return self._known[owner, name]


LATEST = 20
"""Maximum number of failures, or of runs, in a package."""

_MAX_SEARCHED = 2_000
_ADDRESS = lazy_pattern(r"(.*)@(-?[0-9]{1,15}|last)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HistoryItem:
    """A part of the history as an item of a package. ``text`` is YAML."""

    id: str
    type: str
    source: str
    name: str
    text: str


def record_item(audience: Readers, named: ItemName) -> HistoryItem | None:
    """Return an entry, a snapshot with its entries, or a continuation; None if it does not exist or may not be read.

    Raises:
        InvalidInput: the id is ambiguous.
    """
    first, *others = audience.histories()
    if named.source == "entry":
        entry = find_entry(first, named.name)
        if entry is None or not all(_has(other, entry) for other in others):
            return None
        return HistoryItem(entry.id, "entry", entry.agent, f"{entry.session}@{entry.index}", write_yaml(entry_fields(entry)))
    record = find_record(first.engine, named.source, named.name)
    # If it is hidden from one reader, it is missing for both (ruling 16).
    if record is None or any(find_record(other.engine, named.source, str(record["id"])) is None for other in others):
        return None
    identity, session = str(record["id"]), str(record["session"])
    if named.source == "continuation":
        return HistoryItem(identity, named.source, session, identity, write_yaml(record_fields(record)))
    return HistoryItem(identity, named.source, session, identity, _snapshot(first, session, identity))


def find_entry(store: Store, text: str) -> EntryView | None:
    """Return the entry at ``SESSION@42``, ``@-1`` or ``@last``, or with this id or prefix of an id.

    Raises:
        InvalidInput: the name matches several sessions or entries.
    """
    address = _ADDRESS.fullmatch(text)
    try:
        if address is not None:
            place = -1 if address[2] == "last" else int(address[2])
            return find_named_entry(store, session_key(store, address[1] or None), place, None)
        record = find_record(store.engine, "entry", text)
        key = None if record is None else store.sessions.key(str(record["session"]))
        return None if record is None or key is None else store.queries.entry_by_id(key, str(record["id"]))
    except (NotFound, NoHistory, OutOfBounds):
        return None


def is_address(text: str) -> bool:
    """Whether a text names an entry by its address, which may later mean another entry (``@last``)."""
    return _ADDRESS.fullmatch(text) is not None


def failures(audience: Readers, task: str | None) -> str | None:
    """Return the latest failures as YAML: those of the task, or without a task the agent's, else all readable ones."""
    history = audience.histories()[0]
    if task is not None:
        rows = _failed_entries(history, audience, None, task)
    else:
        rows = _failed_entries(history, audience, audience.recipient, None) or _failed_entries(history, audience, None, None)
    return list_yaml(map(failure_fields, rows)) if rows else None


def _failed_entries(history: Store, audience: Readers, agent: str | None, task: str | None) -> list[EntryView]:
    # Denied calls are decisions by a person or a rule, not failures to learn from.
    filters = Filters(status=["error", "interrupted"], agent=[] if agent is None else [agent])
    places = history.queries.hits(None, filters, "entry")[-_MAX_SEARCHED:]
    found: list[EntryView] = []
    # In portions from the end, because the first portion is usually enough.
    for start in range(len(places), 0, -4 * LATEST):
        rows = history.queries.rows(places[max(start - 4 * LATEST, 0) : start])
        for row in reversed(rows):
            # Filters compare folded names, but names of agents must match exactly (ruling 15).
            if not isinstance(row, EntryView) or (agent is not None and row.agent != agent):
                continue
            if (task is None or row.task == task) and audience.may("read", "history", row.agent, row.session):
                found.append(row)
                if len(found) == LATEST:
                    return found
    return found


def runs(audience: Readers, task: str | None) -> list[dict[str, Any]]:
    """Return the fields of the latest readable runs, newest first; with ``task``, only those of the task."""
    history = audience.histories()[0]
    found = list_executions(audience.store, history, audience, ListExecutionsRequest(task=task, limit=LATEST)).executions
    return [execution_fields(run) for run in found if audience.may("read", "history", run.agent, run.session)]


def _snapshot(store: Store, session: str, identity: str) -> str:
    key = store.sessions.key(session)
    view = None if key is None else store.annotations.snapshot(key, identity)
    if key is None or view is None:
        return ""
    fields = {
        "id": view.id, "session": view.session, "at": view.ts, "summary": view.summary,
        "reasoning": view.reasoning or None, "missing": view.missing or None,
    }  # fmt: skip
    entries = [entry_fields(entry) for entry in _entries(store, key, view.indexes)]
    return write_yaml(fields) + ("entries:\n" + list_yaml(entries, 2) if entries else "")


def _entries(store: Store, key: int, indexes: list[int]) -> Iterator[EntryView]:
    for index in indexes:
        entry = store.queries.find_entry(key, index)
        if entry is not None:
            yield entry


def _has(store: Store, entry: EntryView) -> bool:
    key = store.sessions.key(entry.session)
    return key is not None and store.queries.entry_by_id(key, entry.id) is not None
