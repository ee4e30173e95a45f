"""Remove volatile parts from a text, at two depths.

*Noise* (durations, process ids, memory addresses, random names of temporary files) is never news and is always blurred.
*Ids* (clock times, UUIDs, hashes, request ids) are blurred in errors and in the receipts of mutations alone: for a read
they are often the only news there is.

Each pattern starts with a set of characters, or is tried only when a plain substring is there: this runs on every
result that is compared, and alternations over the whole text cost twenty times as much.
"""

from __future__ import annotations

import re

from ctxmgr.text.lazy_pattern import lazy_pattern

MAX_TEXT = 64 * 1024
"""Characters of a text that are normalised; beyond them its length and a hash of the whole stand for the rest."""

_UNIT = r"(?:ns|µs|us|ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)"
_DURATION = lazy_pattern(rf"[0-9]+(\.[0-9]+)? ?({_UNIT})\b(?: ?[0-9]+(?:\.[0-9]+)? ?{_UNIT}\b)?")
_MAY_LAST = lazy_pattern(r"[0-9] ?[nµums]")
"""What every duration holds: to look for that first costs a third of looking for durations."""
_FINE_UNITS = ("ns", "µs", "us", "ms", "milli")
_SPANS = ("in", "took", "elapsed", "duration", "time", "after")
_MEASURED = lazy_pattern(
    r"((?:duration|elapsed)(?:_?[num]s[\"']?[ :=]{1,4}(?=[0-9])|[_a-z]{0,8}[\"']?[ :=]{1,4}(?=[0-9]+\.)))[0-9]+(?:\.[0-9]+)?",
    re.IGNORECASE,
)
"""A span that is named and has no unit behind it, as in TAP's ``duration_ms 1.52``; one of whole seconds may be news."""
_ANSI = lazy_pattern(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_ADDRESS = lazy_pattern(r"0x[0-9a-fA-F]{5,16}\b")
_TEMPORARY = lazy_pattern(
    r"/(?:tmp|T)/(?:tmp[\w-]{4,}|[\w-]+\.(?=[A-Za-z]*[0-9A-Z])[A-Za-z0-9]{6,12}\b|pytest-of-[\w-]+/pytest-[0-9]+)"
)
_NAMED = lazy_pattern(r"\b(chunk id|wall time|pid|process id)[ :=]+[0-9a-f.]+", re.IGNORECASE)

_DATE = lazy_pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T _][0-9]{2}[:_-][0-9]{2}(?:[:_-][0-9]{2}(?:[.,_][0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""A date, with a time where one follows; in names of files signs stand in for its colons (``2026-11-22T22_07_23_218Z``)."""
_CLOCK = lazy_pattern(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?")
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = lazy_pattern(r"[0-9a-fA-F]{7,64}\b")
_EPOCH = lazy_pattern(r"1[5-9][0-9]{8}(?:[0-9]{3})?")
_EPOCH_WORD = lazy_pattern(r"(?<![\w.])1[5-9][0-9]{8}(?:[0-9]{3})?(?:\.[0-9]+)?(?![\w])")
_NUMBERS = lazy_pattern(r"[0-9]+")
_DAY = lazy_pattern(r"\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b", re.IGNORECASE)
_CODE = lazy_pattern(r"(?<![\w-])(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[\w-]{4,80}(?![\w-])")
_FIELD = lazy_pattern(
    r'("[A-Za-z_]{0,40}(?:[iI]d|ID|uuid|UUID|[tT]oken|[eE]tag|[rR]evision|[vV]ersion|[rR]eceipt)":)(?:"[^"]*"|[0-9]+)'
)
_LABELLED = lazy_pattern(
    r"((?<![a-z])(?:id|uuid|receipt|ref(?:erence)?|rev(?:ision)?|version|ticket|request|trace|transaction|order|upload|job|"
    r"message|commit|build|token|session|handle|number|no\.?)[\"']?\s*(?:[:=#]\s*|\bid\b\s*)?[\"'#]?)[0-9]+\b",
    re.IGNORECASE,
)
_PREFIXED = lazy_pattern(r"\b(?:req|request|trace|run|msg)_[A-Za-z0-9]+\b")
_PREFIXES = ("req_", "request_", "trace_", "run_", "msg_")


def blur(text: str, *, ids: bool = False) -> str:
    """Return the text without noise, blanks folded; with ``ids`` also without clock times and ids.

    A count of whole seconds on its own stays: "[3s] compiling" after "[2s] compiling" is a job that goes on.
    """
    rest = ""
    if len(text) > MAX_TEXT:
        rest = f"…{len(text)}:{hash(text)}"
        text = text[:MAX_TEXT]
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if _MAY_LAST.search(text):
        text = _DURATION.sub(_blur_duration, text)
    if "0x" in text:
        text = _ADDRESS.sub("~", text)
    if "/tmp/" in text or "/T/" in text:
        text = _TEMPORARY.sub("~", text)
    lower = text.lower()
    if "duration" in lower or "elapsed" in lower:
        text = _MEASURED.sub(r"\1~", text)
    if ("id" in lower or "wall time" in lower) and _may_name(lower):
        text = _NAMED.sub(r"\1 ~", text)
    if ids:
        text = _blur_ids(text)
    return " ".join(text.split()) + rest


def _may_name(lower: str) -> bool:
    # Spelled out, for a loop over the four names costs more than all of the rest on a short text.
    return "pid" in lower or "chunk id" in lower or "wall time" in lower or "process id" in lower


def blur_times(text: str) -> str:
    """Return the text without dates, clock times and seconds since 1970."""
    return _EPOCH_WORD.sub("#", _CLOCK.sub("#", _DATE.sub("#", text)))


def blur_numbers(text: str) -> str:
    """Return the text without numbers, and without the names of days and months."""
    return _DAY.sub("#", _NUMBERS.sub("#", text))


def blur_receipts(text: str) -> str:
    """Return the text without what tells one receipt from another: words of letters and digits, and numbers called ids."""
    return _LABELLED.sub(r"\1#", _CODE.sub("#", _FIELD.sub(r"\1#", text)))


def _blur_duration(match: re.Match[str]) -> str:
    text, start = match.string, match.start()
    if start and (text[start - 1].isalnum() or text[start - 1] == "."):
        return match.group()
    if match.group(1) is not None or match.group(2).startswith(_FINE_UNITS):
        return "~"
    before = text[max(0, start - 14) : start].lower().rstrip(" :=")
    return "~" if before.endswith(_SPANS) else match.group()


def _blur_ids(text: str) -> str:
    text = _DATE.sub("#", text)
    if ":" in text:
        text = _CLOCK.sub("#", text)
    if "-" in text:
        text = _UUID.sub("#", text)
    if any(prefix in text for prefix in _PREFIXES):
        text = _PREFIXED.sub("#", text)
    return _HEX.sub(_blur_hex, text)


def _blur_hex(match: re.Match[str]) -> str:
    word, text, start = match.group(), match.string, match.start()
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return word
    if word.isdecimal():
        return "#" if _EPOCH.fullmatch(word) else word
    return "#" if any(char.isdecimal() for char in word) else word
