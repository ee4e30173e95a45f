"""Prepare the words of a command line: apply global options, and replace old spellings.

Options before the command move behind it. ``-q``, ``--no-color`` and ``--no-pager`` set `global_options`, ``-C`` changes the
folder, and ``help X`` becomes ``X --help``. Old spellings still work and print a hint. Other words stay as they are.
`print_help` answers ``--help`` from texts that are generated in advance.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.cli.invocation import OUTPUT, global_options
from ctxmgr.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxmgr.cli.fast.dispatch import Command


_GLOBAL = {"-q": "quiet", "--quiet": "quiet", "--no-color": "colour", "--no-colour": "colour", "--no-pager": "pager"}
_FLAGS = tuple(word for option in OUTPUT.values() if not option.valued for word in option.words)
_VALUED = (
    "--store",
    "--session",
    "-s",
    "--as",
    *(word for option in OUTPUT.values() if option.valued for word in option.words),
)
"""Options of commands that may also stand before the command."""

OLD: dict[str, dict[str, str]] = {
    "list": {"-r": "--newest-first"},
    "version rollback": {"-r": "--reason"},
    **{f"goal {name}": {"-r": "--reason"} for name in ("done", "fail", "unblock", "block", "split", "drop")},
    "goal brief": {"-n": "--max-chars"},
    "goal tree": {"-a": "--all"},
    "goal add": {"-s": "--subtask"},
    "recover": {"--goal": "--goal-dir", "--max-tokens": "--model-tokens"},
    "request": {"--max-tokens": "--model-tokens"},
    "context assemble": {"--goal": "--goal-dir"},
    "context need add": {"--summary": "--use-summary", "--full": "--use-whole"},
    "execution record": {"--input": "--input-artifact", "--output": "--output-artifact"},
}
"""Command -> old spelling -> current spelling. In the current ones, a letter or a name means the same in all commands."""

_SPELLED = frozenset(word for words in OLD.values() for word in words)


def read(arguments: Sequence[str]) -> list[str]:
    """Return the words for the command, after setting `global_options` and entering the folder of ``-C``.

    Raises:
        InvalidInput: ``-C`` names no folder, an option has no value, or no command follows an option.
    """
    global_options.reset()
    moved, rest = _split_leading_options(list(arguments))
    if rest[:1] == ["help"]:
        rest = [*rest[1:], "--help"]
    # The usual case: there is nothing to change, so the table of commands is not loaded here.
    if not moved and not (_GLOBAL.keys() | _SPELLED).intersection(word.partition("=")[0] for word in rest):
        return rest
    from ctxmgr.cli.fast.dispatch import find_command

    found = find_command(rest)
    if found is None:  # typer reports the fault
        named = next((word for word in moved if word.partition("=")[0] in _VALUED), None)
        if named is not None and not rest:
            raise InvalidInput(f"no command follows {named}", "'ctxmgr --help' lists them")
        return [*rest[:1], *moved, *rest[1:]] if rest else moved
    name, command, words = found
    return [*name.split(), *_current_spelling(name, command, [*moved, *words])]


def _split_leading_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Consume the options before the command; return those that belong to the command, and the remaining words."""
    moved: list[str] = []
    while words and words[0].startswith("-"):
        word, attached = words[0], "=" in words[0]
        name = word.partition("=")[0]
        if word in _GLOBAL:
            _set_global(word)
            words = words[1:]
        elif word == "-C":
            _enter(words[1] if len(words) > 1 else "")
            words = words[2:]
        elif word in _FLAGS or (name in _VALUED and attached):
            moved, words = [*moved, word], words[1:]
        elif name in _VALUED:
            if len(words) == 1:
                raise InvalidInput(f"{word} needs a value, and a command behind it", f"e.g. ctxmgr {word} VALUE sessions")
            moved, words = [*moved, *words[:2]], words[2:]
        # typer handles ``--help``, ``--version`` and unknown options.
        else:
            break
    return moved, words


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such folder"
        raise InvalidInput(
            f"-C {folder}: {reason}", "name a folder: everything is as if the command was started there"
        ) from None


def _set_global(word: str) -> None:
    name = _GLOBAL[word]
    setattr(global_options, name, name == "quiet")


def _current_spelling(name: str, command: Command, words: list[str]) -> Iterator[str]:
    """Yield the words of a command in their current spelling, and apply the global options among them."""
    old = OLD.get(name, {})
    filtered = any(word == "--jq" or word.startswith("--jq=") for word in words)  # then -r means --raw
    rest = iter(words)
    for word in rest:
        option, attached, value = word.partition("=")
        # The words after ``--`` are the command line of another program.
        if word == "--":
            yield word
            yield from rest
        elif word in _GLOBAL and word not in command["options"]:
            _set_global(word)
        # ``-r=x`` stays as it is: typer would read ``=x`` as the value of a short option.
        elif option in old and not (option == "-r" and filtered) and (not attached or option.startswith("--")):
            from ctxmgr.cli.envelope import say

            say(f"ctxmgr: {option} of '{name}' is spelled {old[option]} now")
            yield f"{old[option]}={value}" if attached else old[option]
            if not attached and _takes_value(command, old[option]):
                yield from _one_more(rest)
        else:
            yield word
            # Pass the value on unread: it may look like a global option, as in ``--message -q``.
            if not attached and _takes_value(command, word):
                yield from _one_more(rest)


def _takes_value(command: Command, option: str) -> bool:
    return option in command["options"] and not command["options"][option][1].endswith("flag")


def _one_more(rest: Iterator[str]) -> Iterator[str]:
    for word in rest:
        yield word
        return


_WIDTH = 80
"""Maximum width of help texts in cells. A prepared text therefore fits every terminal that is at least this wide."""


def print_help(command: list[str]) -> bool:
    """Print the prepared help of a command; return False if the command is unknown or the help needs another layout."""
    if not _is_plain():
        return False
    from ctxmgr.cli.fast.help_texts import TEXTS

    text = TEXTS.get(" ".join(command))
    if text is None:
        return False
    sys.stdout.write(text)
    return True


def _is_plain() -> bool:
    """Whether the prepared help fits: the program runs as ``ctxmgr``, no shell completes, and the terminal is wide enough."""
    # ``python -m ctxmgr`` has another name in its usage line, and only typer knows it.
    started = getattr(sys.modules.get("__main__"), "__package__", None)
    if started or os.path.basename(sys.argv[0]) != "ctxmgr" or any(name.endswith("_COMPLETE") for name in os.environ):
        return False
    try:
        columns = int(os.environ.get("COLUMNS", "0"))
        if columns <= 0:
            columns = os.get_terminal_size(1).columns or _WIDTH
    except ValueError:
        return False
    except OSError:  # no terminal
        columns = _WIDTH
    return columns >= _WIDTH
