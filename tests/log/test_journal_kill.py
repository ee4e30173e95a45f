"""Processes that are killed while they record lose nothing that was acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.kill import run

SEED = 20_261_121


@pytest.mark.slow
@pytest.mark.parametrize(("writers", "cycles"), [(1, 40), (3, 10)])
def test_killed_recorders_lose_nothing(tmp_path: Path, writers: int, cycles: int) -> None:
    """After each of 70 kills every acknowledged entry is there once, in order, and the chain holds."""
    outcome = run("jsonl", cycles, writers=writers, folder=tmp_path, seed=SEED)

    assert outcome.kills == writers * cycles
    assert outcome.acknowledged > 0
    assert outcome.faults == 0, (SEED, outcome)
