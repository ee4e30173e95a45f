"""The records of one session from a place on, in stretches; by this process, or by a second one that reads ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxmgr.store.elsewhere import opened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxmgr.store.elsewhere import Place
    from ctxmgr.store.interface import Engine

_ROWS = 256


def stretches(
    engine: Engine, key: int, kinds: Sequence[str], after: int = 0, records: str = "record"
) -> Iterator[tuple[int, list[str]]]:
    """Yield the stored records of a session behind a place, some at a time with the place of the last of them."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    sql = f"SELECT seq, body FROM {records} WHERE session = :key AND seq > :after AND kind IN ({names}) ORDER BY seq"
    bodies: list[str] = []
    for seq, body in engine.stream(sql, {"key": key, "after": after}):
        bodies.append(str(body))
        if len(bodies) == _ROWS:
            yield int(seq), bodies
            bodies = []
        after = int(seq)
    if bodies:
        yield after, bodies


def stretches_there(place: Place, key: int, kinds: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the same in another process than that which has the store open; nothing is written.

    Raises:
        CtxmgrError: it can't be read, or the log is not the one that was indexed.
    """
    engine, records = opened(place)
    yield from stretches(engine, key, kinds, records=records)
