"""The battery, run for the detectors of steps."""

from __future__ import annotations

from typing import Any

from ctxmgr.conformance import DetectorConformance, WarningConformance
from ctxmgr.detect.detectors.cycles import CycleDetector, EscalatingFailureDetector
from ctxmgr.detect.detectors.failures import DeniedDetector, ErrorRepetitionDetector, FailureStreakDetector, UnknownToolDetector
from ctxmgr.detect.detectors.repeated_calls import (
    InterleavedDetector,
    NearDuplicateDetector,
    RepetitionDetector,
    TrivialChangeDetector,
)
from ctxmgr.detect.detectors.stagnation import BusyDetector, EditRevertDetector, SleepBudgetDetector, StagnationDetector
from tests.detect.scenario import Scenario


class TestRepetition(DetectorConformance):
    detector = RepetitionDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """One call with one answer."""
        return story.call("Grep", {"pattern": "handler"}, "no match", **fields)


class TestCycle(DetectorConformance):
    detector = CycleDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Look here, look there, look elsewhere."""
        story.call("Read", {"path": "a.py"}, "text a", **fields)
        story.call("Read", {"path": "b.py"}, "text b", **fields)
        return story.call("Grep", {"pattern": "x"}, "a.py:1", **fields)


class TestErrorRepetition(WarningConformance):
    detector = ErrorRepetitionDetector
    rounds = 4

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another command, the same cause."""
        return story.fail("Bash", {"command": f"./tool --try {number}"}, "PermissionError: key file is locked", **fields)


class TestFailureStreak(WarningConformance):
    detector = FailureStreakDetector
    rounds = 6

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Ask for another plan that is not there."""
        return story.fail("get_plan", {"plan_id": f"P{number}"}, f"Plan with ID P{number} not found", **fields)


class TestInterleaved(WarningConformance):
    detector = InterleavedDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Something new, then the same failing call."""
        story.call("Look", {"at": f"{number} {fields}"}, f"seen {number}", agent="aside")
        if number:
            story.call("Read", {"path": f"d{number}"}, f"text {number}", **fields)
        return story.fail("Bash", {"command": "make check"}, "target out of date", **fields)

    def indexes(self, members: int) -> list[int | None]:
        """Every third entry from the second on is the failing call; the first round has no read."""
        return [1, *(1 + 3 * number for number in range(1, members))]


class TestStagnation(DetectorConformance):
    detector = StagnationDetector
    rounds = 6

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another pattern in the same file, the same line."""
        return story.call("Grep", {"pattern": f"total|v{number}", "path": "deck.rs"}, "118: cumulative tokens", **fields)


class TestNearDuplicate(DetectorConformance):
    detector = NearDuplicateDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Search for the same with a counter in it."""
        return story.call("search", {"q": "handler", "attempt": number}, "no match", **fields)


class TestTrivialChange(WarningConformance):
    detector = TrivialChangeDetector
    rounds = 10
    loop_after = 10

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Fetch the same report but for its clock."""
        return story.call("fetch_report", {"n": 1}, f"10:00:{number:02d} all quiet", **fields)


class TestUnknownTool(DetectorConformance):
    detector = UnknownToolDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another call of a tool that is not there."""
        return story.fail("magic", {"n": number}, "Tool magic not found", **fields)


class TestDenied(DetectorConformance):
    detector = DeniedDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Ask for the same and be refused."""
        entry = story.open("Bash", {"command": "rm -rf build"}, **fields)
        story.close(entry, "not permitted", status="denied")
        return entry


class TestEditRevert(DetectorConformance):
    detector = EditRevertDetector
    rounds = 2

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Change a line and change it back."""
        story.call("Edit", {"path": "a.py", "old": "x = 1", "new": "x = 2"}, "ok", **fields)
        return story.call("Edit", {"path": "a.py", "old": "x = 2", "new": "x = 1"}, "ok", **fields)


class TestEscalatingFailure(WarningConformance):
    detector = EscalatingFailureDetector
    rounds = 2

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another failed attempt at one subtask."""
        return story.fail("run_cmd", {"n": number}, f"failed {number}", task="goal/task/sub", **fields)


class TestBusy(DetectorConformance):
    detector = BusyDetector
    rounds = 56
    outside = 2

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """One of two known calls, as before."""
        return story.call("Read", {"path": f"m{(number * number) % 2}"}, "text", **fields)

    def indexes(self, members: int) -> list[int | None]:
        """Leave out the first calls of all, which are new."""
        return list(range(2, members + 2))


class TestSleepBudget(DetectorConformance):
    detector = SleepBudgetDetector
    leaves_at_once = True

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Sleep a little longer each time."""
        return story.call("Bash", {"command": f"sleep {60 + number}"}, "", **fields)
