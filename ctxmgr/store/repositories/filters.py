"""Translate the filters of a request to SQL conditions."""

from __future__ import annotations

from ctxmgr.errors import InvalidInput
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.row_mapper import placeholders
from ctxmgr.store.text_normalisation import fold, storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.types.query import Filters, RowKind

    Scope = tuple[str, str, dict[str, Any]]
    """A table, the conditions on its rows, and the values in these."""

OF_SESSION = "{}.session = :session"
"""Condition for the rows of one session in a table."""

ANY = "TRUE"
"""Condition for all rows."""


def limit_seconds(name: str, text: str | None) -> float | None:
    """Return a limit of a time range in seconds since 1970, or None if there is no limit.

    Raises:
        InvalidInput: the text is not a time.
    """
    if text is None:
        return None
    from ctxmgr.log.ids import parse_time

    moment = parse_time(text)
    if moment is None:
        raise InvalidInput(f"{name} {text!r} is not a time", "use RFC 3339, e.g. 2026-01-22T10:00:00Z")
    return moment


def _common_conditions(filters: Filters, table: str, key: int | None) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if key is not None:
        conditions.append(OF_SESSION.format(table))
        values["session"] = key
    for name, sign, text in (("since", ">=", filters.since), ("until", "<", filters.until)):
        if (moment := limit_seconds(name, text)) is not None:
            conditions.append(f"{table}.ts {sign} :{name}")
            values[name] = moment
    if filters.agent:
        names, bound = placeholders([fold(item) for item in filters.agent], "agent")
        conditions.append(f"{table}.agent IN ({names})")
        values |= bound
    return conditions, values


def _columns(filters: Filters) -> tuple[list[str], dict[str, Any]]:
    conditions: list[str] = []
    values: dict[str, Any] = {}
    for column, wanted in (("action", filters.action), ("input_type", filters.input_type), ("status", filters.status)):
        if wanted:
            names, bound = placeholders([fold(item) for item in wanted], column)
            conditions.append(f"entry.{column} IN ({names})")
            values |= bound
    return conditions, values


def _of_process(filters: Filters, table: str) -> tuple[list[str], dict[str, Any]]:
    """Return the condition for rows of the given processes, by exact id, or by prefix if no process has the exact id."""
    wanted = [storable(item) for item in filters.process or ()]
    if not wanted:
        return [], {}
    _, values = placeholders(wanted, "process")
    named: list[str] = []
    for name, text in list(values.items()):
        named.append(f"process.process = :{name}")
        # An empty name means the process without a name; it is not a prefix of all names.
        if text:
            # U+10FFFF is the last character, so every id with this prefix sorts before it.
            values[f"{name}end"] = f"{text}\U0010ffff"
            named.append(
                f"(process.process > :{name} AND process.process < :{name}end AND NOT EXISTS (SELECT 1 FROM process AS whole "
                f"WHERE whole.session = process.session AND whole.process = :{name}))"
            )
    known = f"(SELECT process.process FROM process WHERE process.session = {table}.session AND ({' OR '.join(named)}))"
    if table == "entry":
        return [f"entry.process IN {known}"], values
    return [
        "(EXISTS (SELECT 1 FROM record JOIN entry ON entry.seq = record.seq AND entry.session = record.session "
        "WHERE record.session = event.session "
        f"AND record.kind = 'entry' AND record.id = event.entry AND entry.process IN {known}) OR (SELECT "
        # An event without an entry names its process only in its record.
        "CASE WHEN json_valid(record.body) THEN json_extract(record.body, '$.process') END FROM record "
        f"WHERE record.seq = event.seq AND record.session = event.session) IN {known})"
    ], values


def event_condition(filters: Any) -> tuple[str, dict[str, Any]]:
    """Return the condition on events of a request for messages, and its values; `ANY` if the request has none."""
    conditions, values = _of_process(filters, "event")
    return " AND ".join(conditions) or ANY, values


def build_scopes(filters: Filters, kind: RowKind, key: int | None) -> list[Scope]:
    """Return (table, conditions, values) for each wanted kind of row."""
    scopes: list[Scope] = []
    if kind in ("entry", "all"):
        scopes.append(("entry", *entry_conditions(filters, key)))
    if kind in ("event", "all"):
        scopes.append(("event", *event_conditions(filters, key)))
    return scopes


def entry_conditions(filters: Filters, key: int | None) -> tuple[str, dict[str, Any]]:
    """Return the conditions on entries and their values."""
    conditions, values = _common_conditions(filters, "entry", key)
    more, bound = _columns(filters)
    executed, named = _of_process(filters, "entry")
    if filters.event_type:  # no entry is an event of any type
        more.append("FALSE")
    return " AND ".join([*conditions, *more, *executed]) or ANY, {**values, **bound, **named}


def event_conditions(filters: Filters, key: int | None) -> tuple[str, dict[str, Any]]:
    """Return the conditions on events and their values."""
    conditions, values = _common_conditions(filters, "event", key)
    if key is None:  # events of the project's own state are shown by its own commands only
        conditions.append("event.session IS DISTINCT FROM (SELECT session.key FROM session WHERE session.id = :project)")
        values["project"] = PROJECT
    if filters.event_type:
        names, bound = placeholders([storable(item) for item in filters.event_type], "type")
        conditions.append(f"event.type IN ({names})")
        values |= bound
    more, bound = _columns(filters)
    if more:  # an event has no action of its own, so filter by that of its entry
        conditions.append(
            "EXISTS (SELECT 1 FROM record JOIN entry ON entry.seq = record.seq AND entry.session = record.session "
            "WHERE record.session = event.session "
            f"AND record.kind = 'entry' AND record.id = event.entry AND {' AND '.join(more)})"
        )
        values |= bound
    executed, bound = _of_process(filters, "event")
    return " AND ".join([*conditions, *executed]) or ANY, {**values, **bound}
