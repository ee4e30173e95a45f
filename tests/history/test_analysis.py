"""Sums over calls: tokens of an answer are shared among its calls, odd figures count for nothing, and queries only read."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.history.analysis import owners, sql, stats, views
from ctxmgr.store import Store
from ctxmgr.types.analysis import SqlRequest, StatsRequest
from tests.builders import entry, event, result


def told(store: Store, session: str | None = None, **asked: Any) -> dict[str | None, tuple[int, int, int, float | None]]:
    """Return calls, failures, open calls and input tokens by each key."""
    found = stats(store, StatsRequest(**asked), session)
    return {row.key: (row.calls, row.failed, row.open, row.input_tokens) for row in found.rows}


@pytest.fixture
def used(store: Store) -> Store:
    """Return a store with an answer of two calls, one of them filtered out below, and a call of another session."""
    store.append([
        entry("s", 0, "Read", step="1"), result("s", 0), entry("s", 1, "Bash", step="1"), result("s", 1, status="error"),
        event("s", 0, "usage", {"inputTokens": 100, "outputTokens": 10, "step": "1"}), entry("t", 0, "Read", agent="other"),
    ])  # fmt: skip
    return store


def test_each_key_has_its_sum(used: Store) -> None:
    """Of all sessions or of one; what a filter leaves out is in no sum."""
    assert {key: row[:3] for key, row in told(used).items() if key} == {"Read": (2, 0, 1), "Bash": (1, 1, 0)}
    assert {key: row[:3] for key, row in told(used, "t").items()} == {"Read": (1, 0, 1)}
    assert {key: row[:3] for key, row in told(used, by="agent", agent=["OTHER"]).items()} == {"other": (1, 0, 1)}
    assert told(used, action=["none"]) == {}


@pytest.mark.parametrize("odd", [-5, "many", None, [], {"a": 1}, True, 2**70, float("1e300")])
def test_odd_figures_keep_nothing_from_being_counted(odd: Any, store: Store) -> None:
    """Times and tokens of any type, as programs write them."""
    store.append([entry("s", 0), event("s", 0, "usage", {"inputTokens": odd, "outputTokens": odd})])

    assert told(store)["Bash"][:3] == (1, 0, 1)


@pytest.mark.parametrize(
    "query", ["DELETE FROM entries", "SELECT * FROM record", "SELECT 1; SELECT 2", "", "nonsense", "PRAGMA x"]
)
def test_a_query_only_reads_what_is_documented(query: str, used: Store) -> None:
    """Everything else is refused, and changes nothing."""
    with pytest.raises(InvalidInput):
        sql(used, SqlRequest(query=query), {})
    assert used.sessions.count() == 2


def test_values_stand_in_the_place_of_marks(used: Store) -> None:
    """Hostile ones too; the views that there are can be asked."""
    asked = SqlRequest(query="SELECT count(*) FROM entries WHERE agent = ?", values=["x' OR '1'='1"])
    assert sql(used, asked, {}).rows == [[0]]
    for view in views(used):
        assert sql(used, SqlRequest(query=f"SELECT * FROM {view.view} LIMIT 1"), {}).columns


def test_an_owner_is_named_once(used: Store) -> None:
    """With the sessions in which it acted."""
    assert len(owners(used)) == len(set(owners(used)))
