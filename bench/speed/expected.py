"""What a search must find: every text of every record is looked through, without any index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from bench.speed.histories import ABSENT, COMMON, PERCENT, RARE, RARE_MARKS, History

HITS = 50
_BETWEEN = "\U0010ffff"
_FIELDS = {
    "entry": ("action", "agent", "inputType", "input", "output", "error", "task"),
    "event": ("type", "agent", "data"),
}


class Found(NamedTuple):
    """How many records hold a text, and the ids of the first fifty."""

    hits: int
    ids: list[str]


def terms(history: History) -> dict[str, str]:
    """Return the texts to search for by what is special about them."""
    call = history.facts.rare_call
    return {
        "rare word": RARE, "part of a rare word": RARE[2:8], "1 % word": PERCENT, "part of a 1 % word": PERCENT[2:8],
        "common word": COMMON, "common in sources": "return", "absent": ABSENT, "rare marks": RARE_MARKS,
        "common marks": "):", "marks and a word": "self.", "phrase, rare": f"{RARE} was", "phrase, common": "if not ",
        "3 digits of an id": call[:3], "4 digits of an id": call[5:9], "6 digits of an id": call[9:15],
        "an id": call, "an action": "kickOffDiscovery", "1 letter": "z", "2 letters": "zx", "2 marks": "=>",
    }  # fmt: skip


def expected(history: History) -> dict[str, Found]:
    """Return what each term must find; kept beside the history, for the history is always the same."""
    place = history.path.with_suffix(".found.json")
    wanted = terms(history)
    if place.exists():
        known = json.loads(place.read_text(encoding="ascii"))
        if known.keys() >= wanted.keys():
            return {name: Found(*known[name]) for name in wanted}
    found = scan(history.path, wanted)
    place.write_text(json.dumps(found), encoding="ascii")
    return found


def scan(log: Path, wanted: dict[str, str]) -> dict[str, Found]:
    """Look through a log."""
    needles = [(name, text.casefold()) for name, text in wanted.items()]
    counts: dict[str, int] = dict.fromkeys(wanted, 0)
    first: dict[str, list[str]] = {name: [] for name in wanted}
    with log.open("rb") as lines:
        for line in lines:
            record = cast("dict[str, Any]", json.loads(line))
            fields = _FIELDS.get(record["kind"])
            if fields is None:
                continue
            text = _BETWEEN.join(part for name in fields for part in _texts(record.get(name))).casefold()
            for name, needle in needles:
                if needle in text:
                    counts[name] += 1
                    if counts[name] <= HITS:
                        first[name].append(record["id"])
    return {name: Found(counts[name], first[name]) for name in wanted}


def _texts(value: Any) -> Iterator[str]:
    """Yield every text, number and key."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield repr(value)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
