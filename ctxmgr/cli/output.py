"""Write the answer of a command: a JSON envelope, rows as NDJSON, CSV, TSV or Markdown, or a view for people.

Every command loads this module, so what draws is loaded only where something is drawn.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.cli.envelope import IndexProgress, ascii_json, envelope, report_error, say, write_json, write_lines
from ctxmgr.cli.invocation import OUTPUT, current_agent, quiet
from ctxmgr.errors import CtxmgrError, InvalidInput, StorageFailed
from ctxmgr.log.fast_json import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal, NoReturn, TypeVar

    from ctxmgr.cli.terminal import Printer
    from ctxmgr.store.row_mapper import LongTexts
    from ctxmgr.types.query import Page
    from ctxmgr.workspace import Workspace

    _T = TypeVar("_T")
    Place = tuple[str | None, str | None]
    """A session, and a store."""
    Status = Literal["ok", "empty", "partial", "error"]

_MAX_INDEX_DIGITS = 9  # of a list index in --fields; Python refuses to parse numbers of thousands of digits
FORMATS = ("table", "json", "ndjson", "md", "csv", "tsv")


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """How to show the answer: in one of the formats, with some fields of each row, or as the results of a jq program.

    ``raw`` prints strings among these results without quotes.
    """

    format: str = "table"
    fields: tuple[str, ...] = ()
    jq: str | None = None
    raw: bool = False

    @property
    def verbatim(self) -> bool:
        """Whether the rows are written as they are, as JSON."""
        return self.format in ("json", "ndjson") and not self.fields and self.jq is None

    @property
    def draws(self) -> bool:
        """Whether the answer is drawn, for people or as Markdown."""
        return self.format in ("table", "md") and not self.fields

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


class Answer:
    """The answer of a command.

    Attributes:
        data: JSON values: a list of rows or one object.
        draw: shows the answer to people.
        page: the page that the rows are, or what `make_page` makes it of; kept as JSON has it.
        next: commands that may come next.
        code: the exit code.
        columns: the names of the columns, where there may be no row that has them.
        texts: puts long texts into the lines of output, in place of the marks that rows hold for them.
        line: the answer as one line of text, for pipes; ``draw`` shows it elsewhere.
    """

    __slots__ = ("code", "columns", "data", "draw", "line", "next", "page", "status", "texts", "warnings")

    def __init__(
        self,
        data: Any,
        draw: Callable[[Printer], object],
        status: Status = "ok",
        page: Page | tuple[int, int, int, int, bool] | None = None,
        warnings: Iterable[str] = (),
        next: Iterable[str] = (),  # noqa: A002 -- as in the envelope
        code: int = 0,
        columns: tuple[str, ...] = (),
    ) -> None:
        self.data, self.draw, self.status, self.code, self.columns = data, draw, status, code, columns
        self.warnings, self.next = list(warnings), list(next)
        if isinstance(page, tuple):
            from ctxmgr.types.plain_records import make_page

            self.page: dict[str, Any] | None = make_page(*page)
        else:
            self.page = None if page is None else page.to_json()
        self.texts: LongTexts | None = None
        self.line: str | None = None


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
        work: does what the command does.
        store: path of the store, if one was named.
        writes: whether the command adds to history.
        create: as ``writes``, and a missing store is created.
        masked: mask secrets in what is written.
        lenient: answer from a store that can only be read, too; ``work`` reports what it could not write.
        scratch: answer beside another agent's log, too, where nothing can be recorded, with a warning.
        frees: the command frees space: on a full disk it may use the reserve that is kept for it.
        damaged: answer from a log without a readable record, too.
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
            # A full disk: opening for writing fails, and the command that makes room would need room first.
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
    from ctxmgr.cli.address import locate_store

    return resolve(command, how, locate_store, target, session, store)


def resolve(command: str, how: OutputOptions, locate: Callable[..., _T], *named: object) -> _T:
    """Return what ``locate`` makes of words of the command line; an error is reported and ends the command."""
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
    end(show_answer(command, how, work, writes=writes))


def end(code: int) -> None:
    """End a command with this exit code."""
    if code:
        from ctxmgr.cli.declarations import Exit

        raise Exit(code)


def show_answer(command: str, how: OutputOptions, work: Callable[[], Answer], *, writes: bool) -> int:
    """Do the work of a command and show its answer, or what went wrong; return the exit code."""
    # First: a command that writes must not learn afterwards that its answer can't be shown.
    try:
        how.check()
        done = work()
    except CtxmgrError as error:
        return report_error(command, how.format, error)
    except OSError as error:
        if error.filename is None:  # not the work but our own output failed
            raise
        reason = f"{os.fsdecode(error.filename)}: {error.strerror}"
        return report_error(command, how.format, StorageFailed(reason, "check it, and its permissions"))
    try:
        _emit(command, how, done)
    except BrokenPipeError:
        quiet(int(done.code))  # what was found stands, though nobody reads on
    except CtxmgrError as error:
        # A faulty --fields or --jq shows only now; whoever repeats a command that writes would write twice.
        hint = f"the command itself is done; {error.hint}" if writes else error.hint
        return report_error(command, how.format, InvalidInput(error.message, hint))
    return int(done.code)


def fail(command: str, how: OutputOptions, error: CtxmgrError) -> NoReturn:
    """Say what went wrong, as the caller reads it, and end with the error's exit code."""
    from ctxmgr.cli.declarations import Exit

    raise Exit(report_error(command, how.format, error))


def _emit(command: str, how: OutputOptions, done: Answer) -> None:
    if how.verbatim:
        _emit_verbatim(command, how, done)
        return
    if done.line is not None and how.format == "table" and not how.fields and not sys.stdout.isatty():
        _say_warnings(done)
        write_lines([done.line])
        return
    from ctxmgr.cli.terminal import printer, safe

    out = printer()  # made first: it teaches stdout to escape what its encoding can't hold
    data = _with_fields(done.data, how.fields)
    if how.format == "json":
        document = envelope(command, done.status, data, done.page, done.warnings, done.next)
        if how.jq is None:
            write_json(document)
        else:
            write_lines(_jq_line(item, raw=how.raw) for item in _run_jq(how.jq, document))
        return
    _say_warnings(done)
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


def _emit_verbatim(command: str, how: OutputOptions, done: Answer) -> None:
    """Write the envelope, or the rows one a line."""
    restored = str if done.texts is None else done.texts.restore
    if how.format == "json":
        write_json(envelope(command, done.status, done.data, done.page, done.warnings, done.next), restored)
        return
    _say_warnings(done)
    write_lines(restored(ascii_json(row)) for row in _rows(done.data))


def _say_warnings(done: Answer) -> None:
    for warning in done.warnings:
        say(f"ctxmgr: {warning}")


def _says_all(warnings: list[str]) -> bool:
    """Whether a warning says that there is no history at all."""
    if not warnings:
        return False
    from ctxmgr.history.open_history import NOTHING_YET

    return NOTHING_YET in warnings


def _emit_markdown(done: Answer) -> None:
    """Write what people see as Markdown."""
    from ctxmgr.cli.text_formats import markdown_printer

    out = markdown_printer()
    done.draw(out)
    out.finish()


def _say_more_rows(how: OutputOptions, done: Answer) -> None:
    page = done.page
    if how.format == "table" and page is not None and page["nextOffset"] is not None and sys.stderr.isatty():
        about = "" if page["totalIsExact"] else "about "
        say(f"{page['offset'] + 1} to {page['nextOffset']} of {about}{page['total']}; more: --offset {page['nextOffset']}")


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
    """Return a line of what a jq program found; a text without quotes only where no terminal could be steered by it."""
    if not raw or not isinstance(item, str):
        return ascii_json(item)
    from ctxmgr.cli.views.safe_text import safe

    return safe(item, keep_lines=True) if sys.stdout.isatty() else item


def _rows(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, list):
        return cast("list[dict[str, Any]]", data)
    return [] if data is None else [cast("dict[str, Any]", data)]


def _with_fields(data: Any, fields: tuple[str, ...]) -> Any:
    """Return the rows with only the named fields; ``a.b`` reaches into objects, ``a.0`` into lists.

    Raises:
        InvalidInput: no row has such a field.
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
    """Return what a path reaches: names lead into objects, numbers into lists; `_ABSENT` where it leads nowhere."""
    for part in name.split("."):
        if isinstance(row, dict):
            row = cast("dict[str, Any]", row).get(part, _ABSENT)
        elif isinstance(row, list) and part.isascii() and part.isdigit() and len(part) < _MAX_INDEX_DIGITS:
            row = next(iter(cast("list[Any]", row)[int(part) :]), _ABSENT)
        else:
            return _ABSENT
    return row
