"""``goal``: the commands that agents call at every step, the changes of the tree, and helpers for the whole group.

This module loads nothing that its commands do not need, because agents call them all the time. `goal` has the others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import output
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, OutputOptions, answer_without_store
from ctxmgr.cli.requests import build, project_folder, read_argument
from ctxmgr.cli.views import goal as views
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.goals.service import Goals
from ctxmgr.types.goal import (
    DEFAULT_CHARS,
    ActionRequest,
    AddRequest,
    BlockRequest,
    BriefRequest,
    DropRequest,
    EndRequest,
    GoalAnswer,
    GoalState,
    MessageRequest,
    NextRequest,
    RecordRequest,
    ReorderRequest,
    ResumeRequest,
    SplitRequest,
    TaskDraft,
    UnblockRequest,
)

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer

_HELP = """Keep an agent's plan: goal, tasks, subtasks and every action, so that it survives a crash.

The state is in .agent_context/ of the current folder, or of the one named with --dir.

\b
Examples:
  ctxmgr goal start "Create the mathx package"
  ctxmgr goal next
  ctxmgr goal brief
  ctxmgr goal tree
"""

# Far more than any text or plan that a person writes, but small enough to hold in memory.
MAX_STDIN = 8 * 1024 * 1024

goal_app = typer.Typer(no_args_is_help=True, help=_HELP)
probe_app = typer.Typer(no_args_is_help=True, help="Named checks of files on disk, or by commands without a shell.")
goal_app.add_typer(probe_app, name="probe")

Dir = Annotated[
    str | None,
    typer.Option("--dir", metavar="FOLDER", help="Folder of the project; its .agent_context/ holds the state."),
]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Reason, which the tree and the brief show.")]
AllowCommands = Annotated[
    bool,
    typer.Option("--allow-commands", help="Allow probes to run commands; else CTXMGR_ALLOW_COMMANDS=1, else as configured."),
]
COMMANDS_VARIABLE = "CTXMGR_ALLOW_COMMANDS"


def may_run(flag: bool, named: str | None) -> bool | frozenset[str]:
    """Return whether probes may run commands, or the fingerprints of the commands that may run.

    The option decides, else the environment, else the configuration for the project. A project's own file allows only the
    commands that the user trusted together with it.

    Raises:
        InvalidInput: the configuration is unusable.
    """
    variable = os.environ.get(COMMANDS_VARIABLE, "")
    if flag or variable:
        # The option also overrides ``CTXMGR_ALLOW_COMMANDS=0``.
        return flag or variable != "0"
    from pathlib import Path

    from ctxmgr.config import load_config

    config = load_config(Path(project_folder(named)))
    for line in config.warnings("goal.allow_commands"):
        output.say(f"ctxmgr: {line}")
    if config.allow_commands and config.trusted_commands is not None:
        return config.trusted_commands
    return config.allow_commands


def report_untrusted_commands(state: GoalState) -> None:
    """Name on stderr the commands that were not run because they were added after the project was trusted."""
    from ctxmgr.goals.probes import NOT_TRUSTED

    if names := [seen.name for seen in state.probe_state if seen.detail == NOT_TRUSTED]:
        output.say(f"ctxmgr: not run: {', '.join(names)}: {NOT_TRUSTED}")


def open_goals(named: str | None, *, create: bool = False, commands: bool | frozenset[str] = False) -> Goals:
    """Return the goals of a project, opened for one command.

    Raises:
        InvalidInput: the folder does not exist.
        NotFound: the project has no goal, and ``create`` is false.
    """
    return Goals.open(project_folder(named), create=create, commands=commands)


def answer_goal(command: str, how: OutputOptions, work: Callable[[], Answer]) -> None:
    """Do the work of a ``goal`` command and show its answer."""
    answer_without_store(f"goal {command}", how, work)


def answer_change(command: str, how: OutputOptions, named: str | None, do: Callable[[Goals], GoalAnswer]) -> None:
    """Change the goal of a project, and show its new state."""

    def work() -> Answer:
        with open_goals(named) as goals:
            return change_answer(do(goals))

    answer_goal(command, how, work)


def change_answer(found: GoalAnswer) -> Answer:
    """Return the answer of a command that has changed the goal."""
    return Answer(found.to_json(), lambda out: views.show_change(out, found), warnings=found.state.warnings)


def task_drafts(texts: list[str], subtasks: list[str] | None = None) -> list[TaskDraft]:
    """Return descriptions as tasks to add. The subtasks belong to the last task.

    Raises:
        InvalidInput: a description is empty or too long.
    """
    inner = [{"description": part} for part in subtasks or []]
    last = len(texts) - 1
    return [build(TaskDraft, description=each, subtasks=inner if place == last else []) for place, each in enumerate(texts)]


_WAYS_OUT = ["ctxmgr goal recover", "ctxmgr goal unblock"]


@goal_app.command("record")
def record(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The action: a tool, a command.")],
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="Arguments of the action; '-' reads stdin.")
    ] = None,
    result: Annotated[
        str | None,
        typer.Option("--result", metavar="TEXT", help="success, error, 'error: MESSAGE', or the output; '-' reads stdin."),
    ] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Status: ok, error, denied or interrupted.")
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Only check whether the action is allowed; record nothing.")] = False,
    begin: Annotated[
        bool, typer.Option("--begin", help="Record the start of the action; its result follows with --entry.")
    ] = False,
    entry: Annotated[str | None, typer.Option("--entry", metavar="ID", help="Id of the started action that this ends.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="The agent that acts.")] = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Record an action of the current step; one that goes in circles is refused.

    Exit codes: 0 allowed, 10 refused.

    Examples:
      ctxmgr goal record write_file --args '{"path": "a.py"}' --result success
      ctxmgr goal record run_tests --args '{}' --result "error: 2 failed" --json
      ctxmgr goal record deploy --args '{"to": "prod"}' --ask && ./deploy.sh
    """

    def work() -> Answer:
        # Stdin can be read only once.
        if "-" == args == result:
            raise InvalidInput("stdin can't be both the arguments and the result", "give one of them as it is")
        asked: dict[str, Any] = {"action": name, "args": _json(args), "agent": agent}
        if ask or begin:
            if result is not None or status is not None or entry is not None or (ask and begin):
                raise InvalidInput("--ask and --begin stand alone: the result comes later", "leave --result and --status out")
        elif result is None and status is None:
            raise InvalidInput(
                "how the action ended is missing", "--result success, --result error, or --begin for one under way"
            )
        with open_goals(dir_) as goals:
            if ask:
                found = goals.check(build(ActionRequest, **asked))
            elif begin:
                found = goals.begin(build(ActionRequest, **asked))
            else:
                outcome = None if result is None else read_argument(result, MAX_STDIN)
                found = goals.record(build(RecordRequest, **asked, result=outcome, status=status, entry=entry))
        # A refusal is an answer, not an error. A shell tells by the exit code: `goal record ... --ask && ./deploy.sh`.
        return Answer(
            found.to_json(), lambda out: views.show_record(out, name, found, begun=begin),
            warnings=[*goals.warnings, *([found.hint] if found.in_flight and found.hint else [])],
            code=Exit.OK if found.allowed else Exit.LOOP, next=[] if found.allowed else _WAYS_OUT,
        )  # fmt: skip

    answer_goal("record", how, work)


def _json(text: str | None) -> Any:
    """Return the arguments of an action from JSON.

    Raises:
        InvalidInput: the text is not JSON.
    """
    if text is None:
        return None
    given = read_argument(text, MAX_STDIN)

    # Python also reads NaN and Infinity, which are not JSON and which the log refuses.
    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        return json.loads(given, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"--args is no JSON: {error}", """e.g. --args '{"path": "a.py"}'""") from None


@goal_app.command("brief")
def brief(
    max_chars: Annotated[
        int, typer.Option("--max-chars", metavar="N", help="Maximum length of the brief, in characters.")
    ] = DEFAULT_CHARS,
    moment: Annotated[
        str | None,
        typer.Option("--moment", metavar="WHEN", help="start, continue, resume or compaction; else by the history."),
    ] = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Print the text for an agent's prompt: what it needs to know for its next step.

    Examples:
      ctxmgr goal brief
      ctxmgr goal brief --max-chars 600 --moment compaction
      ctxmgr goal brief --json --jq .data.text
    """

    def work() -> Answer:
        with open_goals(dir_) as goals:
            found = goals.brief(build(BriefRequest, max_chars=max_chars, moment=moment))

        def draw(out: Printer) -> None:
            out.block(found.text)

        return Answer(found.to_json(), draw, warnings=goals.warnings)

    answer_goal("brief", how, work)


@goal_app.command("tree")
def tree(
    complete: Annotated[bool, typer.Option("--all", help="Show every step of a long tree.")] = False,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Draw the goal with its tasks and subtasks: what is done, which step is current, what is blocked and why.

    Examples:
      ctxmgr goal tree
      ctxmgr goal tree --all
      ctxmgr goal tree --json --jq .data.goal.percent
    """

    def work() -> Answer:
        with open_goals(dir_) as goals:
            state = goals.state()
        return Answer(state.to_json(), lambda out: views.show_tree(out, state, complete=complete), warnings=state.warnings)

    answer_goal("tree", how, work)


@goal_app.command("resume")
def resume(
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take over from a live owner too; its writes are refused from then on.")
    ] = False,
    allow_commands: AllowCommands = False,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Go on after a crash or a hand-over: the current step, the state of the disk, and the action that was in flight.

    Examples:
      ctxmgr goal resume
      ctxmgr goal resume --take-over --json
    """

    def work() -> Answer:
        with open_goals(dir_, commands=may_run(allow_commands, dir_)) as goals:
            found = goals.resume(build(ResumeRequest, take_over=take_over))
        report_untrusted_commands(found.state)
        return Answer(
            found.to_json(),
            lambda out: views.show_resume(out, found),
            warnings=found.state.warnings,
            next=["ctxmgr goal brief"],
        )

    answer_goal("resume", how, work)


Step = Annotated[str, typer.Argument(metavar="ID", help="A task or subtask, as t2 or t2.1; 'goal tree' shows them.")]
Before = Annotated[str | None, typer.Option("--before", metavar="ID", help="Place it before this one.")]
After = Annotated[str | None, typer.Option("--after", metavar="ID", help="Place it after this one.")]


@goal_app.command("add")
def add(
    description: Annotated[
        list[str], typer.Argument(metavar="TEXT...", help="Description of a task, or with --to of a subtask; repeatable.")
    ],
    to: Annotated[str | None, typer.Option("--to", metavar="ID", help="Add subtasks to this task.")] = None,
    subtask: Annotated[
        list[str] | None, typer.Option("--subtask", metavar="TEXT", help="A subtask of the task added; repeatable.")
    ] = None,
    before: Before = None,
    after: After = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Add tasks, or subtasks of a task, at the end or at the place that --before or --after gives.

    Examples:
      ctxmgr goal add "Write the README" --subtask "say what it is" --subtask "show how to install it"
      ctxmgr goal add "handle negative numbers" --to t2
      ctxmgr goal add "fix the import first" --before t2.1
    """

    def work() -> Answer:
        with open_goals(dir_) as goals:
            parent, at = to, None
            if before is not None or after is not None:
                parent, at = _place(goals.state(), before, after, to)
            # The tree has two levels below the goal, so a subtask has no subtasks.
            if parent is not None and subtask:
                raise InvalidInput("--subtask belongs to a new task, not to a subtask", "give the texts themselves with --to")
            return change_answer(goals.add(build(AddRequest, tasks=task_drafts(description, subtask), parent=parent, at=at)))

    answer_goal("add", how, work)


@goal_app.command("split")
def split(
    step: Step,
    into: Annotated[list[str], typer.Argument(metavar="TEXT...", help="Description of a step that replaces it; repeatable.")],
    reason: Reason = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Replace a task or subtask by several; what was done below it stays done.

    Examples:
      ctxmgr goal split t2.1 "parse the header" "parse the body" --reason "too big for one attempt"
    """
    answer_change(
        "split", how, dir_, lambda goals: goals.split(build(SplitRequest, id=step, into=task_drafts(into), reason=reason))
    )


@goal_app.command("move")
def move(step: Step, before: Before = None, after: After = None, dir_: Dir = None, *, how: OutputOptions) -> None:
    """Move a task among the tasks, or a subtask within its task.

    Examples:
      ctxmgr goal move t3 --before t1
      ctxmgr goal move t2.4 --after t2.1
    """

    def work() -> Answer:
        with open_goals(dir_) as goals:
            order, parent = _order(goals.state(), step, before, after)
            return change_answer(goals.reorder(build(ReorderRequest, order=order, parent=parent)))

    answer_goal("move", how, work)


@goal_app.command("drop")
def drop(step: Step, reason: Reason = None, dir_: Dir = None, *, how: OutputOptions) -> None:
    """Give up a task or subtask; it stays in the tree.

    Examples:
      ctxmgr goal drop t4 --reason "not needed after all"
    """
    answer_change("drop", how, dir_, lambda goals: goals.drop(build(DropRequest, id=step, reason=reason)))


@goal_app.command("next")
def next_(
    to: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The step to go to; else the next that can be worked on.")
    ] = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Go to the next step that can be worked on, or to a named one.

    Examples:
      ctxmgr goal next
      ctxmgr goal next t2.3
    """
    answer_change("next", how, dir_, lambda goals: goals.next(build(NextRequest, to=to)))


@goal_app.command("done")
def done(
    step: Annotated[str | None, typer.Argument(metavar="[ID]", help="The step; else the current one.")] = None,
    reason: Reason = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """End the attempt at the current step: it is done. A step that is not begun is ended only by its name.

    Examples:
      ctxmgr goal done && ctxmgr goal next
      ctxmgr goal done t2.1 --reason "tests are green"
    """

    def work() -> Answer:
        with open_goals(dir_) as goals:
            found = change_answer(goals.done(build(EndRequest, id=step, reason=reason)))
            found.next = ["ctxmgr goal next"]
            return found

    answer_goal("done", how, work)


@goal_app.command("fail")
def fail(
    step: Annotated[str | None, typer.Argument(metavar="[ID]", help="The step; else the current one.")] = None,
    reason: Reason = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """End the attempt at the current step: it failed. The second failure blocks the step and escalates to its task.

    Examples:
      ctxmgr goal fail --reason "the import is circular"
    """

    def work() -> Answer:
        with open_goals(dir_) as goals:
            failed = goals.fail(build(EndRequest, id=step, reason=reason))
            found = change_answer(failed)
            # If no step is left to work on, suggesting another attempt would not help.
            stuck = failed.state.current is None or failed.state.goal.status == "blocked"
            found.next = ["ctxmgr goal recover"] if stuck else ["ctxmgr goal next"]
            return found

    answer_goal("fail", how, work)


@goal_app.command("block")
def block(
    step: Step,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason why it can't be worked on.")],
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Block a task or subtask by hand; only 'goal unblock' lifts that.

    Examples:
      ctxmgr goal block t3 --reason "waiting for the key"
    """
    answer_change("block", how, dir_, lambda goals: goals.block(build(BlockRequest, id=step, reason=reason)))


@goal_app.command("unblock")
def unblock(
    target: Annotated[
        str | None, typer.Argument(metavar="[WHAT]", help="Id of a step, or key or name of an action; else everything.")
    ] = None,
    reason: Reason = None,
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Lift the block of a step or an action; without a name, all blocks.

    Examples:
      ctxmgr goal unblock
      ctxmgr goal unblock t3
      ctxmgr goal unblock run_tests --reason "the server is up again"
    """
    answer_change("unblock", how, dir_, lambda goals: goals.unblock(build(UnblockRequest, target=target, reason=reason)))


@goal_app.command("say")
def say(
    message: Annotated[str, typer.Argument(metavar="TEXT", help="Words of the person; '-' reads stdin.")],
    dir_: Dir = None,
    *,
    how: OutputOptions,
) -> None:
    """Record what a person says: it lifts what the guard blocked, and loops are counted from the beginning.

    Examples:
      ctxmgr goal say "use the other endpoint, the first one is gone"
    """
    answer_change("say", how, dir_, lambda goals: goals.message(build(MessageRequest, text=read_argument(message, MAX_STDIN))))


def _siblings(state: GoalState, step: str) -> tuple[list[str], str | None]:
    """Return the ids of a step and its siblings, and the id of their parent task (None: the goal).

    Raises:
        NotFound: the step does not exist.
    """
    tasks = [task.id for task in state.goal.tasks]
    if step in tasks:
        return tasks, None
    for task in state.goal.tasks:
        parts = [part.id for part in task.subtasks]
        if step in parts:
            return parts, task.id
    raise NotFound(f"{step[:80]!r} is no task or subtask of the goal", "'ctxmgr goal tree' shows their ids")


def _place(state: GoalState, before: str | None, after: str | None, to: str | None) -> tuple[str | None, int]:
    """Return the parent and the position for steps to insert.

    Raises:
        InvalidInput: not exactly one place is named, or it is not below the named task.
        NotFound: a named step does not exist.
    """
    step = before or after
    if step is None or (before is not None and after is not None):
        raise InvalidInput("name one place", "--before ID or --after ID")
    order, parent = _siblings(state, step)
    if to is not None and to != parent:
        raise InvalidInput(f"{step!r} is not below {to!r}", "leave --to out: the place says where it belongs")
    return parent, order.index(step) + (after is not None)


def _order(state: GoalState, step: str, before: str | None, after: str | None) -> tuple[list[str], str | None]:
    own, own_parent = _siblings(state, step)
    parent, _ = _place(state, before, after, None)
    if parent != own_parent:
        raise InvalidInput(
            f"{step!r} and {before or after!r} are not beside each other", "a step moves within its task; add it anew elsewhere"
        )
    order = [name for name in own if name != step]
    target = before or after or ""
    # A step that is moved before or after itself stays in its place.
    if target == step:
        return own, parent
    order.insert(order.index(target) + (after is not None), step)
    return order, parent
