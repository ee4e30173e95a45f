"""The command line: parse, build a request, call, show. One noun a module; `COMMANDS` names them all."""

from __future__ import annotations

import errno
import os
import sys

import typer

from ctxmgr.cli import about, history, recording, sources, stuck
from ctxmgr.cli.annotations import note_app, snapshot_app
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import say
from ctxmgr.errors import CtxmgrError

app = typer.Typer(
    name="ctxmgr",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Flight recorder and recovery desk for agent workflows.\n\n"
    "Start with 'ctxmgr import', then 'ctxmgr sessions'. Exit codes: 'ctxmgr schema exits'.",
)

COMMANDS = (
    ("sessions", stuck.sessions),
    ("detect", stuck.detect),
    ("recover", stuck.recover),
    ("request", stuck.request),
    ("trace", history.trace),
    ("list", history.list_),
    ("search", history.search),
    ("show", history.show),
    ("messages", history.messages),
    ("import", sources.import_),
    ("record", recording.record),
    ("export", sources.export),
    ("verify", sources.verify),
    ("schema", about.schema),
    ("demo", about.demo),
)
GROUPS = (("note", note_app), ("snapshot", snapshot_app))

for _name, _command in COMMANDS:
    app.command(_name)(_command)
for _name, _group in GROUPS:
    app.add_typer(_group, name=_name)


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", "-V", help="Print the version."),
) -> None:
    """Flight recorder and recovery desk for agent workflows."""
    if version:
        from ctxmgr import __version__

        sys.stdout.write(f"ctxmgr {__version__}\n")
        raise typer.Exit


def main() -> int:
    """Run the command line; return its exit code. No fault ends in a traceback unless CTXMGR_DEBUG is set."""
    try:
        app(standalone_mode=True)
    except SystemExit as end:
        return _flushed(end.code if isinstance(end.code, int) else 0 if end.code is None else Exit.INTERNAL)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return _quiet()
    except OSError as error:
        return _output_failed(error)
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
