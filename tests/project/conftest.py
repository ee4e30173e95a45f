"""What the tests of the project's shared state stand on: an operator, and agents under rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxmgr.project.guarding import Guard
from ctxmgr.project.rules import change_rules
from ctxmgr.store import Store
from ctxmgr.types.access import AccessRule

Allow = Callable[..., None]
As = Callable[[str | None], Guard]


@pytest.fixture
def operator(store: Store) -> Guard:
    """Return the operator, who may do everything."""
    return Guard(store)


@pytest.fixture
def allow(store: Store) -> Allow:
    """Return what puts a rule in force: agent, resource type, pattern, permission."""

    def put(agent: str, kind: str, pattern: str, permission: str = "read", priority: int = 100) -> None:
        rule = AccessRule.model_validate(
            {"agent": agent, "resource_type": kind, "pattern": pattern, "permission": permission, "priority": priority}
        )
        change_rules(store, Guard(store), add=[rule])

    return put


@pytest.fixture
def asking(store: Store) -> As:
    """Return what makes an asker under the rules that are in force by then."""
    return lambda agent: Guard(store, agent)
