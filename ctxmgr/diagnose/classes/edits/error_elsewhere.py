"""The error points at another file than the one that is changed again and again."""

from __future__ import annotations

import re

from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.evidence import Evidence, call_key, clock, may_change
from ctxmgr.diagnose.evidence.calls import (
    command_of,
    edited_paths,
    fields_of,
    list_changes,
    path_of,
    same_file,
    split_command,
    written_content,
)
from ctxmgr.diagnose.evidence.files import FOREIGN, is_file_name
from ctxmgr.diagnose.evidence.texts import ORDERS, code, contains_word, first_group, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "errorElsewhere"

# Python's `File "a.py", line 3`, Node's `at f (a.js:3:4)`, a compiler's `a.c:3:4`, rustc's `--> src/a.rs:3`
_FRAME = lazy_pattern(
    r"File \"([^\"\n]{1,300})\", line (\d{1,6})|^[ \t]*(?:at .{0,120}\()?((?:/"
    r"|\.{0,2}/)?[\w@./+-]{1,300}\.\w{1,5})[:(](\d{1,6})(?:[:,]\d{1,6})?\)?(?=[:\s)]|$)|-->\s*([\w./+-]{1,300}):(\d{1,6})",
    re.MULTILINE,
)
_CAUSE = lazy_pattern(
    r"^(?:E\s+)?((?:\w+\.)*\w*(?:Error|Exception)\b:? ?[^\n]{0,200})"
    r"|(?:^|: )((?:fatal )?error(?:\[\w+\]| \w{2,10})?: [^\n]{1,200})",
    re.MULTILINE,
)
_AT = r"(?P<path>(?:/|\.{0,2}/)?[\w@./+-]{1,200}\.\w{1,8})"
_SURE = tuple(
    lazy_pattern(pattern, re.MULTILINE)
    for pattern in (
        rf"^(?:e: )?(?:ERROR in )?{_AT}[:(](?P<line>\d{{1,6}})(?:[:,]\d{{1,6}})?\)?:? ?-? ?(?:fatal |syntax |parse "
        r"|\[)?(?:error|Error|ERROR)\b",
        rf"^(?:\./)?{_AT}:(?P<line>\d{{1,6}})(?::\d{{1,5}})?: (?:undefined|cannot|syntax|missing|expected"
        r"|unexpected|not enough|too many|imported|declared|invalid|use of|unknown|no required|undeclared|redefin)",
        rf"^(?:error|Error)(?:\[\w+\])?: [^\n]{{1,300}}\n\s*--> {_AT}:(?P<line>\d{{1,6}})",
        r"(?:SyntaxError|ParseError|YAMLException|JSONDecodeError|TOMLDecodeError|ParserError|ScannerError"
        rf"|YAMLError|ParseException): {_AT}(?::(?P<line>\d{{1,6}}))?[: (]",
        r"(?:parse|syntax|parsing|decod\w+|reading|loading|invalid|malformed|in(?:valid)? config(?:uration)?(?: "
        rf"file)?) (?:error )?(?:in |of |file |at )?[`'\"]?{_AT}[`'\"]?(?:(?::| line |, line | on line "
        rf")(?P<line>\d{{1,6}}))",
        rf"(?:PHP )?(?:Parse|Fatal) error: [^\n]{{1,200}} in {_AT} on line (?P<line>\d{{1,6}})",
        rf"syntax error at {_AT} line (?P<line>\d{{1,6}})",
        rf"^\s*in [`'\"]{_AT}[`'\"], line (?P<line>\d{{1,6}})",
        rf"File \"{_AT}\", line (?P<line>\d{{1,6}})\n[^\n]{{0,300}}\n(?:[ ^~]{{1,300}}\n)?(?:SyntaxError"
        r"|IndentationError|TabError)",
        rf"^{_AT}: line (?P<line>\d{{1,6}}): (?:syntax error|parse error|unexpected)",
        # A runner of scripts or migrations marks the file that fails. Of a test, the marked file is not the one at fault.
        rf"^\s{{0,8}}(?:FAIL(?:ED)?|[✗✘×])[: ]\s{{0,4}}(?![^\n]{{0,200}}(?:test|spec)){_AT}(?P<line>(?!))?(?=\s{{1,4}}[-–:]\s)",
    )
)
"""Messages in which a compiler or parser locates the error itself. Files that include or read the place are not at fault."""
_INCLUDE = lazy_pattern(r"fatal error: [^\n:]{1,200}: no such file|fatal error: '[^\n']{1,200}' file not found", re.IGNORECASE)
"""A file includes another one that is missing. The including line is not at fault."""
_LEAST_CHANGES, _MOST_BACK, _MOST_QUOTED, _MOST_TEXT = 2, 120, 48, 20_000
"""Changes elsewhere, entries back to the first failure, characters of an error that are quoted, and of a result."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return where the error is, if every change since it first appeared was made elsewhere."""
    for entry in evidence.failing_calls:
        # A failing edit is the trouble itself.
        if edited_paths(entry) or _INCLUDE.search(evidence.text(entry)[:_MOST_TEXT]):
            continue
        found = (
            _diagnose_parse_error(evidence, entry)
            or _diagnose_unchanged_file(
                evidence, entry, _list_changed_files(evidence, entry, mask_volatile(evidence.text(entry)))
            )
            or _diagnose_included_text(evidence, entry)
        )
        if found is not None:
            return found
    return None


def _diagnose_parse_error(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say where a compiler or parser stops, if it stops in no file that was changed."""
    said = evidence.text(entry)[:_MOST_TEXT]
    for pattern in _SURE:
        matches = list(pattern.finditer(said))
        places = [(match.group("path"), match.group("line")) for match in matches]
        # A frame in a library only shows the way that the error took.
        places = [(path, line) for path, line in places if plain_name(path) and not any(part in path for part in FOREIGN)]
        if not places:
            continue
        path, line = places[0]
        quoted = said[matches[0].start() : matches[0].end() + 160].strip()
        changed = _list_changed_files(evidence, entry, mask_volatile(matches[0].group(0)))
        # After a single edit elsewhere, the agent may still be on its way to the right file.
        if _has_few_changes(changed) or any(same_file(path, each) for path, _ in places for each in changed):
            return None
        about = _find_error_names(said[matches[0].start() : matches[0].end() + 300].strip(), path)
        why = f", and is about {' and '.join(code(name, 60) for name in about)}" if about else ""
        return _explain_place(evidence, entry, changed, path, line, why, quoted, _quote_help(said[matches[0].end() :]))
    return None


def _find_error_names(error: str, path: str) -> list[str]:
    """Return the first two names that the line of an error message has in quotes."""
    line = next((line for line in error.split("\n") if _ERROR.search(line)), "").replace(path, "")
    # A suggestion is not what is missing.
    line = re.split(r"(?i)\bdid you mean|\bperhaps\b|\bmaybe\b", line)[0]
    found = (name for quoted in _IN_QUOTES.findall(line) for name in _IDENTIFIER.findall(quoted)[:1])
    return [name for name in dict.fromkeys(found) if plain_name(name)][:2]


def _quote_help(said: str) -> str:
    """Return a sentence with the lines that a compiler's help would write, or ""."""
    lines = [line.strip() for line in _HELP.findall(re.split(r"\n(?:error|warning)\b", said)[0])]
    shown = " and ".join(code(line, 60) for line in lines[:2])
    return f" The compiler's help shows {shown} there." if lines and not any(map(ORDERS.search, lines)) else ""


_ERROR = lazy_pattern(r"(?i)error|undefined|undeclared|cannot|missing|unknown|expected")
_IN_QUOTES = lazy_pattern(r"[`'\"‘]([^`'\"‘’\n]{1,80})[`'\"’]")
_IDENTIFIER = lazy_pattern(r"[A-Za-z_]\w{1,60}(?:(?:::|\.|->)\w{1,60}){0,4}")
# rustc's `8 ~         Packet::Bye => false,`
_HELP = lazy_pattern(r"^ {0,6}\d{1,6} [~+] {1,80}(\S[^\n]{0,200})$", re.MULTILINE)


def _diagnose_included_text(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say which included text an error names, if the source line that it quotes is not in the written text."""
    said = evidence.text(entry)[:_MOST_TEXT].replace("\\n", "\n").replace('\\"', '"')
    quoted = [line.strip(" .…|") for line in _QUOTED.findall(said)]
    wrote = [each for each in evidence.tail if each.agent == entry.agent and each.index < entry.index and _written_text(each)]
    if not quoted or len(wrote) < _LEAST_CHANGES or not _PARSES.search(said):
        return None
    path = path_of(wrote[-1]) or ""
    known = evidence.last_content(path, entry.index) if list_changes(wrote[-1]) else None
    text = known.text if known is not None else _written_text(wrote[-1])
    # The quoted line may be in an unknown part of the file.
    if list_changes(wrote[-1]) and (known is None or not known.whole):
        return None
    # The quoted line is its own, with other line breaks.
    if any("".join(line.split()) in "".join(text.split()) for line in quoted):
        return None
    # The quoted line contains the name in any case.
    rest = said.replace(quoted[0], "")
    names = [first_group(match) for match in _REFERS.finditer(text)]
    name = next(
        # Without the name in the error, it may be any of them.
        (each for each in names if contains_word(each, rest) and plain_name(each)),
        None,
    )
    if name is None:
        return None
    own = next((str(value) for value in fields_of(wrote[-1]).values() if isinstance(value, str) and plain_name(value)), "it")
    shown = f", which it quotes with {code(quoted[0], 60)}," if not ORDERS.search(quoted[0]) else ""
    cause = (
        f"The error is in {code(name, 60)}{shown} and not in {code(own, 60)}: that only includes it. None of your"
        f" {len(wrote)} versions of {code(own, 60)} has that text."
    )
    return diagnosis(
        KIND, cause, f"Read {code(name, 60)} itself, and correct the place that the error quotes there.",
        evidence.quote(entry), evidence.quote(wrote[-1], text), check="The error must move or change.",
    )  # fmt: skip


_QUOTED = lazy_pattern(r"^([^\n]{10,200})\n[-~ .|]{0,120}\^", re.MULTILINE)
_REFERS = lazy_pattern(
    r"\{\{>\s*([\w./-]{2,60})|\{%-?\s*(?:include|extends|import|from)\s+['\"]([\w./-]{2,60})|#include\s+[\"<]([\w./-]{2,60})"
    r"|@(?:import|use|include|extends)\s*\(?\s*['\"]([\w./-]{2,60})|\b(?:require|import|source|include)\s*\(?\s*['\"]([\w./@-]{2,60})"
    r"|!include\s+([\w./-]{2,60})|\$ref['\"]?:\s*['\"]?([\w./#-]{2,80})|<xi:include[^>]{0,80}href=\"([\w./-]{2,60})"
)
"""Ways in which one text includes another."""
_PARSES = lazy_pattern(r"(?i)pars(?:e|ing)|syntax|unexpected|expect(?:ing|ed)|unterminated|unclosed|invalid token|malformed")
_LEAST_WRITTEN = 30


def _written_text(entry: EntryView) -> str:
    """Return the text that a call writes, or ""."""
    # A call that only reads may have a long text as input too.
    if entry.status != "ok" or (not may_change(entry) and written_content(entry) is None):
        return ""
    return max(
        (value for value in fields_of(entry).values() if isinstance(value, str) and len(value) >= _LEAST_WRITTEN),
        key=len,
        default="",
    )


def _has_few_changes(changed: dict[str, list[EntryView]]) -> bool:
    return sum(map(len, changed.values())) < _LEAST_CHANGES


def _list_changed_files(evidence: Evidence, entry: EntryView, said: str) -> dict[str, list[EntryView]]:
    """Return the files changed successfully since a failure with this message first appeared, each with its calls."""
    start = entry.index
    for other in evidence.entries_before(entry.index):
        if (
            other.action == entry.action
            and evidence.has_failed(other)
            and (call_key(other) == call_key(entry) or said in mask_volatile(evidence.text(other)))
        ):
            start = other.index
        # Long ago, the same message may have had another cause.
        if entry.index - other.index > _MOST_BACK:
            break
    # A loop may have begun before its present message.
    start = min(start, evidence.loop[0].index) if evidence.loop and evidence.finding is not None else start
    found: dict[str, list[EntryView]] = {}
    since = [other for other in evidence.recent if start <= other.index < entry.index]
    for other in since:
        for path in edited_paths(other) if other.status == "ok" else []:
            found.setdefault(path, []).append(other)
    # A substitution may have changed nothing, so alone it does not show where an agent looks for the fault.
    for other in [] if _has_few_changes(found) else since:
        for path in _list_files_of_sed(other):
            found.setdefault(next((each for each in found if same_file(each, path)), path), []).append(other)
    return found


def _list_files_of_sed(entry: EntryView) -> list[str]:
    """Return the files that a command changes in place, whatever else it runs."""
    parts = [words for words in split_command(command_of(entry)) if words[0] == "sed"] if entry.status != "open" else []
    return [
        word for words in parts if any(re.match(r"-\w*i|--in-place", word) for word in words[1:])
        for word in words[2:] if plain_name(word) and is_file_name(word)
    ]  # fmt: skip


def _diagnose_unchanged_file(evidence: Evidence, entry: EntryView, changed: dict[str, list[EntryView]]) -> Diagnosis | None:
    if _has_few_changes(changed):
        return None
    said = evidence.text(entry)
    frames = [(one or two or three, a or b or c) for one, a, two, b, three, c in _FRAME.findall(said)]
    frames = [(path, line) for path, line in frames if not any(part in path for part in FOREIGN)]
    causes = [one or other for one, other in _CAUSE.findall(said)]
    if not frames or not causes or "AssertionError" in causes[-1]:
        return None  # an assertion fails in the test, which does not show where the fault is
    path, line = frames[-1] if 'File "' in said else frames[0]
    named = any(same_file(each, frame) or each.rpartition("/")[2] in said for each in changed for frame, _ in frames)
    if any(same_file(path, each) for each in changed) or (named and not _fails_on_import(said)):
        return None  # a changed file is involved: it may pass on the faulty value
    # A test is the right place for an error to appear.
    if not plain_name(path) or any(
        part in path.rpartition("/")[2] for part in ("test_", "_test.", ".test.", ".spec.", "conftest")
    ):
        return None
    return _explain_place(evidence, entry, changed, path, line, f": {_quote_error(causes[-1].strip())}", said[-500:])


def _explain_place(
    evidence: Evidence,
    entry: EntryView,
    changed: dict[str, list[EntryView]],
    path: str,
    line: str | None,
    why: str,
    quoted: str,
    shown: str = "",
) -> Diagnosis:
    edits = sorted((each for entries in changed.values() for each in entries), key=lambda each: each.index)
    files = ", ".join(code(evidence.name(each), 60) for each in list(changed)[:2])
    files += f" and {len(changed) - 2} more" if len(changed) > 2 else ""
    name = evidence.name(path)
    where = f", line {line}" if line else ""
    cause = (
        f"The error is in {code(name, 80)}{where}{why}. Your {len(edits)} changes"
        f" since{clock(edits[0].ts) or ' then'} were all made in {files}."
    )
    cause = cause.replace("since at", "since")
    step = (
        f"Read {code(name, 80)}{f' around line {line}, and the lines above it,' if line else ''} and correct the cause there."
        f"{shown}"
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, quoted), evidence.quote(edits[-1], "\n".join(changed)),
        check="Run the same check again: the error must move or change.",
    )  # fmt: skip


def _fails_on_import(said: str) -> bool:
    """Whether the last frame of a traceback is the body of a module. Then the importing file can't be at fault."""
    frames = re.findall(r"File \"[^\"\n]{1,300}\", line \d{1,6}, in (\S{1,80})", said)
    return bool(frames) and frames[-1] == "<module>" and len(frames) > 1


def _quote_error(error: str) -> str:
    """Return an error as a quote: its kind, and its words if they are few."""
    return code(error if len(error) <= _MOST_QUOTED else error.partition(":")[0], _MOST_QUOTED)
