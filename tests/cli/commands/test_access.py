"""``access``: rules are loaded, set, asked and tried as a script and a person do it, and no name steers the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.console import Ran, run

FILE = '[[rules]]\nagent = "coder"\nresource_type = "artifact"\npattern = "arch/*"\npermission = "read"\n'


@pytest.fixture(autouse=True)
def place(empty_project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty project with a store of its own."""
    monkeypatch.setenv("CTXMGR_STORE", str(empty_project / "history.db"))
    return empty_project


def access(*words: str) -> Ran:
    """Run a part of the command."""
    return run("access", *words)


def test_rules_are_set_and_taken_away() -> None:
    """Each change is told as a count with the rules in force; a denial wins, and a removed rule counts no more."""
    allowed = access("allow", "coder", "artifact", "arch/*", "--write", "--json").envelope["data"]
    assert (allowed["added"], allowed["changed"], allowed["removed"]) == (1, 0, 0)
    assert access("check", "coder", "write", "artifact", "arch/a.md").out.startswith("yes")

    access("deny", "coder", "artifact", "arch/a.md", "--priority", "1")
    refused = access("check", "coder", "read", "artifact", "arch/a.md")
    assert (refused.code, refused.out.split()[0]) == (4, "no")
    assert [row["permission"] for row in access("list", "--json").envelope["data"]] == ["none", "write"]

    assert access("remove", "coder", "artifact", "arch/a.md", "none", "--json").envelope["data"]["removed"] == 1
    assert access("check", "coder", "read", "artifact", "arch/a.md").code == 0


def test_an_explanation_names_what_decides_and_what_would_grant_it() -> None:
    """The rule that decides and those that lost are shown; the command that would grant it does."""
    access("allow", "coder", "artifact", "arch/*")
    access("deny", "coder", "artifact", "arch/*", "--priority", "1")
    told = access("explain", "coder", "read", "artifact", "arch/a.md").out
    assert "The rule that decides" in told
    assert "Rules that lost" in told
    assert "read coder artifact arch/*" in told

    wanted = access("explain", "other", "write", "artifact", "arch/a.md").out.rpartition("would grant it")[2]
    command = next(line.split() for line in wanted.splitlines() if "ctxmgr access allow" in line)
    assert run(*(word.strip("'") for word in command[1:])).code == 0
    assert access("check", "other", "write", "artifact", "arch/a.md").code == 0


def test_rules_come_from_a_file_and_are_tried_before(place: Path) -> None:
    """A file is tried without a change, and then loaded; the template is loaded by its name."""
    (place / "rules.toml").write_text(FILE, "utf-8")
    access("allow", "writer", "artifact", "self")
    assert "can be used" in access("test", "rules.toml").out
    assert access("check", "coder", "read", "artifact", "arch/a.md").code == 4
    assert access("load", "rules.toml", "--json").envelope["data"]["added"] == 1
    assert access("check", "coder", "read", "artifact", "arch/a.md").code == 0
    assert access("load", "default", "--json").envelope["data"]["added"] > 10


@pytest.mark.parametrize(
    ("content", "code"), [(b"\xff\xfe", 2), (b"[[rules]]\nagent = 1\n", 2), (b"{", 2), (b"[" * 100_000, 2), (None, 3)]
)
def test_what_is_no_file_of_rules_changes_nothing(content: bytes | None, code: int, place: Path) -> None:
    """A file that is missing, is no text or holds no rules is refused by its name."""
    if content is not None:
        (place / "odd.toml").write_bytes(content)
    ran = access("load", "odd.toml", "--json")

    assert ran.code == code
    assert "odd.toml" in ran.envelope["error"]["message"]
    assert access("list", "--json").envelope.get("data", []) == []


@pytest.mark.parametrize("name", ["\x1b[2Jred", "a\nred", ""])
def test_a_name_that_steers_is_refused(name: str) -> None:
    """No agent, pattern or type of such a name gets a rule, and the refusal shows its signs by their codes."""
    for words in ((name, "artifact", "*"), ("coder", name, "*"), ("coder", "artifact", name)):
        ran = access("allow", *words)
        assert ran.code == 2
        assert not {"\x1b", "\u202e"} & set(ran.out + ran.err)
    assert access("list", "--json").envelope.get("data") in (None, [])


def test_a_sign_that_turns_text_around_is_shown_by_its_code() -> None:
    """It may stand in a name, and reaches no terminal as what it is."""
    assert "red\\u202e" in access("allow", "red\u202e", "artifact", "*").out


def test_denials_and_changes_are_shown_where_one_looks(place: Path) -> None:
    """`access log` shows a denied read, `context log` a change, `version list` a rollback with its reason."""
    (place / "a.md").write_text("one")
    run("artifact", "put", str(place / "a.md"), "--agent", "arch")
    (place / "a.md").write_text("two")
    run("artifact", "put", str(place / "a.md"), "--agent", "arch")
    run("version", "rollback", "1", "--reason", "too early")
    run("context", "set", "current_sprint", "S3")
    assert run("artifact", "get", "arch/a.md", "--as", "dev").code == 3

    (denied,) = access("log", "--denied", "--json").envelope["data"]
    assert (denied["agent"], denied["command"], denied["denied"][0]["name"]) == ("dev", "artifact get", "a.md")
    assert "arch/a.md" in access("log").out
    (change,) = run("context", "log", "--json").envelope["data"]
    assert (change["key"], change["newValue"], change["by"]) == ("current_sprint", "S3", "operator")
    assert "S3" in run("context", "log", "current_sprint").out
    assert run("version", "list", "--json").envelope["data"][0]["rollbacks"][0]["reason"] == "too early"
    assert "too early" in run("version", "list").out
    assert (access("log", "--agent", "nobody").out, run("context", "log", "other").out) == ("", "")


def test_a_rule_that_is_not_there_is_not_found() -> None:
    """Removing it says so, and not that there are no rules."""
    access("allow", "coder", "artifact", "arch/*")

    refused = access("remove", "coder", "artifact", "arch/*", "none", "--json")
    assert (refused.code, refused.envelope["error"]["message"]) == (3, "no rule coder artifact arch/* none")


def test_an_empty_file_of_rules_says_nothing_of_those_in_force(place: Path) -> None:
    """It adds nothing, and the answer is not that there are none."""
    access("allow", "coder", "artifact", "arch/*")
    (place / "none.toml").write_text("rules = []")

    assert "No access rules" not in access("load", "none.toml").err


@pytest.mark.parametrize("command", ["check", "explain"])
def test_the_help_names_one_agent_where_one_is_meant(command: str) -> None:
    """A question is about one agent; '*' is for rules."""
    shown = access(command, "--help").out

    assert "The agent that asks." in shown
    assert "'*' for any" not in shown
    assert "'*' for any" in access("allow", "--help").out
