"""Generate the command table and the help texts from the typer declarations: ``python -m ctxmgr.cli.fast.generate``.

The ranges and choices of commands with a handler on rows come from their requests.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxmgr.cli import build_app
from ctxmgr.cli.commands.schema import SHAPES

TABLE_FILE = Path(__file__).with_name("table.py")
TEXTS_FILE = Path(__file__).with_name("help_texts.py")

QUICK = (
    "detect", "list", "messages", "note add", "note list", "note search", "record", "recover", "search", "sessions", "show",
    "snapshot create", "snapshot list", "trace",
)  # fmt: skip
"""Commands that have a handler on rows, see `ctxmgr.cli.fast`."""
SERVED = frozenset({
    "action", "actions", "address", "agent", "all_sessions", "as_agent", "author", "entries", "event_type", "ever", "exit_zero",
    "fields", "format_", "full", "input_type", "jq", "json_", "judge", "kind", "limit", "link", "log", "mask", "max_",
    "message", "newest_first", "now", "offset", "process", "project", "prompt", "query", "raw", "reasoning", "session", "set_",
    "since", "status", "store", "stuck", "summary", "supersedes", "tag", "target", "trust_project", "until",
})  # fmt: skip
"""Parameters that these handlers understand; a command line that gives any other is answered by the declared function."""

_REQUEST_FIELDS = {"max_": "max_results", "message": "content", "tag": "tags", "link": "links"}
_KINDS = {"int": "number", "integer": "number", "float": "float", "path": "path", "str": "text", "text": "text",
          "bool": "flag", "boolean": "flag"}  # fmt: skip

_HEAD = '''"""Every command as the command line reads it; written by ``python -m ctxmgr.cli.fast.generate`` alone.

One text of JSON a command, since only one of them is ever read: see `ctxmgr.cli.fast.dispatch.Command`.
"""
# ruff: noqa: E501

from __future__ import annotations

# fmt: off
TABLE: dict[str, str] = {
'''


def make_table() -> dict[str, dict[str, Any]]:
    """Return the table: for each command its function, its options, its arguments, and what its request admits.

    Raises:
        ValueError: a declaration that the parser of the table would misread.
    """
    from typer.main import get_command

    # Read from the commands that typer itself would parse, so that the table can't disagree with it.
    return dict(_commands(get_command(build_app()), ""))


def _commands(group: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield path + name, _command(path + name, command)


def _command(name: str, command: Any) -> dict[str, Any]:
    options: dict[str, tuple[str, str]] = {}
    defaults: dict[str, Any] = {}
    arguments: list[tuple[str, str]] = []
    required: list[str] = []
    many = False
    for parameter in command.params:
        is_argument = parameter.param_type_name == "argument"
        asker = parameter.name == "as_agent"  # a declaration of our own, whose callback is called for every command
        unread = parameter.envvar or parameter.is_eager or (parameter.callback and not asker)
        if (many and is_argument) or unread or parameter.nargs not in (1, -1 if is_argument else 1):
            raise ValueError(f"{name}: the table can't hold {parameter.name}, or what stands behind it")
        defaults[parameter.name] = parameter.default
        required += [parameter.name] if parameter.required else []
        if is_argument:
            arguments.append((parameter.name, _KINDS[parameter.type.name]))
            many = parameter.nargs == -1
        else:
            options |= _spellings(parameter)
    function = inspect.unwrap(command.callback)
    return {
        "function": [function.__module__, function.__qualname__],
        "how": "how" in inspect.signature(function).parameters,
        "arguments": arguments,
        "many": many,
        "required": required,
        "options": options,
        "defaults": defaults,
        "quick": _quick(name, defaults) if name in QUICK else None,
    }


def _quick(name: str, defaults: dict[str, Any]) -> dict[str, Any]:
    beyond = [parameter for parameter in defaults if parameter not in SERVED]
    if any(defaults[parameter] for parameter in beyond):
        raise ValueError(f"{name}: {', '.join(beyond)}: one means something when it is not given")
    ranges, choices = _limits(name, defaults)
    return {"beyond": beyond, "ranges": ranges, "choices": choices}


def _spellings(parameter: Any) -> dict[str, tuple[str, str]]:
    """Return the parameter and the kind of each spelling of an option."""
    kind = _KINDS[parameter.type.name]
    if (parameter.multiple and kind == "flag") or bool(parameter.is_flag) != (kind == "flag") or getattr(parameter, "count", 0):
        raise ValueError(f"the table can't hold {parameter.opts}")
    kind += "s" if parameter.multiple else ""
    spelled = dict.fromkeys(parameter.opts, (parameter.name, kind))
    return spelled | dict.fromkeys(parameter.secondary_opts, (parameter.name, "no " + kind))


def _limits(name: str, defaults: dict[str, Any]) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[str, ...]]]:
    """Return the ranges of numbers and the choices of texts that the command's request admits."""
    request = SHAPES[name][1] if name in SHAPES else None
    schema: dict[str, Any] = {} if request is None else request.model_json_schema(by_alias=False)["properties"]
    ranges: dict[str, tuple[int, int]] = {}
    choices: dict[str, tuple[str, ...]] = {}
    for parameter in defaults:
        field: dict[str, Any] = schema.get(_REQUEST_FIELDS.get(parameter, parameter), {})
        admitted = {**field, **field.get("items", {})}
        for branch in field.get("anyOf", []):
            admitted |= branch
        if "minimum" in admitted:
            ranges[parameter] = (admitted["minimum"], admitted["maximum"])
        if "enum" in admitted:
            choices[parameter] = tuple(admitted["enum"])
    return ranges, choices


def render_table() -> str:
    """Return the source of the table's module, with one line for each command."""
    lines = (f"    {name!r}: {json.dumps(command)!r},\n" for name, command in make_table().items())
    return _HEAD + "".join(lines) + "}\n"


_TEXTS_HEAD = '''"""The help of every command; written by ``python -m ctxmgr.cli.fast.generate`` alone."""
# ruff: noqa: E501

from __future__ import annotations

# fmt: off
TEXTS: dict[str, str] = {
'''


def texts() -> dict[str, str]:
    """Return the help text of each command by its name; that of the program is at "".

    Raises:
        ValueError: a text is not ASCII, so not every stream could encode it.
    """
    from typer.main import get_command

    root: Any = get_command(build_app())
    found: dict[str, str] = {}
    for name in ["", *root.commands]:
        parts = getattr(root.commands[name], "commands", {}) if name else {}
        for words in [name, *(f"{name} {part}" for part in parts)]:
            found[words] = _help_text(root, words)
    return found


def _help_text(root: Any, words: str) -> str:
    out, width = io.StringIO(), os.environ.get("COLUMNS")
    # `command_line.print_help` shows these texts at this width even in wider terminals.
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(out):
            root.main([*words.split(), "--help"], prog_name="ctxmgr", standalone_mode=False)
    finally:
        del os.environ["COLUMNS"]
        if width is not None:
            os.environ["COLUMNS"] = width
    # The prepared text is written unchanged to streams of any encoding.
    if not out.getvalue().isascii():
        raise ValueError(f"not every stream can hold the help of {words!r}")
    return out.getvalue()


def render_texts() -> str:
    """Return the source of the module of help texts, with one line for each text."""
    return _TEXTS_HEAD + "".join(f"    {words!r}: {text!r},\n" for words, text in texts().items()) + "}\n"


if __name__ == "__main__":
    TABLE_FILE.write_text(render_table(), "utf-8")
    TEXTS_FILE.write_text(render_texts(), "utf-8")
