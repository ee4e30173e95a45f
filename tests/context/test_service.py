"""Requests about context packages: needs, more on demand, task files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.context.service import MAX_CONTENT_BYTES, list_needs, read_task_context
from ctxmgr.errors import BudgetExceeded, Damaged, Denied, InvalidInput, NotFound
from ctxmgr.store.project_session import ACCESS, NEEDS, PACKAGE
from ctxmgr.types.project_state import AgentNeed, ListNeedsRequest
from tests import builders as b
from tests.context.world import PROSE, World


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


def test_json_and_yaml() -> None:
    """Both give the same plain map; dates become text, keys that are no text become some."""
    told = {"title": "Parser", "n": 1.5, "parts": [{"x": None}], "done": False}
    as_yaml = b"\xef\xbb\xbftitle: Parser\nn: 1.5\nparts:\n- {x: null}\ndone: false\n"

    assert read_task_context(b' {"title":"Parser","n":1.5,"parts":[{"x":null}],"done":false} ', "f") == told
    assert read_task_context(as_yaml, "f") == told
    assert read_task_context(b"due: 2026-01-31\n1: one\n", "f") == {"due": "2026-01-31", "1": "one"}


BOMB = b"a: &a [x, x, x, x]\n" + b"".join(b"k%d: &k%d [*a, *a]\n" % (number, number) for number in range(9))
BAD = {
    "empty": b"", "a list": b"[1]", "a text": b"hello", "broken": b"{", "tabs": b"a:\n\t- b", "twice": b"a: 1\na: 2\n",
    "a bomb": BOMB, "deep": b"a: " + b"[" * 60 + b"]" * 60, "very deep": b'{"a":' * 5_000, "no text": b"\xff\xfe\0",
    "no truth": b"a: !!bool maybe", "no number": b"a: !!int ''", "no date": b"a: !!timestamp x", "no pairs": b"a: !!omap [1]",
    "two documents": b"a: 1\n---\nb: 2\n", "a class": b"!!python/object/apply:os.system [ls]", "NaN": b"[" * 300,
    "too large": b"a: " + b"x" * MAX_CONTENT_BYTES,
}  # fmt: skip


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_files_that_tell_nothing(content: bytes) -> None:
    """What is no map, broken, too large, too deep, refers to itself or names code is refused, never executed."""
    with pytest.raises(InvalidInput):
        read_task_context(content, "task.yaml")
