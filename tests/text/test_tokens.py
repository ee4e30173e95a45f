"""What a text is written in, and how many tokens it has: the estimate's exact numbers, exact counters against known ones."""

from __future__ import annotations

import builtins
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.text import tokens as counting
from ctxmgr.text.tokens import DENSE, ESTIMATE, KINDS, VOCABULARIES, content_kind, counter_by_name, known_kind


@given(size=st.integers(0, 100_000), kind=st.sampled_from(KINDS))
def test_the_estimate_is_the_rate_rounded_up(size: int, kind: str) -> None:
    """Prose has a token for every 4 characters begun, all else one for every 3.5; never a float."""
    rate = Fraction(7, 2) if kind in DENSE else Fraction(4)
    found = ESTIMATE.count("x" * size, kind)

    assert (type(found), found) == (int, math.ceil(size / rate))


@pytest.mark.parametrize(("kind", "tokens"), [("prose", 2), ("text", 2), ("code", 2), ("YAML", 2), ("json", 2), ("?", 2)])
def test_a_short_text_is_never_free(kind: str, tokens: int) -> None:
    """Seven characters are two tokens at either rate, whatever word the kind is given by."""
    assert ESTIMATE.count("1234567", kind) == tokens
    assert ESTIMATE.count("", kind) == 0


@given(first=st.text(), second=st.text(), kind=st.sampled_from(KINDS))
def test_parts_are_never_less_than_their_whole(first: str, second: str, kind: str) -> None:
    """The estimates of two texts add up to at least that of both together, so parts that fit make a whole that fits."""
    assert ESTIMATE.count(first, kind) + ESTIMATE.count(second, kind) >= ESTIMATE.count(first + second, kind)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("antidisestablishmentarianism", {"o200k_base": 6, "cl100k_base": 6}),
        ("2 + 2 = 4", {"o200k_base": 7, "cl100k_base": 7}),
        ("お誕生日おめでとう", {"o200k_base": 8, "cl100k_base": 9}),
        ("", {"o200k_base": 0, "cl100k_base": 0}),
    ],
)
def test_exact_counters_agree_with_published_counts(text: str, counts: dict[str, int]) -> None:
    """Each vocabulary gives the counts that its publisher shows; the test network is closed, so nothing is fetched."""
    pytest.importorskip("bpe_openai")

    assert {name: counter_by_name(name).count(text, "text") for name in VOCABULARIES} == counts
    assert {counter_by_name(name).band for name in VOCABULARIES} == {1.0}


@pytest.mark.parametrize("text", ["<|endoftext|>", "a\ud800b", "\0\x1b[2J", "a" * 20_000])
def test_exact_counters_take_any_text(text: str) -> None:
    """Control tokens spelled out, lone surrogates, control characters and endless words are counted, not obeyed or refused."""
    pytest.importorskip("bpe_openai")

    assert counter_by_name("o200k_base").count(text, "text") > 1


def test_an_unknown_counter_is_refused() -> None:
    """A name that no counter has is refused with the names there are."""
    with pytest.raises(InvalidInput, match="gpt-9") as refused:
        counter_by_name("gpt-9")

    assert refused.value.hint is not None
    assert "o200k_base" in refused.value.hint


def test_a_missing_extra_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra an exact counter is refused with what to install."""
    real = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "bpe_openai":
            raise ImportError(name)
        return real(name, *rest)  # pyright: ignore[reportArgumentType]

    counting._load_exact.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidInput, match="not installed") as refused:
        counter_by_name("o200k_base")

    assert refused.value.hint is not None
    assert "[tokens]" in refused.value.hint


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
    assert content_kind(name, text) == kind


@given(name=st.text(), text=st.text())
def test_any_name_and_text_have_a_kind(name: str, text: str) -> None:
    """Whatever the name and the text, the kind is a known one."""
    assert content_kind(name, text) in KINDS


@pytest.mark.parametrize(
    ("word", "kind"), [("Prose", "text"), (" yml ", "yaml"), ("C++", "cpp"), ("code", "code"), ("?", "text")]
)
def test_other_words_for_a_kind_are_understood(word: str, kind: str) -> None:
    """Short forms and capitals mean the kind; an unknown word means text."""
    assert known_kind(word) == kind
