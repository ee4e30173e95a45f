"""Import foreign logs into a store, and report what was not understood.

Imports are idempotent and incremental: an unchanged file is not read again, and a grown file or database adds only new
records. One session is one transaction; a log of our own format takes several, in order. So a killed import leaves complete
sessions, or the beginning of a log, and can simply be run again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.base.paths import is_url
from ctxmgr.clients import with_waits
from ctxmgr.errors import InvalidInput, StorageFailed
from ctxmgr.history.formats import (
    FORMATS,
    IMPORTERS,
    OWN_FORMAT,
    Others,
    Searching,
    Skipped,
    file_report,
    recognise_logs,
    session_files,
    unread_report,
)
from ctxmgr.history.own_log import Heard, OwnCount, own_lines, take_blocks
from ctxmgr.importers.base import Importer
from ctxmgr.importers.langgraph import CHANNELS, LANGGRAPH_ROWS
from ctxmgr.log.codec import Record, encode
from ctxmgr.log.json_value import fit_field
from ctxmgr.log.reader import Line
from ctxmgr.store import AppendResult, Store
from ctxmgr.store.engine.foreign_tables import CheckpointTables, open_checkpoints
from ctxmgr.store.engine.postgresql_url import printable_location
from ctxmgr.store.project_session import PROJECT, untrusted_message
from ctxmgr.store.repositories.bookkeeping import FileState
from ctxmgr.store.write.bulk import RowBatch
from ctxmgr.types.import_report import FileCount, FileReport, ImportReport, lost_records
from ctxmgr.types.record import check

_T = TypeVar("_T")


_PART = 10_000
"""Records of our own format per transaction. With other formats, a transaction is a whole session."""

Progress = Callable[[int, int, Path], None]
"""Called with (bytes done, bytes in all, the file being read)."""


@dataclass(slots=True)
class _Group:
    counts: list[FileCount] = field(default_factory=lambda: list[FileCount]())
    appended: AppendResult = field(default_factory=AppendResult)
    sessions: dict[str, None] = field(default_factory=lambda: dict[str, None]())
    untrusted: int = 0

    def meet(self, session: str) -> None:
        """Add a session."""
        self.sessions[session] = None


@dataclass(frozen=True, slots=True)
class FoundLogs:
    """The logs at some paths.

    Attributes:
        logs: one file of each log.
        passed: files that look like logs but have no known format.
        others: all other files in folders.
    """

    logs: list[Path]
    passed: list[FileReport]
    others: Others


@dataclass(slots=True)
class _Totals:
    files: list[FileReport] = field(default_factory=lambda: list[FileReport]())
    appended: AppendResult = field(default_factory=AppendResult)
    sessions: dict[str, None] = field(default_factory=lambda: dict[str, None]())
    unchanged: int = 0
    untrusted: int = 0
    others: Others = field(default_factory=Others)

    def add(self, reports: Sequence[FileReport], done: _Group) -> None:
        """Add the result of a session's files."""
        self.files += reports
        self.appended.plus(done.appended)
        self.sessions.update(done.sessions)
        self.untrusted += done.untrusted


def import_logs(
    store: Store,
    paths: Sequence[Path | str] | None,
    *,
    home: Path,
    environment: Mapping[str, str],
    only: str | None = None,
    trust_project: bool = False,
    progress: Progress | None = None,
    indexing: Callable[[int, int], None] | None = None,
    searching: Searching | None = None,
) -> ImportReport:
    """Import the logs at ``paths`` (files or folders), or all that the known agents keep on this machine.

    A foreign log is evidence of what was done, and must not change the rules here. So records of the project's own state
    (access rules, artifacts, versions) are left out and counted, unless ``trust_project`` is true.

    Args:
        store: the store to import into.
        paths: files or folders, or URLs of databases with checkpoints of LangGraph's ``PostgresSaver``; None finds the logs
            on this machine.
        home: the user's home folder.
        environment: the environment of the process, which may name other folders for an agent's logs.
        only: the name of the one format to look for.
        trust_project: import the project's own state too, for example to move a whole store.
        progress: called for each file, and repeatedly within long files.
        indexing: called with (places done, places in all) while the new records are indexed for search.
        searching: called while folders are searched for logs.

    Raises:
        InvalidInput: an unknown format name, or no log of a known format at any of the paths.
        NotFound, StorageFailed: a named path does not exist, or can't be read.
        Denied, Busy: a database can't be read, or not at present.
    """
    importers = _chosen_importers(only)
    skipped = Skipped()
    named, urls = _split_urls(paths or (), only)
    if paths is None:
        chosen = _discover(importers, home, environment)
    else:
        chosen = recognise_logs(importers, named, only, skipped, searching)
    totals = _Totals(skipped.files, others=skipped.others)
    work: list[tuple[Importer | None, list[Path]]] = []
    for importer, files in chosen:
        # Read all files of a session, whichever of them is named. A sub-agent without its main log would be half a run.
        groups = importer.groups(_add_companions(importer, files)) if importer else [[path] for path in files]
        work += [(importer, group) for group in groups]
    done, total = 0, sum(_group_size(group) for _, group in work)
    for importer, group in work:
        on_bytes = progress and partial(_report_bytes, progress, done, total, group[0])
        if on_bytes is not None:
            on_bytes(0)
        _import_group(store, importer, group, totals, on_bytes, trusted=trust_project)
        done += _group_size(group)
    for url in urls:
        with open_checkpoints(url, CHANNELS) as tables:
            _import_threads(store, tables, url, totals, progress)
    if totals.appended.added:
        store.index(indexing)
    return _report(totals)


def _split_urls(paths: Sequence[Path | str], only: str | None) -> tuple[list[Path], list[str]]:
    """Return (paths, URLs)."""
    urls = [path for path in paths if isinstance(path, str) and is_url(path)]
    if urls and only not in (None, LANGGRAPH_ROWS.name):
        raise InvalidInput(
            f"{printable_location(urls[0])} can't be read as {only}",
            f"a URL is read as {LANGGRAPH_ROWS.name}: leave --from out",
        )
    return [Path(path) for path in paths if path not in urls], urls


def _group_size(group: Sequence[Path]) -> int:
    """Return the total size of files in bytes. A missing file counts as empty."""
    return sum(path.stat().st_size for path in group if path.exists())


def _report_bytes(progress: Progress, before: int, total: int, path: Path, done: int) -> None:
    progress(before + done, total, path)


def _discover(
    importers: Sequence[Importer], home: Path, environment: Mapping[str, str]
) -> list[tuple[Importer | None, list[Path]]]:
    found: list[tuple[Importer | None, list[Path]]] = []
    for importer in importers:
        files = sorted(path for path in importer.discover(home, environment) if path.is_file())
        if files:
            found.append((importer, files))
    return found


def require_logs(paths: Sequence[Path | str], only: str | None = None, searching: Searching | None = None) -> None:
    """Check that there is a log to import at ``paths``, by the beginning of the files.

    Raises:
        InvalidInput, NotFound, StorageFailed, Denied, Busy: as `import_logs`.
    """
    importers = _chosen_importers(only)
    files, urls = _split_urls(paths, only)
    recognise_logs(importers, files, only, Skipped(), searching)
    for url in urls:
        with open_checkpoints(url, CHANNELS):
            """Opening raises if the database can't be read."""


def find_logs(paths: Sequence[Path], searching: Searching | None = None) -> FoundLogs:
    """Return one file of each log at ``paths``, and the skipped files. Folders are searched.

    The files of one session (a run and its sub-agents) are one log: opening any of them reads all.

    Raises:
        InvalidInput, NotFound, StorageFailed: as `import_logs`.
    """
    skipped = Skipped()
    logs: list[Path] = []
    for importer, files in recognise_logs(_chosen_importers(None), paths, None, skipped, searching):
        if importer is None:
            logs += files
            continue
        for group in importer.groups(_add_companions(importer, files)):
            # The main log leads to the logs of its sub-agents, but these need not lead back.
            logs.append(max(group, key=lambda file, of=importer: len(session_files(of, file))))
    return FoundLogs(sorted(logs), [report for report in skipped.files if report.skipped], skipped.others)


def _chosen_importers(only: str | None) -> list[Importer]:
    if only is not None and only not in FORMATS:
        raise InvalidInput(f"unknown log format {only!r}", f"known formats: {', '.join(FORMATS)}")
    return [importer for importer in IMPORTERS if only in (None, importer.name)]


def _add_companions(importer: Importer, files: Iterable[Path]) -> list[Path]:
    found: dict[Path, None] = {}
    for path in files:
        found[path] = None
        found.update(dict.fromkeys(importer.companions(path)))
    return list(found)


def _import_group(
    store: Store, importer: Importer | None, group: Sequence[Path], totals: _Totals, on_bytes: Heard | None, *, trusted: bool
) -> None:
    """Import the files of one session in one transaction. A missing or unreadable file is reported."""
    name = importer.name if importer else OWN_FORMAT
    try:
        # Taken before reading: if something is appended meanwhile, the file counts as changed next time.
        states = [FileState.read(path) for path in group]
        if all(store.imported.is_unchanged(path, state) for path, state in zip(group, states, strict=True)):
            totals.unchanged += len(group)
            return
        done = _append_group(store, importer, group, on_bytes, trusted=trusted)
    except OSError as error:
        totals.files.append(unread_report(group[0], error))
        return
    # Only a log of our own may hold several sessions.
    sessions = 1 if importer else len(done.sessions)
    reports = [file_report(count, name).model_copy(update={"sessions": sessions}) for count in done.counts]
    if not done.untrusted:  # else an import with --trust-project would skip the file later
        with store.engine.transaction():
            for path, state, report in zip(group, states, reports, strict=False):
                store.imported.remember(path, name, state, report.session, report.to_json())
    totals.add(reports, done)


def _import_threads(store: Store, tables: CheckpointTables, url: str, totals: _Totals, progress: Progress | None) -> None:
    """Import each thread of a checkpoint saver in a transaction of its own, through a temporary file with its rows."""
    place = printable_location(url)
    threads = tables.threads()
    done, total = 0, sum(size for _, size in threads)
    for thread, size in threads:
        if progress is not None:
            progress(done, total, Path(place))
        # A file, so that the importer for exported rows can be used here too.
        with TemporaryDirectory(prefix="ctxmgr-") as folder:
            file = Path(folder, "checkpoint_writes.jsonl")
            try:
                with file.open("w") as stream:
                    stream.writelines(f"{json.dumps(row)}\n" for row in tables.rows(thread))
            except OSError as error:
                raise StorageFailed(f"can't write {file}: {error.strerror}", "make room there, or set TMPDIR") from None
            group = _append_group(store, LANGGRAPH_ROWS, [file], None, trusted=False)
        totals.add([file_report(count, LANGGRAPH_ROWS.name, place=place) for count in group.counts], group)
        done += size
    if progress is not None:
        progress(done, total, Path(place))


def import_session(
    store: Store, importer: Importer, group: Sequence[Path], progress: Callable[[int, int], None] | None = None
) -> None:
    """Import the files of one session, without indexing them for search.

    Args:
        store: the store to import into.
        importer: the importer of their format.
        group: the files.
        progress: called with (bytes read, bytes in all).

    Raises:
        OSError: a file can't be read.
    """
    totals, total = _Totals(), _group_size(group)
    if progress is not None:
        progress(0, total)
    _import_group(store, importer, group, totals, None, trusted=False)
    for report in totals.files:
        if report.skipped:
            raise OSError(None, report.skipped, report.path)


def _append_group(
    store: Store, importer: Importer | None, group: Sequence[Path], on_bytes: Heard | None, *, trusted: bool
) -> _Group:
    """Append the records of one session's files.

    Raises:
        OSError: a file can't be read.
    """
    done = _Group()
    try:
        _append(store, importer, group, done, on_bytes, careful=False, trusted=trusted)
    except InvalidInput:  # rarely, a record can't be stored as it is: repeat carefully
        _append(store, importer, group, done, on_bytes, careful=True, trusted=trusted)
    if done.untrusted:
        done.counts[-1].notes.append(untrusted_message(done.untrusted))
    return done


def _append(
    store: Store,
    importer: Importer | None,
    group: Sequence[Path],
    done: _Group,
    on_bytes: Heard | None,
    *,
    careful: bool,
    trusted: bool,
) -> None:
    done.counts.clear()
    done.untrusted = 0
    if importer is not None:
        # Hooks record when a client waits for a person, but its log does not. Without them, such a wait would look like a hang.
        records = with_waits(importer.name, importer.read(group, done.counts))
        if careful:
            records = _storable(records, done.counts)
        done.appended = store.append(
            _drop_project_state(records, done, _itself, trusted=trusted), on_conflict="keep", doubles=True
        )
        return
    # Records written by the first attempt are "known" to the second one, but this import has added them.
    done.appended = AppendResult(added=done.appended.added, known=-done.appended.added)
    own = OwnCount(group[0])
    done.counts.append(own.count)
    end, last = (0, "") if careful else _append_blocks(store, own, done, on_bytes, trusted=trusted)
    lines = _drop_project_state(own_lines(own, on_bytes, end, last), done, _make_record, trusted=trusted)
    for first in lines:
        part = chain((first,), islice(lines, _PART - 1))  # one transaction each, which an interrupted import keeps
        if careful:
            storable = _storable((line.record for line in part), done.counts)
            done.appended.plus(store.append(storable, on_conflict="keep"))
        else:
            done.appended.plus(store.append_lines(part, on_conflict="keep"))


def _append_blocks(store: Store, own: OwnCount, done: _Group, on_bytes: Heard | None, *, trusted: bool) -> tuple[int, str]:
    """Append as much of a long log as possible in blocks. Return the offset of the rest, and the checksum before it."""
    writer = store.bulk() if own.is_long else None
    if writer is None:
        return 0, ""

    def slowly(block: RowBatch) -> AppendResult:
        lines = own_lines(own, None, block.start, block.before, block.end)
        return store.append_lines(_drop_project_state(lines, done, _make_record, trusted=trusted), on_conflict="keep")

    reached = 0, ""
    for written, place in take_blocks(store, writer, own, slowly, done.meet, on_bytes):
        done.appended.plus(written)
        reached = place
    return reached


def append_foreign(store: Store, records: Iterable[Record], count: FileCount) -> AppendResult:
    """Append records that an importer read from a running program, in one transaction and without the project's own state.

    Args:
        store: the store to append to.
        records: records of any sessions.
        count: counts the records that can't be stored.

    Raises:
        StorageFailed, Busy: nothing was written.
    """
    ours = _drop_project_state(_storable(records, [count]), _Group(), _itself, trusted=False)
    return store.append(ours, on_conflict="keep", doubles=True)


def _itself(record: Record) -> Record:
    return record


def _make_record(line: Line) -> Record:
    return line.record


def _drop_project_state(items: Iterable[_T], done: _Group, record_of: Callable[[_T], Record], *, trusted: bool) -> Iterator[_T]:
    """Yield the items without the project's own state, unless the log is trusted. Collect the sessions."""
    last: object = None
    for item in items:
        session = record_of(item)["session"]
        if session == PROJECT and not trusted:
            done.untrusted += 1
            continue
        if session != last:
            done.meet(str(session))
            last = session
        yield item


def _storable(records: Iterable[Record], counts: list[FileCount]) -> Iterator[Record]:
    """Yield records that can be stored. Values that are too long are shortened; invalid records are left out and counted."""
    for record in records:
        try:
            encode(check(record))
        except InvalidInput:
            record = {name: fit_field(value) for name, value in record.items()}
            try:
                encode(check(record))
            except InvalidInput as error:
                counts[-1].unknown[error.message] += 1
                continue
        yield record


def _report(totals: _Totals) -> ImportReport:
    unknown: Counter[str] = Counter()
    for report in totals.files:
        unknown.update(report.unknown)
    records = sum(report.records for report in totals.files)
    damaged = sum(len(report.damaged) for report in totals.files)
    lost = lost_records(totals.files)
    missed = unknown.total() + lost
    return ImportReport(
        files=totals.files, skipped=sum(report.skipped is not None for report in totals.files), others=totals.others.count,
        other_files=totals.others.first,
        unchanged=totals.unchanged, sessions=list(totals.sessions), records=records,
        entries=sum(report.tool_calls for report in totals.files),
        open_calls=sum(report.open_calls for report in totals.files), added=totals.appended.added,
        known=totals.appended.known, doubles=totals.appended.doubles, changed=totals.appended.changed,
        untrusted=totals.untrusted, unknown=dict(unknown), damaged=damaged, not_understood=missed / max(1, records + lost),
    )  # fmt: skip
