"""``report``: a session as one HTML file to look at, to attach, or to print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.detection import NOTHING_READ
from ctxmgr.cli.output import Answer, Shown, answer, resolve_place
from ctxmgr.cli.report.document import PageFolder, SessionReport, read_session, session_page, write_page
from ctxmgr.errors import InvalidInput, NoHistory
from ctxmgr.types.operations import SessionsRequest
from ctxmgr.workspace import Workspace

_PAGE = 500


def report(
    target: o.Target = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The HTML file; with --all-sessions a folder; else stdout."),
    ] = None,
    focus: Annotated[bool, typer.Option("--focus", help="Leave out what happened before the trouble.")] = False,
    redact: Annotated[
        bool, typer.Option("--redact", help="Show only the length of each text: no content leaves this machine.")
    ] = False,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    store: o.Store = None,
    *,
    how: Shown,
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

    def work(workspace: Workspace) -> Answer:
        if all_sessions:
            if output is None or session is not None:
                raise InvalidInput("--all-sessions writes a folder of pages", "name it with -o, and no session")
            return _written(_write_all(workspace, output, focus=focus, redact=redact))
        page = session_page(found := read_session(workspace, session, focus=focus, redact=redact))
        if output is None:
            row = {"session": found.session, "verdict": found.verdict, "html": page}
            return Answer(row, lambda out: _print(page))
        write_page(output, page)
        return _written([(output, found)])

    answer("report", how, work, store=store, scratch=True)


def _print(page: str) -> None:
    sys.stdout.write(page)


def _written(pages: list[tuple[Path, SessionReport]]) -> Answer:
    """Return the pages as rows; people are told the last one, which leads to the others."""
    rows = [{"file": str(path), "session": found.session, "verdict": found.verdict} for path, found in pages]
    return Answer(rows, lambda out: out.line(str(pages[-1][0])))


def _write_all(workspace: Workspace, folder: Path, *, focus: bool, redact: bool) -> list[tuple[Path, SessionReport]]:
    pages = PageFolder(folder)
    for name in _names(workspace):
        pages.add(read_session(workspace, name, focus=focus, redact=redact))
    if not pages.pages:
        raise NoHistory(NOTHING_READ)
    return [*pages.pages, (pages.finish(), pages.pages[-1][1])]


def _names(workspace: Workspace) -> Iterator[str]:
    offset: int | None = 0
    while offset is not None:
        page = workspace.sessions(SessionsRequest(judge=False, offset=offset, limit=_PAGE))
        yield from (session.session for session in page.sessions)
        offset = page.page.next_offset
