"""What a text is written in, by its name and by how it begins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.text.content_kind import KINDS, kind_of, known_kind


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.md", "", "markdown"),
        ("dir/a.YAML", "", "yaml"),
        ("dir\\a.json", "", "json"),
        ("a.py", "{}", "python"),
        ("a.h", "int f(void);\n", "c"),
        ("a.h", "namespace x {\n}\n", "cpp"),
        ("README", "", "markdown"),
        ("Makefile", "", "code"),
        ("run", "#!/usr/bin/env python3\nx = 1\n", "python"),
        ("run", "#!/bin/sh\necho\n", "shell"),
        ("x", '{"a": 1}\n', "json"),
        ("x", "[1, 2]", "json"),
        ("x", "[see below]", "text"),
        ("x", "# Title\n\ntext", "markdown"),
        ("x", "text\n\n## Part\n", "markdown"),
        ("x", "---\na: 1\n", "yaml"),
        ("x", "name: ctxmgr\nparts:\n  - one\n", "yaml"),
        ("x", "Dear all: this is a letter.\n", "text"),
        ("x", "", "text"),
        ("", "plain words", "text"),
    ],
)
def test_the_kind_is_told_by_name_then_content(name: str, text: str, kind: str) -> None:
    """A known suffix decides; without one the first lines do."""
    assert kind_of(name, text) == kind


@given(name=st.text(), text=st.text())
def test_any_name_and_text_have_a_kind(name: str, text: str) -> None:
    """Whatever the name and the text, the kind is a known one."""
    assert kind_of(name, text) in KINDS


@pytest.mark.parametrize(
    ("word", "kind"), [("Prose", "text"), (" yml ", "yaml"), ("C++", "cpp"), ("code", "code"), ("?", "text")]
)
def test_other_words_for_a_kind_are_understood(word: str, kind: str) -> None:
    """Short forms and capitals mean the kind; an unknown word means text."""
    assert known_kind(word) == kind
