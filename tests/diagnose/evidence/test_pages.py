"""Answers that say there is more than they show, and whether a later call asked for it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.diagnose.evidence.pages import find_rest, find_unread_pages
from tests.diagnose.build import Call, bash, evidence

PAGE = {"items": [1, 2], "has_more": True, "next": "cGFnZTI="}


def unread(*calls: Call) -> int:
    """Return the number of answers with an unread rest."""
    return len(list(find_unread_pages(evidence(*calls, Call("wait", {}, "ok"), found=False), len(calls))))


@pytest.mark.parametrize(
    ("said", "token"),
    [
        ('{"has_more": true, "next_cursor": "c_9a"}', "c_9a"),
        ('link: <https://h/api?cursor=c2h0>; rel="next"\nx-total-count: 137', "c2h0"),
        ('{"items": [], "is_truncated": true}', ""),
        ('{"items": [1], "has_more": false, "next_cursor": null}', None),
    ],
)
def test_the_token_of_the_next_page_is_read(said: str, token: str | None) -> None:
    """From members of JSON, or from a header."""
    rest = find_rest(said)

    assert (None if rest is None else rest.token) == token


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (Call("list_items", {"shop": 1, "cursor": "cGFnZTI="}, {"items": [3]}), 0),
        (Call("list_items", {"shop": 1, "page": 2}, {"items": [3]}), 0),
        (Call("list_items", {"shop": 2}, {"items": [3]}), 1),
        (Call("get_item", {"id": 3}, {"id": 3}), 1),
    ],
    ids=["token", "page", "another list", "another call"],
)
def test_a_page_that_was_asked_for_is_read(later: Call, expected: int) -> None:
    """By its token, or by the same call for another part of the list."""
    assert unread(Call("list_items", {"shop": 1}, PAGE), later) == expected


def test_a_page_in_an_address_is_read() -> None:
    """A command has no named arguments, but its address has."""
    first = bash("curl -s http://h/items", '{"items": [1], "has_more": true}')

    assert unread(first, bash("curl -s http://h/other", "{}")) == 1
    assert unread(first, bash("curl -s 'http://h/items?page=2'", "{}")) == 0


@pytest.mark.parametrize("said", ["25 of 64 tests passed", {"count": 25, "total": 64}, "no more items"])
def test_a_mere_count_leaves_no_page(said: Any) -> None:
    """It may count anything."""
    assert unread(Call("list_items", {"shop": 1}, said)) == 0
