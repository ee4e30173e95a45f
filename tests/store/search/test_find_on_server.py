"""A search on a server finds what reading everything finds."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from ctxmgr.store import Store
from ctxmgr.types.query import Filters
from tests.builders import entry


@pytest.mark.cases(1)
@pytest.mark.parametrize("trigrams", [True, False])
@pytest.mark.parametrize("indexed", ["not", "half", "all", "late"])
def test_a_search_finds_what_reading_everything_finds(
    server_store: Store, admin: psycopg.Connection[Any], indexed: str, trigrams: bool
) -> None:
    """With an index or without, with trigrams or without, the same rows are found; also by results that came late."""
    if not trigrams:
        admin.execute("DROP INDEX ctxmgr.search_text_trigrams")
    try:
        records = [entry("s", number, "Bash", {"command": f"Make {number:03} Übung \\n 50%_x"}) for number in range(60)]
        server_store.append(records[:30])
        if indexed == "half":
            server_store.index()
        server_store.append(records[30:])
        if indexed in ("all", "late"):
            server_store.index()
        server_store.append(
            [{"v": 1, "kind": "result", "session": "s", "entry": records[7]["id"], "status": "ok", "output": "Spät 1e5"}]
        )
        if indexed == "all":
            server_store.index()
        for needle in ("make", "MAKE 00", "übung", "007", "0", "spät", "50%_", "absent", "e5", "\n", "\\n"):
            found, total, exact = server_store.queries.search(None, Filters(), "all", needle, 0, 100)
            whole = [
                number for number, record in enumerate(records) if needle.casefold() in record["input"]["command"].casefold()
            ]
            if needle in ("spät", "e5"):
                whole = [7]
            assert [row.index for row, _, _ in found] == whole, needle  # pyright: ignore[reportAttributeAccessIssue]
            assert (total, exact) == (len(whole), True)
    finally:
        if not trigrams:
            admin.execute("CREATE INDEX search_text_trigrams ON ctxmgr.search_text USING gin (text ctxmgr.gin_trgm_ops)")
