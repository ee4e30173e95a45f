"""The battery, run for the detectors of what is said and of the session as a whole."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from ctxmgr.conformance import NEW_WORK, DetectorConformance, SessionConformance, SpokenConformance
from ctxmgr.detect.detectors import DETECTORS
from ctxmgr.detect.detectors.cycles import PingPongDetector, RecoveryLoopDetector
from ctxmgr.detect.detectors.failures import ContextLoopDetector
from ctxmgr.detect.detectors.messages import ChantingDetector, MonologueDetector
from ctxmgr.detect.detectors.stagnation import NoProgressDetector
from ctxmgr.types.finding import FindingKind
from tests.detect.detectors import test_all_contract
from tests.detect.scenario import Scenario


class TestMonologue(SpokenConformance):
    detector = MonologueDetector
    leaves_at_once = True

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Say that all is well."""
        return story.say("message", {"text": "All is well."}, agent=fields.get("agent", "main"), process=fields.get("process"))


class TestChanting(SpokenConformance):
    detector = ChantingDetector
    leaves_at_once = True
    rounds = 10

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """One more sentence of the chant."""
        return story.say(
            "agent_message_chunk",
            {"text": "I will read the file again. "},
            agent=fields.get("agent", "main"),
            process=fields.get("process"),
        )


class TestContextLoop(SpokenConformance):
    detector = ContextLoopDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another compaction."""
        return story.say("compaction", None, agent=fields.get("agent", "main"), process=fields.get("process"))

    def test_a_program_does_not_reset_it(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nudges, messages and continuations between compactions leave the evidence standing."""
        for event in ("nudge", "continuation", "message", "heartbeat", "retry"):
            super().test_a_program_does_not_reset_it(event)


class TestNoProgress(SpokenConformance):
    detector = NoProgressDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Report that there is no progress."""
        return story.say(
            "ledger", {"is_progress_being_made": False}, agent=fields.get("agent", "main"), process=fields.get("process")
        )


class TestRecoveryLoop(SessionConformance):
    detector = RecoveryLoopDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Another answer to the same loop."""
        return story.say("continuation", {"answers": ["one loop"]})


class TestPingPong(SessionConformance):
    detector = PingPongDetector

    def round(self, story: Scenario, number: int, **fields: Any) -> str:
        """Refuse, and ask the same again."""
        fields = {"agent": "main", **fields}
        if number:
            story.say(
                "message",
                {"text": "Not without the design."},
                agent=f"{fields['agent']}'s coder",
                process=fields.get("process"),
            )
        return story.say("message", {"text": "Please build it."}, **fields)


def test_every_detector_inherits_the_battery() -> None:
    """No detector is registered without its contract test."""
    known = [*vars(test_all_contract).values(), *globals().values()]
    batteries = [each for each in known if isinstance(each, type) and issubclass(each, DetectorConformance)]
    tried = {each.detector for each in batteries if hasattr(each, "detector")}
    assert tried == set(DETECTORS)
    assert {each.kind for each in tried} == set(get_args(FindingKind))


@pytest.mark.parametrize("work", sorted(NEW_WORK))
def test_two_new_steps_end_a_stall(work: str) -> None:
    """A call that its agent no longer waits for is no stall, though it never got a result."""
    story = Scenario()
    story.call("Read", {"path": "a.py"}, "text")
    story.open("Bash", {"command": "make"})
    assert [finding.resolved for finding in story.stalls()] == [None]
    for number in range(2):
        NEW_WORK[work](story, number)
    assert story.stalls() == []


def test_a_loop_that_is_taken_up_again_is_raised_again() -> None:
    """It is one finding all the while; whoever was told of it is told once more, so that a guard can stop it again."""
    story = Scenario()
    for number in range(3):
        story.call("Read", {"path": f"{number}.py"}, f"code {number}")
        story.fail("Bash", {"command": "make check"}, "target out of date")
    for number in range(2):
        NEW_WORK["reads"](story, number)
    assert [finding.resolved for finding in story.found()] == ["progress"]
    story.fail("Bash", {"command": "make check"}, "target out of date")
    _, raised = story.watched()
    assert [finding.count for _, finding in raised] == [3, 4]
    (finding,) = story.found()
    assert (finding.resolved, finding.raised_at, len(finding.members)) == (None, raised[0][1].raised_at, 4)
