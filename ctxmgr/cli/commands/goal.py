"""``goal``: the whole group; its commands stand in the modules beside this one, of which one alone is loaded to run."""

from __future__ import annotations

from ctxmgr.cli.commands import goal_checks, goal_start, goal_steps, goal_work
from ctxmgr.cli.commands.goal_common import goal_app

__all__ = ["goal_app", "goal_checks", "goal_start", "goal_steps", "goal_work"]

_ORDER = (
    "start", "next", "record", "done", "fail", "brief", "tree", "resume", "recover", "say", "unblock", "block", "add", "split",
    "move", "drop", "compare",
)  # fmt: skip
"""The order in which the help lists the commands: what a loop needs first."""

goal_app.registered_commands.sort(key=lambda command: _ORDER.index(command.name or ""))
