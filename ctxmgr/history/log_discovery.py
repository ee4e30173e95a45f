"""Find the logs among files and folders, and say of every other file why it is left out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.base.paths import DATABASES, SIDE_FILES
from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.history.formats import OWN_FORMAT, format_error, format_hint, holds_own, may_hold_log, read_head, recognise_format
from ctxmgr.importers.base import Importer
from ctxmgr.importers.log_files import PACKED_SUFFIXES
from ctxmgr.types.import_report import FileCount, FileReport, list_first_names

_PLAIN = (".jsonl", ".json", ".ndjson", ".traj")
_PACKED = (*PACKED_SUFFIXES, ".zip", ".lz4")
_SUFFIXES = (*_PLAIN, ".eval", *(f"{plain}{packed}" for plain in _PLAIN for packed in _PACKED), *DATABASES)
_NOT_LOGS = re.compile(r"\.meta\.json$|/sessions-index\.json$|/tool-results/|/\.ctxmgr(-index)?/|/\.git/")
"""Paths of files that agents, and ctxmgr itself, keep beside logs."""
_CONVERSATION = re.compile(rb'"(?:messages|history|events|steps|trajectory|conversation|session_?[iI]d)"\s*:')
"""A key that a JSON document with a conversation has, but a settings file has not."""
_MAX_SHOWN = 5
_MAX_NAMED = 10


@dataclass(slots=True)
class Others:
    """Files in folders that are not logs: their number, and the first ten of them."""

    count: int = 0
    first: list[str] = field(default_factory=lambda: list[str]())

    def add(self, file: Path) -> None:
        """Add a file."""
        self.count += 1
        if self.count <= _MAX_NAMED:
            self.first.append(str(file))

    @property
    def notes(self) -> list[str]:
        """Notes for a person: one line, or none."""
        return [f"no logs: {list_first_names(self.first, self.count)}"] if self.count else []


@dataclass(slots=True)
class Skipped:
    """What was found and is no log: files with a report each, and others that are counted alone."""

    files: list[FileReport] = field(default_factory=lambda: list[FileReport]())
    others: Others = field(default_factory=Others)


def recognise_logs(
    importers: Sequence[Importer], paths: Sequence[Path], only: str | None, skipped: Skipped
) -> list[tuple[Importer | None, list[Path]]]:
    """Return the files at ``paths`` by their importers (None: own format); skipped files are added to ``skipped``.

    Raises:
        InvalidInput: there is no log at any of the paths.
        NotFound, StorageFailed: a path is not there, or can't be read.
    """
    by_importer: dict[str, list[Path]] = {}
    for path in paths:
        before = len(skipped.files) + skipped.others.count
        holds_log = False
        # Use absolute paths, because the store remembers imported files by path and the next run may start in another folder.
        for file, is_named in _walk_files(Path(os.path.abspath(path)), skipped):
            name = _format_or_skip(file, path if is_named else None, importers, only, skipped)
            if name is not None:
                by_importer.setdefault(name, []).append(file)
                holds_log = True
        if not holds_log and path.is_dir():
            within = len(skipped.files) + skipped.others.count - before
            why = f"none of its {within:,} files is a log of a known format" if within else "there is no log in it"
            skipped.files.append(file_report(FileCount(path), "", skipped=why))
    if paths and not by_importer:
        raise _no_logs_error(skipped.files)
    by_name = {importer.name: importer for importer in importers}
    return [(by_name.get(name), sorted(dict.fromkeys(files))) for name, files in by_importer.items()]


def _format_or_skip(
    file: Path, named: Path | None, importers: Sequence[Importer], only: str | None, skipped: Skipped
) -> str | None:
    """Return the format that a file is read as, or add it to ``skipped``.

    Args:
        file: the file, absolute.
        named: the path that a person gave, where it is this file; None of a file found in a folder.
        importers: those whose formats are wanted.
        only: the one format that is wanted, or None.
        skipped: what is no log.

    Raises:
        StorageFailed: a file that a person named can't be read.
    """
    try:
        head = read_head(file)
        name = recognise_format(file, head, importers, own=only in (None, OWN_FORMAT))
    except OSError as error:
        if named is not None:
            raise StorageFailed(f"can't read {named}: {error.strerror}", "check its permissions") from None
        skipped.files.append(unread_report(file, error))
        return None
    if name is not None:
        return name
    other = None if only is None else recognise_format(file, head)
    if named is not None and other is None and only not in (None, OWN_FORMAT):
        return only  # with --from: try it
    if named is None and _is_other(file, head):
        skipped.others.add(file)
    elif other is None:
        skipped.files.append(_refusal(file, head))
    elif named is not None:
        skipped.files.append(file_report(FileCount(file), "", skipped=f"a log of {other}, not of {only}"))
    return None


def _is_other(file: Path, head: bytes) -> bool:
    """Whether an unrecognised file in a folder needs no report, because it holds settings or another program's database."""
    # Settings are JSON, and any program has databases. A .jsonl of no known format, however, may be a log that nobody reads.
    if (file.name.endswith(_SUFFIXES) and file.suffix not in (".json", *DATABASES)) or holds_own(head):
        return False
    return not head.lstrip(b"\xef\xbb\xbf\0 \t\r\n").startswith((b"{", b"[")) or not _CONVERSATION.search(head)


def _no_logs_error(passed: Sequence[FileReport]) -> InvalidInput:
    """Return the error for paths without a log. If a folder was named, its report is the last one."""
    *others, last = passed
    seen = "".join(f"\n  {each.path}: {each.skipped}" for each in others[:_MAX_SHOWN])
    more = f"\n  and {len(others) - _MAX_SHOWN} more" if len(others) > _MAX_SHOWN else ""
    return InvalidInput(f"{last.path}: {last.skipped}{seen}{more}", format_hint())


def _walk_files(path: Path, skipped: Skipped) -> Iterator[tuple[Path, bool]]:
    """Yield (file, whether it was named itself) for a path. Folders are searched; links to folders are not followed.

    In a folder, the name or the beginning of a file makes it a possible log, so that rotated or renamed logs are found. Other
    files are counted, except those that agents keep beside their logs.
    """
    if path.is_dir():
        for folder, names, files in os.walk(path):
            names.sort()
            for name in sorted(files):
                if not (file := Path(folder, name)).is_file():
                    continue
                if _NOT_LOGS.search(str(file)) or _is_part_of_database(name, files):
                    continue
                if name.endswith(_SUFFIXES) or may_hold_log(file):
                    yield file, False
                else:
                    skipped.others.add(file)
        return
    if not path.exists():
        raise NotFound(f"no file or folder at {path}", "check the path")
    if not path.is_file():
        raise InvalidInput(f"{path} is not a regular file", "a log is read more than once: copy it into a file first")
    yield path, True


def _is_part_of_database(name: str, files: Sequence[str]) -> bool:
    """Whether a file is the WAL or journal of a SQLite database in the same folder. It is read with that database."""
    return any(name.endswith(side) and name.removesuffix(side) in files for side in SIDE_FILES)


def unread_report(path: Path, error: OSError) -> FileReport:
    """Return the report of a file that can't be read."""
    return file_report(FileCount(path), "", skipped=f"can't be read: {error.strerror or error}")


def _refusal(path: Path, head: bytes) -> FileReport:
    why = format_error(path, head).message.removeprefix(f"{path}: ") if head else "the file is empty"
    return file_report(FileCount(path), "", skipped=why)


def file_report(count: FileCount, form: str, skipped: str | None = None, place: str | None = None) -> FileReport:
    """Return what was counted in a file.

    Args:
        count: what was counted.
        form: name of its format, "" where it is none.
        skipped: why it was not read, or None.
        place: what stands for its path, as of a database's URL.
    """
    return FileReport(
        path=place or str(count.path), format=form, version=count.version, session=count.session, agent=count.agent,
        records=count.records, tool_calls=count.tool_calls.total(), tool_names=dict(count.tool_calls),
        failed_calls=count.failed, open_calls=count.open, user_messages=count.user_messages,
        harness_messages=count.harness_messages, messages=count.messages, thoughts=count.thoughts,
        api_responses=count.responses, usage=dict(count.usage), unknown=dict(count.unknown),
        damaged=[{"offset": offset, "length": length, "reason": reason} for offset, length, reason in count.damaged],
        skipped=skipped, notes=count.notes,
    )  # fmt: skip
