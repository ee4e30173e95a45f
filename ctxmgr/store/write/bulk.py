"""Insert blocks of a log into a store, all of a block or nothing."""

from __future__ import annotations

from ctxmgr.log.codec import chain
from ctxmgr.store.row_mapper import batches, load, placeholders
from ctxmgr.store.write import deferred_indexes, derived_rows
from ctxmgr.store.write.batch import LATE, RESULT, STEP
from ctxmgr.store.write.derived_rows import HANDLERS, SessionCounters, remember_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.write.row_batch import RowBatch, SessionRows

# Numbers are fixed texts here: what is added to the places of a block differs from block to block, not from row to row.
_LINES = "INSERT OR IGNORE INTO line (seq, session, kind, id, ts, offset, length) VALUES (? + {base}, {key}, ?, ?, ?, ?, ?)"
_RECORDS = "INSERT OR IGNORE INTO record (seq, session, kind, id, ts, body, sum) VALUES (? + {base}, {key}, ?, ?, ?, ?, ?)"
_ENTRIES = (
    "INSERT INTO entry (seq, session, idx, agent, action, input_type, process, ts, status, result) "
    "VALUES (? + {base}, {key}, ? + {entries}, ?, ?, ?, ?, ?, ?, ? + {base})"
)
_EVENTS = (
    "INSERT INTO event (seq, session, type, agent, entry, after, ts) "
    "VALUES (? + {base}, {key}, ?, ?, ?, nullif(? + {entries}, 0) - 1, ?)"
)
_USAGE = "INSERT INTO usage (session, seq, input, output) VALUES ({key}, ? + {base}, ?, ?)"
_MILESTONES = "INSERT INTO milestone (session, series, number, seq) VALUES (?, ?, ?, ?)"


class BulkWriter:
    """Writes blocks of a log; call inside a transaction, and `flush` before it ends.

    Args:
        engine: of the store.
        masked: None for the index of the log; for a store whether secrets are masked in it.
        deferring: what makes rows quick to find is missing, see `deferred`: whether a record is known shows later.
    """

    def __init__(self, engine: Engine, masked: bool | None = None, *, deferring: bool = False) -> None:
        self.masked = masked
        self._deferring = deferring
        self._engine = engine
        self._touched: dict[str, SessionCounters] = {}
        self._last: int | None = None

    def write(self, block: RowBatch) -> bool:
        """Write a block; return False, with nothing written, if a record of it is known, or comes twice in it."""
        assert block.parts is not None
        engine, new = self._engine, list[str]()
        base = self.number + 1
        if self._deferring and not _is_once(block):
            return False
        sql = _LINES if self.masked is None else _RECORDS
        engine.execute("SAVEPOINT block")
        parts = [(part, self._touch(session, new)) for session, part in block.parts.items()]
        if self.masked is not None and not (block.follows and len(parts) == 1 and (parts[0][1].total or "") == block.before):
            for part, touched in parts:
                _seal(part, touched.total or "")
        complete = all(
            engine.many(sql.format(base=base, key=touched.key), part.records) == len(part.records) for part, touched in parts
        )
        if not complete:
            engine.execute("ROLLBACK TO block")
            for session in new:
                del self._touched[session]
        engine.execute("RELEASE block")
        if not complete:
            return False
        for part, touched in parts:
            self._derive(part, touched, base)
            if self.masked is not None:
                touched.total = part.records[-1][5]
        self._last = self.number + block.count
        return True

    @property
    def number(self) -> int:
        """The number of the last record."""
        if self._last is None:
            self._last = int(self._engine.query("SELECT coalesce(max(seq), 0) FROM record")[0][0])
        return self._last

    def flush(self) -> None:
        """Write down what was counted of sessions, and forget it: whoever else writes now counts on."""
        for touched in self._touched.values():
            touched.store(self._engine)
        self._touched.clear()
        self._last = None

    def _touch(self, session: str, new: list[str]) -> SessionCounters:
        touched = self._touched.get(session)
        if touched is None:
            touched, made = derived_rows.touched(self._engine, session)
            if made:
                new.append(session)
            self._touched[session] = touched
        return touched

    def _derive(self, part: SessionRows, touched: SessionCounters, base: int) -> None:
        engine, key, before = self._engine, touched.key, touched.entries
        if part.open and not self._deferring:
            self._join_with_earlier_results(part, key, base)
        for sql, rows in ((_ENTRIES, part.entries), (_EVENTS, part.events), (_USAGE, part.usage)):
            if rows:
                engine.many(sql.format(base=base, key=key, entries=before), rows)
        if milestones := [
            (key, series, number, places[number - start] + base)
            for series, start, places in (
                ("all", before + touched.events, part.shown), ("event", touched.events, part.told),
                ("message", touched.messages, part.said),
            )
            for number in range(start + -start % STEP, start + len(places), STEP)
        ]:  # fmt: skip
            engine.many(_MILESTONES, milestones)
        touched.entries += len(part.entries)
        touched.events += len(part.events)
        touched.messages += len(part.said)
        self._see(part, touched, base)
        for place, aside in part.asides:
            if isinstance(aside, str):
                if aside not in touched.processes:
                    touched.processes.add(aside)
                    remember_process(engine, base + place, key, aside, None)
            else:
                HANDLERS[aside["kind"]](engine, base + place, touched, aside)
        if part.loose and self._deferring:
            deferred_indexes.keep_loose(
                engine, [(key, name, base + place, status) for name, (place, status) in part.loose.items()]
            )
        elif part.loose:
            engine.many(RESULT, [(status, base + place, key, key, name) for name, (place, status) in part.loose.items()])

    @staticmethod
    def _see(part: SessionRows, touched: SessionCounters, base: int) -> None:
        moments = [row[3] for row in part.records if row[3] is not None and row[1] not in derived_rows.SAID_LATER]
        last = base + part.records[-1][0]
        touched.see(last, min(moments, default=None))
        touched.see(last, max(moments, default=None))

    def _join_with_earlier_results(self, part: SessionRows, key: int, base: int) -> None:
        for names in batches(list(part.open)):
            marks, values = placeholders(names, "i")
            found = self._engine.query(
                f"SELECT id FROM record WHERE id IN ({marks}) AND kind = 'result' AND session = {key:d}", values
            )
            for (name,) in found:
                seq, body = self._engine.query(LATE, {"session": key, "id": name})[0]
                number = part.open.pop(name)
                status = str(load(body).get("status"))
                part.entries[number] = (*part.entries[number][:7], status, int(seq) - base)


def _is_once(block: RowBatch) -> bool:
    """Whether no record comes twice in a block."""
    return all(len({row[1:3] for row in part.records}) == len(part.records) for part in (block.parts or {}).values())


def _seal(part: SessionRows, total: str) -> None:
    """Let the sums of a session's records follow from another one."""
    for number, row in enumerate(part.records):
        total = chain(total, row[4].encode("ascii"))
        part.records[number] = (*row[:5], total)
