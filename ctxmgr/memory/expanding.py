"""Expand an episode: the entries before, at and after those it came from."""

from __future__ import annotations

from contextlib import suppress

from ctxmgr.errors import InvalidInput, NoHistory, NotFound, OutOfBounds
from ctxmgr.history.address import linked_entry
from ctxmgr.store import Store
from ctxmgr.store.queries import Rows
from ctxmgr.types.memory import Episode
from ctxmgr.types.view import EntryView

MOST_AROUND = 200
"""Entries that one episode is expanded to at most; those about its first links are kept."""


def around(store: Store, episode: Episode, reach: int) -> list[EntryView]:
    """Return the linked entries and up to ``reach`` before and after each, every one once, session by session in order.

    Links are ids of entries, of other sessions too, or addresses. What is gone, or lies beyond the ends, is left out.
    """
    if reach < 1:
        return []
    found: dict[tuple[int, int], EntryView] = {}
    for key, index in _linked(store, episode):
        # The linked entry itself comes first, so that the cap never costs it.
        for place in sorted(range(max(0, index - reach), index + reach + 1), key=lambda place: abs(place - index)):
            if len(found) >= MOST_AROUND:
                break
            if (key, place) not in found and (entry := store.queries.entry_at(key, place)) is not None:
                found[key, place] = entry
    order = list(dict.fromkeys(key for key, _ in found))
    return [found[place] for place in sorted(found, key=lambda place: (order.index(place[0]), place[1]))]


def _linked(store: Store, episode: Episode) -> list[tuple[int, int]]:
    own = store.sessions.key(episode.session)
    if own is None:
        return []
    places = [(own, index) for index in episode.indexes]
    rows = Rows(store.engine)
    for link in episode.links[:MOST_AROUND]:
        with suppress(InvalidInput, NotFound, NoHistory, OutOfBounds):  # a link that was written elsewhere may lead nowhere
            entry = linked_entry(store, rows, own, link)
            if entry is not None and (key := store.sessions.key(str(entry["session"]))) is not None:
                places.append((key, int(entry["index"])))
    return list(dict.fromkeys(places))
