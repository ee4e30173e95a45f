"""``import``, ``formats``, ``export`` and ``verify``: read and write logs, and check a history for damage."""

from __future__ import annotations

import os
import shlex
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import locate_log, require_files
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, OutputOptions, answer, answer_without_store, resolve, resolve_place, say
from ctxmgr.cli.terminal import ProgressMeter, search_progress
from ctxmgr.cli.views.layout import Column, Span, amount, compact, plural, short_ids
from ctxmgr.errors import InvalidInput, NoHistory, StorageFailed
from ctxmgr.exporters import EXPORTERS
from ctxmgr.exporters.conversation import build_conversation
from ctxmgr.history.formats import OWN_FORMAT, format_views
from ctxmgr.history.ingest import require_logs
from ctxmgr.history.query.address import session_key
from ctxmgr.log import anchor, codec
from ctxmgr.store.project_session import untrusted_message
from ctxmgr.types.import_report import NOT_UNDERSTOOD, ImportReport, list_first_names, lost_records
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.import_report import FileReport, FormatView


_FORMATS = tuple(exporter.name for exporter in EXPORTERS)


def import_(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Logs, folders, or the database of a LangGraph saver; else all logs on this machine."
        ),
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Only this format; 'ctxmgr formats' lists them.")
    ] = None,
    mask: Annotated[bool, typer.Option("--mask/--no-mask", help="Mask secrets before anything is written.")] = True,
    trust_project: o.TrustProject = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Import the logs that agents leave on disk; run it again at any time to add what is new.

    With the URL of a database, the checkpoints that LangGraph's PostgresSaver keeps there are read. The password belongs in
    ~/.pgpass.

    Exit codes: 2 no log at the paths, 8 a file was passed over or brought nothing, or more than 2 % was not understood.

    Examples:
      ctxmgr import
      ctxmgr import ~/.claude/projects/my-project
      ctxmgr import rollout.jsonl --from codex --json
      ctxmgr import postgresql://me@db.example.com/app
    """
    searching = search_progress()
    if paths:  # before a store is created for nothing
        resolve("import", how, require_files, paths)
        resolve("import", how, require_logs, paths, from_, searching)

    def work(workspace: Workspace) -> Answer:
        report = workspace.import_logs(
            paths or None,
            only=from_,
            trust_project=trust_project,
            progress=ProgressMeter("importing", "MB", 1_000_000),
            indexing=ProgressMeter("indexing for search", "records", 1),
            searching=searching,
        )
        # A named log without a session was read for nothing, whatever its format.
        nothing = bool(paths) and not report.sessions and not report.unchanged
        partial = report.not_understood > NOT_UNDERSTOOD or report.skipped > 0 or nothing
        empty = not report.files and not report.unchanged
        return Answer(
            report.to_json(),
            lambda out: show_import(out, report, store),
            "partial" if partial else "empty" if empty else "ok",
            warnings=[*_warnings(report), *(["nothing in what was named could be read"] if nothing else [])],
            next=["ctxmgr sessions", "ctxmgr detect --all-sessions"] if report.sessions else [],
            code=Exit.PARTIAL if partial else Exit.OK,
        )

    answer("import", how, work, store=store, create=True, masked=mask)


def _warnings(report: ImportReport) -> list[str]:
    lines = [untrusted_message(report.untrusted)] if report.untrusted else []
    if report.skipped:
        lines.append(f"passed over: {report.skipped:,} that can't be read as a log")
    return lines


def export(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; else stdout.")
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"{OWN_FORMAT}, {', '.join(_FORMATS)}.")] = OWN_FORMAT,
    target: o.Target = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    store: o.Store = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON envelope about what was written; needs -o.")] = False,
) -> None:
    """Write history as a log of format 1: nothing is lost, and any ctxmgr reads it in place. Or write another format.

    Fields that another format can't hold are listed on stderr, and with --json under losses.

    Examples:
      ctxmgr export --all-sessions -o history.jsonl
      ctxmgr export rollout.jsonl -o run.jsonl
      ctxmgr export --session 01a1ffcb --format atif -o trajectory.json
    """
    how = OutputOptions("json" if json_ else "table")
    session, store = resolve_place("export", how, target, session, store)
    output = None if output == Path("-") else output

    def work(workspace: Workspace) -> Answer:
        if json_ and output is None:
            raise InvalidInput("--json tells of what was written into a file", "name the file with --output")
        losses: Counter[str] = Counter()
        key = None if all_sessions else session_key(workspace.store, session)
        # Closes the generator in any case, so that a half-read answer outlives neither an error nor the store.
        with closing(_lines(workspace, _keys(key, every=all_sessions), form, losses)) as lines:
            written = _write(lines, output, sealed=form == OWN_FORMAT)
        missing = [f"{form} has no place for {count} x {name}" for name, count in sorted(losses.items()) if count]
        for line in [] if json_ else missing:
            say(f"ctxmgr: {line}")
        if output is not None and not json_:
            say(f"{written} {'records' if form == OWN_FORMAT else 'lines'} written to {output}")
        data = {"records": written, "format": form, "losses": {name: count for name, count in sorted(losses.items()) if count}}
        return Answer(data, lambda out: None, warnings=missing if json_ else [])

    answer("export", how, work, store=store)


def _keys(key: int | None, *, every: bool) -> list[int | None]:
    """Return the keys of the sessions to write. None stands for the whole history."""
    return [None] if every else [] if key is None else [key]


def _lines(workspace: Workspace, keys: Sequence[int | None], form: str, losses: Counter[str]) -> Generator[bytes]:
    """Yield the lines of sessions in a format."""
    if form == OWN_FORMAT:
        for key in keys:
            yield from _lines_with_sums(workspace.store.sessions.records(key))
        return
    exporter = next((each for each in EXPORTERS if each.name == form), None)
    if exporter is None:
        raise InvalidInput(f"unknown format {form!r}", f"formats to write: {OWN_FORMAT}, {', '.join(_FORMATS)}")
    # A file of another format holds one session, so a whole history is written session by session.
    for key in keys if None not in keys else [each for each, _ in workspace.store.sessions.page(0, None)]:
        if key is not None:
            session = workspace.store.sessions.name(key)
            for line in exporter.write(build_conversation(session, workspace.store.sessions.records(key)), losses):
                yield line.encode()


def _write(lines: Iterator[bytes], output: Path | None, *, sealed: bool) -> int:
    """Write lines and return their number. A file appears only when it is complete; one of our own format gets an anchor."""
    if output is None:
        return sum(1 for line in lines if sys.stdout.write(line.decode("ascii") + "\n"))
    # Check first, so that nobody waits for an export that is refused at its end.
    if output.exists():
        raise _exists(output)
    # Shortened, because file systems limit names to 255 bytes. The process id keeps concurrent exports apart.
    part = output.with_name(f".{output.name[:200]}.{os.getpid()}.part")
    try:
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageFailed(f"can't write {output}: {error.strerror}", "choose another place") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            written = 0
            for line in lines:
                stream.write(line + b"\n")
                written += 1
            stream.flush()
            # Sync before the file gets its name, so that it can't be empty after a power failure.
            os.fsync(stream.fileno())
        _name_new(part, output)
        if sealed:
            # The anchor notes outside the log where it ends, so that `verify` can later tell whether the log was cut.
            anchor.store_empty(str(output))
    except FileExistsError:
        raise _exists(output) from None
    except OSError as error:
        raise StorageFailed(f"can't write {output}: {error.strerror}", "choose another place") from None
    finally:
        part.unlink(missing_ok=True)
    return written


def _exists(output: Path) -> InvalidInput:
    return InvalidInput(f"{output} exists already", "name a new file: export never overwrites")


def _name_new(part: Path, output: Path) -> None:
    """Give a file its name, unless another file has got that name in the meantime.

    Raises:
        FileExistsError: another file has it. OSError: the system refuses.
    """
    try:
        os.link(part, output)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: reserve the name first, then replace it
        os.close(os.open(output, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        part.rename(output)


def _lines_with_sums(records: Iterator[codec.Record]) -> Iterator[bytes]:
    # Compute new checksums: they cover the previous record, which differs if the order changes or one session is exported.
    total = ""
    for record_ in records:
        body = codec.encode({key: value for key, value in record_.items() if key != "sum"})
        total = codec.chain(total, body)
        yield codec.seal(body, total)


def verify(
    log: o.Log = None,
    store: o.Store = None,
    *,
    accept: Annotated[bool, typer.Option("--accept", help="Accept the present history as complete.")] = False,
    how: OutputOptions,
) -> None:
    """Check every record against its checksum, and the end of the history against a note kept outside it.

    It lists what it could check and what it could not. Each fault has a kind: unreadable, altered, inserted, unsummed or cut.
    Nothing of the history is changed. A restored backup looks cut: --accept ends that.

    Exit codes: 0 sound, 3 there is nothing to check, 5 damaged.

    Examples:
      ctxmgr verify
      ctxmgr verify history.jsonl
    """
    store = resolve("verify", how, locate_log, log, store)

    def work(workspace: Workspace) -> Answer:
        # Before the check, so that the check finds the history whole.
        if accept:
            workspace.store.accept()
        found = workspace.store.examine()
        # The warnings at opening are repeated below, with their places.
        workspace.warnings.clear()
        if not found.records and not found.damaged:
            raise NoHistory(hint="nothing was read, so nothing was checked; name a log or a store")
        rows: list[dict[str, Any]] = [
            {"kind": item.kind, "offset": item.offset, "length": item.length, "reason": item.reason} for item in found.damaged
        ]
        data = {"records": found.records, "damaged": rows, "checked": found.checked, "unchecked": found.unchecked}

        def draw(out: Printer) -> None:
            out.line(f"{found.records} records checked, {len(rows)} damaged ranges")
            for row in rows:
                out.line(f"{row['kind']}: offset {row['offset']}, {row['length']} bytes: {row['reason']}", indent=2)
            for text in found.checked:
                out.line(f"checked: {text}", indent=2, hang=2)
            for text in found.unchecked:
                out.line(f"not checked: {text}", indent=2, hang=2)

        status = "partial" if rows else "ok"
        return Answer(data, draw, status, code=Exit.STORE if rows else Exit.OK)

    # `damaged`: this command must also report on a log without a readable record.
    answer("verify", how, work, store=store, damaged=True)


_MAX_FILES_IN_FULL = 12
# Counts to add up for a session with one file per event. The other fields come from the first file.
_SUMMED = ("records", "tool_calls", "failed_calls", "open_calls")
_COLUMNS = (
    Column("SESSION", give=2, least=8),
    Column("FORMAT", give=5, least=6, optional=True),
    Column("RECORDS", right=True),
    Column("CALLS", right=True),
    Column("FAILED", right=True),
    Column("OPEN", right=True),
    Column("TOKENS", right=True, give=6, least=6, optional=True),
    Column("FILE", fill=True, least=16),
)


def show_import(printer: Printer, report: ImportReport, store: str | None = None) -> None:
    """Show the totals, the files if there are few or they had problems, and the record types that were not understood.

    ``store`` is the store that the user named, for the suggested commands.
    """
    if not report.files and not report.unchanged:
        printer.hint("No logs found. Name a file or folder: ctxmgr import PATH")
        return
    read = [file for file in report.files if file.skipped is None or file.records]
    rows = _by_session(read)
    # Of many files, a person needs to see only those with problems. A program gets all.
    shown = rows if len(rows) <= _MAX_FILES_IN_FULL or not printer.terminal else [file for file in rows if _has_failed(file)]
    if shown:
        names = short_ids(file.session for file in shown) if printer.terminal else {}
        printer.table(_COLUMNS, (_file(printer, file, names.get(file.session, file.session)) for file in shown))
        printer.line()
    changed = ("changed", Span(f"{report.changed:,} (known ids with other content; the first is kept)", "warn"))
    printer.pairs([
        ("files", f"{len(read):,} read, {report.unchanged:,} unchanged since the last import"),
        ("passed over", Span(f"{report.skipped:,} that can't be read as a log", "warn") if report.skipped else None),
        ("no logs", f"{report.others:,}: {list_first_names(report.other_files, report.others)}" if report.others else None),
        ("sessions", f"{len(report.sessions):,}"),
        ("added", f"{plural(report.added, 'record')}, {plural(report.entries, 'entry')}"),
        ("open calls", Span(f"{report.open_calls:,} without a result", "open") if report.open_calls else None),
        ("known already", f"{report.known:,}" if report.known else None),
        ("left out", f"{report.doubles:,} copies that belong to another session" if report.doubles else None),
        changed if report.changed else ("changed", None),
    ], indent=0)  # fmt: skip
    _trouble(printer, report)
    if report.entries or report.sessions:
        at = f" --store {shlex.quote(store)}" if store else ""
        printer.hint(f"See them: ctxmgr sessions{at}", f"Find what is stuck: ctxmgr detect --all-sessions{at}")


def _by_session(files: list[FileReport]) -> list[FileReport]:
    """Return one report per session. For a session with one file per event, the later files name no session."""
    rows: list[FileReport] = []
    more = 0
    for file in files:
        more = 0 if file.session or not rows or not rows[-1].session else more + 1
        if not more:
            rows.append(file)
            continue
        first, last = f"{rows[-1].path.removesuffix(f' and {more - 1:,} more')} and {more:,} more", rows[-1]
        sums = {name: getattr(last, name) + getattr(file, name) for name in _SUMMED}
        rows[-1] = last.model_copy(update={**sums, "path": first, "usage": dict(Counter(last.usage) + Counter(file.usage))})
    return rows


def _has_failed(file: FileReport) -> bool:
    return bool(file.unknown or file.damaged or file.skipped or file.notes)


def _file(printer: Printer, file: FileReport, name: str) -> list[str | Span]:
    tokens = sum(file.usage.get(key, 0) for key in ("inputTokens", "outputTokens"))
    path = Span(file.path, "warn" if _has_failed(file) else "", "end")
    return [
        Span(f"{file.sessions:,} sessions" if file.sessions > 1 else name, keep="middle"),
        file.format if printer.terminal else f"{file.format} {file.version}".strip(),
        f"{file.records:,}",
        f"{file.tool_calls:,}", Span(f"{file.failed_calls:,}", "error" if file.failed_calls else "dim"),
        Span(f"{file.open_calls:,}", "open" if file.open_calls else "dim"), amount(tokens) if tokens else "", path,
    ]  # fmt: skip


def _trouble(printer: Printer, report: ImportReport) -> None:
    if report.unknown:
        # The share counts damaged records too, so they stand in the table.
        lost = lost_records(report.files)
        rows = report.unknown | ({"(damaged)": lost} if lost else {})
        printer.heading(f"Not understood: {report.not_understood:.2%} of {plural(report.records + lost, 'record')}")
        # The most frequent first, because a changed format shows in them.
        kinds = sorted(rows.items(), key=lambda item: (-item[1], item[0]))
        printer.table(
            (Column("COUNT", right=True), Column("TYPE", fill=True)), ([f"{n:,}", kind] for kind, n in kinds), indent=2
        )
    if report.damaged:
        printer.heading(f"Damaged: {plural(report.damaged, 'range')} could not be read; everything around is imported")
    remarks = [(file.path, remark) for file in report.files for remark in _remarks(file)]
    if remarks:
        printer.heading("About single files")
    before = ""
    for path, remark in remarks:
        if not printer.terminal:
            printer.line(Span(path, "warn"), f"  {remark}", indent=2)
            continue
        if path != before:
            printer.line(Span(printer.fit(path, printer.width - 2, "end"), "warn"), indent=2)
        printer.line(remark, indent=4, hang=2)
        before = path


def _remarks(file: FileReport) -> list[str]:
    remarks = [
        f"damaged: {damage.get('length')} bytes at {damage.get('offset')}: {damage.get('reason')}"
        if "offset" in damage
        else f"damaged: {compact(damage)}"
        for damage in file.damaged
    ]
    return [*remarks, *([f"skipped: {file.skipped}"] if file.skipped else []), *file.notes]


def formats(*, how: OutputOptions) -> None:
    """List the formats that can be read, where each agent keeps its logs, and what these contain.

    A log is recognised by its content, not its name; it may be compressed. Where a format has no errors or no times, loops are
    found by the results of calls, and stalls are not judged.

    Examples:
      ctxmgr formats
      ctxmgr formats --json
    """

    def work() -> Answer:
        rows = format_views()
        return Answer([row.to_json() for row in rows], lambda out: show_formats(out, rows))

    answer_without_store("formats", how, work)


_FORMAT_COLUMNS = ("calls", "results", "errors", "open", "usage", "agents", "times")
_FORMAT_GAP = "  "


def show_formats(printer: Printer, rows: Sequence[FormatView]) -> None:
    """Show every format, with yes or no for each kind of content that its logs may have."""
    width = max(len(row.name) for row in rows)
    titles = _FORMAT_GAP.join(name.ljust(len(name)) for name in _FORMAT_COLUMNS)
    printer.line(Span("format".ljust(width) + _FORMAT_GAP + titles, "dim"))
    for row in rows:
        covered = (row.calls, row.results, row.errors, row.open_calls, row.usage, row.sub_agents, row.times)
        cells = _FORMAT_GAP.join(
            ("yes" if yes else "no").ljust(len(name)) for name, yes in zip(_FORMAT_COLUMNS, covered, strict=True)
        )
        named = row.name.ljust(width) + _FORMAT_GAP + cells
        # A title of two words must not be parted at the end of a line.
        apart = printer.terminal and len(named) + len(_FORMAT_GAP) + printer.cells(row.title) > printer.width
        printer.line(named, *([] if apart else [_FORMAT_GAP, Span(row.title, "dim")]))
        if apart:
            printer.line(" " * (width + 2), Span(row.title, "dim"), hang=width + 4)
        for place in row.places:
            printer.line(" " * (width + 2), Span(place, "dim"), hang=width + 4)
