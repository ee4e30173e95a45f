"""Search finds with an index what it finds without one: whatever is recorded, asked for, and in the index by then."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.history.query.requests import search
from ctxmgr.history.query.tools import PlainRequest, search_last
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.store.search import index
from ctxmgr.store.search.index import Builder
from ctxmgr.store.text_normalisation import find, fold
from ctxmgr.types.query import SearchRequest
from ctxmgr.types.view import EntryView, EventView
from tests.builders import entry, event, result
from tests.history import oracle
from tests.store.search.test_index import found, small

STATES = ("absent", "partial", "full", "stale", "dropped", "torn", "twice")


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
        rows = search_last(store, store.queries, PlainRequest(query=query, max_results=20, kind="all"))
        assert [row.id for row in rows] == expected[-20:]
        exact = search(store, SearchRequest(query=query, exact_total=True)).page
        assert (exact.total, exact.total_is_exact) == (len(expected), True)
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
