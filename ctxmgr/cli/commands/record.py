"""``record``: append records from stdin, or record a command as one action."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.invocation import child_environment
from ctxmgr.cli.output import OutputOptions, fail
from ctxmgr.config import find_store, load_config
from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.recorder import Recorder
from ctxmgr.store.project_session import PROJECT

_TAIL_BYTES = 64 * 1024  # the end of an output tells how it ended; a build log of gigabytes must not fill the memory


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="Command to run and record as one action.")
    ] = None,
    session: o.Session = None,
    agent: Annotated[str, typer.Option("--agent", help="The agent that acts, with -- CMD.")] = "shell",
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
    trust_project: o.TrustProject = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Append records of log format 1 from stdin, one JSON object a line; or run a command and record it.

    Examples:
      my-agent --emit-ndjson | ctxmgr record
      ctxmgr record --session nightly -- make test
    """
    assert command, "without a command there is a handler"
    _record_command(command, session, agent, store, how, mask=mask)


def _record_command(
    command: list[str], session: str | None, agent: str, store: str | None, how: OutputOptions, *, mask: bool
) -> None:
    """Run the command, pass its output through, and end with its exit code."""
    try:
        how.check()
        if session == PROJECT:
            raise InvalidInput(f"session {PROJECT!r} is the project's own", "name another session")
        target = store or find_store(Path.cwd(), os.environ, load_config(Path.cwd()))[0]
        recorder = Recorder(
            target, session=session, workflow="record", mask=mask, on_live="join"
        )  # a live agent may own the session
        action = {"command": command}
        # A command that can't be started is recorded too: the error passes through the action and marks it as failed. The
        # action is the bare name of the program, so that ``make`` and ``/usr/bin/make`` are the same.
        with recorder, recorder.action(agent, Path(command[0]).name, input=action, input_type="command") as step:
            code, out, err = _run(command)
            step.output = {"exitCode": code, "stdout": out.text(), "stderr": err.text()}
            if code:
                step.fail(err.text() or f"exit code {code}", type=f"exit {code}")
    except CtxmgrError as error:
        fail("record", how, error)
    if code:
        raise typer.Exit(code)


class _Tee(threading.Thread):
    """Passes a pipe through as data arrives, and keeps its last `_TAIL_BYTES`."""

    def __init__(self, pipe: IO[bytes], to: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = os.dup(pipe.fileno())  # a copy, because an interrupt may close the command's pipe at any time
        self._to = to
        self._kept = b""
        self._total = 0
        self.start()

    def run(self) -> None:
        while part := os.read(self._pipe, 1 << 16):
            self._total += len(part)
            self._kept = (self._kept + part)[-_TAIL_BYTES:]
            try:
                self._to.write(part)
                self._to.flush()
            except OSError:
                continue  # the reader of our output is gone; the command and its record continue
        os.close(self._pipe)

    def text(self) -> str:
        """Return the kept part, after a note of how much was dropped."""
        left_out = self._total - len(self._kept)
        text = self._kept.decode("utf-8", "replace")
        return f"[{left_out} bytes left out]\n{text}" if left_out else text


def _run(command: list[str]) -> tuple[int, _Tee, _Tee]:
    try:
        # The command inherits our stdin, so that it can still ask its user.
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=child_environment())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"can't run {command[0]}: {reason}", "check the command after --") from None
    assert running.stdout is not None, "a pipe was asked for"
    assert running.stderr is not None, "a pipe was asked for"
    with running.stdout, running.stderr:
        out, err = _Tee(running.stdout, sys.stdout.buffer), _Tee(running.stderr, sys.stderr.buffer)
        try:
            code = running.wait()
        except KeyboardInterrupt:
            running.send_signal(signal.SIGINT)  # it may run without our terminal
            running.wait()
            raise
        # The command has ended, but the pipes may still hold output.
        out.join()
        err.join()
    # As in shells: 128 plus the number of the signal that ended the command.
    return (code if code >= 0 else 128 - code), out, err
