"""Which name an error does not know, what it calls such a thing, and which names it offers in its place."""

from __future__ import annotations

import re

import pytest

from ctxmgr.diagnose.errors.refusals import last_match, meant_names, offered_names, unknown_names


@pytest.mark.parametrize(
    ("text", "name", "noun"),
    [
        ("fatal: no such branch: release-2024", "release-2024", "branch"),
        ('unknown command "stauts" for "git"', "stauts", ""),
        ("ERROR: column 'customer_ref' does not exist", "customer_ref", "column"),
        ('Error: deployments.apps "web" not found', "web", ""),
        ("cannot find module 'left-pad'", "left-pad", "module"),
        ("Could not resolve host 'db.int'", "db.int", "host"),
        ("a.txt: no such file or directory", "a.txt", ""),
        ("don't know how to make target dist", "dist", "target"),
        ("Unknown option: --verbos", "--verbos", "option"),
        ("the region us-east-9 is not available", "us-east-9", "region"),
        ('{"message": "no such queue \\"ord-inn\\""}', "ord-inn", "queue"),
    ],
)
def test_the_name_is_read_out_of_many_grammars(text: str, name: str, noun: str) -> None:
    """Whatever tool says it: the name as it stands there, and what it is called."""
    found = {each.name: each.noun for each in unknown_names(text)}

    assert name in found
    if noun:
        assert noun in found[name].split()


def test_a_program_that_speaks_is_not_unknown() -> None:
    """Before a colon stands who says it, unless nothing but "unknown" follows."""
    assert [each.name for each in unknown_names("deploy: unknown stage w17 in f3")] == ["w17"]
    assert [each.name for each in unknown_names("deploy: unknown")] == ["deploy"]


@pytest.mark.parametrize("text", ["", "3 passed in 0.2s", "this is not the file you are looking for", "no errors", "all found"])
def test_a_sentence_names_nothing(text: str) -> None:
    """Small words are no names, nor are counts."""
    assert list(unknown_names(text)) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Did you mean: status?", ["status"]),
        ("Perhaps you meant 'customer_id'", ["customer_id"]),
        ("The most similar commands are\n\tstatus\n\tstash", ["status", "stash"]),
        ("invalid choice: 'x' (choose from 'json', 'yaml')", []),
    ],
)
def test_what_was_meant_is_told_from_what_is_allowed(text: str, names: list[str]) -> None:
    """A guess of the tool is one; a list of all values is none."""
    assert meant_names(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("argument --format: invalid choice: 'x' (choose from 'json', 'yaml', 'md')", ["json", "yaml", "md"]),
        ("status must be one of open, done or closed", ["open", "done", "closed"]),
        ("available columns: id | amount | total", ["id", "amount", "total"]),
        ("valid regions are:\n  eu1\n  us2", ["eu1", "us2"]),
        ("Unknown command. Did you mean status?", ["status"]),
        ("it failed", []),
    ],
)
def test_what_is_offered_is_read_in_its_order(text: str, names: list[str]) -> None:
    """Lists in any punctuation, without the words between."""
    assert offered_names(text) == names


def test_long_output_is_read_as_far_as_an_error_goes() -> None:
    """A name far behind the beginning is not looked for, and a text without end costs no time."""
    assert list(unknown_names("x " * 5_000 + "no such branch: late")) == []
    assert list(unknown_names("a" * 200_000)) == []


def test_the_last_error_counts_unless_another_one_follows() -> None:
    """What is raised behind it ended the call; a name of an exception within a line did not."""
    pattern = re.compile(r"no such table: (\w+)")

    found = last_match(pattern, "no such table: a\nno such table: b\ndone, a ValueError was handled")
    assert found is not None
    assert found.group(1) == "b"
    assert last_match(pattern, "no such table: a\n\nDuring handling\napp.errors.SetupError: gave up") is None
    assert last_match(pattern, "all is well") is None


@pytest.mark.parametrize(
    "said",
    ["C-204 is not available 2026-06-11 13:00-15:30", "C-204 is not available: overlaps HD-7", "C-204 not available at 9:00"],
)
def test_what_is_taken_for_a_time_is_known(said: str) -> None:
    """A name that is refused for a time, or for somebody who has it, is no unknown one."""
    assert [each.name for each in unknown_names(said)] == []
    assert [each.name for each in unknown_names("C-204 is not available")] == ["C-204"]
