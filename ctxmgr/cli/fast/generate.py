"""Generate the tables of the fast path from the typer declarations: ``python -m ctxmgr.cli.fast.generate``.

That is the lane's table, for which the requests are asked too, and the help of every command.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from pprint import pformat
from typing import Any

from ctxmgr.cli import build_app
from ctxmgr.cli.commands.schema_demo import SHAPES

TABLE_FILE = Path(__file__).with_name("table.py")
TEXTS_FILE = Path(__file__).with_name("help_texts.py")

COMMANDS = (
    "detect", "list", "messages", "note add", "note list", "record", "search", "sessions", "show", "snapshot create",
    "snapshot list", "trace",
)  # fmt: skip
SERVED = frozenset({
    "action", "actions", "address", "agent", "all_sessions", "author", "entries", "event_type", "ever", "exit_zero",
    "format_", "full", "input_type", "json_", "judge", "kind", "limit", "link", "log", "mask", "max_", "message",
    "newest_first", "now", "offset", "process", "query", "reasoning", "session", "set_", "since", "status", "store",
    "summary", "supersedes", "tag", "target", "trust_project", "until",
})  # fmt: skip
"""Parameters that the lane understands; a command line that gives any other is typer's."""

_REQUEST_FIELDS = {"max_": "max_results", "message": "content", "tag": "tags", "link": "links"}
_KINDS = {"int": "number", "integer": "number", "str": "text", "text": "text", "bool": "flag", "boolean": "flag"}

_HEAD = '''"""What the lane for programs reads of command lines; written by ``python -m ctxmgr.cli.fast.generate`` alone."""

from __future__ import annotations

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from typing import Any, TypedDict

    class Command(TypedDict):
        """A command's arguments and options, the parameter and kind of each; what the request admits.

        ``many`` says whether the one argument takes any number of words, ``required`` which parameters must be given.
        ``environment`` names variables that stand for options which the lane does not serve.
        """

        arguments: tuple[str, ...]
        many: bool
        required: tuple[str, ...]
        options: dict[str, tuple[str, str]]
        defaults: dict[str, Any]
        ranges: dict[str, tuple[int, int]]
        choices: dict[str, tuple[str, ...]]
        environment: tuple[str, ...]


# fmt: off
TABLE: dict[str, Command] = \\
'''


def derived() -> dict[str, dict[str, Any]]:
    """Return the table: for each command its options, its arguments, and what its request admits.

    Raises:
        ValueError: a declaration that the lane would misread.
    """
    from typer.main import get_command

    root: Any = get_command(build_app())
    return {name: _command(name, _declared(root, name).params) for name in COMMANDS}


def _declared(group: Any, name: str) -> Any:
    for word in name.split():
        group = group.commands[word]
    return group


def _command(name: str, parameters: list[Any]) -> dict[str, Any]:
    options: dict[str, tuple[str, str]] = {}
    defaults: dict[str, Any] = {}
    arguments: list[Any] = []
    required: list[str] = []
    environment: list[str] = []
    for parameter in parameters:
        if parameter.name not in SERVED:
            if parameter.default or parameter.required:
                raise ValueError(f"{name}: {parameter.name} means something when it is not given")
            environment += [parameter.envvar] if isinstance(parameter.envvar, str) else parameter.envvar or []
            continue
        is_argument = parameter.param_type_name == "argument"
        if parameter.envvar or parameter.is_eager or parameter.callback or parameter.nargs not in (1, -1 if is_argument else 1):
            raise ValueError(f"{name}: the lane can't read {parameter.name}")
        defaults[parameter.name] = parameter.default
        required += [parameter.name] if parameter.required else []
        if is_argument:
            arguments.append(parameter)
        else:
            options |= _spelled(parameter)
    many = any(argument.nargs == -1 for argument in arguments)
    if many and len(arguments) > 1:
        raise ValueError(f"{name}: the lane can't tell its arguments apart")
    ranges, choices = _admitted(name, defaults)
    return {
        "arguments": tuple(argument.name for argument in arguments),
        "many": many,
        "required": tuple(required),
        "options": options,
        "defaults": defaults,
        "ranges": ranges,
        "choices": choices,
        "environment": tuple(environment),
    }


def _spelled(parameter: Any) -> dict[str, tuple[str, str]]:
    """Return the parameter and kind behind each spelling of an option."""
    kind = _KINDS[parameter.type.name]
    if (parameter.multiple and kind != "text") or bool(parameter.is_flag) != (kind == "flag"):
        raise ValueError(f"the lane can't read {parameter.opts}")
    kind = "texts" if parameter.multiple else kind
    spelled = dict.fromkeys(parameter.opts, (parameter.name, kind))
    return spelled | dict.fromkeys(parameter.secondary_opts, (parameter.name, "no " + kind))


def _admitted(name: str, defaults: dict[str, Any]) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[str, ...]]]:
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


def rendered() -> str:
    """Return the text of the table's module."""
    return _HEAD + pformat(derived(), width=120, sort_dicts=False) + "\n"


_TEXTS_HEAD = '''"""The help of every command; written by ``python -m ctxmgr.cli.fast.generate`` alone."""
# ruff: noqa: E501

from __future__ import annotations

# fmt: off
TEXTS: dict[str, str] = {
'''


def texts() -> dict[str, str]:
    """Return the help of each command by its words, "" for the whole.

    Raises:
        ValueError: one that not every stream could hold.
    """
    from typer.main import get_command

    root: Any = get_command(build_app())
    found: dict[str, str] = {}
    for name in ["", *root.commands]:
        parts = getattr(root.commands[name], "commands", {}) if name else {}
        for words in [name, *(f"{name} {part}" for part in parts)]:
            found[words] = _shown(root, words)
    return found


def _shown(root: Any, words: str) -> str:
    out, width = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(out):
            root.main([*words.split(), "--help"], prog_name="ctxmgr", standalone_mode=False)
    finally:
        del os.environ["COLUMNS"]
        if width is not None:
            os.environ["COLUMNS"] = width
    if not out.getvalue().isascii():
        raise ValueError(f"not every stream can hold the help of {words!r}")
    return out.getvalue()


def texts_rendered() -> str:
    """Return the text of the module of helps, a line for each."""
    return _TEXTS_HEAD + "".join(f"    {words!r}: {text!r},\n" for words, text in texts().items()) + "}\n"


if __name__ == "__main__":
    TABLE_FILE.write_text(rendered(), "utf-8")
    TEXTS_FILE.write_text(texts_rendered(), "utf-8")
