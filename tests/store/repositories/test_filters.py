"""Filters of a request as SQL: every value is bound, names are compared as they are folded, and limits are times."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.errors import InvalidInput
from ctxmgr.store import Store
from ctxmgr.store.repositories.filters import ANY, build_scopes, entry_conditions, event_condition, limit_seconds
from ctxmgr.types.query import Filters
from tests.builders import at, entry, event

HOSTILE = "x' OR 1=1; DROP TABLE entry; --"


def test_without_filters_all_rows_are_meant() -> None:
    """An entry needs no condition, an event none but that it is not of the project's own state."""
    assert entry_conditions(Filters(), None) == (ANY, {})
    assert event_condition(Filters()) == (ANY, {})
    scopes = build_scopes(Filters(), "all", None)
    assert [(table, values) for table, _, values in scopes] == [("entry", {}), ("event", {"project": "ctxmgr:project"})]
    assert [scope[0] for kind in ("entry", "event") for scope in build_scopes(Filters(), kind, 3)] == ["entry", "event"]


@pytest.mark.parametrize("field", ["agent", "action", "input_type", "process", "event_type"])
def test_a_value_is_bound_and_never_part_of_the_statement(field: str) -> None:
    """Whatever it holds, it stands beside the conditions."""
    filters = Filters.model_validate({field: [HOSTILE, "\ud800", ""]})

    for _, conditions, values in build_scopes(filters, "all", 7):
        assert "DROP" not in conditions
        assert values["session"] == 7
    assert any(
        isinstance(value, str) and "drop" in value.casefold() for value in build_scopes(filters, "all", 7)[1][2].values()
    )


@pytest.mark.parametrize("text", ["soon", "", "2026-13-01", "\ud800", "1" * 400])
def test_a_limit_that_is_no_time_is_refused(text: str) -> None:
    """The name of the limit is told with it."""
    with pytest.raises(InvalidInput, match=r"until .* is not a time"):
        limit_seconds("until", text)


def test_no_limit_is_none() -> None:
    """What is not given limits nothing; a time is told in seconds."""
    assert limit_seconds("since", None) is None
    assert limit_seconds("since", "1970-01-01T00:01:00Z") == 60.0


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"agent": ["STRASSE"]}, [0]), ({"agent": ["straße"]}, [0]), ({"agent": [HOSTILE]}, []),
        ({"process": ["p"]}, [0]), ({"process": ["p1"]}, [1]), ({"process": ["q"]}, [2]), ({"process": [""]}, []),
        ({"since": at(1)}, [1, 2]), ({"until": at(1)}, [0]), ({"since": at(1), "until": at(2)}, [1]),
        ({"action": ["bash", "none"]}, [0, 1, 2]), ({"event_type": ["message"]}, []), ({"status": ["error"]}, []),
    ],
)  # fmt: skip
def test_what_conditions_find(filters: dict[str, Any], found: list[int], store: Store) -> None:
    """Names in any case, processes by their id or else by how it begins, times half open."""
    store.append([
        entry("s", 0, agent="Straße", process="p"), entry("s", 1, process="p1"), entry("s", 2, process="q9"),
        event("s", 0, "message", after=2),
    ])  # fmt: skip
    conditions, values = entry_conditions(Filters.model_validate(filters), None)

    rows = store.engine.query(f"SELECT entry.idx FROM entry WHERE {conditions} ORDER BY entry.idx", values)
    assert [row[0] for row in rows] == found
