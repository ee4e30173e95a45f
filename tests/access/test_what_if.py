"""Another set of rules is tried on the reads of the past."""

from __future__ import annotations

import pytest

from ctxmgr.access.rules import Rules
from ctxmgr.access.what_if import PastRead, replay
from tests.access.worlds import rule, thing

OLD = Rules([rule("a", "b/*", "read")])
NEW = Rules([rule("a", "c/*", "read"), rule("*", "b/*", "none", 1)])


def past(agent: str | None, owner: str, allowed: bool | None, at: str | None = "2026-01-31T12:00:00Z") -> PastRead:
    """Return a read of something of an owner."""
    return PastRead(at=at, agent=agent, command="artifact get", resource=thing(owner, "n"), allowed=allowed)


@pytest.mark.requirement("003-A12")
def test_reads_that_change_are_told_in_their_order() -> None:
    """What was allowed and is denied is blocked, what was denied and is allowed is opened, and the rest is only counted."""
    told = replay(OLD, NEW, [past("a", "b", True, None), past("a", "c", False), past("a", "b", False), past("a", "c", True)])

    assert told.reads == 4
    assert [(one.at, one.agent, one.resource.path, one.was_allowed, one.allowed) for one in told.blocked] == [
        (None, "a", "b/n", True, False)
    ]
    assert told.blocked[0].rule == rule("*", "b/*", "none", 1)
    assert [(one.command, one.resource.path, one.was_allowed, one.allowed) for one in told.opened] == [
        ("artifact get", "c/n", False, True)
    ]
    assert told.opened[0].rule == rule("a", "c/*", "read")


def test_what_was_not_recorded_is_judged_by_the_old_rules() -> None:
    """A read without its answer counts as the old rules answer it."""
    told = replay(OLD, NEW, [past("a", "b", None), past("a", "c", None), past("x", "b", None)])

    assert [one.resource.path for one in told.blocked] == ["b/n"]
    assert [one.resource.path for one in told.opened] == ["c/n"]


def test_the_operator_is_never_blocked() -> None:
    """Reads without an agent are counted and stay allowed."""
    told = replay(OLD, NEW, iter([past(None, "b", True), past(None, "b", None)]))

    assert (told.reads, told.blocked, told.opened) == (2, [], [])


def test_odd_records_of_the_past_are_judged_not_refused() -> None:
    """An agent that no rule can name loses what it once read, and nothing fails."""
    told = replay(OLD, NEW, [past("*", "\0", True), past("\ud800", "*", True), past("", "", False)])

    assert [one.agent for one in told.blocked] == ["*", "\ud800"]
    assert [one.rule for one in told.blocked] == [None, None]
