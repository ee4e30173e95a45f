"""What the operator is shown of the accesses of agents, and everybody of the values that changed."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.access.event_log import list_accesses, list_changes
from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.project_state import get_keys, set_keys
from ctxmgr.errors import Denied, NotFound
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS, KEY, PROJECT
from ctxmgr.types.access import AccessLogRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.project_state import ContextLogRequest, GetContextRequest, KeyUpdate, SetContextRequest
from tests.access.conftest import As
from tests.conftest import Allow


def _set(store: Store, guard: AccessGuard, key: str, value: str) -> None:
    set_keys(store, guard, SetContextRequest(updates=[KeyUpdate(key=key, value=value)], create=True))


@pytest.mark.requirement("003-A14")
def test_denials_are_listed_with_who_asked_for_what(store: Store, operator: AccessGuard, allow: Allow, asking: As) -> None:
    """The newest comes first; a denied and a missing key are both denied, with the agent, the command and the name."""
    _set(store, operator, "phase", "one")
    _set(store, operator, "secret", "x")
    allow("dev", "context", "project/phase")
    get_keys(store, asking("dev"), GetContextRequest(keys=["phase"]))
    for agent in ("dev", "other"):
        with pytest.raises(NotFound):
            get_keys(store, asking(agent), GetContextRequest(keys=["secret"]))

    every = list_accesses(store, operator, AccessLogRequest()).accesses
    assert [(access.agent, access.granted_count, access.denied_count) for access in every] == [
        ("other", 0, 1), ("dev", 0, 1), ("dev", 1, 0),
    ]  # fmt: skip
    (denied,) = list_accesses(store, operator, AccessLogRequest(agent="dev", denied=True)).accesses
    assert (denied.command, denied.permission, denied.denied[0].path) == ("context get", "read", "project/secret")
    page = list_accesses(store, operator, AccessLogRequest(limit=1, offset=1))
    assert ([access.id for access in page.accesses], page.page.total) == ([every[1].id], 3)


@pytest.mark.requirement("R-16")
def test_the_log_of_accesses_is_the_operators(store: Store, allow: Allow, asking: As) -> None:
    """It names what is hidden, so no rule opens it to an agent."""
    allow("dev", "context", "*", "write")

    with pytest.raises(Denied):
        list_accesses(store, asking("dev"), AccessLogRequest())


@pytest.mark.requirement("003-C2")
def test_the_changes_of_a_value_are_listed(store: Store, operator: AccessGuard) -> None:
    """Each change has the old and the new value, its author and its time, the newest first; a key narrows."""
    _set(store, operator, "phase", "one")
    _set(store, operator, "other", "x")
    _set(store, operator, "phase", "two")

    found = list_changes(store, operator, ContextLogRequest(keys=["phase"])).changes
    assert [(change.old_value, change.new_value, change.created, change.by) for change in found] == [
        ("one", "two", False, "operator"), (None, "one", True, "operator"),
    ]  # fmt: skip
    assert all(change.at for change in found)
    assert [change.key for change in list_changes(store, operator, ContextLogRequest(limit=2)).changes] == ["phase", "other"]


@pytest.mark.requirement("R-16")
def test_an_agent_is_shown_the_changes_that_it_may_read(store: Store, operator: AccessGuard, allow: Allow, asking: As) -> None:
    """A hidden key is in no row and in no count, and the read is logged."""
    _set(store, operator, "phase", "one")
    _set(store, operator, "secret", "x")
    allow("dev", "context", "project/phase")

    found = list_changes(store, asking("dev"), ContextLogRequest())
    assert ([change.key for change in found.changes], found.page.total) == (["phase"], 1)
    assert list_changes(store, asking("dev"), ContextLogRequest(keys=["secret"])).status == "empty"
    assert [record["data"]["command"] for record in store.shared.events(ACCESS)] == ["context log"] * 2


def test_odd_records_of_another_program_are_listed_as_far_as_they_go(store: Store, operator: AccessGuard) -> None:
    """Whatever a foreign history holds in these events, the lists answer."""
    odd: dict[str, Any] = {
        "agent": 5,
        "granted": "x",
        "denied": [{"type": "artifact"}, 7],
        "grantedCount": True,
        "hidden": None,
        "failed": [],
    }
    changes: dict[str, Any] = {"changes": [{"key": "k", "type": [], "value": {"a": 1}}, {"key": 3}, "x"], "by": {}}
    for number, (kind, data) in enumerate(((ACCESS, odd), (KEY, changes))):
        store.append([build("event", PROJECT, None, id=f"e{number}", type=kind, data=data)])

    (access,) = list_accesses(store, operator, AccessLogRequest(denied=True)).accesses
    assert (access.agent, access.at, access.granted_count, access.denied_count, access.hidden) == ("", None, 0, 1, 0)
    (change,) = list_changes(store, operator, ContextLogRequest()).changes
    assert (change.key, change.type, change.new_value, change.by) == ("k", "json", {"a": 1}, None)
