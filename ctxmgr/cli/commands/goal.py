"""``goal``: the whole group; its commands stand in the modules beside this one, of which one alone is loaded to run."""

from __future__ import annotations

from ctxmgr.cli.commands import goal_checks, goal_start, goal_steps
from ctxmgr.cli.commands.goal_common import goal_app

__all__ = ["goal_app", "goal_checks", "goal_start", "goal_steps"]

_ORDER = (
    "start", "next", "record", "done", "fail", "brief", "tree", "resume", "recover", "say", "unblock", "block", "add", "split",
    "move", "drop", "compare",
)  # fmt: skip
"""The order of the commands in the help: what an agent's loop needs first. One that is not listed comes last."""

_PLACES = {name: place for place, name in enumerate(_ORDER)}
goal_app.registered_commands.sort(key=lambda command: _PLACES.get(command.name or "", len(_PLACES)))
