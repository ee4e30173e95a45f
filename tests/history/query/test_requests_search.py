"""Search takes its query literally and finds it everywhere that the records hold it: the oracle reads them all."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.requests import search
from ctxmgr.store import Store, open_store
from ctxmgr.store.text_normalisation import find, fold
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListRequest, SearchRequest
from tests.builders import at, entry, event, result, write
from tests.frontends import Ask
from tests.history import oracle

ODD_QUERIES = [
    *string.punctuation, "a", "e", "1", "x\0h", "\0hidden", "hidden", "ab", "50%", "%", "_", "a_b", "__", "%%", "*",
    "**", "a*", "'", "''", '"', '""', '"quoted"', "it's", ";--", "' OR 1=1 --", "'; DROP TABLE record; --",
    "NEAR(a b)", "a AND b", "a OR b", "NOT a", "a b", "b a", "^a", "a:", "action:Bash", "col:x", "(", ")", "()", "{}",
    "[x]", "[0-9]", "\\", "\\n", "\\u0000", "-1", "+", "a+b", "SS", "ss", "ß", "straße", "STRASSE", "i̇stanbul", "İ",
    "i", "ı", "ﬁ", "fi", "é", "e\u0301", "\u0301", "😀", "b\u2028", "kick", "Discovery", "DISCOVERY", "task 7", "1.5",
    "199", "null", "true", "None", "text", "n", "?", "??", ":needle", "@x", "$1", "a" * 5000, "word word", ", ",
    '","', "{'", "a\x1e", "\U0010ffff", "\ufeff", "\u200b", "coder", "custom", "input",
]  # fmt: skip


def _ids(store: Store, query: str, **more: Any) -> list[str]:
    return [hit.row.id for hit in search(store, SearchRequest(query=query, max_results=1000, **more)).hits]


@pytest.mark.parametrize("seed", range(5))
def test_odd_queries_find_what_the_oracle_finds(seed: int) -> None:
    """Punctuation, wildcards, quotes, single letters, case pairs and SQL are looked for literally."""
    records = oracle.history(seed)
    expected = oracle.Oracle(records)
    store = open_store(":memory:", create=True)
    store.append(records)

    found = {query: _ids(store, query) for query in ODD_QUERIES}

    assert found == {query: expected.matching(SearchRequest(query="x"), "all", query) for query in ODD_QUERIES}
    assert sum(bool(ids) for ids in found.values()) > len(ODD_QUERIES) // 3
    store.close()


letters = st.text(st.sampled_from("aAbBßSsİıi̇I%_*'\"\\ \0\x1e\U0010ffff😀\u0301é.-"), min_size=0, max_size=6)


@given(st.lists(letters, max_size=8), letters)
def test_generated_queries_find_what_the_oracle_finds(words: list[str], query: str) -> None:
    """Over generated texts and queries of awkward letters the hits are those of a plain search."""
    store = open_store(":memory:", create=True)
    records = [entry("s", number, "x", {"k": [word]}, agent="y") for number, word in enumerate(words)]
    store.append(records)
    if not query.replace("\0", "").strip():
        with pytest.raises(InvalidInput, match="Query cannot be empty"):
            search(store, SearchRequest(query=query))
    else:
        expected = [f"s-e{number:04}" for number, word in enumerate(words) if query.casefold() in word.casefold()]
        expected = [record["id"] for record in records] if query.casefold() in ("x", "y", "k") else expected
        assert _ids(store, query) == expected
    store.close()


@pytest.mark.requirement("US3-4", "R-05")
@pytest.mark.parametrize("query", ["", "\t\n", "\0 \0", "\u2003\u00a0\x0b"])
def test_a_blank_query_is_refused(store: Store, ask: Ask, query: str) -> None:
    """A query of blanks and NULs alone is an error, in an empty history too."""
    expected = {"error": "invalid", "message": "Query cannot be empty"}
    assert ask(SearchRequest(query=query)) == expected
    write(store, "s", ["Bash:ls"])
    assert ask(SearchRequest(query=query, all_sessions=True)) == expected


@pytest.mark.requirement("FR-008", "US7-5")
def test_every_field_is_searched(store: Store, ask: Ask) -> None:
    """Text is found in action, agent, input type, input, output, error, task and events; each hit says where."""
    store.append([
        entry("s", 0, "findAction"), entry("s", 1, agent="findAgent"), entry("s", 2, inputType="findType"),
        entry("s", 3, given={"deep": [{"findKey": 1}]}), entry("s", 4, given={"deep": ["a", "a find"]}),
        entry("s", 5), result("s", 5, ["find"]),
        entry("s", 6), result("s", 6, status="error", error={"type": "E", "message": "to find"}),
        entry("s", 7, task="find"), entry("s", 8, status="ok", output={"x": "find"}),
        event("s", 0, "findEvent"), event("s", 1, "message", {"text": "find me"}), event("s", 2, "message", agent="finder"),
    ])  # fmt: skip

    hits = ask(SearchRequest(query="FIND"))["hits"]

    assert [(hit["row"]["id"], hit["field"]) for hit in hits] == [
        ("s-e0000", "action"), ("s-e0001", "agent"), ("s-e0002", "inputType"), ("s-e0003", "input.deep[0].findKey"),
        ("s-e0004", "input.deep[1]"), ("s-e0005", "output[0]"), ("s-e0006", "error.message"), ("s-e0007", "task"),
        ("s-e0008", "output.x"), ("s-v0000", "type"), ("s-v0001", "data.text"), ("s-v0002", "agent"),
    ]  # fmt: skip
    assert all("find" in hit["excerpt"].lower() for hit in hits)


def test_text_behind_a_nul_is_found(store: Store, ask: Ask) -> None:
    """A NUL hides nothing that stands behind it."""
    store.append([entry("s", 0, given="harmless\0rm -rf secret"), event("s", 0, "message", {"text": "a\0b\0needle"})])

    assert [hit["row"]["kind"] for hit in ask(SearchRequest(query="rm -RF"))["hits"]] == ["entry"]
    assert [hit["row"]["kind"] for hit in ask(SearchRequest(query="needle"))["hits"]] == ["event"]
    assert [hit["row"]["kind"] for hit in ask(SearchRequest(query="s\0r"))["hits"]] == ["entry"]


def test_nothing_is_found_across_two_fields(store: Store, ask: Ask) -> None:
    """Where one text ends and the next begins no query matches."""
    store.append([entry("s", 0, "first", ["second", "third"])])

    for query in ("firstcoder", "secondthird", "second\x1ethird", "second\U0010ffffthird", "second,third", 'second", "third'):
        assert ask(SearchRequest(query=query))["hits"] == []


def test_hits_are_in_the_order_of_the_log(store: Store, ask: Ask) -> None:
    """Events and entries that match stand as they were recorded, and a kind can be asked for alone."""
    store.append(
        [event("s", 0, "message", "word"), entry("s", 0, given="word"), event("s", 1, "thought", "word"), entry("s", 1)]
    )

    assert [hit["row"]["id"] for hit in ask(SearchRequest(query="word"))["hits"]] == ["s-v0000", "s-e0000", "s-v0001"]
    assert [hit["row"]["id"] for hit in ask(SearchRequest(query="word", kind="entry"))["hits"]] == ["s-e0000"]
    assert [hit["row"]["id"] for hit in ask(SearchRequest(query="word", kind="event"))["hits"]] == ["s-v0000", "s-v0001"]


def test_search_stays_in_its_session_unless_told(store: Store, ask: Ask) -> None:
    """One session is searched, the latest when none is named, or all of them."""
    for number, session in enumerate("abc"):
        store.append([entry(session, 0, given="word", ts=at(number))])

    def sessions(**more: Any) -> list[str]:
        return [hit["row"]["session"] for hit in ask(SearchRequest(query="word", **more))["hits"]]

    assert sessions() == ["c"]
    assert sessions(session="a") == ["a"]
    assert sessions(all_sessions=True) == ["a", "b", "c"]
    assert sessions(all_sessions=True, action=["bash"], max_results=2) == ["a", "b"]


def test_bookkeeping_is_not_searched(store: Store, ask: Ask) -> None:
    """Ids, sessions and times are no content of an entry: search leaves them to ``show``."""
    store.append([entry("findme", 0, id="findme", process="findme"), build("session", "findme", at(0), process="findme")])

    assert ask(SearchRequest(query="findme"))["hits"] == []


@pytest.mark.parametrize("before", ["", "ß" * 100, "İ" * 100, "ﬃ" * 100, "x" * 100, "ẞß" * 40])
@pytest.mark.parametrize("needle", ["needle", "STRASSE", "straße"])
def test_the_excerpt_shows_the_match(before: str, needle: str) -> None:
    """The excerpt holds the match in its middle, also where folding makes letters longer."""
    text = before + needle + "y" * 100
    place, excerpt = find(entry("s", 0, given=text), fold("strasse" if "str" in needle.lower() else needle)) or ("", "")

    assert place == "input"
    assert needle in excerpt
    assert len(excerpt) <= 60 + len(needle) + 60 + 2
    assert excerpt.startswith("…" if len(before) > 60 else before)


@given(st.text(st.characters()), st.text(st.characters()))
def test_folding_never_fails_and_keeps_what_is_contained(text: str, inner: str) -> None:
    """Whatever contains a text contains it after folding, too."""
    assert fold(inner) in fold(text + inner + text)


@pytest.mark.requirement("US7-3")
def test_events_of_fifty_types_are_stored_and_found(store: Store, ask: Ask) -> None:
    """Fifty different types of events, most of them unknown, are all stored, listed, filtered and found."""
    store.append([entry("s", 0), *(event("s", number, f"type-{number}", {"payload": f"p{number}."}) for number in range(50))])

    rows = ask(ListRequest(kind="event", limit=100))["rows"]
    assert [row["type"] for row in rows] == [f"type-{number}" for number in range(50)]
    for number in range(0, 50, 16):
        assert [row["id"] for row in ask(ListRequest(event_type=[f"type-{number}"]))["rows"]] == [f"s-v{number:04}"]
        assert [hit["row"]["id"] for hit in ask(SearchRequest(query=f"P{number}."))["hits"]] == [f"s-v{number:04}"]
