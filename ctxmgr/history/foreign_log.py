"""Read another agent's log without importing it, through a disposable index in the cache folder.

Nothing is written beside the log or into the project. An unchanged log is answered from its index. A changed log is read again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ctxmgr import importers
from ctxmgr.errors import Busy, InvalidInput, NotFound, StorageFailed
from ctxmgr.history.formats import IMPORTERS, format_error, holds_own_records, read_head, recognise_format, session_files
from ctxmgr.history.ingest import import_session
from ctxmgr.importers.base import Importer
from ctxmgr.store import DamagedRange, Store
from ctxmgr.store.engine.disposable_files import cache_name, open_cache, open_in_memory
from ctxmgr.store.engine.sqlite import SqliteEngine
from ctxmgr.store.repositories.bookkeeping import FileState
from ctxmgr.store.verification import VerificationResult
from ctxmgr.types.import_report import NOT_UNDERSTOOD, FileCount

_STEM = "foreign"
_MOST_NAMED = 3
"""Maximum number of types of records that were not understood to name."""
_MAX_INDEXED = 32_768
"""Longest log, in records, for which a search index is built at once. In a longer log, a search reads the records."""


class ForeignStore(Store):
    """Another agent's log as a store of its own.

    Attributes:
        importer: the importer of its format.
        files: the files of the session: the log and those of its sub-agents.
    """

    def __init__(self, engine: SqliteEngine, path: str, importer: Importer, files: list[Path]) -> None:
        super().__init__(engine, path, readonly=False, masked=True)
        self.origin = importer.title
        self.importer = importer
        self.files = files

    def fill(self, progress: Callable[[int, int], None] | None) -> None:
        """Import the log into the index, unless its files are unchanged.

        Raises:
            OSError: the log can't be read.
        """
        states = [FileState.read(path) for path in self.files]
        if all(self.imported.is_unchanged(path, state) for path, state in zip(self.files, states, strict=True)):
            return
        # One transaction, because another process may be reading the same index.
        with self.engine.transaction():
            import_session(self, self.importer, self.files, progress)
        if self.count_unindexed() <= _MAX_INDEXED:
            self.index()

    def damage(self) -> list[DamagedRange]:
        """Return the ranges of the log that hold no readable record."""
        return [
            DamagedRange(int(item["offset"]), int(item["length"]), str(item["reason"]))
            for report in self.imported.reports()
            for item in cast("list[dict[str, Any]]", report["damaged"])
        ]

    def unread(self) -> int:
        """Return the number of unreadable bytes of the log. An incomplete last line, still being written, does not count."""
        ends = {path.stat().st_size for path in self.files}
        return sum(item.length for item in self.damage() if item.offset + item.length not in ends)

    def gaps(self) -> list[str]:
        """Return what the importer did not understand, if it is a share of the records that would make an import partial."""
        reports = self.imported.reports()
        unknown = Counter[str]()
        for report in reports:
            unknown.update(cast("dict[str, int]", report["unknown"]))
        records = sum(int(report["records"]) for report in reports)
        count = unknown.total()
        if count <= NOT_UNDERSTOOD * records:
            return []
        most = ", ".join(f"{number:,} of type {name!r}" for name, number in unknown.most_common(_MOST_NAMED))
        more = ", ..." if len(unknown) > _MOST_NAMED else ""
        return [
            f"not understood: {count:,} of {records:,} records ({count / records:.0%}): {most}{more}. "
            f"It was read as a log of {self.origin}; logs of two programs need a file each"
        ]

    def examine(self) -> VerificationResult:
        """Read the log again and report unreadable ranges. Logs of other agents have no checksums to verify.

        Raises:
            OSError: the log can't be read.
        """
        counts: list[FileCount] = []
        for _ in self.importer.read(self.files, counts):
            pass
        damaged = [DamagedRange(*found) for count in counts for found in count.damaged]
        unchecked = [f"a log of {self.origin} carries no sums: only that its records can be read was checked"]
        return VerificationResult(sum(count.records for count in counts), damaged, unchecked=unchecked)

    def seal(self) -> None:
        """Make the store read-only."""
        self.readonly = True


def foreign_importer(path: str) -> Importer | None:
    """Return the importer of a log, or None if the log is one of our own.

    Raises:
        InvalidInput: it is a log of no known format.
        OSError: it can't be read.
    """
    place = Path(path)
    head = read_head(place)
    name = recognise_format(place, head)
    for importer in IMPORTERS:
        if importer.name == name:
            return importer
    if name is None and not holds_own_records(place):
        raise format_error(place, head)
    return None


def open_foreign(
    path: str, importer: Importer, *, scratch: bool = False, progress: Callable[[int, int], None] | None = None
) -> ForeignStore:
    """Open another agent's log as a read-only store.

    Args:
        path: the log.
        importer: the importer of its format.
        scratch: accept writes, and discard them when the store is closed.
        progress: called with (bytes read, bytes in all).

    Raises:
        NotFound, StorageFailed: the log is gone, or can't be read.
        InvalidInput: it holds no record of a session.
    """
    try:
        return _open_and_fill(path, importer, scratch=scratch, progress=progress)
    except FileNotFoundError:
        raise NotFound(f"no log at {path}", "check the path") from None
    except OSError as error:
        raise StorageFailed(f"can't read {path}: {error.strerror}", "check its permissions") from None


def _open_and_fill(
    path: str, importer: Importer, *, scratch: bool, progress: Callable[[int, int], None] | None
) -> ForeignStore:
    # Use the real path, so that a link to a log shares the log's index.
    files = session_files(importer, Path(os.path.realpath(path)))
    # A scratch store is written to, and no other reader may see that.
    engines = [open_in_memory] if scratch else [lambda: _open_index(importer, files), open_in_memory]
    for opened in engines:
        store = ForeignStore(opened(), path, importer, files)
        try:
            store.fill(progress)
        except (Busy, StorageFailed):  # another process fills this index, or the disk is full: use memory
            store.close()
            if opened is open_in_memory:
                raise
            continue
        except BaseException:
            store.close()
            raise
        if store.sessions.count() == 0:
            store.close()
            raise InvalidInput(
                f"{path}: looks like a log of {importer.title}, but nothing in it could be read", "check the file"
            )
        if not scratch:
            store.seal()
        return store
    raise StorageFailed(f"can't read {path}", "try again")


def _open_index(importer: Importer, files: list[Path]) -> SqliteEngine:
    """Open the index for the log's present content. Indexes of its former contents are removed."""
    return open_cache(_STEM, _variant(importer, files), source=cache_name(os.fsencode(files[0]))[:16])


def _variant(importer: Importer, files: list[Path]) -> str:
    """Return the name of the index. It changes with the content of the files and the code of the importers."""
    parts = [importer.name, *(repr((str(path), FileState.read(path))) for path in files), *_importer_versions()]
    return cache_name("\n".join(parts).encode("utf-8", "surrogateescape"))


def _importer_versions() -> list[str]:
    """Return names and times of the importers' source files, which differ between versions."""
    folder = Path(importers.__file__).parent
    # After a correction, an importer must not answer from an index that its former version filled.
    return sorted(f"{file.relative_to(folder)} {file.stat().st_mtime_ns}" for file in folder.rglob("*.py"))
