"""``trace``, ``list``, ``search``, ``show``, ``messages`` and ``browse``: reading a history."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import Address, list_start, located_action, located_entry, parse
from ctxmgr.cli.envelope import slow_search
from ctxmgr.cli.output import Answer, OutputOptions, Status, answer, fail, resolve, resolve_place
from ctxmgr.cli.requests import build, tell_session
from ctxmgr.cli.views import entries as views
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.types.query import (
    ListRequest,
    MessagesRequest,
    SearchRequest,
    ShowRequest,
    TraceRequest,
)
from ctxmgr.workspace import Workspace


def trace(
    action: Annotated[str | None, typer.Argument(metavar="[ACTION]", help="Only this action.")] = None,
    target: o.Target = None,
    session: o.Session = None,
    actions: o.Action = None,
    agent: o.Agent = None,
    input_type: o.InputType = None,
    status: o.Status = None,
    process: o.Process = None,
    since: o.Since = None,
    until: o.Until = None,
    offset: o.Offset = 0,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="Maximum number of rows; else all.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Show everything that happened under an action or agent, in order.

    Examples:
      ctxmgr trace Bash
      ctxmgr trace --agent main --status error --json
      ctxmgr trace Bash run.jsonl
    """
    action, session, store = resolve("trace", how, located_action, action, target, session, store)

    def work(workspace: Workspace) -> Answer:
        request = build(
            TraceRequest, session=session, action=[*([action] if action else []), *(actions or [])] or None, agent=agent,
            input_type=input_type, status=status, process=process, since=since, until=until, offset=offset, limit=limit,
        )  # fmt: skip
        found = workspace.trace(request)
        tell_session(workspace, session, found.session)
        rows = [entry.to_json() for entry in found.entries]
        return Answer(rows, lambda out: views.show_rows(out, found.entries, found.page), found.status, found.page)

    answer("trace", how, work, store=store)


def list_(
    target: o.Target = None,
    session: o.Session = None,
    action: o.Action = None,
    agent: o.Agent = None,
    input_type: o.InputType = None,
    status: o.Status = None,
    process: o.Process = None,
    kind: o.Kind = "entry",
    event_type: o.EventType = None,
    since: o.Since = None,
    until: o.Until = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Show the newest rows first.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Page through a session, oldest first.

    Examples:
      ctxmgr list --limit 50
      ctxmgr list --newest-first --status error
      ctxmgr list --kind all --since 2h --json
      ctxmgr list --process 01a1ffcb
      ctxmgr list run.jsonl@40
    """
    chosen = any((action, agent, input_type, status, process, event_type, since, until, newest_first, kind != "entry"))
    target, offset = resolve("list", how, partial(list_start, chosen=chosen), target, offset)
    session, store = resolve_place("list", how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        # An event type given without --kind asks for events: no entry has one.
        request = build(
            ListRequest, session=session, action=action, agent=agent, input_type=input_type, status=status,
            process=process, kind="event" if event_type and kind == "entry" else kind, event_type=event_type, since=since,
            until=until, offset=offset, limit=limit, newest_first=newest_first,
        )  # fmt: skip
        found = workspace.list(request)
        tell_session(workspace, session, found.session)
        rows = [row.to_json() for row in found.rows]
        return Answer(rows, lambda out: views.show_rows(out, found.rows, found.page), found.status, found.page)

    answer("list", how, work, store=store)


def search(
    query: Annotated[str, typer.Argument(help="Text to find, literally, also inside words.")],
    target: o.Target = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    max_: Annotated[int, typer.Option("--limit", "--max", "-n", help="Maximum number of hits.")] = 50,
    offset: o.Offset = 0,
    action: o.Action = None,
    agent: o.Agent = None,
    input_type: o.InputType = None,
    status: o.Status = None,
    process: o.Process = None,
    kind: o.Kind = "all",
    event_type: o.EventType = None,
    since: o.Since = None,
    until: o.Until = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Find text in actions, inputs, outputs, errors, notes and messages, regardless of case.

    Examples:
      ctxmgr search Discovery
      ctxmgr search "exit code 1" --all-sessions
      ctxmgr search rm --kind entry --json
      ctxmgr search "exit code 1" run.jsonl
    """
    session, store = resolve_place("search", how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        request = build(
            SearchRequest, query=query, session=session, all_sessions=all_sessions, max_results=max_, offset=offset,
            action=action, agent=agent, input_type=input_type, status=status, process=process, kind=kind,
            event_type=event_type, since=since, until=until,
        )  # fmt: skip
        found = workspace.search(request)
        if not all_sessions:
            tell_session(workspace, session, found.session)
        rows = [hit.to_json() for hit in found.hits]
        warnings, following = slow_search(workspace.store.unindexed())
        return Answer(
            rows,
            lambda out: views.show_hits(out, found.hits, query, found.page, everywhere=all_sessions),
            found.status,
            found.page,
            warnings,
            following,
        )

    answer("search", how, work, store=store)


def show(
    address: Annotated[str, typer.Argument(help="SESSION@42, LOG@42, 42, @-1, @last, or an entry id.")],
    session: o.Session = None,
    full: Annotated[bool, typer.Option("--full", help="Show long inputs and outputs in full.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Show one entry with all details and its notes, or a recorded continuation by its id.

    Examples:
      ctxmgr show @last
      ctxmgr show 01a1ffcb@42 --json
      ctxmgr show run.jsonl@-1
    """
    address, session, store = resolve("show", how, located_entry, address, session, store)

    def work(workspace: Workspace) -> Answer:
        place = parse(address, session)
        try:
            found = workspace.show(ShowRequest(session=place.session, index=place.index, entry_id=place.entry_id))
        except NotFound as missing:
            if place.entry_id is None:
                raise
            return _continuation(workspace, place, missing)
        tell_session(workspace, place.session, found.entry.session)
        return Answer(
            found.entry.to_json(),
            lambda out: views.show_entry(out, found.entry, full=full),
            next=[f"ctxmgr messages {found.entry.session}@{found.entry.index}"] if found.entry.events else [],
        )

    answer("show", how, work, store=store)


def _continuation(workspace: Workspace, place: Address, missing: NotFound) -> Answer:
    """Return a recorded continuation as `recover` shows it.

    Raises:
        NotFound: ``missing``, where there is none either.
    """
    # Only an id that names no entry comes here, so `show` seldom loads what draws continuations.
    from ctxmgr.cli.commands.recover import continued
    from ctxmgr.types.operations import RecoverResponse

    try:
        found = workspace.continuation(place.session, place.entry_id)
    except NotFound:
        raise missing from None
    return continued(workspace, RecoverResponse(continuation=found))


def messages(
    address: Annotated[
        str | None, typer.Argument(help="SESSION@42, LOG@42, LOG, @-1 or an entry id; else the session.")
    ] = None,
    session: o.Session = None,
    process: o.Process = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Page through the messages at an entry and on the way to it.

    Examples:
      ctxmgr messages @42
      ctxmgr messages --session 01a1ffcb --limit 100
      ctxmgr messages run.jsonl
    """
    if address is None:
        session, store = resolve_place("messages", how, None, session, store)
    else:
        address, session, store = resolve("messages", how, located_entry, address, session, store)

    def work(workspace: Workspace) -> Answer:
        place = parse(address, session) if address else parse("@0", session)
        request = build(
            MessagesRequest, session=place.session, index=place.index if address else None,
            entry_id=place.entry_id, process=process, offset=offset, limit=limit,
        )  # fmt: skip
        found = workspace.messages(request)
        tell_session(workspace, place.session, found.session)
        rows = [event.to_json() for event in found.messages]
        status: Status = found.status
        return Answer(rows, lambda out: views.show_messages(out, found), status, found.page)

    answer("messages", how, work, store=store)


def browse(target: o.Target = None, session: o.Session = None, store: o.Store = None) -> None:
    """Browse a history: the sessions, the timeline of each with its findings, every entry.

    Nothing is written but your notes. A running session is followed. '?' shows the keys. Needs the tui extra: pip install
    'ctxmgr-cli[tui]'.

    Examples:
      ctxmgr browse
      ctxmgr browse 01a1ffcb
      ctxmgr browse run.jsonl
    """
    how = OutputOptions()
    session, store = resolve_place("browse", how, target, session, store)
    try:
        # Textual is an extra, and no other command may load it.
        from ctxmgr.cli.browse.app import browse as run
    except ImportError:
        fail("browse", how, InvalidInput("browse needs the tui extra", "pip install 'ctxmgr-cli[tui]'"))
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        fail("browse", how, InvalidInput("browse needs a terminal", "'ctxmgr report -o run.html' makes a page to look at"))
    if (error := run(store, session)) is not None:
        fail("browse", how, error)
    raise typer.Exit(0)
