"""Explanations agree with the answers, and what they suggest works."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.access.patterns import rule_key
from ctxmgr.access.rules import Rules
from ctxmgr.types.access import AccessRule, Asked, Resource
from tests.access import reference
from tests.access.worlds import ASKED, ASKING, RESOURCES, RULES, rule, thing


def added(rules: list[AccessRule], one: AccessRule) -> list[AccessRule]:
    """Return the rules with one more, which takes the place of the same rule."""
    return [*(other for other in rules if rule_key(other) != rule_key(one)), one]


@given(st.lists(RULES, max_size=40), ASKING, ASKED, RESOURCES, st.randoms())
def test_explanations_agree_with_the_answers(
    rules: list[AccessRule], agent: str, asked: Asked, resource: Resource, random: Any
) -> None:
    """What decides allows or forbids as the reference says, all others that match are listed, and the order is no matter."""
    told = Rules(rules).explain(agent, asked, resource)
    place = (resource.type, resource.agent, resource.name)
    speaking = [one for one in rules if agent not in reference.NOBODY and reference.speaks(one, agent, "read", *place)]

    assert told.allowed == reference.allows(rules, agent, asked, *place)
    assert told.reason.startswith("allowed by " if told.allowed else "denied")
    assert told.reason.isprintable()
    assert told.allowed == (told.rule is not None and told.rule.permission != "none")
    listed = [*(shadowed.rule for shadowed in told.shadowed), *([told.rule] if told.rule else [])]
    assert sorted(map(repr, listed)) == sorted({repr(one) for one in speaking})
    assert told.rule == Rules(rules).rule_for(agent, asked, resource)
    assert Rules(random.sample(rules, len(rules))).explain(agent, asked, resource) == told


@pytest.mark.requirement("003-A11")
@given(st.lists(RULES, max_size=40), ASKING, ASKED, RESOURCES)
def test_each_suggested_rule_grants_it(rules: list[AccessRule], agent: str, asked: Asked, resource: Resource) -> None:
    """Each suggested rule, added alone, allows what was denied; there is one unless nobody may ask by that name."""
    told = Rules(rules).explain(agent, asked, resource)
    place = (resource.type, resource.agent, resource.name)

    assert all(reference.allows(added(rules, one), agent, asked, *place) for one in told.would_grant)
    assert (told.would_grant == []) == (told.allowed or agent in reference.NOBODY)


def test_the_narrowest_rule_is_suggested_first() -> None:
    """For the one thing first, then for all of its owner; never for everything while either can be named."""
    told = Rules([]).explain("a", "read", thing("b", "n"))

    assert told.would_grant == [rule("a", "b/n", "read"), rule("a", "b/*", "read")]
    assert told.reason == "denied: no rule lets agent 'a' read artifact 'b/n', and what no rule grants is denied"


@pytest.mark.parametrize(
    ("owner", "name", "patterns"),
    [
        ("b", "", ["b/*"]),
        ("b", "*", ["b/*"]),
        ("b", "n/*", ["b/*"]),
        ("b/c", "n", ["b/c/*"]),
        ("*", "n", ["*"]),
        ("self", "n", ["*"]),
        ("\0", "n", ["*"]),
        ("b", "n" * 600, ["b/*"]),
    ],
)
def test_what_can_not_be_named_gets_the_narrowest_rule_that_can(owner: str, name: str, patterns: list[str]) -> None:
    """A thing whose name makes no pattern is granted by its owner's, and where that makes none by everything."""
    told = Rules([]).explain("a", "write", thing(owner, name, "history"))

    assert [one.pattern for one in told.would_grant] == patterns


def test_a_forbidding_rule_must_go_or_be_outranked() -> None:
    """Where none decides, the reason says so, and what is suggested stands before it."""
    forbidding = rule("*", "b/n", "none", 5)
    told = Rules([forbidding, rule("a", "*", "read", 5)]).explain("a", "read", thing("b", "n"))

    assert told.rule == forbidding
    assert told.reason == (
        "denied by none on artifact 'b/n' for any agent at priority 5: remove that rule, or outrank it by a rule "
        "with a priority below 5, or with priority 5 and a more specific pattern or agent"
    )
    assert told.would_grant == [rule("a", "b/n", "read", 5), rule("a", "b/*", "read", 4)]


def test_nothing_is_suggested_before_the_first_priority() -> None:
    """The most specific forbidding rule at the first priority can only be changed or removed."""
    told = Rules([rule("a", "b/n", "none", -(2**31))]).explain("a", "read", thing("b", "n"))

    assert told.would_grant == []
    assert told.reason.endswith("remove that rule, or change it, for nothing comes before it")


def test_every_rule_that_lost_has_its_reason() -> None:
    """By priority, by pattern, by agent, by none, by permission, or saying the same: each is told apart."""
    lost = [
        (rule("a", "a/n", "read", 10), "grants read, which is not write"),
        (rule("a", "a/n", "write", 10), "at the same rank none wins"),
        (rule("*", "a/n", "none", 10), "a rule for any agent comes after one for agent 'a'"),
        (rule("a", "a/*", "write", 10), "its pattern is less specific than 'a/n'"),
        (rule("a", "a/n", "write", 11), "priority 11 comes after 10"),
    ]
    told = Rules([*(one for one, _ in lost), rule("a", "a/n", "none", 10)]).explain("a", "write", thing("a", "n"))
    same = Rules([rule("a", "a/*", "write"), rule("a", "self", "write")]).explain("a", "read", thing("a", "n"))

    assert [(shadowed.rule, shadowed.reason) for shadowed in told.shadowed] == lost
    assert [shadowed.reason for shadowed in same.shadowed] == ["says the same at the same rank"]
    assert same.reason == "allowed by write on artifact 'a/*' for agent 'a' at priority 100, since write grants read"


def test_nobody_may_ask_by_a_name_that_means_something_else() -> None:
    """The reason says why no rule can help."""
    told = Rules([rule("*", "*", "write")]).explain("*", "read", thing("b", "n"))

    assert (told.allowed, told.rule, told.shadowed, told.would_grant) == (False, None, [], [])
    assert "means something else in access rules" in told.reason
