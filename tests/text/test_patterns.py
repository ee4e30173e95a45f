"""A pattern that is compiled at its first use is used like one that is compiled at once."""

from __future__ import annotations

import copy
import re
import subprocess
import sys

import pytest

from ctxmgr.text.patterns import lazy_pattern


def test_it_does_what_a_pattern_does() -> None:
    """All methods and attributes, flags, and bytes."""
    found = lazy_pattern(r"(\w)(\d)?", re.IGNORECASE)
    compiled = re.compile(r"(\w)(\d)?", re.IGNORECASE)

    assert [match.groups() for match in found.finditer("a1 B")] == [match.groups() for match in compiled.finditer("a1 B")]
    assert (found.sub("x", "a1 B"), found.pattern, found.groups) == ("x x", compiled.pattern, 2)
    assert lazy_pattern(b"a+").fullmatch(b"aa") is not None


def test_a_wrong_pattern_is_told_at_its_first_use() -> None:
    """And again at each further one."""
    wrong = lazy_pattern("(")
    for _ in range(2):
        with pytest.raises(re.error):
            wrong.search("")


def test_making_and_copying_one_compiles_nothing() -> None:
    """A module full of them costs next to nothing; `re` is not even loaded for it."""
    code = (
        "import sys, copy\nfrom ctxmgr.text.patterns import lazy_pattern\n"
        "copy.copy(lazy_pattern('('))\nsys.exit('ctxmgr.text' not in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert copy.copy(lazy_pattern("a+")).fullmatch("aa") is not None
