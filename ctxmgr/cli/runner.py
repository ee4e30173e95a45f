"""Run the command line: every fault becomes one message and one exit code."""

from __future__ import annotations

import errno
import os
import sys

from ctxmgr.cli.invocation import open_streams, quiet
from ctxmgr.errors import CtxmgrError, StorageFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OK, INTERNAL, STORE, INTERRUPTED = 0, 1, 5, 130
"""As in `ctxmgr.cli.exits`, which a command that ends well does not load."""


def run(call: Callable[[], object]) -> int:
    """Call the command line; return its exit code. No fault ends in a traceback unless CTXMGR_DEBUG is set."""
    open_streams()
    try:
        call()
    except SystemExit as end:
        return flushed(end.code if isinstance(end.code, int) else OK if end.code is None else INTERNAL)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return quiet(OK)
    except CtxmgrError as error:
        return report(error)
    except OSError as error:
        if error.filename is None:
            return _output_failed(error)
        return report(StorageFailed(f"{os.fsdecode(error.filename)}: {error.strerror}"))
    except Exception as error:
        if os.environ.get("CTXMGR_DEBUG"):
            raise
        return report(_internal_fault(error))
    return flushed(OK)


def report(error: CtxmgrError, arguments: Sequence[str] | None = None, command: str | None = None) -> int:
    """Say what went wrong with a command line, as its words ask for it; return the exit code."""
    from ctxmgr.cli.envelope import report_error, wants_json

    arguments = sys.argv[1:] if arguments is None else arguments
    if command is None:
        command = next((word for word in arguments if not word.startswith("-")), "")
    return flushed(report_error(command, "json" if wants_json(arguments) else "table", error))


def _internal_fault(error: Exception) -> CtxmgrError:
    # No recorded content and no local values: only what kind of fault, and where in our code.
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else "?"
    return CtxmgrError(f"internal fault ({type(error).__name__} at {place})", "CTXMGR_DEBUG=1 shows where; please report it")


def flushed(code: int) -> int:
    """Return the code after the last output has really been written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return quiet(code)
    except OSError as error:
        return _output_failed(error)
    return code


def _output_failed(error: OSError) -> int:
    from ctxmgr.cli.envelope import say

    quiet(STORE)
    reason = "no space left" if error.errno == errno.ENOSPC else error.strerror or str(error)
    say(f"ctxmgr: can't write the output: {reason}")
    return STORE
