"""Collect the words and marks of a stretch of the log for the search index.

A second process reads a long log (`read_stretches`) while this one writes the index. Records never change once they are
written, so its batches are valid as long as the log is still the one that it read.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from ctxmgr.store.search.text_match import block_number, find_marks, split_words, stored_texts, word_windows
from ctxmgr.store.text_normalisation import FIELDS, flat_texts, fold
from ctxmgr.store.worker_process import Place, creation_mark, open_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ctxmgr.store.engine.interface import Engine, Row

_ROWS = 256
_CHARACTERS = 250_000
"""Largest number of records and characters in a stretch. Its last part may exceed them."""

_PART = 64
_AT_ONCE = 200_000
"""Number of characters that are split into words at once. The words take ten times the memory of the text."""

_MAX_KNOWN_WORDS = 60_000

_READ = (
    "SELECT seq, kind, CASE WHEN kind IN ('entry', 'event', 'result') THEN body END, id FROM {records} WHERE seq > :start "
    "ORDER BY seq LIMIT :rows"
)
_ANSWERS = "SELECT result, seq FROM entry WHERE seq > :start AND seq <= :end AND result <> seq AND result <= :end"


class IndexBatch(NamedTuple):
    """A stretch of the log in the form for the index.

    Attributes:
        start: the place behind which the stretch begins.
        end: its last place.
        seen: the id of the record at its last place.
        born: see `creation_mark`.
        size: the number of characters in its texts.
        texts: (place, text) of its entries and events. A result within the stretch is part of its entry.
        answers: (place, text) of its other results.
        marks: (block, runs of marks) of each block of places that has any.
        fresh: the vocabulary's rows for words that were not in an earlier batch, sorted.
    """

    start: int
    end: int
    seen: str
    born: str
    size: int
    texts: list[tuple[int, str]]
    answers: list[tuple[int, str]]
    marks: list[tuple[int, str]]
    fresh: list[tuple[str, str]]


class Reader:
    """Reads a log in stretches, and remembers which words it has returned.

    Args:
        engine: the engine of the store.
        records: the SQL name of the table of records.
    """

    def __init__(self, engine: Engine, records: str = "record") -> None:
        self._engine = engine
        self._records = records
        self._known: set[bytes] = set()
        self._text = _slow_text

    def next_batch(self, start: int, rows: int = _ROWS) -> IndexBatch | None:
        """Return the stretch behind a place, with at most ``rows`` records; None at the end of the log.

        It ends at the end of a block of places, because marks are written for whole blocks.
        """
        if self._known and self._text is _slow_text:  # for a second stretch, the library that loads slowly pays
            self._text = _quick_text()
        texts: dict[int, str] = {}
        answers: dict[int, str] = {}
        fresh: set[bytes] = set()
        part: list[str] = []
        size = reported = 0
        end, seen = start, None
        while (rows >= _PART or seen is None) and size < _CHARACTERS:
            found = self._part_behind(end, min(rows, _PART))
            if not found:
                break
            for seq, kind, body, _ in found:
                if body is not None:
                    text = self._text(body)
                    (answers if kind == "result" else texts)[seq] = text
                    part.append(text)
                    size += len(text)
                    if size - reported > _AT_ONCE:
                        fresh |= split_words(part) - self._known
                        part, reported = [], size
            rows -= len(found)
            end, seen = int(found[-1][0]), found[-1][3]
        if seen is None:
            return None
        fresh |= split_words(part) - self._known
        self._remember(fresh)
        self._complete(texts, answers, start, end)
        return IndexBatch(
            start, end, str(seen), creation_mark(self._engine), size,
            sorted(texts.items()), sorted(answers.items()), marks_by_block(texts), _windows(fresh),
        )  # fmt: skip

    def _part_behind(self, end: int, rows: int) -> list[Row]:
        found = self._engine.query(_READ.format(records=self._records), {"start": end, "rows": rows})
        last = len(found) if len(found) == rows else 0
        while last and block_number(found[last - 1][0]) == block_number(found[last - 1][0] + 1):
            last -= 1
        # At the end of the log, or in a block with more records than one read, the cut is not at the end of a block.
        return found[:last] if last else found

    def _complete(self, texts: dict[int, str], answers: dict[int, str], start: int, end: int) -> None:
        """Add the texts of results to those of their entries, if both are there."""
        done: set[int] = set()
        for result, place in self._engine.query(_ANSWERS, {"start": start, "end": end}):
            found = answers.get(result)
            found = self.read_text(result) if found is None else found
            texts[place] = f"{texts[place]} {found}" if place in texts else found
            done.add(result)
        for result in done:
            answers.pop(result, None)

    def read_text(self, place: int) -> str:
        """Return the text of the record at a place."""
        rows = self._engine.query(f"SELECT body FROM {self._records} WHERE seq = :place", {"place": place})
        return self._text(rows[0][0]) if rows else ""

    def _remember(self, fresh: set[bytes]) -> None:
        # Forgotten words are returned again, which only takes time.
        if len(self._known) + len(fresh) > _MAX_KNOWN_WORDS:
            self._known.clear()
        self._known |= fresh

    def forget(self) -> None:
        """Forget all words, so that they are returned again."""
        self._known.clear()


def read_stretches(place: tuple[str, str, str], start: int) -> Iterator[tuple[Any, ...]]:
    """Yield the stretches behind a place in the log as tuples. Runs in a second process and writes nothing.

    Raises:
        CtxmgrError: the records can't be read, or the log is not the one that was indexed.
    """
    engine, records = open_records(Place(*place))
    reader = Reader(engine, records)
    while True:
        engine.execute("BEGIN")  # read each stretch in one snapshot
        stretch = reader.next_batch(start)
        engine.execute("COMMIT")
        if stretch is None:
            return
        start = stretch.end
        yield tuple(stretch)


def marks_by_block(texts: dict[int, str]) -> list[tuple[int, str]]:
    """Return (block, runs of marks) for folded texts by place, ordered by block."""
    blocks = groupby(sorted(texts), key=block_number)
    runs = [(block, find_marks([texts[place] for place in places])) for block, places in blocks]
    return [(block, b" ".join(sorted(found)).decode()) for block, found in runs if found]


def _windows(words: set[bytes]) -> list[tuple[str, str]]:
    return [window for word in sorted(words) for window in word_windows(word.decode())]


def _slow_text(body: object) -> str:
    """Return the texts of a stored record in the form for the index: folded, separated by blanks."""
    return fold(" ".join(stored_texts(str(body))))


def _quick_text() -> Callable[[object], str]:
    """Return a faster `_slow_text`. It uses msgspec, which takes as long to load as it saves on a thousand records."""
    import msgspec

    kinds = ("entry", "event", "result")
    names = dict.fromkeys(name for kind in kinds for name in FIELDS[kind])
    record = msgspec.defstruct("record", [("kind", str), *((name, object, None) for name in names)])
    decode: Callable[[Any], Any] = msgspec.json.Decoder(record).decode
    values_of = {kind: attrgetter(*FIELDS[kind]) for kind in kinds}

    def text(body: object) -> str:
        try:
            found: Any = decode(body)
            texts = flat_texts(values_of[found.kind](found))
        except Exception:  # msgspec rejects some JSON that Python accepts: infinities, lone surrogates
            return _slow_text(body)
        return fold(" ".join(texts))

    return text
