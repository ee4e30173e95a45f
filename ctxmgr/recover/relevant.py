"""Find in the whole history what a request for context speaks of: by its own words, the rare ones first."""

from __future__ import annotations

import re

from ctxmgr.detect.normal import word_set
from ctxmgr.recover.desk import Desk
from ctxmgr.types.route import ContextRequest
from ctxmgr.types.view import EntryView

_MOST_WORDS = 6
_MOST_HITS = 12
_WORD = re.compile(r"\w[\w./-]{2,59}\w")
_EMPTY = word_set(
    "about after again agent been before being cannot context continue could done earlier else finish from give have "
    "help into know lack lacks last like lost make missing more most must need needed needs next only other over "
    "please proceed request review should some task tell than that their them then there they this those through "
    "until want were what when where which while will with without work would your"
)


def relevant(desk: Desk, request: ContextRequest, most: int) -> list[EntryView]:
    """Return up to ``most`` entries that hold words of the request, oldest first.

    A word counts the more the fewer entries hold it; one that is in more than half of a history says nothing.
    """
    text = " ".join(part[:4_000] for part in (request.goal, request.reason, request.additional_context or ""))
    found: dict[str, EntryView] = {}
    weight: dict[str, float] = {}
    total = desk.total()
    for word in _telling(text):
        entries, hits = desk.search(word, _MOST_HITS)
        if hits > max(3, total // 2):
            continue
        for entry in entries:
            found[entry.id] = entry
            weight[entry.id] = weight.get(entry.id, 0) + 1 / hits
    best = sorted(found.values(), key=lambda entry: (weight[entry.id], entry.index))[-most:]
    return sorted(best, key=lambda entry: entry.index)


def _telling(text: str) -> list[str]:
    words = dict.fromkeys(word.casefold() for word in _WORD.findall(text))
    telling = [word for word in words if word not in _EMPTY]
    # Names of files, functions and things with digits say more than words of prose, and long words more than short.
    return sorted(telling, key=lambda word: (word.isalpha(), -len(word)))[:_MOST_WORDS]
