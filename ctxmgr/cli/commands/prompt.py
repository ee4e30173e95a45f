"""``prompt``: texts for the prompts of agents."""

from __future__ import annotations

from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.requests import build
from ctxmgr.cli.terminal import Printer
from ctxmgr.types.operations import PromptRequest
from ctxmgr.workspace import Workspace

_HELP = """Texts for the prompts of agents.

\b
Examples:
  ctxmgr prompt agent --for coder >> AGENTS.md
"""

prompt_app = typer.Typer(no_args_is_help=True, help=_HELP)


@prompt_app.command("agent")
def agent(
    reader: Annotated[str | None, typer.Option("--for", metavar="NAME", help="The agent that reads it; else any.")] = None,
    routes: o.Routes = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """Print what an agent should know to ask the context manager: when, how, and what comes back.

    It names the agents of the routing table, else those of the latest session.

    Examples:
      ctxmgr prompt agent
      ctxmgr prompt agent --for reviewer --routes routes.toml --json
    """

    def work(workspace: Workspace) -> Answer:
        made = workspace.agent_prompt(build(PromptRequest, agent=reader, routes=routes))
        return Answer(made.to_json(), lambda out: _show(out, made.prompt))

    answer("prompt agent", how, work, store=store)


def _show(out: Printer, text: str) -> None:
    out.block(text.rstrip("\n"))
