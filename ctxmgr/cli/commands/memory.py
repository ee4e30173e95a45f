"""``memory``: retain, recall and reflect."""

from __future__ import annotations

import sys
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import parse_all
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.requests import build, tell_session
from ctxmgr.cli.views import memory as views
from ctxmgr.errors import InvalidInput
from ctxmgr.types.memory import (
    DEFAULT_RECALL,
    DEFAULT_REFLECT,
    RecallRequest,
    ReflectRequest,
    RetainRequest,
    RetainSessionRequest,
)
from ctxmgr.workspace import Workspace

_HELP = """Keep what was learned, and find it again in any session.

\b
Examples:
  ctxmgr memory retain "deploys need the VPN"
  ctxmgr memory recall "deploy timeout"
  ctxmgr memory reflect "deploy timeout"
"""

memory_app = typer.Typer(no_args_is_help=True, help=_HELP)

Query = Annotated[str, typer.Argument(help="A few words of what is to be remembered; endings, case and accents may differ.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", help="Only with this tag; repeatable, all must be there.")]
Within = Annotated[
    str | None,
    typer.Option("--session", "-s", metavar="ID", help="Only what was kept in it; else in all.", rich_help_panel="Store"),
]


@memory_app.command("retain")
def retain(
    text: Annotated[str | None, typer.Argument(help="What to remember; '-' reads it from stdin.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="The same, as an option.")] = None,
    entry: Annotated[
        list[str] | None, typer.Option("--entry", "-e", metavar="ENTRY", help="An entry it came from; repeatable.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", help="Classification, e.g. deploy; repeatable.")] = None,
    link: Annotated[
        list[str] | None, typer.Option("--link", help="An address in another session, as SESSION@42; repeatable.")
    ] = None,
    author: Annotated[str | None, typer.Option("--author", help="Who says so.")] = None,
    supersedes: Annotated[
        str | None, typer.Option("--supersedes", metavar="EPISODE", help="The episode this one replaces, in any session.")
    ] = None,
    session: o.Session = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Keep a text as an episode, linked to the entries it came from.

    An episode is a note with the tag 'memory': 'note list' shows it too, and it travels with the history.
    Without a text, the named session is told: what it decided, learned and left open. That is also kept when a session ends.

    Examples:
      ctxmgr memory retain "the deploy hangs without the VPN" --entry 3 --entry 5 -t deploy --author planner
      ctxmgr memory retain --session 01a1ffcb
      ctxmgr memory retain -m "the VPN is not needed any more" --supersedes 01a1ffcb
    """

    def work(workspace: Workspace) -> Answer:
        if text is not None and message is not None:
            raise InvalidInput("the text is given twice", "give TEXT or --message")
        if text is None and message is None and session is not None and not (entry or tag or link or author or supersedes):
            kept = workspace.retain_session(build(RetainSessionRequest, session=session)).episode
            return Answer(kept.to_json(), lambda out: views.show_episodes(out, [kept]))
        given = sys.stdin.read() if text == "-" else text if text is not None else message or ""
        named, indexes, ids = parse_all(entry or [], session)
        request = build(
            RetainRequest, session=named, text=given, entry_indices=indexes, entry_ids=ids, tags=tag, links=link,
            author=author, supersedes=supersedes,
        )  # fmt: skip
        kept = workspace.retain(request).episode
        tell_session(workspace, named, kept.session)
        return Answer(kept.to_json(), lambda out: views.show_episodes(out, [kept]))

    answer("memory retain", how, work, store=store, writes=True)


@memory_app.command("recall")
def recall(
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Most episodes to show.")] = DEFAULT_RECALL,
    expand: Annotated[int, typer.Option("--expand", "-x", help="Entries to show before and after each linked one.")] = 0,
    tag: Tags = None,
    notes: Annotated[bool, typer.Option("--notes", help="Look at all notes, not at episodes alone.")] = False,
    session: Within = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Find the episodes that speak of something, the best first; superseded ones are left out.

    Examples:
      ctxmgr memory recall "deploy timeout"
      ctxmgr memory recall "deploy timeout" --limit 3 --expand 2 --json
    """

    def work(workspace: Workspace) -> Answer:
        request = build(RecallRequest, query=query, session=session, tags=tag, limit=limit, expand=expand, notes=notes)
        found = workspace.recall(request)
        rows = [episode.to_json() for episode in found.episodes]
        return Answer(rows, lambda out: views.show_episodes(out, found.episodes), found.status)

    answer("memory recall", how, work, store=store)


@memory_app.command("reflect")
def reflect(
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Most episodes to reflect on.")] = DEFAULT_REFLECT,
    tag: Tags = None,
    keep: Annotated[bool, typer.Option("--keep", help="Retain the answer as an episode, in place of an earlier one.")] = False,
    author: Annotated[str | None, typer.Option("--author", help="Who keeps it.")] = None,
    session: Within = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Say what memory holds about something: by topic, what recurs, what does not agree, what was superseded.

    Worked out by rules; contradictions are found by words alone and are leads, no verdicts.

    Examples:
      ctxmgr memory reflect "deploy timeout"
      ctxmgr memory reflect "deploy timeout" --keep --author planner
    """

    def work(workspace: Workspace) -> Answer:
        request = build(ReflectRequest, query=query, session=session, tags=tag, limit=limit, keep=keep, author=author)
        found = workspace.reflect(request)
        return Answer(found.reflection.to_json(), lambda out: views.show_reflection(out, found.reflection), found.status)

    answer("memory reflect", how, work, store=store, writes=keep)
