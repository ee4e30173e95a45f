"""``context`` and ``execution``: what an agent gets, and the results of its runs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.base.paths import open_regular
from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.envelope import output_options, say
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, OutputOptions, answer
from ctxmgr.cli.requests import build, goal_source, moment, version_number
from ctxmgr.cli.views import context as views
from ctxmgr.errors import InvalidInput
from ctxmgr.history.open_history import NOTHING_YET
from ctxmgr.types.context_package import DEFAULT_BUDGET, ESTIMATE, AssembleRequest, RequestItemsRequest, WhyRequest
from ctxmgr.types.project_state import (
    AgentNeed,
    ChangeNeedsRequest,
    ContextLogRequest,
    GetContextRequest,
    KeyUpdate,
    ListExecutionsRequest,
    ListNeedsRequest,
    RecordExecutionRequest,
    SetContextRequest,
)
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.cli.model_proposals import ModelImprover
    from ctxmgr.cli.terminal import Printer


NeedingAgent = Annotated[str, typer.Argument(metavar="AGENT", help="The agent that has the need.")]
Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN",
        help="AGENT/*, AGENT/NAME, project_context, task_context, error_context, execution_history, goal_context, "
        "entry:ID, snapshot:ID or continuation:ID.",
    ),
]


def add_need(
    agent: NeedingAgent,
    pattern: Pattern,
    need: Annotated[
        str, typer.Option("--need", metavar="NEED", help="required, optional, if_exists (no word when missing) or reference.")
    ] = "required",
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", help="Token limit for one item.")] = None,
    summary: Annotated[bool, typer.Option("--use-summary/--use-whole", help="Prefer summaries, or whole texts.")] = False,
    priority: Annotated[int, typer.Option("--priority", "-p", help="Priority; the lowest number is served first.")] = 100,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Say what an agent needs; the same pattern again replaces what was said.

    Examples:
      ctxmgr context need add parser_developer 'system_architect/*' --priority 1
      ctxmgr context need add parser_developer 'cli_ux_designer/*' --need optional --max-tokens 4000
    """

    def work(workspace: Workspace) -> Answer:
        wanted = build(
            AgentNeed, agent=agent, pattern=pattern, need=need, max_tokens=max_tokens, use_summary=summary, priority=priority
        )
        done = workspace.supply.change_needs(ChangeNeedsRequest(add=[wanted]))
        return Answer(done.to_json(), lambda out: views.show_needs(out, done.needs))

    answer("context need add", how, work, store=store, create=True)


def remove_need(
    agent: NeedingAgent,
    pattern: Pattern,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Take back what was said that an agent needs.

    Examples:
      ctxmgr context need remove parser_developer 'cli_ux_designer/*'
    """

    def work(workspace: Workspace) -> Answer:
        done = workspace.supply.change_needs(ChangeNeedsRequest(remove=[(agent, pattern)]))
        return Answer(done.to_json(), lambda out: views.show_removed_needs(out, done.needs))

    answer("context need remove", how, work, store=store, writes=True)


def list_needs(
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Only the needs of this agent; else of all.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List what agents need, in the order in which it is served; an agent that asks sees its own.

    Examples:
      ctxmgr context need list parser_developer
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.supply.list_needs(build(ListNeedsRequest, agent=agent))
        rows = [need.to_json() for need in found.needs]
        return Answer(rows, lambda out: views.show_needs(out, found.needs), found.status)

    answer("context need list", how, work, store=store)


Agent = Annotated[str, typer.Argument(metavar="AGENT", help="The agent that the context is for.")]
MaxTokens = Annotated[int, typer.Option("--max-tokens", help="Token budget, which is never exceeded.")]
Counter = Annotated[
    str,
    typer.Option("--counter", metavar="NAME", help="Token counter: estimate, o200k_base or cl100k_base."),
]
ReservePrompt = Annotated[
    int | None,
    typer.Option("--reserve-prompt", help="Tokens kept free for the prompt; else 5 %, at most 5,000."),
]
ReserveTask = Annotated[
    int | None,
    typer.Option("--reserve-task", help="Tokens for project and task context; else 2 %, at most 2,000."),
]
Task = Annotated[str | None, typer.Option("--task", metavar="ID", help="Id of the task.")]
TaskContext = Annotated[
    str | None,
    typer.Option("--task-context", metavar="FILE", help="File with the task's context: a JSON or YAML map."),
]
Goal = Annotated[
    str | None,
    typer.Option("--goal-dir", metavar="DIR", help="Project whose goal becomes goal_context."),
]
With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="ITEM", help="Item to add to what the agent needs; repeatable."),
]
Version = Annotated[
    str | None,
    typer.Option("--version", metavar="N", help="Version of the artifacts; else the current one."),
]
Diff = Annotated[bool, typer.Option("--diff/--fresh", help="Leave out what the agent has from its last package.")]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="PROVIDER:NAME", help="Model that writes the summaries."),
]
Plan = Annotated[bool, typer.Option("--plan", "--dry-run", help="Show the package without recording it.")]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="yaml (default in a pipe), table, json, ndjson or md."),
]  # fmt: skip


def assemble(
    agent: Agent,
    max_tokens: MaxTokens = DEFAULT_BUDGET,
    reserve_prompt: ReservePrompt = None,
    reserve_task: ReserveTask = None,
    counter: Counter = ESTIMATE,
    task: Task = None,
    task_context: TaskContext = None,
    goal: Goal = None,
    also: With = None,
    version: Version = None,
    diff: Diff = False,
    plan: Plan = False,
    model: Model = None,
    base_url: o.BaseUrl = None,
    timeout: o.Timeout = None,
    store: o.Store = None,
    json_: o.Json = False,
    format_: Format = None,
    fields: o.Fields = None,
    jq: o.Jq = None,
    raw: o.Raw = False,
) -> None:
    """Give an agent what it needs, within a token budget: a YAML package; on a terminal, what is in it and why.

    Required items are given whole, or nothing is (exit 6). Optional items are given whole, as a summary, or in part, as space
    allows. 'context need' sets what an agent needs; error_context holds the latest failures of the task, else of the agent,
    else of all.

    With --model a model writes the summaries where its text is as short as the one by structure; no other setting asks a
    model.

    The agent's access rules apply, whoever asks for it. In a store without any rule the operator gives it everything.

    Examples:
      ctxmgr context assemble parser_developer > package.yaml
      ctxmgr context assemble parser_developer --task T-7 --task-context t.yaml --json
      ctxmgr context assemble debugger --with entry:run-12@7 --with system_architect/notes.md --plan
    """

    def work(workspace: Workspace) -> Answer:
        asked = build(
            AssembleRequest, agent=agent, max_tokens=max_tokens, reserve_prompt=reserve_prompt, reserve_task=reserve_task,
            counter=counter, task=task, task_context=_read(task_context), items=also,
            goal=goal_source(goal), version=version_number(version), diff=diff, dry_run=plan,
        )  # fmt: skip
        improver = _improver(workspace, model, base_url, timeout)
        made = (workspace.supply if improver is None else workspace.supply.with_improver(improver)).assemble(asked)
        warnings = [] if plan or made.id else [_why_not_recorded(workspace)]
        if improver is not None and improver.failure:
            warnings.append(f"not every summary is the model's: {improver.failure}")
        return Answer(
            made.to_json(), lambda out: views.show_package(out, made, yaml=_is_yaml(out, format_)),
            "partial" if made.package.missing else "ok", warnings=[*warnings, *workspace.guard.warnings],
        )  # fmt: skip

    # Lenient: an agent also gets its package from a read-only store. The package is not recorded then.
    answer(
        "context assemble", _package_options(json_, format_, fields, jq, raw), work, store=store, writes=not plan, lenient=True
    )


def _why_not_recorded(workspace: Workspace) -> str:
    reason = "there is no store yet" if NOTHING_YET in workspace.warnings else "the store can only be read"
    return f"the package is not recorded: {reason}"


def _is_yaml(printer: Printer, form: str | None) -> bool:
    # The reader of a pipe is an agent, which needs the package itself instead of a view.
    return form == "yaml" or (form != "md" and not printer.terminal)


def _improver(workspace: Workspace, model: str | None, base_url: str | None, timeout: float | None) -> ModelImprover | None:
    """Return the `ModelImprover` for the model that this call names, or None if it names none."""
    if model is None:
        return None
    from ctxmgr.cli.model_proposals import make_improver
    from ctxmgr.types.operations import ModelRequest

    wanted = build(ModelRequest, name=model, base_url=base_url, seconds=timeout)
    return make_improver(wanted, os.environ, workspace.config.model, say)


def request(
    agent: Agent,
    items: Annotated[
        list[str] | None, typer.Argument(metavar="ITEM...", help="AGENT/NAME, AGENT/*, an artifact's id, entry:ID, ...")
    ] = None,
    named: Annotated[
        list[str] | None,
        typer.Option("--item", metavar="ITEM", help="Item, as an option; repeatable."),
    ] = None,
    max_tokens: MaxTokens = DEFAULT_BUDGET,
    counter: Counter = ESTIMATE,
    version: Version = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Give an agent more artifacts, shared values or snapshots than its package held, each item with its own status.

    Items are served in the order given. For a stuck run use 'ctxmgr recover'; an agent that lost the thread uses 'ctxmgr
    request'.

    An item that the agent may not read is reported missing, like one that does not exist. The exit code is 3 when everything
    is missing.

    Examples:
      ctxmgr context request parser_developer security_architect/security-requirements.yaml --as parser_developer
      ctxmgr context request parser_developer 'cli_ux_designer/*' snapshot:01a1ffcb --max-tokens 8000 --json
    """

    def work(workspace: Workspace) -> Answer:
        asked = build(
            RequestItemsRequest,
            agent=agent,
            items=[*(items or []), *(named or [])],
            max_tokens=max_tokens,
            counter=counter,
            version=version_number(version),
        )
        found = workspace.supply.request_items(asked)
        # With some of the items the agent can continue. With none, the exit code tells a script.
        return Answer(
            [item.to_json() for item in found.items], lambda out: views.show_request_response(out, found.items), found.status,
            warnings=[*found.warnings, *workspace.guard.warnings], code=Exit.NOT_FOUND if found.status == "empty" else Exit.OK,
        )  # fmt: skip

    answer("context request", how, work, store=store, writes=True, lenient=True)


def why(
    item: Annotated[str, typer.Argument(metavar="ITEM", help="AGENT/NAME, an artifact's id, a context, entry:ID, ...")],
    package: Annotated[str | None, typer.Option("--package", metavar="ID", help="The package; else the latest one.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="The latest package of this agent.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Explain why an item is in a package, was shortened, or is missing: what was asked for, what was given, rule and reason.

    Examples:
      ctxmgr context why system_architect/architecture.yaml
      ctxmgr context why error_context --agent debugger --json
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.supply.explain_item(build(WhyRequest, item=item, package=package, agent=agent))
        return Answer(found.to_json(), lambda out: views.show_item_explanation(out, found))

    answer("context why", how, work, store=store)


def _package_options(as_json: bool, form: str | None, fields: str | None, jq: str | None, raw: bool) -> OutputOptions:
    # The view writes the package as YAML, so YAML is the form for people among the output options.
    return output_options(as_json, "table" if form == "yaml" else form, fields, jq, raw)


def _read(place: str | None) -> dict[str, Any] | None:
    if place is None:
        return None
    from ctxmgr.context.service import MAX_CONTENT_BYTES, read_task_context

    # Read one byte more than allowed, so that `read_task_context` recognises a file that is too long.
    with open(open_regular(place), "rb") as file:
        return read_task_context(file.read(MAX_CONTENT_BYTES + 1), place)


def set_(
    key: Annotated[str, typer.Argument(help="The key, e.g. current_sprint.")],
    value: Annotated[str, typer.Argument(help="The new value; JSON for the type json.")],
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Type: string, integer, boolean or json; else the present one.")
    ] = None,
    description: Annotated[str | None, typer.Option("--description", "-d", help="Description of the key.")] = None,
    author: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Author of the change; else the agent that asks.")
    ] = None,
    create: Annotated[bool, typer.Option("--create", help="Create the key if it is not there.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
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
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="The keys to show; else all.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
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


def log(
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="The keys to show; else all.")] = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the changes of the values that all agents share, newest first: old and new value, who set it and when.

    Examples:
      ctxmgr context log current_sprint
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.project.context_log(build(ContextLogRequest, keys=keys, offset=offset, limit=limit))
        rows = [change.to_json() for change in found.changes]
        return Answer(rows, lambda out: views.show_context_log(out, found.changes), found.status, found.page)

    answer("context log", how, work, store=store)


_HELP = """Give each agent the context it needs: shared values, artifacts, history, within a token budget.

\b
Examples:
  ctxmgr context set current_sprint S1-09 --by project_manager
  ctxmgr context need add parser_developer 'system_architect/*' --need required
  ctxmgr context assemble parser_developer --task T-7 --max-tokens 50000 > package.yaml
  ctxmgr context why system_architect/architecture.yaml
"""

context_app = typer.Typer(no_args_is_help=True, help=_HELP)
# Registered here instead of at each function, so that help lists them in the order of use.
context_app.command("set")(set_)
context_app.command("get")(get)
context_app.command("log")(log)
context_app.command("assemble")(assemble)
context_app.command("request")(request)
context_app.command("why")(why)

need_app = typer.Typer(no_args_is_help=True, help="What an agent's package must or may hold.")
need_app.command("add")(add_need)
need_app.command("remove")(remove_need)
need_app.command("list")(list_needs)
context_app.add_typer(need_app, name="need")


_EXECUTION_HELP = """Record runs of agents: their task, what they were given, what they made, how it ended.

\b
Examples:
  ctxmgr execution record parser_developer started --task T-8 --input-artifact system_architect/architecture.yaml
  ctxmgr execution record parser_developer failed --id 01a1ffcb --error "Parse error at line 45"
  ctxmgr execution list --agent parser_developer --status failed
"""

execution_app = typer.Typer(no_args_is_help=True, help=_EXECUTION_HELP)

Artifacts = Annotated[
    list[str] | None,
    typer.Option("--input-artifact", metavar="ARTIFACT", help="Artifact given, as AGENT/NAME or id; repeatable."),
]


@execution_app.command("record")
def record_execution(
    agent: Annotated[str | None, typer.Argument(help="The agent that ran.")] = None,
    status: Annotated[str | None, typer.Argument(help="started, completed or failed.")] = None,
    named: Annotated[str | None, typer.Option("--agent", help="The agent, as an option.")] = None,
    state: Annotated[str | None, typer.Option("--status", help="The status, as an option.")] = None,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Id of the run that started; else a new run.")
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="The task it ran on.")] = None,
    sprint: Annotated[str | None, typer.Option("--sprint", help="The sprint the task belongs to.")] = None,
    given: Artifacts = None,
    made: Annotated[
        list[str] | None, typer.Option("--output-artifact", metavar="ARTIFACT", help="Artifact produced; repeatable.")
    ] = None,
    version: Annotated[
        int | None, typer.Option("--context-version", help="Version of the context that it had; else the current one.")
    ] = None,
    input_tokens: Annotated[int | None, typer.Option("--input-tokens", help="Number of input tokens.")] = None,
    output_tokens: Annotated[int | None, typer.Option("--output-tokens", help="Number of output tokens.")] = None,
    started: Annotated[str | None, typer.Option("--started", metavar="TIME", help="Start of the run; else now.")] = None,
    completed: Annotated[str | None, typer.Option("--completed", metavar="TIME", help="End of the run; else now.")] = None,
    error: Annotated[str | None, typer.Option("--error", help="Error of a failed run.")] = None,
    session: Annotated[
        str | None,
        typer.Option("--session", "-s", metavar="ID", help="The session it belongs to; else one of the project's own."),
    ] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:  # fmt: skip
    """Record that a run of an agent started, completed or failed.

    Examples:
      ctxmgr execution record parser_developer started --task T-8 --json
      ctxmgr execution record parser_developer completed --id 01a1ffcb --output-artifact parser_developer/csv.py
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
    """Return the agent and the status, each from its option or its argument."""
    # With --agent, a single argument can only be the status.
    if named is not None and state is None and status is None:
        agent, status = None, agent
    if (agent is None) == (named is None) or (status is None) == (state is None):
        raise InvalidInput("give the agent and the status exactly once", "e.g. parser_developer completed")
    return (named if agent is None else agent) or "", (state if status is None else status) or ""


@execution_app.command("list")
def list_executions(
    agent: Annotated[str | None, typer.Option("--agent", help="Only runs of this agent.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only runs on this task.")] = None,
    sprint: Annotated[str | None, typer.Option("--sprint", help="Only runs in this sprint.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="started, completed or failed.")] = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
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
