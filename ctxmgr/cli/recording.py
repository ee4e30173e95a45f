"""``record``: append records from stdin, or run a command and record it as one action."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated

import typer

from ctxmgr import wire
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer, fail, say, shown
from ctxmgr.cli.plugins import environment
from ctxmgr.cli.terminal import Printer
from ctxmgr.config import find_store, load_config
from ctxmgr.errors import Conflict, CtxmgrError, InvalidInput
from ctxmgr.ids import new_id
from ctxmgr.lines import read_lines
from ctxmgr.recorder import Recorder
from ctxmgr.store.appended import Appended
from ctxmgr.store.reserved import PROJECT, untrusted
from ctxmgr.types.checking import check
from ctxmgr.workspace import Workspace

_BATCH = 200
_KEPT = 64 * 1024
_KEPT_BEFORE = "the records before it are kept"


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="Run this and record it as one action.")
    ] = None,
    session: o.Session = None,
    agent: Annotated[str, typer.Option("--agent", help="Who acts, with -- CMD.")] = "shell",
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
    trust_project: o.TrustProject = False,
    store: o.Store = None,
    json_: o.Json = False,
    format_: o.Format = None,
    fields: o.Fields = None,
    jq: o.Jq = None,
) -> None:
    """Append records of log format 1 from stdin, one JSON object a line; or run a command and record it.

    Examples:
      my-agent --emit-ndjson | ctxmgr record
      ctxmgr record --session nightly -- make test
    """
    how = shown(json_, format_, fields, jq)
    if command:
        _record_command(command, session, agent, store, how, mask=mask)
        return

    def work(workspace: Workspace) -> Answer:
        if sys.stdin.isatty():
            say("ctxmgr: reading records from the terminal, one JSON object a line; Ctrl-D ends")
        done = Appended()
        batch: list[tuple[int, wire.Record]] = []
        left_out = 0
        try:
            for line in _stdin_records(session):
                if line[1]["session"] == PROJECT and not trust_project:
                    left_out += 1
                    continue
                batch.append(line)
                if len(batch) >= _BATCH:
                    done.plus(_append(workspace, batch))
                    batch.clear()
        finally:  # what came before a faulty line or an interrupt is kept
            done.plus(_append(workspace, batch))
        data = {"added": done.added, "known": done.known}
        return Answer(
            data, lambda out: _draw_appended(out, done), "ok" if done.added or done.known else "empty",
            warnings=[untrusted(left_out)] if left_out else [],
        )  # fmt: skip

    answer("record", lambda: how, work, store=store, create=True, masked=mask)


def _append(workspace: Workspace, batch: list[tuple[int, wire.Record]]) -> Appended:
    """Append numbered records together; if one of them is refused, those before it, and say which it was.

    Raises:
        Conflict, InvalidInput: a known id with other content, or what can't be stored.
    """
    try:
        return workspace.store.append([record for _, record in batch])
    except (Conflict, InvalidInput):
        done = Appended()
        for number, record in batch:
            try:
                done.plus(workspace.store.append([record]))
            except (Conflict, InvalidInput) as error:
                reason = error.message.removesuffix("; nothing was written")
                raise type(error)(f"stdin line {number}: {reason}", f"{_KEPT_BEFORE}; {error.hint}") from None
        return done


def _draw_appended(out: Printer, done: Appended) -> None:
    out.line(f"{done.added} records added, {done.known} known already")


def _stdin_records(session: str | None) -> Iterator[tuple[int, wire.Record]]:
    """Yield (line number, record of format 1) for each line of stdin.

    Raises:
        InvalidInput: naming the first line that holds no such record.
    """
    for number, _, line, length in read_lines(sys.stdin.buffer, wire.MAX_LINE):
        if line is None:
            raise InvalidInput(f"stdin line {number} is {length:,} bytes long; the limit is {wire.MAX_LINE:,}", _KEPT_BEFORE)
        if not line.strip():
            continue
        try:
            yield number, check(_completed(wire.decode(line), session))
        except InvalidInput as error:
            raise InvalidInput(f"stdin line {number}: {error.message}", f"{_KEPT_BEFORE}; {error.hint}") from None
        except ValueError as error:
            raise InvalidInput(f"stdin line {number}: {error}", f"{_KEPT_BEFORE}; one JSON object a line") from None


def _completed(given: wire.Record, session: str | None) -> wire.Record:
    """Return what was given with the version first, as every record has it, and what may be left out."""
    record: wire.Record = {"v": 1, **given}
    if session is not None:
        record.setdefault("session", session)
    if record.get("kind") in ("entry", "event", "note", "snapshot"):
        record.setdefault("id", new_id())
    if record.get("kind") == "event" and "type" in record:
        record["type"] = wire.EVENT_ALIASES.get(str(record["type"]), record["type"])
    record.pop("sum", None)
    return record


def _record_command(command: list[str], session: str | None, agent: str, store: str | None, how: Shown, *, mask: bool) -> None:
    """Run the command with its output passed through, and end with its exit code."""
    try:
        how.check()
        if session == PROJECT:
            raise InvalidInput(f"session {PROJECT!r} is the project's own", "name another session")
        target = store or find_store(Path.cwd(), os.environ, load_config(Path.cwd()))[0]
        recorder = Recorder(target, session=session, workflow="record", mask=mask, on_live="join")
        action = {"command": command}
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
    """Passes a pipe through as it comes and keeps its last 64 KiB."""

    def __init__(self, pipe: IO[bytes], to: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = os.dup(pipe.fileno())  # its own, since an interrupt closes the command's side at any time
        self._to = to
        self._kept = b""
        self._total = 0
        self.start()

    def run(self) -> None:
        while part := os.read(self._pipe, 1 << 16):
            self._total += len(part)
            self._kept = (self._kept + part)[-_KEPT:]
            try:
                self._to.write(part)
                self._to.flush()
            except OSError:
                continue  # whoever read our output went away; the command and its record go on
        os.close(self._pipe)

    def text(self) -> str:
        """Return what was kept, saying how much was left out."""
        left_out = self._total - len(self._kept)
        text = self._kept.decode("utf-8", "replace")
        return f"[{left_out} bytes left out]\n{text}" if left_out else text


def _run(command: list[str]) -> tuple[int, _Tee, _Tee]:
    try:
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
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
            running.send_signal(signal.SIGINT)  # it may not share our terminal
            running.wait()
            raise
        out.join()
        err.join()
    return (code if code >= 0 else 128 - code), out, err
