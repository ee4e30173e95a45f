"""The registry of importers, the recognition of formats, and the logs among files and folders.

The content of a log alone decides its format. For a file of no known format, `looks_like` describes the content.
`recognise_logs` says of every file that is no log why it is left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import count
from pathlib import Path

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.base.paths import DATABASES, SIDE_FILES, open_regular
from ctxmgr.errors import InvalidInput, NotFound, StorageFailed
from ctxmgr.history.verdict_cache import OWN_FORMAT
from ctxmgr.importers import importers
from ctxmgr.importers.base import SQLITE_MAGIC, Coverage, Importer
from ctxmgr.importers.log_files import HEAD_SIZE, PACKED, PACKED_SUFFIXES, is_compressed, uncompressed_head
from ctxmgr.log.codec import decode
from ctxmgr.log.line_splitter import past_hole
from ctxmgr.store.engine.foreign_tables import open_tables
from ctxmgr.types.import_report import FileCount, FileReport, FormatView, list_first_names

IMPORTERS: tuple[Importer, ...] = importers(open_tables)
"""All importers, in the order in which they are tried."""

_FIRST = 4096
FORMATS = (*(importer.name for importer in IMPORTERS), OWN_FORMAT)
_LINES = 50
_MAX_STRIPPED = 50  # bytes around a document that do not belong to it: a byte order mark, spaces
_MAX_LINE = 1 << 20  # bytes of a line that are read to find a record of our own
_OWN_START = re.compile(rb'\{"v": ?1, ?"kind": ?"')
_MAY_BE_LOG = re.compile(rb"(?:\xef\xbb\xbf)?[\0 \t\r\n]*[{\[]|SQLite format 3\0|PK\x03\x04|" + PACKED.pattern)
_OWN_RECORD = re.compile(rb'\{"v": ?1, ?"kind": ?"[A-Za-z]+", ?"session": ?"')
_MAGIC = (
    (SQLITE_MAGIC, "a SQLite database"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, which must be unpacked first"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\xfd7zXZ\0", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file of something else"),
    (b"\x7fELF", "a program"),
)
_SHOWN = 4


def format_views() -> list[FormatView]:
    """Return the formats that can be read, including our own, in the order in which they are tried."""
    found = [
        FormatView(
            name=importer.name, title=importer.title, places=[place.display_path for place in importer.places],
            **asdict(importer.coverage),
        )
        for importer in IMPORTERS
    ]  # fmt: skip
    own = FormatView(name=OWN_FORMAT, title="ctxmgr's own log", places=[], **asdict(Coverage()))
    return [own, *found]


def format_hint() -> str:
    """Return advice for a file that is no log. It names a command, because the formats are too many for a message."""
    return (
        f"'ctxmgr formats' lists the {len(IMPORTERS) + 1} formats that ctxmgr reads, and where each agent keeps its logs; "
        "if you know which one it is, 'ctxmgr import --from FORMAT' reads it all the same; "
        "any other program can write records of ctxmgr's own: 'ctxmgr record --help'"
    )


def read_head(path: Path) -> bytes:
    """Return the first 64 KiB of a file, uncompressed. They identify its format.

    Raises:
        OSError: it can't be read, or is no regular file.
    """
    with open(open_regular(path), "rb") as stream:
        head = stream.read(HEAD_SIZE)
    return uncompressed_head(path, head)


def recognise_format(path: Path, head: bytes, importers: Sequence[Importer] = IMPORTERS, *, own: bool = True) -> str | None:
    """Return the name of a file's format, or None if it is not known.

    Args:
        path: the file.
        head: its first bytes, see `read_head`.
        importers: the foreign formats to try.
        own: try our own format too.
    """
    if _is_tar(head):
        return None
    start = head.lstrip(b"\0 \t\r\n")
    if own and _OWN_START.match(start):
        return None if is_compressed(path) else OWN_FORMAT
    found = next((importer.name for importer in importers if importer.sniff(path, start)), None)
    return OWN_FORMAT if found is None and own and holds_own(start) and not is_compressed(path) else found


def session_files(importer: Importer, path: Path) -> list[Path]:
    """Return the files of the session in a foreign log, including those of its sub-agents.

    Raises:
        OSError: one of them can't be read.
    """
    groups = importer.groups([path, *importer.companions(path)])
    return next((group for group in groups if path in group), [path])


def holds_own(start: bytes) -> bool:
    """Whether one of our records is near the beginning of a file, compressed or not; ``start`` is from `read_head`."""
    return any(map(_is_own, start.split(b"\n")[:_LINES]))


def may_hold_log(path: Path) -> bool:
    """Whether a file of any name begins like a log: with JSON, compressed, as a database or an archive.

    False if it can't be read.
    """
    try:
        with open(open_regular(path), "rb", buffering=0) as stream:
            start = stream.read(_FIRST)
    except OSError:
        return False
    return _MAY_BE_LOG.match(start) is not None or b'\n{"' in start  # a rotated log may begin in the middle of a line


def holds_own_records(path: Path) -> bool:
    """Whether one of our records is anywhere in a file, such as a log with a damaged beginning.

    Raises:
        OSError: it can't be read, or is no regular file.
    """
    with open(open_regular(path), "rb") as stream:
        while line := stream.readline(_MAX_LINE):
            if _is_own(line):
                return True
            if not line.strip(b"\0"):
                # A crash may leave a hole of zero bytes, gigabytes long. Skip it by seeking.
                past_hole(stream)
    return False


def _is_own(line: bytes) -> bool:
    """Whether a line is one of our records, even if another program wrote it or damage precedes it on the line."""
    if b'"kind"' not in line or b'"session"' not in line:
        return False
    try:
        record = decode(line.strip(b" \0\r\n"))
    except ValueError:
        return _OWN_RECORD.search(line) is not None
    return record.get("v") == 1 and isinstance(record.get("kind"), str) and isinstance(record.get("session"), str)


def format_error(path: Path, head: bytes) -> InvalidInput:
    """Return the error for a file of no known format, or for one of our logs that can't be read in place."""
    if holds_own(head) and is_compressed(path):
        return InvalidInput(
            f"{path}: holds records of ctxmgr, but is compressed or packed", "unpack it, e.g. with gunzip, zstd -d or tar -x"
        )
    return InvalidInput(f"{path}: not a log of a known format; it looks like {looks_like(head, path)}", format_hint())


def looks_like(head: bytes, path: Path | None = None) -> str:
    """Return a description of a file by its first bytes, for people. It quotes at most names of JSON keys.

    Args:
        head: its first bytes, see `read_head`.
        path: the file, to distinguish a compressed database from a plain one.
    """
    if not head:
        return "an empty file"
    if _is_tar(head):
        return "a tar archive, which must be unpacked first"
    for magic, name in _MAGIC:
        if head.startswith(magic):
            packed = path is not None and magic == SQLITE_MAGIC and is_compressed(path)
            return f"{name} that is compressed and must be unpacked first" if packed else name
    text = head.strip(b"\xef\xbb\xbf \t\r\n\0")
    if text.startswith((b"{", b"[")) and (shape := _json_shape(text)):
        return shape
    if not text:
        return "a file of nothing but blanks" if head.strip() == b"" else "binary data"
    # No text has more than 2 % of control characters, and most binary formats do.
    control = sum(byte < 32 and byte not in b"\t\n\r\x0b\x0c\x1b" for byte in head)
    return "binary data" if control * 50 > len(head) else "plain text"


def _is_tar(head: bytes) -> bool:
    """Whether the first bytes are a tar archive (magic at 257: POSIX). Its members would otherwise be read as one log."""
    return head[257:262] == b"ustar"


def _json_shape(text: bytes) -> str | None:
    """Return a description of the JSON in a text, with the keys of its first object."""
    line = text.split(b"\n", 1)[0]
    for part, name in ((line, "JSON lines"), (text, "a JSON document")):
        try:
            value: object = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return (name if b"\n" in text or name != "JSON lines" else "a JSON document") + _describe_keys(value)
    # The bytes read may end within a long document. A document on many lines often begins with a single bracket.
    if len(text) >= HEAD_SIZE - _MAX_STRIPPED or line in (b"{", b"["):
        return "a JSON document"
    return "damaged JSON"


def _describe_keys(value: object) -> str:
    if not isinstance(value, dict) or not value:
        return ""
    names = [str(name)[:40] for name in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return f" with the keys {', '.join(names[:_SHOWN])}" + (", ..." if len(names) > _SHOWN else "")


_PLAIN = (".jsonl", ".json", ".ndjson", ".traj")
_PACKED = (*PACKED_SUFFIXES, ".zip", ".lz4")
_SUFFIXES = (*_PLAIN, ".eval", *(f"{plain}{packed}" for plain in _PLAIN for packed in _PACKED), *DATABASES)
_NOT_LOGS = re.compile(
    r"\.meta\.json$|/sessions-index\.json$|/tool-results/|/\.ctxmgr(-index)?/|/\.git/"
    # The marks of live sessions (see `ctxmgr.log.session_lock`), and the state of a goal beside its history.
    r"|/[^/]+\.live/[\w~-]+\+[\w~-]+$|/\.agent_context/(?!history\.jsonl$)"
)
"""Paths of files that agents, and ctxmgr itself, keep beside logs."""
_CONVERSATION = re.compile(rb'"(?:messages|history|events|steps|trajectory|conversation|session_?[iI]d)"\s*:')
"""A key that a JSON document with a conversation has, but a settings file has not."""
_MAX_SHOWN = 5
_MAX_NAMED = 10

Searching = Callable[[int, None], None]
"""Called during a search for logs with the number of files that were looked at. Nobody knows how many there are in all."""


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
    importers: Sequence[Importer],
    paths: Sequence[Path],
    only: str | None,
    skipped: Skipped,
    searching: Searching | None = None,
) -> list[tuple[Importer | None, list[Path]]]:
    """Return the files at ``paths`` by their importers (None: own format); skipped files are added to ``skipped``.

    Raises:
        InvalidInput: there is no log at any of the paths.
        NotFound: a path is not there.
        StorageFailed: the only path can't be read.
    """
    by_importer: dict[str, list[Path]] = {}
    looks = count(1)

    def on_file() -> None:
        if searching is not None:
            searching(next(looks), None)

    for path in paths:
        before = len(skipped.files) + skipped.others.count
        holds_log = False
        # Use absolute paths, because the store remembers imported files by path and the next run may start in another folder.
        for file, is_named in _walk_files(Path(os.path.abspath(path)), skipped, on_file):
            try:
                name = _format_or_skip(file, path if is_named else None, importers, only, skipped)
            except StorageFailed as error:
                if len(paths) == 1:
                    raise
                # One of several: the others are read all the same.
                skipped.files.append(file_report(FileCount(file), "", skipped=error.message))
                continue
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


def _walk_files(path: Path, skipped: Skipped, on_file: Callable[[], object]) -> Iterator[tuple[Path, bool]]:
    """Yield (file, whether it was named itself) for a path. Folders are searched; links to folders are not followed.

    In a folder, the name or the beginning of a file makes it a possible log, so that rotated or renamed logs are found. Other
    files are counted, except those that agents keep beside their logs. ``on_file`` is called for every file of a folder.
    """
    if path.is_dir():
        for folder, names, files in os.walk(path):
            names.sort()
            for name in sorted(files):
                on_file()
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
