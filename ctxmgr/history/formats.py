"""The registry of importers, and the recognition of formats.

The content of a log alone decides its format. For a file of no known format, `looks_like` describes the content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ctxmgr.base.paths import open_regular
from ctxmgr.errors import InvalidInput
from ctxmgr.importers import importers
from ctxmgr.importers.base import SQLITE_MAGIC, Coverage, Importer
from ctxmgr.importers.log_files import HEAD_SIZE, PACKED, is_compressed, uncompressed_head
from ctxmgr.log.codec import decode
from ctxmgr.log.line_splitter import past_hole
from ctxmgr.store.engine.foreign_tables import open_tables
from ctxmgr.types.import_report import FormatView

OWN_FORMAT = "ctxmgr"
"""The name of our own format."""

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
        "any other program can write records of ctxmgr's own: 'ctxmgr record --help'"
    )


def read_head(path: Path) -> bytes:
    """Return the first 64 KiB of a file, uncompressed. They identify its format.

    Raises:
        OSError: it can't be read, or is no regular file.
    """
    with open(open_regular(path), "rb") as stream:
        head = stream.read(HEAD_SIZE)
    return uncompressed_head(path, head, HEAD_SIZE)


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
