"""Record the OTLP exports of running programs, with the importer that reads such exports from files.

This is a separate module because only ``ctxmgr receive`` needs this importer together with a store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxmgr.errors import InvalidInput
from ctxmgr.history.ingest import append_foreign
from ctxmgr.importers.base import Log
from ctxmgr.importers.otlp import OTLP, SpanReader, is_export
from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from ctxmgr.types.import_report import FileCount

MOST_REMEMBERED = 50_000
"""Maximum spans, and maximum other ids, that are remembered to recognise repeated or late ones."""


@dataclass(slots=True)
class ReceiveCounts:
    """Counts of received data: exports, spans and log records in them, and new records made from them."""

    exports: int = 0
    spans: int = 0
    records: int = 0


@dataclass(slots=True)
class TelemetryRecorder:
    """Turns exports into records of a store, one export after another.

    Spans may come in any order, in any number of exports, and more than once. Records that can't be written are kept and
    written with the next export. The program is asked to send its export again, and nothing counts twice.
    """

    store: Store
    received: ReceiveCounts = field(default_factory=ReceiveCounts)
    _log: Log = field(init=False)
    _reader: SpanReader = field(init=False)
    _waiting: list[Record] = field(default_factory=lambda: list[Record]())

    def __post_init__(self) -> None:
        place = Path(OTLP.name)
        self._log = Log(OTLP.name, place, FileCount(place))
        self._reader = SpanReader(self._log)

    def take(self, export: dict[str, Any]) -> int:
        """Record an export, and return the number of new records. They are written when this returns.

        Raises:
            InvalidInput: it is not an export of spans or log records.
            StorageFailed, Busy: nothing was written; the same export may be passed again.
        """
        if not is_export(export):
            raise InvalidInput("this is no OTLP export of traces or logs", "it needs resourceSpans or resourceLogs")
        added = self._write()
        self.received.spans += self._reader.read(export)
        self._reader.finish()
        self._waiting += self._log.take(live=True)
        self._reader.release_contents()
        added += self._write()
        self._reader.forget(MOST_REMEMBERED)
        self.received.exports += 1
        return added

    def _write(self) -> int:
        """Write the waiting records. Return the number of new ones."""
        log = self._log
        added = append_foreign(self.store, self._waiting, log.count).added if self._waiting else 0
        self._waiting.clear()
        log.turn_to(log.path, FileCount(log.path))
        self.received.records += added
        return added
