"""Summaries of Markdown keep every heading, those by lines every line that opens a definition."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ctxmgr.context.summaries import summarise
from ctxmgr.context.summaries.prose import LineSummariser, MarkdownSummariser
from ctxmgr.text.tokens import ESTIMATE
from tests.context.summaries.test_grammar import CODE

ROOT = Path(__file__).parents[3]

LINES = [
    "# One",
    "## Two ##",
    "Title\n===",
    "Sub\n---",
    "> # quoted",
    "- # in a list",
    "#",
    "# #",
    "### `code` *it*",
    "- item",
    "1. first",
    "A sentence. Another one.",
    "```\n# no heading\n```",
    "    # indented",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "",
    "<b>\n# in html",
    "text\n  # still text",
    "\\# no heading",
    "---",
    "***",
    "[a]: b",
    "~~~\n```",
]


def headings(text: str) -> list[tuple[str, str]]:
    """Return the level and the words of every heading, as a Markdown parser sees them."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [
        (token.tag, " ".join(tokens[number + 1].content.split()))
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


@pytest.mark.long
@settings(max_examples=500)
@given(text=st.lists(st.sampled_from(LINES), max_size=25).map("\n".join))
def test_all_headings_are_kept(text: str) -> None:
    """Whatever surrounds them, each draft has the headings of the document, in their order and on their level."""
    assume(not text.startswith("---"))  # else its beginning is front matter
    for parts in MarkdownSummariser().drafts(text, "markdown"):
        assert headings("".join(parts)) == headings(text)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_real_markdown_keeps_its_headings_within_the_target(name: str) -> None:
    """A real document is summarised to a quarter at most and keeps its headings."""
    text = (ROOT / name).read_text(encoding="utf-8")
    made = summarise(name, text, "", ESTIMATE)

    assert headings(made.text.partition("\n")[2]) == headings(text)
    assert made.tokens <= made.original_tokens * 25 // 100


def test_front_matter_is_no_heading() -> None:
    """What stands before the document is kept as data, and never turns into a heading of its summary."""
    text = "---\ntitle: A page\n---\n\n# One\n\n" + "Some words that go on for a while. And on.\n" * 40
    made = summarise("a.md", text, "", ESTIMATE)

    assert headings(made.text) == [("h1", "One")]
    assert "title: A page" in made.text


@pytest.mark.parametrize("kind", CODE)
def test_signatures_of_other_languages_by_line(kind: str) -> None:
    """Without a grammar the lines that open a definition are kept, in order, without what they do."""
    text, expected = CODE[kind]
    last = "".join(list(LineSummariser().drafts(text, kind))[-1])

    assert [one for one in expected if one in last] == expected
    assert "return" not in last
