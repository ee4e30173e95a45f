"""``context``: what agents share, what each needs, and its package."""

from __future__ import annotations

from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.commands import context_needs, context_package
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.requests import build
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


_HELP = """Give each agent the context it needs: shared values, artifacts, history, within a token budget.

\b
Examples:
  ctxmgr context set current_sprint S1-09 --by project_manager
  ctxmgr context need add parser_developer 'system_architect/*' --need required
  ctxmgr context assemble parser_developer --task T-7 --max-tokens 50000 > package.yaml
  ctxmgr context why system_architect/architecture.yaml
"""

context_app = typer.Typer(no_args_is_help=True, help=_HELP)
context_app.command("set")(set_)
context_app.command("get")(get)
context_app.command("assemble")(context_package.assemble)
context_app.command("request")(context_package.request)
context_app.command("why")(context_package.why)

need_app = typer.Typer(no_args_is_help=True, help="What an agent's package must or may hold.")
need_app.command("add")(context_needs.add_need)
need_app.command("remove")(context_needs.remove_need)
need_app.command("list")(context_needs.list_needs)
context_app.add_typer(need_app, name="need")
