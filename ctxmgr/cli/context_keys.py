"""``context set`` and ``context get``: the values that all agents of a project share."""

from __future__ import annotations

from typing import Annotated

import typer

from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.requesting import build
from ctxmgr.cli.views import project as views
from ctxmgr.types.project import GetContextRequest, KeyUpdate, SetContextRequest
from ctxmgr.workspace import Workspace


def set_(
    key: Annotated[str, typer.Argument(help="The key, e.g. current_sprint.")],
    value: Annotated[str, typer.Argument(help="Its new value; JSON for the type json.")],
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="string, integer, boolean or json; else what it was.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", "-d", help="What the key means.")] = None,
    author: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who sets it; else who asks.")] = None,
    create: Annotated[bool, typer.Option("--create", help="Make the key when it is not there.")] = False,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Set a value that all agents share; the old one is in the answer, and the change in history.

    Examples:
      ctxmgr context set current_sprint S1-09 --by project_manager
      ctxmgr context set strict true --type boolean --create
    """

    def work(workspace: Workspace) -> Answer:
        update = build(KeyUpdate, key=key, value=value, type=type_, description=description)
        done = workspace.project.set_context(build(SetContextRequest, updates=[update], author=author, create=create))
        return Answer(done.to_json(), lambda out: views.show_changes(out, done.updated))

    answer("context set", how, work, store=store, create=True)


def get(
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="The keys wanted; else all.")] = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Show the values that all agents share, who set them and when.

    Examples:
      ctxmgr context get
      ctxmgr context get current_sprint --format ndjson --fields value
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.project.get_context(build(GetContextRequest, keys=keys))
        rows = [item.to_json() for item in found.keys]
        return Answer(rows, lambda out: views.show_keys(out, found.keys), found.status)

    answer("context get", how, work, store=store)
