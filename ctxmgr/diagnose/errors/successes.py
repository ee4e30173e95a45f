"""Find successful calls that say the same again and again although something should change: a success can be the symptom.

Healthy sessions have such lines too: a build with nothing to do, a pull without news. So at least `_LEAST` of an agent's last
calls must say exactly the same, up to the end. Nothing may fail, and none of these calls may have had another answer since.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ctxmgr.diagnose.errors import table as error_table
from ctxmgr.diagnose.evidence import Evidence, call_key
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, edited_paths
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_LEAST, _NEAR, _LOOKED_AT = 3, 3, 14


class SameAnswer(NamedTuple):
    """The newest of the calls that say the same, the place where it says so, and the number of these calls."""

    entry: EntryView
    match: re.Match[str]
    times: int


def same_answer(evidence: Evidence, find: Callable[[EntryView], re.Match[str] | None]) -> SameAnswer | None:
    """Return the calls at the end of a session in which ``find`` finds the same words each time, or None.

    Args:
        evidence: the session's record.
        find: returns the match in the result of a successful call, or None.
    """
    last = [entry for entry in evidence.tail[-_LOOKED_AT:] if entry.agent == evidence.agent and entry.status != "open"]
    found: list[tuple[EntryView, re.Match[str]]] = []
    other: set[str] = set()
    for since, entry in enumerate(reversed(last)):
        match = find(entry) if entry.status == "ok" and (command_of(entry) or not edited_paths(entry)) else None
        if not found and since >= _NEAR:
            return None
        # Another answer since then means that something has changed.
        if match is not None and call_key(entry) in other:
            break
        if match is not None and (not found or match.group(0) == found[0][1].group(0)):
            found.append((entry, match))
        else:
            other.add(call_key(entry))
    return SameAnswer(*found[0], len(found)) if len(found) >= _LEAST else None


def known_success(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return what the rows of the table say about a repeated success; None if a call fails."""
    if evidence.failing_calls:
        return None
    last = [entry for entry in evidence.tail[-_LOOKED_AT:] if entry.agent == evidence.agent and entry.status == "ok"]
    rows = {id(row): row for entry in last[-_NEAR:] for row, _ in error_table.matching_rows(evidence, entry) if row.ok}
    for row in rows.values():
        same = same_answer(evidence, partial(error_table.match_row, evidence, row=row))
        if same is not None:
            start = f"{call_phrase(same.entry)} says the same {same.times} times"
            found = error_table.answer(kind, evidence, same.entry, row, same.match, start)
            if found is not None:
                return found
    return None
