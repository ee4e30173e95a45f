"""What detectors share: when a call asks anew after a wait, and how many rounds make a loop of it."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.detect.interface import backs_off, is_paced, is_patient, is_poll_only, rounds_needed, seconds_between
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.finding import Observation

SETTINGS = DetectSettings()
LIMITED = {"type": "error", "message": "HTTP 429 Too Many Requests"}


def step(
    action: str = "Bash", given: Any = None, output: Any = "x", *, at: float | None = 0.0, took: float = 0.0, error: Any = None,
    open_: bool = False,
) -> Step:  # fmt: skip
    """Return a step of one call."""
    known: dict[str, Any] = {"seq": 0, "id": "a", "session": "s", "agent": "main"}
    start = Observation(kind="start", at=at, action=action, input=given, **known)
    ended = None if at is None else at + took
    finish = Observation(
        kind="finish", at=ended, action=action, status="error" if error else "ok", output=output, error=error, **known
    )
    return Step((Call.from_observations(start, None if open_ else finish),))


def read(at: float | None) -> Step:
    """Return a look at a file."""
    return step("Read", {"path": "a"}, at=at)


def test_only_a_long_wait_makes_a_question_new() -> None:
    """A query that was idle for long is another one; a change of something is none, however late."""
    assert not is_patient(read(0), read(1), SETTINGS)
    assert is_patient(read(0), read(SETTINGS.idle_gap + 1), SETTINGS)
    edit = {"file_path": "a", "old_string": "x", "new_string": "y"}
    assert not is_patient(step("Edit", edit), step("Edit", edit, at=SETTINGS.idle_gap + 1), SETTINGS)
    assert not is_patient(read(None), read(None), SETTINGS)


def test_a_failure_is_patient_only_where_waiting_can_cure_it() -> None:
    """A rate limit is waited for; a command that is wrong stays wrong."""
    for error, patient in ((LIMITED, True), ({"type": "error", "message": "no such option"}, False)):
        before, now = (step("Bash", {"command": "get x"}, at=at, error=error) for at in (0, SETTINGS.poll_gap + 1))
        assert is_patient(before, now, SETTINGS) is patient


def test_a_poll_is_patient_for_its_gap_alone() -> None:
    """What was idle for long is patient for that, whatever it asks after."""
    polls = [step("wait_agent", {"id": "7"}, "running", at=at) for at in (0, SETTINGS.poll_gap + 1, SETTINGS.idle_gap + 1)]

    assert is_poll_only(polls[0], polls[1], SETTINGS)
    assert not is_poll_only(polls[0], polls[2], SETTINGS)
    assert not is_poll_only(read(0), read(SETTINGS.poll_gap + 1), SETTINGS)


@pytest.mark.parametrize(
    ("before", "now", "error", "waited"),
    [(2, 4, LIMITED, True), (2, 2.3, LIMITED, False), (0.2, 0.9, LIMITED, False), (None, 4, LIMITED, False),
     (2, None, LIMITED, False), (2, 4, {"type": "error", "message": "no such option"}, False)],
)  # fmt: skip
def test_a_retry_backs_off_when_it_waits_longer(before: float | None, now: float | None, error: Any, waited: bool) -> None:
    """A fifth longer, and a second at least, after trouble that passes."""
    assert backs_off(before, now, step(error=error)) is waited


def test_more_rounds_are_wanted_where_the_log_shows_less() -> None:
    """Without results one more, unless the answer is foreseen; without times as many as a patient client would make."""
    usual = SETTINGS.repeat_rounds
    assert rounds_needed(read(0), SETTINGS) == usual
    unanswered = step("Read", {"path": "a"}, open_=True)
    assert (rounds_needed(unanswered, SETTINGS), rounds_needed(unanswered, SETTINGS, foreseen=True)) == (usual + 1, usual)
    assert rounds_needed(step(error=LIMITED, at=None), SETTINGS) == SETTINGS.transient_rounds > usual
    assert rounds_needed(step("wait_agent", {"id": "7"}, "running", at=None), SETTINGS) == SETTINGS.poll_rounds > usual


def test_a_round_with_a_pause_is_paced() -> None:
    """A sleep beside queries; a change in it makes it work."""
    sleep = step("Bash", {"command": "sleep 30"})
    assert is_paced([sleep, read(0)], SETTINGS)
    assert not is_paced([read(0)], SETTINGS)
    assert not is_paced([sleep, step("Write", {"file_path": "a", "content": "x"})], SETTINGS)
    assert not is_paced([sleep, step(error={"type": "error", "message": "no such option"})], SETTINGS)


def test_without_times_there_are_no_seconds() -> None:
    """Between two starts."""
    assert seconds_between(read(1), read(4)) == 3
    assert seconds_between(read(None), read(4)) is None
