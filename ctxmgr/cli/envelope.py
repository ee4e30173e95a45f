"""Output of all commands: the answer with its exit code, the envelope of JSON answers, lines, errors, messages on stderr.

Every command loads this module. It writes answers as JSON or as one line of text; `ctxmgr.cli.output` has the other forms.
"""

from __future__ import annotations

import os
import sys

from ctxmgr.cli.invocation import OUTPUT, at_words, erase_progress, global_options, quiet
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound, StorageFailed
from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Literal

    from ctxmgr.cli.terminal import Printer, ProgressMeter
    from ctxmgr.store import Store
    from ctxmgr.store.row_mapper import LongTexts
    from ctxmgr.types.query import Page

    Status = Literal["ok", "empty", "partial", "error"]
    WriteForm = Callable[[str, "OutputOptions", "Answer"], None]


def envelope(
    command: str,
    status: str,
    data: Any,
    page: dict[str, Any] | None = None,
    warnings: Sequence[str] = (),
    following: Sequence[str] = (),
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the one envelope of all JSON answers (design section 5)."""
    return {
        "schema": "ctxmgr/1", "command": command, "status": status, "data": data, "page": page,
        "warnings": list(warnings), "next": list(following), "error": error,
    }  # fmt: skip


def ascii_json(value: Any, indent: int | None = None) -> str:
    """Return JSON in ASCII, which is safe for any terminal and encoding."""
    if indent is None:
        return fast_json.dumps(value)
    import json

    # JSON does not escape DEL, the one control character in ASCII output.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent, default=str).replace("\x7f", "\\u007f")


def write_json(value: Any, finished: Callable[[str], str] | None = None) -> None:
    """Write a value as JSON in one line, or indented on a terminal. ``finished`` may change the text before it is written."""
    text = ascii_json(value, indent=2 if sys.stdout.isatty() else None)
    write_lines([text if finished is None else finished(text)])


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to stdout."""
    for line in lines:
        sys.stdout.write(line + "\n")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether the words of a command line ask for JSON. Used for errors that occur before the options are parsed."""
    # The words after "--" belong to the command line of another program.
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    named = [own[place + 1] for place, word in enumerate(own[:-1]) if word == "--format"]
    named += [word.removeprefix("--format=") for word in own if word.startswith("--format=")]
    if "--json" in own or "--jq" in own or any(word.startswith("--jq=") for word in own):
        return True
    # The last --format counts, as in the parser.
    return (named[-1] if named else os.environ.get("CTXMGR_FORMAT")) in ("json", "ndjson")


def report_error(command: str, form: str, error: CtxmgrError) -> int:
    """Report an error as JSON or as text, and return its exit code."""
    from ctxmgr.cli.exits import find_exit
    from ctxmgr.errors import NoSession

    if isinstance(error, NoSession):
        error.hint = f"{error.hint}{_as_path(error.named)}"
    error.message, error.hint = without_secrets(error.message) or "", without_secrets(error.hint)
    if form in ("json", "ndjson"):
        body = {"kind": error.kind, "message": error.message, "hint": error.hint, "retryable": error.retryable}
        write_json(envelope(command, "error", None, error=body))
    else:
        say(f"ctxmgr: {error.message}" + (f"\n  {error.hint}" if error.hint else ""), always=True)
    return int(find_exit(error.kind))


def _as_path(named: str) -> str:
    """Return an addition to the hint if the name of a session may be meant as a path. A folder needs ``./`` before its name."""
    if os.path.isdir(named):
        return f"; for the folder of this name write ./{named}"
    return "; there is no file of this name either" if "." in named or os.sep in named else ""


def without_secrets(text: str | None) -> str | None:
    """Return a message with secrets masked: it may quote the command line, and build systems keep output for years."""
    if text is None:
        return None
    from ctxmgr.log.mask_prefilter import mask

    # Encode as JSON first: the masks work on lines of a log, in which quotation marks are escaped.
    line = ascii_json(text).encode("ascii")
    shown = mask(line)
    return text if shown is line else str(fast_json.loads(shown.decode("ascii")))


def say(text: str, *, always: bool = False) -> None:
    """Write a message to stderr, unless ``--quiet`` was given; ``always`` is for errors.

    Every line is filtered. A closed stderr is not an error.
    """
    if global_options.quiet and not always:
        return
    erase_progress()
    from ctxmgr.cli.views.safe_text import safe

    try:
        sys.stderr.write("".join(f"{at_words(safe(line), sys.stderr)}\n" for line in text.split("\n")))
    except UnicodeEncodeError:  # any encoding can hold the escapes of JSON
        sys.stderr.write("".join(f"{ascii_json(safe(line))[1:-1]}\n" for line in text.split("\n")))
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # buffered text would fail again at exit


def tell_session(store: Store, asked: str | None, used: str | None) -> None:
    """Tell a person on stderr which session is used, if the user named none and there are several."""
    # A program finds the session in each row of the answer, and counting sessions costs a query.
    for line in session_choice(store, asked, used) if sys.stderr.isatty() else ():
        say(line)


def session_choice(store: Store, asked: str | None, used: str | None) -> list[str]:
    """Return a line about which session is used, if the user named none and there are several: a warning of a judgement."""
    if asked is not None or used is None or (count := store.sessions.count()) < 2:
        return []
    return [f"session {used} (the latest of {count:,}; --session chooses another)"]


_MIN_GROUPED = 3
"""Minimum number of sessions with the same note for which the note is given once, with their number."""


def group_notes(notes: Iterable[str]) -> list[str]:
    """Return notes, each a session and what is said of it, with those that several sessions share given once."""
    sessions: dict[str, list[str]] = {}
    for line in notes:
        session, _, note = line.partition(": ")
        sessions.setdefault(note, []).append(session)
    return [
        line
        for note, found in sessions.items()
        for line in (
            [f"{name}: {note}" for name in found] if len(found) < _MIN_GROUPED else [f"{len(found):,} sessions: {note}"]
        )
    ]


class IndexProgress:
    """Show the progress of indexing a log. The meter is loaded at the first report."""

    __slots__ = ("_pace",)

    words = ("indexing the log", "MB", 1_000_000)

    def __init__(self) -> None:
        self._pace: ProgressMeter | None = None

    def __call__(self, done: int, total: int) -> None:
        """Report progress, in the unit that ``words`` names, e.g. bytes."""
        if self._pace is None:
            from ctxmgr.cli.terminal import ProgressMeter

            self._pace = ProgressMeter(*self.words)
        self._pace(done, total)


class JudgeProgress(IndexProgress):
    """Show how many sessions have been judged."""

    __slots__ = ()

    words = ("judging sessions", "sessions", 1)


# Fewer records are read before a person notices, so a warning would only disturb.
_MANY_UNINDEXED = 32_768


def slow_search(unindexed: int) -> tuple[list[str], list[str]]:
    """Return (warnings, next commands) for a search that read so many records without the index."""
    if unindexed < _MANY_UNINDEXED:
        return [], []
    read = f"{unindexed:,} records are not indexed for searching, so they are read each time; 'ctxmgr index' indexes them"
    return [read], ["ctxmgr index"]


FORMATS = ("table", "json", "ndjson", "md", "csv", "tsv")


class OutputOptions:
    """How to show the answer: the format, the fields of each row, or a jq program.

    ``raw`` prints strings that the jq program finds without quotes.
    """

    __slots__ = ("fields", "format", "jq", "raw")

    # Written by hand, because a data class takes longer to load than this module.
    def __init__(
        self,
        format: str = "table",  # noqa: A002 -- as the option
        fields: tuple[str, ...] = (),
        jq: str | None = None,
        raw: bool = False,
    ) -> None:
        self.format, self.fields, self.jq, self.raw = format, fields, jq, raw

    @property
    def verbatim(self) -> bool:
        """Whether the rows are written unchanged as JSON."""
        return self.format in ("json", "ndjson") and not self.fields and self.jq is None

    @property
    def draws(self) -> bool:
        """Whether the answer is drawn, for people or as Markdown."""
        return self.format in ("table", "md") and not self.fields

    def check(self) -> None:
        """Refuse output options that can't be met, before any work is done.

        Raises:
            InvalidInput: the format is unknown, or the jq program is faulty.
        """
        if self.format not in FORMATS:
            raise InvalidInput(f"unknown format {self.format!r}", f"formats: {', '.join(FORMATS)}")
        if self.jq is not None:
            compile_jq(self.jq)
        elif self.raw:
            raise InvalidInput("--raw is for what --jq finds", "e.g. --jq '.data[].session' -r")


class Answer:
    """The answer of a command.

    Attributes:
        data: JSON values: a list of rows, or one object.
        draw: shows the answer to people.
        page: the page of the rows as JSON; given as a `Page` or as the arguments of `make_page`.
        next: commands to suggest.
        code: the exit code.
        columns: names of the columns, for answers without rows.
        texts: replaces the marks that rows hold for long texts by those texts, in the lines of output.
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
        self.data, self.status, self.code, self.columns = data, status, code, columns
        self.draw: Callable[[Printer], object] = draw
        self.warnings, self.next = list(warnings), list(next)
        if isinstance(page, tuple):
            from ctxmgr.types.plain_records import make_page

            self.page: dict[str, Any] | None = make_page(*page)
        else:
            self.page = None if page is None else page.to_json()
        self.texts: LongTexts | None = None
        self.line: str | None = None


def output_options(as_json: bool, form: str | None, fields: str | None, jq: str | None, raw: bool = False) -> OutputOptions:
    """Return the output options of a command line. `OutputOptions.check` tells whether they can be met."""
    # A jq program reads the envelope, so it implies JSON.
    chosen = "json" if as_json or jq is not None else form or os.environ.get("CTXMGR_FORMAT") or "table"
    return OutputOptions(chosen, tuple(name.strip() for name in (fields or "").split(",") if name.strip()), jq, raw)


def take_output_options(values: dict[str, Any]) -> OutputOptions:
    """Remove the output options from the values of a command line and return them as `OutputOptions`."""
    return output_options(*(values.pop(name) for name in OUTPUT))


def end(code: int) -> None:
    """End a command with this exit code."""
    if code:
        from ctxmgr.cli.declarations import Exit

        raise Exit(code)


def show_answer(command: str, how: OutputOptions, work: Callable[[], Answer], write: WriteForm, *, writes: bool) -> int:
    """Do the work of a command and show its answer or the error; return the exit code.

    ``write`` writes all other forms than JSON and one line of text, see `ctxmgr.cli.output.write_form`.
    """
    # Check first: a command that writes must not find out afterwards that its answer can't be shown.
    try:
        how.check()
        done = work()
    except CtxmgrError as error:
        return report_error(command, how.format, error)
    except OSError as error:
        if error.filename is None:  # our own output failed, not the work
            raise
        return report_error(command, how.format, file_error(error))
    finally:
        erase_progress()
    try:
        _emit(command, how, done, write)
    except BrokenPipeError:
        quiet(int(done.code))  # the exit code stays that of the answer, although the reader has closed the pipe
    except CtxmgrError as error:
        # A faulty --fields or --jq may show only now. Say that the work is done: repeating the command would write twice.
        hint = f"the command itself is done; {error.hint}" if writes else error.hint
        return report_error(command, how.format, InvalidInput(error.message, hint))
    return int(done.code)


def file_error(error: OSError) -> CtxmgrError:
    """Return the error to report for a file of the command line that can't be used: there is none, or the system refuses."""
    reason = f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NotFound(reason, "check the path")
    return StorageFailed(reason, "check it, and its permissions")


def _emit(command: str, how: OutputOptions, done: Answer, write: WriteForm) -> None:
    if how.verbatim:
        _emit_verbatim(command, how, done)
        return
    if done.line is not None and how.format == "table" and not how.fields and not sys.stdout.isatty():
        say_warnings(done.warnings)
        write_lines([done.line])
        return
    write(command, how, done)


def _emit_verbatim(command: str, how: OutputOptions, done: Answer) -> None:
    """Write the envelope, or one row per line."""
    restored = str if done.texts is None else done.texts.restore
    if how.format == "json":
        write_json(envelope(command, done.status, done.data, done.page, done.warnings, done.next), restored)
        return
    say_warnings(done.warnings)
    write_lines(restored(ascii_json(row)) for row in as_rows(done.data))
    say_more_rows(done)


def say_warnings(lines: Iterable[str]) -> None:
    """Write each warning as a message of its own."""
    for line in lines:
        say(f"ctxmgr: {line}")


def say_more_rows(done: Answer) -> None:
    """Say which rows these are and how to get more, if there are more: the form of the answer does not hold its page."""
    page = done.page
    if page is not None and page["nextOffset"] is not None:
        about = "" if page["totalIsExact"] else "about "
        say(f"{page['offset'] + 1} to {page['nextOffset']} of {about}{page['total']}; more: --offset {page['nextOffset']}")


def as_rows(data: Any) -> list[dict[str, Any]]:
    """Return the data of an answer as rows."""
    if isinstance(data, list):
        return cast("list[dict[str, Any]]", data)
    return [] if data is None else [cast("dict[str, Any]", data)]


def compile_jq(expression: str) -> Any:
    """Return a jq program.

    Raises:
        InvalidInput: it is faulty, or there is no jq.
    """
    try:
        import jq
    except ImportError:  # not every platform has a wheel of jq
        raise InvalidInput("--jq needs the package jq, which is not installed here", "pip install jq") from None
    try:
        return cast("Any", jq).compile(expression)
    except ValueError as error:
        raise InvalidInput(f"--jq {expression!r}: {str(error).splitlines()[0]}", "see the jq manual") from None
