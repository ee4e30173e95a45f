"""The command line: parse, build a request, call, show. One noun a module; `COMMANDS` names them all."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from ctxmgr.cli.acting import Command
from ctxmgr.cli.running import CommandLine, run

if TYPE_CHECKING:
    app: typer.Typer

COMMANDS = {
    "sessions": ("stuck", "sessions"),
    "detect": ("stuck", "detect"),
    "recover": ("recovery", "recover"),
    "request": ("recovery", "request"),
    "trace": ("history", "trace"),
    "list": ("history", "list_"),
    "search": ("history", "search"),
    "show": ("history", "show"),
    "messages": ("history", "messages"),
    "note": ("annotations", "note_app"),
    "snapshot": ("annotations", "snapshot_app"),
    "memory": ("memory", "memory_app"),
    "context": ("context", "context_app"),
    "execution": ("execution", "execution_app"),
    "access": ("access", "access_app"),
    "import": ("sources", "import_"),
    "record": ("recording", "record"),
    "export": ("sources", "export"),
    "verify": ("sources", "verify"),
    "index": ("indexing", "index"),
    "watch": ("watch", "watch"),
    "doctor": ("doctor", "doctor"),
    "schema": ("about", "schema"),
    "demo": ("about", "demo"),
}
"""Command -> module of this folder and name in it. Only the module of the command that runs is loaded."""

OPERATOR_ONLY = ("import", "access", "verify", "index", "doctor", "watch", "schema", "demo")
"""Commands that no agent runs: they know no ``--as``. All others that open a store do."""


def build_app(only: str | None = None) -> typer.Typer:
    """Return the command line; ``only`` loads no other command than this one (an unknown name loads all)."""
    app = typer.Typer(
        name="ctxmgr",
        cls=CommandLine,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name, (module, attribute) in COMMANDS.items():
        if only in (None, name) or only not in COMMANDS:
            command: Any = getattr(import_module(f"ctxmgr.cli.{module}"), attribute)
            if isinstance(command, typer.Typer):
                for part in command.registered_commands:
                    part.help = _help(part.callback)
                    part.cls = TyperCommand if name in OPERATOR_ONLY else Command
                app.add_typer(command, name=name)
            else:
                kind = TyperCommand if name in OPERATOR_ONLY else Command
                app.command(name, cls=kind, help=_help(command))(command)
    return app


def _help(command: Any) -> str:
    """Return a command's docstring with its examples kept line by line (a lone backspace says so)."""
    return inspect.cleandoc(command.__doc__ or "").replace("Examples:\n", "\b\nExamples:\n")


def __getattr__(name: str) -> Any:
    if name == "app":
        return build_app()
    raise AttributeError(f"module 'ctxmgr.cli' has no attribute {name!r}")


def root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version."),
) -> None:
    """Flight recorder and recovery desk for agent workflows.

    Start with 'ctxmgr import', then 'ctxmgr sessions'. What the exit codes mean: 'ctxmgr schema exits'.
    """
    if version:
        from ctxmgr import __version__

        sys.stdout.write(f"ctxmgr {__version__}\n")
        raise typer.Exit


def main() -> int:
    """Run the command line; return its exit code. No fault ends in a traceback unless CTXMGR_DEBUG is set."""
    return run(lambda: build_app(sys.argv[1] if len(sys.argv) > 1 else None)(standalone_mode=True))
