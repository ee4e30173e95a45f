"""What a search found, the match picked out of its surroundings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.humane import clock
from ctxmgr.cli.views.layout import Column, Span
from ctxmgr.cli.views.status import status_sign
from ctxmgr.cli.views.text import cells, cut, take

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.query import Page, SearchHit

_PLAIN = tuple(Column(title, right=title == "@") for title in ("SESSION", "@", "TIME", "AGENT", "ACTION", "FIELD", "EXCERPT"))
_INDENT = 6


def show_hits(printer: Printer, hits: Sequence[SearchHit], query: str, page: Page | None) -> None:
    """Show search hits: on a terminal two lines each, in a pipe one."""
    if not hits:
        printer.hint(f"No match for {query!r}: the text is taken literally; --all-sessions looks further.")
        return
    if not printer.terminal:
        printer.table(_PLAIN, (_plain(hit) for hit in hits))
        return
    several = len({hit.row.session for hit in hits}) > 1
    found = re.compile(re.escape(printer.safe(query)), re.IGNORECASE)
    for hit in hits:
        _hit(printer, hit, found, several=several)
    if page is not None:
        printer.line()
        printer.line(Span(f"{len(hits)} of {'' if page.total_is_exact else 'about '}{page.total:,} matches", "dim"))


def _plain(hit: SearchHit) -> list[str | int | Span | None]:
    row = hit.row
    if row.kind == "event":
        return [row.session, "", row.ts, row.agent, row.type, hit.field, hit.excerpt]
    return [row.session, row.index, row.ts, row.agent, row.action, hit.field, hit.excerpt]


def _hit(printer: Printer, hit: SearchHit, found: re.Pattern[str], *, several: bool) -> None:
    row = hit.row
    where = f"{printer.fit(row.session, 24, 'middle')} " if several else ""
    if row.kind == "entry":
        head = [
            Span(f"{where}@{row.index}", "strong"),
            Span(f" {status_sign(printer.symbols, row.status)} ", row.status),
            Span(printer.fit(row.action, 32), "name"),
        ]
    else:
        after = "" if row.after is None else f" after @{row.after}"
        head = [Span(printer.fit(f"{where}{row.type}", 48), "dim"), Span(after, "dim")]
    tail = "  ".join(part for part in ("", printer.fit(row.agent, 24), clock(row.ts), printer.fit(hit.field, 24)) if part)
    printer.line(*head, Span("  " + tail, "dim"))
    text = printer.safe(hit.excerpt)
    printer.line(*_picked_out(text, found, printer.width - _INDENT, printer.symbols.ellipsis), indent=_INDENT)


def _picked_out(text: str, found: re.Pattern[str], room: int, ellipsis: str) -> list[Span]:
    """Return filtered text with every match marked, cut on both sides so that the first match is seen."""
    match = found.search(text)
    if match is not None and cells(text) > room:
        before = text[: match.start()]
        lead = max(room - cells(match.group()), 0) // 3
        if cells(before) > lead:
            kept = take(before[::-1], max(lead - len(ellipsis), 0))[::-1]
            text = ellipsis + kept + text[match.start() :]
    text = cut(text, room, ellipsis)
    spans: list[Span] = []
    at = 0
    for match in found.finditer(text):
        spans += [Span(text[at : match.start()]), Span(match.group(), "match")]
        at = match.end()
    return [*spans, Span(text[at:])]
