"""Derive the rows that follow from a record: session, process, notes, usage."""

from __future__ import annotations

from ctxmgr.log import fast_json
from ctxmgr.log.fast_json import cast
from ctxmgr.store.normalise import fold, storable
from ctxmgr.store.reserved import require_not_archived

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxmgr.log.codec import Record
    from ctxmgr.store.engine.interface import Engine

_MAX_TOKENS = 2**40  # of one response; more is no count, and sums of such numbers do not fit


SAID_LATER = frozenset({"note", "snapshot", "continuation"})
"""Kinds of records that tell of a session without going on with it: it does not become the latest one by them."""


class SessionCounters:
    """A session during an append: its counters and its last sum are kept here, and stored once at the end."""

    __slots__ = ("entries", "events", "first", "key", "last", "messages", "processes", "seq", "total")

    def __init__(self, key: int, entries: int = 0, events: int = 0, messages: int = 0, total: str | None = None) -> None:
        self.key = key
        self.entries = entries
        self.events = events
        self.messages = messages
        self.total = total
        self.seq: int | None = None
        self.first: float | None = None
        self.last: float | None = None
        self.processes: set[str] = set()

    def see(self, seq: int, moment: float | None) -> None:
        """Take note of a record that was written."""
        self.seq = seq
        if moment is not None:
            if self.first is None or moment < self.first:
                self.first = moment
            if self.last is None or moment > self.last:
                self.last = moment

    def store(self, engine: Engine) -> None:
        """Write down what was counted."""
        engine.execute(
            "UPDATE session SET entries = :entries, events = :events, messages = :messages, sum = :total, "
            "seq = coalesce(:seq, seq), "
            "first = CASE WHEN first IS NULL OR :first < first THEN coalesce(:first, first) ELSE first END, "
            "last = CASE WHEN last IS NULL OR :last > last THEN coalesce(:last, last) ELSE last END WHERE key = :key",
            {
                "entries": self.entries, "events": self.events, "messages": self.messages, "total": self.total,
                "seq": self.seq, "first": self.first, "last": self.last, "key": self.key,
            },
        )  # fmt: skip


SESSION = "SELECT key, entries, events, messages, sum FROM session WHERE id = :id"
_NEW_SESSION = "INSERT INTO session (id) VALUES (:id) RETURNING key"


def touched(engine: Engine, session: str) -> tuple[SessionCounters, bool]:
    """Return a session as it is counted so far, made now if there is none; and whether it was made."""
    name = {"id": storable(session)}
    rows = engine.query(SESSION, name)
    if rows:
        return SessionCounters(*rows[0]), False
    require_not_archived(engine, name["id"])
    return SessionCounters(int(engine.query(_NEW_SESSION, name)[0][0])), True


def optional(value: object) -> str | None:
    """Return the text of a name or a number as it is stored, None for anything else."""
    return storable(str(value)) if isinstance(value, str | int) else None


def optional_folded(value: object) -> str | None:
    """Return the text of a name or a number as filters compare it, None for anything else."""
    return fold(str(value)) if isinstance(value, str | int) else None


def remember_process(engine: Engine, seq: int, key: int, process: str, started: str | None) -> None:
    """Remember which process executed the session (FR-026), also where no record says that it began."""
    engine.execute(
        "INSERT INTO process (session, process, seq, started) VALUES (:session, :process, :seq, :ts) "
        "ON CONFLICT (session, process) DO UPDATE SET started = coalesce(process.started, excluded.started)",
        {"session": key, "process": process, "seq": seq, "ts": started},
    )


def usage_of(record: Record) -> tuple[int | None, int | None] | None:
    """Return the tokens that a record says were read and written, or None when it says nothing of them.

    A response of a model is one event; results and finished entries may carry what they used themselves.
    """
    if record["kind"] == "event":
        used: object = record.get("data") if record.get("type") == "usage" else None
    else:
        used = record.get("usage")
    return tokens_of(used)


def tokens_of(used: object) -> tuple[int | None, int | None] | None:
    """Return the tokens that a usage names, or None when it names none."""
    if type(used) is not dict:
        return None
    tokens = [cast("dict[str, object]", used).get(name) for name in ("inputTokens", "outputTokens")]
    read, written = (count if type(count) is int and abs(count) < _MAX_TOKENS else None for count in tokens)
    return None if read is None and written is None else (read, written)


def _session(engine: Engine, seq: int, touched: SessionCounters, record: Record) -> None:
    engine.execute(
        "UPDATE session SET workflow = coalesce(workflow, :workflow), source = coalesce(source, :source), "
        "meta = coalesce(meta, :meta) WHERE key = :key",
        {
            "workflow": optional(record.get("workflow")),
            "source": fast_json.dumps(record["source"]) if record.get("source") is not None else None,
            "meta": fast_json.dumps(record["meta"]) if record.get("meta") is not None else None,
            "key": touched.key,
        },
    )
    remember_process(engine, seq, touched.key, optional(record.get("process")) or "", optional(record.get("ts")))


def _session_end(engine: Engine, seq: int, touched: SessionCounters, record: Record) -> None:
    process = optional(record.get("process"))
    values = {"session": touched.key, "outcome": optional(record.get("outcome")), "process": process}
    named = "AND process = :process" if process is not None else ""
    ended = f"UPDATE process SET outcome = :outcome WHERE session = :session {named}"
    if not engine.execute(ended, values):
        remember_process(engine, seq, touched.key, process or "", None)
        engine.execute(ended, values)


def _note(engine: Engine, seq: int, touched: SessionCounters, record: Record) -> None:
    for entry in _texts(record.get("entries")):
        engine.execute(
            "INSERT INTO note_entry (session, entry, note) VALUES (:session, :entry, :note) ON CONFLICT DO NOTHING",
            {"session": touched.key, "entry": entry, "note": seq},
        )
    for tag in map(fold, _texts(record.get("tags"))):
        engine.execute(
            "INSERT INTO note_tag (session, tag, note) VALUES (:session, :tag, :note) ON CONFLICT DO NOTHING",
            {"session": touched.key, "tag": tag, "note": seq},
        )
    if (former := optional(record.get("supersedes"))) is not None:
        engine.execute(
            "INSERT INTO superseded (session, note, successor) VALUES (:session, :note, :successor) ON CONFLICT DO NOTHING",
            {"session": touched.key, "note": former, "successor": storable(str(record["id"]))},
        )


def _texts(value: object) -> list[str]:
    return [storable(item) for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []


HANDLERS: dict[str, Callable[[Engine, int, SessionCounters, Record], None]] = {
    "session": _session,
    "sessionEnd": _session_end,
    "note": _note,
}
"""By kind, what else a record changes; entries, results and events are written together, see `ctxmgr.store.write.batch`."""
