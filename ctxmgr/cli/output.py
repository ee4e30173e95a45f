"""Answer the commands that are declared in `commands`: open the library, do the work, write the answer, exit with its code.

`ctxmgr.cli.envelope` writes rows as JSON. This module writes the other forms: views for people, Markdown, CSV or TSV, selected
fields of each row, or the results of a jq program.
"""

from __future__ import annotations

import sys

from ctxmgr.cli.envelope import Answer as Answer
from ctxmgr.cli.envelope import (
    IndexProgress,
    as_rows,
    ascii_json,
    compile_jq,
    end,
    envelope,
    report_error,
    say,
    say_more_rows,
    say_warnings,
    show_answer,
    write_json,
    write_lines,
)
from ctxmgr.cli.envelope import OutputOptions as OutputOptions
from ctxmgr.cli.invocation import current_agent
from ctxmgr.errors import CtxmgrError, InvalidInput, StorageFailed
from ctxmgr.log.fast_json import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TypeVar

    from ctxmgr.workspace import Workspace

    _T = TypeVar("_T")
    Place = tuple[str | None, str | None]
    """(session, store), each of them optional."""

_MAX_INDEX_DIGITS = 9  # digits of a list index in --fields; Python refuses to parse numbers of thousands of digits


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

    end(show_answer(command, how, work_on_store, write_form, writes=writes or create))


def resolve_place(command: str, how: OutputOptions, target: str | None, session: str | None, store: str | None) -> Place:
    """Return (session, store) as named on a command line, see `locate_store`. An error is reported and ends the command."""
    from ctxmgr.cli.address import locate_store

    return resolve(command, how, locate_store, target, session, store)


def resolve(command: str, how: OutputOptions, locate: Callable[..., _T], *named: object) -> _T:
    """Return the result of ``locate`` for words of the command line. An error is reported and ends the command."""
    try:
        return locate(*named)
    except CtxmgrError as error:
        fail(command, how, error)


def _with_store_warnings(how: OutputOptions, work: Callable[[Workspace], Answer], workspace: Workspace) -> Answer:
    left_out = workspace.config.warnings()
    say_warnings(left_out)  # before the work, which may fail because of a setting that was left out
    done = work(workspace)
    done.warnings[:0] = [line for line in workspace.warnings if how.format == "json" or line not in left_out]
    return done


def answer_without_store(command: str, how: OutputOptions, work: Callable[[], Answer]) -> None:
    """Do work that needs no store, show the answer, and end with its exit code."""
    end(show_answer(command, how, work, write_form, writes=False))


def fail(command: str, how: OutputOptions, error: CtxmgrError) -> NoReturn:
    """Report an error in the chosen format, and end with the error's exit code."""
    from ctxmgr.cli.declarations import Exit

    raise Exit(report_error(command, how.format, error))


def write_form(command: str, how: OutputOptions, done: Answer) -> None:
    """Write the answer in the form that was asked for.

    Raises:
        InvalidInput: no row has a field that was asked for, or the jq program fails.
    """
    from ctxmgr.cli.terminal import open_pager, printer
    from ctxmgr.cli.views.safe_text import safe

    out = printer()  # made first, because it makes stdout escape characters that its encoding can't hold
    data = _with_fields(done.data, how.fields)
    if how.format == "json":
        document = envelope(command, done.status, data, done.page, done.warnings, done.next)
        if how.jq is None:
            write_json(document)
        else:
            write_lines(_jq_line(item, raw=how.raw) for item in _run_jq(how.jq, document))
        return
    say_warnings(done.warnings)
    if how.format in ("table", "md") and done.status == "empty" and _says_all(done.warnings):
        return  # the view would only say again that there is nothing
    # A command may name its columns, because there may be no row to take them from.
    rows, columns = as_rows(data), how.fields or done.columns
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
        with open_pager() as out:
            done.draw(out)
    else:
        done.draw(out)
    say_more_rows(done)


def _says_all(warnings: list[str]) -> bool:
    """Whether a warning says that there is no history yet."""
    if not warnings:
        return False
    from ctxmgr.history.open_history import NOTHING_YET

    return NOTHING_YET in warnings


def _emit_markdown(done: Answer) -> None:
    """Write the view for people as Markdown."""
    from ctxmgr.cli.text_formats import MarkdownPrinter

    out = MarkdownPrinter(sys.stdout, sys.stderr)
    done.draw(out)
    out.finish()


def _run_jq(expression: str, value: Any) -> list[Any]:
    program = compile_jq(expression)
    try:
        return program.input_text(ascii_json(value)).all()
    except ValueError as error:
        raise InvalidInput(f"--jq {expression!r}: {str(error).splitlines()[0]}", "see the jq manual") from None


def _jq_line(item: Any, *, raw: bool) -> str:
    """Return an output line for a value that a jq program found. Raw text on a terminal is filtered, as it could steer it."""
    if not raw or not isinstance(item, str):
        return ascii_json(item)
    from ctxmgr.cli.views.safe_text import safe

    return safe(item, keep_lines=True) if sys.stdout.isatty() else item


def _with_fields(data: Any, fields: tuple[str, ...]) -> Any:
    """Return the rows with only the named fields. ``a.b`` reaches into objects, ``a.0`` into lists.

    Raises:
        InvalidInput: no row has the field.
    """
    if not fields or data is None:
        return data
    rows = as_rows(data)
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
