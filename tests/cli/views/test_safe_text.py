"""The filter that all text passes on its way to a terminal: what is escaped, how much of it is cut, and where."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import get_character_cell_size

from ctxmgr.cli.views.safe_text import cells, cut, safe

ANY_TEXT = st.text(alphabet=st.characters(), max_size=60) | st.text(
    alphabet="a\u0301\u200b\ud800\x1b\n\t漢⚠\ufe0f🏽1", max_size=40
)
"""Text of any code points, lone surrogates among them."""


@pytest.mark.cases(1)
@pytest.mark.parametrize("planes", [range(0x0, 0x10000), range(0x10000, 0x30000), range(0xE0000, 0xE1000)])
def test_every_character_that_could_hide_or_steer_is_escaped(planes: range) -> None:
    """After the filter no character is a control, format, private, unassigned or surrogate one, or a lone mark."""
    for code in planes:
        assert safe(chr(code))
        for char in safe(chr(code)):
            assert unicodedata.category(char)[0] in "LNPSZ", f"U+{code:04X}"
            assert unicodedata.category(char) not in ("Zl", "Zp"), f"U+{code:04X}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("\x9b31m\x9d0;x\x9c\x7f", "\\x9b31m\\x9d0;x\\x9c\\x7f"),
        ("a\u202egnp.exe\u2066\u200f", "a\\u202egnp.exe\\u2066\\u200f"),
        ("pass\u200bword\u2060\ufeff\u00ad", "pass\\u200bword\\u2060\\ufeff\\xad"),
        ("\U000e0041\U000e0042", "\\U000e0041\\U000e0042"),
        ("x\u2028y\u2029z\x85", "x\\u2028y\\u2029z\\x85"),
        ("\ud800!", "\\ud800!"),
        ("hangul\u3164filler\u2800", "hangul\\u3164filler\\u2800"),
        ("[/red][link=file:///etc] :smile: a[0] [/INST]", "[/red][link=file:///etc] :smile: a[0] [/INST]"),
        ("one\ntwo\r\nthree\tfour\rfive", "one⏎two⏎three four\\x0dfive"),
        ("naïve café – 日本語 🚀 ⚠️ 1️⃣", "naïve café – 日本語 🚀 ⚠️ 1️⃣"),
        ("\u0301lone", "\\u0301lone"),
        ("a\ufe0f\ufe0e", "a\\ufe0f\\ufe0e"),
        (None, ""),
        (float("nan"), "nan"),
    ],
)
def test_the_filter_shows_what_would_not_be_seen(text: object, shown: str) -> None:
    """Steering and hidden characters become escapes, markup and ordinary text stay as they are."""
    assert safe(text) == shown


def test_widths_are_those_of_rich() -> None:
    """Every character that the filter lets through takes as many cells as rich says; flags and skin tones take two."""
    shown = [char for char in map(chr, range(0x20, 0x20000)) if safe(f"a{char}") == f"a{char}"]
    assert len(shown) > 50_000
    for char in shown:
        wide = "\U0001f1e6" <= char <= "\U0001f1ff" or "\U0001f3fb" <= char <= "\U0001f3ff"
        assert cells(char) == (2 if wide else get_character_cell_size(char)), f"U+{ord(char):04X}"


def test_what_cannot_be_written_is_named() -> None:
    """A number of too many digits and a bottomless list are shown as their type."""
    nest: list[object] = []
    for _ in range(5000):
        nest = [nest]

    assert (safe(10**5000), safe(nest)) == ("<int>", "<list>")


def test_lines_are_kept_when_asked() -> None:
    """Line ends and tabs stay in text that is shown with its own lines; other controls do not."""
    assert safe("a\r\n\tb\x1b\n\u0301c", keep_lines=True) == "a\n\tb\\x1b\n\\u0301c"


def test_piles_of_marks_are_cut() -> None:
    """A character keeps eight combining marks; the rest is counted."""
    assert safe("e" + "\u0301" * 1000 + "!") == "e" + "\u0301" * 8 + "[+992 marks]!"


@given(ANY_TEXT)
def test_filtering_twice_changes_nothing(text: str) -> None:
    """What went through the filter goes through it again unchanged."""
    assert safe(safe(text)) == safe(text)


@given(ANY_TEXT, st.integers(min_value=0, max_value=30))
def test_a_limit_counts_cells(text: str, limit: int) -> None:
    """Limited text never takes more cells than allowed, and is whole when it fits."""
    shown = safe(text, limit=limit)

    assert cells(shown) <= limit
    if cells(safe(text)) <= limit:
        assert shown == safe(text)


def test_each_part_of_a_text_can_stay() -> None:
    """A cut keeps the beginning, both ends, or the end, and marks the place."""
    assert cut("abcdefghij", 5) == "abcd…"
    assert cut("abcdefghij", 5, keep="middle") == "ab…ij"
    assert cut("abcdefghij", 5, keep="end") == "…ghij"
    assert cut("漢字漢字", 6) == "漢字…"
