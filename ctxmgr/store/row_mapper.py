"""Map rows to entries and events, with results and notes inlined.

A row is first mapped to its JSON form, a ``Plain`` dict. The views of the library are made from that only.

Long JSON strings are copied into answers without being decoded (`LongTexts`). Encoding a text takes twice as long as reading
it, and for a record of 10,000 characters that is most of the time. A mark stands in for the text until the line is ready.
Escapes that another program chose are kept.
"""

from __future__ import annotations

import os

from ctxmgr.errors import Damaged, NotFound
from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import cast, json_array
from ctxmgr.store.text_normalisation import storable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Any, TypeVar

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine, Row
    from ctxmgr.types.view import EntryView, EventView, NoteView

    _T = TypeVar("_T")
    Plain = dict[str, Any]
    Load = Callable[[str], Record]
    """Function that returns the record of a stored body."""

_BATCH = 500
_STATUS = frozenset(("ok", "error", "denied", "interrupted", "open"))

_ENTRY = (
    "SELECT entry.seq, entry.session, entry.idx, entry.status, record.body, "
    "CASE WHEN entry.result = entry.seq THEN NULL ELSE done.body END FROM entry {} record ON record.seq = entry.seq "
    "AND record.session = entry.session LEFT JOIN record AS done ON done.seq = entry.result AND done.session = entry.session "
)
_EVENT = (
    "SELECT event.seq, event.session, event.after, record.body FROM event {} record ON record.seq = event.seq "
    "AND record.session = event.session "
)
ENTRY_COLUMNS = _ENTRY.format("JOIN")
# CROSS JOIN keeps SQLite from changing the order of the tables. NOT INDEXED makes it look rows up by their place only.
BY_PLACE = {"entry": _ENTRY.format("NOT INDEXED CROSS JOIN"), "event": _EVENT.format("NOT INDEXED CROSS JOIN")}
"""The same columns by kind, for rows whose places are known. SQLite finds them by place, whatever the other conditions are."""
NOTE_COLUMNS = "SELECT record.seq, record.session, record.body FROM record "
ID_CONDITIONS = ("record.id = :id", "record.id >= :id AND record.id < :after")
"""Conditions that find a record by its id: first exactly, so that an id which begins another one is found, then as a prefix."""


_decoded: dict[str, Record] = {}
_KEPT, _LONG = 256, 20_000


def remember_decoded(body: str, record: Record) -> None:
    """Cache the decoded record of a body for the next `load`, which removes it, so that its caller may change the record."""
    if len(body) < _LONG:
        if len(_decoded) >= _KEPT:
            _decoded.clear()
        _decoded[body] = record


def forget_decoded() -> None:
    """Empty the cache of decoded records."""
    _decoded.clear()


def load(body: object) -> Record:
    """Return the record of a stored body. A body that is decoded already is returned as it is.

    Raises:
        Damaged: the body was changed and is not a JSON object.
    """
    if type(body) is dict:
        return cast("Record", body)
    text = str(body)
    if _decoded and (kept := _decoded.pop(text, None)) is not None:
        return kept
    try:
        record: object = fast_json.loads(text)
    except (ValueError, RecursionError):
        raise _change_error() from None
    if not isinstance(record, dict):
        raise _change_error()
    return cast("Record", record)


class _Readable:
    __slots__ = ()

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, ValueError | TypeError | KeyError | AttributeError):
            raise _change_error() from None


def readable() -> _Readable:
    """Return a context manager that turns the errors caused by an altered body into `Damaged`."""
    return _Readable()


def _change_error() -> Damaged:
    return Damaged("a stored record was changed and can't be read", "'ctxmgr verify' finds it; restore a backup")


def only_row(rows: Sequence[Row]) -> Row:
    """Return the only row of a query by the key of a session.

    Raises:
        NotFound: the session was archived meanwhile.
    """
    if not rows:
        raise NotFound("the session was archived meanwhile", "'ctxmgr store archived' says where")
    return rows[0]


def batches(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Yield the items in groups that fit into one statement, whose number of values is limited."""
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def placeholders(values: Sequence[object], prefix: str) -> tuple[str, dict[str, object]]:
    """Return the text ``:p0, :p1`` for an IN list and its values, so that user text is always bound."""
    names = [f"{prefix}{number}" for number in range(len(values))]
    return ", ".join(f":{name}" for name in names), dict(zip(names, values, strict=True))


def entry_rows(engine: Engine, rows: Sequence[Row], load: Load = load) -> list[Plain]:
    """Return the JSON form of `ENTRY_COLUMNS` rows, in their order."""
    found: list[Plain] = []
    for batch in batches(rows):
        records = [(row, load(row[4]), load(row[5]) if row[5] is not None else None) for row in batch]
        with readable():
            keyed = [(int(row[1]), storable(str(record["id"]))) for row, record, _ in records]
        noted, with_events = _find_annotated(engine, {key for key, _ in keyed})
        notes = _load_notes(engine, [place for place in keyed if place[0] in noted])
        events = _event_counts(engine, [place for place in keyed if place[0] in with_events])
        gone = _find_gone_parents(engine, [(int(row[1]), record.get("parent")) for row, record, _ in records])
        with readable():
            for (row, record, result), place in zip(records, keyed, strict=True):
                lost = bool(gone) and (int(row[1]), str(record.get("parent"))) in gone
                found.append(_entry(row, record, result, notes.get(place) or [], events.get(place, 0), gone=lost))
    return found


def _find_annotated(engine: Engine, keys: set[int]) -> tuple[set[int], set[int]]:
    """Return the keys of the sessions that have notes on entries, and of those that have events about entries."""
    noted, with_events = set[int](), set[int]()
    for key in keys:
        notes, events = engine.query(_ATTACHED, {"session": key})[0]
        noted |= {key} if notes else set()
        with_events |= {key} if events else set()
    return noted, with_events


# Most sessions have neither notes on entries nor events about them. This quick query then saves the others for each page.
_ATTACHED = (
    "SELECT EXISTS (SELECT 1 FROM note_entry WHERE session = :session), "
    "EXISTS (SELECT 1 FROM event WHERE session = :session AND entry IS NOT NULL)"
)


def _entry(row: Row, record: Record, result: Record | None, notes: list[Plain], events: int, *, gone: bool) -> Plain:
    # An entry that was recorded with its status is its own result.
    get, done = record.get, record.get if result is None else result.get
    meta = get("meta") if result is None else _merge(get("meta"), done("meta"))
    missing = [f"parent {record['parent']}"] if gone else []
    if isinstance(meta, dict):
        missing += _list(cast("dict[str, Any]", meta).get("missing"))
    # Only an altered table has another status.
    if row[3] not in _STATUS:
        raise ValueError("no status")
    return {
        "kind": "entry", "index": int(row[2]), "id": require_text(record["id"]), "session": require_text(record["session"]),
        "process": _name(get("process")), "ts": _name(get("ts")), "agent": str(get("agent", "")),
        "action": str(get("action", "")), "inputType": _name(get("inputType")), "input": get("input"),
        "status": row[3], "output": done("output"), "error": done("error"),
        "durationMs": _number(done("durationMs")), "notes": notes, "events": events, "missing": missing,
        "turn": get("turn"), "step": get("step"), "parent": _name(get("parent")),
        "task": _name(get("task")), "timeoutMs": _number(get("timeoutMs")), "usage": done("usage"),
        "meta": meta,
    }  # fmt: skip


def _merge(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return second if first is None else first
    both: dict[str, Any] = {"entry": first, "result": second}
    if isinstance(first, dict) and isinstance(second, dict):
        both = {**cast("dict[str, Any]", first), **cast("dict[str, Any]", second)}
    return both


def require_text(value: object) -> str:
    """Return the value if it is a text.

    Raises:
        TypeError: it is not a text.
    """
    if not isinstance(value, str):
        raise TypeError("must be text")
    return value


def _name(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> float | None:
    if value is None:
        return None
    # An integer may be too large for a float, and 1e999 is read as infinity, which JSON can't represent.
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None


def event_rows(engine: Engine, rows: Sequence[Row], load: Load = load) -> list[Plain]:
    """Return the JSON form of event rows of `BY_PLACE`, in their order."""
    found = [event_row(row, load) for row in rows]
    for batch in batches(list(zip(rows, found, strict=True))):
        keyed = [(int(row[1]), storable(shown["entry"]), shown) for row, shown in batch if shown["entry"] is not None]
        noted, _ = _find_annotated(engine, {key for key, _, _ in keyed})
        notes = _load_notes(engine, list({(key, entry): None for key, entry, _ in keyed if key in noted}))
        for key, entry, shown in keyed:
            shown["notes"] = notes.get((key, entry)) or []
    return found


def event_row(row: Row, load: Load = load) -> Plain:
    """Return the JSON form of an event row of `BY_PLACE`, without the notes on its entry."""
    record = load(row[3])
    with readable():
        return {
            "kind": "event", "id": require_text(record["id"]), "session": require_text(record["session"]),
            "ts": _name(record.get("ts")),
            "type": str(record.get("type")), "agent": _name(record.get("agent")), "entry": _name(record.get("entry")),
            "after": None if row[2] is None else int(row[2]), "data": record.get("data"), "notes": [],
        }  # fmt: skip


def note_rows(engine: Engine, rows: Sequence[Row]) -> list[Plain]:
    """Return the JSON form of `NOTE_COLUMNS` rows, in their order."""
    with readable():
        notes = [(int(row[1]), load(row[2])) for row in rows]
        places: dict[int, dict[str, int]] = {}
        successors: dict[int, dict[str, str]] = {}
        for key in {key for key, _ in notes}:
            own = [record for owner, record in notes if owner == key]
            places[key] = entry_places(engine, key, [entry for record in own for entry in _list(record.get("entries"))])
            successors[key] = _successors(engine, key, [storable(str(record["id"])) for record in own])
        return [_note(record, places[key], successors[key]) for key, record in notes]


def _successors(engine: Engine, key: int, notes: Sequence[str]) -> dict[str, str]:
    """Return the ids of the notes that supersede these notes, by the id of the superseded one."""
    found: dict[str, str] = {}
    for batch in batches(notes):
        names, values = placeholders(batch, "id")
        found |= dict(
            engine.query(
                f"SELECT note, successor FROM superseded WHERE session = :session AND note IN ({names})",
                {"session": key, **values},
            )
        )
    return found


def _note(record: Record, places: dict[str, int], successors: dict[str, str]) -> Plain:
    entries = _list(record.get("entries"))
    return {
        "kind": "note", "id": require_text(record["id"]), "session": require_text(record["session"]),
        "ts": _name(record.get("ts")),
        "entries": entries, "indexes": [places[entry] for entry in entries if entry in places],
        "content": str(record.get("content", "")), "tags": _list(record.get("tags")), "links": _list(record.get("links")),
        "author": _name(record.get("author")), "supersedes": _name(record.get("supersedes")),
        "supersededBy": successors.get(storable(str(record["id"]))),
        "missing": [entry for entry in entries if entry not in places],
    }  # fmt: skip


def _list(value: object) -> list[str]:
    return [str(item) for item in json_array(value)]


def entry_places(engine: Engine, key: int, ids: Sequence[str]) -> dict[str, int]:
    """Return the index of each entry id that exists in the session with this key."""
    places: dict[str, int] = {}
    for batch in batches(list(dict.fromkeys(ids))):
        names, values = placeholders([storable(item) for item in batch], "id")
        found = engine.query(
            "SELECT record.id, entry.idx FROM record JOIN entry ON entry.seq = record.seq AND entry.session = record.session "
            f"WHERE record.session = :session AND record.kind = 'entry' AND record.id IN ({names})",
            {"session": key, **values},
        )
        by_stored = {str(row[0]): int(row[1]) for row in found}
        places.update({item: by_stored[storable(item)] for item in batch if storable(item) in by_stored})
    return places


def _load_notes(engine: Engine, keyed: Sequence[tuple[int, str]]) -> dict[tuple[int, str], list[Plain]]:
    found: dict[tuple[int, str], list[Plain]] = {}
    for key in {key for key, _ in keyed}:
        names, values = placeholders([entry for owner, entry in keyed if owner == key], "id")
        rows = engine.query(
            "SELECT note_entry.entry, record.seq, record.session, record.body FROM note_entry "
            "JOIN record ON record.seq = note_entry.note AND record.session = note_entry.session "
            f"WHERE note_entry.session = :session AND note_entry.entry IN ({names}) ORDER BY record.seq",
            {"session": key, **values},
        )
        for row, note in zip(rows, note_rows(engine, [row[1:] for row in rows]), strict=True):
            found.setdefault((key, str(row[0])), []).append(note)
    return found


def _event_counts(engine: Engine, keyed: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
    counts: dict[tuple[int, str], int] = {}
    for key in {key for key, _ in keyed}:
        names, values = placeholders([entry for owner, entry in keyed if owner == key], "id")
        rows = engine.query(
            f"SELECT entry, count(*) FROM event WHERE session = :session AND entry IN ({names}) GROUP BY entry",
            {"session": key, **values},
        )
        counts.update({(key, str(entry)): int(count) for entry, count in rows})
    return counts


def _find_gone_parents(engine: Engine, parents: Sequence[tuple[int, object]]) -> set[tuple[int, str]]:
    gone: set[tuple[int, str]] = set()
    for key in {key for key, parent in parents if parent is not None}:
        named = [str(parent) for owner, parent in parents if owner == key and parent is not None]
        places = entry_places(engine, key, named)
        gone |= {(key, parent) for parent in named if parent not in places}
    return gone


def entry_shape(row: Plain) -> EntryView:
    """Return the view of a row of `entry_rows`."""
    view: EntryView = _make("entry", _with_note_shapes(row))
    return view


def _with_note_shapes(row: Plain) -> Plain:
    return {**row, "notes": [note_shape(note) for note in row["notes"]]} if row["notes"] else row


def event_shape(row: Plain) -> EventView:
    """Return the view of an `event_row`."""
    view: EventView = _make("event", _with_note_shapes(row))
    return view


def note_shape(row: Plain) -> NoteView:
    """Return the view of one of `note_rows`."""
    view: NoteView = _make("note", row)
    return view


def _make(kind: str, row: Plain) -> Any:
    """Return the view of a row without validating its fields, which would take most of the time."""
    shape, names = _shape(kind)
    values = dict(zip(names, row.values(), strict=True))  # a row has the fields of its shape, in their order
    return shape.model_from_values(values, set(values))


def _shape(kind: str) -> tuple[Any, tuple[str, ...]]:
    if not _shapes:
        from ctxmgr.types.view import EntryView, EventView, NoteView

        for name, shape in (("entry", EntryView), ("event", EventView), ("note", NoteView)):
            _shapes[name] = shape, tuple(shape.model_fields)
    return _shapes[kind]


_shapes: dict[str, tuple[Any, tuple[str, ...]]] = {}
"""The shape and the field names for each kind of row. Filled at first use, because shapes load slowly."""


def entry_views(engine: Engine, rows: Sequence[Row]) -> list[EntryView]:
    """Return the views of `ENTRY_COLUMNS` rows, in their order."""
    return [entry_shape(row) for row in entry_rows(engine, rows)]


_LONG_TEXT = 4_096
"""Length in characters from which a text is copied without being decoded."""

_PASSED_ON = frozenset(("input", "output", "data"))
"""Members of a record that are shown unchanged, so their texts need not be decoded."""

_MAX_MEMBERS = 200
_LEVELS = 8


class LongTexts:
    """Decodes records except for their long texts, and copies these into the JSON line that shows the record."""

    def __init__(self) -> None:
        # Random, so that no recorded text can contain the mark.
        self._mark = f"verbatim {os.urandom(16).hex()} "
        self._texts: list[str] = []
        self._members = 0

    def load(self, body: str) -> Record:
        """Return the record of a stored body, with marks for its long texts.

        Raises:
            Damaged: as `ctxmgr.store.row_mapper.load`.
        """
        if fast_json.parts is None or not body.isascii():
            return load(body)
        self._scans = fast_json.parts
        held, self._members = len(self._texts), 0
        try:
            record, end = self._object(body, 0, _LEVELS)
            if end == len(body):
                return record
        except (StopIteration, ValueError, IndexError, SystemError):
            pass
        # No line contains the marks made so far, because `load` decodes the body again.
        del self._texts[held:]
        return load(body)  # which has the last word

    def _object(self, text: str, at: int, levels: int) -> tuple[Record, int]:
        scan, scan_text = self._scans
        found: Record = {}
        # Whitespace, which our encoder does not write, or an empty object, which has no long text.
        if text[at] != "{" or text[at + 1] != '"':
            raise ValueError("not as it is written here")
        while True:
            name, at = scan_text(text, at + 2)
            if text[at] != ":":
                raise ValueError("not as it is written here")
            if levels == _LEVELS and name not in _PASSED_ON:
                found[name], at = scan(text, at + 1)
            else:
                found[name], at = self._value(text, at + 1, levels)
            self._members += 1
            if text[at] == "}":
                return found, at + 1
            # Member by member this is slower than the decoder, so it pays for few members only.
            if text[at] != "," or text[at + 1] != '"' or self._members > _MAX_MEMBERS:
                raise ValueError("not as it is written here")

    def _value(self, text: str, at: int, levels: int) -> tuple[object, int]:
        scan, scan_text = self._scans
        if text[at] == '"':
            value, end = scan_text(text, at + 1)
            if end - at < _LONG_TEXT:
                return value, end
            if "\x7f" in value:  # the only control character that JSON allows unescaped; it must not reach a terminal
                return value, end
            self._texts.append(text[at:end])
            return f"{self._mark}{len(self._texts) - 1}", end
        if text[at] == "{" and text[at + 1] == '"' and levels:
            return self._object(text, at, levels - 1)
        return scan(text, at)

    def restore(self, line: str) -> str:
        """Return a line of JSON with the marks replaced by their texts."""
        first, *rest = line.split(f'"{self._mark}')
        pieces = [first]
        for part in rest:
            number, _, behind = part.partition('"')
            pieces += (self._texts[int(number)], behind)
        return "".join(pieces)
