"""Patterns from the record: those of validators are matched, and none of them takes long."""

from __future__ import annotations

import re
import time
import warnings

import pytest

from ctxmgr.diagnose.errors.wanted_values import matches_pattern

READ = (
    r"^HP-\d{4}$", r"^[A-Z]{2}[0-9]{3,5}$", r"^(cat|dog)-[a-z_]+$", r"^v?\d+\.\d+\.\d+$", r"^(?:[a-z0-9]+-)*[a-z0-9]+$",
    r"^#[\da-fA-F]{6}$", r"^\+\d{1,3}(-\d{2,})?$", r"^[^@]+@[^@.]+\.[a-z]{2,}$", r"^.{3,}?$", r"\w+",
    r"^(a?){3}$", "", r"^[\w.-]$",
)  # fmt: skip
TEXTS = (
    "HP-2044", "HP-20444", "AB1234", "AB12", "cat-one_two", "cow-one", "v1.2.3", "1.2", "a-b-c", "a--b", "#00ffAA", "#00ffA",
    "+49-30", "+49-3", "+4911", "me@here.org", "me@here", "ab", "abc", "aaa", "aaaa", "", "a", ".", "\n",
)  # fmt: skip


@pytest.mark.parametrize("pattern", READ)
def test_patterns_of_validators_match_what_re_matches_pattern(pattern: str) -> None:
    """Of the patterns that are read, each matches the same whole texts as it does elsewhere."""
    assert [text for text in TEXTS if matches_pattern(pattern, text)] == [text for text in TEXTS if re.fullmatch(pattern, text)]


@pytest.mark.parametrize(
    "pattern",
    [r"^a{99999999999}$", "^(a", "^[z-a]$", "^((a))$", r"^(a)\1$", "^a++$",
     "^(?=a)a$", "^a|b$", "^[[:alpha:]]$", "^[a||b]$", "*a", "a" * 121],
)  # fmt: skip
def test_other_patterns_match_nothing(pattern: str) -> None:
    """What is not read raises nothing, warns of nothing and matches nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not matches_pattern(pattern, "a")


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a*)*b$", "^" + "a*" * 50 + "$", "^(" + "a?" * 40 + "){100,}$"])
def test_time_grows_slowly_with_the_text(pattern: str) -> None:
    """Twice the text takes at most sixteen times as long, where `re` takes a billion times as long."""

    def took(size: int) -> float:
        start = time.process_time()
        assert not matches_pattern(pattern, "a" * size + "!")
        return time.process_time() - start

    assert took(60) <= 16 * took(30) + 0.05
