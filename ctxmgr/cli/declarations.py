"""Declare commands in the way of typer without loading typer. Commands import this module under its name.

The classes here only store the arguments of a declaration. `ctxmgr.cli.application` passes them to typer when help, completion
or an error message needs it. A module may also import typer itself; it only starts more slowly.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typer import Argument, Option, Typer
else:

    class Declaration:
        """The positional and named arguments of an option or an argument."""

        __slots__ = ("options", "words")

        def __init__(self, *words: Any, **options: Any) -> None:
            self.words, self.options = words, options

    class Option(Declaration):
        """The declaration of an option; see `typer.Option`."""

    class Argument(Declaration):
        """The declaration of an argument; see `typer.Argument`."""

    class Registration:
        """A command of a group: its name and its function, under the attribute names that typer uses."""

        __slots__ = ("callback", "name")

        def __init__(self, name: str | None, callback: Callable[..., Any]) -> None:
            self.name, self.callback = name, callback

    class Typer:
        """The declaration of a group of commands; see `typer.Typer`."""

        def __init__(self, **options: Any) -> None:
            self.options = options
            self.registered_commands: list[Registration] = []
            self.registered_groups: list[tuple[str, Typer]] = []

        def command(self, name: str) -> Callable[[Any], Any]:
            """Return a decorator that registers a function as the command of this name and returns it unchanged."""

            def registered(function: Any) -> Any:
                self.registered_commands.append(Registration(name, function))
                return function

            return registered

        def add_typer(self, group: Typer, *, name: str) -> None:
            """Add a group inside this one."""
            self.registered_groups.append((name, group))


__all__ = ["Argument", "Exit", "Option", "Typer"]


class Exit(Exception):  # noqa: N818 -- named as typer names it
    """End the command with this exit code. The command has printed its messages before."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.exit_code = code
