"""Derive the project's state from the events of the reserved session.

An event holds a whole change, so a kill leaves all of it or nothing. Events in another form than `ctxmgr.artifacts` and
`ctxmgr.access.project_state` write are stored as records, but change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from ctxmgr.log.codec import Record
from ctxmgr.store import project_session
from ctxmgr.store.engine.dialect import KEEP_STATE, replace_statement
from ctxmgr.store.engine.interface import Engine
from ctxmgr.store.text_normalisation import storable

_NEEDS = ("required", "optional", "if_exists", "reference")
_DEPENDENCIES = ("required", "optional", "reference")
_OPERATIONS = ("put", "create", "rollback")
_TYPES = ("string", "integer", "boolean", "json")

CURRENT = "project.version"
"""Name of the row of ``state`` that holds the number of the current version."""

_LINE = (
    "WITH RECURSIVE line(number) AS (SELECT :version UNION ALL "
    "SELECT version.parent FROM version JOIN line ON version.number = line.number WHERE version.parent IS NOT NULL) "
)
STATE = _LINE + (
    "SELECT artifact.* FROM artifact WHERE artifact.version = (SELECT max(other.version) FROM artifact AS other "
    "WHERE other.agent = artifact.agent AND other.name = artifact.name "
    "AND other.version IN (SELECT number FROM line)) {narrowed}ORDER BY artifact.agent, artifact.name"
)
"""Query for the artifacts of a version: for each name the newest one in the version or its ancestors."""


def derive(engine: Engine, seq: int, record: Record) -> None:
    """Apply an event of the reserved session to the tables. Must be called in the transaction that stores it."""
    handler = _HANDLERS.get(str(record.get("type")))
    data = record.get("data")
    if handler is None or not isinstance(data, dict):
        return
    try:
        handler(engine, seq, record, cast("dict[str, Any]", data))
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return  # nothing was written, because a handler builds and checks all rows first


def _rows(value: object) -> Iterator[dict[str, Any]]:
    if not isinstance(value, list):
        raise TypeError
    for item in cast("list[Any]", value):
        if not isinstance(item, dict):
            raise TypeError
        yield cast("dict[str, Any]", item)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode("utf-8")  # a lone surrogate can't be stored, so fail before anything is written
    return value


def _choice(value: object, known: tuple[str, ...]) -> str:
    word = _text(value)
    if word not in known:
        raise ValueError("not one of the known words")
    return word


def _maybe(value: object) -> str | None:
    return None if value is None else _text(value)


def _number(value: object) -> int:
    # SQLite's integers have 64 bits.
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**62:
        raise TypeError
    return value


def _maybe_number(value: object) -> int | None:
    return None if value is None else _number(value)


def _version(engine: Engine, seq: int, record: Record, data: dict[str, Any]) -> None:
    number, op = _number(data["version"]), _choice(data["op"], _OPERATIONS)
    # A rollback creates no version; it only makes an earlier one the current one.
    if op != "rollback":
        parent = _maybe_number(data.get("parent"))
        # With a cycle among the parents the recursive query of `STATE` would never end.
        if parent is not None and parent >= number:
            raise ValueError("a parent is older than its child")
        made = {
            "number": number, "parent": parent, "seq": seq, "op": op, "ts": _maybe(record.get("ts")),
            "description": _maybe(data.get("description")), "author": _maybe(data.get("by")),
        }  # fmt: skip
        artifacts, dependencies = _artifacts(record, number, data.get("artifacts") or [])
        engine.execute(
            replace_statement("version", "number", "parent, seq, op, description, author, ts"),
            made,
        )
        engine.many(
            # A name has one content in a version, even if another history was imported that has the same version.
            "DELETE FROM artifact WHERE agent = :agent AND name = :name AND version = :version AND id <> :id",
            artifacts,
        )
        engine.many(
            replace_statement("artifact", "id", "version, agent, name, type, description, hash, size, tokens, counter, ts"),
            artifacts,
        )
        engine.many(replace_statement("dependency", "artifact, target", "agent, name, type"), dependencies)
    engine.execute(KEEP_STATE, {"name": CURRENT, "value": str(number)})


def _artifacts(record: Record, version: int, items: object) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    needed: list[dict[str, Any]] = []
    for item in _rows(items):
        rows.append(
            {
                "id": _text(item["id"]), "version": version, "agent": _text(item["agent"]), "name": _text(item["name"]),
                "type": _text(item["type"]), "description": _maybe(item.get("description")), "hash": _text(item["hash"]),
                "size": _number(item["size"]), "tokens": _number(item["tokens"]), "counter": _text(item["counter"]),
                "ts": _maybe(record.get("ts")),
            }
        )  # fmt: skip
        needed += [
            {
                "artifact": _text(item["id"]), "target": _text(target["id"]), "agent": _text(target["agent"]),
                "name": _text(target["name"]), "type": _choice(target["type"], _DEPENDENCIES),
            }
            for target in _rows(item.get("dependencies") or [])
        ]  # fmt: skip
    return rows, needed


def _prune(engine: Engine, seq: int, record: Record, data: dict[str, Any]) -> None:
    """Mark versions as pruned, and delete the artifacts that no other version shows."""
    numbers = [_number(item) for item in cast("list[Any]", data["versions"])]
    # Store an empty text if no time was recorded, because NULL means that a version was not pruned.
    when = _maybe(record.get("ts")) or ""
    for number in numbers:
        engine.execute("UPDATE version SET pruned = :ts WHERE number = :number", {"ts": when, "number": number})
    # Versions that stay also show artifacts of their pruned ancestors, so keep those.
    shown: set[str] = set()
    for (number,) in engine.query("SELECT number FROM version WHERE pruned IS NULL"):
        shown.update(str(row[0]) for row in engine.query(STATE.format(narrowed=""), {"version": number}))
    gone = [str(row[0]) for row in engine.query("SELECT id FROM artifact") if row[0] not in shown]
    for sql in ("DELETE FROM artifact WHERE id = :id", "DELETE FROM dependency WHERE artifact = :id"):
        engine.many(sql, [{"id": item} for item in gone])


def _keys(engine: Engine, seq: int, record: Record, data: dict[str, Any]) -> None:
    import json

    author = _maybe(data.get("by"))
    rows = [
        {
            "key": _text(item["key"]), "value": json.dumps(item["value"]), "type": _choice(item["type"], _TYPES),
            "author": author, "description": _maybe(item.get("description")), "ts": _maybe(record.get("ts")),
        }
        for item in _rows(data["changes"])
    ]  # fmt: skip
    engine.many(
        "INSERT INTO context_key (key, value, type, description, author, ts) "
        "VALUES (:key, :value, :type, :description, :author, :ts) ON CONFLICT (key) DO UPDATE SET value = excluded.value, "
        # A change without a description keeps the former one.
        "type = excluded.type, description = coalesce(excluded.description, context_key.description), "
        "author = excluded.author, ts = excluded.ts",
        rows,
    )


_RULE_KEY = "agent = :agent AND resource = :resource AND pattern = :pattern AND permission = :permission"


def _rules(engine: Engine, seq: int, record: Record, data: dict[str, Any]) -> None:
    kept, gone = ([_rule(item, record) for item in _rows(data.get(name) or [])] for name in ("set", "removed"))
    engine.many(f"DELETE FROM access_rule WHERE {_RULE_KEY}", gone)
    engine.many(replace_statement("access_rule", "agent, resource, pattern, permission", "priority, ts"), kept)


def _rule(item: dict[str, Any], record: Record) -> dict[str, Any]:
    named = {"agent": "agent", "resource": "resourceType", "pattern": "pattern", "permission": "permission"}
    row: dict[str, Any] = {column: _text(item[name]) for column, name in named.items()}
    _choice(row["permission"], ("read", "write", "none"))
    _choice(row["resource"], ("artifact", "context", "history"))
    return {**row, "priority": _number(item.get("priority", 100)), "ts": _maybe(record.get("ts"))}


def _needs(engine: Engine, seq: int, record: Record, data: dict[str, Any]) -> None:
    kept = [
        {
            "agent": _text(item["agent"]), "pattern": _text(item["pattern"]), "need": _choice(item["need"], _NEEDS),
            "max_tokens": _maybe_number(item.get("maxTokens")), "use_summary": int(bool(item.get("useSummary"))),
            "priority": _number(item.get("priority", 100)),
        }
        for item in _rows(data.get("set") or [])
    ]  # fmt: skip
    gone = [{"agent": _text(item["agent"]), "pattern": _text(item["pattern"])} for item in _rows(data.get("removed") or [])]
    engine.many("DELETE FROM need WHERE agent = :agent AND pattern = :pattern", gone)
    engine.many(replace_statement("need", "agent, pattern", "need, max_tokens, use_summary, priority"), kept)


def _package(engine: Engine, seq: int, record: Record, data: dict[str, Any]) -> None:
    package = {
        "id": _text(record["id"]), "seq": seq, "agent": _text(data["agent"]), "task": _maybe(data.get("task")),
        "ts": _maybe(record.get("ts")),
    }  # fmt: skip
    held = {_text(item["id"]) for item in _rows(data.get("items") or []) if item.get("type", "artifact") == "artifact"}
    engine.execute(replace_statement("package", "id", "seq, agent, task, ts"), package)
    engine.many(
        "INSERT INTO package_item (package, artifact) VALUES (:package, :artifact) ON CONFLICT DO NOTHING",
        [{"package": package["id"], "artifact": item} for item in sorted(held)],
    )


def derive_execution(engine: Engine, seq: int, record: Record) -> None:
    """Store an entry that records a run of an agent (spec 003, "Record execution"). Ignore other entries."""
    given = record.get("input")
    if (
        record.get("action") != project_session.EXECUTION
        or record.get("inputType") != project_session.EXECUTION
        or not isinstance(given, dict)
    ):
        return
    facts = cast("dict[str, Any]", given)
    sprint, version = facts.get("sprint"), facts.get("contextVersion")
    engine.execute(
        replace_statement("execution", "seq", "id, agent, task, sprint, version"),
        {
            "seq": seq, "id": _storable(str(record["id"])), "agent": _storable(record.get("agent")),
            "task": _storable(record.get("task")), "sprint": _storable(sprint),
            # Any program may have written the entry. Leave out a value that does not fit, but keep the entry.
            "version": version if isinstance(version, int) and abs(version) < 2**62 else None,
        },
    )  # fmt: skip


def _storable(value: object) -> str | None:
    return storable(value) if isinstance(value, str) else None


_HANDLERS: dict[str, Callable[[Engine, int, Record, dict[str, Any]], None]] = {
    project_session.VERSION: _version,
    project_session.PRUNED: _prune,
    project_session.KEY: _keys,
    project_session.RULES: _rules,
    project_session.NEEDS: _needs,
    project_session.PACKAGE: _package,
}
