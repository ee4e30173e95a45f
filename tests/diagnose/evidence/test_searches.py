"""The arguments of search commands: what they look for, and where."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose.evidence.searches import Search, parse_searches


@pytest.mark.parametrize(
    ("command", "patterns", "places"),
    [
        ("grep -rnE 'a|b' lib bin etc", ["a|b"], ["lib", "bin", "etc"]),
        ("grep -A 3 -e one -e two notes.txt 2>/dev/null | head -11", ["one", "two"], ["notes.txt"]),
        ("grep --include '*.rb' -r port lib; true", ["port"], ["lib"]),
        ("rg -t go -A3 port", ["port"], ["."]),
        ("git grep -n port -- src docs", ["port"], ["src", "docs"]),
        ("find src lib -name x.yml -exec grep -n port {} +", ["port"], ["src", "lib"]),
        ("find / -iname '*port*' -o -path '*/etc/*'", ["*port*", "*/etc/*"], ["/"]),
        ("fd -e py port src", ["port"], ["src"]),
        ("fd --glob 'port*' src", ["port*"], ["src"]),
        ("rg --files -g 'port*' etc", ["port*"], ["etc"]),
        ("LC_ALL=C grep -c port a.log", ["port"], ["a.log"]),
        ("locate port", ["port"], ["/"]),
        ("timeout 20 grep -rn port /etc", ["port"], ["/etc"]),
        ("ps ax | grep port", ["port"], []),
    ],
)
def test_patterns_and_places_are_told_apart(command: str, patterns: list[str], places: list[str]) -> None:
    """Options take their values, the pattern comes first, and several places may follow."""
    assert parse_searches(command) == (Search(tuple(patterns), tuple(places)),)


@pytest.mark.parametrize("command", ["", "ls -la | awk '{print $5}'", "git log --grep x", "echo grep x"])
def test_other_commands_search_nothing(command: str) -> None:
    """Only a program that searches counts."""
    assert parse_searches(command) == ()


def test_a_cut_command_is_read_as_far_as_it_goes() -> None:
    """A quote that is not closed ends nothing."""
    assert [search.places for search in parse_searches("grep -rn 'open lib")] == [("lib",)]
