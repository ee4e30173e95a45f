"""A command that is killed, or whose disk fails, at a system call leaves the state before it or after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.sweep.commands import COMMANDS, GOAL, stores_of
from bench.sweep.injection import FAULTS, available
from bench.sweep.sweeper import crash, sweep
from ctxmgr.errors import StorageFailed
from ctxmgr.log.journal import Journal

MOST = 6
"""Points that a test tries of each command and store; ``python -m bench.sweep`` tries all of them with all faults."""

SWEPT = [(name, store) for name in COMMANDS for store in stores_of(name)]


@pytest.mark.long
@pytest.mark.requirement("003-S9", "003-V6", "H-resume", "R-19")
@pytest.mark.parametrize(("name", "store"), SWEPT, ids=[f"{name} on {store}" for name, store in SWEPT])
def test_a_fault_at_a_system_call_leaves_a_whole_state(name: str, store: str, tmp_path: Path) -> None:
    """Nothing is half done, nothing unreadable, every listed version is whole, and the command run again succeeds."""
    if reason := available():
        pytest.skip(reason)
    least = 10  # a sweep that finds fewer has lost its grip on the command
    found = sweep(name, store, tmp_path, most=MOST)

    assert found.wrong == []
    assert found.points >= least
    assert sum(found.tried[kind] for kind in FAULTS) >= MOST - 2
    assert len(found.missed) <= 1


@pytest.mark.long
def test_a_command_that_forgets_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep sees it when a command says that it was done although the disk refused what it wrote."""
    if reason := available():
        pytest.skip(reason)
    append = Journal.append

    def forgetful(self: Journal, records: Sequence[dict[str, Any]]) -> int:
        try:
            return append(self, records)
        except StorageFailed:
            return 0

    monkeypatch.setattr(Journal, "append", forgetful)
    found = sweep("goal record", GOAL, tmp_path, kinds=("full",))

    assert any("it said that it was done" in fault for fault in found.wrong)


@pytest.mark.long
@pytest.mark.requirement("003-S9", "003-V6", "H-resume")
@pytest.mark.parametrize(("name", "store"), SWEPT[::3], ids=[f"{name} on {store}" for name, store in SWEPT[::3]])
def test_a_crash_of_the_system_leaves_a_whole_state(name: str, store: str, tmp_path: Path) -> None:
    """What was not synced may be lost, torn or zero: a whole state is found, and the command run again succeeds."""
    if reason := available():
        pytest.skip(reason)
    least = 20  # fewer states: the trace is no longer understood
    found = crash(name, store, tmp_path, most=MOST)

    assert found.wrong == []
    assert found.points >= least


@pytest.mark.slow
def test_a_missing_sync_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without syncs there are states in which a listed version has lost files."""
    if reason := available():
        pytest.skip(reason)

    def forget(descriptor: int) -> None:
        """Return at once, as a program does that does not sync."""

    monkeypatch.setattr("os.fsync", forget)
    found = crash("artifact put", "jsonl", tmp_path, most=12)

    assert any("is gone" in fault for fault in found.wrong)
