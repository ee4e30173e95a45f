"""The command line: parse, build a request, call, show. One noun a module; `COMMANDS` names them all."""

from __future__ import annotations

import errno
import inspect
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer

from ctxmgr.cli.exits import Exit
from ctxmgr.errors import CtxmgrError

if TYPE_CHECKING:
    app: typer.Typer

COMMANDS = {
    "sessions": ("stuck", "sessions"),
    "detect": ("stuck", "detect"),
    "recover": ("stuck", "recover"),
    "request": ("stuck", "request"),
    "trace": ("history", "trace"),
    "list": ("history", "list_"),
    "search": ("history", "search"),
    "show": ("history", "show"),
    "messages": ("history", "messages"),
    "note": ("annotations", "note_app"),
    "snapshot": ("annotations", "snapshot_app"),
    "import": ("sources", "import_"),
    "record": ("recording", "record"),
    "export": ("sources", "export"),
    "verify": ("sources", "verify"),
    "schema": ("about", "schema"),
    "demo": ("about", "demo"),
}
"""Command -> module of this folder and name in it. Only the module of the command that runs is loaded."""


def build_app(only: str | None = None) -> typer.Typer:
    """Return the command line; ``only`` loads no other command than this one (an unknown name loads all)."""
    app = typer.Typer(
        name="ctxmgr",
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
                app.add_typer(command, name=name)
            else:
                app.command(name, help=_help(command))(command)
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
    try:
        build_app(sys.argv[1] if len(sys.argv) > 1 else None)(standalone_mode=True)
    except SystemExit as end:
        return _flushed(end.code if isinstance(end.code, int) else 0 if end.code is None else Exit.INTERNAL)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return _quiet()
    except OSError as error:
        if error.filename is None:
            return _output_failed(error)
        say(f"ctxmgr: {error.filename}: {error.strerror}")
        return Exit.STORE
    except CtxmgrError as error:
        say(f"ctxmgr: {error.message}")
        return Exit.INTERNAL
    except Exception as error:
        if os.environ.get("CTXMGR_DEBUG"):
            raise
        # No recorded content and no local values: only what kind of fault, and where in our code.
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
        say(f"ctxmgr: internal fault ({type(error).__name__} at {place})\n  CTXMGR_DEBUG=1 shows where; please report it")
        return Exit.INTERNAL
    return _flushed(0)


def say(text: str) -> None:
    """Tell a person something on stderr."""
    from ctxmgr.cli.output import say as said

    said(text)


def _flushed(code: int) -> int:
    """Return the code after the last output has really been written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _quiet()
    except OSError as error:
        return _output_failed(error)
    return code


def _quiet() -> int:
    # The reader went away, e.g. `| head`: nothing is wrong. Nothing more may be written, not even at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.OK


def _output_failed(error: OSError) -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    reason = "no space left" if error.errno == errno.ENOSPC else error.strerror or str(error)
    say(f"ctxmgr: can't write the output: {reason}")
    return Exit.STORE
