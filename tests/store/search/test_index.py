"""Search finds with an index what it finds without one: whatever is recorded, asked for, and in the index by then."""

from __future__ import annotations

import random
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query.requests import search
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.search import find as searching
from ctxmgr.store.search import index, index_texts, text_match
from ctxmgr.store.search.index import TABLES, Builder, mark
from ctxmgr.store.text_normalisation import find, fold
from ctxmgr.types.query import SearchRequest
from ctxmgr.types.view import EntryView, EventView
from tests.builders import entry, event, result
from tests.history import oracle
from tests.store.workers import start

STATES = ("absent", "partial", "full", "stale", "dropped", "torn", "twice")


@contextmanager
def small(few: int = 3) -> Generator[None]:
    """Make every step of searching and indexing so short that a few records take many of them.

    Args:
        few: places up to which rows are had whole.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (searching, "_FIRST", 2), (searching, "_DENSE", 3), (searching, "_SLOW", 6), (searching, "_WINDOW", 5),
            (searching, "_EXACT", 0), (searching, "_MAX_ROWS_COMPARED_HERE", few), (searching, "MOST_KEPT", 2 * few),
            (searching, "LONG_ROW", 220),
            (searching, "_FIRST_TERMS", 2), (searching, "_NARROWING_TERMS", 4), (searching, "_MAX_TERMS", 9),
            (searching, "_CHUNK", 2), (searching, "_LARGEST", 4), (text_match, "_BLOCK", 3),
            (searching, "_COMMON", 3),
            (index, "_ROWS", 7), (index, "_PAGES", 1), (index_texts, "_PART", 4), (index_texts, "_MAX_KNOWN_WORDS", 20),
        ):  # fmt: skip
            patch.setattr(module, name, value)
        yield


def bring(store: Store, records: Sequence[Record], state: str) -> None:
    """Append the records so that the index stands as named when the last one is in."""
    part = len(records) * 2 // 3
    store.append(records[:part])
    if state != "absent":
        Builder(store.engine).advance()
    if state == "twice":  # results of entries that are indexed already come with the second part
        store.append(records[part:])
        Builder(store.engine).advance()
        return
    if state == "stale" and part:
        store.engine.execute("UPDATE search_state SET value = 'another' WHERE name = 'seen'")
        store.engine.execute("DELETE FROM search_open")
    elif state == "dropped":
        with store.engine.transaction():
            index.drop(store.engine)
    elif state == "torn" and part:
        store.engine.execute("DROP TABLE search_gram")
    store.append(records[part:])
    if state == "full":
        Builder(store.engine).advance()


def found(store: Store, query: str, **more: Any) -> list[str]:
    """Return the ids of all hits, page by page."""
    ids: list[str] = []
    while True:
        answer = search(store, SearchRequest(query=query, max_results=3, offset=len(ids), **more))
        ids += [hit.row.id for hit in answer.hits]
        assert answer.page.total >= len(ids)
        if not answer.page.has_more:
            assert not answer.page.total_is_exact or answer.page.total == len(ids)
            return ids


AWKWARD = st.text(st.sampled_from("abAßSsSİıi̇7_-.:/\\'\"% \n\0\ud800\U0010ffff😀é"), max_size=5)
WORDS = st.sampled_from(
    ["straße", "STRASSE", "kickOffDiscoveryAgents", "discovery", "a_b", "x.y.z", "0123456789abcdef" * 9, "a" * 200, "😀" * 70,
     "toolu_01A", "toolu_02B", "foo bar", "foo.bar(baz)", "İstanbul", "漢字かな", "--", "e\u0301", "tail\0head",
     "x=>{y", "=>{", "***", '""\")', "****/"]
)  # fmt: skip
TEXTS = st.lists(st.one_of(WORDS, AWKWARD), max_size=4).map(" ".join)


@st.composite
def histories(draw: st.DrawFn) -> list[Record]:
    """Draw a history in which results come at once, late, before their entry, twice or never."""
    records: list[Record] = []
    results: list[Record] = []
    for number, text in enumerate(draw(st.lists(TEXTS, min_size=1, max_size=18))):
        if draw(st.integers(0, 3)) == 0:
            records.append(event("s", number, "message", {"text": text}, agent="b"))
        elif draw(st.booleans()):
            records.append(entry("s", number, draw(st.sampled_from(["Bash", "Read"])), text))
            results.append(result("s", number, draw(TEXTS)))
        else:
            records.append(entry("s", number, given=text, status="ok", output=draw(TEXTS)))
    for outcome in results:
        records.insert(draw(st.integers(0, len(records))), outcome)
    return records


@st.composite
def queries(draw: st.DrawFn, records: Sequence[Record]) -> str:
    """Draw a query: part of a text of the history, or anything."""
    texts = [
        text
        for row in oracle.Oracle(records).rows
        for name in ("input", "output", "data")
        for text in oracle.texts(row.get(name))
    ]
    text = draw(st.sampled_from(texts)) if texts and draw(st.integers(0, 4)) else draw(TEXTS)
    first = draw(st.integers(0, max(0, len(text) - 1)))
    part = text[first : first + draw(st.integers(1, 60))]
    return draw(st.sampled_from([part, part.upper(), part.lower()]))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_any_state_of_the_index_finds_what_reading_everything_finds(data: st.DataObject) -> None:
    """Over drawn histories, queries, filters and states of the index the hits are those of a plain search, page by page."""
    records = data.draw(histories())
    state = data.draw(st.sampled_from(STATES))
    store = open_store(":memory:", create=True)
    with small(data.draw(st.sampled_from([0, 2, 4, 160]))):
        bring(store, records, state)
        plain = oracle.Oracle(records)
        for _ in range(4):
            query = data.draw(queries(records))
            if not query.replace("\0", " ").strip():
                continue
            filters: dict[str, Any] = data.draw(
                st.sampled_from([{}, {"action": ["bash"]}, {"agent": ["B"]}, {"status": ["ok"]}])
            )
            kind = data.draw(st.sampled_from(["all", "entry", "event"]))
            request = SearchRequest(query="x", **filters)
            assert found(store, query, kind=kind, **filters) == _plain(plain, request, kind, query)
            for hit in search(store, SearchRequest.model_validate({"query": query, "kind": kind, **filters})).hits:
                assert (hit.field, hit.excerpt) == (find(_shown(store, hit.row), fold(query)) or ("", ""))
    store.close()


def _shown(store: Store, row: EntryView | EventView) -> dict[str, Any]:
    """Return the row as it is shown when nobody searches, which must be the same."""
    key = store.sessions.key(row.session)
    assert key is not None
    if isinstance(row, EntryView):
        assert store.queries.entry_by_id(key, row.id) == row
    return row.to_json()


def _plain(plain: oracle.Oracle, request: SearchRequest, kind: str, query: str) -> list[str]:
    """Ask the oracle, in the form in which texts are stored: what no database can hold is replaced on both sides."""
    rows = [row for row in plain.rows if str(row["id"]) in set(plain.matching(request, kind))]
    names = {"entry": ("action", "agent", "inputType", "input", "output", "error", "task"), "event": ("type", "agent", "data")}
    return [
        str(row["id"])
        for row in rows
        if any(fold(query) in fold(text) for name in names[row["kind"]] for text in oracle.texts(row.get(name)))
    ]


@pytest.mark.long
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("seed", range(3))
def test_both_stores_find_the_same_whatever_is_indexed(tmp_path: Path, seed: int, state: str) -> None:
    """A database and a log read in place answer alike, with an index that is whole, lags behind, or is gone."""
    records = oracle.history(seed, 80)
    plain = oracle.Oracle(records)
    chance = random.Random(seed)
    texts = [
        text
        for row in plain.rows
        for text in oracle.texts(row.get("input") or row.get("data"))
        if text.replace("\0", " ").strip()
    ]
    asked = ["bash", "discovery", "50%", "ss", "e", "task 7", "tread", "İ", *chance.sample(texts, 10)]
    for name in ("history.db", "history.jsonl"):
        store = open_store(str(tmp_path / name), create=True)
        with small():
            bring(store, records, state)
            for query in asked:
                assert found(store, query) == plain.matching(SearchRequest(query="x"), "all", query), (name, query)
        store.close()


def test_a_long_history_is_found_beyond_every_step(tmp_path: Path) -> None:
    """Rare, common and absent texts are found in their order at full step sizes, the first and the last page alike."""
    chance = random.Random(5)
    lines = [
        f"line {number}{'=>{' * (number % 3_001 == 7)} word{chance.randrange(300)} {chance.getrandbits(64):016x}"
        for number in range(9_000)
    ]
    records = [entry("s", number, given=text, status="ok", output="common") for number, text in enumerate(lines)]
    store = open_store(str(tmp_path / "h.db"), create=True)
    store.append(records)
    assert store.index()
    assert not store.index()

    for query in (
        "common",
        "word7",
        "ord17",
        "line 8999",
        lines[4321][-16:],
        lines[77][-9:-3],
        "a1b",
        "absent",
        "e 12",
        "=>{",
        "=>{{",
    ):
        expected = [f"s-e{number:04}" for number, text in enumerate(lines) if query in text or query in "common"]
        answer = search(store, SearchRequest(query=query, max_results=50))
        assert [hit.row.id for hit in answer.hits] == expected[:50]
        assert answer.page.has_more == (len(expected) > 50)
        assert answer.page.total == len(expected) or not answer.page.total_is_exact
        last = max(0, len(expected) - 20)
        answer = search(store, SearchRequest(query=query, max_results=50, offset=last))
        assert [hit.row.id for hit in answer.hits] == expected[last:]
        exact = search(store, SearchRequest(query=query, exact_total=True)).page
        assert (exact.total, exact.total_is_exact) == (len(expected), True)
    store.close()


def test_an_index_is_built_by_several_and_survives_a_kill(tmp_path: Path) -> None:
    """One builder is killed in the middle and two others work at once: all is indexed once, and found."""
    path = tmp_path / "h.db"
    records = [entry("s", number, given=f"needle{number} straw") for number in range(400)]
    store = open_store(str(path), create=True)
    store.append(records)
    code = """
import os, sys
from ctxmgr.store import open_store; from ctxmgr.store.search import index as search_index
search_index._ROWS = 20
store = open_store(sys.argv[1])
def told(done, total):
    if done >= 100:
        store.engine.execute("BEGIN IMMEDIATE")
        search_index.Builder(store.engine)._slice()
        os.kill(os.getpid(), 9)
search_index.Builder(store.engine).advance(told)
"""
    killed = start(code, path, {})
    killed.communicate()
    assert killed.returncode == -9
    assert 100 <= mark(store.engine) < 400

    problems: list[CtxmgrError] = []

    def build() -> None:
        own = open_store(str(path))
        try:
            Builder(own.engine).advance()
        except CtxmgrError as error:
            problems.append(error)
        own.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_ROWS", 20)
        builders = [threading.Thread(target=build) for _ in range(2)]
        for builder in builders:
            builder.start()
        for builder in builders:
            builder.join()

    assert problems == []
    assert mark(store.engine) == 400
    assert found(store, "needle399") == ["s-e0399"]
    assert len(found(store, "eedle1")) == 111
    assert store.verify() == (400, [])
    store.close()


def test_an_index_deleted_meanwhile_costs_nothing_but_time(tmp_path: Path) -> None:
    """While one connection searches, another deletes the index and builds it again; the answers stay the same."""
    path = str(tmp_path / "h.db")
    store = open_store(path, create=True)
    store.append([entry("s", number, given=f"needle{number % 7}x") for number in range(60)])
    other = open_store(path)
    with small():
        Builder(other.engine).advance()
        expected = found(store, "needle3")
        for table in TABLES:
            with other.engine.transaction():
                other.engine.execute(f"DROP TABLE {table}")
            assert found(store, "needle3") == expected
            Builder(other.engine).advance()
            assert mark(store.engine) == 60
            assert found(store, "needle3") == expected
    other.close()
    store.close()


def test_what_was_added_is_merged_when_all_of_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long history ends in one part that every look-up goes to, and one that grows by less than a third in a few more."""
    for name, value in (("_ROWS", 50), ("_MERGE_LATER_FROM", 200), ("_PAGES", 1)):
        monkeypatch.setattr(index, name, value)
    store = open_store(str(tmp_path / "h.db"), create=True)

    def parts() -> list[int]:
        tables = ("search_word", "search_gram", "search_mark")
        return [store.engine.query(f"SELECT count(DISTINCT segid) FROM {table}_idx")[0][0] for table in tables]

    def text(number: int) -> str:
        return f"needle{number} =>{{{'*' * (number % 7)}"

    store.append([entry("s", number, given=text(number)) for number in range(2_000)])
    Builder(store.engine).advance(gather=False)
    assert min(parts()) > 20
    index.drop(store.engine)
    assert store.index()
    assert parts() == [1, 1, 1]
    store.append([entry("s", number, given=text(number)) for number in range(2_000, 2_500)])
    assert store.index()
    assert 1 < max(parts()) < 5
    assert store.engine.query("PRAGMA wal_autocheckpoint") == [(1_000,)]
    assert found(store, "needle2345") == ["s-e2345"]
    store.close()


def test_what_is_read_only_is_searched_with_the_index_that_is_there(tmp_path: Path) -> None:
    """A store opened for reading is searched through its index and by reading what came since, and is not written to."""
    path = tmp_path / "h.db"
    store = open_store(str(path), create=True)
    store.append([entry("s", number, given=f"needle{number}") for number in range(30)])
    with small():
        store.index()
        store.append([entry("s", number, given=f"needle{number}") for number in range(30, 40)])
        store.close()
        before = path.read_bytes()
        reader = open_store(str(path), readonly=True)
        assert found(reader, "needle3") == ["s-e0003", *(f"s-e00{number}" for number in range(30, 40))]
        reader.close()
    assert path.read_bytes() == before


def test_a_log_that_was_replaced_is_indexed_anew(tmp_path: Path) -> None:
    """When another log stands at the path, nothing of the one before is found, and everything of the new one."""
    path = tmp_path / "h.jsonl"
    for word in ("first", "second"):
        path.unlink(missing_ok=True)
        store = open_store(str(path), create=True)
        store.append([entry("s", number, given=f"{word}{number}") for number in range(40)])
        with small():
            store.index()
            store.close()
            store = open_store(str(path))
            assert len(found(store, word)) == 40
            assert found(store, "first") == found(store, word)[: 40 if word == "first" else 0]
        store.close()


@given(st.lists(st.one_of(AWKWARD, WORDS), max_size=8))
def test_words_are_what_the_tokenizer_of_the_index_makes_of_a_text(texts: list[str]) -> None:
    """The words that the vocabulary holds are those under which the index holds the text."""
    store = open_store(":memory:", create=True)
    text = " ".join(map(fold, texts))
    run = store.engine.execute
    run(f"CREATE VIRTUAL TABLE w USING fts5(words, content='', detail=none, columnsize=0, tokenize='{text_match.TOKENIZER}')")
    run("CREATE VIRTUAL TABLE v USING fts5vocab(w, 'row')")
    run("INSERT INTO w (rowid, words) VALUES (1, :text)", {"text": text})

    assert {str(row[0]) for row in store.engine.query("SELECT term FROM v")} == {
        word.decode() for word in text_match.words_of([text])
    }
    store.close()


@given(st.text("ab1", min_size=1, max_size=400), st.data())
def test_every_short_part_of_a_long_word_stands_whole_in_one_of_its_windows(word: str, data: st.DataObject) -> None:
    """What is asked of the vocabulary is never cut in two."""
    first = data.draw(st.integers(0, len(word) - 1))
    part = word[first : first + text_match.PROBE]
    windows = text_match.windows_of(word)

    assert any(part in text for text, _ in windows)
    assert all(len(text) <= text_match.MAX_WORD and head in ("", word[: text_match.MAX_WORD]) for text, head in windows)
