"""An output is cut, and the same call is made again: it is cut at the same place each time."""

from __future__ import annotations

import re

from ctxmgr.diagnose.calls import command_of, fields_of, path_of
from ctxmgr.diagnose.evidence import Evidence
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "outputCut"

_CUT = re.compile(
    r"[\[(<…. ](?:output |response |content |result )?(?:was )?(?:truncated|clipped|cut off|abbreviated)\b|\boutput (?:was "
    r"|is )?(?:truncated|cut|too (?:long|large))"
    r"|\.\.\.\s?[\[(]?\d[\d,]* (?:more )?(?:lines|characters|chars|bytes|tokens)|[\d,]+ (?:more )?(?:lines|characters|bytes"
    r"|tokens) (?:truncated|omitted|not shown|hidden)"
    r"|exceeds? (?:the )?(?:maximum|limit)[^\n]{0,40}(?:tokens|characters|size|lines|bytes)"
    r"|showing (?:only )?(?:the )?(?:lines |first )?\d[^\n]{0,20} of \d",
    re.IGNORECASE,
)
_SHOWN = re.compile(
    r"(?:lines?|showing)\s*(?:lines? )?(\d{1,7})\s*(?:-|to|–)\s*(\d{1,7})\s*(?:of"
    r"|/)\s*(\d{1,8})",
    re.IGNORECASE,
)


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return which output is cut again and again, and how to get the rest."""
    for entry in evidence.rounds:
        if evidence.times(entry) < 2:
            continue
        said = evidence.text(entry)
        edge = f"{said[:800]}\n{said[-1_500:]}" if len(said) > 2_300 else said
        match = _CUT.search(f" {edge}")
        if match is not None:
            line = next((line for line in edge.split("\n") if _CUT.search(f" {line}")), match.group(0))
            return _told(evidence, entry, line.strip())
    return None


def _told(evidence: Evidence, entry: EntryView, line: str) -> Diagnosis:
    path, command = path_of(entry), command_of(entry)
    what = (
        code(command, 80)
        if command
        else (f"The {entry.action[:40]} of {evidence.name(path)}")
        if path
        else f"The {entry.action[:40]} call"
    )
    cause = (
        f"{what} was made {evidence.times(entry)} times, and its output is cut at the same place each time: {code(line, 120)}."
    )
    shown = _SHOWN.search(line)
    if path and not command:
        name = evidence.name(path)
        field = next((name for name in ("offset", "start_line", "view_range") if name in fields_of(entry)), "offset")
        start = (
            (f"from line {int(shown.group(2)) + 1} on ({field} {int(shown.group(2)) + 1})")
            if shown
            else f"in parts, with {field} and limit"
        )
        step = f"Read {name} {start}, or search it for the words you need; do not read it from the start again."
    elif command:
        step = "Print less at a time: send the output to a file once, then look at parts of it with `grep`, `sed -n` or `tail`."
    else:
        step = "Ask for a part: give it a narrower query, or the next page."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, line), check=("The answer must hold lines that you have not seen yet.")
    )
