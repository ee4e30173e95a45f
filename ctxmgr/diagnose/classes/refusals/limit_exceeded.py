"""A call asks for more than a limit allows. The error names the limit and the requested size."""

from __future__ import annotations

import re

from ctxmgr.diagnose.evidence import CHECKS, Evidence
from ctxmgr.diagnose.evidence.calls import command_of
from ctxmgr.diagnose.evidence.texts import clip
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis

KIND: str = "limitExceeded"

_NUMBER = r"(\d[\d,._]{0,14}\d|\d)(?![\w.]?\d)"
_UNIT = (
    r"(?:\s?(characters?|chars|tokens?|bytes|[kmgt]i?b|items?|rows?|lines?|messages?|entries|elements?|records?|requests?"
    r"|files?|words?|pages?|parameters?|columns?|pixels|seconds?))?"
)
_FEWER = r"(?:limit(?:ed)?|max(?:imum)?(?:[ _-]?\w{1,12}){0,2}|at most|up to|no more than|not exceed|cap|allowed|allows)"
# No digits, so that the next number to match is the first one that follows.
_BETWEEN = r"[^\n\d]{0,60}?"
_MOST_CALLS = 4
_PAIRS = (
    (
        "limit",
        lazy_pattern(
            rf"\b{_FEWER}\b{_BETWEEN}{_NUMBER}{_UNIT}[^\n\d]{{0,80}}?\b(?:requested|received|got|given|was|has|is|have|had"
            rf"|resulted in|sent|found|actual|used|contains|provided|but)\b{_BETWEEN}{_NUMBER}{_UNIT}",
            re.IGNORECASE,
        ),
    ),
    (
        "size",
        lazy_pattern(
            rf"\b(?:has|have|is|was|are|got|contains|requested|of|length|size|given|received|sent|with|:)\s"
            rf"(?:\w{{1,12}} ){{0,2}}?{_NUMBER}{_UNIT}[^\n\d]{{0,60}}?\b(?:{_FEWER}|exceeds?|over|above|more than|greater than"
            rf"|larger than|longer than)\b{_BETWEEN}{_NUMBER}{_UNIT}",
            re.IGNORECASE,
        ),
    ),
)
_TOO_MUCH = lazy_pattern(
    r"too (?:long|large|big|many|much)|exceed|limit|maximum|at most|larger than|longer than|over the", re.IGNORECASE
)
_USED = lazy_pattern(r"\bused\b|remaining|per day|queries per|quota|timed? ?out|timeout|memory|retries|attempt", re.IGNORECASE)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return by how much the call is too large."""
    for entry in evidence.failing_calls[:_MOST_CALLS]:
        # Numbers in a test's output are what is tested.
        if CHECKS.search(command_of(entry)):
            continue
        for line in evidence.text(entry)[:8_000].split("\n"):
            found = _find_excess(line[:1_000])
            if found is None:
                continue
            size, limit, unit = found
            unit_text = f" {unit}" if unit else ""
            cause = (
                f"{evidence.describe_failure(entry, 80)}, because what it asks for is too large or too long: "
                f"`{size}`{unit_text}, and the limit is `{limit}`. Waiting or sending it again can't change that."
            )
            step = (
                "Make it smaller: shorten what you send, or split it into parts (chunks, pages) of at most "
                f"`{limit}`{unit_text} "
                "each; count the size before you send it, and do not send the same size again."
            )
            return diagnosis(
                KIND, cause, step, evidence.quote(entry, clip(line, 300)), check="The size must be below the limit.",
            )  # fmt: skip
    return None


def _find_excess(line: str) -> tuple[str, str, str] | None:
    """Return the requested size, the limit, and the unit; None if no size exceeds a limit."""
    if not _TOO_MUCH.search(line):
        return None
    for first, pattern in _PAIRS:
        for match in pattern.finditer(line):
            one, unit, two, other = match.groups()
            size, limit = (two, one) if first == "limit" else (one, two)
            # The amount used so far is no size of this call.
            if _parse_number(size) > _parse_number(limit) > 1 and not _USED.search(match.group(0)):
                return size, limit, (unit or other or "").lower()
    return None


def _parse_number(number: str) -> float:
    digits = re.sub(r"[,_]", "", number)
    return float(digits) if digits.count(".") < 2 else 0.0
