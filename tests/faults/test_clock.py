"""A clock that jumps changes no order, hides no loop, and locks nobody out."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.recorder import Recorder
from ctxmgr.store import open_store
from ctxmgr.store.repositories.bookkeeping import Leases
from ctxmgr.types.operations import DetectRequest
from ctxmgr.workspace import Workspace

REAL = 1_790_000_000.0
CLOCKS = {
    "an hour back": (REAL, REAL - 3600),
    "to 1970": (REAL, 5.0),
    "before 1970": (REAL, -100_000.0),
    "to 2100 and back": (REAL, 4_102_444_800.0, REAL),
    "to and fro": (REAL, 5.0, 4_102_444_800.0, REAL - 60, REAL),
}


def _set(patch: pytest.MonkeyPatch, seconds: float) -> None:
    patch.setattr(time, "time", lambda: seconds)
    patch.setattr(time, "time_ns", lambda: int(seconds * 1e9))


def _record(path: Path, clock: tuple[float, ...], patch: pytest.MonkeyPatch) -> int:
    """Record the same failing call five times at each setting of the clock, in one process."""
    with Recorder(path, session="s") as recorder:
        for seconds in clock:
            _set(patch, seconds)
            for _ in range(5):
                entry = recorder.entry("a", "Bash", {"command": "make"})
                recorder.result(entry, "error", error={"type": "Exit", "message": "1"})
    return 5 * len(clock)


@pytest.mark.cases(1)
@pytest.mark.parametrize("clock", CLOCKS.values(), ids=CLOCKS)
@pytest.mark.parametrize("name", ["history.jsonl", "history.db"])
def test_a_jump_of_the_clock_while_recording(
    name: str, clock: tuple[float, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries stay in the order in which they were recorded, sums and anchor hold, and the loop is found across the jump."""
    count = _record(tmp_path / name, clock, monkeypatch)

    for present in (*clock, REAL):
        _set(monkeypatch, present)
        with closing(open_store(str(tmp_path / name))) as store:
            records = [record for record in store.sessions.records(None) if record["kind"] == "entry"]
            assert len(records) == count
            assert store.examine().damaged == []
        with Workspace.open(str(tmp_path / name)) as workspace:
            findings = workspace.detect(DetectRequest(session="s")).verdicts[0].findings
            loop = next(finding for finding in findings if finding.severity == "loop")
            assert loop.count >= count - 5
            assert loop.resolved is None


@pytest.mark.parametrize("then", [REAL - 3600, 5.0, 4_102_444_800.0])
def test_a_lease_of_another_time_ends(then: float, tmp_path: Path) -> None:
    """A recovery that was killed under a wrong clock keeps nobody out for longer than a lease lasts."""
    with closing(open_store(str(tmp_path / "history.db"), create=True)) as store:
        leases: Leases = store.leases
        assert leases.take("s", "killed", then, 30.0)
        assert leases.take("s", "next", REAL, 30.0)
        assert not leases.take("s", "third", REAL + 1, 30.0)
        assert leases.take("s", "third", REAL + 31, 30.0)
