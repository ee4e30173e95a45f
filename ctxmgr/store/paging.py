"""Pages of a whole session's rows that cost the same wherever they are: each begins at the milestone before it."""

from __future__ import annotations

from ctxmgr.jsontext import cast

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than a whole query
if TYPE_CHECKING:
    from typing import Any, Literal

    from ctxmgr.store.interface import Engine

    Series = Literal["all", "event", "message"]
    """Of rows that are counted and have milestones: entries and events, events, events that carry something said."""

_ALL = (
    "SELECT seq, 'entry' FROM entry WHERE session = :session AND idx >= :idx AND idx < :idx + :reach UNION ALL "
    "SELECT seq, 'event' FROM event WHERE session = :session AND seq >= :seq ORDER BY seq LIMIT :count OFFSET :skip"
)
_EVENTS = "SELECT seq, 'event' FROM event WHERE session = :session AND seq >= :seq {} ORDER BY seq LIMIT :count OFFSET :skip"
_COUNTS = {"all": "entries + events", "event": "events", "message": "messages"}


def counted(engine: Engine, key: int, series: Series) -> int:
    """Return how many rows of a series a session has."""
    return int(engine.query(f"SELECT {_COUNTS[series]} FROM session WHERE key = :session", {"session": key})[0][0])


def page(engine: Engine, key: int, series: Series, offset: int, limit: int, *, newest_first: bool = False
         ) -> tuple[list[tuple[int, str]], int] | None:  # fmt: skip
    """Return the places of one page of a session's rows, and how many rows there are.

    Returns:
        None where the session has no milestones: its rows were copied from another store, and some came late.
    """
    total = counted(engine, key, series)
    end = max(0, total - offset) if newest_first else min(total, offset + limit)
    begin = max(0, end - limit) if newest_first else offset
    if begin >= end:
        return [], total
    values: dict[str, Any] = {"session": key, "series": series, "begin": begin}
    found = engine.query(
        "SELECT number, seq FROM milestone WHERE session = :session AND series = :series AND number <= :begin "
        "ORDER BY number DESC LIMIT 1",
        values,
    )
    if not found:
        return None
    values |= {"seq": found[0][1], "skip": begin - found[0][0], "count": end - begin, "reach": end - found[0][0]}
    if series == "all":
        values["idx"] = _entries_before(engine, found[0][1])
        rows = engine.query(_ALL, values)
    elif series == "event":
        rows = engine.query(_EVENTS.format(""), values)
    else:
        rows = engine.query(_EVENTS.format(f"AND type IN ({_types()})"), values)
    if newest_first:
        rows.reverse()
    return cast("list[tuple[int, str]]", rows), total


def _entries_before(engine: Engine, place: int) -> int:
    """Return how many entries of its session stand before the row at a place."""
    index, after = engine.query(
        "SELECT (SELECT idx FROM entry WHERE seq = :place), (SELECT after FROM event WHERE seq = :place)", {"place": place}
    )[0]
    if index is not None:
        return int(index)
    return 0 if after is None else int(after) + 1


def _types() -> str:
    from ctxmgr.types.plain import MESSAGE_TYPES

    return ", ".join(f"'{name}'" for name in MESSAGE_TYPES)
