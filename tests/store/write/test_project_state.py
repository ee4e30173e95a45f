"""The project's state follows from its events: each applied whole, or, where it is shaped otherwise, not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import KEY, NEEDS, PROJECT, PRUNED, RULES, VERSION
from ctxmgr.types.plain_records import build
from tests.builders import at

ITEM = {"id": "art_0", "agent": "a", "name": "n", "type": "text", "hash": "0", "size": 1, "tokens": 1, "counter": "estimate"}
FIRST = {"version": 1, "op": "put", "artifacts": [ITEM]}
CHANGE = {"key": "k", "value": 1, "type": "integer", "description": None}
RULE = {"agent": "a", "resourceType": "artifact", "pattern": "*", "permission": "read", "priority": 1}
TABLES = ("version", "artifact", "dependency", "context_key", "access_rule", "need", "package")


@pytest.fixture
def store() -> Iterator[Store]:
    """Open an empty store."""
    opened = open_store(":memory:", create=True)
    yield opened
    opened.close()


def tell(store: Store, kind: str, data: Any, number: int = 0) -> None:
    """Append an event of the project."""
    store.append([build("event", PROJECT, at(number), id=f"{kind}-{number}", type=kind, agent="a", data=data)])


def state(store: Store) -> dict[str, list[Any]]:
    """Return all rows that follow from events."""
    return {table: store.engine.query(f"SELECT * FROM {table}") for table in TABLES}


def test_a_version_shows_what_its_parent_showed(store: Store) -> None:
    """A rollback makes none; a name has the newest content on the way back."""
    tell(store, VERSION, FIRST)
    tell(store, VERSION, {"version": 2, "parent": 1, "op": "put", "artifacts": [{**ITEM, "id": "art_1", "name": "m"}]}, 1)
    assert [(row.name, row.version) for row in store.artifacts.state(2)] == [("m", 2), ("n", 1)]

    tell(store, VERSION, {"version": 1, "op": "rollback"}, 2)
    assert store.artifacts.current() == 1
    assert [row.number for row in store.artifacts.versions()] == [1, 2]


NEED = {"agent": "a", "pattern": "*", "need": "required"}
WHOLE: list[tuple[str, Any]] = [
    (VERSION, FIRST), (KEY, {"changes": [CHANGE]}), (RULES, {"set": [RULE]}), (NEEDS, {"set": [NEED]}),
    (PRUNED, {"versions": [1]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "data"), WHOLE)
def test_an_event_of_the_right_shape_changes_something(kind: str, data: Any, store: Store) -> None:
    """What the events below differ from in one thing each."""
    tell(store, VERSION, {**FIRST, "artifacts": [{**ITEM, "id": "art_f"}]})
    before = state(store)
    tell(store, kind, data, 5)

    assert state(store) != before


NO_DATA: list[Any] = [None, [], "x", 7]
ODD: list[tuple[str, Any]] = [
    *[(kind, odd) for kind in (VERSION, PRUNED, KEY, RULES, NEEDS) for odd in NO_DATA],
    (VERSION, {**FIRST, "version": True}), (VERSION, {**FIRST, "version": 2**63}), (VERSION, {**FIRST, "op": []}),
    (VERSION, {**FIRST, "op": "odd"}), (VERSION, {**FIRST, "parent": 1}), (VERSION, {**FIRST, "parent": "0"}),
    (VERSION, {**FIRST, "artifacts": [ITEM, {**ITEM, "id": "b", "size": 1.5}]}), (VERSION, {**FIRST, "artifacts": ITEM}),
    (VERSION, {**FIRST, "artifacts": [{**ITEM, "name": "\ud800"}]}), (VERSION, {**FIRST, "artifacts": [[]]}),
    (KEY, {"changes": [CHANGE, {**CHANGE, "key": ["k"]}]}), (KEY, {"changes": {"key": "k"}}),
    (RULES, {"set": [RULE, {**RULE, "permission": {}}]}), (RULES, {"set": [{**RULE, "priority": "1"}]}),
    (NEEDS, {"set": [NEED, {**NEED, "pattern": []}]}),
    (NEEDS, {"set": [{**NEED, "need": 1}]}), (PRUNED, {"versions": [1, "1"]}),
    ("project_unknown", FIRST), ("", FIRST),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "data"), ODD)
def test_an_event_of_another_shape_changes_nothing(kind: str, data: Any, store: Store) -> None:
    """It is kept as a record, and neither half of it counts nor anything before it is lost."""
    tell(store, VERSION, {**FIRST, "artifacts": [{**ITEM, "id": "art_f"}]})
    before = state(store)
    tell(store, kind or "project", data, 5)

    assert state(store) == before
    assert len(list(store.sessions.records(None))) == 2
