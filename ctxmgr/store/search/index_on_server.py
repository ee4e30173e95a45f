"""The search index of a store on a server: the folded texts of its entries and events, each under its place in the log.

A result's text stands with the entry that it completed. Where the server has trigrams (pg_trgm) these find a text fast;
without them it reads the texts. It proposes places, and whoever asks compares the records there. It covers the log up to a
mark, is written behind the appends, and can be emptied at any time.
"""

from __future__ import annotations

from ctxmgr.store.engine.postgresql_functions import INDEXERS
from ctxmgr.store.engine.spelling import KEEP_STATE
from ctxmgr.store.normalise import folded_text
from ctxmgr.store.row_mapper import load

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from ctxmgr.store.engine.interface import Engine
    from ctxmgr.store.engine.postgresql import PostgresqlEngine
    from ctxmgr.store.search.index import Progress

_MARK = "search.mark"
_SLICE = 512
"""Records that are indexed together."""
_WIDEST = 1 << 22
"""Places that are looked at together: most of them may be other teams'."""
_LONGEST = 1_000_000
"""Characters of a text that are indexed; of a longer one the place is proposed whatever is asked for."""

TOO_LONG = "ctxmgrtoolongtobeindexed"
"""What stands for a text that is too long to be indexed; trigrams find it as they find any text."""

_NEXT = (
    "SELECT count(*), max(seq) FROM "
    "(SELECT seq FROM record WHERE seq > :low AND seq <= :far ORDER BY seq LIMIT :most) AS following"
)
_RECORDS = (
    "SELECT record.seq, record.session, record.kind, record.body, other.seq, other.body FROM record LEFT JOIN record AS other "
    "ON other.session = record.session AND other.id = record.id AND (record.kind = 'result' AND other.kind = 'entry' "
    "OR record.kind = 'entry' AND other.kind = 'result' AND other.seq < record.seq) "
    "WHERE record.seq > :low AND record.seq <= :high AND record.kind IN ('entry', 'event', 'result') ORDER BY record.seq"
)
_ADD = (
    "INSERT INTO search_text (seq, session, text) VALUES (:seq, :session, :text) "
    "ON CONFLICT (session, seq) DO UPDATE SET text = search_text.text || excluded.text"
)


def mark(engine: Engine) -> int:
    """Return the place up to which the index knows the log."""
    rows = engine.query("SELECT value FROM state WHERE name = :name", {"name": _MARK})
    return int(rows[0][0]) if rows else 0


def advance(engine: PostgresqlEngine, progress: Progress | None = None) -> bool:
    """Index what was appended since last time; return whether there was anything. Several may do it at once."""
    moved, width = False, _SLICE
    while True:
        with engine.appending():  # appends go on meanwhile
            engine.query("SELECT pg_advisory_xact_lock(:indexers)", {"indexers": INDEXERS})
            low, last = mark(engine), int(engine.query("SELECT settled()")[0][0])
            if low >= last:
                return moved
            far = min(low + width, last)
            count, end = engine.query(_NEXT, {"low": low, "far": far, "most": _SLICE})[0]
            high = int(end) if count == _SLICE else far
            width = _SLICE if count == _SLICE else min(width * 4, _WIDEST)
            _add(engine, low, high)
            engine.execute(KEEP_STATE, {"name": _MARK, "value": str(high)})
        moved = True
        if progress is not None:
            progress(high, last)


def _add(engine: Engine, low: int, high: int) -> None:
    texts: dict[tuple[int, int], str] = {}
    for seq, session, kind, body, other, early in engine.query(_RECORDS, {"low": low, "high": high}):
        place = other if kind == "result" else seq
        if place is None:  # a result that came before its entry: it is added with that
            continue
        for each in (body, early) if kind == "entry" and early is not None else (body,):
            text = folded_text(load(each)) or ""
            key = int(place), int(session)
            texts[key] = f"{texts.get(key, '')}\n{text if len(text) <= _LONGEST else TOO_LONG}"
    engine.many(_ADD, [{"seq": seq, "session": session, "text": text} for (seq, session), text in texts.items()])
