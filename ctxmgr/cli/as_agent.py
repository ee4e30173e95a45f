"""The option ``--as AGENT`` of every command that opens a store."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperCommand, TyperOption

_asking: ContextVar[str | None] = ContextVar("asking", default=None)


def remember(value: str | None) -> str | None:
    """Remember on whose behalf the command at hand runs; called for every command, with None where nobody is named."""
    _asking.set(value)
    return value


def asking() -> str | None:
    """Return the agent that the command at hand runs for, or None for the operator."""
    return _asking.get()


def _remembered(context: typer.Context, option: object, value: str | None) -> str | None:
    return remember(value)


class Command(TyperCommand):
    """A command that knows ``--as`` where it knows ``--store``, unless it declares the option itself."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        named = {name for parameter in self.params for name in parameter.opts}
        if "--store" in named and "--as" not in named:
            place = next(number for number, parameter in enumerate(self.params) if "--store" in parameter.opts)
            self.params.insert(
                place + 1,
                TyperOption(
                    param_decls=["--as", "as_agent"], type=str, default=None, callback=_remembered, expose_value=False,
                    metavar="AGENT", help="Ask as this agent: its access rules hold.", rich_help_panel="Store",
                    show_default=False,
                ),
            )  # fmt: skip
