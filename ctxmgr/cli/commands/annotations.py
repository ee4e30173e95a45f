"""``note``, ``snapshot`` and ``memory``: annotate entries, bundle them, and keep episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import parse_all
from ctxmgr.cli.envelope import tell_session
from ctxmgr.cli.output import Answer, OutputOptions, answer, resolve_place
from ctxmgr.cli.requests import build, read_argument
from ctxmgr.cli.views import entries as views
from ctxmgr.cli.views.entries import indexes_text
from ctxmgr.cli.views.layout import Column, Span, clock, day, plural, row_text, short_ids, status_span
from ctxmgr.errors import InvalidInput
from ctxmgr.types.memory import (
    DEFAULT_RECALL,
    DEFAULT_REFLECT,
    RecallRequest,
    ReflectRequest,
    RetainRequest,
    RetainSessionRequest,
)
from ctxmgr.types.query import (
    ShowSnapshotRequest,
)
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.memory import Episode, Reflection, Statement

note_app = typer.Typer(no_args_is_help=True, help="Annotate entries; notes add to history and never change it.")
snapshot_app = typer.Typer(no_args_is_help=True, help="Bundle entries as a curated context.")

Entries = Annotated[list[str], typer.Argument(metavar="ENTRY...", help="Indexes, addresses or ids; '-' reads them from stdin.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="Tag of the note, e.g. diagnostic; repeatable.")]


@note_app.command("add")
def add(
    entries: Entries,
    message: Annotated[str, typer.Option("--message", "-m", help="Text of the note.")],
    tag: Tags = None,
    link: Annotated[list[str] | None, typer.Option("--link", help="A related entry: its id or address; repeatable.")] = None,
    author: Annotated[str | None, typer.Option("--author", help="Author of the note; else the agent that asks.")] = None,
    supersedes: Annotated[str | None, typer.Option("--supersedes", metavar="NOTE", help="The note this one replaces.")] = None,
    session: o.Session = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Attach a note to one or more entries.

    Examples:
      ctxmgr note add 3 4 5 -m "Excluded due to irrelevance" -t exclusion -t diagnostic
      ctxmgr note add run.jsonl@3 -m "the first wrong turn"
      ctxmgr list --status error --format ndjson --fields id | jq -r .id | ctxmgr note add - -m "look here"
    """


@note_app.command("list")
def list_notes(
    target: o.Target = None,
    tag: Tags = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List notes, by tag if wanted.

    Examples:
      ctxmgr note list -t routing
      ctxmgr note list 01a1ffcb
    """


@note_app.command("search")
def search_notes(
    query: Annotated[str, typer.Argument(help="Text to find in notes, tags and authors.")],
    target: o.Target = None,
    tag: Tags = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Find notes by their text.

    Examples:
      ctxmgr note search "wrong branch" -t diagnostic
    """


@snapshot_app.command("create")
def create(
    entries: Entries,
    summary: Annotated[str, typer.Option("--summary", help="Summary of the bundle.")],
    reasoning: Annotated[str, typer.Option("--reasoning", help="Reason for these entries.")] = "",
    session: o.Session = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Store a bundle of entries with a summary and the reason.

    Examples:
      ctxmgr snapshot create 3 4 5 --summary "auth findings" --reasoning "needed by the merge agent"
    """


@snapshot_app.command("list")
def list_snapshots(
    target: o.Target = None,
    session: o.Session = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the snapshots of a session.

    Examples:
      ctxmgr snapshot list --json
    """


@snapshot_app.command("show")
def show(
    snapshot: Annotated[str, typer.Argument(help="Snapshot id or prefix.")],
    target: o.Target = None,
    session: o.Session = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Show a snapshot and its entries, and whether they are unchanged since.

    Examples:
      ctxmgr snapshot show 01a1ffcb
    """
    session, store = resolve_place("snapshot show", how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        found = workspace.show_snapshot(ShowSnapshotRequest(session=session, snapshot_id=snapshot))
        return Answer(found.to_json(), lambda out: views.show_snapshot(out, found))

    answer("snapshot show", how, work, store=store)


_HELP = """Keep what was learned, and find it again in any session.

\b
Examples:
  ctxmgr memory retain "deploys need the VPN"
  ctxmgr memory recall "deploy timeout"
  ctxmgr memory reflect "deploy timeout"
"""

memory_app = typer.Typer(no_args_is_help=True, help=_HELP)

Query = Annotated[str, typer.Argument(help="Words of the text to recall; endings, case and accents may differ.")]
EpisodeTags = Annotated[
    list[str] | None, typer.Option("--tag", "-t", help="Only episodes with this tag; repeatable, all must match.")
]
Within = Annotated[
    str | None,
    typer.Option("--session", "-s", metavar="ID", help="Only episodes of this session; else of all."),
]


@memory_app.command("retain")
def retain(
    text: Annotated[str | None, typer.Argument(help="Text to remember; '-' reads stdin.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="The text, as an option.")] = None,
    entry: Annotated[
        list[str] | None, typer.Option("--entry", "-e", metavar="ENTRY", help="Entry that it came from; repeatable.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", help="Tag of the episode, e.g. deploy; repeatable.")] = None,
    link: Annotated[
        list[str] | None, typer.Option("--link", help="Address in another session, as SESSION@42; repeatable.")
    ] = None,
    author: Annotated[str | None, typer.Option("--author", help="Author of the episode; else the agent that asks.")] = None,
    supersedes: Annotated[
        str | None, typer.Option("--supersedes", metavar="EPISODE", help="The episode this one replaces, in any session.")
    ] = None,
    session: o.Session = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Keep a text as an episode, linked to the entries it came from.

    An episode is a note with the tag 'memory': 'note list' shows it too, and it travels with the history. Without a text, the
    episode says what the named session decided, learned and left open. Such an episode is also kept when a session ends.

    Examples:
      ctxmgr memory retain "the deploy hangs without the VPN" --entry 3 --entry 5 -t deploy --author planner
      ctxmgr memory retain --session 01a1ffcb
      ctxmgr memory retain -m "the VPN is not needed any more" --supersedes 01a1ffcb
    """

    def work(workspace: Workspace) -> Answer:
        if text is not None and message is not None:
            raise InvalidInput("the text is given twice", "give TEXT or --message")
        # If only a session is given, its records are made into an episode. Any other option requires a text.
        if text is None and message is None and session is not None and not (entry or tag or link or author or supersedes):
            kept = workspace.retain_session(build(RetainSessionRequest, session=session)).episode
            return Answer(kept.to_json(), lambda out: show_episodes(out, [kept]))
        given = message or "" if text is None else read_argument(text)
        # An episode need not refer to an entry, so naming none is fine here.
        named, indexes, ids = parse_all(entry or [], session)
        request = build(
            RetainRequest, session=named, text=given, entry_indices=indexes, entry_ids=ids, tags=tag, links=link,
            author=author, supersedes=supersedes,
        )  # fmt: skip
        kept = workspace.retain(request).episode
        tell_session(workspace.store, named, kept.session)
        return Answer(kept.to_json(), lambda out: show_episodes(out, [kept]))

    answer("memory retain", how, work, store=store, create=True)


@memory_app.command("recall")
def recall(
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Maximum number of episodes.")] = DEFAULT_RECALL,
    expand: Annotated[int, typer.Option("--expand", "-x", help="Number of entries to show around each linked one.")] = 0,
    tag: EpisodeTags = None,
    notes: Annotated[bool, typer.Option("--notes", help="Search all notes, not only episodes.")] = False,
    session: Within = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Find the episodes about something, best first; superseded ones are left out.

    Examples:
      ctxmgr memory recall "deploy timeout"
      ctxmgr memory recall "deploy timeout" --limit 3 --expand 2 --json
    """

    def work(workspace: Workspace) -> Answer:
        request = build(RecallRequest, query=query, session=session, tags=tag, limit=limit, expand=expand, notes=notes)
        found = workspace.recall(request)
        rows = [episode.to_json() for episode in found.episodes]
        return Answer(rows, lambda out: show_episodes(out, found.episodes), found.status)

    answer("memory recall", how, work, store=store)


@memory_app.command("reflect")
def reflect(
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Maximum number of episodes to reflect on.")] = DEFAULT_REFLECT,
    tag: EpisodeTags = None,
    keep: Annotated[bool, typer.Option("--keep", help="Retain the answer as an episode, in place of an earlier one.")] = False,
    author: Annotated[str | None, typer.Option("--author", help="Author of the episode; else the agent that asks.")] = None,
    session: Within = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Sum up what memory holds about something: by topic, what recurs, what conflicts, what was superseded.

    This is done by rules; contradictions are found by words alone, so they are hints, not verdicts.

    Examples:
      ctxmgr memory reflect "deploy timeout"
      ctxmgr memory reflect "deploy timeout" --keep --author planner
    """

    def work(workspace: Workspace) -> Answer:
        request = build(ReflectRequest, query=query, session=session, tags=tag, limit=limit, keep=keep, author=author)
        found = workspace.reflect(request)
        return Answer(found.reflection.to_json(), lambda out: show_reflection(out, found.reflection), found.status)

    # Without --keep nothing is written, so a read-only store is enough.
    answer("memory reflect", how, work, store=store, writes=keep)


_EPISODES = tuple(Column(title) for title in ("ID", "SCORE", "SESSION", "ENTRIES", "TIME", "AUTHOR", "TAGS", "TEXT"))
_AROUND = (
    Column("@", right=True), Column("AGENT", give=3, least=6, optional=True), Column("ACTION", give=2, least=8),
    Column("STATUS"), Column("INPUT", fill=True, least=20),
)  # fmt: skip
# The tag that makes a note an episode. All episodes shown here have it, so it is left out.
_MARKER = "memory"
_MAX_LINES = 8


def show_episodes(printer: Printer, episodes: Sequence[Episode]) -> None:
    """Show episodes with authors, texts and the entries around them; in a pipe, one row per episode."""
    if not episodes:
        printer.hint("Memory holds nothing about that. Keep something: ctxmgr memory retain TEXT --entry 3")
        return
    # A program gets whole ids and texts. On a terminal, ids are shortened to unique prefixes.
    if not printer.terminal:
        printer.table(
            _EPISODES,
            (
                [
                    each.id, "" if each.score is None else f"{each.score:.2f}", each.session, indexes_text(each.indexes),
                    each.ts, each.author, ", ".join(each.tags), each.text,
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
    left_out = printer.block(episode.text, indent=4, most=_MAX_LINES)
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
    """Show what several episodes say together."""
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
    texts = {each.id: each.text for each in found.episodes}
    if found.recurring:
        printer.heading("Said more than once")
        for each in found.recurring:
            count = Span(f"{each.count}{printer.symbols.times} ", "strong")
            printer.line(count, printer.fit(each.text, 200), f"  in {plural(len(each.sessions), 'session')}", indent=2, hang=3)
    if found.contradictions:
        printer.heading("Does not seem to agree")
        for pair in found.contradictions:
            printer.line(Span(printer.fit(pair.reason, 60), "warn"), indent=2)
            printer.line("newer  ", printer.fit(texts.get(pair.newer, pair.newer), 200), indent=4, hang=7)
            printer.line("older  ", printer.fit(texts.get(pair.older, pair.older), 200), indent=4, hang=7)


def _statement(printer: Printer, statement: Statement) -> None:
    author = printer.fit(statement.author or "unsigned", 24)
    places = f"{printer.fit(statement.session, 24, 'middle')} {indexes_text(statement.indexes[:10])}".rstrip()
    printer.line(
        printer.fit(statement.text, 300), Span(f"  {author}  {day(statement.ts)} {clock(statement.ts)}".rstrip(), "dim"),
        Span(f"  {places}", "dim"), indent=2, hang=2,
    )  # fmt: skip
