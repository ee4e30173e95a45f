"""``goal``: start a goal, check files, compare, recover, and list the commands of the whole group.

`goal_steps` has the commands that agents call at every step. It is imported alone for them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.commands import goal_steps as steps  # importing it also registers its commands
from ctxmgr.cli.commands.goal_steps import AllowCommands, Dir, goal_app, probe_app
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, OutputOptions, say
from ctxmgr.cli.requests import build, project_folder, read_argument
from ctxmgr.cli.terminal import Printer, printer
from ctxmgr.cli.views import goal as views
from ctxmgr.errors import InvalidInput
from ctxmgr.goals import probes as checks
from ctxmgr.goals.brief import compare as compared
from ctxmgr.goals.plan import Plan, parse_plan, read_content
from ctxmgr.goals.service import Goals
from ctxmgr.goals.state_files import HISTORY
from ctxmgr.types.goal import (
    DEFAULT_CHARS,
    BriefRequest,
    GoalPlan,
    GoalState,
    Probe,
    ProbeView,
    RecoverAnswer,
    StartAnswer,
    StartRequest,
    TaskDraft,
)
from ctxmgr.types.operations import ModelRequest, RecoverRequest
from ctxmgr.types.route import Continuation


@goal_app.command("start")
def start(
    goal: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The goal; else the plan's title, else the present goal.")
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Plan with the tasks, Markdown or YAML; '-' reads stdin.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept the plan without asking.")] = False,
    plan_only: Annotated[bool, typer.Option("--plan", "--dry-run", help="Show the plan; start nothing.")] = False,
    again: Annotated[bool, typer.Option("--replace", help="Replace an unfinished goal.")] = False,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    by_model: Annotated[bool, typer.Option("--by-model", help="Have the configured model split the goal.")] = False,
    timeout: o.Timeout = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Start a goal, or continue it if it was started before.

    A plan is split by rules: its title is the goal, headings and lists are tasks, nested items are subtasks, ticked boxes are
    done. It is shown first and must be accepted: at the terminal, with --yes, or by a script with --json. A model's proposal
    is accepted only by a person or with --yes.

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
        if plan_only or not _is_accepted(proposal, how, yes):
            return _show_proposal(proposal, waiting=not plan_only)
        return _start(dir_, proposal.goal, proposal, again)

    steps.answer_goal("start", how, work)


def _read_goal(goal: str | None, source: str | None) -> tuple[str | None, Plan, list[str], str | None]:
    """Return (goal, plan by rules, remarks on the plan, text of the plan) of the given goal or file."""
    text = None if goal is None else read_argument(goal, steps.MAX_STDIN).strip()
    if source is not None:
        name = "stdin" if source == "-" else source
        data = sys.stdin.buffer.read(steps.MAX_STDIN) if source == "-" else read_content(Path(source))
        plan = parse_plan(data, name)
        notes = list(plan.notes)
        if text is None and plan.goal is None:
            notes.append(f"{name} does not say what the goal is; give it: ctxmgr goal start TEXT --from {name}")
        text = text or plan.goal or f"Do what {os.path.basename(name)} lists"
        return text, plan, notes, data.decode("utf-8", "replace")
    # A goal of several lines may be a pasted plan. If it is none, it becomes one sentence.
    if text is not None and "\n" in text:
        try:
            plan = parse_plan(text.encode("utf-8", "replace"), "goal")
        except InvalidInput:
            return " ".join(text.split()), Plan(None, ()), [], None
        # The first line may be a heading, an item, or end in a colon. Only its words are the goal.
        first = text.splitlines()[0].strip(" #*-:")
        return plan.goal or first, plan, list(plan.notes), text
    return text, Plan(None, ()), [], None


def _propose(
    goal: str | None, plan: Plan, notes: list[str], given: str | None, wanted: ModelRequest, by_model: bool
) -> GoalPlan | None:
    """Return the plan to accept, or None if there is none. Ask a model only if the options say so."""
    if goal is None:
        return None
    # Made in any case: this is the plan if the model has no usable answer.
    rules = GoalPlan(goal=goal, tasks=list(plan.tasks), by="rules", notes=notes)
    if wanted.name is None and not by_model:
        return rules if plan.tasks else None
    from ctxmgr.cli.model_proposals import decompose
    from ctxmgr.config import load_config

    found = decompose(rules, given, wanted, os.environ, load_config(Path.cwd()).model, say)
    if found.model is None:
        raise InvalidInput("no model is configured", "name one with --model, or set CTXMGR_MODEL")
    return found


def _is_accepted(proposal: GoalPlan, how: OutputOptions, yes: bool) -> bool:
    """Whether the plan is accepted: by --yes, by a script that gave it itself, or by a person at the prompt."""
    if yes:
        return True
    if how.format in ("json", "ndjson"):
        # A script knows the plan that it gave, but nobody has seen the proposal of a model.
        return proposal.by == "rules" and proposal.model is None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    out = printer()
    for line in _remarks(proposal):
        say(f"ctxmgr: {line}")
    views.show_plan(out, proposal)
    from typer import confirm  # only here, because loading typer takes longer than the rest

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
    # A script must see that nothing is started, because otherwise it would continue with a goal that does not exist.
    code = Exit.NEEDS_HUMAN if waiting and not asked else Exit.OK
    return Answer(found.to_json(), draw, warnings=[] if asked else remarks, code=code)


def _remarks(proposal: GoalPlan) -> list[str]:
    remarks = list(proposal.notes)
    if proposal.failure is not None:
        remarks.append(f"the model had no answer that counts, so the rules split the goal: {proposal.failure}")
    return remarks


def _start(named: str | None, goal: str | None, proposal: GoalPlan | None, again: bool) -> Answer:
    tasks = [] if proposal is None else proposal.tasks
    wanted = [
        {
            "description": task.title, "done": task.done,
            "subtasks": [{"description": part.title, "done": part.done} for part in task.subtasks],
        }
        for task in tasks
    ]  # fmt: skip
    with steps.open_goals(named, create=True) as goals:
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
        found.to_json(),
        draw,
        warnings=[*remarks, *done.state.warnings],
        next=["ctxmgr goal next", "ctxmgr goal brief"],
    )


@probe_app.command("add")
def probe_add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the probe, one word, e.g. pkg_exists.")],
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- PROGRAM ARG...]", help="Command to run, without a shell.", show_default=False),
    ] = None,
    exists: Annotated[str | None, typer.Option("--exists", metavar="PATH", help="Path that must exist.")] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="PATH", help="File in which --contains looks.")] = None,
    text: Annotated[str | None, typer.Option("--contains", metavar="TEXT", help="Text that the file must contain.")] = None,
    code: Annotated[int, typer.Option("--code", help="Expected exit code of the command.")] = 0,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Add a named check: a path exists, a file contains a text, a command ends with an exit code.

    Commands run only where you allow it: with --allow-commands, CTXMGR_ALLOW_COMMANDS=1, 'allow_commands = true' under
    [goal] in your own config.toml, or in the project's file when you trust it ('ctxmgr trust').

    Examples:
      ctxmgr goal probe add pkg_exists --exists mathx/__init__.py
      ctxmgr goal probe add has_add --file mathx/__init__.py --contains "def add("
      ctxmgr goal probe add tests_pass -- python -m pytest -q
    """

    def work() -> Answer:
        if (exists is not None) + (file is not None or text is not None) + bool(what) != 1:
            raise InvalidInput(
                "a probe looks for one thing", "--exists PATH, --file PATH --contains TEXT, or -- PROGRAM ARG..."
            )
        kind = "command" if what else "fileExists" if exists is not None else "fileContains"
        probe = build(Probe, name=name, kind=kind, path=exists or file, text=text, argv=what or [], code=code)
        checks.require_valid(probe)
        with steps.open_goals(dir_) as goals:
            done = steps.change_answer(goals.add_probe(probe))
        done.draw = lambda out: views.show_probes(out, [ProbeView(**dict(probe))])
        done.next = ["ctxmgr goal probe check"]
        return done

    steps.answer_goal("probe add", how, work)


@probe_app.command("list")
def probe_list(
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """List the probes, and what they last saw.

    Examples:
      ctxmgr goal probe list
    """

    def work() -> Answer:
        with steps.open_goals(dir_) as goals:
            state = goals.state()
        return _probes(state)

    steps.answer_goal("probe list", how, work)


@probe_app.command("check")
def probe_check(
    allow_commands: AllowCommands = False,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Ask all probes now; what they see stands in the brief from then on.

    Examples:
      ctxmgr goal probe check
      ctxmgr goal probe check --allow-commands --json
    """

    def work() -> Answer:
        with steps.open_goals(dir_, commands=steps.may_run(allow_commands, dir_)) as goals:
            state = goals.check_probes().state
        steps.report_untrusted_commands(state)
        return _probes(state)

    steps.answer_goal("probe check", how, work)


def _probes(state: GoalState) -> Answer:
    """Return the probes of a goal with their latest results, one row each."""
    seen = {result.name: result for result in state.probe_state}
    rows = [
        ProbeView(**dict(probe), ok=seen[probe.name].ok, detail=seen[probe.name].detail)
        if probe.name in seen
        else ProbeView(**dict(probe))
        for probe in state.probes
    ]
    return Answer(
        [row.to_json() for row in rows], lambda out: views.show_probes(out, rows), "ok" if rows else "empty",
        warnings=state.warnings,
    )  # fmt: skip


@goal_app.command("compare")
def compare(
    max_chars: Annotated[int, typer.Option("--max-chars", metavar="N", help="Characters of the brief.")] = DEFAULT_CHARS,
    counter: Annotated[
        str, typer.Option("--counter", metavar="NAME", help="estimate; or o200k_base, cl100k_base with the tokens extra.")
    ] = "estimate",
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Compare the brief with the whole history and with its last ten messages: how much shorter, and what it still holds.

    Examples:
      ctxmgr goal compare
      ctxmgr goal compare --max-chars 600 --json
    """

    def work() -> Answer:
        from ctxmgr.text.tokens import counter_by_name

        chosen = counter_by_name(counter)
        with steps.open_goals(dir_) as goals:
            state, text = goals.state(), goals.brief(build(BriefRequest, max_chars=max_chars)).text
            found = compared(goals.records(), state, text, chosen.count, chosen.name)
        return Answer(found.to_json(), lambda out: views.show_comparison(out, found), warnings=state.warnings)

    steps.answer_goal("compare", how, work)


@goal_app.command("recover")
def recover(
    plan: o.Plan = False,
    force: Annotated[bool, typer.Option("--force", help="Give a continuation though nothing is wrong.")] = False,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    llm_mode: o.LlmMode = None,
    no_llm: o.NoLlm = False,
    timeout: o.Timeout = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Get a stuck goal going again: one continuation of its own history, which is applied to the goal at once.

    Blocks of the guard are lifted. A session without a goal is recovered by 'ctxmgr recover'.

    Exit codes: 0 one continuation, 20 a person is needed, 21 nothing is wrong.

    Examples:
      ctxmgr goal recover
      ctxmgr goal recover --plan
    """

    def work() -> Answer:
        asked = build(ModelRequest, name=model, base_url=base_url, mode=llm_mode, off=no_llm, seconds=timeout)
        with steps.open_goals(dir_) as goals:
            before = goals.state()
            # The detectors do not report actions that the guard blocked. Without ``force``, the
            # recovery would find nothing wrong.
            ended = before.current is None and before.goal.status != "done"
            stuck = before.goal.status == "blocked" or bool(before.blocked_actions) or ended
            request = build(
                RecoverRequest, session=before.goal.session, force=force or stuck, plan=plan, goal=goals.source(), model=asked
            )
            continuation = recover_on_copy(goals, request)
            after = None if plan else goals.apply(continuation.to_json()).state
        found = RecoverAnswer(continuation=continuation, state=after)

        return Answer(
            found.to_json(), lambda out: views.show_recovery(out, found), warnings=(after or before).warnings,
            next=[] if plan else ["ctxmgr goal brief"],
        )  # fmt: skip

    steps.answer_goal("recover", how, work)


def recover_on_copy(goals: Goals, request: RecoverRequest) -> Continuation:
    """Return a continuation for the goal's own history, computed on a copy, because only its owner writes the history.

    Raises:
        CtxmgrError: as `Workspace.recover`.
    """
    from ctxmgr.workspace import Workspace

    with (
        tempfile.TemporaryDirectory(prefix="ctxmgr-goal-") as folder,
        Workspace.open(os.path.join(folder, "history.db"), create=True, folder=Path(goals.root)) as workspace,
    ):
        workspace.import_logs([Path(goals.folder) / HISTORY], home=Path(folder))
        found = workspace.recover(request, say).continuation
    # The notes and the snapshot stay in the copy, so nothing may refer to them.
    return found.model_copy(update={"snapshot": None, "notes": []})


_ORDER = (
    "start", "next", "record", "done", "fail", "brief", "tree", "resume", "recover", "say", "unblock", "block", "add", "split",
    "move", "drop", "compare",
)  # fmt: skip
"""Order of the commands in the help, by the need of an agent's loop. Commands that are not listed come last."""

_PLACES = {name: place for place, name in enumerate(_ORDER)}
goal_app.registered_commands.sort(key=lambda command: _PLACES.get(command.name or "", len(_PLACES)))
