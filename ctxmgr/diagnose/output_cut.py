"""An output is cut, and the same call is made again: it is cut at the same place each time."""

from __future__ import annotations

import re

from ctxmgr.diagnose.calls import called, command_of, fields_of, path_of, tool
from ctxmgr.diagnose.error_lines import tells
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code, plain_name, words_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "outputCut"

_CUT = lazy_pattern(
    r"[\d,]+ (?:more )?(?:lines|characters|chars|bytes|tokens) (?:truncated|omitted|not shown|hidden)"
    r"|showing (?:only )?(?:the )?(?:lines |first )?\d[^\n]{0,20} of \d+"
    r"|[\[(<…. ](?:output |response |content |result )?(?:was )?(?:truncated|clipped|cut off|abbreviated)\b"
    r"|\bonly (?:the )?(?:first |last )?[\d,]+ (?:lines|characters|rows|entries|bytes|tokens)? ?(?:were|was|are"
    r"|is) (?:read|shown|returned)"
    r"|\boutput (?:was |is )?(?:truncated|cut|too (?:long|large))"
    r"|\.\.\.\s?[\[(]?\d[\d,]* (?:more )?(?:lines|characters|chars|bytes|tokens)\b(?: truncated| omitted)?"
    r"|exceeds? (?:the )?(?:maximum|limit)[^\n]{0,40}(?:tokens|characters|size|lines|bytes)",
    re.IGNORECASE,
)
_TAG = lazy_pattern(r"</?[a-z][\w-]{1,40}>")
_FIRST = lazy_pattern(r"\b(?:only )?(?:the )?first ([\d,]{1,9})(?: lines)?\b", re.IGNORECASE)
_TOTAL = lazy_pattern(r"\b(?:has|of|total(?: of)?:?) ([\d,]{1,9}) lines\b", re.IGNORECASE)
_MARK = 120
_NUMBERED = lazy_pattern(r"\s*\d{1,7}(?: {2,}|→|[|:])")
_SHOWN = lazy_pattern(
    r"(?:lines?|showing)\s*(?:lines? )?(\d{1,7})\s*(?:-|to|–)\s*(\d{1,7})\s*(?:of|/)\s*(\d{1,8})",
    re.IGNORECASE,
)


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return which output is cut again and again, and how to get the rest."""
    for entry in evidence.rounds:
        if evidence.times(entry) < 2:
            continue
        page = _page(evidence, entry)
        if page is not None:
            return page
        line = _notice(evidence.text(entry))
        if line is not None:
            return _told(evidence, entry, line, evidence.times(entry))
    return _failure_cut(evidence)


def _failure_cut(evidence: Evidence) -> Diagnosis | None:
    """Say that of failing calls the part is cut which tells why: what is left of it says nothing."""
    cut = [(entry, line) for entry in evidence.failing if (line := _notice(evidence.text(entry)))]
    times = sum(_notice(evidence.text(entry)) is not None for entry in evidence.tail if evidence.failed(entry))
    if times < 2 or not cut or any(tells(line) for line in evidence.text(cut[0][0]).split("\n") if line.strip() != cut[0][1]):
        return None
    return _told(evidence, *cut[0], times)


_MORE = lazy_pattern(
    r"\"?(next_?(?:cursor|page_?token|page|token|offset)|cursor|continuation_?token|NextToken"
    r"|after)\"?\s?[:=]\s?\"?([\w=+/.-]{1,120})\"?",
    re.IGNORECASE,
)
_HAS_MORE = lazy_pattern(r"\"?(?:has_?more|has_?next(?:_?page)?|is_?truncated|more)\"?\s?[:=]\s?true", re.IGNORECASE)


def _page(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say that the same first page is asked for again and again, and how the next one is named."""
    said = evidence.text(entry)
    match = _MORE.search(said)
    named = match is not None and match.group(2).lower() not in ("null", "none", "false", "true") and plain_name(match.group(2))
    if (
        not (_HAS_MORE.search(said) or (match is not None and named and "next" in match.group(1).lower()))
        or evidence.times(entry) < _OFTEN
        or "\n\n" in said[:200]
    ):
        return None
    what = called(entry, 80)
    cause = (
        f"{what} was made {evidence.times(entry)} times, and each time it answers with the same page, while the "
        "answer says that there is more."
    )
    step = "Ask for the next page with the argument that the tool has for it"
    step += (
        f": the answer gives {code(match.group(1), 40)} as {code(match.group(2), 60)}."
        if match is not None and named
        else ", such as an offset or a page number."
    )
    return diagnosis(KIND, cause, step, evidence.quote(entry), check="The answer must hold entries that you have not seen yet.")


_OFTEN = 3


def _notice(said: str) -> str | None:
    """Return the notice that an output was cut: a line at either end that is no line of the content itself."""
    lines = [line for line in said.split("\n") if line.strip()]
    lines = [_TAG.sub("", line) for line in lines]
    for line in [*lines[-4:], *lines[:3]]:
        if len(line) < 400 and not _NUMBERED.match(line) and _CUT.search(f" {line}"):
            return line.strip()
    for line in lines:
        if len(line) < _MARK and _CUT.search(f" {line}") and not _NUMBERED.match(line) and line.strip()[:1] in "[(<….-=":
            return line.strip()  # a mark on a line of its own, in the middle of what is shown
    return None


def _told(evidence: Evidence, entry: EntryView, line: str, times: int) -> Diagnosis:
    path, command = path_of(entry), command_of(entry)
    what = (
        code(command, 80) if command else (f"The {tool(entry)} of {evidence.name(path)}") if path else f"The {tool(entry)} call"
    )
    notice = words_of(_CUT, f" {line}")
    cause = f"{what} was made {times} times, and its output is cut at the same place each time: {notice}."
    shown = _SHOWN.search(line)
    part = _FIRST.search(line)
    if part is not None and (total := _TOTAL.search(line)) is not None:
        cause = f"{cause[:-1]}, of {total.group(1)} lines in all."
    if path and not command:
        name = evidence.name(path)
        field = next((name for name in ("offset", "start_line", "view_range") if name in fields_of(entry)), "offset")
        start = (
            (f"from line {int(shown.group(2)) + 1} on ({field} {int(shown.group(2)) + 1})")
            if shown
            else f"from line {int(part.group(1).replace(',', '')) + 1} on ({field} {int(part.group(1).replace(',', '')) + 1})"
            if part
            else f"in parts, with {field} and limit"
        )
        step = f"Read {name} {start}, or search it for the words you need; do not read it from the start again."
    elif command:
        step = "Print less at a time: send the output to a file once, then look at parts of it with `grep`, `sed -n` or `tail`."
    else:
        step = "Ask for a part: give it a narrower query, or the next page."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, line), check="The answer must hold lines that you have not seen yet."
    )
