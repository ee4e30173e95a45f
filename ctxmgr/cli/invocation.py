"""State of the process of one command: its streams and environment, the global options, and the agent that it acts for.

Every module of the command line may import this module, so it imports none of them at the top. `command_line` sets the options.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, TextIO
else:
    ModuleType = type(sys)

_MIN_WIDTH = 20
"""Minimum line width in cells. Narrower terminals get broken words."""


class OutputOption:
    """An option that controls how the answer is shown: its spellings, and whether it takes a value."""

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
"""Parameter -> option, in the order in which `ctxmgr.cli.envelope.output_options` takes them. The one list of them."""


class GlobalOptions:
    """The options of every command: ``-q`` (only errors as messages), ``--no-color``, ``--no-pager``."""

    __slots__ = ("colour", "pager", "quiet")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Restore the defaults."""
        self.quiet = False
        self.colour = self.pager = True


global_options = GlobalOptions()
"""The global options of the running command."""


def quiet(code: int) -> int:
    """Discard further output and return the code. A reader that stops early, such as ``head``, is not an error."""
    # Replace the descriptor, because Python flushes stdout again at exit and would then report the broken pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


progress_lines: list[Callable[[], None]] = []
"""Functions that erase the progress lines on stderr, one for each line that is shown now."""


def erase_progress() -> None:
    """Erase the progress lines on stderr, before something else is written to the terminal."""
    while progress_lines:
        progress_lines.pop()()


def columns(stream: TextIO | None) -> int:
    """Return the width of a line as `shutil.get_terminal_size` does, without importing `shutil` and its compression modules."""
    try:
        # COLUMNS comes first, because users overrule the terminal with it.
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
    """Return a filtered message, wrapped at words if the stream is a terminal. All lines get the indentation of the first."""
    if not stream.isatty():
        return line
    wide = max(columns(stream), _MIN_WIDTH)
    # An ASCII character takes one cell. Other characters have to be measured.
    if line.isascii() and len(line) <= wide:
        return line
    from ctxmgr.cli.views.layout import Span, wrap_spans

    text = line.lstrip(" ")
    indent = line[: len(line) - len(text)]
    room = wide - len(indent)
    rows = wrap_spans([Span(text)], room, room)
    return "\n".join(indent + "".join(span.text for span in row).rstrip(" ") for row in rows)


def open_streams() -> None:
    """Open standard streams that were closed at the start of the program on the null device."""
    # Otherwise the next opened file, e.g. a store, would get the number of a standard stream.
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number, inheritable=True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


_asking: list[str | None] = [None]


def set_agent(value: str | None) -> str | None:
    """Set the agent that the command acts for (``--as AGENT``), None for the operator. Called for every command."""
    _asking[0] = value
    return value


def current_agent() -> str | None:
    """Return the agent that the command acts for, None for the operator."""
    return _asking[0]


# Pydantic searches all installed packages for plugins and loads them. With many packages, that would take longer than
# most commands.
_NAME, _NONE = "PYDANTIC_DISABLE_PLUGINS", "__all__"
_LOADER = "pydantic.plugin._loader"
_ours: list[bool] = []


def disable_plugins() -> None:
    """Load no plugins of pydantic in this process, unless the environment sets its own choice."""
    if _NAME not in os.environ:
        os.environ[_NAME] = _NONE
        _ours.append(True)
    if os.environ[_NAME] == _NONE and "pydantic" not in sys.modules:
        sys.modules[_LOADER] = _NoLoader(_LOADER)


class _NoLoader(ModuleType):
    """A replacement for pydantic's plugin loader. The real one would import `importlib.metadata` and find nothing."""

    @staticmethod
    def get_plugins() -> tuple[()]:
        """Return no plugins."""
        return ()

    def __getattr__(self, name: str) -> Any:
        """Import the real loader if another version of pydantic asks for more than `get_plugins`."""
        if name.startswith("__") or sys.modules.get(_LOADER) is not self:
            raise AttributeError(name)
        from importlib import import_module

        del sys.modules[_LOADER]
        return getattr(import_module(_LOADER), name)


def child_environment() -> dict[str, str]:
    """Return the environment for child processes, without the variable that this module has set."""
    found = dict(os.environ)
    if _ours and found.get(_NAME) == _NONE:
        del found[_NAME]
    return found
