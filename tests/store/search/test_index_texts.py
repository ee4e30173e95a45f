"""What a second process reads for the search index makes the index that one process makes, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import StorageFailed
from ctxmgr.log.codec import Record
from ctxmgr.store import LogStore, Store, open_store, worker_process
from ctxmgr.store.search import index, index_texts, text_match
from ctxmgr.store.search.index import Builder, mark
from ctxmgr.store.worker_process import find_place
from tests.builders import entry
from tests.history import oracle

COUNT = 3_500
NAMES = ("history.db", "history.jsonl")
STRETCH = 256  # records at most that come together


def records(seed: int) -> list[Record]:
    """Return a history in which some results come thousands of records after their entry, and words that come once."""
    chance = random.Random(seed)
    found: list[tuple[float, Record]] = []
    for number, record in enumerate(oracle.history(seed, COUNT * 2 // 3)):
        later = chance.choice([0, 0, 0, 900, 3_000]) * chance.random() if record["kind"] == "result" else 0
        if isinstance(record.get("input"), str):
            record["input"] = f"{record['input']} =>{{ {chance.getrandbits(80):x} =>{'*' * (number % 9)}"
        found.append((number + later, record))
    return [record for _, record in sorted(found, key=lambda pair: pair[0])]


def stored(folder: Path, name: str, items: list[Record]) -> Store:
    """Return a store that holds the records and has no index yet."""
    store = open_store(str(folder / name), create=True)
    store.append(items)
    return store


def contents(store: Store) -> dict[str, Any]:
    """Return all that the index says: which term is where. From where on it is known depends on the slices."""
    told: dict[str, Any] = {}
    for table in ("search_word", "search_gram", "search_mark"):
        store.engine.execute(f"CREATE VIRTUAL TABLE temp.told USING fts5vocab(main, {table}, 'instance')")
        place = "(SELECT text || ' ' || head FROM search_term WHERE id = doc)" if table == "search_gram" else "doc"
        rows = store.engine.query(f"SELECT term, {place} FROM temp.told")
        store.engine.execute("DROP TABLE temp.told")
        told[table] = sorted({row for row in rows if table != "search_mark" or " " not in row[0]})  # it stands between runs
    since: dict[str, int] = {}
    for text, head, place in store.engine.query("SELECT text, head, since FROM search_term ORDER BY since DESC"):
        since[head or text] = place
    assert [pair for pair in told["search_word"] if since[pair[0][: text_match.MAX_WORD]] > pair[1]] == []
    told["search_term"] = sorted(set(store.engine.query("SELECT text, head FROM search_term")))
    told["search_open"] = store.engine.query("SELECT seq FROM search_open ORDER BY seq")
    told["search_state"] = sorted(store.engine.query("SELECT name, value FROM search_state WHERE name <> 'gathered'"))
    return told


@pytest.fixture
def _ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second process read all that is to be indexed, whatever machine this is, in slices of a few stretches."""
    monkeypatch.delenv("CTXMGR_PROCESSES", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", {0: {0, 1}}.get, raising=False)
    monkeypatch.setattr(index, "_SECOND_PROCESS_FROM", 0)
    monkeypatch.setattr(index, "_ROWS", 500)


def _watched(monkeypatch: pytest.MonkeyPatch, altered: Callable[[int, Any], Any] = lambda _, item: item) -> list[int]:
    """Count what comes from each second process, after it was altered."""
    came: list[int] = []

    class Watched(worker_process.SecondProcess):
        def __init__(self, function: str, arguments: tuple[object, ...]) -> None:
            super().__init__(function, arguments)
            came.append(0)

        def __next__(self) -> Any:
            item = super().__next__()
            came[-1] += 1
            return altered(came[-1], item)

    monkeypatch.setattr(worker_process, "SecondProcess", Watched)
    return came


def _alone(folder: Path, name: str, seed: int) -> dict[str, Any]:
    """Return what the index of these records says that one process makes."""
    if (name, seed) not in _made:
        (folder / "alone").mkdir()
        store = stored(folder / "alone", name, records(seed))
        Builder(store.engine).advance()
        _made[name, seed] = contents(store)
        store.close()
    return _made[name, seed]


_made: dict[tuple[str, int], dict[str, Any]] = {}


@pytest.mark.slow
@pytest.mark.usefixtures("_ahead")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [2, 3])
def test_two_processes_make_the_same_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, seed: int) -> None:
    """Of a database and of a log, with results that come early and late, at once and in two goes."""
    items = records(seed)
    expected = _alone(tmp_path, name, seed)
    came = _watched(monkeypatch)
    store = stored(tmp_path, name, items[:2_500])
    assert store.index()
    assert came == [-(-2_500 // STRETCH)]
    store.append(items[2_500:])
    assert store.index()
    assert len(came) == 2
    assert contents(store) == expected
    store.close()


def _ended(number: int, stretch: Any) -> Any:
    if number == 3:
        raise worker_process.ProcessLost("killed")
    return stretch


ODDITIES: dict[str, Callable[[int, Any], Any]] = {
    "lost": _ended,
    "another place": lambda number, item: (item[0] + (number == 3), *item[1:]),
    "another record": lambda number, item: (*item[:2], "other" if number == 3 else item[2], *item[3:]),
    "another log": lambda number, item: (*item[:3], "other" if number == 3 else item[3], *item[4:]),
    "another end": lambda number, item: (item[0], item[1] + 90_000 * (number == 3), *item[2:]),
    "too little": lambda number, item: item[:-1] if number == 3 else item,
}


@pytest.mark.cases(1)
@pytest.mark.usefixtures("_ahead")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("oddity", ODDITIES)
def test_what_does_not_fit_is_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, oddity: str) -> None:
    """When the second process is lost, or tells of another log, the first one goes on by itself from where it is."""
    items = records(3)
    expected = _alone(tmp_path, name, 3)
    came = _watched(monkeypatch, ODDITIES[oddity])
    store = stored(tmp_path, name, items)
    assert store.index()
    assert came == [3]
    assert contents(store) == expected
    store.close()


EVENTS = ("dropped", "built by another", "built in part by another", "longer", "killed")


@pytest.mark.slow
@pytest.mark.usefixtures("_ahead")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("happening", EVENTS)
def test_what_happens_between_two_slices_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, happening: str
) -> None:
    """The index is deleted, others build it too, the log grows, the second process is killed: all is indexed."""
    items = records(3)
    expected = _alone(tmp_path, name, 3)
    came = _watched(monkeypatch)
    held = 2_500 if happening == "longer" else len(items)
    store = stored(tmp_path, name, items[:held])
    other = open_store(str(tmp_path / name))
    builder = Builder(store.engine, store.location)
    waiting = [happening]

    def told(done: int, _: int) -> None:
        what = waiting.pop() if done and waiting else ""
        if what == "dropped":
            with other.engine.transaction():
                index.drop(other.engine)
        elif what == "built by another":
            Builder(other.engine).advance(gather=False)
        elif what == "built in part by another":
            with other.engine.transaction():
                Builder(other.engine)._slice(much=True)  # pyright: ignore[reportPrivateUsage]
        elif what == "longer":
            other.append(items[held:])
            if isinstance(store, LogStore):
                store.catch_up()
        elif what == "killed":
            child: Any = builder._ahead  # pyright: ignore[reportPrivateUsage]
            child._child.kill()
            child._child.wait()

    assert builder.advance(told)
    assert waiting == []
    assert came[0] > 0
    assert contents(store) == expected
    assert store.count_unindexed() == 0
    other.close()
    store.close()


@pytest.mark.usefixtures("_ahead")
def test_what_is_done_is_kept_when_it_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt between and in slices ends the second process, keeps whole slices, and the next one goes on there."""
    items = records(3)
    expected = _alone(tmp_path, "history.db", 3)
    waiting = [KeyboardInterrupt]

    def interrupt(number: int, item: Any) -> Any:
        if number == 3 and waiting:
            raise waiting.pop()
        return item

    monkeypatch.setattr(index, "_MERGE_LATER_FROM", 0)
    came = _watched(monkeypatch, interrupt)
    store = stored(tmp_path, "history.db", items)
    with pytest.raises(KeyboardInterrupt):
        store.index()
    assert 0 < mark(store.engine) < 2_500
    assert store.engine.query("PRAGMA wal_autocheckpoint") == [(1_000,)]
    assert store.index()
    assert came[0] == 3
    assert contents(store) == expected
    store.close()


@pytest.mark.usefixtures("_ahead")
def test_only_much_and_only_what_lies_in_a_file_is_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short history, one in memory and one processor need no second process."""
    came = _watched(monkeypatch)
    items = [entry("s", number) for number in range(30)]
    store = stored(tmp_path, "history.db", items)
    monkeypatch.setattr(index, "_SECOND_PROCESS_FROM", 30)
    assert store.index()
    monkeypatch.setattr(index, "_SECOND_PROCESS_FROM", 0)
    for name in (":memory:", str(tmp_path / "one.db")):
        small = open_store(name, create=True)
        small.append(items)
        if name != ":memory:":
            monkeypatch.setattr(os, "sched_getaffinity", {0: {0}}.get, raising=False)
        assert small.index()
        small.close()
    store.close()
    assert came == []


def test_a_log_that_was_replaced_is_not_read_ahead(tmp_path: Path) -> None:
    """The places in an index of another log are not looked up in this one."""
    path = tmp_path / "history.jsonl"
    store = stored(tmp_path, path.name, [entry("s", number, given=f"first{number}") for number in range(40)])
    place = find_place(store.engine, str(path))
    assert place is not None
    texts = [text for stretch in index_texts.read_stretches(place, 0) for _, text in index_texts.IndexBatch(*stretch).texts]
    assert [f"first{number}" in text for number, text in enumerate(texts)] == [True] * 40
    path.unlink()
    stored(tmp_path, "other.jsonl", [entry("s", number, given=f"second{number}") for number in range(40)]).close()
    (tmp_path / "other.jsonl").rename(path)
    with pytest.raises(StorageFailed):
        list(index_texts.read_stretches(place, 0))
    store.close()


SPELLED = st.sampled_from(
    ["1e5", "-0", "-0.0", "1E400", "NaN", "-Infinity", "18446744073709551616", "1.0", "1e-400", "true", "null", "[]", "{}",
     '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0130"', '"\\/"', '"A\x7fB"', '{"A":1,"A":[2]}', '{"A":}', "[1,]", "01", '"\\q"',
     "[" * 70 + '"Deep"' + "]" * 70, "[" * 3_000, '"\x01"', "é", '"é"']
)  # fmt: skip
VALUES = st.one_of(
    SPELLED,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps),
)
FIELDS = st.sampled_from(["action", "agent", "input", "output", "error", "data", "type", "task", "other", "kind", "\\u006bind"])
KINDS = st.sampled_from(['"entry"', '"result"', '"event"', '"note"', '"other"', "1", "null", '"entr\\u0079"'])


@given(KINDS, st.lists(st.tuples(FIELDS, VALUES), max_size=6), st.sampled_from(["", " ", "x", "\0"]))
def test_the_quick_way_finds_the_texts_that_the_slow_way_finds(kind: str, fields: list[tuple[str, str]], end: str) -> None:
    """Whatever stands in a record, whole or not JSON at all."""
    quick: Any = index_texts._quick_text()  # pyright: ignore[reportPrivateUsage]
    slow = index_texts._slow_text  # pyright: ignore[reportPrivateUsage]
    body = f'{{"kind":{kind}{"".join(f""","{name}":{value}""" for name, value in fields)}}}{end}'
    for form in (body, body.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), body[:-1], None):
        # The order of texts in a record tells nothing; what is found is told by words and marks.
        assert sorted(quick(form).split()) == sorted(slow(form).split())
