"""Turn growing records into observations, holding only what is open in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ctxmgr.detect.replay import observations_of
from ctxmgr.log import reader
from ctxmgr.log.codec import Record
from ctxmgr.store import LOG_SUFFIXES, open_store
from ctxmgr.types.observation import Observation

_MOST_OPEN = 10_000
_MOST_KNOWN = 50_000


class RecordStream:
    """Turns the records of one session into observations, in the order in which they are given.

    The same as `ctxmgr.detect.replay.observations_of` over the whole log, except that of a log in which more than 10,000
    entries are open at once the oldest are forgotten, and an entry that comes again after 50,000 others counts as new.

    Attributes:
        entries: how many entries there were so far.
    """

    def __init__(self) -> None:
        self.entries = 0
        self._place = 0
        self._open: dict[str, tuple[Record, int]] = {}
        self._known: dict[str, None] = {}

    def take(self, record: Record) -> list[Observation]:
        """Return what the record says happened; nothing for records that are no step of the run."""
        self._place += 1
        index, context = self.entries, [record]
        kind, name = record.get("kind"), record.get("id")
        if kind == "result":
            entry = record.get("entry")
            begun = self._open.pop(entry, None) if isinstance(entry, str) else None
            if begun is None:
                return []
            # The entry is told again with its result, since a result alone does not say what it answers.
            context, index = [begun[0], record], begun[1]
        elif kind == "entry":
            if not isinstance(name, str) or not name or name in self._known:
                return []
            self._begin(name, record)
        seen = list(observations_of(context))
        return [self._placed(each, index) for each in (seen[-1:] if kind == "result" else seen)]

    def _begin(self, name: str, record: Record) -> None:
        self._known[name] = None
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if not isinstance(record.get("status"), str):
            self._open[name] = (record, self.entries)
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
        self.entries += 1

    def _placed(self, seen: Observation, index: int) -> Observation:
        seen.seq = 2 * self._place + (seen.seq & 1)
        seen.index = None if seen.index is None else index
        return seen


def past_records(location: str, session: str) -> Iterator[Record]:
    """Yield what a log or database holds of a session; nothing when it holds none.

    Raises:
        CtxmgrError: it can't be read.
    """
    if os.path.splitext(location)[1].lower() in LOG_SUFFIXES:
        for line in reader.read(location):
            if line.record.get("session") == session:
                yield line.record
        return
    store = open_store(location, readonly=True)
    try:
        key = store.sessions.key(session)
        if key is not None and store.sessions.name(key) == session:
            yield from store.sessions.records(key)
    finally:
        store.close()
