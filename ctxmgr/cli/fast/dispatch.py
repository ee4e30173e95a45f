"""Read a command line by the command table and run it; typer reads any line that is not understood completely.

Some commands have a handler on plain rows (`ctxmgr.cli.fast.rows`). For all others the function that typer would call is loaded
with its imports.
"""

from __future__ import annotations

import gc
import os
import sys

from ctxmgr.cli.fast.table import TABLE
from ctxmgr.log import fast_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypedDict

    from ctxmgr.cli.fast.rows import Handler

    class Quick(TypedDict):
        """What the handler on rows does not understand, and the values that the command's request admits."""

        beyond: list[str]
        ranges: dict[str, tuple[int, int]]
        choices: dict[str, list[str]]

    class Command(TypedDict):
        """A command: its function, and its arguments and options with the parameter, kind and default of each.

        ``function`` is a module and a name in it. ``how`` says whether the output options are passed as one parameter. With
        ``many`` the last argument takes any number of words. ``required`` names parameters that must be given. ``quick`` is
        null for a command without a handler on rows.
        """

        function: tuple[str, str]
        how: bool
        arguments: list[tuple[str, str]]
        many: bool
        required: list[str]
        options: dict[str, tuple[str, str]]
        defaults: dict[str, Any]
        quick: Quick | None


def answer_command(arguments: list[str]) -> int | None:
    """Answer a command line; return its exit code, or None when typer has to read it and nothing was done."""
    found = find_command(arguments)
    if found is None or any(name.endswith("_COMPLETE") for name in os.environ):  # the shell asks for completions
        return None
    name, command, words = found
    values = parse(command, words)
    if values is None:
        return None
    from ctxmgr.cli.invocation import set_agent

    set_agent(values.pop("as_agent", None))  # for every command: typer calls this option's callback even when it is not given
    return run_command(name, command, values)


def run_command(name: str, command: Command, values: dict[str, Any]) -> int:
    """Run a command with the values of its parameters; return its exit code."""
    if is_quick(command, values):
        from ctxmgr.cli.envelope import take_output_options
        from ctxmgr.cli.fast.rows import quick_answer

        # A copy: `quick_answer` puts files in the place of sessions, and the declared function needs the options as given.
        copied = dict(values)
        code = quick_answer(name, _handler(name), copied, take_output_options(copied))
        if code is not None:
            return code
    return _call_function(command, values)


def _handler(name: str) -> Handler:
    if name in ("detect", "recover", "sessions"):
        from ctxmgr.cli.fast.detection import HANDLERS
    elif name.startswith(("note", "record", "snapshot")):
        from ctxmgr.cli.fast.annotations import HANDLERS
    else:
        from ctxmgr.cli.fast.rows import HANDLERS
    return HANDLERS[name]


def _call_function(command: Command, values: dict[str, Any]) -> int:
    """Call the function of a command as typer would; return its exit code."""
    from importlib import import_module

    from ctxmgr.cli.declarations import Exit

    module, name = command["function"]
    function = getattr(import_module(module), name)
    if command["how"]:
        from ctxmgr.cli.envelope import take_output_options

        values["how"] = take_output_options(values)
    # The garbage collector is switched off at the start, for short queries; a command's own function may run for hours.
    gc.enable()
    try:
        function(**values)
    except Exit as end:
        return end.exit_code
    except Exception as end:
        typer: Any = sys.modules.get("typer")  # loaded by a command that declares with typer itself
        if typer is None or not isinstance(end, typer.Exit):
            raise
        ended: Any = end
        return int(ended.exit_code)
    return 0


# Longer numbers are no counts or limits; typer reads them, or refuses them in its own words.
_MAX_DIGITS = 16
_MAX_NAME_WORDS = 3
"""The number of words in the longest name of a command."""


def command_by_name(name: str) -> Command | None:
    """Return a command of the table by its whole name."""
    text = TABLE.get(name)
    return None if text is None else fast_json.loads(text)


def find_command(arguments: list[str]) -> tuple[str, Command, list[str]] | None:
    """Split a command line into the command's name, the command and the remaining words; None if it is unknown."""
    # Shortest first: no name of a command begins another, since groups are no commands.
    for count in range(1, 1 + min(_MAX_NAME_WORDS, len(arguments))):
        name = " ".join(arguments[:count])
        command = command_by_name(name)
        if command is not None:
            return name, command, arguments[count:]
    return None


def parse(command: Command, words: list[str]) -> dict[str, Any] | None:
    """Return the values of all parameters of a command; None if typer has to read a word or a required value is missing."""
    values = dict(command["defaults"])
    given: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            given += rest
        # A lone dash is a value that means stdin.
        elif len(word) < 2 or word[0] != "-":
            given.append(word)
        elif not _take(command, word, rest, values):
            return None
    if not _take_arguments(command, given, values) or any(values[name] is None for name in command["required"]):
        return None
    return values


def _take_arguments(command: Command, given: list[str], values: dict[str, Any]) -> bool:
    """Give the words that are not options to the arguments; return whether each was accepted."""
    arguments = command["arguments"]
    single = arguments[:-1] if command["many"] else arguments
    if len(given) > len(single) and not command["many"]:
        return False
    for (name, kind), word in zip(single, given, strict=False):
        values[name] = read = _value(kind, word)
        if read is None:
            return False
    if len(given) > len(single):
        name, kind = arguments[-1]
        values[name] = [_value(kind, word) for word in given[len(single) :]]
        return None not in values[name]
    return True


def _take(command: Command, word: str, rest: Iterator[str], values: dict[str, Any]) -> bool:
    """Read one option and its value; return whether both were understood."""
    name, attached, text = word.partition("=")
    known = command["options"].get(name)
    # To typer ``-n=5`` has the value ``=5``.
    if known is None or (attached and name[:2] != "--"):
        return False
    dest, kind = known
    if kind in ("flag", "no flag"):
        values[dest] = kind == "flag"
        return not attached
    value = _value(kind.removesuffix("s"), text if attached else next(rest, None))
    if value is None:
        return False
    values[dest] = [*(values[dest] or ()), value] if kind[-1] == "s" else value
    return True


def _value(kind: str, word: str | None) -> Any:
    """Convert a word to a value; return None if typer has to read it, which accepts more forms and explains errors."""
    if word is None or kind == "text":
        return word
    if kind == "number":
        return int(word) if word.isascii() and word.isdigit() and len(word) <= _MAX_DIGITS else None
    if kind == "float":
        plain = word.isascii() and word.replace(".", "", 1).isdigit() and len(word) <= _MAX_DIGITS
        return float(word) if plain else None
    from pathlib import Path

    return Path(word)


def is_quick(command: Command, values: dict[str, Any]) -> bool:
    """Whether the command has a handler on rows that understands all given options."""
    quick = command["quick"]
    return quick is not None and all(values[name] == command["defaults"][name] for name in quick["beyond"])
