"""Paths that the record mentions: given to calls, listed in their outputs, joined with the folder that they lie in."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.files import asked_paths, find_move, is_file_name, listed_paths, mentions
from tests.diagnose.build import Call, Said, bash, edit, evidence, read, view


@pytest.mark.parametrize(
    ("command", "said", "paths"),
    [
        ("ls src", "a.py\ncart.py", ["src/cart.py"]),
        ("ls -l src/", "-rw-r--r-- 1 me me 9 cart.py", ["src/cart.py"]),
        ("ls", "cart.py", ["cart.py"]),
        ("ls shop tests", "shop:\ncart.py\n\ntests:\ncart.py", ["shop/cart.py", "tests/cart.py"]),
        ("ls -R", ".:\nshop\n\n./shop:\ncart.py", ["./shop/cart.py"]),
        ("find . -name cart.py", "./shop/cart.py\n./old/cart.py", ["./shop/cart.py", "./old/cart.py"]),
        ("ls shop/cart.py", "shop/cart.py", ["shop/cart.py"]),
        ("rg -l total", "shop/cart.py: total = 1", ["shop/cart.py"]),
        ("ls src", "cart.python", []),
        ("ls src", "http://x/cart.py", []),
    ],
)
def test_a_file_of_a_listing_has_its_folder(command: str, said: str, paths: list[str]) -> None:
    """The folder is that of the command, or of the header above; only whole names count."""
    assert listed_paths(view(0, bash(command, said)), said, "cart.py") == paths


def test_a_name_is_found_where_it_was_given_and_shown_newest_first() -> None:
    """In calls that worked alone, and only before the place that is asked about."""
    known = evidence(
        read("old/cart.py", "x = 1"), bash("ls shop", "cart.py"), Call("Read", {"file_path": "lost/cart.py"}, "gone", "error"),
        edit("new/cart.py", "a", "b"), bash("ls late", "cart.py"),
    )  # fmt: skip

    assert [(each.path, each.given) for each in mentions(known, "cart.py", 4)] == [
        ("new/cart.py", True),
        ("new/cart.py", False),
        ("shop/cart.py", False),
        ("old/cart.py", True),
    ]
    assert list(mentions(known, "cart", 5)) == []


@pytest.mark.parametrize(("word", "expected"), [
    ("cart.py", True), ("a/b.tar.gz", True), ("Makefile", True), ("docker/Dockerfile", True), ("README", True), ("cart", False),
    ("v1.2.", False), ("3.14159265358979", False),
])  # fmt: skip
def test_a_file_is_told_by_its_name(word: str, expected: bool) -> None:
    """By its suffix, or a name that files have without one."""
    assert is_file_name(word) is expected


def test_what_a_call_asks_for_is_all_that_it_names() -> None:
    """Its field, its patch, the words of its command but no options; else paths in its input."""
    patch = "*** Begin Patch\n*** Update File: shop/cart.py\n@@\n-a\n+b\n*** End Patch"

    assert asked_paths(view(0, read("a/b.py", "x"))) == ["a/b.py"]
    assert asked_paths(view(0, bash("cp -r src/a.py dst && ls"))) == ["src/a.py", "dst"]
    assert "shop/cart.py" in asked_paths(view(0, Call("apply_patch", patch)))
    assert asked_paths(view(0, Call("send", {"text": "look at docs/plan.md or notes.txt, not at plan"}))) == [
        "docs/plan.md",
        "notes.txt",
    ]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("I write out/new.csv instead of old.csv.", "out/new.csv"),
        ("old.csv was moved to out/new.csv.", "out/new.csv"),
        ("Nothing goes into old.csv any more, take out/new.csv.", "out/new.csv"),
        ("I put it into old.csv instead of out/new.csv.", None),
        ("out/new.csv was renamed to old.csv.", None),
        ("I moved out/new.csv to old.csv.", None),
        ("out/new.csv is no longer written, all is in old.csv.", None),
        ("I read out/new.csv and write old.csv.", None),
    ],
)
def test_a_message_names_the_place_where_a_file_is_now(words: str, place: str | None) -> None:
    """The new place is told apart from the one that is given up."""
    known = evidence(Said(words, "writer"), bash("cat old.csv"))
    move = find_move(known, known.recent[-1], "old.csv")

    assert (move.place if move else None) == place
