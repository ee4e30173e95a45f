"""What the tests of the project's shared state stand on: an operator, and agents under rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.store import Store

As = Callable[[str | None], AccessGuard]


@pytest.fixture
def operator(store: Store) -> AccessGuard:
    """Return the operator, who may do everything."""
    return AccessGuard(store)


@pytest.fixture
def asking(store: Store) -> As:
    """Return what makes an asker under the rules that are in force by then."""
    return lambda agent: AccessGuard(store, agent)
