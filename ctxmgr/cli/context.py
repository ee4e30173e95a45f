"""``context``: what the agents of a project share, what each needs, and the package that each is given."""

from __future__ import annotations

import typer

from ctxmgr.cli import context_keys, context_needs, context_package

_HELP = """Give each agent the context it needs: shared values, artifacts, history, within a token budget.

\b
Examples:
  ctxmgr context set current_sprint S1-09 --by project_manager
  ctxmgr context need add parser_developer 'system_architect/*' --need required
  ctxmgr context assemble parser_developer --task T-7 --max-tokens 50000 > package.yaml
  ctxmgr context why system_architect/architecture.yaml
"""

context_app = typer.Typer(no_args_is_help=True, help=_HELP)
context_app.command("set")(context_keys.set_)
context_app.command("get")(context_keys.get)
context_app.command("assemble")(context_package.assemble)
context_app.command("request")(context_package.request)
context_app.command("why")(context_package.why)

need_app = typer.Typer(no_args_is_help=True, help="What an agent's package must or may hold.")
need_app.command("add")(context_needs.add_need)
need_app.command("remove")(context_needs.remove_need)
need_app.command("list")(context_needs.list_needs)
context_app.add_typer(need_app, name="need")
