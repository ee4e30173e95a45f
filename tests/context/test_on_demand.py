"""Items that an agent asks for: each with its own status, what is denied as what is not there, all within the budget."""

from __future__ import annotations

import json

import pytest

from ctxmgr.errors import BudgetExceeded, Damaged, InvalidInput, NotFound
from ctxmgr.store.reserved import ACCESS, PACKAGE
from tests import builders as b
from tests.context.world import PROSE, World

LONG = "# Title\n\n" + PROSE * 100


@pytest.mark.requirement("003-P11", "003-P16")
def test_each_item_has_its_own_status(world: World) -> None:
    """What is there comes with its content, in the order asked for; what is not is missing, and the whole is partial."""
    identity = world.put("arch", "a.md", "first")
    world.put("arch", "b.md", "second")
    b.write(world.store, "run", ["Bash:ls"], agent="dev")
    found = world.request("entry:run@0", "arch/none.md", identity, "arch/*", "project_context")

    assert found.status == "partial"
    assert [(one.source, one.name, one.status, one.included) for one in found.items] == [
        ("dev", "run@0", "success", "full"),
        ("arch", "none.md", "missing", None),
        ("arch", "a.md", "success", "full"),
        ("arch", "a.md", "success", "full"),
        ("arch", "b.md", "success", "full"),
        ("", "project_context", "missing", None),
    ]
    assert [one.content for one in found.items[2:5]] == ["first", "first", "second"]
    assert {one.counter for one in found.items} == {"estimate"}
    assert world.request("arch/a.md").status == "ok"
    assert world.request("arch/none.md", "no/*").status == "empty"
    assert world.store.shared.events(PACKAGE) == []


@pytest.mark.parametrize("name", ["data/secret.md", "data/*", "SECRET", "entry:hid-e0000"])
def test_denied_is_missing_to_the_byte(world: World, name: str) -> None:
    """What may not be read is answered as the same name in a project that never had it, suggestions included."""
    world.put("arch", "a.md", "first")
    world.rule("dev", "artifact", "arch/*")
    world.rule("dev", "history", "dev/*")
    without = world.request(name.replace("SECRET", "art_" + "1" * 16), asker="dev")
    identity = world.put("data", "secret.md", "hidden text")
    b.write(world.store, "hid", ["Bash:ls"], agent="data")
    denied = world.request(name.replace("SECRET", identity), asker="dev")

    assert json.dumps(denied.to_json()).replace(identity, "art_" + "1" * 16) == json.dumps(without.to_json())


@pytest.mark.requirement("003-P12")
def test_suggestions_are_readable_names(world: World) -> None:
    """A missing name brings names like it, only of what the agent may read."""
    world.put("arch", "requirements.yaml", "k: 1\n")
    world.put("arch", "requirement.yaml", "k: 1\n")
    world.rule("dev", "artifact", "arch/requirements.yaml")

    assert world.request("arch/requirments.yaml", asker="dev").items[0].suggestions == ["arch/requirements.yaml"]
    assert set(world.request("arch/requirments.yaml", agent="boss").items[0].suggestions) == set()
    assert world.request("other/unlike", asker="dev").items[0].suggestions == []


def test_what_is_asked_for_first_is_served_first(world: World) -> None:
    """Within the budget the first item is given in full, the next as far as there is room, and what has none says so."""
    for name in ("a.md", "b.md", "c.md"):
        world.put("arch", name, LONG + name)
    found = world.request("arch/b.md", "arch/a.md", "arch/c.md", max_tokens=2_400)
    by_name = {one.name: one for one in found.items}

    assert (by_name["b.md"].included, by_name["a.md"].included) == ("full", "summary")
    assert by_name["a.md"].original_tokens == by_name["b.md"].tokens
    assert by_name["c.md"].status in ("success", "noRoom")
    assert sum(one.tokens or 0 for one in found.items) <= 2_400
    tight = world.request("arch/b.md", "arch/a.md", max_tokens=130)
    assert [one.status for one in tight.items] == ["noRoom", "noRoom"]
    assert tight.status == "ok"
    assert all(one.reason for one in tight.items)


@pytest.mark.parametrize("tokens", [0, -1, 10**30])
def test_budgets_that_are_none(world: World, tokens: int) -> None:
    """Budgets of nothing and beyond all counting are bad input, one that holds nothing can't fit."""
    with pytest.raises(InvalidInput):
        world.request("arch/a.md", max_tokens=tokens)
    with pytest.raises(BudgetExceeded):
        world.request("arch/a.md", max_tokens=3)


def test_changed_content_is_missing(world: World) -> None:
    """Content that is not what was put is never served: it is missing."""
    world.put("arch", "a.md", "first")
    world.contents.clear()

    assert [one.status for one in world.request("arch/a.md").items] == ["missing"]


def test_an_older_version(world: World) -> None:
    """Artifacts are given as of a version, which must be there."""
    world.put("arch", "a.md", "old")
    world.put("arch", "a.md", "new")

    assert world.request("arch/a.md", version=1).items[0].content == "old"
    with pytest.raises(NotFound):
        world.request("arch/a.md", version=7)


@pytest.mark.requirement("003-P12")
def test_what_was_asked_for_is_logged(world: World) -> None:
    """What an agent was granted, what was denied and what was not there is in the log of accesses."""
    world.put("arch", "a.md", "first")
    world.put("data", "secret.md", "hidden")
    world.rule("dev", "artifact", "arch/*")
    world.request("arch/a.md", "data/secret.md", "arch/none.md", asker="dev")
    data = world.store.shared.events(ACCESS)[0]["data"]

    assert (data["agent"], data["command"], data["failed"]) == ("dev", "context request", "2 of 3 are missing")
    assert [one["name"] for one in data["granted"]] == ["a.md"]
    assert [one["name"] for one in data["denied"]] == ["secret.md", "none.md"]


@pytest.mark.parametrize(
    "name", ["", "plain", "arch/", "/a", "arch/**", "a*/b", "arch/\0", "arch/a\nb", "entry:", "snapshot: "]
)
def test_names_that_are_none(world: World, name: str) -> None:
    """What can't be the name of anything is refused, and nothing is looked for."""
    with pytest.raises(InvalidInput):
        world.request(name)


@pytest.mark.parametrize("name", ["../x", "arch/../../x", "arch/.", "arch/current", "CON/NUL", "arch/[a]", "x" * 200 + "/y"])
def test_odd_names_are_only_missing(world: World, name: str) -> None:
    """Names that would mean something to a file system are names like others here: nothing is there."""
    world.put("arch", "a.md", "first")

    assert world.request(name).items[0].status == "missing"
    assert world.reads == []


def test_damage_is_no_answer(world: World) -> None:
    """A store that can't be read at all is an error, not a missing item."""

    def broken(_: object) -> bytes:
        raise OSError("input/output error")

    world.put("arch", "a.md", "first")
    world.read = broken  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises((OSError, Damaged)):
        world.request("arch/a.md")
