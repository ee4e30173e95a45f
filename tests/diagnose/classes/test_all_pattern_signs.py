"""A pattern is compiled only where a text holds a sign of it: whatever it finds must hold one."""

from __future__ import annotations

import re

import pytest

from ctxmgr.diagnose.classes.names import unknown_name, unknown_reference

_WAYS = [(way.pattern, (way.sign,)) for way in unknown_name._WAYS]  # pyright: ignore[reportPrivateUsage]
_UNKNOWN = [(each.pattern, each.signs) for each in unknown_reference._UNKNOWN]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("pattern", "signs"), [*_WAYS, *_UNKNOWN])
def test_what_a_pattern_finds_holds_a_sign_of_it(pattern: re.Pattern[str], signs: tuple[str, ...]) -> None:
    """A text is searched only where it holds a sign, so each way of saying it must: the words outside of its brackets."""
    said = re.sub(r"\[[^\]]*\]", "\0", pattern.pattern)
    said = re.sub(r"\((?:[^()]|\([^()]*\))*\)", "\0", said)
    for way in said.split("|"):
        words = re.sub(r"\\[.W]|[?^$+]", "", way).casefold()
        assert any(sign in words for sign in signs), way
