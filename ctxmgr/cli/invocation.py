"""One invocation of the command line: its words, the global options, the agent it runs for, its streams and environment.

`read` prepares the words for their command. Options that stand before the command move behind it. ``-q``, ``--no-color`` and
``--no-pager`` set `global_options`, ``-C`` changes the folder, ``help X`` becomes ``X --help``. Old spellings go on working
with a hint. Other words stay as they are. `print_help` answers ``--help`` from texts that were laid out beforehand.

Every start loads this module, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType
    from typing import Any, TextIO

    from ctxmgr.cli.fast.dispatch import Command
else:
    ModuleType = type(sys)

_MIN_WIDTH = 20
"""Line width in cells below which words are broken."""


class OutputOption:
    """An option that says how an answer is shown: its spellings, and whether a value follows it."""

    __slots__ = ("valued", "words")

    def __init__(self, *words: str, valued: bool = False) -> None:
        self.words, self.valued = words, valued


OUTPUT = {
    "json_": OutputOption("--json"),
    "format_": OutputOption("--format", valued=True),
    "fields": OutputOption("--fields", valued=True),
    "jq": OutputOption("--jq", valued=True),
    "raw": OutputOption("--raw", "-r"),
}
"""Parameter -> option, in the order in which `ctxmgr.cli.output.output_options` takes them. The one list of them."""


class GlobalOptions:
    """The options that every command has: ``-q`` (no messages but errors), ``--no-color``, ``--no-pager``."""

    __slots__ = ("colour", "pager", "quiet")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Go back to what holds when none is given."""
        self.quiet = False
        self.colour = self.pager = True


global_options = GlobalOptions()
"""The global options of the running command."""


def quiet(code: int) -> int:
    """Discard further output and return the code: a reader such as ``head`` that stops early is no error."""
    # The descriptor itself, since Python flushes stdout once more at exit and would report the broken pipe then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def columns(stream: TextIO | None) -> int:
    """Return the width of a line as `shutil.get_terminal_size` does, without loading `shutil` and its compression modules."""
    try:
        wide = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        wide = 0
    if wide <= 0:
        try:
            wide = os.get_terminal_size(stream.fileno()).columns if stream is not None else 0
        except (ValueError, OSError):
            wide = 0
    return wide or 80


def at_words(line: str, stream: TextIO) -> str:
    """Return a filtered message wrapped at words for a terminal, every line indented like the first; elsewhere unchanged."""
    if not stream.isatty():
        return line
    wide = max(columns(stream), _MIN_WIDTH)
    if line.isascii() and len(line) <= wide:
        return line
    from ctxmgr.cli.views.layout import Span, wrap_spans

    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    room = wide - len(indent)
    rows = wrap_spans([Span(text)], room, room)
    return "\n".join(indent + "".join(span.text for span in row).rstrip(" ") for row in rows)


def open_streams() -> None:
    """Open standard streams that were closed when the program started, on the null device."""
    # A closed stream would give its number to the next file that is opened, a store for instance.
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number, inheritable=True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


_asking: list[str | None] = [None]


def set_agent(value: str | None) -> str | None:
    """Remember the agent that the command runs for (``--as AGENT``), None for the operator; called for every command."""
    _asking[0] = value
    return value


def current_agent() -> str | None:
    """Return the agent that the command runs for, None for the operator."""
    return _asking[0]


# In an environment with many packages the search for plugins, and the loading of what others have installed for their own
# programs, would take longer than most commands.
_NAME, _NONE = "PYDANTIC_DISABLE_PLUGINS", "__all__"
_LOADER = "pydantic.plugin._loader"
_ours: list[bool] = []


def disable_plugins() -> None:
    """Load no plugins of pydantic in this process, unless the environment says which."""
    if _NAME not in os.environ:
        os.environ[_NAME] = _NONE
        _ours.append(True)
    if os.environ[_NAME] == _NONE and "pydantic" not in sys.modules:
        sys.modules[_LOADER] = _NoLoader(_LOADER)


class _NoLoader(ModuleType):
    """Stands in for what looks for plugins, which would load the whole reading of packages' metadata to find none."""

    @staticmethod
    def get_plugins() -> tuple[()]:
        """Return no plugins."""
        return ()

    def __getattr__(self, name: str) -> Any:
        """Make way for the real one, where another version of the library asks it for more."""
        if name.startswith("__") or sys.modules.get(_LOADER) is not self:
            raise AttributeError(name)
        from importlib import import_module

        del sys.modules[_LOADER]
        return getattr(import_module(_LOADER), name)


def child_environment() -> dict[str, str]:
    """Return the environment for child processes: ours, without the variable that we set ourselves."""
    found = dict(os.environ)
    if _ours and found.get(_NAME) == _NONE:
        del found[_NAME]
    return found


_GLOBAL = {"-q": "quiet", "--quiet": "quiet", "--no-color": "colour", "--no-colour": "colour", "--no-pager": "pager"}
_FLAGS = tuple(word for option in OUTPUT.values() if not option.valued for word in option.words)
_VALUED = (
    "--store",
    "--session",
    "-s",
    "--as",
    *(word for option in OUTPUT.values() if option.valued for word in option.words),
)
"""Options of commands that may stand before the command too."""

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
"""Command -> spellings of earlier versions, and how they are spelled now: one letter and one name mean one thing."""

_SPELLED = frozenset(word for words in OLD.values() for word in words)


def read(arguments: Sequence[str]) -> list[str]:
    """Return the command line as its command reads it; set `global_options` and the folder that ``-C`` names.

    Raises:
        InvalidInput: ``-C`` names no folder.
    """
    global_options.reset()
    moved, rest = _split_leading(list(arguments))
    if rest[:1] == ["help"]:
        rest = [*rest[1:], "--help"]
    # The usual case: nothing to change, so the table of commands is not even loaded here.
    if not moved and not (_GLOBAL.keys() | _SPELLED).intersection(_names(rest)):
        return rest
    from ctxmgr.cli.fast.dispatch import find_command

    found = find_command(rest)
    if found is None:  # for typer to name the fault
        return [*rest[:1], *moved, *rest[1:]] if rest else moved
    name, command, words = found
    return [*name.split(), *_current_spelling(name, command, [*moved, *words])]


def _names(words: Sequence[str]) -> Iterator[str]:
    return (word.partition("=")[0] for word in words)


def _split_leading(words: list[str]) -> tuple[list[str], list[str]]:
    """Split off the options before the command; return those that belong to the command, and the remaining words."""
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
        elif name in _VALUED and len(words) > 1:
            moved, words = [*moved, *words[:2]], words[2:]
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
    """Yield the words of a command in their current spelling, without the global options."""
    old = OLD.get(name, {})
    filtered = any(word == "--jq" or word.startswith("--jq=") for word in words)  # then -r means raw
    rest = iter(words)
    for word in rest:
        option, attached, value = word.partition("=")
        if word == "--":
            yield word
            yield from rest
        elif word in _GLOBAL and word not in command["options"]:
            _set_global(word)
        elif option in old and not (option == "-r" and filtered) and (not attached or option.startswith("--")):
            from ctxmgr.cli.envelope import say

            say(f"ctxmgr: {option} of '{name}' is spelled {old[option]} now")
            yield f"{old[option]}={value}" if attached else old[option]
            if not attached and _takes_value(command, old[option]):
                yield from _one_more(rest)
        else:
            yield word
            # The value is passed on unread: it may look like a global option, as in ``--message -q``.
            if not attached and _takes_value(command, word):
                yield from _one_more(rest)


def _takes_value(command: Command, option: str) -> bool:
    return option in command["options"] and not command["options"][option][1].endswith("flag")


def _one_more(rest: Iterator[str]) -> Iterator[str]:
    for word in rest:
        yield word
        return


_WIDTH = 80
"""Help is never laid out wider than this, so one prepared text fits every terminal at least this wide."""


def print_help(command: list[str]) -> bool:
    """Print a command's prepared help and return True; False for an unknown command, or where another layout is needed."""
    if not _is_plain():
        return False
    from ctxmgr.cli.fast.help_texts import TEXTS

    text = TEXTS.get(" ".join(command))
    if text is None:
        return False
    sys.stdout.write(text)
    return True


def _is_plain() -> bool:
    """Whether the prepared text is right: the program has its own name, no shell completes, and the line is wide enough."""
    # ``python -m ctxmgr`` has another name in its usage line, which only typer knows.
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
