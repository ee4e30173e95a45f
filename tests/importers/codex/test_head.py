"""Which of the words that a Codex log calls a person's are the program's own."""

from __future__ import annotations

import pytest

from ctxmgr.importers.codex.head import harness_origin, looks_generated


@pytest.mark.parametrize(
    ("words", "origin"),
    [
        ("<environment_context>\n  <cwd>/p</cwd>", "environment_context"),
        ("  <turn_aborted>\nThe user", "turn_aborted"),
        ("<permissions instructions>\nx", "permissions_instructions"),
        ("<INSTRUCTIONS>x", "instructions"),
        ('<skill name="a">x', "skill"),
        ("# AGENTS.md instructions for /p", "agents_md"),
        ("<div>my page</div>", None),
        ("Use <environment_context> here", None),
        ("# AGENTS.md", None),
        ("<", None),
        ("", None),
    ],
)
def test_harness_text_is_known_by_its_beginning(words: str, origin: str | None) -> None:
    """Only what Codex itself writes is taken for its own."""
    assert harness_origin(words) == origin


def test_an_unknown_wrapped_text_looks_generated() -> None:
    """One whole element with a snake-case tag is no person's way of writing; a page or a part of one is."""
    assert looks_generated("<new_context>\nx\n</new_context>\n")
    assert not looks_generated("<new_context> what is this?")
    assert not looks_generated("<p>text</p>")
