"""What the tests of artifacts stand on: a store of either kind, the operator's view of its artifacts, agents under rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.artifacts.service import ArtifactStore
from ctxmgr.store import Store

As = Callable[[str], ArtifactStore]


@pytest.fixture
def artifacts(store: Store) -> ArtifactStore:
    """Return the artifacts as the operator has them."""
    return ArtifactStore(store)


@pytest.fixture
def folder(store_path: Path) -> Path:
    """Name the folder in which the artifacts of the test's store lie."""
    return store_path.with_name("artifacts")


@pytest.fixture
def asking(store: Store) -> As:
    """Return what makes an agent's view, under the rules that are in force by then."""
    return lambda agent: ArtifactStore(store, AccessGuard(store, agent))
