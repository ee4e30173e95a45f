"""The reserved session: what its store says of archived sessions, whoever changed it, and how its places are spelled."""

from __future__ import annotations

import json

import pytest

from ctxmgr.errors import Damaged, InvalidInput
from ctxmgr.store import open_store
from ctxmgr.store.project_session import (
    ARCHIVED,
    end_name,
    find_archive,
    parse_archive_mark,
    require_not_archived,
    untrusted_message,
)

MARK = {"archive": "kept", "file": "day=2026-01-22/a-1.parquet", "at": "2026-01-22T10:00:00Z", "records": 7}


def test_an_archived_session_is_refused_with_its_place() -> None:
    """What was taken out is named by where it is; any other session may be written."""
    store = open_store(":memory:", create=True)
    store.engine.execute(
        "INSERT INTO state (name, value) VALUES (:name, :value)", {"name": f"{ARCHIVED}old", "value": json.dumps(MARK)}
    )

    assert find_archive(store.engine, "old") == MARK
    with pytest.raises(InvalidInput, match=r"archived in kept/day=2026-01-22/a-1\.parquet"):
        require_not_archived(store.engine, "old")
    assert find_archive(store.engine, "ol") is None
    require_not_archived(store.engine, "older")
    store.close()


@pytest.mark.parametrize(
    "text",
    [
        None, "", "{", "[]", "7", "NaN", "[" * 100_000, json.dumps({**MARK, "records": True}),
        json.dumps({**MARK, "file": None}),
        json.dumps({**MARK, "archive": ["kept"]}), json.dumps({key: MARK[key] for key in ("archive", "file", "at")}),
    ],
)  # fmt: skip
def test_a_changed_mark_is_damage(text: object) -> None:
    """A session whose place can't be read is not taken for one that never was archived."""
    with pytest.raises(Damaged, match="'old' was archived"):
        parse_archive_mark("old", text)


def test_names_of_places_sort_as_the_places() -> None:
    """However many digits they have."""
    places = [0, 9, 10, 99, 10**19]

    assert sorted(map(end_name, reversed(places))) == [end_name(place) for place in places]


def test_what_is_left_out_is_counted() -> None:
    """One record or many, with the option that takes them over."""
    assert untrusted_message(1).startswith("1 record of")
    assert untrusted_message(12_345).startswith("12,345 records of")
    assert "--trust-project" in untrusted_message(2)
