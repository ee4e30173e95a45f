"""``ship``, ``receive``, ``tap`` and ``mcp``: commands that keep running between agents, machines and a store."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.base.paths import STORE_VARIABLE, nearest_store
from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.invocation import child_environment, current_agent
from ctxmgr.cli.output import Answer, OutputOptions, answer, answer_without_store, fail, say
from ctxmgr.config import find_store, load_config
from ctxmgr.errors import CtxmgrError, InvalidInput

# Each command imports what only it needs. An editor waits for `tap` and an agent for `mcp`, and neither needs the HTTP
# server of `receive` or the store of `ship`.
if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.history.shipper import Progress, Service
    from ctxmgr.live.receiver import Receiver
    from ctxmgr.workspace import Workspace


def ship(
    logs: Annotated[
        list[Path] | None, typer.Argument(metavar="[LOG...]", help="Logs and databases of ctxmgr; else the nearest .ctxmgr.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep shipping what is recorded, until interrupted.")] = False,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", help="Polling interval, with --follow.")] = 1.0,
    status: Annotated[
        bool, typer.Option("--status", help="Only show the progress of each log; no store is contacted.")
    ] = False,
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything leaves this machine.")] = True,
    trust_project: o.TrustProject = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Copy the records of local logs to another store, each once; agents keep writing to the log and never wait.

    It can be stopped at any time, and continues where it stopped. Several at once do no harm. --store is the target, a URL or
    a path; for other agents' logs use 'ctxmgr import'.

    Examples:
      ctxmgr ship --store postgresql://ctxmgr@db.example/history
      ctxmgr ship run.jsonl --follow --store postgresql://ctxmgr@db.example/history
      ctxmgr ship --status --json
    """

    def work() -> Answer:
        # Imported here because `tap` is in the same module, and an editor waits for `tap`.
        from ctxmgr.history.shipper import Service, Shipper, known_progress, printable_location

        o.require_interval(every)
        if status and follow:
            raise InvalidInput("--status shows the progress once and ships nothing", "leave out --status or --follow")
        if status:
            return _progress_answer(known_progress())
        target = _target(store)
        paths = [str(path) for path in logs or ()] or [nearest_store(os.getcwd())]
        _require_apart(paths, target)
        shippers = [Shipper(path, target, printable_location(target), trusted=trust_project) for path in paths]
        with closing(Service(shippers, target, masked=mask)) as service:
            if follow:
                _follow(service, every)
            else:
                service.once()
        return _progress_answer([shipper.progress for shipper in shippers])

    answer_without_store("ship", how, work)


def _target(store: str | None) -> str:
    target = store or os.environ.get(STORE_VARIABLE) or load_config(Path.cwd()).store
    if not target:
        raise InvalidInput("no store to ship to", "name it: --store postgresql://USER@HOST/DATABASE")
    return target


def _require_apart(paths: list[str], target: str) -> None:
    # Compare real paths, because one place can have several names.
    if any(os.path.realpath(path) == os.path.realpath(target) for path in paths):
        raise InvalidInput(f"{target} can't be shipped to itself", "name another store with --store")


def _follow(service: Service, every: float) -> None:
    """Ship until Ctrl-C or SIGTERM, then close in order."""

    def end(_number: int, _frame: object) -> None:
        # Service managers stop a process with SIGTERM, which would kill it. Unwind and close as after Ctrl-C instead.
        raise KeyboardInterrupt

    def report(error: CtxmgrError | None, wait: float) -> None:
        say("ctxmgr: shipping again" if error is None else f"ctxmgr: {error.message}; the next try is in {wait:.1f} s")

    before = signal.signal(signal.SIGTERM, end)
    try:
        service.follow(every, report)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _progress_answer(found: list[Progress]) -> Answer:
    from ctxmgr.cli.views.layout import plural

    rows: list[dict[str, Any]] = [each.to_json() for each in found]
    warnings: list[str] = []
    for each in found:
        if each.left_out:
            warnings.append(
                f"{each.source}: {each.left_out:,} records of the project's own state were left out; "
                "--trust-project takes them along"
            )
        if each.changed:
            warnings.append(f"{each.source}: the store keeps another content of {plural(each.changed, 'record')}")
        if each.refused:
            warnings.append(f"{each.source}: {each.refusal_text()}")
    failed = any(each.error for each in found)
    return Answer(
        rows, lambda out: show_progress(out, found), "partial" if failed else "ok" if rows else "empty", warnings=warnings,
        # A failed attempt does not fail the command, because the next one continues from the same place.
        code=Exit.OK,
    )  # fmt: skip


def show_progress(printer: Printer, rows: Sequence[Progress]) -> None:
    """Show what was shipped where, what is left, and why the last attempt failed."""
    from ctxmgr.cli.views.layout import Span

    if not rows:
        printer.hint("nothing was shipped from this machine yet: 'ctxmgr ship --store URL'")
    for row in rows:
        unit = row.to_json()["unit"]
        left = f"{row.lag:,} of {row.size:,} {unit} left" if row.lag else "all shipped"
        printer.line(f"{row.source} -> {row.target}: ", Span(left, "warn" if row.lag else "ok"), hang=2)
        archived = f", {row.archived:,} archived in {row.archive}" if row.archived else ""
        printer.line(
            f"  in all {row.added:,} records added, {row.known:,} known already{archived}; "
            f"last at {row.shipped or 'no time yet'}",
            hang=4,
        )
        if row.error is not None:
            printer.line("  ", Span(f"failing since {row.since}: {row.error}", "error"), hang=4)


RECEIVE_TOKEN = "CTXMGR_RECEIVE_TOKEN"

_MEGABYTE = 1_000_000
# Each connection may hold a body (`live.receiver`), so memory must hold eight of them.
_MAX_MEGABYTES = 256


def receive(
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    # The port that OpenTelemetry assigns to OTLP over HTTP.
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any free one.")] = 4318,
    max_body: Annotated[int, typer.Option("--max-body", metavar="MB", help="Maximum size of a request's body.")] = 16,
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Receive traces and logs as OTLP over HTTP, as JSON, and record them live; Ctrl-C or SIGTERM ends it, losing nothing.

    A program is answered when its export is written; detect, watch and all other commands see it at once. Only this machine
    can reach it. Another --host needs a token in CTXMGR_RECEIVE_TOKEN, which programs send as a bearer token.

    Examples:
      ctxmgr receive
      OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_EXPORTER_OTLP_PROTOCOL=http/json python my_agent.py
      CTXMGR_RECEIVE_TOKEN=... ctxmgr receive --host 0.0.0.0 --port 4318 --store team.db
    """

    def work(workspace: Workspace) -> Answer:
        if not 0 < max_body <= _MAX_MEGABYTES:
            raise InvalidInput(f"--max-body {max_body} can't be held", f"1 to {_MAX_MEGABYTES} megabytes")
        from ctxmgr.live.receiver import Limits, Receiver, TelemetryRecorder

        limits = Limits(max_body * _MEGABYTE)
        receiver = Receiver(host, port, token=os.environ.get(RECEIVE_TOKEN) or None, limits=limits)
        recorder = TelemetryRecorder(workspace.store)
        say(f"ctxmgr: receiving OTLP at {receiver.address} into {workspace.store.location}; Ctrl-C ends it")
        say(f"  OTEL_EXPORTER_OTLP_ENDPOINT={receiver.address} OTEL_EXPORTER_OTLP_PROTOCOL=http/json")
        with _stop_on_signals(receiver):
            # The search index is updated in pauses, so that no export waits for it.
            receiver.run(recorder.take, workspace.store.index)
        received = recorder.received
        if received.records:
            workspace.store.index()
        refused = sum(receiver.refused.values())
        data = {
            "exports": received.exports, "spans": received.spans, "added": received.records,
            "refused": {str(status): count for status, count in sorted(receiver.refused.items())},
        }  # fmt: skip
        summary = f"{received.exports:,} exports with {received.spans:,} spans, {received.records:,} records added"
        return Answer(
            data, lambda out: out.line(summary), "ok" if received.exports else "empty",
            warnings=[f"{refused:,} requests were refused"] if refused else [],
            next=["ctxmgr sessions", "ctxmgr detect --all-sessions"] if received.records else [],
        )  # fmt: skip

    answer("receive", how, work, store=store, create=True, masked=mask)


@contextmanager
def _stop_on_signals(receiver: Receiver) -> Generator[None]:
    """Stop the receiver in order on SIGINT and SIGTERM."""
    before = {
        number: signal.signal(number, lambda _number, _frame: receiver.stop()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def tap(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- AGENT...", help="The command that starts the agent.")
    ] = None,
    cancel_hung: Annotated[
        bool, typer.Option("--cancel-hung", help="Send session/cancel to the agent when its turn hangs.")
    ] = False,
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
    store: o.Store = None,
) -> None:
    """Run an agent for an editor over the Agent Client Protocol, and record the messages between them.

    In the editor's settings put 'ctxmgr tap --' before the agent's own command. Every byte is passed on unchanged and at once,
    also when the store is locked or full; stderr reports loops and hangs, and how much could not be recorded. The exit code is
    the agent's.

    Examples:
      ctxmgr tap -- gemini --acp
      ctxmgr tap --cancel-hung --store ~/acp.db -- opencode acp
    """
    try:
        if not command:
            raise InvalidInput("tap needs the command of an agent", "e.g. ctxmgr tap -- gemini --acp")
        config = load_config(Path.cwd())
        target = store or find_store(Path.cwd(), os.environ, config)[0]
        from ctxmgr.live.tap import run_tap

        # Called only in the forked recorder. The process between editor and agent never loads the store and the detectors.
        def record(copied: int, orders: int) -> None:
            from ctxmgr.live.tap_recorder import record_copies

            record_copies(copied, orders, target, config, masked=mask, cancel=cancel_hung)

        code = run_tap(command, child_environment(), record)
    except CtxmgrError as error:
        fail("tap", OutputOptions(), error)
    raise typer.Exit(code)


MCP_TOKEN = "CTXMGR_MCP_TOKEN"
"""Environment variable with the token that HTTP clients must send."""


def mcp(
    http: Annotated[
        int | None, typer.Option("--http", metavar="PORT", help="Port for HTTP on 127.0.0.1, instead of stdin and stdout.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Record nothing, neither notes nor answers.")] = False,
    store: o.Store = None,
) -> None:
    """Serve the history to an agent over the Model Context Protocol: is this run stuck, what to do next, what was tried.

    It uses stdin and stdout. With --http it listens on this machine alone, and a client must send the token of
    CTXMGR_MCP_TOKEN as a bearer token; without that variable a new token is made and printed to stderr. With --as the access
    rules of that agent apply. Needs the mcp extra: pip install 'ctxmgr-cli[mcp]'.

    Examples:
      ctxmgr mcp
      ctxmgr mcp --store run.jsonl --read-only
      ctxmgr mcp --http 8765 --as reviewer
    """
    try:
        from ctxmgr.mcp_server.server import build_server, serve_http
    except ImportError:
        fail("mcp", OutputOptions(), InvalidInput("mcp needs the mcp extra", "pip install 'ctxmgr-cli[mcp]'"))
    from ctxmgr.mcp_server.tools import Tools

    server = build_server(Tools(store, current_agent(), read_only))
    if http is None:
        if sys.stdin.isatty():
            say("ctxmgr: waiting for a client on stdin; an agent starts this command itself. Ctrl-C ends it.")
        server.run("stdio")
        return
    # All users and web pages on this machine can reach a local port, so a token is always required.
    # Only a generated one is printed.
    import secrets

    token = os.environ.get(MCP_TOKEN) or secrets.token_urlsafe(24)
    say(f"ctxmgr: http://127.0.0.1:{http}/mcp" + ("" if os.environ.get(MCP_TOKEN) else f", bearer token {token}"))
    serve_http(server, http, token)
