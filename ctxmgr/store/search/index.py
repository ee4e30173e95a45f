"""The search index: words and their parts. It is built after the appends and can be deleted at any time.

``search_word`` holds the words of each entry (with its result) and of each event by place in the log. ``search_mark`` holds the
punctuation of a few neighbouring places together. ``search_term`` is the vocabulary in order of appearance, and ``search_gram``
finds its terms by three letters in a row.
The index covers the log up to a mark. It proposes places whose texts the caller compares, so it may hold too much, but never
too little. All of it is derived from the tables of the store, so it can be dropped and built again.
"""

from __future__ import annotations

from ctxmgr.store.search.text_match import TOKENIZER, split_words, word_windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxmgr.store.engine.interface import Engine, Row
    from ctxmgr.store.search.index_texts import IndexBatch
    from ctxmgr.store.worker_process import SecondProcess

    Progress = Callable[[int, int], None]

TABLES = ("search_word", "search_term", "search_gram", "search_mark", "search_open", "search_state")

_FULL_TEXT = ("search_word", "search_gram", "search_mark")
_VERSION = 3
"""The version of the index. An index of an older version is built again."""

_ROWS = 8192
_BYTES = 8_000_000
"""Limits of one transaction: number of places, and number of characters of text."""

_SECOND_PROCESS_FROM = 8192
"""Number of remaining places from which a second process reads them."""

_PAGES = 1000
_MERGE_LATER_FROM = 4 * _ROWS
_GATHERED_LATER = {"automerge": 0, "crisismerge": 2000, "hashsize": 1_500_000}
_AS_IT_GROWS = {"automerge": 4, "crisismerge": 16, "hashsize": 1_000_000}
"""Options of the full-text indexes for a long log, whose parts are merged at the end, and for one that grows.

Merging parts repeatedly as they come takes a third of the time.
"""


_SOON, _LATER = 1_000, 16_000
"""Number of pages in the write-ahead log after which SQLite copies them into the database: its default, and for a long log.

Each slice writes to most pages of the vocabulary, so with a larger number several writes to a page are copied once."""

_CREATE = (
    f"CREATE VIRTUAL TABLE search_word USING fts5(words, content='', detail=none, columnsize=0, tokenize='{TOKENIZER}')",
    # No place before ``since`` contains the term. A term that is later found before that place gets a twin with a negative id,
    # so that the order of ids stays the order of ``since``.
    "CREATE TABLE search_term (id INTEGER PRIMARY KEY, text TEXT NOT NULL, head TEXT NOT NULL, since INTEGER NOT NULL, "
    "early INTEGER NOT NULL, UNIQUE (text, head, early))",
    "CREATE VIRTUAL TABLE search_gram USING fts5(term, content='', detail=none, columnsize=0, "
    "tokenize='trigram case_sensitive 1')",
    # The runs of punctuation in a few neighbouring places together.
    "CREATE VIRTUAL TABLE search_mark USING fts5(runs, content='', detail=none, columnsize=0, "
    "tokenize='trigram case_sensitive 1')",
    # Entries whose result came behind the mark. Their places are always proposed.
    "CREATE TABLE search_open (seq INTEGER PRIMARY KEY)",
    "CREATE TABLE search_state (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
)

# A result is indexed under its entry once both are before the mark.
_ANSWERS = """
SELECT result, seq FROM entry WHERE seq > :start AND seq <= :end AND result <> seq AND result <= :end
UNION ALL SELECT entry.result, entry.seq FROM search_open CROSS JOIN entry ON entry.seq = search_open.seq
 WHERE entry.result <= :end
"""
_WORDS = "INSERT INTO search_word (rowid, words) VALUES (?, ?)"
_MARKS = "INSERT INTO search_mark (rowid, runs) VALUES (?, ?)"
_TERM = "INSERT OR IGNORE INTO search_term (text, head, since, early) VALUES (?, ?, ?, 0)"
_EARLY = (
    "INSERT INTO search_term (id, text, head, since, early) "
    "SELECT (SELECT min(0, coalesce(min(id), 0)) - 1 FROM search_term), :text, :head, 0, 1 "
    "WHERE NOT EXISTS (SELECT 1 FROM search_term WHERE text = :text AND head = :head AND since <= :since)"
)


def mark(engine: Engine) -> int:
    """Return the place in the log up to which the index is valid; 0 if there is none."""
    found = engine.query(f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN {TABLES}")
    if int(found[0][0]) != len(TABLES):
        return 0
    # The record at the mark must be the one that was indexed, else the log's rows were cleared and written again.
    rows = engine.query(
        "SELECT place.value FROM search_state AS place JOIN search_state AS seen ON seen.name = 'seen' "
        "JOIN record ON record.seq = place.value AND record.id = seen.value "
        "JOIN search_state AS version ON version.name = 'version' AND version.value = :version WHERE place.name = 'mark'",
        {"version": _VERSION},
    )
    return int(rows[0][0]) if rows else 0


def available(engine: Engine) -> bool:
    """Whether the SQLite library has full-text search (FTS5)."""
    rows = engine.query("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'")
    return bool(rows[0][0])


def drop(engine: Engine) -> None:
    """Delete the index."""
    for table in TABLES:
        engine.execute(f"DROP TABLE IF EXISTS {table}")


class Builder:
    """Extends the index of one store. Several may work at once, because each slice of the log is one transaction.

    Args:
        engine: the engine of the store.
        location: the location of the store; if it is not given, no second process is used.
    """

    def __init__(self, engine: Engine, location: str = "") -> None:
        from ctxmgr.store.search.index_texts import Reader

        self._engine = engine
        self._location = location
        self._reader = Reader(engine)
        self._ahead: SecondProcess | None = None
        self._alone = not location
        self._much: bool | None = None

    def advance(self, progress: Progress | None = None, *, gather: bool = True) -> bool:
        """Index the log to its end, slice by slice. An interruption keeps the slices before.

        Args:
            progress: called with the number of places done and of all places.
            gather: also merge the parts of the index for faster look-ups, which does not pay while more is to come.

        Returns:
            Whether there was anything to index.
        """
        if not available(self._engine):
            return False
        start, last = mark(self._engine), self._last()
        moved, much = start < last, False
        try:
            while start < last:
                if progress is not None:
                    progress(start, last)
                if last - start > _SECOND_PROCESS_FROM and not self._alone and self._ahead is None:
                    self._read_ahead(start)
                if last - start > _MERGE_LATER_FROM and not much:
                    much = True  # until the end, where all parts are merged at once
                    self._copy_rows(_LATER)
                with self._engine.transaction():
                    self._slice(much=not gather or much)
                start, last = mark(self._engine), self._last()
            if moved and progress is not None:
                progress(start, last)
            if gather:
                self._gather(start, much=much)
        finally:
            if much:
                self._copy_rows(_SOON)
            self._read_here()
            self._reader.forget()  # the words of an interrupted slice were not stored
        return moved

    def _copy_rows(self, pages: int) -> None:
        self._engine.query(f"PRAGMA wal_autocheckpoint = {pages:d}")

    def _read_ahead(self, start: int) -> None:
        """Start a second process that reads the records after a place, if it can open the store."""
        from ctxmgr.store.worker_process import find_place, is_of_use, run_in_second_process

        place = find_place(self._engine, self._location) if is_of_use() else None
        if place is None:
            self._alone = True
        else:
            self._ahead = run_in_second_process("ctxmgr.store.search.index_texts:read_stretches", tuple(place), start)

    def _read_here(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _next(self, start: int, rows: int) -> IndexBatch | None:
        """Return the batch after a place, or None at the end. Called inside a transaction."""
        from ctxmgr.store.search.index_texts import IndexBatch
        from ctxmgr.store.worker_process import ProcessLost

        if self._ahead is not None:
            try:
                stretch = IndexBatch(*next(self._ahead))
            except StopIteration:  # it has read the whole log
                self._read_here()
            except (ProcessLost, TypeError):
                self._alone = True
                self._read_here()
            else:
                if stretch.start == start and self._is_of_this_log(stretch):
                    return stretch
                # The log was replaced, or another process builds this index too, so reading ahead does not help.
                self._alone = True
                self._read_here()
        return self._reader.next_batch(start, rows)

    def _is_of_this_log(self, stretch: IndexBatch) -> bool:
        """Whether a stretch read by another process belongs to the current log. Places are never reused within one build."""
        from ctxmgr.store.worker_process import creation_mark

        seen = self._engine.query("SELECT id FROM record WHERE seq = :end", {"end": stretch.end})
        return bool(seen) and str(seen[0][0]) == stretch.seen and creation_mark(self._engine) == stretch.born

    def _gather(self, last: int, *, much: bool) -> None:
        """Merge the parts of the full-text indexes if many were added, because each look-up searches every part.

        Args:
            last: the last indexed place.
            much: whether no parts were merged while the indexes grew.
        """
        rows = self._engine.query("SELECT value FROM search_state WHERE name = 'gathered'") if last else []
        whole = last * 3 >= 4 * int(rows[0][0] if rows else 0)
        if not last or not (whole or much):
            return
        for table in _FULL_TEXT:
            # A negative number starts merging all parts into one. A positive number merges parts of about the same size.
            for pages in [*([-_PAGES] if whole else []), *[_PAGES] * 10_000]:
                with self._engine.transaction():
                    if not mark(self._engine):  # deleted meanwhile
                        return
                    before = self._changes()
                    self._engine.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages})
                    if self._changes() - before < 2:  # nothing is left to merge (the test of SQLite's manual)
                        break
        if whole:
            with self._engine.transaction():
                if mark(self._engine):
                    self._note("gathered", last)

    def _settle(self, options: dict[str, int]) -> None:
        for table in _FULL_TEXT:
            for name, value in options.items():
                self._engine.execute(
                    f"INSERT INTO {table} ({table}, rank) VALUES (:name, :value)", {"name": name, "value": value}
                )

    def _changes(self) -> int:
        return int(self._engine.query("SELECT total_changes()")[0][0])

    def _note(self, name: str, value: object) -> None:
        self._engine.execute(
            "INSERT OR REPLACE INTO search_state (name, value) VALUES (:name, :value)", {"name": name, "value": value}
        )

    def _last(self) -> int:
        return int(self._engine.query("SELECT coalesce(max(seq), 0) FROM record")[0][0])

    def _slice(self, *, much: bool = False) -> None:
        """Index the next slice behind the current mark, which another process may have moved.

        Args:
            much: whether more slices follow, after which all parts are merged.
        """
        start, last = mark(self._engine), self._last()
        if start >= last:
            return
        if not start:  # there is no index, or it belongs to another log
            drop(self._engine)
            self._reader.forget()
            self._much = None
            for statement in _CREATE:
                self._engine.execute(statement)
        if much != self._much:
            self._settle(_GATHERED_LATER if much else _AS_IT_GROWS)
            self._much = much
        end, answers = self._stretches(start)
        reach = {"start": start, "end": end}
        self._late(answers, reach)
        self._engine.execute(
            "DELETE FROM search_open WHERE (SELECT result FROM entry WHERE entry.seq = search_open.seq) <= :end", {"end": end}
        )
        self._engine.execute(
            "INSERT INTO search_open SELECT seq FROM entry WHERE seq > :start AND seq <= :end "
            "AND (result IS NULL OR result > :end)",
            reach,
        )
        # In the same transaction as the texts, so a kill leaves the former mark with the former texts.
        seen = self._engine.query("SELECT id FROM record WHERE seq = :end", {"end": end})[0][0]
        self._note("version", _VERSION)
        self._note("mark", end)
        self._note("seen", seen)

    def _stretches(self, start: int) -> tuple[int, dict[int, str]]:
        """Index the records after a place. Return the last place, and the texts of results whose entry came before them."""
        end, held = start, 0
        answers: dict[int, str] = {}
        fresh: list[tuple[str, str]] = []
        while end - start < _ROWS and held < _BYTES and (stretch := self._next(end, _ROWS - (end - start))):
            # Full-text indexes are written in the order of places; `_late` adds to earlier places separately.
            self._engine.many(_WORDS, stretch.texts)
            self._engine.many(_MARKS, stretch.marks)
            answers.update(stretch.answers)
            fresh += stretch.fresh
            end, held = stretch.end, held + stretch.size
        # Sorted, so that neighbours in the vocabulary are written together. No word of this slice is indexed before ``since``,
        # except those of late results, for which `_late` adds twins.
        self._terms([(text, head, start + 1) for text, head in sorted(fresh)])
        return end, answers

    def _late(self, answers: dict[int, str], reach: dict[str, int]) -> None:
        """Index the results that came after their entry, and not in its batch, under the entry."""
        from ctxmgr.store.search.index_texts import marks_by_block

        start = reach["start"]
        late: dict[int, str] = {}
        for result, place in self._engine.query(_ANSWERS, reach):
            if place > start and (result < place or result not in answers):
                continue  # indexed with the entry already
            found = answers.get(result)
            found = self._reader.read_text(result) if found is None else found
            late[place] = f"{late[place]} {found}" if place in late else found
        if late:
            self._engine.many(_WORDS, sorted(late.items()))
            self._engine.many(_MARKS, marks_by_block(late))
            if early := {place: text for place, text in late.items() if place <= start}:
                self._early(split_words(early.values()), min(early))

    def _terms(self, rows: list[Row]) -> None:
        """Add new terms to the vocabulary."""
        before = self._engine.query("SELECT coalesce(max(id), 0) FROM search_term")[0][0]
        self._engine.many(_TERM, rows)
        self._engine.execute(f"{_GRAM} WHERE id > :before", {"before": before})

    def _early(self, words: set[bytes], place: int) -> None:
        before = self._engine.query("SELECT min(0, coalesce(min(id), 0)) FROM search_term")[0][0]
        self._engine.many(_EARLY, _values(words, place))
        self._engine.execute(f"{_GRAM} WHERE id < :before", {"before": before})


_GRAM = "INSERT INTO search_gram (rowid, term) SELECT id, text FROM search_term"


def _values(words: set[bytes], since: int) -> list[dict[str, object]]:
    """Return the vocabulary's rows for words, sorted, so that neighbours are written together."""
    return [
        {"text": text, "head": head, "since": since}
        for word in sorted(words)
        for text, head in word_windows(word.decode())
    ]  # fmt: skip
