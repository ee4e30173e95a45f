"""Declare commands as typer does, without loading typer: commands import this module under its name.

What an option, an argument or a group was given is kept, and handed to typer by `ctxmgr.cli.application` once help,
completion or a fault of usage needs it. A module that imports typer itself works as well; it only starts more slowly.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typer import Argument, Option, Typer
else:

    class Declaration:
        """What an option or an argument was given, by position and by name."""

        __slots__ = ("options", "words")

        def __init__(self, *words: Any, **options: Any) -> None:
            self.words, self.options = words, options

    class Option(Declaration):
        """An option as it was declared; see `typer.Option`."""

    class Argument(Declaration):
        """An argument as it was declared; see `typer.Argument`."""

    class Registration:
        """A command of a group, by its name and function; what typer calls it by is as in typer."""

        __slots__ = ("callback", "name")

        def __init__(self, name: str | None, callback: Callable[..., Any]) -> None:
            self.name, self.callback = name, callback

    class Typer:
        """A group of commands as it was declared; see `typer.Typer`."""

        def __init__(self, **options: Any) -> None:
            self.options = options
            self.registered_commands: list[Registration] = []
            self.registered_groups: list[tuple[str, Typer]] = []

        def command(self, name: str) -> Callable[[Any], Any]:
            """Return what registers a function as the command of this name, and leaves it as it is."""

            def registered(function: Any) -> Any:
                self.registered_commands.append(Registration(name, function))
                return function

            return registered

        def add_typer(self, group: Typer, *, name: str) -> None:
            """Let a group stand inside this one."""
            self.registered_groups.append((name, group))


__all__ = ["Argument", "Exit", "Option", "Typer"]


class Exit(Exception):  # noqa: N818 -- named as typer names it
    """End the command with this exit code; what there was to say is said."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.exit_code = code
