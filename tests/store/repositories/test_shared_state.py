"""What a project shares, as it is read: rows that others wrote are read or told as damage, and ids by how they begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import PACKAGE, PROJECT, RULES, VERSION
from ctxmgr.store.repositories.shared_state import SummaryRow, ids_with_prefix, list_owners
from ctxmgr.types.access import MAX_PRIORITY, MIN_PRIORITY
from ctxmgr.types.plain_records import build
from tests.builders import at

ITEM = {"agent": "a", "name": "n", "type": "text", "hash": "h", "size": 1, "tokens": 1, "counter": "estimate"}
RULE = {"agent": "a", "resourceType": "artifact", "pattern": "*", "permission": "read", "priority": 1}


@pytest.fixture
def store() -> Iterator[Store]:
    """Open a store with two versions of three artifacts of two owners."""
    opened = open_store(":memory:", create=True)
    tell(opened, VERSION, {"version": 1, "op": "put", "artifacts": [{**ITEM, "id": "art_1a"}]})
    more = [{**ITEM, "id": "art_1b", "agent": "b"}, {**ITEM, "id": "art_2"}]
    tell(opened, VERSION, {"version": 2, "parent": 1, "op": "put", "artifacts": more})
    yield opened
    opened.close()


def tell(store: Store, kind: str, data: dict[str, Any]) -> None:
    """Append an event of the project."""
    number = store.engine.query("SELECT count(*) FROM record")[0][0]
    name = data.get("id", f"i{number}")
    store.append([build("event", PROJECT, at(number), id=name, type=kind, agent="a", data=data)])


def test_artifacts_are_found_as_of_a_version(store: Store) -> None:
    """By owner and name, by id, and with every content that they had."""
    now, before = store.artifacts.find("a", "n", 2), store.artifacts.find("a", "n", 1)
    assert now is not None
    assert before is not None
    assert (now.id, before.id) == ("art_2", "art_1a")
    assert store.artifacts.find("b", "n", 1) is None
    assert [row.id for row in store.artifacts.log("a", "n")] == ["art_2", "art_1a"]
    assert store.artifacts.by_id("art_1") is None
    assert (store.artifacts.current(), store.artifacts.highest()) == (2, 2)
    assert list_owners(store.engine, 1) == ["a"]
    assert list_owners(store.engine, 2) == ["a", "b"]


@pytest.mark.parametrize(
    ("start", "found"),
    [("art_", ["art_1a", "art_1b", "art_2"]), ("art_1", ["art_1a", "art_1b"]), ("art_%", []), ("art__", []), ("\ud800", [])],
)
def test_an_id_is_known_by_its_beginning(start: str, found: list[str], store: Store) -> None:
    """Signs that mean any text in a query mean themselves."""
    assert ids_with_prefix(store.engine, start) == found


def test_a_package_is_the_latest_or_the_one_that_is_named(store: Store) -> None:
    """A whole id is found though it begins another one; a beginning of several is refused."""
    for identity, agent in (("p1", "a"), ("p12", "b"), ("p13", "a")):
        tell(store, PACKAGE, {"id": identity, "agent": agent, "items": []})

    def told(identity: str | None = None, agent: str | None = None) -> Any:
        found = store.shared.package(identity, agent)
        return found and found["data"]["id"]

    asked = [told(), told(agent="b"), told("p1"), told("p12"), told("x"), told("p1", "b")]
    assert asked == ["p13", "p12", "p1", "p12", None, "p12"]
    with pytest.raises(InvalidInput, match="several package ids"):
        told("p")


def test_a_rule_of_any_number_is_read(store: Store) -> None:
    """A log may say any priority: it counts as the nearest that there is, and nobody is locked out."""
    tell(store, RULES, {"set": [{**RULE, "priority": 2**40}, {**RULE, "agent": "b", "priority": -(2**40)}]})

    assert [(rule.agent, rule.priority) for rule in store.shared.rules()] == [("b", MIN_PRIORITY), ("a", MAX_PRIORITY)]


def test_a_changed_row_is_damage(store: Store) -> None:
    """What can't be read is told as such, and not left out."""
    tell(store, RULES, {"set": [RULE]})
    store.engine.execute("UPDATE access_rule SET permission = :permission", {"permission": "odd"})

    with pytest.raises(Damaged):
        store.shared.rules()


def test_summaries_are_kept_for_what_is_there(store: Store) -> None:
    """The cache drops those of contents that no artifact has."""
    made = SummaryRow("short", 1, 9, True)
    for content in ("h", "gone"):
        store.shared.keep_summary(content, "first", "estimate", made)
    store.shared.keep_summary("h", "second", "estimate", made)

    assert store.shared.summary("h", "first", "estimate") == made
    assert store.shared.summary("gone", "first", "estimate") is None
    assert store.shared.summary("h", "first", "other") is None
