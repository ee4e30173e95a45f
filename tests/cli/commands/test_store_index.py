"""``ctxmgr index`` brings the search index up to date, of a database and of a log, and says whether there was need."""

from __future__ import annotations

import json
from pathlib import Path

from ctxmgr.store import open_store
from ctxmgr.store.search.index import mark
from tests.builders import entry
from tests.frontends import invoke


def test_what_was_recorded_is_indexed_on_request(store_path: Path) -> None:
    """The first run indexes what was recorded one by one, the second finds nothing to do, and both succeed."""
    store = open_store(str(store_path), create=True)
    for number in range(5):
        store.append([entry("s", number)])
    assert mark(store.engine) == 0

    answers = [invoke(["index", "--store", str(store_path), "--json"]) for _ in range(2)]

    assert [answer.exit_code for answer in answers] == [0, 0]
    assert [json.loads(answer.stdout)["data"] for answer in answers] == [{"indexed": True}, {"indexed": False}]
    assert mark(store.engine) == 5
    store.close()
