"""Changing rules: by the operator alone, recorded, idempotent; and what another set would have done to past reads."""

from __future__ import annotations

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.rule_changes import PastRead, change_rules, default_needs, default_rules, load_default, replay, replay_reads
from ctxmgr.access.rules import Rules
from ctxmgr.errors import Denied, InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS, EXECUTION, PACKAGE, RULES
from ctxmgr.types.access import AccessRule
from ctxmgr.types.plain_records import build
from tests.access.conftest import As
from tests.access.worlds import rule, thing
from tests.conftest import Allow


def _rule(permission: str = "read", priority: int = 100, pattern: str = "a/*") -> AccessRule:
    return AccessRule.model_validate(
        {"agent": "x", "resource_type": "artifact", "pattern": pattern, "permission": permission, "priority": priority}
    )


@pytest.mark.requirement("003-A7", "003-A9", "R-15")
def test_loading_the_template_twice_changes_nothing_more(store: Store, operator: AccessGuard) -> None:
    """The template's rules and needs are in force after one load, and a second one finds nothing to do."""
    first = load_default(store, operator)
    second = load_default(store, operator)

    assert first.added == len(default_rules()) == len(store.shared.rules())
    assert (second.added, second.changed, second.removed) == (0, 0, 0)
    assert len(store.shared.needs()) == len(default_needs())
    assert len(store.shared.events(RULES)) == 1


@pytest.mark.requirement("R-14")
def test_the_permission_is_part_of_a_rules_key(store: Store, operator: AccessGuard) -> None:
    """A read and a write rule for the same pattern stand side by side; the priority is changed in place."""
    change_rules(store, operator, add=[_rule("read"), _rule("write"), _rule("none")])
    changed = change_rules(store, operator, add=[_rule("read", 5)])

    assert (changed.added, changed.changed) == (0, 1)
    assert sorted((rule.permission, rule.priority) for rule in store.shared.rules()) == [
        ("none", 100), ("read", 5), ("write", 100),
    ]  # fmt: skip


def test_a_removed_rule_is_out_of_force(store: Store, operator: AccessGuard) -> None:
    """Removing takes the one rule away, whatever its priority."""
    change_rules(store, operator, add=[_rule("read", 7), _rule("write")])

    assert change_rules(store, operator, remove=[_rule("read")]).removed == 1
    assert [rule.permission for rule in store.shared.rules()] == ["write"]


@pytest.mark.requirement("003-A13")
def test_agents_change_no_rules(store: Store, asking: As) -> None:
    """An agent that asks is refused, whatever its rights, and the attempt is logged."""
    with pytest.raises(Denied):
        change_rules(store, asking("x"), add=[_rule("write", pattern="*")])

    assert store.shared.rules() == []
    assert store.shared.events(ACCESS)[0]["data"]["agent"] == "x"


def test_a_rule_that_cant_be_evaluated_changes_nothing(store: Store, operator: AccessGuard) -> None:
    """One faulty rule refuses the whole change."""
    with pytest.raises(InvalidInput):
        change_rules(store, operator, add=[_rule(), _rule(pattern="**")])

    assert store.shared.rules() == []


@pytest.mark.requirement("003-A12")
def test_a_stricter_set_shows_which_reads_it_would_have_blocked(store: Store, allow: Allow, asking: As) -> None:
    """Logged reads and what packages held are held against other rules; what stays the same is only counted."""
    allow("x", "artifact", "a/*")
    guard = asking("x")
    guard.log("artifact get", "read", [("a", "one"), ("a", "two")], [("b", "three")])
    items = [{"id": "art_0", "type": "artifact", "source": "a", "name": "four"}]
    package = build("event", "ctxmgr:project", None, id="p", type=PACKAGE, data={"agent": "x", "items": items})
    store.append([package])

    found = replay_reads(store, Rules([_rule(pattern="a/one"), _rule(pattern="b/*")]))

    assert found.reads == 4
    assert [item.resource.path for item in found.blocked] == ["a/two", "a/four"]
    assert [item.resource.path for item in found.opened] == ["b/three"]


def test_a_priority_of_a_foreign_log_is_taken_as_the_nearest_one(store: Store, operator: AccessGuard) -> None:
    """A rule that any program wrote into a log is in force: without its rules a store would answer nobody."""
    change_rules(store, operator, add=[_rule("read")])
    row = {"agent": "x", "resourceType": "artifact", "pattern": "*"}
    rules = [{**row, "permission": "none", "priority": -(2**40)}, {**row, "permission": "write", "priority": 2**40}]
    store.append([build("event", "ctxmgr:project", None, id="r", type=RULES, data={"set": rules})])

    assert [(each.permission, each.priority) for each in store.shared.rules()] == [
        ("none", -(2**31)), ("read", 100), ("write", 2**31 - 1),
    ]  # fmt: skip


@pytest.mark.parametrize("given", [5, True, "art_0", {"art_0": 1}, [[], 5, None]])
def test_artifacts_of_an_execution_may_be_anything(store: Store, given: object) -> None:
    """An entry that another program wrote names no artifacts then."""
    what = {"artifacts": given}
    store.append([build("entry", "s", None, id="e", action=EXECUTION, inputType=EXECUTION, input=what, agent="x", status="ok")])

    assert len(store.shared.executions()) == 1
    assert replay_reads(store, Rules()).reads == 0


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


def test_a_rule_that_is_not_there_can_not_be_removed(store: Store, allow: Allow) -> None:
    """It is not found, whatever other rules there are, and nothing is changed."""
    allow("dev", "artifact", "a/*")
    there, absent = (
        AccessRule(agent="dev", resource_type="artifact", pattern="a/*", permission=kind) for kind in ("read", "none")
    )

    with pytest.raises(NotFound, match=r"no rule dev artifact a/\* none"):
        change_rules(store, AccessGuard(store), remove=[there, absent])

    assert store.shared.rules() == [there]
