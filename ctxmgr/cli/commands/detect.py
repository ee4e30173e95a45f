"""``detect``: which sessions are stuck, where and since when; and how the detectors came to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import is_folder, parse
from ctxmgr.cli.detection import detected
from ctxmgr.cli.output import Answer, Shown, answer, answer_without_store, resolve_place
from ctxmgr.cli.requests import merged, tell_session
from ctxmgr.cli.views import findings as findings_view
from ctxmgr.cli.views.layout import Span
from ctxmgr.errors import InvalidInput
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.cli.detection import FolderFindings
    from ctxmgr.cli.terminal import Printer

Backtest = Annotated[
    Path | None,
    typer.Option("--backtest", metavar="DIR", help="Score the detectors on a folder of logs with a labels.json."),
]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="INDEX", help="Say what each detector thought of one entry: 42, @-1, SESSION@42."),
]


def detect(
    target: o.Target = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    now: o.Now = None,
    ever: Annotated[bool, typer.Option("--ever", help="Count resolved findings too.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever was found.")] = False,
    backtest: Backtest = None,
    explain: Explain = None,
    set_: o.Set = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Replay history through the detectors and list every loop and stall with its evidence.

    In a folder, every log is judged by itself.

    Exit codes: 0 no loop and no stall, 2 nothing in the folder could be read, 3 nothing to judge, 8 no loop and no stall
    but a file of the folder, a session or a part of the log could not be read, 10 loop, 11 hung, 12 both.

    Examples:
      ctxmgr detect
      ctxmgr detect run.jsonl
      ctxmgr detect logs/
      ctxmgr detect --all-sessions --json --exit-zero
      ctxmgr detect --session 01a1ffcb --now 2026-01-22T12:00:00Z
      ctxmgr detect --session 01a1ffcb --explain 42
      ctxmgr detect --backtest labelled-runs --set repeat_rounds=4
    """
    folder = target if is_folder(target) else None
    if folder is None:
        session, store = resolve_place("detect", how, target, session, store)
    given = {"--all-sessions": all_sessions, "--now": now, "--ever": ever}
    if backtest is not None:
        given |= {"--session": session, "--store": store, "--explain": explain}
        conflicting = [name for name, value in given.items() if value]
        return _backtest(backtest, set_, how, conflicting=conflicting)
    if folder is not None:
        return _detect_folder(folder, now, set_, how, ever=ever, exit_zero=exit_zero, conflicting=[session, explain, store])
    if explain is not None:
        conflicting = [name for name, value in given.items() if value]
        _explain(explain, session, store, set_, how, conflicting=conflicting)
        return

    def work(workspace: Workspace) -> Answer:
        done = detected(workspace, session, now, set_, all_sessions=all_sessions, ever=ever, exit_zero=exit_zero, store=store)
        return Answer(
            [verdict.to_json() for verdict in done.verdicts],
            lambda out: findings_view.show_findings(out, done.verdicts, done.found.entries, store), done.status,
            warnings=list(done.found.notes), next=done.next, code=done.code,
        )  # fmt: skip

    answer("detect", how, work, store=store)


def _detect_folder(
    folder: str,
    now: str | None,
    changes: list[str] | None,
    how: Shown,
    *,
    ever: bool,
    exit_zero: bool,
    conflicting: list[str | None],
) -> None:
    """Judge every log of a folder, each by itself, and say which files were passed over."""
    from ctxmgr.cli.detection import detected_in_folder

    def work() -> Answer:
        if any(conflicting):
            raise InvalidInput(f"{folder} is a folder: all logs in it are judged", "leave --session, --explain and --store out")
        found = detected_in_folder(folder, now, changes, ever=ever, exit_zero=exit_zero)
        return Answer(
            [verdict.to_json() for verdict in found.verdicts],
            lambda out: _show_folder(out, found),
            "partial" if found.passed_over else "ok",
            warnings=found.warnings,
            next=found.next,
            code=found.code,
        )

    answer_without_store("detect", how, work)


def _show_folder(out: Printer, found: FolderFindings) -> None:
    for log, verdicts in found.logs.items():
        out.line(Span(log, "strong"))
        findings_view.show_findings(out, verdicts, found.entries, log)
        out.line()


_MAX_NAMED = 5


def _backtest(folder: Path, settings: list[str] | None, how: Shown, *, conflicting: list[str]) -> None:
    """Judge the labelled sessions of a folder and show the score; exit 0 whatever it is.

    Args:
        folder: logs and a ``labels.json``.
        settings: what ``--set`` gave.
        how: the answer is wanted.
        conflicting: options that were given and say something about a store, which a backtest does not read.
    """
    from ctxmgr.cli.views.detectors import show_backtest
    from ctxmgr.config import load_config
    from ctxmgr.history.backtest import backtest_folder

    def work() -> Answer:
        if conflicting:
            raise InvalidInput(
                f"--backtest can't be combined with {conflicting[0]}", "it judges the logs of its folder, no store"
            )
        found, notes = backtest_folder(folder, merged(dict(load_config(Path.cwd()).detect), settings))
        warnings = list(notes)
        if found.absent:
            shown = ", ".join(found.absent[:_MAX_NAMED]) + (", ..." if len(found.absent) > _MAX_NAMED else "")
            warnings.append(f"{len(found.absent)} labelled sessions are in no log: {shown}")
        return Answer(
            found.to_json(), lambda out: show_backtest(out, found), "ok" if found.scored else "empty", warnings=warnings
        )

    answer_without_store("detect backtest", how, work)


def _explain(
    address: str,
    session: str | None,
    store: str | None,
    settings: list[str] | None,
    how: Shown,
    *,
    conflicting: list[str],
) -> None:
    """Show what the detectors thought of the entry at an address; exit 0 when it exists.

    Args:
        address: ``42``, ``SESSION@42``, ``@-1``, or an entry id.
        session: the one that ``--session`` names.
        store: path of the store, if one was named.
        settings: what ``--set`` gave.
        how: the answer is wanted.
        conflicting: options that were given and have no meaning here.
    """
    from ctxmgr.cli.views.detectors import show_explanation
    from ctxmgr.history.detection import explain as explained
    from ctxmgr.types.operations import ExplainRequest

    def work(workspace: Workspace) -> Answer:
        if conflicting:
            raise InvalidInput(f"--explain can't be combined with {conflicting[0]}", "it is about one entry")
        place = parse(address, session)
        request = ExplainRequest(session=place.session, index=place.index, entry_id=place.entry_id)
        found = explained(workspace.store, request, merged(dict(workspace.config.detect), settings))
        tell_session(workspace, place.session, found.entry.session)
        return Answer(found.to_json(), lambda out: show_explanation(out, found))

    answer("detect explain", how, work, store=store)
