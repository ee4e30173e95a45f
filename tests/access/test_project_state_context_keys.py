"""Context keys: typed values, the old one returned, the change in history, unknown keys refused, access rules held."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.project_state import get_keys, set_keys
from ctxmgr.errors import CtxmgrError, Denied, InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS, KEY, VERSION
from ctxmgr.types.plain_records import build
from ctxmgr.types.project_state import GetContextRequest, KeyUpdate, SetContextRequest
from tests.access.conftest import As
from tests.conftest import Allow


def _set(store: Store, guard: AccessGuard, key: str, value: Any, *, create: bool = True, **more: Any) -> Any:
    update = KeyUpdate(key=key, value=value, **more)
    return set_keys(store, guard, SetContextRequest(updates=[update], create=create)).updated[0]


def _get(store: Store, guard: AccessGuard, *keys: str) -> dict[str, Any]:
    return {item.key: item.value for item in get_keys(store, guard, GetContextRequest(keys=list(keys))).keys}


@pytest.mark.requirement("003-C1")
def test_a_key_that_is_set_answers_what_it_was(store: Store, operator: AccessGuard) -> None:
    """Setting a key returns the old and the new value, and reading it gives the new one with who and when."""
    first = _set(store, operator, "current_sprint", "S1-08", create=False)
    second = _set(store, operator, "current_sprint", "S1-09", create=False)

    assert (first.old_value, first.new_value, first.created) == (None, "S1-08", True)
    assert (second.old_value, second.new_value, second.created) == ("S1-08", "S1-09", False)
    (stored,) = get_keys(store, operator, GetContextRequest(keys=["current_sprint"])).keys
    assert (stored.value, stored.type, stored.updated_by) == ("S1-09", "string", "operator")
    assert stored.updated_at is not None


@pytest.mark.requirement("003-C2")
def test_every_change_is_in_history(store: Store, operator: AccessGuard) -> None:
    """Each change is an event of the one history, with the value it replaced."""
    _set(store, operator, "phase", "one")
    _set(store, operator, "phase", "two")

    changes = [record["data"]["changes"][0] for record in store.shared.events(KEY)]
    assert [(change["old"], change["value"]) for change in changes] == [(None, "one"), ("one", "two")]


@pytest.mark.parametrize(
    ("kind", "given_text", "meant"),
    [
        ("string", "08", "08"),
        ("integer", " 12 ", 12),
        ("integer", -(2**63), -(2**63)),
        ("boolean", "true", True),
        ("json", '{"a": [1, null]}', {"a": [1, None]}),
        ("json", None, None),
    ],
)
@pytest.mark.requirement("003-C1")
def test_values_are_read_as_their_type_says(
    store: Store, operator: AccessGuard, kind: str, given_text: Any, meant: Any
) -> None:
    """Text is read as the key's type says, and a later change without a type keeps it."""
    assert _set(store, operator, "some", given_text, type=kind).new_value == meant
    assert _get(store, operator, "some") == {"some": meant}
    assert get_keys(store, operator, GetContextRequest()).keys[0].type == kind


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("integer", "1.5"), ("integer", "twelve"), ("integer", True), ("integer", 2**63), ("integer", "1e3"),
        ("boolean", "yes"), ("boolean", 1), ("boolean", "True"), ("json", "{"), ("json", "NaN"), ("string", 5),
        ("json", "[" * 100_000),
    ],
)  # fmt: skip
@pytest.mark.requirement("003-C1")
def test_a_value_that_is_not_of_its_type_changes_nothing(store: Store, operator: AccessGuard, kind: str, value: Any) -> None:
    """A value that its type can't hold is refused, and the key keeps what it had."""
    _set(store, operator, "some", "before")

    with pytest.raises(InvalidInput):
        _set(store, operator, "some", value, type=kind)

    assert _get(store, operator, "some") == {"some": "before"}


@pytest.mark.requirement("003-C3")
def test_unknown_keys_need_to_be_asked_for(store: Store, operator: AccessGuard) -> None:
    """A key that is not there is refused unless new ones are wanted, and the refusal names the nearest one."""
    with pytest.raises(NotFound) as refused:
        _set(store, operator, "curent_sprint", "S1", create=False)

    assert "current_sprint" in str(refused.value.hint)
    assert _get(store, operator) == {}


@pytest.mark.parametrize(
    "key", ["", " a", "a*", "a\nb", "a\0b", "x" * 256, "/a", "a/", "project/a", "\ud800", "\u202ea", "context_version"]
)
def test_keys_that_cant_be_used_are_refused(store: Store, operator: AccessGuard, key: str) -> None:
    """Names that rules or terminals could not hold are refused, and so is the one key that follows from the versions."""
    with pytest.raises(InvalidInput):
        _set(store, operator, key, "x")


def test_all_or_nothing(store: Store, operator: AccessGuard) -> None:
    """Of several updates none is made when one of them can't be."""
    updates = [KeyUpdate(key="one", value="1"), KeyUpdate(key="two", value="x", type="integer")]

    with pytest.raises(InvalidInput):
        set_keys(store, operator, SetContextRequest(updates=updates, create=True))

    assert _get(store, operator) == {}


@pytest.mark.requirement("003-C4")
def test_the_version_of_the_context_is_a_key(store: Store, operator: AccessGuard) -> None:
    """The number of the current version reads as a key of its own."""
    event: dict[str, object] = {"op": "create", "version": 3, "parent": None, "artifacts": []}
    store.append([build("event", "ctxmgr:project", None, id="v", type=VERSION, data=event)])

    assert _get(store, operator) == {"context_version": 3}


@pytest.mark.requirement("003-A5", "R-16")
def test_a_denied_key_reads_as_a_missing_one(store: Store, operator: AccessGuard, allow: Allow, asking: As) -> None:
    """What an agent may not read answers as what is not there, to the letter, and the attempt is logged."""
    _set(store, operator, "secret_one", "x")
    allow("reader", "context", "project/open")
    _set(store, operator, "open", "y")
    reader = asking("reader")

    told = [_refusal(store, reader, key).replace(key, "KEY") for key in ("secret_one", "secret_two")]
    assert told[0] == told[1]
    assert _get(store, reader) == {"open": "y"}
    denied = [record["data"]["denied"] for record in store.shared.events(ACCESS) if record["data"]["denied"]]
    assert [row["name"] for rows in denied for row in rows] == ["secret_one", "secret_two"]


def _refusal(store: Store, guard: AccessGuard, key: str) -> str:
    with pytest.raises(NotFound) as refused:
        get_keys(store, guard, GetContextRequest(keys=[key]))
    return f"{refused.value.message}|{refused.value.hint}"


@pytest.mark.requirement("003-C5")
def test_setting_needs_the_right_to_write(store: Store, operator: AccessGuard, allow: Allow, asking: As) -> None:
    """An agent sets what a rule lets it write; for the rest it makes no difference whether the key is there."""
    _set(store, operator, "there", "x")
    allow("reader", "context", "*")
    allow("project_manager", "context", "project/there", "write")
    reader = asking("reader")

    told: list[str] = []
    for key in ("there", "gone"):
        with pytest.raises(Denied) as refused:
            _set(store, reader, key, "z")
        told.append(refused.value.message.replace(key, "KEY"))

    assert told[0] == told[1]
    assert _set(store, asking("project_manager"), "there", "z").old_value == "x"
    assert get_keys(store, reader, GetContextRequest()).keys[0].updated_by == "project_manager"


@pytest.mark.slow
@given(key=st.text(max_size=12), value=st.one_of(st.text(max_size=20), st.integers(), st.none(), st.lists(st.booleans())))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_odd_keys_and_values_end_in_an_answer(store: Store, key: str, value: Any) -> None:
    """Whatever the key and the value, either it can be read back or a typed error says why not."""
    guard = AccessGuard(store)
    try:
        made = _set(store, guard, key, value, type="json")
    except CtxmgrError:
        return
    assert _get(store, guard, key) == {key: made.new_value}
