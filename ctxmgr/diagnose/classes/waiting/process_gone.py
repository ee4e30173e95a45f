"""The run's own process is gone, so nobody waits for the result of its open call any more."""

from __future__ import annotations

from ctxmgr.diagnose.evidence import Evidence, call_input, start_clause
from ctxmgr.diagnose.evidence.calls import call_phrase, only_looks
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.types.finding import Diagnosis


def diagnose_gone(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return that the process of the run was killed or crashed, if its lock shows that, and what it left open."""
    if evidence.finding is None or evidence.finding.evidence.get("processGone") is not True:
        return None
    if not evidence.recent:
        cause = (
            "The process of this run is gone: it was killed or crashed before it recorded an action, or while it could not"
            " write its record, as on a full disk."
        )
        look = "Look how much room is left where the record is (`df`), and at what the program printed; then start it again."
        return diagnosis(kind, cause, look, confidence="medium")
    if not evidence.open_calls:
        return None
    step = evidence.open_calls[-1]
    call = call_phrase(step, article="the")
    cause = (
        f"The process of this run is gone: it was killed or crashed inside {call}{start_clause(step)} and recorded no result."
        " So none is to be expected, and nobody waits for it."
    )
    if only_looks(step):
        look = "Make the call again: it changes nothing. Then go on with the task from there."
    else:
        look = (
            "Look whether the call took effect, and whether a process that it started still runs, before you make it again."
            " Then go on with the task from there."
        )
    return diagnosis(kind, cause, look, evidence.quote(step, call_input(step)[:300]))
