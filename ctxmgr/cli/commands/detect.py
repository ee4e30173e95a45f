"""``sessions`` and ``detect``: which sessions are stuck, where, and since when."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import located_log
from ctxmgr.cli.detection_answer import detected, listed
from ctxmgr.cli.output import Answer, Shown, answer, named_by, placed
from ctxmgr.cli.views import findings as findings_view
from ctxmgr.cli.views import sessions as sessions_view
from ctxmgr.workspace import Workspace

Backtest = Annotated[
    Path | None,
    typer.Option("--backtest", metavar="DIR", help="Score the detectors on the logs and the labels.json of a folder."),
]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="INDEX", help="Say what each detector thought of one entry: 42, @-1, SESSION@42."),
]


def sessions(
    log: o.Log = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions in which this agent acted.")] = None,
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
      ctxmgr sessions --json --fields session,verdict
      ctxmgr sessions run.jsonl
    """
    store = named_by("sessions", how, located_log, log, store)

    def work(workspace: Workspace) -> Answer:
        found, following = listed(workspace, agent, offset, limit, judge=judge, store=store)
        rows = [session.to_json() for session in found.sessions]
        return Answer(
            rows,
            lambda out: sessions_view.show_sessions(out, found.sessions, found.page, time.time()),
            found.status,
            found.page,
            next=following,
        )

    answer("sessions", how, work, store=store)


def detect(
    target: o.Target = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    now: o.Now = None,
    ever: Annotated[bool, typer.Option("--ever", help="Let resolved findings count too.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever was found.")] = False,
    backtest: Backtest = None,
    explain: Explain = None,
    set_: o.Set = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Replay history through the detectors and list every loop and stall with its evidence.

    Exit codes: 0 no loop and no stall, 3 nothing to judge, 10 loop, 11 hung, 12 both.

    Examples:
      ctxmgr detect
      ctxmgr detect run.jsonl
      ctxmgr detect --all-sessions --json --exit-zero
      ctxmgr detect --session 01a1ffcb --now 2026-01-22T12:00:00Z
      ctxmgr detect --session 01a1ffcb --explain 42
      ctxmgr detect --backtest labelled-runs --set repeat_rounds=4
    """
    session, store = placed("detect", how, target, session, store)
    given = {"--all-sessions": all_sessions, "--now": now, "--ever": ever}
    if backtest is not None:
        from ctxmgr.cli.commands.backtest import backtest as score

        given |= {"--session": session, "--store": store, "--explain": explain}
        beside = [name for name, value in given.items() if value]
        score(backtest, set_, how, beside=beside)
        return
    if explain is not None:
        from ctxmgr.cli.commands.explain import explain as think

        beside = [name for name, value in given.items() if value]
        think(explain, session, store, set_, how, beside=beside)
        return

    def work(workspace: Workspace) -> Answer:
        found, verdicts, following, code = detected(
            workspace, session, now, set_, all_sessions=all_sessions, ever=ever, exit_zero=exit_zero, store=store
        )
        return Answer(
            [verdict.to_json() for verdict in verdicts],
            lambda out: findings_view.show_findings(out, verdicts, found.entries, store),
            found.status,
            warnings=list(found.notes),
            next=following,
            code=code,
        )

    answer("detect", how, work, store=store)
