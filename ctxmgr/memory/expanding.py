"""Expand an episode: the entries before, at and after those it came from."""

from __future__ import annotations

import re
from contextlib import suppress

from ctxmgr.errors import InvalidInput
from ctxmgr.store import Store
from ctxmgr.types.memory import Episode
from ctxmgr.types.view import EntryView

MOST_AROUND = 200
"""Entries that one episode is expanded to at most; those about its first links are kept."""

_ADDRESS = re.compile(r"(.+)@([0-9]{1,15})", re.DOTALL)


def around(store: Store, episode: Episode, reach: int) -> list[EntryView]:
    """Return the linked entries and up to ``reach`` before and after each, every one once, session by session in order.

    Links of the form ``SESSION@INDEX`` lead into other sessions. What is gone, or lies beyond the ends, is left out.
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
    places = [(own, index) for index in episode.indexes] if own is not None else []
    for link in episode.links[:MOST_AROUND]:
        address = _ADDRESS.fullmatch(link)
        if address is None:
            continue
        with suppress(InvalidInput):  # a name that several sessions begin with leads nowhere
            if (key := store.sessions.key(address[1])) is not None:
                places.append((key, int(address[2])))
    return list(dict.fromkeys(places))
