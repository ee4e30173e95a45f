"""What the tests of the project's shared state stand on: an operator, and agents under rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.rule_changes import change_rules
from ctxmgr.store import Store
from ctxmgr.types.access import AccessRule

Allow = Callable[..., None]
As = Callable[[str | None], AccessGuard]


@pytest.fixture
def operator(store: Store) -> AccessGuard:
    """Return the operator, who may do everything."""
    return AccessGuard(store)


@pytest.fixture
def allow(store: Store) -> Allow:
    """Return what puts a rule in force: agent, resource type, pattern, permission."""

    def put(agent: str, kind: str, pattern: str, permission: str = "read", priority: int = 100) -> None:
        rule = AccessRule.model_validate(
            {"agent": agent, "resource_type": kind, "pattern": pattern, "permission": permission, "priority": priority}
        )
        change_rules(store, AccessGuard(store), add=[rule])

    return put


@pytest.fixture
def asking(store: Store) -> As:
    """Return what makes an asker under the rules that are in force by then."""
    return lambda agent: AccessGuard(store, agent)
