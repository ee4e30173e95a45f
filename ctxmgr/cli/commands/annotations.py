"""``note`` and ``snapshot``: annotate entries and bundle them."""

from __future__ import annotations

from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import located_entries, parse_all
from ctxmgr.cli.output import Answer, OutputOptions, answer, resolve, resolve_place
from ctxmgr.cli.requests import build, tell_session
from ctxmgr.cli.views import entries as views
from ctxmgr.types.query import (
    AddNoteRequest,
    CreateSnapshotRequest,
    ListNotesRequest,
    ListSnapshotsRequest,
    ShowSnapshotRequest,
)
from ctxmgr.workspace import Workspace

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
    author: Annotated[str | None, typer.Option("--author", help="Author of the note.")] = None,
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
    entries, session, store = resolve("note add", how, located_entries, entries, session, store)

    def work(workspace: Workspace) -> Answer:
        named, indexes, ids = parse_all(entries, session)
        request = build(
            AddNoteRequest, session=named, entry_indices=indexes, entry_ids=ids, content=message, tags=tag, links=link,
            author=author, supersedes=supersedes,
        )  # fmt: skip
        done = workspace.add_note(request)
        tell_session(workspace, named, done.note.session)
        return Answer(done.note.to_json(), lambda out: views.show_notes(out, [done.note]))

    answer("note add", how, work, store=store, writes=True)


def _notes(
    command: str, query: str | None, tag: list[str] | None, target: str | None, session: str | None, every: bool, offset: int,
    limit: int, store: str | None, how: OutputOptions,
) -> None:  # fmt: skip
    session, store = resolve_place(command, how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        request = build(
            ListNotesRequest, session=session, tags=tag, query=query, all_sessions=every, offset=offset, limit=limit
        )
        found = workspace.list_notes(request)
        rows = [note.to_json() for note in found.notes]
        return Answer(rows, lambda out: views.show_notes(out, found.notes), found.status, found.page)

    answer(command, how, work, store=store)


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
    _notes("note list", None, tag, target, session, all_sessions, offset, limit, store, how)


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
    _notes("note search", query, tag, target, session, all_sessions, offset, limit, store, how)


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
    entries, session, store = resolve("snapshot create", how, located_entries, entries, session, store)

    def work(workspace: Workspace) -> Answer:
        named, indexes, ids = parse_all(entries, session)
        request = build(
            CreateSnapshotRequest,
            session=named,
            entry_indices=indexes,
            entry_ids=ids,
            summary=summary,
            reasoning=reasoning,
        )
        done = workspace.create_snapshot(request)
        tell_session(workspace, named, done.snapshot.session)
        return Answer(done.snapshot.to_json(), lambda out: views.show_snapshots(out, [done.snapshot]))

    answer("snapshot create", how, work, store=store, writes=True)


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
    session, store = resolve_place("snapshot list", how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        found = workspace.list_snapshots(build(ListSnapshotsRequest, session=session, offset=offset, limit=limit))
        rows = [snapshot.to_json() for snapshot in found.snapshots]
        return Answer(rows, lambda out: views.show_snapshots(out, found.snapshots), found.status, found.page)

    answer("snapshot list", how, work, store=store)


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
