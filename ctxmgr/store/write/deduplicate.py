"""Tell new records from known ones and from conflicts."""

from __future__ import annotations

from ctxmgr.errors import Conflict
from ctxmgr.store.normalise import storable
from ctxmgr.store.row_mapper import batches, placeholders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxmgr.store.engine.interface import Engine, OnConflict
    from ctxmgr.store.write.append import AppendResult
    from ctxmgr.store.write.encoded_record import EncodedRecord

    Identity = tuple[int, str, str]

_DOUBLED = ("entry", "event")


class KnownRecords:
    """Tells new records from known ones.

    Args:
        engine: of the store.
        on_conflict: what to do with a known id that has other content: raise, or keep the first.
        report: counts what is known.
    """

    def __init__(self, engine: Engine, on_conflict: OnConflict, report: AppendResult) -> None:
        self._engine = engine
        self._on_conflict = on_conflict
        self._report = report

    def new(self, items: Sequence[EncodedRecord]) -> list[EncodedRecord]:
        """Return those that the store does not have, in their order; of those alike among themselves the first.

        Raises:
            Conflict: a known id with other content, when that is to be raised.
        """
        stored: set[Identity] = set()
        for part in batches(items):
            stored |= self._stored({item.id for item in part})
        first: dict[Identity, EncodedRecord] = {}
        for item in items:
            identity = (item.key, item.kind, item.id)
            if identity in stored:
                self._compare(item, self._stored_body(identity))
            elif (earlier := first.setdefault(identity, item)) is not item:
                self._compare(item, earlier.body.decode("ascii"))
        return list(first.values())

    def _stored(self, ids: set[str]) -> set[Identity]:
        names, values = placeholders(sorted(ids), "i")
        rows = self._engine.query(f"SELECT session, kind, id FROM record WHERE id IN ({names})", values)
        return {(int(row[0]), str(row[1]), str(row[2])) for row in rows}

    def _stored_body(self, identity: Identity) -> str:
        key, kind, name = identity
        rows = self._engine.query(
            "SELECT body FROM record WHERE session = :session AND kind = :kind AND id = :id",
            {"session": key, "kind": kind, "id": name},
        )
        return str(rows[0][0])

    def _compare(self, item: EncodedRecord, stored: str) -> None:
        text = item.body.decode("ascii")
        if stored == text or _canonical(stored) == _canonical(text):
            self._report.known += 1
            return
        if self._on_conflict == "raise":
            raise Conflict(
                f"{item.kind} {item.id!r} of session {item.record['session']!r} is known with other content; "
                "nothing was written",
                "give a new record a new id; records are never changed",
            )
        self._report.changed += 1


class DuplicateTracker:
    """Leaves out the entries and events of one append that another session holds already, with all that belongs to them."""

    def __init__(self, engine: Engine, report: AppendResult) -> None:
        self._engine = engine
        self._report = report
        self._left_out: set[tuple[str, str]] = set()

    def without(self, items: Sequence[EncodedRecord]) -> list[EncodedRecord]:
        """Return the others, in their order; what was returned before must have been written."""
        kept: list[EncodedRecord] = []
        for part in batches(items):
            self._sift(part, kept)
        self._report.doubles += len(items) - len(kept)
        return kept

    def _sift(self, part: Sequence[EncodedRecord], kept: list[EncodedRecord]) -> None:
        held: dict[tuple[str, str], set[str]] = {}
        names, values = placeholders(sorted({item.id for item in part if item.kind in _DOUBLED}), "i")
        for kind, name, session in self._engine.query(
            "SELECT record.kind, record.id, session.id FROM record CROSS JOIN session ON session.key = record.session "
            f"WHERE record.id IN ({names}) AND (record.kind = 'entry' OR record.kind = 'event')",
            values,
        ):
            held.setdefault((kind, name), set()).add(session)
        for item in part:
            session = storable(item.record["session"])
            if item.kind == "result":
                if (session, item.id) not in self._left_out:
                    kept.append(item)
                continue
            if item.kind in _DOUBLED:
                holders = held.setdefault((item.kind, item.id), set())
                if holders - {session}:
                    self._left_out.add((session, item.id))
                    continue
                holders.add(session)
            kept.append(item)


def _canonical(text: str) -> str:
    """Return a JSON text in which the order of keys does not tell; unlike the values themselves 1, 1.0 and true differ."""
    import json

    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except ValueError:  # a stored body that was changed from outside
        return text
