"""Tell how a run ended well, so that nobody is asked to go on with it."""

from __future__ import annotations

from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.comparison import is_farewell
from ctxmgr.diagnose.evidence import Evidence, clock
from ctxmgr.diagnose.evidence.calls import tool_phrase
from ctxmgr.text.patterns import lazy_pattern

_REFUSED = lazy_pattern(r"(?i)\b(?:wrong|incorrect|not (?:correct|accepted|valid)|rejected|invalid|try again|fail\w*|error)\b")
_MOST_VERDICT = 60
"""Characters at the beginning of an answer that may say that what was handed in is refused."""


def find_ending(evidence: Evidence) -> str:
    """Return how a run without a finding ended well, as a clause; "" if nothing says so: "it was submitted at 12:03"."""
    last = evidence.recent[-1] if evidence.recent else None
    if last is None or evidence.finding is not None or not evidence.has_succeeded(last):
        return ""
    if vocabulary.calls_a_person(last.action):
        return f"the {tool_phrase(last)} call{clock(last.ts)} handed it to a person, who goes on"
    if vocabulary.finishes(last.action) and not _REFUSED.search(evidence.text(last)[:_MOST_VERDICT]):
        return f"the {tool_phrase(last)} call{clock(last.ts)} declared it done, and was accepted"
    spoken = evidence.user_texts[-1:]
    if spoken and spoken[0].after is not None and spoken[0].after >= last.index and is_farewell(spoken[0].text):
        return f"its user said goodbye{clock(spoken[0].at)}, after the last call had worked"
    return ""
