"""Requests take the field names of the specification beside our own, in both spellings, and each field once."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.types.query import AddNoteRequest, Filters, ListRequest, Page, with_own_names


@pytest.mark.parametrize(
    ("given", "own"),
    [
        ({"actionNameFilter": "Bash"}, {"action": ["Bash"]}), ({"action_name_filter": ["Bash"]}, {"action": ["Bash"]}),
        ({"agentNameFilter": "coder"}, {"agent": ["coder"]}), ({"action": ["Bash"]}, {"action": ["Bash"]}),
    ],
)  # fmt: skip
def test_a_foreign_name_means_our_field(given: dict[str, Any], own: dict[str, Any]) -> None:
    """One name there is a list here."""
    assert ListRequest.model_validate(given) == ListRequest.model_validate(own)


def test_indexes_and_ids_come_together() -> None:
    """A list of both is taken apart."""
    asked = AddNoteRequest.model_validate({"entries": [3, "e1", -1], "content": "x"})

    assert (asked.entry_indices, asked.entry_ids) == ([3, -1], ["e1"])


@pytest.mark.parametrize(
    "given",
    [
        {"actionNameFilter": "Bash", "action": ["Read"]}, {"action_name_filter": "Bash", "actionNameFilter": "Read"},
        {"nosuch": 1}, {"actionNameFilter": 7}, {"actionNameFilter": {}}, {7: "x"}, {"": "x"}, [], None, "x",
    ],
)  # fmt: skip
def test_what_is_given_twice_or_unknown_is_refused(given: Any) -> None:
    """With the name that it was given."""
    with pytest.raises(ValueError, match=r".+"):
        ListRequest.model_validate(given)


def test_names_that_mean_nothing_stay() -> None:
    """The request itself refuses them; anything but a table comes back as it is."""
    assert with_own_names(Filters.model_fields, {"nosuch": 1, 7: 2}) == {"nosuch": 1, 7: 2}
    assert with_own_names(Filters.model_fields, [1]) == [1]


@pytest.mark.parametrize(
    ("offset", "shown", "total", "following"),
    [(0, 2, 5, 2), (3, 2, 5, None), (0, 0, 5, None), (7, 0, 5, None), (0, 5, 5, None)],
)
def test_a_page_names_the_next_one(offset: int, shown: int, total: int, following: int | None) -> None:
    """The last one names none, nor does an empty one."""
    page = Page.make(offset, 2, shown, total)

    assert (page.has_more, page.next_offset, page.total) == (following is not None, following, total)
