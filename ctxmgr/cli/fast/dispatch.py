"""Run a command line that the command table understands, without typer; every other one is typer's.

What a program asks of some commands is answered from rows, without models (`ctxmgr.cli.fast.rows`). Everything else is done
by the function that typer would call: it alone is loaded, and what it needs.
"""

from __future__ import annotations

import gc
import os
import sys

from ctxmgr.cli.fast.parser import find_command, is_quick, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ctxmgr.cli.fast.parser import Command

_IN_A_LINE = frozenset({"record"})
"""Commands that tell a person no more than a line, which is the same in every file or pipe."""

_CACHED = frozenset({"detect", "sessions"})
"""Commands whose answers are drawn from what was kept of them."""


def answered(arguments: list[str]) -> int | None:
    """Answer a command line; return its exit code, or None when typer has to read it and nothing was done."""
    found = find_command(arguments)
    if found is None or any(name.endswith("_COMPLETE") for name in os.environ):  # a shell asks what could come next
        return None
    name, command, words = found
    values = parse(command, words)
    if values is None:
        return None
    if is_quick(command, values):
        form = "json" if values["json_"] else values["format_"] or os.environ.get("CTXMGR_FORMAT") or "table"
        if form in ("json", "ndjson") or (form == "table" and _can_draw(name, values)):
            from ctxmgr.cli.fast.rows import quick_answer

            code = quick_answer(name, dict(values), form)
            if code is not None:
                return code
    return _call_function(command, values)


def _can_draw(name: str, values: dict[str, Any]) -> bool:
    """Whether a command may be shown to a person without its own function."""
    if name in _IN_A_LINE:
        return not sys.stdout.isatty()
    return name in _CACHED or bool(name == "recover" and values["prompt"])


def _call_function(command: Command, values: dict[str, Any]) -> int:
    """Call the function of a command as typer would; return its exit code."""
    from importlib import import_module

    from ctxmgr.cli.declarations import Exit
    from ctxmgr.cli.invocation import set_agent

    set_agent(values.pop("as_agent", None))
    module, name = command["function"]
    function = getattr(import_module(module), name)
    if command["how"]:
        from ctxmgr.cli.output import take_output_options

        values["how"] = take_output_options(values)
    gc.enable()
    try:
        function(**values)
    except Exit as end:
        return end.exit_code
    except Exception as end:
        typer: Any = sys.modules.get("typer")  # loaded by a command that declares with typer itself
        if typer is None or not isinstance(end, typer.Exit):
            raise
        ended: Any = end
        return int(ended.exit_code)
    return 0
