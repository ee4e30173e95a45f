"""Shared parts of the ``goal`` commands: the group, the folder, texts from stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

from ctxmgr.cli import declarations as typer
from ctxmgr.cli.output import Answer, OutputOptions, answer_without_store, say
from ctxmgr.cli.requests import project_folder
from ctxmgr.cli.views import goal as views
from ctxmgr.errors import InvalidInput
from ctxmgr.goals.service import Goals
from ctxmgr.types.goal import GoalAnswer, GoalState, TaskDraft

_HELP = """Keep an agent's plan: goal, tasks, subtasks and every action, so that it survives a crash.

The state is in .agent_context/ of the current folder, or of the one named with --dir.

\b
Examples:
  ctxmgr goal start "Create the mathx package"
  ctxmgr goal next
  ctxmgr goal brief
  ctxmgr goal tree
"""

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
    """Whether probes may run commands, or the fingerprints of those that may.

    By the option, else the environment, else the configuration that holds in the project. A project's own file allows
    only the commands that the user trusted together with it.

    Raises:
        InvalidInput: the configuration can't be used.
    """
    variable = os.environ.get(COMMANDS_VARIABLE, "")
    if flag or variable:
        return flag or variable != "0"
    from pathlib import Path

    from ctxmgr.config import load_config

    config = load_config(Path(project_folder(named)))
    for line in config.warnings("goal.allow_commands"):
        say(f"ctxmgr: {line}")
    if config.allow_commands and config.trusted_commands is not None:
        return config.trusted_commands
    return config.allow_commands


def tell_untrusted(state: GoalState) -> None:
    """Name on stderr the commands that were not run, since they came after the project was trusted."""
    from ctxmgr.goals.probes import NOT_TRUSTED

    if names := [seen.name for seen in state.probe_state if seen.detail == NOT_TRUSTED]:
        say(f"ctxmgr: not run: {', '.join(names)}: {NOT_TRUSTED}")


def opened(named: str | None, *, create: bool = False, commands: bool | frozenset[str] = False) -> Goals:
    """Return the goal of a project for one command.

    Raises:
        InvalidInput: the project is no folder.
        NotFound: it has no goal, and ``create`` is false.
    """
    return Goals.open(project_folder(named), create=create, commands=commands)


def answer(command: str, how: OutputOptions, work: Callable[[], Answer]) -> None:
    """Do the work of a command of ``goal`` and show what it answers."""
    answer_without_store(f"goal {command}", how, work)


def change(command: str, how: OutputOptions, named: str | None, do: Callable[[Goals], GoalAnswer]) -> None:
    """Do what changes the goal of a project, and show it as it is then."""

    def work() -> Answer:
        with opened(named) as goals:
            return changed(do(goals))

    answer(command, how, work)


def changed(found: GoalAnswer) -> Answer:
    """Return the answer of a command that changed the goal."""
    return Answer(found.to_json(), lambda out: views.show_change(out, found), warnings=warnings(found.state))


def warnings(state: GoalState) -> list[str]:
    """Return what a person should hear of a goal's files."""
    return [str(line) for line in state.warnings]


def text(given: str) -> str:
    """Return an argument, or stdin where it is ``-``.

    Raises:
        InvalidInput: stdin is too long.
    """
    if given != "-":
        return given
    read = sys.stdin.read(MAX_STDIN + 1)
    if len(read) > MAX_STDIN:
        raise InvalidInput(f"stdin has more than {MAX_STDIN:,} characters", "give a shorter text")
    return read


def drafts(texts: list[str], subtasks: list[str] | None = None) -> list[TaskDraft]:
    """Return descriptions as tasks to be added; the subtasks belong to the last one.

    Raises:
        InvalidInput: one is empty or too long.
    """
    from ctxmgr.cli.requests import build

    made: list[TaskDraft] = []
    for place, each in enumerate(texts):
        inner = [{"description": part} for part in subtasks or []] if place + 1 == len(texts) else []
        made.append(build(TaskDraft, description=" ".join(each.split()), subtasks=inner))
    return made
