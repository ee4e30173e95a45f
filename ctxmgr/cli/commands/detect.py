"""``sessions`` and ``detect``: the sessions of a store, and their verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import is_folder, parse
from ctxmgr.cli.envelope import tell_session
from ctxmgr.cli.output import Answer, OutputOptions, answer, answer_without_store, resolve_place
from ctxmgr.cli.requests import merge_settings
from ctxmgr.cli.views import findings as findings_view
from ctxmgr.cli.views.layout import Cell, Column, Span, plural, row_text
from ctxmgr.errors import InvalidInput
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.cli.detection import FolderFindings
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.analysis import Backtest, Distances, Score
    from ctxmgr.types.operations import DetectorCheck, Explanation


BacktestOption = Annotated[
    Path | None,
    typer.Option("--backtest", metavar="DIR", help="Score the detectors on a folder of logs with a labels.json."),
]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="INDEX", help="Entry to explain, as each detector sees it: 42, @-1, SESSION@42."),
]


def detect(
    target: o.Target = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    now: o.Now = None,
    ever: Annotated[bool, typer.Option("--ever", help="Count resolved findings too.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 whatever is found.")] = False,
    backtest: BacktestOption = None,
    explain: Explain = None,
    set_: o.Set = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Replay history through the detectors and list every loop and stall with its evidence.

    In a folder each log is judged separately.

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
    # Only a target that is spelled as a folder, because a folder here may have the same name as a session.
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
    assert explain is not None, "what is neither of these has a handler"
    conflicting = [name for name, value in given.items() if value]
    return _explain(explain, session, store, set_, how, conflicting=conflicting)


def _detect_folder(
    folder: str,
    now: str | None,
    changes: list[str] | None,
    how: OutputOptions,
    *,
    ever: bool,
    exit_zero: bool,
    conflicting: list[str | None],
) -> None:
    """Judge every log of a folder separately, and report the skipped files."""
    from ctxmgr.cli.detection import detect_in_folder

    def work() -> Answer:
        # Checked inside `work`, so that the error has the form that the caller asked for.
        if any(conflicting):
            raise InvalidInput(f"{folder} is a folder: all logs in it are judged", "leave --session, --explain and --store out")
        found = detect_in_folder(folder, now, changes, ever=ever, exit_zero=exit_zero)
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


def _backtest(folder: Path, settings: list[str] | None, how: OutputOptions, *, conflicting: list[str]) -> None:
    """Judge the labelled sessions of a folder and show the score. The exit code is 0 for any score.

    Args:
        folder: folder with logs and a ``labels.json``.
        settings: values of ``--set``.
        how: how to show the answer.
        conflicting: given options that concern a store, which a backtest does not read.
    """
    from ctxmgr.config import load_config
    from ctxmgr.history.backtest import backtest_folder

    def work() -> Answer:
        if conflicting:
            raise InvalidInput(
                f"--backtest can't be combined with {conflicting[0]}", "it judges the logs of its folder, no store"
            )
        found, notes = backtest_folder(folder, merge_settings(dict(load_config(Path.cwd()).detect), settings))
        warnings = list(notes)
        # Labels without a log would make the score look better than it is.
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
    how: OutputOptions,
    *,
    conflicting: list[str],
) -> None:
    """Show what the detectors saw in the entry at an address. The exit code is 0 if the entry exists.

    Args:
        address: ``42``, ``SESSION@42``, ``@-1``, or an entry id.
        session: value of ``--session``.
        store: path of the store, if one is named.
        settings: values of ``--set``.
        how: how to show the answer.
        conflicting: given options that have no meaning here.
    """
    from ctxmgr.history.detection import explain as explained
    from ctxmgr.types.operations import ExplainRequest

    def work(workspace: Workspace) -> Answer:
        if conflicting:
            raise InvalidInput(f"--explain can't be combined with {conflicting[0]}", "it is about one entry")
        place = parse(address, session)
        request = ExplainRequest(session=place.session, index=place.index, entry_id=place.entry_id)
        found = explained(workspace.store, request, merge_settings(dict(workspace.config.detect), settings))
        tell_session(workspace.store, place.session, found.entry.session)
        return Answer(found.to_json(), lambda out: show_explanation(out, found))

    answer("detect explain", how, work, store=store)


def sessions(
    log: o.Log = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only sessions in which this agent acted.")] = None,
    project: Annotated[
        str | None, typer.Option("--project", metavar="FOLDER", help="Only sessions in this folder; its last part is enough.")
    ] = None,
    since: o.Since = None,
    stuck: Annotated[bool, typer.Option("--stuck", help="Only sessions that are in a loop or hung.")] = False,
    judge: Annotated[bool, typer.Option("--judge/--no-judge", help="Replay each shown session through the detectors.")] = True,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the sessions, latest first: who acted, how much, and which are stuck.

    Examples:
      ctxmgr sessions
      ctxmgr sessions --stuck --since 2d
      ctxmgr sessions --project invoice-tool
      ctxmgr sessions --json --fields session,verdict
      ctxmgr sessions run.jsonl
    """


_COLUMNS = (Column("DETECTOR"), Column("SEEN", right=True), Column("OF", right=True), Column("WHY", fill=True, least=24))


def show_explanation(printer: Printer, found: Explanation) -> None:
    """Show the entry in one line, one row per detector, and the findings raised on the entry."""
    entry = found.entry
    printer.rule(Span(f"{entry.session}@{entry.index}", "name"), f"  {entry.action} {printer.fit(row_text(entry), 60)}")
    if found.note is not None:
        printer.line(found.note)
    else:
        printer.table(_COLUMNS, [_row(thought) for thought in sorted(found.thoughts, key=_far)])
    for finding in found.findings:
        over = f" (resolved: {finding.resolved})" if finding.resolved else ""
        printer.line()
        printer.line(Span(finding.severity, finding.severity), f"  {finding.kind}{over}: {finding.reason}", hang=2)


def _far(thought: DetectorCheck) -> float:
    # The nearest to its threshold first.
    return -thought.count / max(1, thought.threshold)


def _row(thought: DetectorCheck) -> list[Cell]:
    style = "loop" if 0 < thought.threshold <= thought.count else "" if thought.count else "dim"
    reason = f"{thought.why}: {thought.compared}" if thought.compared and thought.count else thought.why
    name = f"{thought.detector}: {thought.rule}" if thought.rule else thought.detector
    return [Span(name, style), f"{thought.count:,}", f"{thought.threshold:,}", reason]


_RULES = {
    "detectors": "ctxmgr",
    "always": "always alarm",
    "never": "never alarm",
    "longer": "longer than the median",
    "sameInARow": "same call 3 in a row",
    "abab": "A-B-A-B",
    "anyRepeat": "same call 3 anywhere",
}
_SCORES = (
    Column("RULE"), Column("TP", right=True), Column("FP", right=True), Column("FN", right=True), Column("TN", right=True),
    Column("PRECISION", right=True), Column("RECALL", right=True), Column("F1", right=True), Column("MCC", right=True),
)  # fmt: skip


def show_backtest(printer: Printer, found: Backtest) -> None:
    """Show the scores, recall by pattern, distances, and each false alarm, missed loop and late alarm."""
    if not found.scored:
        printer.hint("No labelled session is in the logs, so there is nothing to score.")
        return
    printer.table(_SCORES, [_score(score) for score in (found.detectors, *found.baselines, *found.rules)])
    printer.line()
    printer.pairs([
        ("sessions", f"{found.scored:,} scored: {plural(found.loops, 'loop')}, {found.healthy:,} healthy"),
        ("not scored", f"{found.ignored:,} labelled null, {found.unlabelled:,} without a label"),
        ("onset", _distances(found.onset, "exact")),
        ("3rd iteration", _distances(found.delay, "in time")),
        ("warned only", ", ".join(found.warned)),
    ], indent=0)  # fmt: skip
    if found.patterns:
        printer.heading("Found, by pattern")
        rows: list[list[Cell]] = [[each.pattern or "(none)", f"{each.found:,}", f"{each.of:,}"] for each in found.patterns]
        printer.table((Column("PATTERN"), Column("FOUND", right=True), Column("OF", right=True)), rows, indent=2)
    if found.false_alarms:
        printer.heading("False alarms")
        for alarm in found.false_alarms:
            printer.line(Span(alarm.session, "name"), f"  {alarm.kind} at {alarm.raised_at}: {alarm.reason}", indent=2, hang=4)
    if found.missed:
        printer.heading("Missed")
        for missed in found.missed:
            suffix = "  (warned)" if missed.warned else ""
            printer.line(Span(missed.session, "name"), f"  {missed.pattern or ''}{suffix}", indent=2, hang=4)
    _show_disabled(printer, "Begins elsewhere than labelled", found.onset)
    _show_disabled(printer, "Raised after the third iteration", found.delay)


def _score(score: Score) -> list[Cell]:
    counts = (score.true_positives, score.false_positives, score.false_negatives, score.true_negatives)
    measures = (score.precision, score.recall, score.f1, score.mcc)
    name = Span(_RULES.get(score.rule, score.rule), "strong" if score.rule == "detectors" else "")
    return [name, *(f"{count:,}" for count in counts), *("" if value is None else f"{value:.3f}" for value in measures)]


def _distances(found: Distances, good: str) -> str:
    if not found.measured:
        return ""
    return f"{found.good:,} of {found.measured:,} {good}; {found.median:g} entries off in the median, {found.largest:,} at most"


def _show_disabled(printer: Printer, title: str, found: Distances) -> None:
    # Only deviations, because findings in time need no list.
    if found.off:
        printer.heading(title)
    for each in found.off:
        entries = f"{each.entries:+,} entries" if each.entries else "within the same entry"
        printer.line(Span(each.session, "name"), f"  {each.given} for {each.labelled}: {entries}", indent=2, hang=4)
