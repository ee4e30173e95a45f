"""What an import did, what it did not understand, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.cli.views.formatting import amount, plural, short_ids
from ctxmgr.cli.views.layout import Column, Span
from ctxmgr.cli.views.one_line import compact

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.importing import FileReport, ImportReport

_FEW = 12
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


def show_import(printer: Printer, report: ImportReport) -> None:
    """Show the totals, the files when they are few or something was wrong with them, and what was not understood."""
    if not report.files and not report.unchanged:
        printer.hint("No logs found. Name a file or folder: ctxmgr import PATH")
        return
    read = [file for file in report.files if file.skipped is None or file.records]
    shown = read if len(read) <= _FEW or not printer.terminal else [file for file in read if _wrong(file)]
    if shown:
        names = short_ids(file.session for file in shown) if printer.terminal else {}
        printer.table(_COLUMNS, (_file(printer, file, names.get(file.session, file.session)) for file in shown))
        printer.line()
    changed = ("changed", Span(f"{report.changed:,} (known ids with other content; the first is kept)", "warn"))
    printer.pairs([
        ("files", f"{len(read):,} read, {report.unchanged:,} unchanged since the last import"),
        ("passed over", Span(f"{report.skipped:,} that can't be read as a log", "warn") if report.skipped else None),
        ("other files", f"{report.others:,}" if report.others else None),
        ("sessions", f"{len(report.sessions):,}"),
        ("added", f"{plural(report.added, 'record')}, {plural(report.entries, 'entry')}"),
        ("open calls", Span(f"{report.open_calls:,} without a result", "open") if report.open_calls else None),
        ("known already", f"{report.known:,}" if report.known else None),
        ("left out", f"{report.doubles:,} copies that belong to another session" if report.doubles else None),
        changed if report.changed else ("changed", None),
    ], indent=0)  # fmt: skip
    _trouble(printer, report)
    if report.entries or report.sessions:
        printer.hint("See them: ctxmgr sessions", "Find what is stuck: ctxmgr detect --all-sessions")


def _wrong(file: FileReport) -> bool:
    return bool(file.unknown or file.damaged or file.skipped or file.notes)


def _file(printer: Printer, file: FileReport, name: str) -> list[str | Span]:
    tokens = sum(file.usage.get(key, 0) for key in ("inputTokens", "outputTokens"))
    path = Span(file.path, "warn" if _wrong(file) else "", "end")
    return [
        Span(name, keep="middle"), file.format if printer.terminal else f"{file.format} {file.version}".strip(),
        f"{file.records:,}",
        f"{file.tool_calls:,}", Span(f"{file.failed_calls:,}", "error" if file.failed_calls else "dim"),
        Span(f"{file.open_calls:,}", "open" if file.open_calls else "dim"), amount(tokens) if tokens else "", path,
    ]  # fmt: skip


def _trouble(printer: Printer, report: ImportReport) -> None:
    if report.unknown:
        printer.heading(f"Not understood: {report.not_understood:.2%} of {plural(report.records, 'record')}")
        kinds = sorted(report.unknown.items(), key=lambda item: (-item[1], item[0]))
        printer.table(
            (Column("COUNT", right=True), Column("TYPE", fill=True)), ([f"{n:,}", kind] for kind, n in kinds), indent=2
        )
    if report.damaged:
        printer.heading(f"Damaged: {plural(report.damaged, 'range')} could not be read; everything around is imported")
    told = [(file.path, remark) for file in report.files for remark in _remarks(file)]
    if told:
        printer.heading("About single files")
    before = ""
    for path, remark in told:
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
