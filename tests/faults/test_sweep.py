"""A command that is killed, or whose disk fails, at a system call leaves the state before it or after it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench import sweep


@pytest.mark.parametrize("command", ["note add", "goal record"])
def test_a_fault_at_a_system_call_leaves_a_whole_state(command: str, tmp_path: Path) -> None:
    """Some of the points that ``bench/sweep.py`` tries in full: nothing is wrong, and each fault was met."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    found = sweep.sweep(command, tmp_path, every=12)

    assert found.wrong == []
    assert found.points["kill"] > found.points["not reached"]
