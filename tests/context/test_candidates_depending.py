"""What depends on what: pulled in through any number of steps, each once, as strongly as the strongest chain says."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxmgr.context.candidates import STRENGTH, find_dependencies
from ctxmgr.store.repositories.shared_state import ArtifactRow, DependencyRow
from tests.context.world import World, got

KINDS = ("required", "optional", "reference")


def row(name: str) -> ArtifactRow:
    """Return an artifact of an owner called "a"."""
    return ArtifactRow(name, 1, "a", name, "text", None, "0", 1, 1, "estimate", None)


def strongest(start: dict[str, str], links: dict[tuple[str, str], str]) -> dict[str, int]:
    """Return the strength of everything that can be reached, by trying until nothing changes."""
    best = {name: STRENGTH[need] for name, need in start.items()}
    for _ in range(len(links) + 1):
        for (source, target), kind in links.items():
            if source in best:
                best[target] = min(best.get(target, 9), max(best[source], STRENGTH[kind]))
    return best


@given(
    links=st.dictionaries(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdefx")), st.sampled_from(KINDS), max_size=14
    ),
    start=st.dictionaries(st.sampled_from("abc"), st.sampled_from([*KINDS, "if_exists"]), max_size=3),
    seed=st.integers(),
)
def test_every_graph(links: dict[tuple[str, str], str], start: dict[str, str], seed: int) -> None:
    """Over random graphs with cycles and gaps: all that is reached, once, with the strength that a slower way finds too."""
    asked = [(row(name), need, random.Random(seed).randrange(3)) for name, need in start.items()]

    def targets(name: str) -> list[DependencyRow]:
        return [DependencyRow(end, "a", end, kind) for (begin, end), kind in sorted(links.items()) if begin == name]

    def find(_: str, name: str) -> ArtifactRow | None:
        return None if name == "x" else row(name)

    found = find_dependencies(asked, targets, find)  # pyright: ignore[reportArgumentType]
    best = {name: level for name, level in strongest(start, links).items() if name != "x"}
    direct = {name: STRENGTH[need] for name, need in start.items()}

    assert len({one.row.id for one in found}) == len(found)
    assert {one.row.id: STRENGTH[one.need] for one in found} == {
        name: level for name, level in best.items() if level < direct.get(name, 9)
    }


@pytest.mark.requirement("003-P7")
def test_dependencies_come_with_an_item(world: World) -> None:
    """What a required item requires is required, what it may use is optional, what it refers to is summarised."""
    world.put("arch", "base.md", "base")
    world.put("arch", "extra.md", "extra")
    world.put("arch", "far.md", "# Far\n\n" + "It is told here at some length. " * 60)
    world.put("arch", "main.md", "main", depends=[("arch/base.md", "required"), ("arch/extra.md", "optional"),
                                                  ("arch/far.md", "reference"), ("arch/gone.md", "required")])  # fmt: skip
    world.put("arch", "base.md", "base 2", depends=[("arch/main.md", "required")])
    world.need("dev", "arch/main.md", priority=7)
    made = world.assemble()

    assert [(one.name, one.need, one.got, one.priority, one.because) for one in made.decisions] == [
        ("base.md", "required", "full", 7, "arch/main.md depends on it"),
        ("main.md", "required", "full", 7, "need arch/main.md"),
        ("extra.md", "optional", "full", 7, "arch/main.md depends on it"),
        ("far.md", "reference", "summary", 7, "arch/main.md depends on it"),
    ]
    assert made.package.artifacts[0].content == "base 2"
    assert made.package.warnings == []


def test_a_need_and_a_dependency_give_it_once(world: World) -> None:
    """An item that is needed weakly and required by another one is given once, as required; the need is a duplicate."""
    world.put("arch", "base.md", "base")
    world.put("arch", "main.md", "main", depends=[("arch/base.md", "required")])
    world.need("dev", "arch/main.md")
    world.need("dev", "arch/base.md", "optional")
    made = world.assemble()

    assert got(made) == {"arch/base.md": "full", "arch/main.md": "full"}
    assert [(one.name, one.need, one.rule) for one in made.decisions][2:] == [("base.md", "optional", "duplicate")]


def test_a_denied_dependency_is_silently_absent(world: World) -> None:
    """What an item depends on and the agent may not read is not there: no name, no warning, and nothing fails."""
    world.put("arch", "hidden.md", "hidden text")
    world.put("arch", "main.md", "main", depends=[("arch/hidden.md", "required")])
    world.rule("dev", "artifact", "arch/main.md")
    world.need("dev", "arch/main.md")
    made = world.assemble(asker="dev")

    assert got(made) == {"arch/main.md": "full"}
    assert "hidden" not in str(made.to_json())
