"""``import``, ``record``, ``export``, ``verify``: get history in and out, and check it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxmgr import wire
from ctxmgr.cli import options as o
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, answer, say, shown
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views import imports as views
from ctxmgr.errors import CtxmgrError, InvalidInput, StorageFailed
from ctxmgr.history.address import session_key
from ctxmgr.history.ingest import FORMATS
from ctxmgr.ids import new_id
from ctxmgr.store.interface import Appended
from ctxmgr.types.record import EVENT_ALIASES
from ctxmgr.workspace import Workspace

NOT_UNDERSTOOD = 0.02
"""Above this share of records that were not understood an import counts as partial (exit 8)."""

_BATCH = 200


def import_(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Logs or folders; else all on this machine.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help=f"Only this format: {', '.join(FORMATS)}.")
    ] = None,
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
    store: o.Store = None,
    json_: o.Json = False,
    format_: o.Format = None,
    fields: o.Fields = None,
    jq: o.Jq = None,
) -> None:
    """Import the logs that agents leave on disk; run it again at any time, only what is new is added.

    Exit code 8 when more than 2 % was not understood.

    Examples:
      ctxmgr import
      ctxmgr import ~/.claude/projects/my-project
      ctxmgr import rollout.jsonl --from codex --json
    """

    def work(workspace: Workspace) -> Answer:
        report = workspace.import_logs(paths or None, only=from_, progress=_progress)
        partial = report.not_understood > NOT_UNDERSTOOD or any(file.skipped for file in report.files)
        empty = not report.files and not report.unchanged
        return Answer(
            report.to_json(),
            lambda out: views.show_import(out, report),
            "partial" if partial else "empty" if empty else "ok",
            next=["ctxmgr sessions", "ctxmgr detect --all-sessions"] if report.sessions else [],
            code=Exit.PARTIAL if partial else Exit.OK,
        )

    answer("import", lambda: shown(json_, format_, fields, jq), work, store=store, create=True, masked=mask)


def _progress(done: int, total: int, path: Path) -> None:
    if sys.stderr.isatty() and total > 20 and done % 10 == 0:
        sys.stderr.write(f"\r{done} of {total} files")
        sys.stderr.flush()


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CMD...]", help="Run this and record it as one action.")
    ] = None,
    session: o.Session = None,
    agent: Annotated[str, typer.Option("--agent", help="Who acts, with -- CMD.")] = "shell",
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
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
    if command:
        _record_command(command, session, agent, store, mask=mask)
        return

    def work(workspace: Workspace) -> Answer:
        if sys.stdin.isatty():
            say("ctxmgr: reading records from the terminal, one JSON object a line; Ctrl-D ends")
        done = Appended()
        batch: list[wire.Record] = []
        for line in _stdin_records(session):
            batch.append(line)
            if len(batch) >= _BATCH:
                done.plus(workspace.store.append(batch))
                batch.clear()
        done.plus(workspace.store.append(batch))
        data = {"added": done.added, "known": done.known}
        return Answer(data, lambda out: _draw_appended(out, done), "ok" if done.added or done.known else "empty")

    answer("record", lambda: shown(json_, format_, fields, jq), work, store=store, create=True, masked=mask)


def _draw_appended(out: Printer, done: Appended) -> None:
    out.lines([f"{done.added} records added, {done.known} known already"])


def _stdin_records(session: str | None) -> Iterator[wire.Record]:
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        if len(line) > wire.MAX_LINE:
            raise InvalidInput(
                f"stdin line {number} is longer than {wire.MAX_LINE:,} bytes", "records before it are kept"
            )
        try:
            value = wire.decode(line)
        except ValueError as error:
            raise InvalidInput(
                f"stdin line {number}: {error}", "one JSON object a line; records before it are kept"
            ) from None
        value.setdefault("v", 1)
        if session is not None:
            value.setdefault("session", session)
        if value.get("kind") in ("entry", "event", "note", "snapshot"):
            value.setdefault("id", new_id())
        if value.get("kind") == "event":
            value["type"] = EVENT_ALIASES.get(str(value.get("type")), value.get("type"))
        value.pop("sum", None)
        yield value


def _record_command(command: list[str], session: str | None, agent: str, store: str | None, *, mask: bool) -> None:
    from ctxmgr.config import find_store, load_config
    from ctxmgr.recorder import Recorder

    try:
        target = store or find_store(Path.cwd(), __import__("os").environ, load_config(Path.cwd()))[0]
        code = 0
        with Recorder(target, session=session, workflow="record", mask=mask, on_live="join") as rec:
            with rec.action(agent, Path(command[0]).name, input={"command": command}, input_type="command") as step:
                try:
                    done = subprocess.run(command, check=False, stdin=None, capture_output=True)
                except OSError as error:
                    step.fail(f"{command[0]}: {error.strerror}", type="OSError")
                    say(f"ctxmgr: can't run {command[0]}: {error.strerror}")
                    code = 127
                else:
                    sys.stdout.buffer.write(done.stdout)
                    sys.stderr.buffer.write(done.stderr)
                    output = {"exitCode": done.returncode, "stdout": _tail(done.stdout), "stderr": _tail(done.stderr)}
                    step.output = output
                    if done.returncode:
                        step.fail(_tail(done.stderr) or f"exit code {done.returncode}", type=f"exit {done.returncode}")
                    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    except CtxmgrError as error:
        say(f"ctxmgr: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))
        raise typer.Exit(int(Exit.STORE)) from None
    if code:
        raise typer.Exit(code)


def _tail(data: bytes, limit: int = 64 * 1024) -> str:
    text = data.decode("utf-8", "replace")
    return text if len(text) <= limit else f"[{len(text) - limit} characters left out]\n{text[-limit:]}"


def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A new .jsonl file; else stdout.")
    ] = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    store: o.Store = None,
) -> None:
    """Write history as a log of format 1: nothing is lost, and any ctxmgr reads it in place.

    Examples:
      ctxmgr export --all-sessions -o history.jsonl
      ctxmgr export --session 01a1ffcb | gzip > run.jsonl.gz
    """

    def work(workspace: Workspace) -> Answer:
        key = None if all_sessions else session_key(workspace.store, session)
        records = iter(()) if key is None and not all_sessions else workspace.store.sessions.records(key)
        written = _write_log(records, output)
        if output is not None:
            say(f"{written} records written to {output}")
        return Answer({"records": written}, lambda out: None)

    answer("export", lambda: shown(False, "table", None, None), work, store=store)


def _write_log(records: Iterator[wire.Record], output: Path | None) -> int:
    """Write records with a fresh chain of sums; a file appears whole or not at all."""
    if output is None:
        return sum(1 for line in _sealed(records) if sys.stdout.write(line.decode("ascii") + "\n"))
    if output.exists():
        raise InvalidInput(f"{output} exists already", "name a new file: export never overwrites")
    import os

    part = output.with_name(output.name + ".part")
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            written = 0
            for line in _sealed(records):
                stream.write(line + b"\n")
                written += 1
            stream.flush()
            os.fsync(stream.fileno())
        part.rename(output)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StorageFailed(f"can't write {output}: {error.strerror}", "choose another place") from None
    return written


def _sealed(records: Iterator[wire.Record]) -> Iterator[bytes]:
    total = ""
    for record_ in records:
        body = wire.encode({key: value for key, value in record_.items() if key != "sum"})
        total = wire.chain(total, body)
        yield wire.seal(body, total)


def verify(
    store: o.Store = None,
    json_: o.Json = False,
    format_: o.Format = None,
    fields: o.Fields = None,
    jq: o.Jq = None,
) -> None:
    """Check every record against its sum, and report every damaged range; nothing is changed.

    Exit codes: 0 sound, 5 damaged.

    Examples:
      ctxmgr verify --store history.jsonl
    """

    def work(workspace: Workspace) -> Answer:
        checked, damage = workspace.store.verify()
        workspace.warnings.clear()
        rows: list[dict[str, Any]] = [
            {"offset": item.offset, "length": item.length, "reason": item.reason} for item in damage
        ]
        data = {"records": checked, "damaged": rows}

        def draw(out: Printer) -> None:
            out.lines(
                [f"{checked} records checked, {len(rows)} damaged ranges"]
                + [f"  offset {row['offset']}, {row['length']} bytes: {row['reason']}" for row in rows]
            )

        return Answer(data, draw, "partial" if rows else "ok", code=Exit.STORE if rows else Exit.OK)

    answer("verify", lambda: shown(json_, format_, fields, jq), work, store=store)
