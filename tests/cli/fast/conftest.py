"""What the tests of the fast path stand on: stores of every kind, and a folder among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.paths import make_stores


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the stores that command lines name."""
    folder = tmp_path_factory.mktemp("quick")
    make_stores(folder)
    return folder


@pytest.fixture
def here(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand among the stores, in the whole one unless told otherwise."""
    monkeypatch.chdir(stores)
    monkeypatch.setenv("CTXMGR_STORE", "history.db")
