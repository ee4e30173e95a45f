"""Draw the list of sessions: agents, size, and which of them is stuck.

Separate from `findings`, because a list of cached verdicts does not load that module (`cli.fast.detection`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.cli.views.layout import Cell, Column, Span, ago, compact, plural, short_ids, verdict_sign, verdict_style

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.query import Page
    from ctxmgr.types.view import SessionView

_COLUMNS = (
    Column("SESSION", give=2, least=13),
    Column("VERDICT", give=1, least=21),  # the longest verdict without a comma is "3 failures in a row"
    Column("ENTRIES", right=True),
    Column("PROGRESS", right=True),
    Column("AGENT", give=4, least=8),
    Column("PROJECT", give=3, least=12, optional=True),
    Column("TITLE", fill=True, least=16),
    Column("STATE", give=3, least=4, optional=True),
    Column("SOURCE", give=5, least=6, optional=True),
)


def show_sessions(printer: Printer, sessions: Sequence[SessionView], page: Page | None, now: float) -> None:
    """Show one page of sessions.

    Args:
        printer: the printer to write to.
        sessions: the rows of the page, in the order to show.
        page: position of the page in the whole list.
        now: seconds since 1970, for relative times.
    """
    if not sessions:
        empty = page is None or page.total == 0
        printer.hint(
            "No sessions yet: 'ctxmgr import' reads the logs on this machine, 'ctxmgr record' takes records from stdin."
            if empty
            else f"No sessions from {page.offset if page else 0} on; there are {page.total if page else 0}."
        )
        return
    shorts = short_ids(session.session for session in sessions)
    printer.table(_COLUMNS, (_row(printer, session, shorts, now) for session in sessions))
    if printer.terminal:
        _summarise(printer, sessions)


def _row(printer: Printer, session: SessionView, shorts: Mapping[str, str], now: float) -> list[Cell]:
    # Only the detectors know the progress. A session without a verdict shows the time of its last record instead.
    moment = session.last if session.verdict is None else session.last_progress
    agents = session.agents
    if printer.terminal:
        who = (agents[0] + (f" +{len(agents) - 1}" if len(agents) > 1 else "")) if agents else ""
    else:
        who = ", ".join(agents)
    bad = session.verdict not in (None, "healthy")
    return [
        Span(shorts[session.session] if printer.terminal else session.session, "strong" if bad else "", "middle"),
        _verdict(printer, session),
        f"{session.entries:,}" if printer.terminal else session.entries,
        ago(moment, now) if printer.terminal else moment,
        who,
        Span(_project(session, full=not printer.terminal), "dim", "end"),
        Span(session.title or session.workflow or "", "" if session.title else "dim"),
        Span("live", "open") if session.live else Span(session.outcome or "", "dim"),
        Span(_source(session.source, full=not printer.terminal), "dim"),
    ]


def _verdict(printer: Printer, session: SessionView) -> Cell:
    if session.verdict is None:
        return Span(printer.symbols.dash if printer.terminal else "", "dim")
    words, kind = verdict_words(session, session.verdict)
    several = words == session.verdict and session.findings and session.findings > 1
    count = f" {printer.symbols.times}{session.findings}" if several else ""
    sign = f"{verdict_sign(printer.symbols, kind)} " if printer.terminal else ""
    return Span(f"{sign}{words}{count}", verdict_style(kind))


def verdict_words(session: SessionView, verdict: str) -> tuple[str, str]:
    """Return the state of a session in words, and the verdict that chooses its colour and sign."""
    # Say "healthy" only if nothing is wrong (ruling 28). Failures in a row, for example, are named instead.
    if verdict == "healthy" and session.summary not in (None, "healthy"):
        return session.summary.removeprefix("no loop found, "), "warn"
    return verdict, verdict


def _project(session: SessionView, *, full: bool) -> str:
    folder = (session.project or "").rstrip("/")
    return folder if full else folder.rpartition("/")[2]


def _source(source: Any, *, full: bool) -> str:
    if not isinstance(source, dict):
        return "" if source is None else source if isinstance(source, str) else compact(source)
    fields = cast("dict[str, Any]", source)
    words = [fields.get(name) for name in (("importer", "version", "path") if full else ("importer",))]
    return " ".join(word for word in words if isinstance(word, str)) or compact(fields)


def _summarise(printer: Printer, sessions: Sequence[SessionView]) -> None:
    stuck = sum(session.verdict in ("loop", "hung", "loop+hung") for session in sessions)
    if stuck:
        printer.line()
        printer.line(Span(f"{stuck} of {plural(len(sessions), 'session')} stuck.", "loop"))
