"""A project in a store of its own, empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxmgr.store import open_store
from tests.context.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Open an empty project."""
    store = open_store(str(tmp_path / "history.db"), create=True)
    yield World(store)
    store.close()
