"""Run the command line to its end: every fault becomes one message and one exit code, whatever the streams do."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from ctxmgr.cli.exits import Exit
from ctxmgr.cli.streams import open_streams, quiet
from ctxmgr.errors import CtxmgrError, InvalidInput, StorageFailed


class CommandLine(TyperGroup):
    """The root command; says what is wrong with a command line in the way all other faults are told."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run; in standalone mode end the process, otherwise return the exit code (None for 0)."""
        if not standalone_mode:
            return super().main(args, *rest, standalone_mode=False, **options)
        try:
            code = super().main(args, *rest, standalone_mode=False, **options)
        except TyperException as error:
            code = _misused(error, sys.argv[1:] if args is None else list(args))
        except SystemExit:
            # typer ends by itself for one reason only: whoever read the output went away.
            code = quiet(Exit.OK)
        sys.exit(code if isinstance(code, int) else int(Exit.OK))


def run(call: Callable[[], object]) -> int:
    """Call the command line; return its exit code. No fault ends in a traceback unless CTXMGR_DEBUG is set."""
    open_streams()
    try:
        call()
    except SystemExit as end:
        return _flushed(end.code if isinstance(end.code, int) else 0 if end.code is None else Exit.INTERNAL)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return quiet(Exit.OK)
    except CtxmgrError as error:
        return _told(error)
    except OSError as error:
        if error.filename is None:
            return _output_failed(error)
        return _told(StorageFailed(f"{os.fsdecode(error.filename)}: {error.strerror}"))
    except Exception as error:
        if os.environ.get("CTXMGR_DEBUG"):
            raise
        return _told(_internal(error))
    return _flushed(0)


def _misused(error: TyperException, arguments: Sequence[str]) -> int:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help itself
        typer.echo(error.format_message(), err=True)
        return error.exit_code
    path = str(context.command_path).split()[1:] if context is not None else []
    fault = InvalidInput(error.format_message().removesuffix("."), f"see '{' '.join(['ctxmgr', *path])} --help'")
    return _told(fault, arguments, " ".join(path))


def _told(error: CtxmgrError, arguments: Sequence[str] | None = None, command: str | None = None) -> int:
    from ctxmgr.cli.output import Shown, fail, wants_json

    arguments = sys.argv[1:] if arguments is None else arguments
    if command is None:
        command = next((word for word in arguments if not word.startswith("-")), "")
    try:
        fail(command, Shown("json" if wants_json(arguments) else "table"), error)
    except typer.Exit as end:
        return _flushed(end.exit_code)


def _internal(error: Exception) -> CtxmgrError:
    # No recorded content and no local values: only what kind of fault, and where in our code.
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
    return CtxmgrError(f"internal fault ({type(error).__name__} at {place})", "CTXMGR_DEBUG=1 shows where; please report it")


def _flushed(code: int) -> int:
    """Return the code after the last output has really been written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return quiet(code)
    except OSError as error:
        return _output_failed(error)
    return code


def _output_failed(error: OSError) -> int:
    from ctxmgr.cli.output import say

    quiet(Exit.STORE)
    reason = "no space left" if error.errno == errno.ENOSPC else error.strerror or str(error)
    say(f"ctxmgr: can't write the output: {reason}")
    return Exit.STORE
