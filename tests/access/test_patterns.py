"""Names, patterns and resources are taken literally or refused with what would be right."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.access.patterns import (
    FORMS,
    Pattern,
    agent_fault,
    check_agent,
    check_owner,
    check_rule,
    context_resource,
    parse_pattern,
    parse_resource,
)
from ctxmgr.access.rules import Rules
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import AccessRule
from tests.access.worlds import rule, thing


@pytest.mark.requirement("003-A3")
@pytest.mark.parametrize(
    ("text", "wanted", "specificity"),
    [
        ("*", Pattern("all"), 1),
        ("self", Pattern("self"), 2),
        ("a/*", Pattern("agent", "a"), 2),
        ("a/b/*", Pattern("agent", "a/b"), 2),
        ("a/n", Pattern("exact", "a", "n"), 3),
        ("a/b/n", Pattern("exact", "a", "b/n"), 3),
        ("a/self", Pattern("exact", "a", "self"), 3),
        ("a/../b", Pattern("exact", "a", "../b"), 3),
        ("[a]/n?", Pattern("exact", "[a]", "n?"), 3),
        ("Self/*", Pattern("agent", "Self"), 2),
        (" self/ n", Pattern("exact", " self", " n"), 3),
    ],
)
def test_the_four_forms(text: str, wanted: Pattern, specificity: int) -> None:
    """A pattern is one of four forms, split at its first slash, and everything else in it is literal."""
    assert parse_pattern(text) == wanted
    assert parse_pattern(text).specificity == specificity


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "**", "a*", "*a", "*/x", "*/*", "**/*", "a/**", "a/n*", "a/*/n", "a*/n", "/", "/*", "/n", "a/", "selfish"),
        *("self/*", "self/n", "[", "a/n\0", "a/\n", "a\n/n", "\x7f/n", "a/\x85", "a/\u2029", "\ud800/n"),
        *("a/" + "n" * 511, "a" * 256 + "/n", "a" * 256 + "/*"),
    ],
)
def test_other_patterns_are_refused(text: str) -> None:
    """Any other star, a missing part, a control character or too long a text is an error that shows the four forms."""
    with pytest.raises(InvalidInput, match="pattern ") as caught:
        parse_pattern(text)

    assert caught.value.hint == FORMS
    assert len(caught.value.message) < 300
    assert caught.value.message.isprintable()


@given(st.text(alphabet="a*/self[\0é", max_size=8))
def test_a_pattern_is_read_or_refused(text: str) -> None:
    """Whatever the text, it is refused or its parts make the same text again."""
    try:
        pattern = parse_pattern(text)
    except InvalidInput:
        return
    again = {"all": "*", "self": "self", "agent": f"{pattern.agent}/*", "exact": f"{pattern.agent}/{pattern.name}"}

    assert again[pattern.form] == text
    assert "*" not in pattern.agent + pattern.name


@pytest.mark.parametrize("name", ["a", "a/b", "A b", "é", "[x]", "?", "**", "selfish", "x" * 255, "👩\u200d💻", "user"])
def test_names_of_agents_come_back_as_they_are(name: str) -> None:
    """A usable name is returned without any change."""
    assert check_agent(name) == name


@pytest.mark.parametrize(
    "name", ["", "*", "self", "x" * 256, "é" * 128, "a\0", "a\nb", "\t", "\x7f", "\x9b", "\u2028", "\udcff"]
)
def test_other_names_are_refused(name: str) -> None:
    """Empty, with a meaning in rules, too long or with a control character: no agent, no owner and no rule's agent."""
    for check in (check_agent, check_owner):
        with pytest.raises(InvalidInput, match="agent ") as caught:
            check(name)
        assert caught.value.hint
        assert caught.value.message.isprintable()
    assert agent_fault(name)
    if name != "*":
        with pytest.raises(InvalidInput, match="agent "):
            check_rule(rule(name, "*", "read"))


def test_owners_hold_no_slash() -> None:
    """A slash would end the owner where it is written with a name."""
    with pytest.raises(InvalidInput, match="'/'"):
        check_owner("a/b")
    assert check_owner("a.b") == "a.b"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resource_type", "file"),
        ("resource_type", None),
        ("permission", "execute"),
        ("permission", ["read"]),
        ("priority", 2**31),
        ("priority", True),
        ("priority", "1"),
        ("priority", float("nan")),
    ],
)
def test_rules_built_unchecked_are_refused(field: str, value: Any) -> None:
    """A rule with a type, permission or priority that is none is an error even when its shape was never checked."""
    odd: dict[str, Any] = {**rule("a", "*", "none").model_dump(by_alias=False), field: value}

    with pytest.raises(InvalidInput):
        check_rule(AccessRule.model_construct(**odd))


@pytest.mark.requirement("003-A2")
@pytest.mark.parametrize(
    ("kind", "text", "owner", "name"),
    [
        ("artifact", "a/n.yaml", "a", "n.yaml"),
        ("artifact", "a/docs/n.md", "a", "docs/n.md"),
        ("context", "current_sprint", "project", "current_sprint"),
        ("context", "a/key", "a", "key"),
        ("context", "a/b/key", "a", "b/key"),
        ("context", "*", "project", "*"),
        ("history", "a/session-1", "a", "session-1"),
        ("history", "a/s/1", "a", "s/1"),
        ("history", "a", "a", ""),
    ],
)
def test_what_people_type(kind: str, text: str, owner: str, name: str) -> None:
    """The text is split at its first slash; a key alone is the project's, an agent alone is any session that no rule names."""
    assert parse_resource(kind, text) == thing(owner, name, kind)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(
            (kind, text)
            for kind in ("artifact", "context", "history")
            for text in ("", "/", "/n", "a/", "a/\0", "*/n", "self/n")
        ),
        *((kind, "x" * 256 + "/n") for kind in ("artifact", "context", "history")),
        ("artifact", "a"),
        ("history", "self"),
        ("file", "a/n"),
        ("", "a/n"),
    ],
)
def test_other_texts_are_refused(kind: str, text: str) -> None:
    """A missing part, an owner that nobody can be, or an unknown type is an error with a hint."""
    with pytest.raises(InvalidInput) as caught:
        parse_resource(kind, text)

    assert caught.value.hint
    assert caught.value.message.isprintable()


def test_what_is_stored_is_never_refused() -> None:
    """Odd names make odd resources, not errors; a key alone belongs to the project."""
    assert context_resource("/n") == thing("", "n", "context")
    assert context_resource("a/") == thing("a", "", "context")
    assert context_resource("") == thing("project", "", "context")
    assert context_resource("a/b") == thing("a", "b", "context")
    assert context_resource("\ud800/\0") == thing("\ud800", "\0", "context")


def test_an_agent_alone_is_a_session_that_no_rule_names() -> None:
    """Rules for one session say nothing of an agent's history in general; rules for the agent do."""
    one, every = Rules([rule("b", "a/s", "read", kind="history")]), Rules([rule("b", "a/*", "read", kind="history")])

    assert one.allows("b", "read", parse_resource("history", "a/s"))
    assert not one.allows("b", "read", parse_resource("history", "a"))
    assert every.allows("b", "read", parse_resource("history", "a"))
