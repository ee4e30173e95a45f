"""What an agent is given: its needs and what they rest on, within the budget, recorded, the same for the same state."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ctxmgr.context.packages import render
from ctxmgr.errors import BudgetExceeded, Damaged, InvalidInput, NotFound
from ctxmgr.store.project_session import ACCESS, PACKAGE
from ctxmgr.text.tokens import VOCABULARIES, counter_by_name
from tests import builders as b
from tests.context.world import NOW, PROSE, World, got

LONG = "# Title\n\n" + PROSE * 100


@pytest.mark.requirement("003-P1")
def test_needs_become_items(world: World) -> None:
    """Artifacts of an owner, one by its name, project and task context, failures and runs: each need finds what it names."""
    world.put("arch", "a.md", "first")
    world.put("arch", "b.md", "second")
    world.put("data", "schema.yaml", "k: 1\n")
    world.keys(project_name="Finance CLI", strict=True)
    b.write(world.store, "run", ["Bash:ls", "!make:all -> boom"], agent="dev", task="T-1")
    for pattern in ("arch/*", "data/schema.yaml", "project_context", "error_context"):
        world.need("dev", pattern)
    made = world.assemble(task="T-1", task_context={"title": "Parser", "parts": [1, {"x": None}]}, tokens=5_000)
    package = made.package

    assert sorted(got(made)) == ["arch/a.md", "arch/b.md", "data/schema.yaml", "history/error_context"]
    assert package.project_context == {"project_name": "Finance CLI", "strict": True}
    assert package.task_context == {"id": "T-1", "title": "Parser", "parts": [1, {"x": None}]}
    assert (package.metadata.task_id, package.metadata.version, package.metadata.assembled_for) == ("T-1", 3, "dev")


@pytest.mark.requirement("003-P4")
def test_the_specifications_reserves(world: World) -> None:
    """Of 100,000 tokens 5,000 are kept for the prompt; the context has 2,000 before it takes any room from artifacts."""
    world.put("arch", "a.md", "first")
    made = world.assemble(tokens=100_000, items=["arch/a.md"])
    chosen = world.assemble(tokens=100_000, items=["arch/a.md"], reserve_prompt=99_000, reserve_task=0)

    assert made.budget[0].tokens == 5_000
    assert sum(row.tokens for row in made.budget) == 100_000
    assert chosen.budget[0].tokens == 99_000
    with pytest.raises(BudgetExceeded):
        world.assemble(tokens=100_000, reserve_prompt=99_990)


@pytest.mark.requirement("003-P2")
@pytest.mark.parametrize("tokens", [200, 300, 700, 2_000])
def test_a_small_budget_fails_only_for_what_is_required(world: World, tokens: int) -> None:
    """A budget of a few hundred tokens holds a package; what is optional is shortened, what is required must fit."""
    world.put("arch", "long.md", LONG)
    world.need("dev", "arch/*", "optional")
    world.need("strict", "arch/*")

    assert world.assemble("dev", tokens).package.metadata.total_tokens <= tokens
    with pytest.raises(BudgetExceeded, match=r"arch/long\.md .* do not fit"):
        world.assemble("strict", tokens)


def _smallest(failed: pytest.ExceptionInfo[BudgetExceeded]) -> int:
    found = re.search(r"--max-tokens (\d+)\)", failed.value.hint or "")
    assert found is not None, failed.value.hint
    return int(found[1])


@pytest.mark.requirement("003-P2")
@pytest.mark.parametrize("tokens", [1, 90, 500, 5_500, 7_489])
@pytest.mark.parametrize("options", [{}, {"reserve_prompt": 900}, {"reserve_prompt": 0, "reserve_task": 4_000}])
def test_the_first_error_names_the_smallest_budget_that_works(world: World, tokens: int, options: dict[str, Any]) -> None:
    """With framing, reserves and the project's context: one token less fails again, with the same number."""
    world.keys(story="x" * 300, current_sprint="S1")
    for name in ("a.yaml", "b.yaml"):
        world.put("arch", name, "".join(f"key_{number}: value of {name}\n" for number in range(400)))
    world.put("arch", "spec.md", LONG)
    world.put("arch", "key.txt", "token is ghp_" + "a1B2c3D4e5F6" * 3)
    world.need("dev", "arch/*")
    world.need("dev", "arch/spec.md", "required", useSummary=True, priority=1)
    with pytest.raises(BudgetExceeded) as failed:
        world.assemble(tokens=tokens, **options)
    least = _smallest(failed)
    world.assemble(tokens=least, **options)
    with pytest.raises(BudgetExceeded) as again:
        world.assemble(tokens=least - 1, **options)

    assert _smallest(again) == least


@pytest.mark.requirement("003-P2")
def test_a_budget_without_room_for_anything_names_one_that_has_it(world: World) -> None:
    """Also where nothing is required, and where an agent asks for more."""
    world.put("arch", "a.md", "first")
    with pytest.raises(BudgetExceeded) as failed:
        world.assemble(tokens=5, items=["arch/a.md"])
    world.assemble(tokens=_smallest(failed), items=["arch/a.md"])
    with pytest.raises(BudgetExceeded) as refused:
        world.request("arch/a.md", max_tokens=5)

    assert world.request("arch/a.md", max_tokens=_smallest(refused)).items[0].status in ("success", "noRoom")


@pytest.mark.parametrize(
    ("tokens", "error"), [(0, InvalidInput), (-1, InvalidInput), (10**30, InvalidInput), (1, BudgetExceeded)]
)
def test_budgets_that_are_none(world: World, tokens: int, error: type[Exception]) -> None:
    """Nothing, less than nothing and more than anything are bad input; one token holds no package."""
    with pytest.raises(error):
        world.assemble(tokens=tokens)


@pytest.mark.parametrize("pattern", ["arch/*", "arch/a.md", "task_context", "error_context", "execution_history", "entry:x"])
def test_what_is_required_and_not_there(world: World, pattern: str) -> None:
    """A required need that names nothing fails and says which; an optional one is a warning, and if_exists says nothing."""
    world.need("dev", pattern, "required")
    world.need("mild", pattern, "optional")
    world.need("calm", pattern, "if_exists")
    with pytest.raises(NotFound, match=r"dev requires ") as failed:
        world.assemble("dev")

    assert pattern in failed.value.message
    assert world.assemble("mild").package.warnings == [f"nothing is there for the optional need {pattern}"]
    assert world.assemble("calm").package.warnings == []
    assert len(world.store.shared.events(PACKAGE)) == 2


def test_project_context_is_always_there(world: World) -> None:
    """A project without a key has a context all the same; where there is no room only a need that requires it fails."""
    world.need("dev", "project_context")
    assert world.assemble("dev").package.project_context == {}
    world.keys(story="x" * 4_000)

    assert "left out" in world.assemble("other", 400).package.warnings[-1]
    with pytest.raises(BudgetExceeded):
        world.assemble("dev", 400)


@pytest.mark.requirement("003-P6", "003-P16")
def test_what_the_caller_names(world: World) -> None:
    """The caller adds items of its own; what is not there is listed as missing, and nothing fails."""
    identity = world.put("arch", "a.md", "first")
    b.write(world.store, "run", ["Bash:ls"], agent="dev")
    named = [
        "arch/a.md",
        "arch/none.md",
        "entry:run@0",
        "entry:run@9",
        "snapshot:no",
        identity,
        "art_" + "0" * 16,
        "error_context",
    ]
    made = world.assemble(items=named)

    assert [(one.source, one.name) for one in made.package.artifacts] == [("arch", "a.md"), ("dev", "run@0")]
    assert [(one.source, one.name) for one in made.package.missing] == [
        ("", "art_" + "0" * 16), ("", "error_context"), ("arch", "none.md"), ("entry", "run@9"), ("snapshot", "no"),
    ]  # fmt: skip
    with pytest.raises(InvalidInput):
        world.assemble(items=["arch/**"])


@pytest.mark.requirement("003-P9")
def test_the_same_state_gives_the_same_bytes(world: World) -> None:
    """Two agents with the same needs get packages that differ in their name and the time alone."""
    world.put("arch", "a.md", LONG)
    world.put("arch", "b.md", LONG + "more", depends=[("arch/a.md", "reference")])
    world.keys(z=1, a=[1, 2])
    for agent in ("one", "two"):
        world.need(agent, "arch/b.md", "optional")
    first, second = (world.assemble(agent, 1_500) for agent in ("one", "two"))
    world.clock = lambda: "2026-02-01T00:00:00Z"
    later = world.assemble("one", 1_500)

    assert render(second.package) == render(first.package).replace('"one"', '"two"')
    assert render(later.package) == render(first.package).replace(NOW, "2026-02-01T00:00:00Z")
    assert later.package.digest == first.package.digest


def test_an_older_version(world: World) -> None:
    """With a version, artifacts are given as they stood in it; one that is not there is refused."""
    world.put("arch", "a.md", "old")
    world.put("arch", "a.md", "new")
    made = world.assemble(items=["arch/a.md"], version=1)

    assert (made.package.artifacts[0].content, made.package.metadata.version) == ("old", 1)
    assert world.assemble(items=["arch/a.md"]).package.artifacts[0].content == "new"
    with pytest.raises(NotFound, match="no version 9"):
        world.assemble(version=9)


@pytest.mark.requirement("003-P10")
def test_a_package_is_recorded_with_its_reasons(world: World) -> None:
    """The record names items, decisions, budget and digest, and pins the versions; a dry run leaves no trace."""
    world.put("arch", "a.md", "first")
    world.need("dev", "arch/*")
    world.assemble(dry_run=True)
    assert world.store.shared.events(PACKAGE) == []
    made = world.assemble(task="T")
    data: Any = world.store.shared.events(PACKAGE)[0]["data"]

    assert (data["agent"], data["task"], data["version"], data["digest"]) == ("dev", "T", 1, made.package.digest)
    assert [(one["name"], one["got"], one["rule"], one["because"]) for one in data["items"]] == [
        ("a.md", "full", "requiredFull", "need arch/*")
    ]
    assert world.store.artifacts.pins() == {1: [f"package {made.id}"]}
    assert all("first" not in str(value) for value in data.values())


def test_what_is_left_out_pins_nothing(world: World) -> None:
    """Items for which there was no room are recorded apart: they keep no version."""
    world.put("arch", "a.md", LONG)
    world.need("dev", "arch/*", "optional", maxTokens=0)
    made = world.assemble()

    assert got(made) == {"arch/a.md": "omitted"}
    assert world.store.artifacts.pins() == {}


@pytest.mark.requirement("003-P6")
def test_rules_of_the_agent_hold_for_the_operator_too(world: World) -> None:
    """As soon as there is any rule the package holds what its agent may read; before, the operator gives everything."""
    world.put("arch", "a.md", "first")
    world.put("data", "b.md", "second")
    world.keys(open=1, closed=2)
    for pattern in ("arch/*", "data/*"):
        world.need("dev", pattern, "optional")
    everything = world.assemble()
    world.rule("dev", "artifact", "arch/*")
    world.rule("dev", "context", "project/open")
    ruled = world.assemble()

    assert list(got(everything)) == ["arch/a.md", "data/b.md"]
    assert (list(got(ruled)), ruled.package.project_context) == (["arch/a.md"], {"open": 1})
    assert "second" not in render(ruled.package)
    assert [row["data"]["hidden"] for row in world.store.shared.events(ACCESS)] == [1]


def test_who_asks_for_another_agent_must_be_allowed_too(world: World) -> None:
    """An agent that asks for another one gets what both may read, of artifacts, context and history."""
    world.put("arch", "a.md", "first")
    world.put("data", "b.md", "second")
    world.keys(open=1)
    b.write(world.store, "run", ["Bash:ls", "Bash:cat"], agent="dev")
    for pattern in ("*", "run"):
        world.rule("dev", "history", f"dev/{pattern}")
    for agent, resource, pattern in (
        ("dev", "artifact", "*"), ("dev", "context", "*"), ("boss", "artifact", "arch/*"), ("boss", "history", "nobody/*"),
    ):  # fmt: skip
        world.rule(agent, resource, pattern)
    items = ["arch/*", "data/*", "entry:run-e0000"]

    assert list(got(world.assemble(items=items))) == ["arch/a.md", "data/b.md", "dev/run@0"]
    both = world.assemble(items=items, asker="boss")
    assert (list(got(both)), both.package.project_context) == (["arch/a.md"], {})
    own = world.assemble(items=items, asker="dev")
    assert list(got(own)) == ["arch/a.md", "data/b.md", "dev/run@0"]


def test_default_deny_for_an_agent_that_asks(world: World) -> None:
    """Without any rule an agent that asks for itself may read nothing; what it needs is then as if it were not there."""
    world.put("arch", "a.md", "first")
    world.need("dev", "arch/a.md")
    with pytest.raises(NotFound) as denied:
        world.assemble(asker="dev")
    world.need("dev", "arch/b.md", priority=1)
    with pytest.raises(NotFound) as missing:
        world.assemble(asker="dev")

    assert missing.value.message == denied.value.message.replace("a.md", "b.md")
    assert missing.value.hint == denied.value.hint


@pytest.mark.parametrize("name", ["", "*", "self", "a\nb", "x" * 300])
def test_nobody_is_called_so(world: World, name: str) -> None:
    """Names that no agent can have are refused before anything is looked for."""
    with pytest.raises(InvalidInput):
        world.assemble(name)


def test_a_binary_artifact_is_described(world: World) -> None:
    """What is no text is never given in full: one line says what it is, also where its type claims to be text."""
    world.put("arch", "x.bin", b"\0\xff\xfe", kind="binary")
    world.put("arch", "y.md", b"text \xff\xfe", kind="markdown")
    world.need("dev", "arch/*")
    made = world.assemble()

    assert got(made) == {"arch/x.bin": "summary", "arch/y.md": "summary"}
    assert all("bytes that are no text" in one.content for one in made.package.artifacts)
    assert {one.reason for one in made.decisions} == {"it is no text: it is described instead"}


def test_a_binary_artifact_has_its_own_kind_and_size(world: World) -> None:
    """A reader must not take the line that describes it for the whole."""
    world.put("arch", "x.bin", b"\0\xff" * 2_500, kind="binary")
    world.put("arch", "y.md", b"text \xff\xfe" * 100, kind="markdown")
    sizes = {row.name: row.tokens for row in world.store.artifacts.state(world.store.artifacts.current() or 0)}
    items = world.assemble(items=["arch/*"]).package.artifacts

    assert {item.name: (item.kind, item.original_tokens) for item in items} == {
        name: ("binary", tokens) for name, tokens in sizes.items()
    }
    assert min(sizes.values()) > 100


def test_a_changed_content_is_never_served(world: World) -> None:
    """Content that is not what was put is left out with a warning, or fails the package where it is required."""
    world.put("arch", "a.md", "first")
    world.put("arch", "b.md", "second")
    row = world.store.artifacts.find("arch", "a.md", 2)
    assert row is not None
    world.contents[row.hash] = b"forged"
    made = world.assemble(items=["arch/*"])

    assert got(made) == {"arch/b.md": "full"}
    assert made.package.warnings == ["arch/a.md left out: its content is not what was put"]
    world.need("dev", "arch/*")
    with pytest.raises(Damaged):
        world.assemble()


def test_what_cannot_fit_is_not_read(world: World) -> None:
    """A required text is read once, to say what it takes; one that is over the limit for a summary not at all."""
    world.put("arch", "long.md", LONG)
    world.need("dev", "arch/*")
    with pytest.raises(BudgetExceeded):
        world.assemble(tokens=500)
    assert len(world.reads) == 1
    world.reads.clear()
    row = world.store.artifacts.find("arch", "long.md", 1)
    assert row is not None
    world.put("arch", "huge.md", "x")
    world.store.engine.execute("UPDATE artifact SET size = 33000000, tokens = 8000000 WHERE name = 'huge.md'")
    made = world.assemble("other", 5_000, items=["arch/huge.md"])

    assert world.reads == []
    assert "too large" in made.package.artifacts[0].content


@pytest.mark.requirement("003-P14")
@pytest.mark.parametrize("name", VOCABULARIES)
def test_an_exact_counter(world: World, name: str) -> None:
    """Another counter counts anew what the estimate measured, and the package says which one it was."""
    pytest.importorskip("bpe_openai")
    world.put("arch", "a.md", LONG)
    made = world.assemble(items=["arch/a.md"], counter=name)
    meta = made.package.metadata

    assert (meta.counter, meta.error_band) == (name, 1.0)
    assert made.decisions[0].asked_tokens == counter_by_name(name).count(LONG, "markdown")
    with pytest.raises(InvalidInput):
        world.assemble(counter="abacus")


def test_recorded_needs_that_are_none(world: World) -> None:
    """A need from an import that names nothing known is refused by name; one that is no need at all is no need."""
    world.need("dev", "nonsense")
    with pytest.raises(InvalidInput, match="a need of 'dev' can't be used"):
        world.assemble()
    world.need("odd", "arch/*", "urgently")
    assert world.assemble("odd").decisions == []


def test_a_store_that_is_only_read(world: World) -> None:
    """A store that can't be written gives the package all the same; it has no id, and summaries are not kept."""
    world.put("arch", "a.md", LONG)
    world.store.readonly = True
    made = world.assemble(tokens=900, items=["arch/a.md"])
    again = world.assemble(tokens=900, items=["arch/a.md"])

    assert (made.id, got(made)) == (None, {"arch/a.md": "summary"})
    assert again.package == made.package
    assert world.service is not None
    assert world.service.summarised == 1
