"""Nothing that leaves in a package or a summary holds a secret of a known shape, nor a part of one."""

from __future__ import annotations

import pytest

from ctxmgr.context.candidates import strategy_key
from ctxmgr.context.packages import render
from ctxmgr.store.repositories.shared_state import SummaryRow
from ctxmgr.types.goal import GoalSource
from tests.context.world import PROSE, World, got

SECRET = "ghp_" + "a1B2c3D4e5F6" * 3
PART = SECRET[:12]
SHOWN = "ghp_[masked:github]"


def test_a_package_masks_the_secrets_of_an_artifact_and_names_it(world: World) -> None:
    """In full the text has masks in the place of the secrets, a warning names the item, and the artifact is as it was put."""
    content = f"url: example.org\ntoken is {SECRET}\n"
    identity = world.put("ops", "env.txt", content)
    world.put("ops", "other.txt", "nothing to hide\n")
    made = world.assemble(items=["ops/*"])
    requested = world.request("ops/env.txt", "ops/other.txt")

    assert [item.content for item in made.package.artifacts] == [content.replace(SECRET, SHOWN), "nothing to hide\n"]
    told = [
        "ops/env.txt holds what looks like a secret, which is masked (github); 'ctxmgr artifact get ops/env.txt' shows it as"
        " it was put"
    ]
    assert made.package.warnings == told
    assert (requested.items[0].content, requested.warnings) == (content.replace(SECRET, SHOWN), told)
    row = world.store.artifacts.by_id(identity)
    assert row is not None
    assert world.read(row) == content.encode()


@pytest.mark.parametrize("before", range(0, 60, 3))
def test_no_cut_leaves_a_part_of_a_secret(world: World, before: int) -> None:
    """Wherever a summary or a beginning is cut, it is cut in masked text."""
    line = f"{'w' * before} {SECRET} {PROSE.strip()} "
    world.put("ops", "long.txt", line * 40)
    world.need("dev", "ops/*", "reference")
    summary = world.assemble(tokens=20_000)
    cut = world.request("ops/long.txt", max_tokens=260 + before)

    assert got(summary) == {"ops/long.txt": "summary"}
    assert cut.items[0].included in ("summary", "truncated")
    assert PART not in render(summary.package) + (cut.items[0].content or "")


def test_what_is_known_of_task_and_goal_is_masked(world: World) -> None:
    """Neither comes from a record, so nobody has masked them before."""
    goal = GoalSource(
        session="g", goal=f"deploy with {SECRET}", status="in_progress", percent=0, task=None, subtask=None, attempt=None,
        done=[], open=[], blocked=[], next=None, next_step=None, in_flight=[], probe_state=[],
    )  # fmt: skip
    made = world.assemble(task="T-1", task_context={"note": f"use {SECRET}", "tries": 2}, goal=goal)

    assert made.package.task_context == {"id": "T-1", "note": f"use {SHOWN}", "tries": 2}
    assert SECRET not in render(made.package)
    assert any(warning.startswith("goal/goal_context holds what looks like") for warning in made.package.warnings)


def test_a_summary_of_unmasked_text_is_not_taken_from_the_cache(world: World) -> None:
    """A store may hold summaries that were made before texts were masked."""
    world.put("ops", "long.md", "# Title\n\n" + f"The token is {SECRET}. More of it follows here.\n\n" * 40)
    world.need("dev", "ops/*", "reference")
    row = world.store.artifacts.find("ops", "long.md", 1)
    assert row is not None
    old = strategy_key("markdown").replace("masked/1|", "")
    world.store.shared.keep_summary(row.hash, old, "estimate", SummaryRow(f"it is {SECRET}", 12, 900, lossless=False))

    assert SECRET not in render(world.assemble().package)
