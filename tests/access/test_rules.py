"""Rules answer exactly as the reference does, in every small world and whatever their order, and say why."""

from __future__ import annotations

from itertools import combinations, permutations, product
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.access.patterns import rule_key
from ctxmgr.access.rules import Rules
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import AccessRule, Asked, Resource
from tests.access import reference
from tests.access.worlds import AGENTS, ASKED, ASKING, NAMES, OWNERS, RESOURCES, RULES, every_rule, rule, thing

BOTH: tuple[Asked, Asked] = ("read", "write")
Question = tuple[str, Asked, Resource]


def expected(rules: tuple[AccessRule, ...], question: Question) -> bool:
    """Ask the reference."""
    agent, asked, resource = question
    return reference.allows(rules, agent, asked, resource.type, resource.agent, resource.name)


def differences(sets: list[tuple[AccessRule, ...]], questions: list[Question]) -> tuple[int, list[object]]:
    """Return how many answers were compared, over every order of every set, and those that differ from the reference."""
    compared, different = 0, list[object]()
    for chosen in sets:
        wanted = [expected(chosen, question) for question in questions]
        for ordered in permutations(chosen):
            rules = Rules(ordered)
            answers = [rules.allows(*question) for question in questions]
            compared += len(answers)
            if answers != wanted:
                different.append((ordered, answers, wanted))
    return compared, different


@pytest.mark.long
@pytest.mark.requirement("003-A1", "003-A3", "003-A4", "003-A5")
def test_every_set_of_up_to_three_rules_answers_as_the_reference() -> None:
    """All forms of patterns, all permissions, two priorities, any and one agent: no answer differs, in any order of rows."""
    rules = every_rule(("*", "a"), ("*", "self", "a/*", "a/n"))
    sets = [chosen for size in range(4) for chosen in combinations(rules, size)]
    things = [thing("a", "n"), thing("a", "m"), thing("b", "n")]
    questions: list[Question] = list(product(("a", "b"), BOTH, things))

    compared, different = differences(sets, questions)

    assert len(sets) == 1 + 48 + 1128 + 17296
    assert compared == (1 + 48 + 2 * 1128 + 6 * 17296) * len(questions)
    assert different == []


@pytest.mark.slow
@pytest.mark.requirement("003-A3")
def test_every_pair_of_rules_with_trapping_names_answers_as_the_reference() -> None:
    """Names with a slash, in another case, composed otherwise, or with a meaning in rules: no answer differs."""
    patterns = ("*", "self", "a/*", "a/b/*", "A/*", "a/b/n", "a/n", "a/self")
    sets = [chosen for size in range(3) for chosen in combinations(every_rule(("*", "a", "a/b"), patterns, (1,)), size)]
    things = [thing(owner, name) for owner, name in product(("a", "a/b", "A", "self", "*"), ("n", "b/n", "*", "self"))]
    questions: list[Question] = list(product(("a", "a/b", "*", "self", ""), BOTH, things))

    compared, different = differences(sets, questions)

    assert compared > 1_000_000
    assert different == []


@given(st.lists(RULES, max_size=40), st.lists(st.tuples(ASKING, ASKED, RESOURCES), min_size=1, max_size=40), st.randoms())
def test_larger_sets_answer_as_the_reference(rules: list[AccessRule], asked: list[Any], random: Any) -> None:
    """Sets of many rules answer as the reference, twice over, and the same after a shuffle."""
    questions = cast("list[Question]", asked)
    wanted = [expected(tuple(rules), question) for question in questions]
    asking = Rules(rules)
    shuffled = random.sample(rules, len(rules))

    assert [asking.allows(*question) for question in questions] == wanted
    assert [asking.allows(*question) for question in questions] == wanted
    assert [Rules(shuffled).allows(*question) for question in questions] == wanted
    assert Rules(shuffled).digest == asking.digest


@given(st.lists(RULES, max_size=12), st.sampled_from(AGENTS), ASKED)
def test_everything_is_said_of_everything_only(rules: list[AccessRule], agent: str, asked: Asked) -> None:
    """That nothing is denied is said exactly where the reference denies nothing, not even what no rule names."""
    places = product((*OWNERS, "another"), (*NAMES, "another"))
    wanted = all(reference.allows(rules, agent, asked, "artifact", owner, name) for owner, name in places)

    assert Rules(rules).everything(agent, "artifact", asked) == wanted


def test_everything_sees_the_one_thing_that_is_forbidden() -> None:
    """One forbidden thing among all that is granted is enough, unless a rule before it grants it."""
    granted, forbidden = rule("a", "*", "write", 5), rule("*", "b/n", "none", 5)

    assert Rules([granted]).everything("a", "artifact", "write")
    assert not Rules([granted, forbidden]).everything("a", "artifact", "read")
    assert Rules([granted, forbidden, rule("a", "b/*", "write", 4)]).everything("a", "artifact", "read")
    assert not Rules([granted, rule("*", "self", "none", 5)]).everything("a", "artifact", "read")
    assert not Rules([granted]).everything("*", "artifact", "read")
    assert not Rules([granted]).everything("a", "context", "read")


@pytest.mark.requirement("003-A1")
def test_a_read_rule_does_not_hide_a_write_rule() -> None:
    """Both rules of one pattern hold, and write alone grants read."""
    both = Rules([rule("*", "self", "read", 1), rule("*", "self", "write", 1)])
    write = Rules([rule("a", "*", "write")])

    assert both.allows("a", "read", thing("a", "n"))
    assert both.allows("a", "write", thing("a", "n"))
    assert write.allows("a", "read", thing("b", "n"))


@pytest.mark.requirement("003-A2")
def test_types_of_resources_are_apart() -> None:
    """A rule about one type says nothing of the same owner and name in another."""
    rules = Rules([rule("a", "b/n", "write", kind="context")])

    assert [rules.allows("a", "read", thing("b", "n", kind)) for kind in ("artifact", "context", "history")] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("name", ["*", "self", "", "a\0", "a\n", "\x1b[2J", "\x85", "\u2028", "\ud800", "x" * 256, "é" * 128])
def test_nobody_asks_by_a_name_that_is_none(name: str) -> None:
    """The widest rules grant nothing to a name that can't be one; the operator is no name, and may do everything."""
    rules = Rules([rule("*", "*", "write", 1), rule("*", "self", "write", 1)])

    assert not rules.allows(name, "read", thing(name, "n"))
    assert not rules.explain(name, "read", thing(name, "n")).allowed
    assert rules.find_rule(name, "read", thing(name, "n")) is None
    assert Rules([rule("*", "*", "none", 1)]).allows(None, "write", thing(name, "n"))


@pytest.mark.parametrize("pair", [("é", "e\u0301"), ("agent", "Agent"), ("a_b", "a-b"), ("a", "a "), ("K", "\u212a")])
def test_names_that_look_alike_are_different_agents(pair: tuple[str, str]) -> None:
    """Composed and decomposed, upper and lower case, underscore and hyphen: what one may, the other may not."""
    one, other = pair
    rules = Rules([rule(one, f"{one}/*", "write"), rule("*", "self", "read")])

    assert rules.allows(one, "write", thing(one, "n"))
    assert not rules.allows(other, "write", thing(other, "n"))
    assert not rules.allows(other, "read", thing(one, "n"))
    assert not rules.allows(one, "read", thing(other, "n"))


def test_names_of_255_bytes_may_ask() -> None:
    """The longest name that is allowed asks and is named like any other."""
    name = "é" * 127 + "x"

    assert Rules([rule(name, f"{name}/*", "read")]).allows(name, "read", thing(name, "n"))


def test_the_digest_tells_sets_apart() -> None:
    """The digest has 16 hex digits, and any other rule, priority or permission makes another one."""
    sets = [[], [rule("a", "*", "read")], [rule("a", "*", "write")], [rule("a", "*", "read", 99)], [rule("a", "self", "read")]]
    digests = {Rules(rules).digest for rules in sets}

    assert len(digests) == len(sets)
    assert all(len(digest) == 16 and int(digest, 16) >= 0 for digest in digests)
    assert Rules([rule("a", "*", "read"), rule("a", "*", "read")]).digest == Rules([rule("a", "*", "read")]).digest


def test_a_set_with_an_unusable_rule_is_refused_whole() -> None:
    """A rule that can't be evaluated is an error, since leaving it out might open what it forbids."""
    with pytest.raises(InvalidInput, match=r"\*"):
        Rules([rule("a", "*", "read"), rule("a", "a/**", "none")])


def test_nothing_else_than_read_and_write_is_asked_for() -> None:
    """Asking for none is an error, not an answer."""
    with pytest.raises(InvalidInput, match="permission to ask for 'none'"):
        Rules([rule("a", "*", "none")]).allows("a", cast("Asked", "none"), thing("a", "n"))


def test_answers_stay_right_when_more_is_asked_than_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgetting what was answered changes no answer."""
    monkeypatch.setattr("ctxmgr.access.rules._MAX_ANSWERS", 3)
    rules = Rules([rule("a", f"b/{number}", "read") for number in range(0, 10, 2)])

    for _ in range(2):
        assert [rules.allows("a", "read", thing("b", str(number))) for number in range(10)] == [True, False] * 5


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
    assert told.rule == Rules(rules).find_rule(agent, asked, resource)
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
