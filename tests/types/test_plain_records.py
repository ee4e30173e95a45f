"""Records and pages as they are on the wire."""

from __future__ import annotations

import json

from ctxmgr.types.plain_records import build, make_page
from ctxmgr.types.query import Page


def test_a_record_begins_with_what_all_have() -> None:
    """Version, kind, session and time first, in this order; what is None is left out, what is empty stays."""
    record = build("entry", "s", "2026-01-22T10:00:00Z", id="e", input=None, output="", meta={}, turn=0)

    assert list(record) == ["v", "kind", "session", "ts", "id", "output", "meta", "turn"]
    assert "ts" not in build("event", "s", None, type="x")


def test_a_page_is_the_one_that_its_shape_writes() -> None:
    """The form without the model library says the same."""
    for case in ((0, 2, 2, 5), (4, 2, 1, 5), (0, 2, 0, 0), (9, 2, 0, 5)):
        for exact in (True, False):
            assert json.dumps(make_page(*case, exact)) == json.dumps(Page.make(*case, exact).to_json())
