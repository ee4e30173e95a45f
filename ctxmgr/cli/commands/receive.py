"""``receive``: record what programs export as OpenTelemetry while they run."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer, say
from ctxmgr.errors import InvalidInput
from ctxmgr.history.telemetry import TelemetryRecorder
from ctxmgr.live.receiver import Limits, Receiver
from ctxmgr.workspace import Workspace

TOKEN = "CTXMGR_RECEIVE_TOKEN"

_MEGABYTE = 1_000_000
_MAX_MEGABYTES = 256


def receive(
    host: Annotated[str, typer.Option("--host", help="Listen on this address.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Listen on this port; 0 takes any free one.")] = 4318,
    max_body: Annotated[int, typer.Option("--max-body", metavar="MB", help="Longest body of a request.")] = 16,
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
    store: o.Store = None,
    *,
    how: Shown,
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
        limits = Limits(max_body * _MEGABYTE)
        receiver = Receiver(host, port, token=os.environ.get(TOKEN) or None, limits=limits)
        recorder = TelemetryRecorder(workspace.store)
        say(f"ctxmgr: receiving OTLP at {receiver.address} into {workspace.store.location}; Ctrl-C ends it")
        say(f"  OTEL_EXPORTER_OTLP_ENDPOINT={receiver.address} OTEL_EXPORTER_OTLP_PROTOCOL=http/json")
        with _ended_by_signals(receiver):
            receiver.run(recorder.take, workspace.store.index)
        received = recorder.received
        if received.records:
            workspace.store.index()
        refused = sum(receiver.refused.values())
        data = {
            "exports": received.exports, "spans": received.spans, "added": received.records,
            "refused": {str(status): count for status, count in sorted(receiver.refused.items())},
        }  # fmt: skip
        said = f"{received.exports:,} exports with {received.spans:,} spans, {received.records:,} records added"
        return Answer(
            data, lambda out: out.line(said), "ok" if received.exports else "empty",
            warnings=[f"{refused:,} requests were refused"] if refused else [],
            next=["ctxmgr sessions", "ctxmgr detect --all-sessions"] if received.records else [],
        )  # fmt: skip

    answer("receive", how, work, store=store, create=True, masked=mask)


@contextmanager
def _ended_by_signals(receiver: Receiver) -> Generator[None]:
    """End the receiver in order on SIGINT and SIGTERM."""
    before = {
        number: signal.signal(number, lambda _number, _frame: receiver.stop()) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
