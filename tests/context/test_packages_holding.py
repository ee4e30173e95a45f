"""A package that differs from the last one: what the agent holds unchanged is referred to, until its context is compacted."""

from __future__ import annotations

from typing import Any

from ctxmgr.context.packages import render
from ctxmgr.store.project_session import PACKAGE
from tests import builders as b
from tests.context.world import NOW, PROSE, World, got

LONG = "# Title\n\n" + PROSE * 100


def held(world: World, agent: str = "dev", tokens: int = 10_000) -> dict[str, str]:
    """Return what a package refers to: OWNER/NAME -> the package that gave it."""
    made = world.assemble(agent, tokens, diff=True)
    return {f"{one.source}/{one.name}": one.package for one in made.package.held}


def compaction(world: World, agent: str | None, session: str = "run") -> None:
    """Record that the context of an agent, or of a whole session, was compacted."""
    fields: dict[str, Any] = {} if agent is None else {"agent": agent}
    world.store.append([b.event(session, len(world.store.shared.events(PACKAGE)), "compaction", {}, **fields)])


def test_what_was_given_in_full_is_held(world: World) -> None:
    """Unchanged items are left out and named with the package that gave them; new and changed ones are given."""
    world.put("arch", "a.md", "alpha text")
    world.put("arch", "b.md", "second")
    world.need("dev", "arch/*", "optional")
    first = world.assemble("dev", 1_000)
    world.put("arch", "b.md", "second, changed")
    second = world.assemble("dev", 1_000, diff=True)
    third = world.assemble("dev", 1_000, diff=True)

    assert [(one.name, one.package) for one in second.package.held] == [("a.md", first.id)]
    assert sorted(got(second)) == ["arch/b.md"]
    assert [(one.name, one.package) for one in third.package.held] == [("a.md", first.id), ("b.md", second.id)]
    assert "alpha text" not in render(second.package)
    assert sorted(got(world.assemble("dev", 1_000))) == ["arch/a.md", "arch/b.md"]


def test_a_summary_that_would_be_given_again_is_held(world: World) -> None:
    """Also the third time, and it names the package that gave it; a changed content, or room for all of it, is given."""
    world.put("arch", "long.md", LONG)
    world.put("arch", "notes.txt", "\n".join(f"line {number} of the notes" for number in range(900)))
    world.need("dev", "arch/long.md", "optional", maxTokens=2_000)
    world.need("dev", "arch/notes.txt", "optional", maxTokens=30)
    first = world.assemble("dev", 1_000)
    assert got(first) == {"arch/long.md": "summary", "arch/notes.txt": "truncated"}
    for _ in range(2):
        again = world.assemble("dev", 1_000, diff=True)
        assert [(one.name, one.included, one.package) for one in again.package.held] == [
            ("long.md", "summary", first.id), ("notes.txt", "truncated", first.id),
        ]  # fmt: skip
        assert again.package.artifacts == []
    assert world.why("arch/long.md").got == "held"
    roomy = world.assemble("dev", 20_000, diff=True)
    assert got(roomy) == {"arch/long.md": "full"}
    world.put("arch", "long.md", LONG + "More of it.")

    assert got(world.assemble("dev", 1_000, diff=True)) == {"arch/long.md": "summary"}


def test_room_that_a_held_summary_leaves_goes_to_others(world: World) -> None:
    """What did not fit beside it before may fit now."""
    for name in ("a.md", "b.md", "c.md"):
        world.put("arch", name, LONG.replace("first", name))
    world.need("dev", "arch/*", "reference")
    first = world.assemble("dev", 1_000)
    second = world.assemble("dev", 1_000, diff=True)

    assert "omitted" in got(first).values() or "truncated" in got(first).values()
    assert {one.name for one in second.package.held} == {
        item.name for item in first.package.artifacts if item.included == "summary"
    }
    assert got(second)["arch/c.md"] == "summary"


def test_only_the_agents_own_packages_count(world: World) -> None:
    """What another agent was given is not held, nor is what a dry run showed."""
    world.put("arch", "a.md", "first")
    for agent in ("dev", "other"):
        world.need(agent, "arch/*")
    world.assemble("other")
    world.assemble("dev", dry_run=True)

    assert held(world) == {}


def test_a_compaction_makes_an_agent_hold_nothing(world: World) -> None:
    """After its context was compacted, or that of a session in which it acted, everything is given again."""
    world.put("arch", "a.md", "first")
    world.need("dev", "arch/*")
    b.write(world.store, "run", ["Bash:ls"], agent="dev")
    b.write(world.store, "elsewhere", ["Bash:ls"], agent="other")
    world.assemble()
    compaction(world, "other")
    compaction(world, None, "elsewhere")
    assert len(held(world)) == 1
    compaction(world, "dev")
    assert held(world) == {}
    assert len(held(world)) == 1
    compaction(world, None)
    assert held(world) == {}


def test_an_entry_that_was_completed_since_is_given_again(world: World) -> None:
    """A part of the history is held as long as it says the same."""
    world.store.append([b.entry("run", 0, "Bash", "ls", agent="dev")])
    world.need("dev", "entry:run-e0000")
    world.assemble()
    assert list(held(world)) == ["dev/run@0"]
    world.store.append([b.result("run", 0, "done")])

    assert held(world) == {}


def test_references_that_do_not_fit_are_counted(world: World) -> None:
    """Where the references alone would take the room a warning says how many there are."""
    world.put_all([("arch", f"{number:03}.md", "x", None, []) for number in range(60)])
    world.need("dev", "arch/*")
    world.assemble()
    made = world.assemble(tokens=300, diff=True)

    assert made.package.held == []
    assert "60 items that the agent holds are not listed, for want of room" in made.package.warnings


def test_records_of_packages_that_are_none(world: World) -> None:
    """A record from elsewhere that is no package, or only half of one, makes the agent hold nothing, and nothing fails."""
    world.put("arch", "a.md", "first")
    world.need("dev", "arch/*")
    for items in (None, 7, [7], [{"id": "x"}], [{"id": world.id_of("arch/a.md"), "type": "artifact", "got": "full"}]):
        world.record(PACKAGE, {"agent": "dev", "items": items or [], "held": items, "omitted": {"a": 1}})
        assert held(world) == {}
        made = world.store.shared.package(agent="dev")
        assert made is not None
        assert made["ts"] == NOW
        world.record(PACKAGE, {"agent": "dev", "items": [], "held": [{"id": ["x"]}]})
        assert world.why("arch/a.md", agent="dev").got == "absent"
