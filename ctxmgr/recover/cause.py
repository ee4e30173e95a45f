"""Why the calls fail: the diagnosis that the record supports, else the most informative next look."""

from __future__ import annotations

from ctxmgr.diagnose import diagnose
from ctxmgr.diagnose.evidence import Evidence, messages_of
from ctxmgr.recover.brief import Brief
from ctxmgr.recover.contrast import contrast
from ctxmgr.recover.desk import Desk
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.finding import Finding

_MOST = 400
"""Entries that are looked at: each is judged before it is passed on, which takes time."""


def cause_of(desk: Desk, brief: Brief, finding: Finding | None) -> Diagnosis | None:
    """Return why a session is stuck and what to do next; None without a finding, or where nothing can be said."""
    if finding is None:
        return None
    recent = list(reversed(desk.newest(_MOST)))
    found = diagnose(Evidence(entries=recent, finding=finding, messages=messages_of(desk.heard())))
    return found or contrast(desk, brief, finding)
