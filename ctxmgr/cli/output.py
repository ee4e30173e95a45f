"""Answer a command: one envelope as JSON, rows as NDJSON or Markdown, or a view for people; data to stdout only."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn, cast

import typer

from ctxmgr.cli.exits import Exit, exit_for
from ctxmgr.cli.terminal import Printer, printer, safe
from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.types.query import Page
from ctxmgr.workspace import Workspace

Format = Literal["table", "json", "ndjson", "md"]
Status = Literal["ok", "empty", "partial", "error"]


@dataclass(frozen=True, slots=True)
class Shown:
    """How the answer is wanted."""

    format: Format = "table"
    fields: tuple[str, ...] = ()
    jq: str | None = None


@dataclass(slots=True)
class Answer:
    """What a command found.

    Attributes:
        data: JSON values: a list of rows or one object.
        draw: shows it to people.
        next: commands that may come next.
    """

    data: Any
    draw: Callable[[Printer], None]
    status: Status = "ok"
    page: Page | None = None
    warnings: list[str] = field(default_factory=lambda: list[str]())
    next: list[str] = field(default_factory=lambda: list[str]())
    code: Exit = Exit.OK


def shown(as_json: bool, form: str | None, fields: str | None, jq: str | None) -> Shown:
    """Return how the answer is wanted, from the options.

    Raises:
        InvalidInput: an unknown format.
    """
    chosen = form or os.environ.get("CTXMGR_FORMAT") or "table"
    if as_json or jq is not None:
        chosen = "json"
    if chosen not in ("table", "json", "ndjson", "md"):
        raise InvalidInput(f"unknown format {chosen!r}", "formats: table, json, ndjson, md")
    names = tuple(name.strip() for name in (fields or "").split(",") if name.strip())
    return Shown(chosen, names, jq)


def answer(
    command: str,
    wanted: Callable[[], Shown],
    work: Callable[[Workspace], Answer],
    *,
    store: str | None,
    writes: bool = False,
    create: bool = False,
    masked: bool = True,
) -> None:
    """Open the workspace, do the work, show the answer, and end with its exit code.

    Args:
        command: its name, for the envelope.
        wanted: reads the output options.
        work: what the command does.
        store: path of the store, if one was named.
        writes: whether the command adds to history; create: and makes a store where there is none.
        create: see ``writes``.
        masked: mask secrets in what is written.
    """
    how = Shown()
    try:
        how = wanted()
        with Workspace.open(
            store, create=create, readonly=not (writes or create), masked=masked, progress=_indexing
        ) as workspace:
            done = work(workspace)
            done.warnings[:0] = workspace.warnings
            _emit(command, how, done)
    except CtxmgrError as error:
        fail(command, how, error)
    if done.code:
        raise typer.Exit(int(done.code))


def answer_alone(command: str, wanted: Callable[[], Shown], work: Callable[[], Answer]) -> None:
    """Do work that needs no store, show the answer, and end with its exit code."""
    how = Shown()
    try:
        how = wanted()
        done = work()
        _emit(command, how, done)
    except CtxmgrError as error:
        fail(command, how, error)
    if done.code:
        raise typer.Exit(int(done.code))


def fail(command: str, how: Shown, error: CtxmgrError) -> NoReturn:
    """Say what went wrong, as the caller reads it, and end with the error's exit code."""
    body = {"kind": error.kind, "message": error.message, "hint": error.hint, "retryable": error.retryable}
    if how.format in ("json", "ndjson"):
        _write_json(_envelope(command, "error", None, None, [], [], body))
    else:
        say(f"ctxmgr: {error.message}" + (f"\n  {error.hint}" if error.hint else ""))
    raise typer.Exit(int(exit_for(error.kind)))


def say(text: str) -> None:
    """Tell a person something on stderr; every line of it filtered."""
    sys.stderr.write("".join(f"{safe(line)}\n" for line in text.split("\n")))


def _emit(command: str, how: Shown, done: Answer) -> None:
    if how.format == "json":
        data = _chosen(done.data, how.fields)
        envelope = _envelope(command, done.status, data, done.page, done.warnings, done.next, None)
        if how.jq is None:
            _write_json(envelope)
        else:
            _write_lines(_filtered(how.jq, envelope))
        return
    for warning in done.warnings:
        say(f"ctxmgr: {warning}")
    if how.format == "ndjson":
        _write_lines(_ascii(row) for row in _rows(_chosen(done.data, how.fields)))
    elif how.format == "md":
        _write_lines(_markdown(_rows(_chosen(done.data, how.fields))))
    elif how.fields:
        rows = _rows(_chosen(done.data, how.fields))
        _write_lines("\t".join(safe(_cell(row.get(name))) for name in how.fields) for row in rows)
    else:
        done.draw(printer())
    _point_on(how, done)


def _point_on(how: Shown, done: Answer) -> None:
    page = done.page
    if how.format == "table" and page is not None and page.has_more and sys.stderr.isatty():
        say(f"{page.offset + 1} to {page.next_offset} of {page.total}; more: --offset {page.next_offset}")


def _envelope(
    command: str,
    status: Status,
    data: Any,
    page: Page | None,
    warnings: Sequence[str],
    following: Sequence[str],
    error: Any,
) -> dict[str, Any]:
    return {
        "schema": "ctxmgr/1", "command": command, "status": status, "data": data,
        "page": None if page is None else page.to_json(), "warnings": list(warnings), "next": list(following),
        "error": error,
    }  # fmt: skip


def _ascii(value: Any, indent: int | None = None) -> str:
    # ASCII escapes make the output safe for any terminal and encoding; DEL is the one control character they leave.
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent, separators=separators, default=str)
    return text.replace("\x7f", "\\u007f")


def _write_json(value: Any) -> None:
    _write_lines([_ascii(value, indent=2 if sys.stdout.isatty() else None)])


def _write_lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")


def _filtered(expression: str, value: Any) -> list[str]:
    try:
        import jq
    except ImportError:
        raise InvalidInput("--jq needs the jq extra", "pip install 'ctxmgr-cli[jq]'") from None
    try:
        program = cast("Any", jq).compile(expression)
        found: list[Any] = program.input_text(_ascii(value)).all()
    except ValueError as error:
        raise InvalidInput(f"--jq {expression!r}: {str(error).splitlines()[0]}", "see the jq manual") from None
    return [_ascii(item) for item in found]


def _rows(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, list):
        return cast("list[dict[str, Any]]", data)
    return [] if data is None else [cast("dict[str, Any]", data)]


def _chosen(data: Any, fields: tuple[str, ...]) -> Any:
    """Return the rows with only the named fields; ``a.b`` reaches into objects.

    Raises:
        InvalidInput: no row has such a field.
    """
    if not fields or data is None:
        return data
    rows = _rows(data)
    for name in fields:
        if rows and all(name.split(".")[0] not in row for row in rows):
            raise InvalidInput(f"no field {name!r}", f"fields: {', '.join(rows[0])}")
    picked = [{name: _at(row, name) for name in fields} for row in rows]
    return picked if isinstance(data, list) else picked[0]


def _at(row: Any, name: str) -> Any:
    for part in name.split("."):
        row = cast("dict[str, Any]", row).get(part) if isinstance(row, dict) else None
    return row


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else _ascii(value)


def _markdown(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return []
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    for row in rows:
        cells = [safe(_cell(row.get(name))).replace("\\", "\\\\").replace("|", "\\|") for name in names]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _indexing(done: int, total: int) -> None:
    if sys.stderr.isatty() and total > 50_000_000:
        sys.stderr.write(f"\rindexing the log: {100 * done // max(1, total)} %" + ("\n" if done >= total else ""))
