"""Why the calls fail: the diagnosis that the record supports, else the most informative next look."""

from __future__ import annotations

from ctxmgr.diagnose import contrast, diagnose
from ctxmgr.diagnose.evidence import Evidence, messages_of
from ctxmgr.recover.history_reader import HistoryReader
from ctxmgr.recover.quotes import CITABLE
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.finding import Finding

_MOST_QUOTES = 6
_MOST = 400
"""Entries that are looked at: each is judged before it is passed on, which takes time."""


def cause_of(desk: HistoryReader, finding: Finding | None) -> Diagnosis | None:
    """Return why a session is stuck and what to do next; None without a finding, or where nothing can be said."""
    if finding is None:
        return None
    recent = list(reversed(desk.newest(_MOST)))
    evidence = Evidence(entries=recent, finding=finding, messages=messages_of(desk.heard()))
    return _bounded(diagnose(evidence) or contrast(evidence))


def _bounded(found: Diagnosis | None) -> Diagnosis | None:
    """Return a diagnosis that cites no id too long to be one: sources choose their ids."""
    if found is None:
        return None
    quotes = [each if len(each.entry or "") <= CITABLE else each.model_copy(update={"entry": None}) for each in found.evidence]
    return found.model_copy(update={"evidence": tuple(quotes[:_MOST_QUOTES])})
