"""Replay a session's records as observations; a second process reads ahead in a long one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ctxmgr.detect.replay import Told, observations_from, told
from ctxmgr.errors import StorageFailed
from ctxmgr.log.fast_json import loads
from ctxmgr.store import Store
from ctxmgr.store.parallel_read import Place, born_of, place_of, stretches, stretches_there
from ctxmgr.store.row_mapper import load
from ctxmgr.store.worker_process import Lost, beside, is_of_use
from ctxmgr.types.observation import Observation

KINDS = ("session", "entry", "result", "event", "continuation", "sessionEnd")

_LONG = 20_000
"""Entries from which on a second process saves more time than it takes to start."""


def replay(store: Store, key: int) -> Iterator[Observation]:
    """Yield what happened in a session, in the order of the log.

    Raises:
        CtxmgrError: it can't be read.
    """
    place = place_of(store.engine, store.location) if is_of_use() and store.sessions.entry_count(key) >= _LONG else None
    happenings = _here(store, key, 0) if place is None else _beside(store, key, place)
    return observations_from(happenings, distinct=True)


def _here(store: Store, key: int, after: int) -> Iterator[Told | None]:
    for _, bodies in stretches(store.engine, key, KINDS, after):
        yield from map(told, map(load, bodies))


def _beside(store: Store, key: int, place: Place) -> Iterator[Told | None]:
    last = 0
    with beside("ctxmgr.history.replay:ahead", tuple(place), key) as there:
        while True:
            try:
                stretch = next(there, None)
            except Lost:
                break
            if stretch is None:
                return
            last, happenings = stretch
            yield from happenings
    # It is not told why: what is wrong with the store shows when it is read here.
    if last and born_of(store.engine) != place.born:
        raise StorageFailed(f"{store.location} was replaced", "run the command again")
    yield from _here(store, key, last)


def ahead(place: Iterable[str], key: int) -> Iterator[tuple[int, list[Told | None]]]:
    """Yield what happened in stretches, each with the place of its last record: in a second process.

    Raises:
        CtxmgrError: it can't be read.
        ValueError: what is stored is no record.
    """
    for last, bodies in stretches_there(Place(*place), key, KINDS):
        yield last, [told(loads(body)) for body in bodies]
