"""Notes and snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import clock, day, plural, short_ids, status_span, when
from ctxmgr.cli.views.layout import TIME_STEPS, Column, Span
from ctxmgr.cli.views.one_line import row_text

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.query import ShowSnapshotResponse
    from ctxmgr.types.view import NoteView, SnapshotView

_NOTES = tuple(Column(title) for title in ("ID", "SESSION", "ENTRIES", "TIME", "AUTHOR", "TAGS", "CONTENT"))
_SNAPSHOTS = (
    Column("ID", give=2, least=13),
    Column("SESSION", give=4, least=8, optional=True),
    Column("ENTRIES", give=3, least=8),
    Column("TIME", give=5, least=10, optional=True, steps=TIME_STEPS),
    Column("SUMMARY", fill=True, least=20),
)
_ENTRIES = (
    Column("@", right=True), Column("ACTION", give=2, least=8), Column("STATUS"), Column("INPUT", fill=True, least=20),
)  # fmt: skip


def show_notes(printer: Printer, notes: Sequence[NoteView]) -> None:
    """Show notes, each with what it says; in a pipe one row a note."""
    if not notes:
        printer.hint("No notes here. Attach one: ctxmgr note add 3 4 5 -m TEXT -t TAG")
        return
    if not printer.terminal:
        rows = (
            [note.id, note.session, indexes_text(note.indexes), note.ts, note.author, ", ".join(note.tags), note.content]
            for note in notes
        )
        printer.table(_NOTES, rows)
        return
    shorts = short_ids(note.id for note in notes)
    several = len({note.session for note in notes}) > 1
    for note in notes:
        note_lines(printer, note, name=shorts[note.id], session=note.session if several else "")


def note_lines(printer: Printer, note: NoteView, *, name: str = "", session: str = "", about: bool = True) -> None:
    """Show one note: who said it when about what, then its text."""
    parts = [Span(f"{printer.symbols.note} {printer.fit(name or note.id, 40)}", "dim" if note.superseded_by else "strong")]
    if about:
        parts.append(Span(f"  {printer.fit(session, 24, 'middle')}{indexes_text(note.indexes)}"))
    parts += [Span(f"  #{tag}", "open") for tag in note.tags]
    parts.append(Span("".join(f"  {part}" for part in (note.author or "", day(note.ts), clock(note.ts)) if part), "dim"))
    printer.line(*parts, hang=4)
    printer.block(note.content, indent=4, style="dim" if note.superseded_by else "")
    for title, text in (
        ("superseded by", note.superseded_by), ("supersedes", note.supersedes), ("links", ", ".join(note.links)),
    ):  # fmt: skip
        if text:
            printer.line(Span(f"{title} {text}", "dim"), indent=4)
    if note.missing:
        printer.line(Span(f"missing: {', '.join(note.missing)}", "warn"), indent=4)


def indexes_text(indexes: Sequence[int]) -> str:
    """Return places in a session, neighbours drawn together: "@3-5 @9"."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return " ".join(f"@{run[0]}" if len(run) == 1 else f"@{run[0]}-{run[-1]}" for run in runs)


def show_snapshots(printer: Printer, snapshots: Sequence[SnapshotView]) -> None:
    """Show a list of snapshots."""
    if not snapshots:
        printer.hint("No snapshots here. Make one: ctxmgr snapshot create 3 4 5 --summary TEXT --reasoning TEXT")
        return
    shorts = short_ids(snapshot.id for snapshot in snapshots) if printer.terminal else {}
    sessions = short_ids(snapshot.session for snapshot in snapshots) if printer.terminal else {}
    printer.table(
        _SNAPSHOTS,
        (
            [
                Span(shorts.get(each.id, each.id), "strong"), Span(sessions.get(each.session, each.session), keep="middle"),
                indexes_text(each.indexes), when(each.ts, printer.terminal),
                each.summary,
            ]
            for each in snapshots
        ),
    )  # fmt: skip


def show_snapshot(printer: Printer, response: ShowSnapshotResponse) -> None:
    """Show one snapshot with its entries as they stand now."""
    snapshot = response.snapshot
    state = Span("intact", "ok") if response.intact else Span("changed since it was made", "error")
    printer.rule(Span("snapshot "), Span(printer.fit(snapshot.id, 40), "strong"), "  ", state)
    printer.pairs([
        ("session", snapshot.session), ("time", snapshot.ts), ("entries", indexes_text(snapshot.indexes)),
        ("hash", snapshot.hash), ("missing", Span(", ".join(snapshot.missing), "warn") if snapshot.missing else None),
    ])  # fmt: skip
    for title, text in (("Summary", snapshot.summary), ("Reasoning", snapshot.reasoning)):
        if text:
            printer.heading(title)
            printer.block(text, indent=2)
    if response.entries:
        printer.heading(plural(len(response.entries), "entry").capitalize())
        printer.table(
            _ENTRIES,
            (
                [entry.index, Span(entry.action, "name"), status_span(printer, entry.status), row_text(entry)]
                for entry in response.entries
            ),
            indent=2,
        )
