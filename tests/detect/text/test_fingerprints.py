"""What is made equal and what is kept apart before anything is compared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.fingerprints import MAX_TEXT, mask_volatile


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("done in 0.19s", "done in 12.3s"),
        ("took 3 s", "took 14 s"),
        ("Duration: 12ms", "Duration: 9ms"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("at 0x7f3a22c0", "at 0x7f3a99ff"),
        ("a  b\n c", "a b c"),
        ("pid 4711 ready", "pid 12 ready"),
        ("Chunk ID: a1b2c3", "Chunk ID: ffee00"),
    ],
)
def test_noise_is_blurred_everywhere(one: str, other: str) -> None:
    """Durations, colours, addresses, blanks and process ids never make a result new."""
    assert mask_volatile(one) == mask_volatile(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-01-02T10:11:12Z", "at 2026-01-02T10:11:13.5+01:00"),
        ("10:11:12 failed", "10:11:59 failed"),
        ("550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440001"),
        ("commit 1a2b3c4d5e", "commit 99887766aa"),
        ("request req_abc", "request req_xyz"),
    ],
)
def test_ids_are_blurred_on_demand_only(one: str, other: str) -> None:
    """Times and ids are blurred where they cannot be the news, and kept where they may be."""
    assert mask_volatile(one) != mask_volatile(other)
    assert mask_volatile(one, ids=True) == mask_volatile(other, ids=True)


@pytest.mark.parametrize(("one", "other"), [("[1s] x", "[2s] x"), ("3 failed", "2 failed"), ("faded", "facade")])
def test_counters_and_words_are_kept(one: str, other: str) -> None:
    """Numbers that count, and words that happen to be hexadecimal, stay what they are."""
    assert mask_volatile(one, ids=True) != mask_volatile(other, ids=True)


def test_long_texts_differ_by_what_is_cut_off() -> None:
    """Beyond the cap length and content still count."""
    head = "x" * MAX_TEXT
    assert len(mask_volatile(head + "a" * MAX_TEXT)) < len(head) + 200
    assert mask_volatile(head + "a") != mask_volatile(head + "b")


def test_canonical_inputs() -> None:
    """Keys are sorted at every depth, cosmetic fields go when something else is left, and odd values have no form."""
    assert fingerprints.canonical({"b": {"d": 1, "c": 2}, "a": [2, 1]}) == '{"a":[2,1],"b":{"c":2,"d":1}}'
    assert fingerprints.canonical({"command": "ls", "description": "x"}) == fingerprints.canonical({"command": "ls"})
    assert fingerprints.canonical({"description": "x"}) != fingerprints.canonical({"description": "y"})
    assert fingerprints.canonical({"a": {1, 2}}) is None


def test_the_core_of_an_error_is_its_last_named_line() -> None:
    """Two tracebacks with one cause have one core."""
    one = "Traceback\n  File a, line 3\nValueError: bad token at 10:11:12"
    other = "Traceback\n  File b, line 9\n    x\nValueError: bad token at 23:59:01\n"
    assert fingerprints.error_core(one) == fingerprints.error_core(other) == "ValueError: bad token at #"


@pytest.mark.parametrize(
    ("core", "specific"),
    [
        ("PermissionError: the key file is locked", True),
        ("401 Unauthorized: token expired", True),
        ("Tool exec not found", True),
        ("Exit code 1", False),
        ("1 failed", False),
        ("File does not exist", False),
        ("", False),
    ],
)
def test_only_specific_errors_name_a_cause(core: str, specific: bool) -> None:
    """An error says what went wrong, or it says only that something did."""
    assert fingerprints.is_specific(core) is specific


def test_one_line_is_printable_and_short() -> None:
    """Text for a sentence has no line ends, no escapes and a given width."""
    line = fingerprints.one_line("a\n\x1b[2J\u202e" + "b" * 500)
    assert line.isprintable()
    assert len(line) == 80


def test_both_ends_of_a_long_answer_are_kept() -> None:
    """An excerpt keeps how an output begins and how it ends, on one line, without ruled lines and within its width."""
    text = "Exit code 1\n" + "=" * 70 + "\n" + "noise\n" * 200 + "AssertionError: 100 != 101"
    found = fingerprints.both_ends(text, 120)

    assert found.startswith("Exit code 1 === noise")
    assert found.endswith("AssertionError: 100 != 101")
    assert len(found) == 120
    assert fingerprints.both_ends("short\x1b[0m", 120) == "short [0m"
    assert len(fingerprints.both_ends("x" * 1_000_000, 300)) == 300


_KEYS = st.sampled_from(("a", "b", "command", "description", "thought", "\u00e9"))
_OBJECTS = st.dictionaries(_KEYS, st.text("ab\0\n\u00e9", max_size=2), max_size=4)


@given(_OBJECTS, _OBJECTS)
def test_objects_of_texts_are_equal_the_short_way_where_they_are_the_long_way(one: dict[str, str], two: dict[str, str]) -> None:
    """The texts of two objects are equal just where their canonical JSON is, whatever is in them and in whatever order."""
    assert (fingerprints.list_texts(one) == fingerprints.list_texts(two)) is (
        fingerprints.canonical(one) == fingerprints.canonical(two)
    )
    assert fingerprints.list_texts(one) == fingerprints.list_texts(dict(reversed(one.items())))


@pytest.mark.parametrize("fields", [{}, {"a": 1}, {"a": "x", "b": None}, {1: "x"}, {"a": ["x"]}])
def test_other_objects_are_compared_as_json(fields: dict[Any, Any]) -> None:
    """An empty object, and one that holds anything but texts, has no texts to stand for it."""
    assert fingerprints.list_texts(fields) is None


def test_an_object_of_many_texts_is_compared_like_one_of_few() -> None:
    """How many fields an object has, and whether some are cosmetic, changes nothing about how it is compared."""
    many = {f"key{number}" * 30: "x" for number in range(40)}
    assert fingerprints.list_texts({**many, "thought": "why"}) == fingerprints.list_texts(many)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("  duration_ms 1.524", "  duration_ms 0.97", True),
        ('{"ok":false,"durationMs":12}', '{"ok":false,"durationMs":9}', True),
        ("elapsed: 0.31", "elapsed: 0.2", True),
        ('{"elapsed":3,"state":"running"}', '{"elapsed":4,"state":"running"}', False),
        ("duration_ms 1.5 of 3 tests", "duration_ms 1.5 of 4 tests", False),
    ],
)
def test_a_measured_span_is_no_news(first: str, second: str, same: bool) -> None:
    """Test runners and APIs name a span and put no unit behind it; whole seconds may be a job that goes on."""
    assert (mask_volatile(first) == mask_volatile(second)) is same


def test_a_time_in_the_name_of_a_log_is_no_news_in_an_error() -> None:
    """Npm names the log of each failure after the moment; the failure is the same."""
    told = "npm error A complete log of this run can be found in: /home/dev/.npm/_logs/2026-11-22T{}Z-debug-0.log"
    assert mask_volatile(told.format("22_07_23_218"), ids=True) == mask_volatile(told.format("22_09_01_7"), ids=True)
    assert mask_volatile(told.format("22_07_23_218")) != mask_volatile(told.format("22_09_01_7"))


def test_the_errors_of_rustc_name_their_cause() -> None:
    """An error with a code in brackets is its line, whatever was compiled around it."""
    texts = [f"Compiling shop v0.{n}\nerror[E0308]: mismatched types\n  --> src/main.rs:{n}" for n in (1, 2)]
    assert [fingerprints.error_core(text) for text in texts] == ["error[E0308]: mismatched types"] * 2
    assert fingerprints.error_core("note\nerror : bad\nmore") == "error : bad"
