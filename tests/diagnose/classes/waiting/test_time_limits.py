"""A call that is stopped at a time limit below the time that the record tells of it."""

from __future__ import annotations

import pytest

from ctxmgr.diagnose import diagnose, explain_contrast
from ctxmgr.diagnose.classes.waiting.call_hangs import KIND
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, Said, bash, evidence, failed, require_told

KILLED = [failed("timeout 600 make BOARD=revC bit", "Routing..\nkilled after 600 s")] * 3
LOG = bash("tail -2 logs/revC_full.log", "Program finished normally.\nreal 27m41s")


@pytest.mark.parametrize(
    "known",
    [
        evidence(LOG, *KILLED),
        evidence(bash("cat README.md", "`make BOARD=revC bit` takes about 28 minutes"), *KILLED),
        evidence(Said("The revC build takes 28 minutes, be patient."), *KILLED),
        evidence(bash("make BOARD=revC bit", "done in 1661 s"), *KILLED),
    ],
)
def test_a_longer_time_in_the_record_is_told(known: Evidence) -> None:
    """A log, a note, the user, or an earlier run of the same command names a longer time than the limit."""
    require_told(
        known, KIND, ["its own time limit of 10 min", "no want of memory"], ["28 min", "background", "make BOARD=revC bit >"]
    )


@pytest.mark.parametrize(
    "known",
    [
        evidence(bash("tail -2 logs/revC_full.log", "real 4m10s"), *KILLED),
        evidence(bash("tail -2 logs/revB_full.log", "real 27m41s"), *KILLED),
        evidence(bash("tail -2 revC/deploy.log", "real 27m41s"), *KILLED),
        evidence(LOG, *[failed("timeout 600 make BOARD=revC bit", "make: *** [bit] Error 1")] * 3),
    ],
)
def test_a_shorter_time_another_subject_or_another_error_says_nothing(known: Evidence) -> None:
    """Below the limit it is no reason, of another board it is no proof, and an error of its own is no limit."""
    found = diagnose(known)

    assert found is None or "time limit of" not in found.cause


def test_the_limit_of_a_client_is_not_called_the_calls_own() -> None:
    """Nobody set it in the call."""
    killed = Call("Bash", {"command": "make BOARD=revC bit"}, "killed after 300 s", "error")

    require_told(evidence(LOG, *[killed] * 3), KIND, ["a time limit of 5 min"], ["28 min"])


def test_without_a_known_time_the_limit_is_told_and_not_memory() -> None:
    """Then nobody knows whether it hangs or takes long, but it was its limit."""
    found = explain_contrast(evidence(*KILLED))

    assert found is not None
    assert "its own time limit of 10 min" in found.diagnosis.cause
    assert "memory" not in found.diagnosis.next_step
    assert "background" in found.diagnosis.next_step


def test_what_the_system_kills_still_asks_for_its_memory() -> None:
    """A kill without a limit may be for want of memory."""
    found = explain_contrast(evidence(*[failed("./train", "Killed")] * 3))

    assert found is not None
    assert "memory" in found.diagnosis.next_step


def test_more_time_is_no_advice_where_the_other_side_is_silent() -> None:
    """A request that nobody answers is not run in the background."""
    found = explain_contrast(evidence(*[failed("timeout 10 curl -s http://a.internal/x", "exit code 124")] * 3))

    assert found is not None
    assert "background" not in found.diagnosis.next_step
