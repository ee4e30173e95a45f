"""``execution``: record runs of agents, and find them again."""

from __future__ import annotations

import time
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.output import Answer, Shown, answer
from ctxmgr.cli.requests import build
from ctxmgr.cli.times import moment
from ctxmgr.cli.views import context as views
from ctxmgr.errors import InvalidInput
from ctxmgr.types.context_package import ListExecutionsRequest, RecordExecutionRequest
from ctxmgr.workspace import Workspace

_HELP = """Record runs of agents: their task, what they were given, what they made, how it ended.

\b
Examples:
  ctxmgr execution record parser_developer started --task T-8 --input system_architect/architecture.yaml
  ctxmgr execution record parser_developer failed --id 01a1ffcb --error "Parse error at line 45"
  ctxmgr execution list --agent parser_developer --status failed
"""

execution_app = typer.Typer(no_args_is_help=True, help=_HELP)

Artifacts = Annotated[
    list[str] | None, typer.Option("--input-artifact", metavar="ARTIFACT", help="Given: AGENT/NAME or id; repeatable.")
]


@execution_app.command("record")
def record(
    agent: Annotated[str | None, typer.Argument(help="The agent that ran.")] = None,
    status: Annotated[str | None, typer.Argument(help="started, completed or failed.")] = None,
    named: Annotated[str | None, typer.Option("--agent", help="The agent, as an option.")] = None,
    state: Annotated[str | None, typer.Option("--status", help="The status, as an option.")] = None,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The run: of one that started, to end it; else a new one.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The task it ran on.")] = None,
    sprint: Annotated[str | None, typer.Option("--sprint", help="The sprint the task belongs to.")] = None,
    given: Artifacts = None,
    made: Annotated[
        list[str] | None, typer.Option("--output-artifact", metavar="ARTIFACT", help="Produced: AGENT/NAME or id; repeatable.")
    ] = None,
    version: Annotated[
        int | None, typer.Option("--context-version", help="The context it ran with; else the current one.")
    ] = None,
    input_tokens: Annotated[int | None, typer.Option("--input-tokens", help="Tokens it was given.")] = None,
    output_tokens: Annotated[int | None, typer.Option("--output-tokens", help="Tokens it produced.")] = None,
    started: Annotated[str | None, typer.Option("--started", metavar="TIME", help="When it started; else now.")] = None,
    completed: Annotated[str | None, typer.Option("--completed", metavar="TIME", help="When it ended.")] = None,
    error: Annotated[str | None, typer.Option("--error", help="Why it failed.")] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", metavar="ID", help="The session it belongs to; else one of the project's own.",
                     rich_help_panel="Store"),
    ] = None,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:  # fmt: skip
    """Record that a run of an agent started, completed or failed.

    Examples:
      ctxmgr execution record parser_developer started --task T-8 --json
      ctxmgr execution record parser_developer completed --id 01a1ffcb --output parser_developer/csv.py
    """

    def work(workspace: Workspace) -> Answer:
        who, how = _subject(agent, status, named, state)
        request = build(
            RecordExecutionRequest, agent=who, status=how, execution_id=identity, session=session, task=task,
            sprint=sprint, context_version=version, input_artifacts=given, input_tokens=input_tokens, output_artifacts=made,
            output_tokens=output_tokens, started_at=moment(started, time.time()),
            completed_at=moment(completed, time.time()), error=error,
        )  # fmt: skip
        done = workspace.project.record_execution(request)
        return Answer(done.to_json(), lambda out: views.show_executions(out, [done]))

    answer("execution record", how, work, store=store, create=True)


def _subject(agent: str | None, status: str | None, named: str | None, state: str | None) -> tuple[str, str]:
    """Return the agent and the status, each from where it was given."""
    if named is not None and state is None and status is None:
        agent, status = None, agent
    if (agent is None) == (named is None) or (status is None) == (state is None):
        raise InvalidInput("say once which agent ran, and once how it stands", "e.g. parser_developer completed")
    return (named if agent is None else agent) or "", (state if status is None else status) or ""


@execution_app.command("list")
def list_(
    agent: Annotated[str | None, typer.Option("--agent", help="Only of this agent.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only on this task.")] = None,
    sprint: Annotated[str | None, typer.Option("--sprint", help="Only of this sprint.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="started, completed or failed.")] = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: Shown,
) -> None:
    """List runs of agents, newest first.

    Examples:
      ctxmgr execution list --status failed --sprint S1-08
      ctxmgr execution list --task T-8 --json
    """

    def work(workspace: Workspace) -> Answer:
        request = build(ListExecutionsRequest, agent=agent, task=task, sprint=sprint, status=status, offset=offset, limit=limit)
        found = workspace.project.list_executions(request)
        rows = [run.to_json() for run in found.executions]
        return Answer(rows, lambda out: views.show_executions(out, found.executions), found.status, found.page)

    answer("execution list", how, work, store=store)
