"""What agents need: set and taken away by the operator alone, recorded, checked, and kept by what does not move."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.context.needs import list_needs
from ctxmgr.errors import Denied, InvalidInput, NotFound
from ctxmgr.store.reserved import NEEDS
from ctxmgr.types.context_request import ListNeedsRequest
from ctxmgr.types.project import AgentNeed
from tests import builders as b
from tests.context.world import World


def need(pattern: str, agent: str = "dev", **more: Any) -> AgentNeed:
    """Return a required need."""
    return AgentNeed.model_validate({"agent": agent, "pattern": pattern, "need": "required", **more})


def listed(world: World, agent: str | None = None, asker: str | None = None) -> list[tuple[str, str]]:
    """Return (agent, pattern) of the needs."""
    found = list_needs(world.store, AccessGuard(world.store, asker), ListNeedsRequest(agent=agent))
    assert (found.status == "ok") == bool(found.needs)
    return [(one.agent, one.pattern) for one in found.needs]


@pytest.mark.requirement("003-P5")
def test_needs_are_set_replaced_and_taken_away(world: World) -> None:
    """The same pattern again replaces what was said; what does not change is not recorded."""
    first = world.change_needs(need("arch/*", priority=2), need("data/*", priority=1))
    second = world.change_needs(need("arch/*", priority=3, max_tokens=50, use_summary=True), need("data/*", priority=1))
    again = world.change_needs(need("data/*", priority=1))
    gone = world.change_needs(remove=[("dev", "data/*")])

    assert [(one.added, one.changed, one.removed) for one in (first, second, again, gone)] == [
        (2, 0, 0), (0, 1, 0), (0, 0, 0), (0, 0, 1),
    ]  # fmt: skip
    assert len(world.store.shared.events(NEEDS)) == 3
    stored = world.store.shared.needs("dev")
    assert [(one.pattern, one.priority, one.max_tokens, one.use_summary) for one in stored] == [("arch/*", 3, 50, True)]
    with pytest.raises(NotFound, match="dev has no need data"):
        world.change_needs(remove=[("dev", "data/*")])


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "self",
        "**",
        "arch",
        "arch/**",
        "a*/b",
        "arch/",
        "/x",
        "entry:",
        "snapshot: ",
        "notes:x",
        "arch/\n",
        "x" * 600 + "/y",
    ],
)
def test_patterns_that_are_none(world: World, pattern: str) -> None:
    """What names nothing that a package can hold is refused, with the forms in the hint."""
    with pytest.raises(InvalidInput) as refused:
        world.change_needs(need(pattern))

    assert "AGENT/NAME" in (refused.value.hint or "")


@pytest.mark.parametrize(
    "pattern", ["arch/[a]", "arch/a?.md", "arch/deep/name.md", "art_0123456789abcdef", "snapshot:x", "entry:x"]
)
def test_patterns_that_are_some(world: World, pattern: str) -> None:
    """Brackets and question marks are ordinary, names may hold slashes, ids and records can be named."""
    assert world.change_needs(need(pattern)).added == 1


@pytest.mark.parametrize(
    "fields", [{"agent": "*"}, {"agent": "self"}, {"agent": ""}, {"max_tokens": 0}, {"max_tokens": -1}, {"max_tokens": 2**40},
               {"priority": 2**40}]
)  # fmt: skip
def test_needs_that_are_none(world: World, fields: dict[str, Any]) -> None:
    """Agents that can't be called so, limits of nothing and numbers beyond 32 bits are refused."""
    with pytest.raises(InvalidInput):
        world.change_needs(need("arch/*", **fields))

    assert world.store.shared.events(NEEDS) == []


def test_an_entry_is_kept_by_its_id(world: World) -> None:
    """An entry named by its place is kept by its id, which means the same entry for everybody and for ever."""
    b.write(world.store, "run", ["Bash:ls", "Bash:cat"], agent="dev")
    done = world.change_needs(need("entry:run@-1"), need("entry:@0"))

    assert [one.pattern for one in done.needs] == ["entry:run-e0001", "entry:run-e0000"]
    with pytest.raises(NotFound):
        world.change_needs(need("entry:run@7"))


def test_only_the_operator_changes_needs(world: World) -> None:
    """An agent can't say what it needs; it is told of its own needs alone."""
    world.change_needs(need("arch/*"), need("data/*", "other"))
    with pytest.raises(Denied):
        world.change_needs(need("secret/*"), asker="dev")

    assert listed(world) == [("dev", "arch/*"), ("other", "data/*")]
    assert listed(world, "other") == [("other", "data/*")]
    assert listed(world, asker="dev") == listed(world, "dev", "dev") == [("dev", "arch/*")]
    assert listed(world, "other", "dev") == listed(world, "nobody", "dev") == []
