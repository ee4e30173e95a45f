"""The command line: parse the words, build a request, call the library, show the answer.

Only this package talks to a terminal. It may import any other package. Start with `COMMANDS`, which names the module of each
command, and with `_run_words`, which runs a command line in these steps:

- `command_line` moves the global options from the words to `invocation`, which holds the state of the process. It answers
  ``--help`` from prepared texts (`fast.help_texts`).
- `fast.dispatch` parses by a generated table. It calls the handler of a quick command or the function in `commands`.
- `application` passes every other command line to typer, which also reports faults of usage.
- A command reads its options (`options`, `address`, `requests`) and passes its work to `output.answer`. That function opens the
  store, turns errors into exit codes (`exits`), and shows the answer: as JSON by `envelope`, as CSV or Markdown by
  `text_formats`, for people by `terminal.Printer`, which filters all text with `views.safe_text`.

`views` has the views that several commands share, `report` the HTML pages and the checks of builds, `browse` the terminal
browser.
"""

from __future__ import annotations

import errno
import os
import sys

from ctxmgr.cli.invocation import open_streams, quiet
from ctxmgr.errors import CtxmgrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    import typer

    app: typer.Typer

COMMANDS = {
    "sessions": ("commands.detect", "sessions"),
    "detect": ("commands.detect", "detect"),
    "recover": ("commands.recover", "recover"),
    "request": ("commands.recover", "request"),
    "prompt": ("commands.recover", "prompt_app"),
    "trace": ("commands.history", "trace"),
    "list": ("commands.history", "list_"),
    "search": ("commands.history", "search"),
    "show": ("commands.history", "show"),
    "messages": ("commands.history", "messages"),
    "stats": ("commands.history", "stats"),
    "sql": ("commands.history", "sql"),
    "note": ("commands.annotations", "note_app"),
    "snapshot": ("commands.annotations", "snapshot_app"),
    "memory": ("commands.annotations", "memory_app"),
    "goal": ("commands.goal", "goal_app"),
    "artifact": ("commands.artifact", "artifact_app"),
    "version": ("commands.artifact", "version_app"),
    "context": ("commands.context", "context_app"),
    "execution": ("commands.context", "execution_app"),
    "access": ("commands.access", "access_app"),
    "import": ("commands.import_export", "import_"),
    "formats": ("commands.import_export", "formats"),
    "record": ("commands.record", "record"),
    "receive": ("commands.connect", "receive"),
    "ship": ("commands.connect", "ship"),
    "store": ("commands.store", "store_app"),
    "export": ("commands.import_export", "export"),
    "verify": ("commands.import_export", "verify"),
    "index": ("commands.store", "index"),
    "check": ("commands.report", "check"),
    "report": ("commands.report", "report"),
    "browse": ("commands.history", "browse"),
    "mcp": ("commands.connect", "mcp"),
    "watch": ("commands.watch", "watch"),
    "tap": ("commands.connect", "tap"),
    "doctor": ("commands.doctor", "doctor"),
    "config": ("commands.config", "config_app"),
    "completion": ("completion", "completion"),
    "trust": ("commands.config", "trust"),
    "install": ("commands.install", "install"),
    "uninstall": ("commands.install", "uninstall"),
    "hook": ("commands.install", "hook"),
    "schema": ("commands.schema", "schema"),
    "demo": ("commands.doctor", "demo"),
}
"""Command -> (module in this package, name in the module). Only the module of the running command is imported."""

GROUPS = {
    "See what happened": (
        "import", "sessions", "list", "trace", "search", "show", "messages", "stats", "sql", "browse", "formats",
    ),
    "Find out what is wrong, and go on": ("detect", "recover", "request", "watch", "check", "report", "prompt"),
    "Annotate and remember": ("note", "snapshot", "memory"),
    "Plan the work, and give agents what they need": ("goal", "artifact", "version", "context", "execution", "access"),
    "Record, keep and connect": (
        "record", "export", "verify", "index", "ship", "store", "install", "uninstall", "hook", "mcp", "tap", "receive",
    ),
    "About ctxmgr itself": ("doctor", "config", "trust", "schema", "completion", "demo", "help"),
}  # fmt: skip
"""Section of the help -> its commands, in the order of the help. Names that `COMMANDS` does not have are skipped."""

OPERATOR_ONLY = (
    "import", "ship", "store", "formats", "receive", "check", "browse", "access", "verify", "index", "doctor", "config",
    "completion", "trust", "watch", "tap", "install", "uninstall", "hook", "schema", "demo",
)  # fmt: skip
"""Commands that only people run. They have no option ``--as AGENT``; all other commands that open a store have it."""


def build_app(only: str | None = None) -> typer.Typer:
    """Return the typer application. ``only`` loads a single command; an unknown name loads all of them."""
    from ctxmgr.cli.application import build

    return build(only)


def __getattr__(name: str) -> Any:
    # Built at first access, e.g. by `typer.testing`, because importing this package must not load typer.
    if name == "app":
        return build_app()
    raise AttributeError(f"module 'ctxmgr.cli' has no attribute {name!r}")


def main() -> int:
    """Run the command line and return its exit code. A fault shows a traceback only if CTXMGR_DEBUG is set."""
    return run(lambda: _run_words(sys.argv[1:]))


def _run_words(given: list[str]) -> None:
    """Run a command line: from prepared help, else on the fast path, else with typer."""
    from ctxmgr.cli.command_line import read

    # `completion --words` gets its words unread: a half-typed word must not be read as a global option.
    arguments = given if given[:2] == ["completion", "--words"] else read(given)
    if arguments[:2] == ["completion", "--words"]:  # a shell asks for completions
        from ctxmgr.cli.completion import completions

        sys.stdout.write("".join(f"{line}\n" for line in completions(arguments[2:])))
        return
    if arguments[-1:] in (["--help"], ["-h"]):
        from ctxmgr.cli.command_line import print_help

        if print_help(arguments[:-1]):
            return
    import gc

    gc.disable()  # a query ends before there is garbage worth collecting; longer work enables the collector again
    try:
        from ctxmgr.cli.fast.dispatch import answer_command

        code = answer_command(arguments)
    finally:
        gc.enable()
    if code is None:
        build_app(arguments[0] if arguments else None)(arguments, standalone_mode=True, is_read=True)
    elif code:
        sys.exit(code)


OK, INTERNAL, STORE, INTERRUPTED = 0, 1, 5, 130
"""The same codes as in `ctxmgr.cli.exits`. They are repeated here because that module loads `enum`, which success does not
need.
"""


def run(call: Callable[[], object]) -> int:
    """Call a function as the command line and return the exit code. A fault shows a traceback only if CTXMGR_DEBUG is set."""
    open_streams()
    try:
        call()
    except SystemExit as end:
        return flush_output(end.code if isinstance(end.code, int) else OK if end.code is None else INTERNAL)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return quiet(OK)
    except CtxmgrError as error:
        return report_failure(error)
    except OSError as error:
        if error.filename is None:  # an error without a file name comes from writing to stdout
            return _report_output_fault(error)
        from ctxmgr.cli.envelope import file_error

        return report_failure(file_error(error))
    except Exception as error:
        if os.environ.get("CTXMGR_DEBUG"):
            raise
        return report_failure(_internal_fault(error))
    return flush_output(OK)


# Not named "report": importing the subpackage `report` would replace the function by the module.
def report_failure(error: CtxmgrError, arguments: Sequence[str] | None = None, command: str | None = None) -> int:
    """Report an error as JSON or as text, as the command line asks, and return its exit code."""
    from ctxmgr.cli.envelope import report_error, wants_json

    arguments = sys.argv[1:] if arguments is None else arguments
    if command is None:
        command = next((word for word in arguments if not word.startswith("-")), "")
    return flush_output(report_error(command, "json" if wants_json(arguments) else "table", error))


def _internal_fault(error: Exception) -> CtxmgrError:
    # Give only the kind of the fault and its place in our code. Recorded text and local values must not get out.
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
    return CtxmgrError(f"internal fault ({type(error).__name__} at {place})", "CTXMGR_DEBUG=1 shows where; please report it")


def flush_output(code: int) -> int:
    """Flush stdout and return the code, or `STORE` if the output can't be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return quiet(code)
    except OSError as error:
        return _report_output_fault(error)
    return code


def _report_output_fault(error: OSError) -> int:
    from ctxmgr.cli.envelope import say

    quiet(STORE)
    reason = "no space left" if error.errno == errno.ENOSPC else error.strerror or str(error)
    say(f"ctxmgr: can't write the output: {reason}")
    return STORE
