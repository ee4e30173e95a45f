"""A loop that goes on to the letter is counted without its detectors; what is found must not depend on that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ctxmgr.detect.finding_lifecycle import FastForward
from ctxmgr.detect.monitor import Monitor
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.types.finding import Observation
from tests.detect.scenario import Scenario

LONG = 3 * DetectSettings().window
NEVER = 1 << 40


def _rounds(story: Scenario, period: int, rounds: int, *, failing: bool = False) -> None:
    for _ in range(rounds):
        for place in range(period):
            if failing:
                story.fail("Bash", {"command": f"make part{place}"}, f"FileNotFoundError: no rule for the target {place}")
            else:
                story.call("Read", {"path": f"src/{place}.py"}, f"the text of file {place}")


def _both(story: Scenario, settings: DetectSettings | None = None) -> tuple[list[object], list[object]]:
    """Return all that is found after each record, by a monitor that may take short cuts and by one that may not."""
    found: list[list[object]] = []
    for explain in (None, NEVER):
        monitor = Monitor(settings, explain=explain)
        said: list[object] = [monitor.observe(each) for each in story.observations]
        found.append([*said, monitor.findings(live=True)])
    return found[0], found[1]


ENDINGS: dict[str, Callable[[Scenario], object]] = {
    "another answer": lambda story: story.call("Read", {"path": "src/0.py"}, "a new text"),
    "another question": lambda story: [story.call("Read", {"path": f"doc/{n}.md"}, f"page {n}") for n in range(3)],
    "a failure": lambda story: story.fail("Read", {"path": "src/0.py"}, "no such file"),
    "patience": lambda story: story.call("Read", {"path": "src/0.py"}, "the text of file 0", wait=300.0),
    "a long call": lambda story: story.call("Read", {"path": "src/0.py"}, "the text of file 0", took=60.0),
    "a change": lambda story: story.call("Edit", {"path": "src/0.py", "old": "a", "new": "b"}, "applied"),
    "words": lambda story: story.say("message", "I go on", agent="main"),
    "a compaction": lambda story: story.say("compaction", agent="main"),
    "a broken stream": lambda story: story.say("retry"),
    "a continuation": lambda story: story.say("continuation"),
    "a person": lambda story: story.say("user_message", "stop"),
    "an exit code": lambda story: story.call("Read", {"path": "src/0.py"}, "the text of file 0", meta={"exit_code": 1}),
    "a batch": lambda story: story.call("Read", {"path": "src/0.py"}, "the text of file 0", step="batch"),
    "another agent": lambda story: [
        story.call("Write", {"path": "x", "content": f"{n}"}, "written", agent="other") for n in range(3)
    ],
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("period", [1, 2, 3])
def test_whatever_ends_it_the_findings_are_those_of_every_step_shown(period: int, ending: str) -> None:
    """After a long loop, whatever happens next, and after the loop went on again, the findings are the same."""
    story = Scenario()
    story.call("Write", {"path": "start", "content": "x"}, "written")
    _rounds(story, period, LONG + period)
    for _ in range(2):
        ENDINGS[ending](story)
        _rounds(story, period, 3)
    _rounds(story, period, LONG)
    ENDINGS[ending](story)
    quick, slow = _both(story)
    assert quick == slow


@pytest.mark.parametrize("failing", [False, True])
def test_a_standing_loop_is_not_shown_to_the_detectors_again(failing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it has stood for long, each further step is taken without them, and the finding counts it all the same."""
    taken: list[bool] = []
    take = FastForward.take

    def counted(self: FastForward, start: Observation, finish: Observation | None, world: int) -> bool:
        taken.append(take(self, start, finish, world))
        return taken[-1]

    monkeypatch.setattr(FastForward, "take", counted)
    story = Scenario()
    _rounds(story, 1, 2 * LONG, failing=failing)
    (finding,) = story.found()
    assert finding.count == 2 * LONG == len(finding.members)
    assert len(taken) > LONG
    assert all(taken)


@pytest.mark.parametrize("length", [1, 60, 64, 65, 127, 128, 129, 130, 194, 195, 400])
def test_what_is_kept_of_the_past_is_as_long_as_without_it(length: int) -> None:
    """The steps kept after a standstill end exactly where they would: rules look back as far as they reach."""
    story = Scenario()
    _rounds(story, 1, LONG + length)
    story.call("Read", {"path": "elsewhere"}, "new")
    story.fail("Read", {"path": "src/0.py"}, "no such file")
    _rounds(story, 2, 5)
    quick, slow = _both(story)
    assert quick == slow


def test_a_window_too_narrow_for_all_rules_takes_no_short_cut() -> None:
    """Where activity is judged over more steps than are kept, every step is shown to the detectors."""
    story = Scenario()
    _rounds(story, 2, LONG)
    story.call("Read", {"path": "elsewhere"}, "new")
    quick, slow = _both(story, DetectSettings(busy_window=500))
    assert quick == slow
