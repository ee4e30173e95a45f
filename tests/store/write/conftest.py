"""What tests of writers stand on: a log that is indexed by both ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.store import log_rows, log_store
from ctxmgr.store.write import log_parser
from tests.store.bulk_logs import NEVER, Rows, forget_index, indexed_rows


@pytest.fixture(params=[0, NEVER], ids=["deferred", "at once"])
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[Rows, Rows]]:
    """Return what indexes a log in blocks and line by line; the log may grow in between."""

    def index(*pieces: bytes, together: int = 700) -> tuple[Rows, Rows]:
        path = tmp_path / "h.jsonl"
        found: list[Rows] = []
        for least in (0, NEVER):
            monkeypatch.setattr(log_rows, "_BLOCKS_FROM_BYTES", least)
            monkeypatch.setattr(log_store, "_DEFER_FROM_BYTES", max(least, request.param))
            monkeypatch.setattr(log_parser, "_READ", together)
            forget_index(tmp_path)
            whole, rows = b"", Rows()
            for piece in pieces:
                whole += piece
                path.write_bytes(whole)
                rows = indexed_rows(path)
            found.append(rows)
        return found[0], found[1]

    return index
