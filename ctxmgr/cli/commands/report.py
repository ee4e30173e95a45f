"""``check`` and ``report``: the verdicts on logs, for CI and as HTML pages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.detection import NOTHING_READ
from ctxmgr.cli.envelope import ascii_json, say
from ctxmgr.cli.exits import VERDICTS, Exit
from ctxmgr.cli.output import Answer, OutputOptions, answer, answer_without_store, resolve_place
from ctxmgr.cli.report.check import (
    FAIL_ON,
    CheckedSession,
    CheckResult,
    check_logs,
    github,
    headline,
    junit,
    markdown,
    relative_path,
    sarif,
)
from ctxmgr.cli.report.document import PageFolder, SessionReport, read_session, session_page, session_report, write_page
from ctxmgr.cli.terminal import Printer
from ctxmgr.cli.views.layout import Span
from ctxmgr.errors import InvalidInput, NoHistory, StorageFailed
from ctxmgr.types.finding import SessionVerdict
from ctxmgr.types.operations import DetectResponse, SessionsRequest
from ctxmgr.workspace import Workspace

_PAGE = 500


def report(
    target: o.Target = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The HTML file to write, or with --all-sessions a folder; else stdout."
        ),
    ] = None,
    focus: Annotated[bool, typer.Option("--focus", help="Leave out everything before the first finding.")] = False,
    redact: Annotated[bool, typer.Option("--redact", help="Show only the length of each text, no content.")] = False,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Write a session as one HTML file: cause and next step, a timeline, the findings, every entry.

    The file needs no network and no script. Secrets of known shapes are masked. A report that was written before is
    replaced, any other file is kept.

    Examples:
      ctxmgr report -o run.html
      ctxmgr report run.jsonl -o run.html --focus
      ctxmgr report 01a1ffcb -o run.html --redact
      ctxmgr report --all-sessions -o reports
    """
    session, store = resolve_place("report", how, target, session, store)
    output = None if output == STDOUT else output

    def work(workspace: Workspace) -> Answer:
        if all_sessions:
            # Several pages can't share one stream.
            if output is None or session is not None:
                raise InvalidInput("--all-sessions writes a folder of pages", "name it with -o, and no session")
            return _pages_answer(_write_all(workspace, output, focus=focus, redact=redact))
        page = session_page(found := read_session(workspace, session, focus=focus, redact=redact))
        if output is None:
            row = {"session": found.session, "verdict": found.verdict, "html": page}
            return Answer(row, lambda out: _print(page))
        write_page(output, page)
        return _pages_answer([(output, found)])

    # `scratch`: a report on another agent's log need not record anything beside it.
    answer("report", how, work, store=store, scratch=True)


def _print(page: str) -> None:
    sys.stdout.write(page)


def _pages_answer(pages: Sequence[tuple[Path, SessionReport | None]]) -> Answer:
    """Return the pages as rows. People see only the last path: that of a single page, or of the index of several."""
    rows = [
        {"file": str(path), "session": found and found.session, "verdict": found and found.verdict} for path, found in pages
    ]
    return Answer(rows, lambda out: out.line(str(pages[-1][0])))


def _write_all(workspace: Workspace, folder: Path, *, focus: bool, redact: bool) -> list[tuple[Path, SessionReport | None]]:
    pages = PageFolder(folder)
    for name in _names(workspace):
        pages.add(read_session(workspace, name, focus=focus, redact=redact))
    if not pages.pages:
        raise NoHistory(hint=NOTHING_READ)
    return [*pages.pages, (pages.finish(), None)]


def _names(workspace: Workspace) -> Iterator[str]:
    offset: int | None = 0
    while offset is not None:
        # Without verdicts, because each session is judged for its own page.
        page = workspace.sessions(SessionsRequest(judge=False, offset=offset, limit=_PAGE))
        yield from (session.session for session in page.sessions)
        offset = page.page.next_offset


STDOUT = Path("-")
"""What other programs call standard output, where a file is named."""
FORMATS = ("text", "md", "github", "junit", "sarif", "json")
SUMMARY = "GITHUB_STEP_SUMMARY"
"""Environment variable with the file to which GitHub Actions wants the summary of a step to be appended."""


def check(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Logs, folders of logs, or stores; else the store.")
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on", metavar="A,B", help="Findings that fail the check: loop, hung; warn adds suspicions to both."
        ),
    ] = ",".join(FAIL_ON),
    format_: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Output format: text, md, github, junit, sarif or json.")
    ] = "text",
    json_: o.Json = False,
    report: Annotated[
        Path | None,
        typer.Option("--report", metavar="DIR", help="Folder for an HTML page of each stuck session, and the summary."),
    ] = None,
    store: o.Store = None,
) -> None:
    """Judge logs in a build: which runs are stuck, why, and what to do next.

    Any log that ctxmgr can read is judged in place; nothing is recorded and no model is asked. With --format github the
    summary is also added to the file that GITHUB_STEP_SUMMARY names.

    Exit codes: 0 none stuck, 2 nothing could be read, 8 none stuck but a file or a part of one could not be read, 10 loop,
    11 hung, 12 both.

    Examples:
      ctxmgr check logs/
      ctxmgr check logs/ --format github --report ctxmgr-report
      ctxmgr check run.jsonl --fail-on loop,hung,warn --format junit > ctxmgr.xml
    """
    form = "json" if json_ else format_
    severities = [name.strip() for name in fail_on.split(",") if name.strip()]

    def work() -> Answer:
        if form not in FORMATS:
            raise InvalidInput(f"unknown format {form!r}", f"formats: {', '.join(FORMATS)}")
        pages = _Pages(report) if report is not None else None
        result = check_logs(paths or [], store, severities, None if pages is None else pages.hear)
        if pages is not None:
            pages.keep(markdown(result))
        if form == "github" and os.environ.get(SUMMARY):
            _add_summary(Path(os.environ[SUMMARY]), markdown(result))
        rows = [session.to_json() for session in result.sessions]
        # The other formats list unread files themselves.
        plain = form in ("text", "json")
        unread = [f"not read: {path}: {why}" for path, why in result.passed_over] + result.others if plain else []
        return Answer(
            rows, lambda out: _show(out, form, result), "partial" if result.passed_over else "ok",
            warnings=[*result.remarks, *unread], code=_code(result),
        )  # fmt: skip

    answer_without_store("check", OutputOptions("json" if form == "json" else "table"), work)


def _code(result: CheckResult) -> Exit:
    severities = result.severities
    # The code covers everything that was found, because scripts decide by it whether to restart or to recover.
    if {"loop", "hung"} <= severities:
        return VERDICTS["loop+hung"]
    if result.failed_sessions:
        return VERDICTS["hung" if severities == {"hung"} else "loop"]
    return Exit.PARTIAL if result.passed_over else Exit.OK


def _show(out: Printer, form: str, result: CheckResult) -> None:
    if form == "text":
        _show_text(out, result)
    elif form == "sarif":
        sys.stdout.write(ascii_json(sarif(result), indent=2) + "\n")
    else:
        sys.stdout.write({"md": markdown, "github": github, "junit": junit}[form](result))


def _show_text(out: Printer, result: CheckResult) -> None:
    for session in result.failed_sessions:
        out.line(Span(f"{out.symbols.error} {session.verdict}", "error"), "  ", Span(relative_path(session.log), "strong"))
        for finding in session.lasting:
            out.line(finding.reason, indent=2, hang=2)
        for title, text in (("cause", session.cause), ("next step", session.next_step)):
            if text:
                out.line(Span(f"{title:11}", "strong"), text, indent=2, hang=11)
        out.line()
    if result.calm:
        out.line(Span(f"{out.symbols.healthy} {result.calm}", "healthy"))
    out.line(headline(result))


def _add_summary(path: Path, text: str) -> None:
    try:
        # Appended, because other steps of the job write into the same file.
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")
    # The verdict is valid without the summary, so the check does not fail.
    except OSError as error:
        say(f"ctxmgr: the summary was not added to {path}: {error.strerror}")


class _Pages(PageFolder):
    """Writes the page of each stuck session while its log is open, then the index and the summary."""

    def hear(self, checked: CheckedSession, workspace: Workspace, found: DetectResponse, verdict: SessionVerdict) -> None:
        """Write the page of a stuck session."""
        # Pages of hundreds of healthy sessions would hide the few that matter.
        if verdict.verdict not in ("healthy", "warn"):
            report = session_report(workspace, found, verdict, continuation=checked.continuation, focus=True)
            self.add(report, checked.log)

    def keep(self, summary: str) -> None:
        """Write the index and the summary."""
        self.finish()
        try:
            (self.folder / "summary.md").write_text(summary, encoding="utf-8")
        except OSError as error:
            raise StorageFailed(f"can't write the summary: {error.strerror}", "choose another folder") from None
