"""The search index: words and their parts; built later, deletable at any time.

``search_word`` holds the words of each entry (with its result) and of each event, under its place in the log;
``search_mark`` the punctuation of a few neighbours together;
``search_term`` is the vocabulary in the order in which it appeared, ``search_gram`` finds terms by three letters in a row.
The index covers the log up to a mark. It proposes places, and whoever asks compares the texts there: it may hold too much,
never too little. All of it follows from the tables of the store, so that it can be dropped and is made anew.
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
"""What older versions built is made anew."""

_ROWS = 8192
_BYTES = 8_000_000
"""What is indexed together: places, and characters of texts."""

_SECOND_PROCESS_FROM = 8192
"""Places that are left from which on a second process reads them."""

_PAGES = 1000
_MERGE_LATER_FROM = 4 * _ROWS
_GATHERED_LATER = {"automerge": 0, "crisismerge": 2000, "hashsize": 1_500_000}
_AS_IT_GROWS = {"automerge": 4, "crisismerge": 16, "hashsize": 1_000_000}
"""How the two full-text indexes are written: merging parts again and again as they come takes a third of the time."""


_SOON, _LATER = 1_000, 16_000
"""Pages after which SQLite copies what was written into the database: as it does by itself, and while there is much to
come. Each slice writes to most pages of the vocabulary; what several wrote to one is then copied once."""

_CREATE = (
    f"CREATE VIRTUAL TABLE search_word USING fts5(words, content='', detail=none, columnsize=0, tokenize='{TOKENIZER}')",
    # ``since``: no place before it holds the term. A term that turns up before the place from which it is known gets a twin
    # with a negative id, so that the order of the ids stays that of ``since``.
    "CREATE TABLE search_term (id INTEGER PRIMARY KEY, text TEXT NOT NULL, head TEXT NOT NULL, since INTEGER NOT NULL, "
    "early INTEGER NOT NULL, UNIQUE (text, head, early))",
    "CREATE VIRTUAL TABLE search_gram USING fts5(term, content='', detail=none, columnsize=0, "
    "tokenize='trigram case_sensitive 1')",
    # The runs of punctuation in a few places together.
    "CREATE VIRTUAL TABLE search_mark USING fts5(runs, content='', detail=none, columnsize=0, "
    "tokenize='trigram case_sensitive 1')",
    # Entries whose result came behind the mark: their places are proposed whatever is asked for.
    "CREATE TABLE search_open (seq INTEGER PRIMARY KEY)",
    "CREATE TABLE search_state (name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
)

# A result stands for the entry that it completed, once both are before the mark.
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
    """Return the place in the log up to which the index can be trusted; 0 when there is none."""
    found = engine.query(f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN {TABLES}")
    if int(found[0][0]) != len(TABLES):
        return 0
    # The record at the mark is the one that was there: the log was not cleared and read anew since.
    rows = engine.query(
        "SELECT place.value FROM search_state AS place JOIN search_state AS seen ON seen.name = 'seen' "
        "JOIN record ON record.seq = place.value AND record.id = seen.value "
        "JOIN search_state AS version ON version.name = 'version' AND version.value = :version WHERE place.name = 'mark'",
        {"version": _VERSION},
    )
    return int(rows[0][0]) if rows else 0


def available(engine: Engine) -> bool:
    """Whether the SQLite library has what the index is made of."""
    rows = engine.query("SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'")
    return bool(rows[0][0])


def drop(engine: Engine) -> None:
    """Delete the index."""
    for table in TABLES:
        engine.execute(f"DROP TABLE IF EXISTS {table}")


class Builder:
    """Extends the index of one store; several may work at once, each slice of the log is one transaction.

    Args:
        engine: of the store.
        location: of the store; where it is not given, no second process reads what is to be indexed.
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
        """Index the log to its end, slice by slice; what is done is kept when this is interrupted.

        Args:
            progress: called with places done and places in all.
            gather: also make it quick to look up; not worth it while more is to come.

        Returns:
            Whether there was anything to do.
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
                    much = True  # to the end: what is merged there need not be merged before
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
            self._reader.forget()  # what an interrupted slice told of was not kept
        return moved

    def _copy_rows(self, pages: int) -> None:
        self._engine.query(f"PRAGMA wal_autocheckpoint = {pages:d}")

    def _read_ahead(self, start: int) -> None:
        """Let a second process read the records after a place, if the store is one that it can open."""
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
        """Return the records after a place, or None at the end; called inside a transaction."""
        from ctxmgr.store.search.index_texts import IndexBatch
        from ctxmgr.store.worker_process import ProcessLost

        if self._ahead is not None:
            try:
                stretch = IndexBatch(*next(self._ahead))
            except StopIteration:  # it has read all that there was
                self._read_here()
            except (ProcessLost, TypeError):
                self._alone = True
                self._read_here()
            else:
                if stretch.start == start and self._is_of_this_log(stretch):
                    return stretch
                # The log is another one now, or others build this index too, and need no more help.
                self._alone = True
                self._read_here()
        return self._reader.next_batch(start, rows)

    def _is_of_this_log(self, stretch: IndexBatch) -> bool:
        """Whether a stretch read by another process still belongs to the current log: places are never used again."""
        from ctxmgr.store.worker_process import creation_mark

        seen = self._engine.query("SELECT id FROM record WHERE seq = :end", {"end": stretch.end})
        return bool(seen) and str(seen[0][0]) == stretch.seen and creation_mark(self._engine) == stretch.born

    def _gather(self, last: int, *, much: bool) -> None:
        """Merge the parts of the indexes when many were added: each look-up goes to every part.

        Args:
            last: the place up to which they go.
            much: nothing was merged while they grew.
        """
        rows = self._engine.query("SELECT value FROM search_state WHERE name = 'gathered'") if last else []
        whole = last * 3 >= 4 * int(rows[0][0] if rows else 0)
        if not last or not (whole or much):
            return
        for table in _FULL_TEXT:
            # Below zero begins to merge all parts into one; else those of about the same size are merged.
            for pages in [*([-_PAGES] if whole else []), *[_PAGES] * 10_000]:
                with self._engine.transaction():
                    if not mark(self._engine):  # deleted meanwhile
                        return
                    before = self._changes()
                    self._engine.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', :pages)", {"pages": pages})
                    if self._changes() - before < 2:  # then there is nothing left to merge (the manual's own test)
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
        """Index what is next, as it stands now: another process may have been faster.

        Args:
            much: there is more to come, and it is merged when all of it is there.
        """
        start, last = mark(self._engine), self._last()
        if start >= last:
            return
        if not start:  # there is none, or what is there belongs to another log
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
        # In the transaction of the texts: a kill leaves the former mark with the former texts.
        seen = self._engine.query("SELECT id FROM record WHERE seq = :end", {"end": end})[0][0]
        self._note("version", _VERSION)
        self._note("mark", end)
        self._note("seen", seen)

    def _stretches(self, start: int) -> tuple[int, dict[int, str]]:
        """Index the records after a place; return where that ends, and the texts of results whose entry lies before them."""
        end, held = start, 0
        answers: dict[int, str] = {}
        fresh: list[tuple[str, str]] = []
        while end - start < _ROWS and held < _BYTES and (stretch := self._next(end, _ROWS - (end - start))):
            # An index is written in order: what is entered below is written by itself.
            self._engine.many(_WORDS, stretch.texts)
            self._engine.many(_MARKS, stretch.marks)
            answers.update(stretch.answers)
            fresh += stretch.fresh
            end, held = stretch.end, held + stretch.size
        # Neighbours in the vocabulary are written together. A result before its entry was in an earlier slice, one after it
        # is in this slice or late: no word is before ``since``.
        self._terms([(text, head, start + 1) for text, head in sorted(fresh)])
        return end, answers

    def _late(self, answers: dict[int, str], reach: dict[str, int]) -> None:
        """Enter the results that came behind their entry, and not with it."""
        from ctxmgr.store.search.index_texts import marks_by_block

        start = reach["start"]
        late: dict[int, str] = {}
        for result, place in self._engine.query(_ANSWERS, reach):
            if place > start and (result < place or result not in answers):
                continue  # they stand with the entry
            found = answers.get(result)
            found = self._reader.read_text(result) if found is None else found
            late[place] = f"{late[place]} {found}" if place in late else found
        if late:
            self._engine.many(_WORDS, sorted(late.items()))
            self._engine.many(_MARKS, marks_by_block(late))
            if early := {place: text for place, text in late.items() if place <= start}:
                self._early(split_words(early.values()), min(early))

    def _terms(self, rows: list[Row]) -> None:
        """Add what is new to the vocabulary."""
        before = self._engine.query("SELECT coalesce(max(id), 0) FROM search_term")[0][0]
        self._engine.many(_TERM, rows)
        self._engine.execute(f"{_GRAM} WHERE id > :before", {"before": before})

    def _early(self, words: set[bytes], place: int) -> None:
        before = self._engine.query("SELECT min(0, coalesce(min(id), 0)) FROM search_term")[0][0]
        self._engine.many(_EARLY, _values(words, place))
        self._engine.execute(f"{_GRAM} WHERE id < :before", {"before": before})


_GRAM = "INSERT INTO search_gram (rowid, term) SELECT id, text FROM search_term"


def _values(words: set[bytes], since: int) -> list[dict[str, object]]:
    """Return the rows of words, sorted: neighbours in the vocabulary are written together."""
    return [
        {"text": text, "head": head, "since": since}
        for word in sorted(words)
        for text, head in word_windows(word.decode())
    ]  # fmt: skip
