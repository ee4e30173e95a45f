"""Texts of records as they are searched: all of them, whichever way they are walked."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxmgr.log.codec import Record
from ctxmgr.store.text_normalisation import plain_texts, searchable_texts
from tests.store.search.test_text_match import FIELDS, VALUES, nested


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5), st.sampled_from(["entry", "event", "note"]))
@example({"input": nested(63), "output": nested(64), "data": {"a": True, "b": None, "c": [1, 2.5]}}, "entry")
def test_texts_are_the_same_with_and_without_their_paths(fields: Record, kind: str) -> None:
    """The quick walk finds each text as often as the one that tells where it stands."""
    record = {**fields, "kind": kind}

    assert sorted(plain_texts(record)) == sorted(text for _, text in searchable_texts(record))
