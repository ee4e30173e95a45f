"""The example of an agent loop is short, runs offline, is stopped by the guard once, and goes on after a crash."""

from __future__ import annotations

import importlib.util
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.goals import Goals

_EXAMPLE = Path(__file__).parents[2] / "examples" / "goal_loop.py"


@pytest.fixture(name="example")
def _example() -> Any:
    spec = importlib.util.spec_from_file_location("goal_loop", _EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.requirement("H-migration")
def test_the_example_is_short() -> None:
    """A loop with a plan, a guard and a prompt takes at most sixty lines."""
    assert len(_EXAMPLE.read_text("utf-8").splitlines()) <= 60


@pytest.mark.requirement("H-migration", "H-API")
def test_the_example_reaches_its_goal(example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The fourth run of tests that can't pass is refused, the one that passes is not; the goal is reached."""
    example.main(tmp_path)
    told = capsys.readouterr().out

    assert told.count("refused: ") == 1
    assert "GOAL: Create the mathx package [done, 100%]" in told
    sizes = [int(line.split()[0]) for line in told.splitlines() if " characters -> " in line]
    assert len(sizes) == 9
    assert max(sizes) <= 2000


@pytest.mark.requirement("H-migration", "H-resume")
def test_the_example_goes_on_after_a_crash(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that dies leaves its place; the next one starts there, with the plan and the actions of the first."""
    script = list(example.scripted_model())

    def dies() -> Any:
        yield from script[:3]
        raise KeyboardInterrupt

    monkeypatch.setattr(example, "scripted_model", dies)
    with pytest.raises(KeyboardInterrupt):
        example.main(tmp_path)
    state = Goals.open(tmp_path).state()
    assert (state.current, state.goal.percent, state.actions_total) == ("t1.2", 50, 2)

    monkeypatch.setattr(example, "scripted_model", lambda: islice(script, 3, None))
    example.main(tmp_path)
    after = Goals.open(tmp_path).state()
    assert (after.goal.status, len(after.goal.tasks)) == ("done", 1)
    assert "refused: " in capsys.readouterr().out
