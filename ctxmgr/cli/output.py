"""Write the answer of a command: a JSON envelope, rows as NDJSON, CSV, TSV or Markdown, or a view for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.cli import declarations as typer
from ctxmgr.cli.address import locate_store
from ctxmgr.cli.envelope import IndexProgress, ascii_json, envelope, report_error, say, write_json, write_lines
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.invocation import OUTPUT, current_agent, quiet
from ctxmgr.cli.terminal import Printer, printer, safe
from ctxmgr.errors import CtxmgrError, InvalidInput, StorageFailed

if TYPE_CHECKING:
    from ctxmgr.types.query import Page
    from ctxmgr.workspace import Workspace

_MAX_INDEX_DIGITS = 9  # of a list index in --fields; Python refuses to parse numbers of thousands of digits
FORMATS = ("table", "json", "ndjson", "md", "csv", "tsv")
_T = TypeVar("_T")
Place = tuple[str | None, str | None]
"""A session, and a store."""

Status = Literal["ok", "empty", "partial", "error"]


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How to show the answer: in one of the formats, with some fields of each row, or as the results of a jq program.

    ``raw`` prints strings among these results without quotes.
    """

    format: str = "table"
    fields: tuple[str, ...] = ()
    jq: str | None = None
    raw: bool = False

    def check(self) -> None:
        """Refuse output options that can't be met, before anything is done.

        Raises:
            InvalidInput: an unknown format, or a faulty jq program.
        """
        if self.format not in FORMATS:
            raise InvalidInput(f"unknown format {self.format!r}", f"formats: {', '.join(FORMATS)}")
        if self.jq is not None:
            _compile_jq(self.jq)
        elif self.raw:
            raise InvalidInput("--raw is for what --jq finds", "e.g. --jq '.data[].session' -r")


@dataclass(slots=True)
class Answer:
    """The answer of a command.

    Attributes:
        data: JSON values: a list of rows or one object.
        draw: shows the answer to people.
        next: commands that may come next.
        columns: the names of the columns, where there may be no row that has them.
    """

    data: Any
    draw: Callable[[Printer], None]
    status: Status = "ok"
    page: Page | None = None
    warnings: list[str] = field(default_factory=lambda: list[str]())
    next: list[str] = field(default_factory=lambda: list[str]())
    code: Exit = Exit.OK
    columns: tuple[str, ...] = ()


def output_options(as_json: bool, form: str | None, fields: str | None, jq: str | None, raw: bool = False) -> OutputOptions:
    """Return how the answer is wanted, from the options; `OutputOptions.check` says whether that can be done."""
    # A jq program reads the envelope, so it implies JSON.
    chosen = "json" if as_json or jq is not None else form or os.environ.get("CTXMGR_FORMAT") or "table"
    return OutputOptions(chosen, tuple(name.strip() for name in (fields or "").split(",") if name.strip()), jq, raw)


def take_output_options(values: dict[str, Any]) -> OutputOptions:
    """Take the output options out of the values of a command line, and return what they come to."""
    return output_options(*(values.pop(name) for name in OUTPUT))


def answer(
    command: str,
    how: OutputOptions,
    work: Callable[[Workspace], Answer],
    *,
    store: str | None,
    writes: bool = False,
    create: bool = False,
    masked: bool = True,
    lenient: bool = False,
    scratch: bool = False,
    frees: bool = False,
    damaged: bool = False,
) -> None:
    """Open the workspace, do the work, show the answer, and end with its exit code.

    Args:
        command: name of the command, for the envelope.
        how: how to show the answer.
        work: does the work of the command.
        store: path of the store, if one is named.
        writes: the command adds to the history.
        create: as ``writes``, and creates a missing store.
        masked: mask secrets in written records.
        lenient: if the store can't be opened for writing, open it read-only; ``work`` then reports what it could not write.
        scratch: answer for another agent's log too, where nothing can be recorded, with a warning.
        frees: the command frees space, so it may use the reserve that is kept for a full disk.
        damaged: answer for a log without a readable record too.
    """
    from ctxmgr.history.open_history import require_record
    from ctxmgr.workspace import Workspace, release_reserve

    def open_workspace(readonly: bool) -> Workspace:
        return Workspace.open(
            store,
            create=create,
            readonly=readonly,
            masked=masked,
            progress=IndexProgress(),
            agent=current_agent(),
            scratch=scratch,
        )

    def work_on_store() -> Answer:
        try:
            entry = open_workspace(not (writes or create))
        except StorageFailed:
            # The disk may be full. Then opening for writing fails, and a command that frees space needs some space first.
            if frees and release_reserve(store):
                entry = open_workspace(False)
            elif lenient:
                entry = open_workspace(True)
            else:
                raise
        with entry as workspace:
            if not (damaged or writes or create):
                require_record(workspace.store)
            return _with_store_warnings(how, work, workspace)

    _answer(command, how, work_on_store, writes=writes or create)


def resolve_place(command: str, how: OutputOptions, target: str | None, session: str | None, store: str | None) -> Place:
    """Return (session, store) as a command line names them, see `locate_store`; an error is reported and ends the command."""
    return resolve(command, how, locate_store, target, session, store)


def resolve(command: str, how: OutputOptions, locate: Callable[..., _T], *named: object) -> _T:
    """Return the result of ``locate`` for words of the command line. An error is reported and ends the command."""
    try:
        return locate(*named)
    except CtxmgrError as error:
        fail(command, how, error)


def _with_store_warnings(how: OutputOptions, work: Callable[[Workspace], Answer], workspace: Workspace) -> Answer:
    left_out = workspace.config.warnings()
    for line in left_out:  # before the work, which may fail because of a setting that was left out
        say(f"ctxmgr: {line}")
    done = work(workspace)
    done.warnings[:0] = [line for line in workspace.warnings if how.format == "json" or line not in left_out]
    return done


def answer_without_store(command: str, how: OutputOptions, work: Callable[[], Answer]) -> None:
    """Do work that needs no store, show the answer, and end with its exit code."""
    _answer(command, how, work, writes=False)


def _answer(command: str, how: OutputOptions, work: Callable[[], Answer], *, writes: bool) -> None:
    # First: a command that writes must not learn afterwards that its answer can't be shown.
    try:
        how.check()
        done = work()
    except CtxmgrError as error:
        fail(command, how, error)
    except OSError as error:
        if error.filename is None:  # not the work but our own output failed
            raise
        fail(command, how, StorageFailed(f"{os.fsdecode(error.filename)}: {error.strerror}", "check it, and its permissions"))
    try:
        _emit(command, how, done)
    except BrokenPipeError:
        quiet(done.code)  # what was found stands, though nobody reads on
    except CtxmgrError as error:
        # A faulty --fields or --jq shows only now; whoever repeats a command that writes would write twice.
        hint = f"the command itself is done; {error.hint}" if writes else error.hint
        fail(command, how, InvalidInput(error.message, hint))
    if done.code:
        raise typer.Exit(int(done.code))


def fail(command: str, how: OutputOptions, error: CtxmgrError) -> NoReturn:
    """Say what went wrong, as the caller reads it, and end with the error's exit code."""
    raise typer.Exit(report_error(command, how.format, error))


def _emit(command: str, how: OutputOptions, done: Answer) -> None:
    out = printer()  # made first: it teaches stdout to escape what its encoding can't hold
    data = _with_fields(done.data, how.fields)
    if how.format == "json":
        page = None if done.page is None else done.page.to_json()
        document = envelope(command, done.status, data, page, done.warnings, done.next)
        if how.jq is None:
            write_json(document)
        else:
            write_lines(_jq_line(item, raw=how.raw) for item in _run_jq(how.jq, document))
        return
    for warning in done.warnings:
        say(f"ctxmgr: {warning}")
    if how.format in ("table", "md") and done.status == "empty" and _says_all(done.warnings):
        return  # the view would only repeat that there is nothing
    # The names of columns are given where there may be no row to take them from.
    rows, columns = _rows(data), how.fields or done.columns
    if how.format == "ndjson":
        write_lines(map(ascii_json, rows))
    elif how.format == "md" and not how.fields:
        _emit_markdown(done)
    elif how.format != "table":
        from ctxmgr.cli.text_formats import WRITERS

        write_lines(WRITERS[how.format](rows, columns))
    elif how.fields:
        from ctxmgr.cli.text_formats import cell

        write_lines("\t".join(safe(cell(row.get(name))) for name in how.fields) for row in rows)
    elif out.terminal:
        from ctxmgr.cli.terminal import open_pager

        with open_pager() as out:
            done.draw(out)
    else:
        done.draw(out)
    _say_more_rows(how, done)


def _says_all(warnings: list[str]) -> bool:
    """Whether a warning says that there is no history yet."""
    if not warnings:
        return False
    from ctxmgr.history.open_history import NOTHING_YET

    return NOTHING_YET in warnings


def _emit_markdown(done: Answer) -> None:
    """Write the view for people as Markdown."""
    from ctxmgr.cli.text_formats import markdown_printer

    out = markdown_printer()
    done.draw(out)
    out.finish()


def _say_more_rows(how: OutputOptions, done: Answer) -> None:
    page = done.page
    if how.format == "table" and page is not None and page.next_offset is not None and sys.stderr.isatty():
        about = "" if page.total_is_exact else "about "
        say(f"{page.offset + 1} to {page.next_offset} of {about}{page.total}; more: --offset {page.next_offset}")


def _compile_jq(expression: str) -> Any:
    try:
        import jq
    except ImportError:  # there is no wheel of it for every platform
        raise InvalidInput("--jq needs the package jq, which is not installed here", "pip install jq") from None
    try:
        return cast("Any", jq).compile(expression)
    except ValueError as error:
        raise InvalidInput(f"--jq {expression!r}: {str(error).splitlines()[0]}", "see the jq manual") from None


def _run_jq(expression: str, value: Any) -> list[Any]:
    program = _compile_jq(expression)
    try:
        return program.input_text(ascii_json(value)).all()
    except ValueError as error:
        raise InvalidInput(f"--jq {expression!r}: {str(error).splitlines()[0]}", "see the jq manual") from None


def _jq_line(item: Any, *, raw: bool) -> str:
    """Return an output line for a value that a jq program found. Raw text on a terminal is filtered, as it could steer it."""
    if not raw or not isinstance(item, str):
        return ascii_json(item)
    return safe(item, keep_lines=True) if sys.stdout.isatty() else item


def _rows(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, list):
        return cast("list[dict[str, Any]]", data)
    return [] if data is None else [cast("dict[str, Any]", data)]


def _with_fields(data: Any, fields: tuple[str, ...]) -> Any:
    """Return the rows with only the named fields. ``a.b`` reaches into objects, ``a.0`` into lists.

    Raises:
        InvalidInput: no row has the field.
    """
    if not fields or data is None:
        return data
    rows = _rows(data)
    for name in fields:
        if rows and all(name.split(".")[0] not in row for row in rows):
            raise InvalidInput(f"no field {name!r}", f"fields: {', '.join(rows[0])}")
    picked = [{name: _find_value(row, name) for name in fields} for row in rows]
    for name in fields:
        if rows and all(each[name] is _ABSENT for each in picked):
            say(f"ctxmgr: nothing has a field {name!r}: it is empty")
    picked = [{name: None if value is _ABSENT else value for name, value in each.items()} for each in picked]
    return picked if isinstance(data, list) else picked[0]


_ABSENT = object()


def _find_value(row: Any, name: str) -> Any:
    """Return the value at a path of names and list indexes, or `_ABSENT` if there is none."""
    for part in name.split("."):
        if isinstance(row, dict):
            row = cast("dict[str, Any]", row).get(part, _ABSENT)
        elif isinstance(row, list) and part.isascii() and part.isdigit() and len(part) < _MAX_INDEX_DIGITS:
            row = next(iter(cast("list[Any]", row)[int(part) :]), _ABSENT)
        else:
            return _ABSENT
    return row
