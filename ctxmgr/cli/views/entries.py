"""Draw entries, events, messages, notes and snapshots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.cli.views.layout import (
    TIME_STEPS,
    Cell,
    Column,
    Span,
    clock,
    command,
    date_span,
    day,
    duration,
    end_to_keep,
    error_text,
    event_text,
    plural,
    pretty,
    row_text,
    scalar_text,
    short_ids,
    size,
    status_sign,
    status_span,
)
from ctxmgr.cli.views.safe_text import cells, cut, take

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.query import MessagesResponse, Page, SearchHit, ShowSnapshotResponse
    from ctxmgr.types.view import EntryView, EventView, NoteView, SnapshotView


_PLAIN = tuple(Column(title, right=title == "@") for title in ("SESSION", "@", "TIME", "AGENT", "ACTION", "FIELD", "EXCERPT"))
_INDENT = 6


def show_hits(printer: Printer, hits: Sequence[SearchHit], query: str, page: Page | None, *, everywhere: bool = False) -> None:
    """Show search hits: two lines each on a terminal, one in a pipe. Hits of several sessions get full addresses."""
    if not hits:
        printer.hint(f"No match for {query!r}: the text is taken literally; --all-sessions looks further.")
        return
    if not printer.terminal:
        printer.table(_PLAIN, (_plain(hit) for hit in hits))
        return
    names = {hit.row.session for hit in hits}
    shorts = short_ids(names) if everywhere or len(names) > 1 else {}
    # Filtered like the excerpts, because otherwise a query with a control character would match nothing in them.
    found = re.compile(re.escape(printer.safe(query)), re.IGNORECASE)
    for hit in hits:
        _hit(printer, hit, found, shorts.get(hit.row.session, ""))
    if page is not None:
        printer.line()
        printer.line(Span(f"{len(hits)} of {'' if page.total_is_exact else 'about '}{page.total:,} matches", "dim"))


def _plain(hit: SearchHit) -> list[str | int | Span | None]:
    row = hit.row
    if row.kind == "event":
        return [row.session, "", row.ts, row.agent, row.type, hit.field, hit.excerpt]
    return [row.session, row.index, row.ts, row.agent, row.action, hit.field, hit.excerpt]


def _hit(printer: Printer, hit: SearchHit, found: re.Pattern[str], where: str) -> None:
    row = hit.row
    if row.kind == "entry":
        head = [
            Span(f"{where}@{row.index}", "strong"),
            Span(f" {status_sign(printer.symbols, row.status)} ", row.status),
            Span(printer.fit(row.action, 32), "name"),
        ]
    else:
        after = "" if row.after is None else f" after @{row.after}"
        head = [Span(printer.fit(f"{where} {row.type}".strip(), 48), "dim"), Span(after, "dim")]
    tail = "  ".join(part for part in ("", printer.fit(row.agent, 24), clock(row.ts), printer.fit(hit.field, 24)) if part)
    printer.line(*head, Span("  " + tail, "dim"))
    text = printer.safe(hit.excerpt)
    printer.line(*mark_matches(text, found, printer.width - _INDENT, printer.symbols.ellipsis), indent=_INDENT)


def mark_matches(text: str, found: re.Pattern[str], room: int, ellipsis: str) -> list[Span]:
    """Return filtered text with every match marked. It is cut on both sides so that the first match is visible."""
    match = found.search(text)
    if match is not None and cells(text) > room:
        before = text[: match.start()]
        lead = max(room - cells(match.group()), 0) // 3  # the text after a match says more
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


# Maximum number of lines of a value on a terminal, unless ``full`` is set.
_MAX_LINES = 40


def show_entry(printer: Printer, entry: EntryView, *, full: bool = False) -> None:
    """Show all fields of an entry. On a terminal, long values are shown in part unless ``full`` is set."""
    status = status_span(printer, entry.status)
    took = "" if entry.duration_ms is None else f"  {duration(entry.duration_ms / 1000)}"
    where = f"{entry.session}@{entry.index}"
    printer.rule(
        Span(printer.fit(where, max(printer.width - 40, 20), "end"), "strong"), "  ", Span(entry.action, "name"), "  ",
        status, took,
    )  # fmt: skip
    printer.pairs([
        ("id", entry.id), ("time", entry.ts), ("agent", entry.agent), ("process", entry.process),
        ("input type", entry.input_type), ("turn", scalar_text(entry.turn)), ("step", scalar_text(entry.step)),
        ("parent", entry.parent), ("task", entry.task),
        ("limit", "" if entry.timeout_ms is None else f"{duration(entry.timeout_ms / 1000)} (declared)"),
        ("tokens", scalar_text(entry.usage)), ("meta", scalar_text(entry.meta)),
        ("missing", Span(", ".join(entry.missing), "warn") if entry.missing else None),
        ("events", f"{entry.events}: {command('messages', where)}" if entry.events else None),
    ])  # fmt: skip
    _value(printer, entry, "Input", entry.input, full=full)
    if entry.error is not None:
        _value(printer, entry, "Error", error_text(entry.error), full=full, style="error")
    if not _error_says_output(entry):
        _value(printer, entry, "Output", entry.output, full=full)
    if entry.status == "open":
        printer.line()
        printer.line(Span("No result is recorded: the call is still running, or its run ended without one.", "open"))
    if entry.notes:
        printer.heading(f"Notes ({len(entry.notes)})")
        for note in entry.notes:
            note_lines(printer, note, about=False)


def _error_says_output(entry: EntryView) -> bool:
    """Whether the output only repeats the error. Some clients put the error between tags there."""
    error: Any = cast("dict[str, Any]", entry.error).get("message") if isinstance(entry.error, dict) else entry.error
    if not isinstance(error, str) or not isinstance(entry.output, str) or not error.strip():
        return False
    return entry.output.strip().removeprefix("<tool_use_error>").removesuffix("</tool_use_error>").strip() == error.strip()


def _value(printer: Printer, entry: EntryView, title: str, value: Any, *, full: bool, style: str = "") -> None:
    if value is None:
        return
    text = pretty(value).rstrip("\n")
    lines = text.count("\n") + 1
    extent = f"  {plural(lines, 'line')}, {size(len(text.encode('utf-8', 'replace')))}" if lines > 3 else ""
    printer.heading(f"{title}{extent}")
    left = printer.block(text, indent=2, style=style, most=None if full else _MAX_LINES)
    if left:
        show = command("show", f"{entry.session}@{entry.index}", "--full")
        printer.line(Span(f"{printer.symbols.ellipsis} {plural(left, 'more line')}: {show}", "dim"), indent=2)


_COLUMNS = (
    Column("@", right=True),
    Column("TIME UTC", give=2, least=8, optional=True),
    Column("AGENT", give=4, least=8),
    Column("ACTION", give=3, least=10),
    Column("STATUS"),
    Column("INPUT", fill=True, least=20),
    Column("TOOK", right=True),
)
_AGENT = 2


def show_rows(printer: Printer, rows: Sequence[EntryView | EventView], page: Page | None) -> None:
    """Show entries and events in the given order. An agent or a day that all rows share is shown once, above them."""
    if not rows:
        printer.hint(_empty_text(page))
        return
    if not printer.terminal:
        # For programs, free text is the last column, and each row names its session because rows of several may be
        # combined.
        columns = (Column("SESSION"), *_COLUMNS[:-2], _COLUMNS[-1], Column("NOTES", right=True), _COLUMNS[-2])
        printer.table(columns, (_plain_row(row) for row in rows))
        return
    agents = {row.agent for row in rows if row.agent}
    days = {day(row.ts) for row in rows} - {""}
    shared = [*(agents if len(agents) == 1 else ()), *(days if len(days) == 1 else ())]
    if shared:
        printer.line(Span(" · ".join(shared), "dim"))
    cells = (_row(printer, row, dated=len(days) > 1) for row in rows)
    # With a single agent, the column would repeat the same name in every row, so the name stands above them.
    if len(agents) > 1:
        printer.table(_COLUMNS, cells)
    else:
        printer.table(_COLUMNS[:_AGENT] + _COLUMNS[_AGENT + 1 :], (row[:_AGENT] + row[_AGENT + 1 :] for row in cells))


def _empty_text(page: Page | None) -> str:
    if page is not None and page.total:
        return f"Nothing from row {page.offset} on; there are {page.total}."
    return "Nothing here: widen the filters, choose another --session ('ctxmgr sessions'), or 'ctxmgr import' first."


def _row(printer: Printer, row: EntryView | EventView, *, dated: bool) -> list[Cell]:
    when = f"{day(row.ts)[5:]} {clock(row.ts)}".strip() if dated else clock(row.ts)
    text = row_text(row).strip()
    if row.kind == "event":
        return ["", Span(when, "dim"), row.agent, Span(row.type, "dim"), "", Span(text, "dim"), ""]
    notes = f"{printer.symbols.note}{len(row.notes)} " if row.notes else ""
    took = "" if row.duration_ms is None else duration(row.duration_ms / 1000)
    content = [Span(notes, "strong"), Span(_missing_text(row), "warn"), Span(text, keep=end_to_keep(text))]
    return [
        row.index, Span(when, "dim"), row.agent, Span(row.action, "name"), status_span(printer, row.status), content,
        Span(took, "dim"),
    ]  # fmt: skip


def _missing_text(row: EntryView) -> str:
    return f"(missing: {', '.join(row.missing)}) " if row.missing else ""


def _plain_row(row: EntryView | EventView) -> list[Cell]:
    if row.kind == "event":
        return [row.session, "", row.ts, row.agent, row.type, "event", "", "", row_text(row)]
    took = "" if row.duration_ms is None else duration(row.duration_ms / 1000)
    return [
        row.session, row.index, row.ts, row.agent, row.action, row.status, took, len(row.notes) or "",
        _missing_text(row) + row_text(row),
    ]  # fmt: skip


_MESSAGES = (Column("TIME"), Column("WHO"), Column("TYPE"), Column("AFTER", right=True), Column("TEXT"))
# Types of events by people, and types whose name is not shown because they only say something.
_HUMAN = ("user_message", "user_message_chunk", "interrupt")
_TALK = ("user_message", "user_message_chunk", "message", "agent_message_chunk")


def show_messages(printer: Printer, response: MessagesResponse) -> None:
    """Show messages. On a terminal, the chunks of a streamed message are joined."""
    entry = response.entry
    if entry is not None and printer.terminal:
        printer.line(Span(f"at @{entry.index} "), Span(printer.fit(entry.action, 40), "name"))
    if not response.messages:
        printer.hint("Nothing was said here." if entry is not None else "No messages in this session.")
        return
    if not printer.terminal:
        rows = ([event.ts, _author_name(event), event.type, event.after, event_text(event.data)] for event in response.messages)
        printer.table(_MESSAGES, rows)
        return
    for first, text in _whole_messages(response.messages):
        head = [Span(printer.fit(_author_name(first), 30), "open" if first.type in _HUMAN else "name")]
        kind = "" if first.type in _TALK else f" {printer.fit(first.type, 30)}"
        after = "" if first.after is None else f"  after @{first.after}"
        printer.line(*head, Span(f"{kind}  {clock(first.ts)}{after}", "dim"))
        left = printer.block(text, indent=4, style="dim" if "thought" in first.type else "", most=_MAX_LINES)
        if left:
            printer.line(Span(f"{printer.symbols.ellipsis} {left} more lines; --json shows all", "dim"), indent=4)


def _author_name(event: EventView) -> str:
    # A nudge comes from the program that runs the agent, even if it is recorded for an agent.
    return "user" if event.type in _HUMAN else "harness" if event.type == "nudge" else event.agent or "agent"


def _whole_messages(events: Sequence[EventView]) -> Iterator[tuple[EventView, str]]:
    """Yield (first event, text) of each message. Successive chunks of the same type and agent are one message."""
    first: EventView | None = None
    text = ""
    for event in events:
        # Streamed text comes in chunks of a few words, which nobody can read one by one.
        if first is not None and event.type.endswith("_chunk") and (event.type, event.agent) == (first.type, first.agent):
            text += event_text(event.data)
            continue
        if first is not None:
            yield first, text
        first, text = event, event_text(event.data)
    if first is not None:
        yield first, text


_NOTES = tuple(Column(title) for title in ("ID", "SESSION", "ENTRIES", "TIME", "AUTHOR", "TAGS", "CONTENT"))
_SNAPSHOTS = (
    Column("ID", give=2, least=13),
    Column("SESSION", give=4, least=8, optional=True),
    Column("ENTRIES", give=3, least=8),
    Column("TIME UTC", give=5, least=10, optional=True, steps=TIME_STEPS),
    Column("SUMMARY", fill=True, least=20),
)
_ENTRIES = (
    Column("@", right=True), Column("ACTION", give=2, least=8), Column("STATUS"), Column("INPUT", fill=True, least=20),
)  # fmt: skip


def show_notes(printer: Printer, notes: Sequence[NoteView]) -> None:
    """Show notes with their texts; in a pipe, one row per note."""
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
    """Show one note: author, time and subject, then its text."""
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
    """Return indexes in a session as text, with ranges for neighbours: "@3-5 @9"."""
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
                indexes_text(each.indexes), date_span(each.ts, printer.terminal),
                each.summary,
            ]
            for each in snapshots
        ),
    )  # fmt: skip


def show_snapshot(printer: Printer, response: ShowSnapshotResponse) -> None:
    """Show one snapshot with the current state of its entries."""
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
