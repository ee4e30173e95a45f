"""Every filter of every history query, alone and together, against an oracle that reads the records one by one."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.errors import InvalidInput
from ctxmgr.history.query.requests import list_, search, trace
from ctxmgr.store import Store, open_store
from ctxmgr.types.query import Filters, ListRequest, RowKind, SearchRequest, TraceRequest
from ctxmgr.types.view import EntryStatus
from tests.builders import at, entry, event, write
from tests.frontends import Ask
from tests.history import oracle

RECORDS = oracle.history(7, 120)
EXPECTED = oracle.Oracle(RECORDS)

STATUS_NAMES: list[EntryStatus] = ["ok", "error", "denied", "interrupted", "open"]


@pytest.fixture(scope="module")
def told() -> Any:
    """Hold the history once for the tests that only ask."""
    store = open_store(":memory:", create=True)
    store.append(RECORDS)
    yield store
    store.close()


def _several(values: Any) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(values), max_size=2)


times = st.none() | st.integers(-5, 130).map(at)
filters = st.fixed_dictionaries(
    {},
    optional={
        "action": _several([*oracle.ACTIONS, "bash", "STRASSE", "%", "Ba_h", "nothing"]),
        "agent": _several([*oracle.AGENTS, "CODER", "ägent", "a''b"]),
        "input_type": _several(["Request", "request", "CollectorRequest", "str", "None", ""]),
        "status": _several(STATUS_NAMES),
        "process": _several(["p1", "p", "p10", "p100", "run", "RUN", "", "%"]),
        "since": times,
        "until": times,
        "event_type": _several(oracle.EVENT_TYPES),
    },
)
kinds = st.sampled_from(cast("list[RowKind]", ["entry", "event", "all"]))


@pytest.mark.requirement("FR-025", "R-03")
@given(given_filters=filters, kind=kinds)
def test_list_filters_like_the_oracle(told: Store, given_filters: dict[str, Any], kind: RowKind) -> None:
    """A list holds exactly the rows that pass all its filters, in order; a type of event asks for events."""
    if given_filters.get("event_type") and kind == "entry":
        kind = "event"
    answer = list_(told, ListRequest(**given_filters, kind=kind, limit=1000))

    assert [row.id for row in answer.rows] == EXPECTED.matching(Filters(**given_filters), kind)
    assert answer.page.total == len(answer.rows)
    assert answer.status == ("ok" if answer.rows else "empty")


@pytest.mark.requirement("FR-025", "R-03")
@given(given_filters=filters)
def test_trace_filters_like_the_oracle(told: Store, given_filters: dict[str, Any]) -> None:
    """A trace holds exactly the entries that pass all its filters, in order."""
    answer = trace(told, TraceRequest(**given_filters))

    assert [view.id for view in answer.entries] == EXPECTED.matching(Filters(**given_filters), "entry")


@pytest.mark.requirement("FR-025", "R-03")
@given(given_filters=filters, kind=kinds, query=st.sampled_from([word for word in oracle.WORDS if word.strip()]))
def test_search_filters_like_the_oracle(told: Store, given_filters: dict[str, Any], kind: RowKind, query: str) -> None:
    """A search holds exactly the rows that contain the text and pass all filters, in order."""
    answer = search(told, SearchRequest(**given_filters, kind=kind, query=query, max_results=1000))

    assert [hit.row.id for hit in answer.hits] == EXPECTED.matching(Filters(**given_filters), kind, query)


CASES: list[dict[str, Any]] = [
    {"action": ["bash", "straße"]},
    {"agent": ["ägent"]},
    {"input_type": ["collectorrequest"]},
    {"status": ["error", "open"]},
    {"since": at(30), "until": at(60)},
    {"agent": ["a'b"], "status": ["ok"], "since": at(10)},
    {"action": ["50%_off"], "until": at(90), "agent": ["coder", "Reviewer"]},
    {"event_type": ["message", "custom"]},
    {"event_type": ["thought"], "agent": ["coder"]},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "+".join(case))
def test_filters_mean_the_same_through_every_door(store: Store, ask: Ask, case: dict[str, Any]) -> None:
    """The same filters give the same rows through library and command line, in list, trace and search."""
    store.append(RECORDS)
    kind: RowKind = "event" if "event_type" in case else "entry"

    assert [row["id"] for row in ask(ListRequest(**case, limit=500))["rows"]] == EXPECTED.matching(Filters(**case), kind)
    found = ask(SearchRequest(**case, query="a", max_results=500))["hits"]
    assert [hit["row"]["id"] for hit in found] == EXPECTED.matching(Filters(**case), "all", "a")
    if kind == "entry":
        assert [row["id"] for row in ask(TraceRequest(**case))["entries"]] == EXPECTED.matching(Filters(**case), "entry")


def test_names_with_a_nul_are_whole_names(store: Store) -> None:
    """Names that differ behind a NUL are different names."""
    store.append([entry("s", 0, "a\0b", agent="x\0y"), entry("s", 1, "a\0c", agent="x\0z")])

    assert [row.id for row in list_(store, ListRequest(action=["A\0B"])).rows] == ["s-e0000"]
    assert [row.id for row in list_(store, ListRequest(agent=["x\0Z"])).rows] == ["s-e0001"]
    assert store.sessions.agents(store.sessions.key("s") or 0) == ["x\0y", "x\0z"]


def test_since_is_inclusive_and_until_exclusive(store: Store, ask: Ask) -> None:
    """A time range holds what begins at its start and not what begins at its end."""
    write(store, "s", ["Bash:a", "Bash:b", "Bash:c"])

    assert [row["index"] for row in ask(ListRequest(since=at(1), until=at(2)))["rows"]] == [1]
    assert ask(ListRequest(since=at(2), until=at(2)))["rows"] == []


@pytest.mark.parametrize("written", ["2026-01-22T11:00:01+01:00", "2026-01-22T10:00:01", "2026-01-22T10:00:01.000000Z"])
def test_times_of_any_zone_are_compared_as_moments(store: Store, ask: Ask, written: str) -> None:
    """A time in another zone, or without one (UTC), means the same moment."""
    write(store, "s", ["Bash:a", "Bash:b"])

    assert [row["index"] for row in ask(ListRequest(since=written))["rows"]] == [1]


def test_records_without_a_time_match_no_range(store: Store, ask: Ask) -> None:
    """An entry without a timestamp, or with one that is none, is in no time range and in every other answer."""
    store.append([entry("s", 0, ts=None), entry("s", 1, ts="yesterday"), entry("s", 2)])

    assert [row["index"] for row in ask(ListRequest(since=at(-99_999)))["rows"]] == [2]
    assert [row["index"] for row in ask(ListRequest())["rows"]] == [0, 1, 2]


@pytest.mark.parametrize("bad", ["soonish", "2026-13-01T00:00:00Z", "٢٠٢٦-01-22", "", "9" * 80, "2026-01-22T10:00:00\0Z"])
@pytest.mark.parametrize("empty", [False, True])
def test_what_is_no_time_is_refused(store: Store, bad: str, empty: bool) -> None:
    """A limit that is no time is an error, in an empty history too."""
    if not empty:
        write(store, "s", ["Bash:a"])

    for asked in (ListRequest(since=bad), ListRequest(until=bad, kind="all")):
        with pytest.raises(InvalidInput, match="is not a time"):
            list_(store, asked)
    with pytest.raises(InvalidInput, match="is not a time"):
        trace(store, TraceRequest(until=bad))
    with pytest.raises(InvalidInput, match="is not a time"):
        search(store, SearchRequest(query="a", since=bad))


def test_events_are_filtered_by_their_entry(store: Store, ask: Ask) -> None:
    """An event is found by action, input type and status of the entry it belongs to; one without an entry by none."""
    write(store, "s", ["Bash:ls", "!Read:x -> boom"], inputType="Path")
    store.append(
        [
            event("s", 0, "thought", "a", entry="s-e0001"),
            event("s", 1, "thought", "b"),
            event("s", 2, "thought", "c", entry="gone"),
        ]
    )

    cases: list[dict[str, Any]] = [
        {"action": ["read"]},
        {"status": ["error"]},
        {"input_type": ["PATH"], "event_type": ["thought"]},
    ]
    for case in cases:
        assert [row["id"] for row in ask(ListRequest(kind="event", **case))["rows"]] == ["s-v0000"]
