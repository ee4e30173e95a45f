"""Resources from what people type and from what is stored."""

from __future__ import annotations

import pytest

from ctxmgr.access.resources import artifact_resource, context_resource, history_resource, parse_resource
from ctxmgr.access.rules import Rules
from ctxmgr.errors import InvalidInput
from tests.access.worlds import rule, thing


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
    """Odd names make odd resources, not errors; what nobody said belongs to the user, a key alone to the project."""
    assert artifact_resource("*", "\0") == thing("*", "\0")
    assert context_resource("/n") == thing("", "n", "context")
    assert context_resource("a/") == thing("a", "", "context")
    assert context_resource("") == thing("project", "", "context")
    assert context_resource("a/b") == thing("a", "b", "context")
    assert history_resource(None, "s") == thing("user", "s", "history")
    assert history_resource("\ud800", "") == thing("\ud800", "", "history")


def test_an_agent_alone_is_a_session_that_no_rule_names() -> None:
    """Rules for one session say nothing of an agent's history in general; rules for the agent do."""
    one, every = Rules([rule("b", "a/s", "read", kind="history")]), Rules([rule("b", "a/*", "read", kind="history")])

    assert one.allows("b", "read", parse_resource("history", "a/s"))
    assert not one.allows("b", "read", parse_resource("history", "a"))
    assert every.allows("b", "read", parse_resource("history", "a"))
