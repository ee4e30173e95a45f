"""Episodes of memory, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import clock, day, plural, short_ids
from ctxmgr.cli.views.layout import Column, Span
from ctxmgr.cli.views.notes import indexes_text
from ctxmgr.cli.views.one_line import row_text
from ctxmgr.cli.views.status import status_span

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.memory import Episode, Reflection, Statement

_EPISODES = tuple(Column(title) for title in ("ID", "SCORE", "SESSION", "ENTRIES", "TIME", "AUTHOR", "TAGS", "TEXT"))
_AROUND = (
    Column("@", right=True), Column("AGENT", give=3, least=6, optional=True), Column("ACTION", give=2, least=8),
    Column("STATUS"), Column("INPUT", fill=True, least=20),
)  # fmt: skip
_MARKER = "memory"
_MOST_LINES = 8


def show_episodes(printer: Printer, episodes: Sequence[Episode]) -> None:
    """Show episodes, each with who said it, what it says and the entries around it; in a pipe one row an episode."""
    if not episodes:
        printer.hint("Memory holds nothing about that. Keep something: ctxmgr memory retain TEXT --entry 3")
        return
    if not printer.terminal:
        printer.table(
            _EPISODES,
            (
                [
                    each.id, _score(each), each.session, indexes_text(each.indexes), each.ts, each.author,
                    ", ".join(each.tags), each.text,
                ]
                for each in episodes
            ),
        )  # fmt: skip
        return
    shorts = short_ids(each.id for each in episodes)
    for each in episodes:
        _episode(printer, each, shorts[each.id])


def _episode(printer: Printer, episode: Episode, name: str) -> None:
    parts = [
        Span(f"{printer.symbols.note} {printer.fit(name, 40)}", "strong"),
        Span(f"  {printer.fit(episode.session, 24, 'middle')} {indexes_text(episode.indexes)}".rstrip()),
        *(Span(f"  #{printer.fit(tag, 24)}", "open") for tag in episode.tags if tag != _MARKER),
        Span(f"  {printer.fit(episode.author or 'unsigned', 24)}  {day(episode.ts)} {clock(episode.ts)}".rstrip(), "dim"),
    ]
    printer.line(*parts, hang=4)
    left_out = printer.block(episode.text, indent=4, most=_MOST_LINES)
    if left_out:
        printer.line(Span(f"{printer.symbols.ellipsis} {plural(left_out, 'more line')}", "dim"), indent=4)
    for title, text in (
        ("supersedes", episode.supersedes), ("links", ", ".join(episode.links[:5])),
        ("missing", ", ".join(episode.missing[:5])),
    ):  # fmt: skip
        if text:
            printer.line(Span(f"{title} {printer.fit(text, 80)}", "dim"), indent=4)
    if episode.around:
        printer.table(
            _AROUND,
            (
                [
                    Span(str(entry.index), "strong" if entry.index in episode.indexes else ""), entry.agent,
                    Span(entry.action, "name"), status_span(printer, entry.status), row_text(entry),
                ]
                for entry in episode.around
            ),
            indent=4,
        )  # fmt: skip


def show_reflection(printer: Printer, found: Reflection) -> None:
    """Show what episodes say together."""
    if not found.episodes:
        printer.hint("Memory holds nothing about that. Keep something: ctxmgr memory retain TEXT --entry 3")
        return
    printer.rule(
        Span("memory  "), Span(printer.fit(found.query, 40), "strong"),
        Span(f"  {plural(len(found.episodes), 'episode')}, {plural(len(found.sessions), 'session')}", "dim"),
    )  # fmt: skip
    for topic in found.topics:
        printer.heading(printer.fit(topic.name or "without a topic", 60))
        for statement in topic.statements:
            _statement(printer, statement)
    _agreement(printer, found)
    if found.superseded:
        printer.heading("Superseded")
        for old in found.superseded:
            printer.line(Span(printer.fit(old.text or old.episode, 200), "dim"), indent=2, hang=2)
    if found.questions:
        printer.heading("Still asked")
        for statement in found.questions:
            _statement(printer, statement)
    if found.kept:
        printer.line(Span(f"kept as {printer.fit(found.kept, 40)}", "dim"))


def _agreement(printer: Printer, found: Reflection) -> None:
    said = {each.id: each.text for each in found.episodes}
    if found.recurring:
        printer.heading("Said more than once")
        for each in found.recurring:
            count = Span(f"{each.count}{printer.symbols.times} ", "strong")
            printer.line(count, printer.fit(each.text, 200), f"  in {plural(len(each.sessions), 'session')}", indent=2, hang=3)
    if found.contradictions:
        printer.heading("Does not seem to agree")
        for pair in found.contradictions:
            printer.line(Span(printer.fit(pair.reason, 60), "warn"), indent=2)
            printer.line("newer  ", printer.fit(said.get(pair.newer, pair.newer), 200), indent=4, hang=7)
            printer.line("older  ", printer.fit(said.get(pair.older, pair.older), 200), indent=4, hang=7)


def _statement(printer: Printer, said: Statement) -> None:
    author = printer.fit(said.author or "unsigned", 24)
    places = f"{printer.fit(said.session, 24, 'middle')} {indexes_text(said.indexes[:10])}".rstrip()
    printer.line(
        printer.fit(said.text, 300), Span(f"  {author}  {day(said.ts)} {clock(said.ts)}".rstrip(), "dim"),
        Span(f"  {places}", "dim"), indent=2, hang=2,
    )  # fmt: skip


def _score(episode: Episode) -> str:
    return "" if episode.score is None else f"{episode.score:.2f}"
