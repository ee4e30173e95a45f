"""Why the calls fail: the diagnosis that the record supports, else the most informative next look."""

from __future__ import annotations

from collections.abc import Sequence

from ctxmgr.diagnose import contrast, diagnose
from ctxmgr.diagnose.evidence import Evidence, messages_of
from ctxmgr.history.evidence import RelatedEntries
from ctxmgr.recover.history_reader import HistoryReader
from ctxmgr.recover.quotes import CITABLE
from ctxmgr.recover.related import RelatedReader
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.finding import Finding
from ctxmgr.types.view import EntryView

_MOST_QUOTES = 6
_MOST = 400
"""Entries that are looked at: each is judged before it is passed on, which takes time."""


def cause_of(desk: HistoryReader, finding: Finding | None, related: RelatedReader | None = None) -> Diagnosis | None:
    """Return why a session is stuck, or why its last calls failed, and what to do next; None where nothing can be said."""
    recent = list(reversed(desk.newest(_MOST)))
    elsewhere: Sequence[EntryView] = () if related is None else RelatedEntries(lambda: related.entries)
    evidence = Evidence(entries=recent, finding=finding, messages=messages_of(desk.heard()), related=elsewhere)
    found = diagnose(evidence) if finding is not None or evidence.failing else None
    found = contrast(evidence) if found is None and finding is not None else found
    return _bounded(found if found is None or related is None else _placed(found, recent, related))


def _placed(found: Diagnosis, own: Sequence[EntryView], related: RelatedReader) -> Diagnosis:
    """Return a diagnosis whose quotes of other sessions say where they are from."""
    here, there = {entry.id for entry in own}, {entry.id: entry for entry in related.entries}
    quotes = [
        each if each.entry in here or each.entry not in there
        else each.model_copy(update={"source": related.told(there[each.entry]).source})
        for each in found.evidence
    ]  # fmt: skip
    return found.model_copy(update={"evidence": tuple(quotes)})


def _bounded(found: Diagnosis | None) -> Diagnosis | None:
    """Return a diagnosis that cites no id too long to be one: sources choose their ids."""
    if found is None:
        return None
    quotes = [each if len(each.entry or "") <= CITABLE else each.model_copy(update={"entry": None}) for each in found.evidence]
    return found.model_copy(update={"evidence": tuple(quotes[:_MOST_QUOTES])})
