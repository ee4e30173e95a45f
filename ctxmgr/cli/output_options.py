"""The options ``--json``, ``--format``, ``--fields`` and ``--jq`` of every command.

A command says that it does by a parameter ``how: Shown`` that only a keyword can name, in the place of the four options.
"""

from __future__ import annotations

import inspect
from functools import wraps
from typing import Any

from ctxmgr.cli import options as o
from ctxmgr.cli.output import shown

_HOW = "how"
_OPTIONS = {"json_": (o.Json, False), "format_": (o.Format, None), "fields": (o.Fields, None), "jq": (o.Jq, None)}


def asking_how(command: Any) -> Any:
    """Return the command as typer is to know it, with the options in the place of what they come to."""
    if command is None:
        return None
    signature = inspect.signature(command, eval_str=True)
    if _HOW not in signature.parameters:
        return command

    @wraps(command)
    def run(*, json_: bool, format_: str | None, fields: str | None, jq: str | None, **rest: Any) -> None:
        command(**rest, how=shown(json_, format_, fields, jq))

    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _OPTIONS.items()
    ]
    kept = [parameter for name, parameter in signature.parameters.items() if name != _HOW]
    changed: Any = run
    changed.__signature__ = signature.replace(parameters=[*kept, *own])
    changed.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *own)}
    return run
