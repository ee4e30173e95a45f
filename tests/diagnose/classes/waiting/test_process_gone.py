"""A run whose process was killed inside a call: that is said, and nobody is told to look at the process."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.base.light_dataclass import replace
from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.classes.waiting import call_hangs
from ctxmgr.diagnose.classes.waiting.process_gone import diagnose_gone
from ctxmgr.diagnose.evidence import Evidence
from tests.diagnose.build import Call, evidence, require_told

GONE = {"ended": True, "processGone": True}


def _hung(call: Call, facts: dict[str, Any]) -> Evidence:
    known = evidence(call, kind="hung", severity="hung")
    assert known.finding is not None
    finding = known.finding.model_copy(update={"evidence": {**known.finding.evidence, **facts}})
    return replace(known, finding=finding)


@pytest.mark.parametrize(
    ("action", "given", "cause", "step"),
    [
        ("Bash", {"command": "make all"}, "`make all`", "Look whether the call took effect"),
        ("Bash", {"command": "rg --files"}, "`rg --files`", "Make the call again: it changes nothing."),
        ("Bash", {"command": "npm init"}, "`npm init`", "Look whether the call took effect"),
        ("Read", {"file_path": "a.py"}, "the Read call", "Make the call again"),
        ("query", {"sql": "select 1"}, "the query call", "Make the call again"),
        ("query", {"sql": "delete from pets"}, "the query call", "Look whether the call took effect"),
    ],
)
def test_a_call_inside_which_the_process_ended(action: str, given: dict[str, Any], cause: str, step: str) -> None:
    """What is gone can be neither stopped nor looked at. Only a call that changes nothing is safe to repeat."""
    known = _hung(Call(action, given, None, "open"), GONE)
    require_told(known, call_hangs.KIND, ["is gone", cause], [step])
    found = diagnose(known)
    assert found is not None
    assert not any(word in found.cause + found.next_step for word in ("strace", "Stop it", "time limit"))


@pytest.mark.parametrize("facts", [{"ended": True}, {"ended": True, "processGone": "yes"}, {}])
def test_a_process_that_may_still_run(facts: dict[str, Any]) -> None:
    """Without the fact, nothing is known of the process."""
    assert diagnose_gone(call_hangs.KIND, _hung(Call("Bash", {"command": "make all"}, None, "open"), facts)) is None


def test_a_process_that_recorded_no_action() -> None:
    """What it did, if anything, was not written: the place of the record may be full."""
    finding = _hung(Call("Read", {}, None, "open"), GONE).finding
    found = diagnose(Evidence([], finding))
    assert found is not None
    assert (found.kind, "full disk" in found.cause, "`df`" in found.next_step) == (call_hangs.KIND, True, True)
