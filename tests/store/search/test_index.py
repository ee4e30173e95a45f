"""The search index is built once for each record, by several at once, through kills, deletions and another log."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query.requests import search
from ctxmgr.history.query.tools import PlainRequest, search_last
from ctxmgr.store import Store, open_store
from ctxmgr.store.search import find as searching
from ctxmgr.store.search import index, index_texts, text_match
from ctxmgr.store.search.index import TABLES, Builder, mark
from ctxmgr.types.query import SearchRequest
from tests.builders import entry
from tests.store.workers import start


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


def found(store: Store, query: str, **more: Any) -> list[str]:
    """Return the ids of all hits, page by page. The last ones are the same, however many are asked for."""
    ids: list[str] = []
    while True:
        answer = search(store, SearchRequest(query=query, max_results=3, offset=len(ids), **more))
        ids += [hit.row.id for hit in answer.hits]
        assert answer.page.total >= len(ids)
        if not answer.page.has_more:
            assert not answer.page.total_is_exact or answer.page.total == len(ids)
            for most in (1, 3, len(ids) + 1):
                last = PlainRequest(query=query, max_results=most, **{"kind": "all", **more})
                assert [row.id for row in search_last(store, store.queries, last)] == ids[-most:]
            return ids


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
