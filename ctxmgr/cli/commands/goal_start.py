"""``goal start``: begin or continue a goal; a plan is confirmed first."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.commands import goal_common as c
from ctxmgr.cli.commands.goal_common import Dir, goal_app
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, Shown, say
from ctxmgr.cli.requests import build, project_folder
from ctxmgr.cli.terminal import Printer, printer
from ctxmgr.cli.views import goal_answers as views
from ctxmgr.errors import InvalidInput
from ctxmgr.goals.plan import Plan, parse_plan, read_content
from ctxmgr.types.goal import GoalPlan, StartAnswer, StartRequest, TaskDraft
from ctxmgr.types.operations import ModelRequest


@goal_app.command("start")
def start(
    goal: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The goal; else what the plan calls itself, else the one there is.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="A plan, Markdown or YAML, with its tasks; '-' reads stdin.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept the plan without being asked.")] = False,
    plan_only: Annotated[bool, typer.Option("--plan", "--dry-run", help="Show the plan, and start nothing.")] = False,
    again: Annotated[bool, typer.Option("--replace", help="Give up an unfinished goal for this one.")] = False,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    by_model: Annotated[
        bool, typer.Option("--by-model", help="Let the configured model split the goal.", rich_help_panel="Model")
    ] = False,
    timeout: o.Timeout = None,
    dir_: Dir = None,
    *,
    how: Shown,
) -> None:
    """Start a goal, or continue it if it was started before.

    A plan is split by rules: its title is the goal, headings and lists are tasks, what is nested are subtasks, ticked boxes
    are done. It is shown, and counts when it is accepted: at the terminal, by --yes, or by a script that says --json. What a
    model proposes counts by a person's yes or --yes alone.

    Exit codes: 0 started or shown, 20 a plan is to be accepted first.

    Examples:
      ctxmgr goal start "Create the mathx package"
      ctxmgr goal start --from plan.md --plan
      ctxmgr goal start --from plan.md --yes
      ctxmgr goal start "Create the mathx package" --model qwen3 --base-url http://127.0.0.1:11434/v1
    """

    def work() -> Answer:
        project_folder(dir_)
        text, plan, notes, given = _read_goal(goal, source)
        proposal = _propose(text, plan, notes, given, ModelRequest(name=model, base_url=base_url, seconds=timeout), by_model)
        if proposal is None or not proposal.tasks:
            if plan_only:
                raise InvalidInput("there is no plan to show", "give one with --from, or let a --model split the goal")
            return _start(dir_, text, proposal, again)
        if plan_only or not _accepted(proposal, how, yes):
            return _show_proposal(proposal, waiting=not plan_only)
        return _start(dir_, proposal.goal, proposal, again)

    c.answer("start", how, work)


def _read_goal(goal: str | None, source: str | None) -> tuple[str | None, Plan, list[str], str | None]:
    """Return the goal, the rules' split of what was given, remarks on it, and the text of the plan."""
    text = None if goal is None else c.text(goal).strip()
    if source is not None:
        name = "stdin" if source == "-" else source
        data = sys.stdin.buffer.read(c.MAX_STDIN) if source == "-" else read_content(Path(source))
        plan = parse_plan(data, name)
        notes = list(plan.notes)
        if text is None and plan.goal is None:
            notes.append(f"{name} does not say what the goal is; give it: ctxmgr goal start TEXT --from {name}")
        text = text or plan.goal or f"Do what {os.path.basename(name)} lists"
        return text, plan, notes, data.decode("utf-8", "replace")
    if text is not None and "\n" in text:
        try:
            plan = parse_plan(text.encode("utf-8", "replace"), "goal")
        except InvalidInput:
            return " ".join(text.split()), Plan(None, ()), [], None
        first = text.splitlines()[0].strip(" #*-:")
        return plan.goal or first, plan, list(plan.notes), text
    return text, Plan(None, ()), [], None


def _propose(
    goal: str | None, plan: Plan, notes: list[str], given: str | None, wanted: ModelRequest, by_model: bool
) -> GoalPlan | None:
    """Return the plan that is to be accepted, None where there is none; a model is asked only where the call says so."""
    if goal is None:
        return None
    rules = GoalPlan(goal=goal, tasks=list(plan.tasks), by="rules", notes=notes)
    if wanted.name is None and not by_model:
        return rules if plan.tasks else None
    from ctxmgr.cli.model_proposals import decompose
    from ctxmgr.config import load_config

    found = decompose(rules, given, wanted, os.environ, load_config(Path.cwd()).model, say)
    if found.model is None:
        raise InvalidInput("no model is configured", "name one with --model, or set CTXMGR_MODEL")
    return found


def _accepted(proposal: GoalPlan, how: Shown, yes: bool) -> bool:
    """Whether the plan counts: by --yes, by a script for its own plan, or because a person says so now."""
    if yes:
        return True
    if how.format in ("json", "ndjson"):
        return proposal.by == "rules" and proposal.model is None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    out = printer()
    for line in _remarks(proposal):
        say(f"ctxmgr: {line}")
    views.show_plan(out, proposal)
    from typer import confirm

    return confirm("Start with this plan?", default=True)


def _show_proposal(proposal: GoalPlan, *, waiting: bool) -> Answer:
    found = StartAnswer(started=False, plan=proposal, state=None, message="not started" if waiting else None)
    asked = sys.stdin.isatty() and sys.stdout.isatty() and waiting

    def draw(out: Printer) -> None:
        if asked:
            out.line("not started")
        else:
            views.show_plan(out, proposal)

    remarks = _remarks(proposal)
    if waiting and not asked:
        remarks.append("nothing is started yet: accept the plan with --yes, or save it, edit it and give it with --from")
    code = Exit.NEEDS_HUMAN if waiting and not asked else Exit.OK
    return Answer(found.to_json(), draw, warnings=[] if asked else remarks, code=code)


def _remarks(proposal: GoalPlan) -> list[str]:
    remarks = list(proposal.notes)
    if proposal.failure is not None:
        remarks.append(f"the model had no answer that counts, so the rules split the goal: {proposal.failure}")
    return [str(line) for line in remarks]


def _start(named: str | None, goal: str | None, proposal: GoalPlan | None, again: bool) -> Answer:
    tasks = [] if proposal is None else proposal.tasks
    wanted = [
        {
            "description": task.title, "done": task.done,
            "subtasks": [{"description": part.title, "done": part.done} for part in task.subtasks],
        }
        for task in tasks
    ]  # fmt: skip
    with c.opened(named, create=True) as goals:
        new = [build(TaskDraft, **each) for each in wanted]
        request = StartRequest(goal=None) if goal is None else build(StartRequest, goal=goal, tasks=new, replace=again)
        done = goals.start(request)
    found = StartAnswer(started=True, plan=proposal, state=done.state, changed=done.changed, message=done.message)
    remarks = [] if proposal is None else _remarks(proposal)

    def draw(out: Printer) -> None:
        views.show_change(out, done)
        if out.terminal and not done.state.goal.tasks:
            out.hint("no steps yet: add them with 'ctxmgr goal add TEXT', or work on the goal itself")

    return Answer(
        found.to_json(), draw, warnings=[*remarks, *c.warnings(done.state)], next=["ctxmgr goal next", "ctxmgr goal brief"]
    )
