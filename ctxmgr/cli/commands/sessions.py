"""``sessions``: the runs of a history, and at a glance which of them is stuck."""

from __future__ import annotations

import time
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import located_log
from ctxmgr.cli.detection import listed
from ctxmgr.cli.output import Answer, Shown, answer, resolve
from ctxmgr.cli.views.sessions import show_sessions
from ctxmgr.workspace import Workspace


def sessions(
    log: o.Log = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions in which this agent acted.")] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="FOLDER", help="Only sessions that worked there; its last part will do.")
    ] = None,
    since: o.Since = None,
    stuck: Annotated[bool, typer.Option("--stuck", help="Only sessions in a loop, or hung.")] = False,
    judge: Annotated[bool, typer.Option("--judge/--no-judge", help="Replay each shown session through the detectors.")] = True,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """List the sessions, latest first: who acted, how much, and which of them is stuck.

    Examples:
      ctxmgr sessions
      ctxmgr sessions --stuck --since 2d
      ctxmgr sessions --project invoice-tool
      ctxmgr sessions --json --fields session,verdict
      ctxmgr sessions run.jsonl
    """
    store = resolve("sessions", how, located_log, log, store)

    def work(workspace: Workspace) -> Answer:
        found, following = listed(
            workspace, store, agent=agent, project=project, since=since, stuck=stuck, offset=offset, limit=limit, judge=judge
        )
        rows = [session.to_json() for session in found.sessions]
        return Answer(
            rows,
            lambda out: show_sessions(out, found.sessions, found.page, time.time()),
            found.status,
            found.page,
            next=following,
        )

    answer("sessions", how, work, store=store)
