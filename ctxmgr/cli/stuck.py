"""``sessions``, ``detect``: see which sessions are stuck, where, and since when."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ctxmgr.cli import options as o
from ctxmgr.cli.exits import VERDICTS, Exit
from ctxmgr.cli.output import Answer, answer, shown
from ctxmgr.cli.requesting import build, tell_session
from ctxmgr.cli.settings import merged
from ctxmgr.cli.times import moment
from ctxmgr.cli.views import findings as findings_view
from ctxmgr.cli.views import sessions as sessions_view
from ctxmgr.types.desk import DetectRequest, SessionsRequest
from ctxmgr.types.finding import SessionVerdict, verdict_of
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
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions in which this agent acted.")] = None,
    judge: Annotated[bool, typer.Option("--judge/--no-judge", help="Replay each shown session through the detectors.")] = True,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    json_: o.Json = False,
    format_: o.Format = None,
    fields: o.Fields = None,
    jq: o.Jq = None,
) -> None:
    """List the sessions, latest first: who acted, how much, and which of them is stuck.

    Examples:
      ctxmgr sessions
      ctxmgr sessions --json --fields session,verdict
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.sessions(build(SessionsRequest, agent=agent, offset=offset, limit=limit, judge=judge))
        rows = [session.to_json() for session in found.sessions]
        stuck = [session.session for session in found.sessions if session.verdict not in (None, "healthy")]
        return Answer(
            rows,
            lambda out: sessions_view.show_sessions(out, found.sessions, found.page, time.time()),
            found.status,
            found.page,
            next=[f"ctxmgr detect --session {stuck[0]}"] if stuck else [],
        )

    answer("sessions", lambda: shown(json_, format_, fields, jq), work, store=store)


def detect(
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    now: o.Now = None,
    ever: Annotated[bool, typer.Option("--ever", help="Let resolved findings count too.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever was found.")] = False,
    backtest: Backtest = None,
    explain: Explain = None,
    set_: o.Set = None,
    store: o.Store = None,
    json_: o.Json = False,
    format_: o.Format = None,
    fields: o.Fields = None,
    jq: o.Jq = None,
) -> None:
    """Replay history through the detectors and list every loop and stall with its evidence.

    Exit codes: 0 healthy, 10 loop, 11 hung, 12 both.

    Examples:
      ctxmgr detect
      ctxmgr detect --all-sessions --json --exit-zero
      ctxmgr detect --session 01a1ffcb --now 2026-01-22T12:00:00Z
      ctxmgr detect --session 01a1ffcb --explain 42
      ctxmgr detect --backtest labelled-runs --set repeat_rounds=4
    """
    given = {"--all-sessions": all_sessions, "--now": now, "--ever": ever}
    if backtest is not None:
        from ctxmgr.cli.backtest import backtest as score

        given |= {"--session": session, "--store": store, "--explain": explain}
        beside = [name for name, value in given.items() if value]
        score(backtest, set_, lambda: shown(json_, format_, fields, jq), beside=beside)
        return
    if explain is not None:
        from ctxmgr.cli.explain import explain as think

        beside = [name for name, value in given.items() if value]
        think(explain, session, store, set_, lambda: shown(json_, format_, fields, jq), beside=beside)
        return

    def work(workspace: Workspace) -> Answer:
        workspace.adjust(merged(dict(workspace.config.detect), set_))
        found = workspace.detect(DetectRequest(session=session, all_sessions=all_sessions, now=moment(now, time.time())))
        verdicts = [_judged(verdict, ever=ever) for verdict in found.verdicts]
        if len(verdicts) == 1:
            tell_session(workspace, session, verdicts[0].session)
        every = verdict_of([finding for verdict in verdicts for finding in verdict.findings], ever=ever)
        stuck = [verdict.session for verdict in verdicts if verdict.verdict not in ("healthy", "warn")]
        return Answer(
            [verdict.to_json() for verdict in verdicts],
            lambda out: findings_view.show_findings(out, verdicts, found.entries),
            found.status,
            warnings=list(found.notes),
            next=[f"ctxmgr recover --session {stuck[0]}"] if stuck else [],
            code=Exit.OK if exit_zero else VERDICTS[every],
        )

    answer("detect", lambda: shown(json_, format_, fields, jq), work, store=store)


def _judged(verdict: SessionVerdict, *, ever: bool) -> SessionVerdict:
    return verdict.model_copy(update={"verdict": verdict_of(verdict.findings, ever=ever)}) if ever else verdict
