"""What is logged of an access."""

from __future__ import annotations

import pytest

from ctxmgr.access.guard import MAX_LOGGED, AccessGuard
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS, PROJECT, RULES
from ctxmgr.types.plain_records import build
from tests.access.conftest import As
from tests.conftest import Allow


@pytest.mark.requirement("003-A14")
def test_the_log_of_accesses_is_bounded_and_counts_all(store: Store, allow: Allow, asking: As) -> None:
    """One event names at most so many resources and counts the rest; the operator's reads leave no trace."""
    asking("x").log("list", "read", [("a", str(number)) for number in range(MAX_LOGGED + 50)])
    AccessGuard(store).log("list", "read", [("a", "b")])

    (event,) = store.shared.events(ACCESS)
    assert len(event["data"]["granted"]) == MAX_LOGGED
    assert event["data"]["grantedCount"] == MAX_LOGGED + 50


def test_what_was_asked_for_twice_is_named_and_counted_once(store: Store, asking: As) -> None:
    """A name that fills the limit with its repeats would hide those behind it."""
    asking("x").log("list", "read", [("a", "same")] * MAX_LOGGED + [("a", "other")], [("b", "same")] * 2)

    (event,) = store.shared.events(ACCESS)
    assert [row["name"] for row in event["data"]["granted"]] == ["same", "other"]
    assert (event["data"]["grantedCount"], event["data"]["deniedCount"]) == (2, 1)


def test_a_recorded_priority_of_33_bits_is_the_lowest_rank(store: Store) -> None:
    """Earlier versions allowed one number too many; a rule that can't be read would lock everybody out."""
    item = {"agent": "x", "resourceType": "artifact", "pattern": "a/*", "permission": "read", "priority": 2**31}
    store.append([build("event", PROJECT, None, id="e", type=RULES, data={"set": [item]})])

    assert [found.priority for found in store.shared.rules()] == [2**31 - 1]
    assert AccessGuard(store, "x").reads("a", "n")
