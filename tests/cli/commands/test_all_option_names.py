"""One meaning for each letter and name of an option, over all commands; this table is where it is held."""

from __future__ import annotations

from collections import defaultdict

from ctxmgr.cli.command_line import OLD
from ctxmgr.cli.fast.dispatch import command_by_name
from ctxmgr.cli.fast.table import TABLE
from tests.cli.console import run

LETTERS = {
    "-a": "--agent", "-d": "--description", "-e": "--entry", "-f": "--follow", "-m": "--message", "-n": "--limit",
    "-o": "--output",
    "-p": "--priority", "-r": "--raw", "-s": "--session", "-t": "--tag", "-w": "--write", "-x": "--expand", "-y": "--yes",
}  # fmt: skip
"""What each letter stands for, in whatever command."""

ROOT = {"-C", "-q", "-h", "-V"}
"""Letters of the program itself: a folder, quiet, help, the version. No command gives them another meaning."""

NAMES: dict[str, tuple[str, str]] = {
    "--action": ("text", "an action: the calls that are meant"),
    "--after": ("text", "a step of a goal, behind which another comes"),
    "--agent": ("text", "an agent: who acted, or whose it is"),
    "--all-sessions": ("flag", "all sessions of the store"),
    "--allow-commands": ("flag", "let probes of a goal run commands"),
    "--as": ("text", "ask as this agent: its access rules hold"),
    "--author": ("text", "who says it"),
    "--base-url": ("text", "the server of the model"),
    "--before": ("text", "a step of a goal, before which another comes"),
    "--by": ("text", "the author of a change; of 'stats', what is added up by"),
    "--counter": ("text", "how tokens are counted"),
    "--description": ("text", "what it is, in words"),
    "--diff": ("flag", "leave out what the agent was given before"),
    "--dir": ("text", "the project's folder of a goal"),
    "--dry-run": ("flag", "show what would be done, and do nothing"),
    "--entry": ("text", "an entry"),
    "--event-type": ("text", "a type of events"),
    "--every": ("float", "seconds between two looks"),
    "--fields": ("text", "only these fields of each row"),
    "--force": ("flag", "do it though nothing is wrong"),
    "--format": ("text", "how the answer is written"),
    "--fresh": ("flag", "tell everything, whatever the agent was given before"),
    "--from": ("text", "where it comes from: a format, an agent, a file, a version"),
    "--goal-dir": ("text", "the project whose goal is worked on"),
    "--input-type": ("text", "a type of inputs"),
    "--jq": ("text", "a program that filters the JSON envelope"),
    "--json": ("flag", "one JSON envelope"),
    "--kind": ("text", "entries, events or all"),
    "--keep": ("flag|text", "what stays: of 'store retain' an age"),
    "--limit": ("number", "the most rows"),
    "--link": ("text", "what it refers to"),
    "--list": ("flag", "list what there is, and change nothing"),
    "--llm-mode": ("text", "how the model takes part"),
    "--mask": ("flag", "mask secrets"),
    "--max-chars": ("number", "the most characters of a text"),
    "--max-tokens": ("number", "the most tokens of what an agent is given"),
    "--max-tool-calls": ("number", "the most tool calls of the model"),
    "--message": ("text", "what is said: the text of a note, an episode, a version"),
    "--model": ("text", "a model: which to ask; of 'stats', whose answers count"),
    "--model-tokens": ("number", "the most tokens of the model itself"),
    "--no-llm": ("flag", "ask no model"),
    "--no-mask": ("flag", "do not mask secrets"),
    "--now": ("text", "the moment to judge by"),
    "--offset": ("number", "rows to pass over"),
    "--only-session": ("flag", "read this session alone"),
    "--output": ("text", "the file that is written"),
    "--plan": ("flag", "show what would be done, and do nothing"),
    "--plugin": ("text", "the folder of a client's plug-in"),
    "--priority": ("number", "which of several counts first"),
    "--process": ("text", "a process of a session"),
    "--prompt": ("flag", "only the text for the agent"),
    "--raw": ("flag", "print texts that --jq finds without quotes"),
    "--reason": ("text", "why"),
    "--routes": ("text", "the routing table"),
    "--scope": ("text", "whose settings of a client"),
    "--session": ("text", "a session"),
    "--since": ("text", "from this time on"),
    "--sprint": ("text", "a sprint"),
    "--status": ("flag|text", "how something ended; of 'ship', how far it is"),
    "--store": ("text", "the store, or a log in its place"),
    "--supersedes": ("text", "the note that is replaced"),
    "--tag": ("text", "a tag"),
    "--task": ("text", "a task"),
    "--timeout": ("float", "seconds for the model"),
    "--to": ("text", "where it goes: an agent, a task, a version"),
    "--transcript": ("text", "the file that keeps what was said to the model"),
    "--trust-project": ("flag", "take over what records set for the project"),
    "--type": ("text", "of what type it is"),
    "--until": ("text", "before this time"),
    "--version": ("text", "a version of the artifacts"),
    "--yes": ("flag", "yes to every question"),
}
"""What a name that several commands know takes (a flag takes nothing), and what it means in all of them."""


def _options() -> dict[str, dict[str, tuple[str, str]]]:
    found = {name: command_by_name(name) for name in TABLE}
    return {name: command["options"] for name, command in found.items() if command is not None}


def _kind(kind: str) -> str:
    return kind.removeprefix("no ").removesuffix("s").replace("path", "text")


def test_a_letter_means_one_thing() -> None:
    """A letter stands for the same long name in every command that knows it, and for none of the program's own."""
    used: set[str] = set()
    for command, options in _options().items():
        for letter in (each for each in options if len(each) == 2):
            assert options.get(LETTERS[letter], ("",))[0] == options[letter][0], (command, letter)
            used.add(letter)

    assert used == LETTERS.keys()
    assert not used & ROOT


def test_a_name_means_one_thing() -> None:
    """A name that several commands know takes the same in all of them, and stands in the table with what it means."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for options in _options().values():
        for name, (_, kind) in options.items():
            if name.startswith("--"):
                kinds[name].append(_kind(kind))
    shared = {name: set(given) for name, given in kinds.items() if len(given) > 1}

    assert shared == {name: set(kind.split("|")) for name, (kind, _) in NAMES.items()}


def test_what_several_commands_are_asked_for_they_take_in_the_same_way() -> None:
    """Whatever reads a session takes it as an argument as well as by ``--session``; what pages takes both paging options."""
    known = _options()
    assert sum("--session" in options for options in known.values()) > 20
    assert sum("--offset" in options for options in known.values()) > 5
    for name, options in known.items():
        command = command_by_name(name)
        assert command is not None
        arguments = {argument for argument, _ in command["arguments"]}
        if (
            "--session" in options
            and name not in {"record", "execution record", "store restore"}
            and not name.startswith("memory ")
        ):
            assert arguments & {"target", "address", "entries"}, name
        if "--offset" in options:
            assert "--limit" in options, name


def test_old_spellings_are_of_options_that_are_gone() -> None:
    """No spelling of earlier versions hides an option, but for -r, which means --raw beside --jq; each leads to one."""
    for name, spellings in OLD.items():
        options = _options()[name]
        assert set(spellings.values()) <= options.keys()
        assert (spellings.keys() & options.keys()) <= {"-r"}
        for new in spellings.values():
            assert new in run(*name.split(), "--help").out
