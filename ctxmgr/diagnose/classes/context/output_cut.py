"""An output is cut, and the same call is made again, although its output is cut at the same place each time."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.errors.lines import is_telling
from ctxmgr.diagnose.evidence import Evidence, call_input, call_key, program_name
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, fields_of, path_of, split_command, tool_phrase
from ctxmgr.diagnose.evidence.files import is_file_name
from ctxmgr.diagnose.evidence.items import list_items
from ctxmgr.diagnose.evidence.pages import describe_next_page, find_rest
from ctxmgr.diagnose.evidence.texts import NUMBERED, code, plain_name, quote_match
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "outputCut"

_CUT = lazy_pattern(
    r"[\d,]+ (?:more )?(?:lines|characters|chars|bytes|tokens) (?:truncated|omitted|not shown|hidden)"
    r"|showing (?:only )?(?:the )?(?:lines |first )?\d[^\n]{0,20} of \d+"
    r"|[\[(<…. ](?:output |response |content |result )?(?:was )?(?:truncated|clipped|cut off|abbreviated)\b(?! for column)"
    r"|\bonly (?:the )?(?:first |last )?[\d,]+ (?:lines|characters|rows|entries|bytes|tokens)? ?(?:were|was|are"
    r"|is) (?:read|shown|returned)"
    r"|\boutput (?:was |is )?(?:truncated|cut|too (?:long|large))"
    r"|\.\.\.\s?[\[(]?\d[\d,]* (?:more )?(?:lines|characters|chars|bytes|tokens)\b(?: truncated| omitted)?"
    r"|exceeds? (?:the )?(?:maximum|limit)[^\n]{0,40}(?:tokens|characters|size|lines|bytes)",
    re.IGNORECASE,
)
_TAG = lazy_pattern(r"</?[a-z][\w-]{1,40}>")
_FIRST = lazy_pattern(r"\b(?:only )?(?:the )?first (\d[\d,]{0,8})(?: lines)?\b", re.IGNORECASE)
_TOTAL = lazy_pattern(r"\b(?:has|of|total(?: of)?:?) (\d[\d,]{0,8}) lines\b", re.IGNORECASE)
_MOST_MARK, _MOST_NOTICE = 120, 400
"""Characters of a mark in the middle of an output, and of a notice at one of its ends."""
_SHOWN = lazy_pattern(
    r"(?:lines?|showing)\s*(?:lines? )?(\d{1,7})\s*(?:-|to|–)\s*(\d{1,7})\s*(?:of|/)\s*(\d{1,8})",
    re.IGNORECASE,
)


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return which output is cut again and again, and how to get the rest."""
    if (page := _diagnose_first_page(evidence)) is not None:
        return page
    for entry in evidence.rounds:
        # The first time, the agent only learns that the output is cut.
        if evidence.times(entry) < 2:
            continue
        line = _find_cut_notice(evidence.text(entry))
        if line is not None:
            return _explain_cut(evidence, entry, line, evidence.times(entry))
    return None


def _diagnose_first_page(evidence: Evidence) -> Diagnosis | None:
    """Say that the first page is requested again and again, in any form, and how to request the next one."""
    alike: dict[tuple[str, str], list[EntryView]] = {}
    for entry in evidence.tail:
        rest = find_rest(evidence.text(entry)) if entry.status == "ok" else None
        if rest is not None:
            alike.setdefault((program_name(entry), rest.token or evidence.text(entry)), []).append(entry)
    for (_, token), calls in alike.items():
        last = calls[-1]
        rest = find_rest(evidence.text(last))
        asked = any(token in call_input(each) for each in evidence.recent if each.index > calls[0].index)
        # A token that was used since leaves no page out, and a call from long ago is no trouble.
        if rest is None or len(calls) < _LEAST_CALLS or (rest.token and asked) or evidence.is_past(last):
            continue
        forms = len({call_key(each) for each in calls})
        shown = f" ({rest.sizes})" if rest.sizes else ""
        named = f": it names {code(rest.name, 40)} {code(rest.token, 60)}, and no call has given that" if rest.token else ""
        cause = (
            f"{call_phrase(last, 80)} was made {len(calls)} times{f' in {forms} forms' if forms > 1 else ''}, and each time it"
            f" answers with the same first part{shown}, while the answer says that there is more{named}."
        )
        return diagnosis(
            KIND, cause, describe_next_page(last, rest), evidence.quote(last),
            check="The answer must hold entries that you have not seen yet.",
        )  # fmt: skip
    return None


_LEAST_CALLS = 3


def _find_cut_notice(said: str) -> str | None:
    """Return the notice that an output was cut: a line at either end that is no line of the content itself."""
    lines = [line for line in said.split("\n") if line.strip()]
    lines = [_TAG.sub("", line) for line in lines]
    for line in [*lines[-4:], *lines[:3]]:
        # A numbered line is content that holds such words.
        if len(line) < _MOST_NOTICE and not NUMBERED.match(line) and _CUT.search(f" {line}"):
            return line.strip()
    for line in lines:
        if len(line) < _MOST_MARK and _CUT.search(f" {line}") and not NUMBERED.match(line) and line.strip()[:1] in "[(<….-=":
            return line.strip()  # a mark on a separate line, in the middle of the output
    return None


def _explain_cut(evidence: Evidence, entry: EntryView, line: str, times: int) -> Diagnosis:
    path, command = path_of(entry), command_of(entry)
    what = (
        code(command, 80)
        if command
        else (f"The {tool_phrase(entry)} of {evidence.name(path)}")
        if path
        else f"The {tool_phrase(entry)} call"
    )
    notice = quote_match(_CUT, f" {line}")
    cause = f"{what} was made {times} times, and its output is cut at the same place each time: {notice}."
    shown = _SHOWN.search(line)
    part = _FIRST.search(line)
    if part is not None and (total := _TOTAL.search(line)) is not None:
        cause = f"{cause[:-1]}, of {total.group(1)} lines in all."
    hit = _find_hit(evidence, entry, path if path and not command else _find_shown_file(command))
    if hit is not None:
        step = _describe_read(evidence, entry, hit)
    elif path and not command:
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
    quotes = (evidence.quote(entry, line), *([evidence.quote(hit.entry, hit.line)] if hit else []))
    return diagnosis(KIND, cause, step, *quotes, check="The answer must hold lines that you have not seen yet.")


class _Hit(NamedTuple):
    """A line of a cut file that a search found with its number."""

    entry: EntryView
    file: str
    number: int
    line: str


_SEARCHES = lazy_pattern(r"grep|\b(?:rg|ag|ack|awk|findstr)\b|search|find", re.IGNORECASE)
_NUMBERED_HIT = lazy_pattern(r"^(?:[^\s:]{1,200}:)?(?:L|[Ll]ine )?(\d{1,7})[:\t]\s?(\S[^\n]{0,300})$", re.MULTILINE)
_LINE_FIELD = lazy_pattern(r"line(?:_?(?:no|num|number))?|lineno")
_LINES_BEFORE, _LINES_READ = 5, 40


def _find_shown_file(command: str) -> str:
    """Return the only file that a command names, or ""."""
    files = {word for words in split_command(command) for word in words[1:] if is_file_name(word)}
    return files.pop() if len(files) == 1 else ""


def _find_hit(evidence: Evidence, entry: EntryView, file: str) -> _Hit | None:
    """Return the line that the newest search of a file found beyond what is shown of it; first one that tells of a failure."""
    name = file.rpartition("/")[2]
    shown = evidence.text(entry)
    for other in evidence.latest_before(entry.index) if name else ():
        call = call_input(other)
        if other.status != "ok" or name not in call or not _SEARCHES.search(command_of(other) or other.action):
            continue
        said = evidence.text(other)[:8_000]
        hits = _NUMBERED_HIT.findall(said) or [
            (number, max(item.fields.values(), key=len))
            for item in list_items(said)
            if (number := next((value for key, value in item.fields.items() if _LINE_FIELD.fullmatch(key)), "")).isdigit()
        ]
        found = [_Hit(other, file, int(number), line.strip()) for number, line in hits if line.strip() not in shown]
        if found:
            return next((hit for hit in found if is_telling(hit.line)), found[0])
    return None


def _describe_read(evidence: Evidence, entry: EntryView, hit: _Hit) -> str:
    """Return how to read a file around a line that a search found."""
    first, name = max(1, hit.number - _LINES_BEFORE), evidence.name(hit.file)
    how = f"from line {first} on (offset {first}, limit {_LINES_READ})"
    if command_of(entry) and plain_name(hit.file):
        part = f"sed -n '{first},{first + _LINES_READ}p' {hit.file}"
        how = f"with {code(part)}"
    return (
        f"Read {name} {how}: {evidence.source(hit.entry)} found a line that is not shown here, line {hit.number}. Do not"
        " read it from the start again."
    )
