"""What a package tells of history: failures of the task, the agent or all, runs, single records; as far as it may be read."""

from __future__ import annotations

from typing import Any

import pytest
from ruamel.yaml import YAML

from ctxmgr.context.items import LATEST
from ctxmgr.errors import InvalidInput
from ctxmgr.types.context_package import AssembleResponse
from tests import builders as b
from tests.context.world import World


def told(made: AssembleResponse, name: str) -> list[dict[str, Any]]:
    """Return the rows of a context."""
    text = next(one.content for one in made.package.artifacts if one.name == name)
    return YAML(typ="safe", pure=True).load(text)


def runs(world: World, *given: tuple[str, str, str | None]) -> None:
    """Record runs: (agent, status, task), each with an artifact in it that is nobody's to know."""
    for number, (agent, status, task) in enumerate(given):
        fields: dict[str, Any] = {"inputType": "execution", "task": task}
        facts = {"artifacts": ["art_" + "9" * 16], "sprint": "S1", "tokenCount": 5}
        error = {"type": "ExecutionFailed", "message": f"reason {number}"} if status == "error" else None
        records = [b.entry(f"x{number}", 0, "execution", facts, agent=agent, **fields)]
        if status != "open":
            records.append(b.result(f"x{number}", 0, {"artifacts": []}, status=status, error=error, durationMs=1000))
        world.store.append(records)


@pytest.mark.requirement("003-P1")
def test_failures_of_the_task_the_agent_or_all(world: World) -> None:
    """With a task its failures are told, else the agent's own, else all that may be read; the newest first, at most twenty."""
    b.write(
        world.store, "mine", ["Bash:ls", *(f"!make:{number} -> boom {number}" for number in range(LATEST + 5))], agent="dev"
    )
    b.write(world.store, "theirs", ["!make:all -> other"], agent="other", task="T-1")
    runs(world, ("other", "error", "T-1"), ("dev", "ok", "T-1"))
    for agent in ("dev", "fresh"):
        world.need(agent, "error_context")

    own = told(world.assemble("dev", 50_000), "error_context")
    assert [row["error"]["message"] for row in own][:2] == [f"boom {LATEST + 4}", f"boom {LATEST + 3}"]
    assert len(own) == LATEST
    task = told(world.assemble("dev", 50_000, task="T-1"), "error_context")
    assert [(row["agent"], row["error"]["message"]) for row in task] == [("other", "reason 0"), ("other", "other")]
    assert "artifacts" not in task[0]["input"]
    everybody = told(world.assemble("fresh", 50_000), "error_context")
    assert {row["agent"] for row in everybody} == {"dev", "other"}


def test_runs_are_told_with_what_may_be_known(world: World) -> None:
    """The latest runs and those of the task are told, without ids of artifacts that the agent may not read."""
    runs(world, ("other", "error", "T-1"), ("dev", "ok", "T-2"), ("dev", "open", "T-1"))
    world.rule("dev", "history", "dev/*")
    world.rule("boss", "history", "*")
    for agent in ("dev", "boss"):
        world.need(agent, "execution_history")
        world.need(agent, "task_context", "optional")

    boss = world.assemble("boss", task="T-1")
    assert [(row["agent"], row["status"]) for row in told(boss, "execution_history")] == [
        ("dev", "started"),
        ("other", "failed"),
    ]
    assert [row["status"] for row in boss.package.task_context["executions"]] == ["started", "failed"]
    assert told(boss, "execution_history")[1]["error"] == "reason 0"
    dev = world.assemble("dev")
    assert [(row["agent"], row["status"]) for row in told(dev, "execution_history")] == [
        ("dev", "started"),
        ("dev", "completed"),
    ]
    assert dev.package.warnings == ["nothing is there for the optional need task_context"]
    assert "art_" not in str(boss.to_json())


def test_a_snapshot_and_a_continuation_need_all_they_tell_of(world: World) -> None:
    """A bundle of entries is there for those who may read them all; a continuation for whom it is meant, or who may read it."""
    b.write(world.store, "run", ["Bash:ls -> a", "Bash:cat -> b"], agent="dev")
    b.write(world.store, "run", ["Bash:id -> c"], agent="other")
    bundle = {"summary": "s", "hash": "0"}
    world.store.append(
        [
            b.build("snapshot", "run", b.at(9), id="own", entries=["run-e0000", "run-e0001"], reasoning="", **bundle),
            b.build("snapshot", "run", b.at(9), id="both", entries=["run-e0000", "run-e0002"], reasoning="r", **bundle),
            b.build("continuation", "run", b.at(9), id="cont-1", target="dev", context={"facts": []}),
            b.build("continuation", "run", b.at(9), id="cont-2", target="other", context={"facts": []}),
        ]
    )  # fmt: skip
    items = ["snapshot:own", "snapshot:both", "continuation:cont-1", "continuation:cont-2", "entry:run-e0002"]
    world.rule("dev", "history", "self")
    world.rule("boss", "history", "*")
    world.rule("other", "history", "other/*")

    assert [one.name for one in world.request(*items, agent="boss").items if one.status == "success"] == [
        "own", "both", "cont-1", "cont-2", "run@2",
    ]  # fmt: skip
    assert [one.name for one in world.request(*items, agent="dev", asker="dev").items if one.status == "success"] == [
        "own",
        "cont-1",
    ]
    both = world.request(*items, agent="dev", asker="other")
    assert both.status == "empty"
    text = world.request("snapshot:own").items[0].content or ""
    assert "entries:" in text
    assert "run-e0001" in text


def test_an_id_that_fits_several(world: World) -> None:
    """An id that begins several records, or stands in two sessions, must be given whole; an unambiguous start will do."""
    b.write(world.store, "run", ["Bash:ls", "Bash:cat"], agent="dev")
    assert world.request("entry:run-e0001").items[0].name == "run@1"
    with pytest.raises(InvalidInput, match="several entry ids"):
        world.request("entry:run-e000")
    assert world.request("entry:@last").items[0].name == "run@1"
    assert [one.status for one in world.request("entry:run@-9", "entry:nosuch@0", "entry:@99").items] == ["missing"] * 3
