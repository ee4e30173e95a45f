"""An edit is refused because the text it replaces is not in the file, occurs more than once, or was never read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from ctxmgr.diagnose.classes.edits.line_ends import find_line_ends, find_place, list_single_changes, takes_line_breaks
from ctxmgr.diagnose.evidence import Evidence, call_input, call_key, clock
from ctxmgr.diagnose.evidence.calls import (
    Change,
    command_of,
    diff_changes,
    edited_paths,
    list_changes,
    only_looks,
    patch_changes,
    patched_paths,
    path_of,
    same_file,
    split_command,
    tool_phrase,
)
from ctxmgr.diagnose.evidence.files import REWRITES, Content
from ctxmgr.diagnose.evidence.numbered_lines import read_numbered_lines
from ctxmgr.diagnose.evidence.texts import ORDERS, capital, code, first_group, quote_match
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Confidence, Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "wrongEditTarget"

_REFUSED = lazy_pattern(
    r"not found in|no match|did not match|does not match|not match|could not find|couldn't find|cannot find|can't find"
    r"|failed to find|failed to (?:apply|verify)|verification failed|no (?:replacement|occurrence|changes?)|0 occurrences"
    r"|did not appear|does not (?:appear|exist in|contain)|must match|not unique|multiple (?:matches|occurrences)|matches of"
    r"|occurrences? (?:found|of)|does not apply|patch failed|hunk #?\d+ failed|while searching for|unable to "
    r"(?:find|locate|apply)|no such (?:text|line|block)"
    r"|isn't in|is not in|not present in|expected \d+ (?:occurrence|replacement)s?,? but found",
    re.IGNORECASE,
)
_REPEATED = lazy_pattern(
    r"\bfound (?![01]\b)(\d{1,6})\b|\b(?![01]\b)(\d{1,6}) (?:matches|occurrences)\b"
    r"|\b(?:appears|occurs|stands|exists) (?![01]\b)(\d{1,6}) times\b|not unique|must be unique"
    r"|multiple (?:matches|occurrences|times)|more than (?:one|once)",
    re.IGNORECASE,
)
_ABSENT = lazy_pattern(
    r"not found|no match|(?:does|did) not match|did not appear|not present"
    r"|(?:could not|couldn't|cannot|can't|failed to|unable to) find|\b0 (?:matches|occurrences)",
    re.IGNORECASE,
)
_UNREAD = lazy_pattern(
    r"(?:has|have) not been read|must be read|read (?:the file|it) (?:first|before)|modified since", re.IGNORECASE
)
_PATCH = lazy_pattern(r"\b(?:git (?:-\S+ )*(?:apply|am)|patch)\b[^\n|;&]{0,200}?(\S{1,200}\.(?:patch|diff))\b")
_MOST_PLACES, _MOST_ABOVE, _FEW_LINES = 3, 30, 3
"""Places of a repeated text that are shown, lines above one that are searched, lines of an output that show too little."""
_LEAST_ALIKE, _NEARLY_EQUAL = 0.55, 0.9
"""Similarity of the line that was meant, and of one that is likelier than the whole text in another file."""
_MOST_LINES = 4_000
_MOST_LINE, _LEAST_NEW, _LEAST_OLD, _MOST_FILES = 400, 8, 12, 12
"""Characters of a line that are compared, of a new and an old text that are nowhere by chance; files searched for the old."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return why an edit is refused."""
    refused = [
        (entry, path, change) for entry in evidence.failing_calls
        for path, change in _list_requested_changes(evidence, entry)[:20] if _REFUSED.search(evidence.text(entry)[:4_000])
    ]  # fmt: skip
    for entry, path, change in refused:
        others = [other for _, named, other in refused if same_file(named, path)]
        if (found := _diagnose_line_ends(evidence, entry, path, change, others)) is not None:
            return found
    for entry in evidence.failing_calls:
        for path, change in _list_requested_changes(evidence, entry)[:20]:
            if (found := _diagnose_edit(evidence, entry, path, change)) is not None:
                return found
    return next(
        (found for entry in evidence.rounds[:6] if (found := _diagnose_substitution(evidence, entry)) is not None), None
    )


# `sed -i 's/old/new/' FILE`, with any of the usual separators instead of the slash
_SED = lazy_pattern(
    r"\bsed\b[^|;&\n]{0,60}?\s-i\S*(?: -[Ee])? (?:-e )?(['\"])s([/|#,@])((?:\\.|(?!\2).){2,200})\2((?:\\."
    r"|(?!\2).){0,200})\2\w*\1 +([\w./@-]{2,200})"
)


def _diagnose_substitution(evidence: Evidence, entry: EntryView) -> Diagnosis | None:
    """Say that the pattern of a substitution is not in the file, so that it silently changes nothing."""
    match = _SED.search(command_of(entry))
    # A single substitution without effect may be a precaution.
    if match is None or evidence.times(entry) < _LEAST_TIMES:
        return None
    old, path = re.sub(r"\\([^\w\s])", r"\1", match.group(3)), match.group(5)
    known = evidence.last_content(path, entry.index)
    # The matches of a real regular expression can't be told from its text.
    if known is None or re.search(r"[*+^$\\(\[{?]|\.\*", match.group(3).replace("\\.", "")) or old in known.text:
        return None
    number = _find_nearest_line_number(old, known)
    if number is None:
        return None
    line = known.lines[number - known.first]
    name = evidence.name(path)
    cause = (
        f"{code(command_of(entry), 90)} changes nothing ({evidence.times(entry)} times): its pattern {code(old)} is "
        f"not in {name}. Line {number} is {code(line)}."
    )
    step = (
        f"Make the change with line {number} of {name}, exactly as it stands there{_describe_line(line)}, as the pattern, or"
        " with your edit tool."
    )
    return _build_diagnosis(evidence, entry, known, cause, step, f"Read {name} after the change: line {number} must show it.")


_LEAST_TIMES = 2


def _list_requested_changes(evidence: Evidence, entry: EntryView) -> list[tuple[str, Change]]:
    own = path_of(entry)
    named = _PATCH.search(command_of(entry))
    # The text of a patch file says more than the call that applies it.
    if named is not None and (patch := evidence.last_content(named.group(1), entry.index)) is not None:
        return diff_changes(patch.text)
    if own is not None:
        return [(own, change) for change in list_changes(entry)]
    return [(path, change) for path in patched_paths(entry) for change in patch_changes(entry, path)]


def _diagnose_edit(evidence: Evidence, entry: EntryView, path: str, change: Change) -> Diagnosis | None:
    said = evidence.text(entry)[:4_000]
    if _UNREAD.search(said):
        return _diagnose_missing_reread(evidence, entry, path)
    # A tool may refuse for another reason than the text. An empty text is an insertion.
    if not _REFUSED.search(said) or not change.old.strip():
        return None
    if (found := _diagnose_unseen_part(evidence, entry, path, change)) is not None:
        return found
    known = evidence.last_content(path, entry.index)
    places = [] if known is None else known.find_line_numbers(change.old.strip("\n"))
    # The tool has looked into the file itself, so it is right where what was read of it shows another state.
    if len(places) <= 1 and (repeated := _REPEATED.search(said)) and not _ABSENT.search(said):
        return _explain_repeated_text(evidence, entry, path, change, repeated, known)
    # Without the file's content, only an output that shows a part of it can help.
    if known is None:
        return _diagnose_partial_view(evidence, entry, path, change) or _diagnose_unread_file(evidence, entry, path, change)
    # This comes first: the text occurs, so no line is missing.
    if len(places) > 1:
        return _diagnose_repeated_text(evidence, entry, known, places, change)
    if places:
        return _diagnose_rewritten_file(evidence, entry, known, path, change)
    return _diagnose_absent_text(evidence, entry, known, path, change)


def _diagnose_absent_text(evidence: Evidence, entry: EntryView, known: Content, path: str, change: Change) -> Diagnosis | None:
    """Say what stands in the place of a text that the file does not have."""
    old, new = change.old.strip("\n"), change.new.strip("\n")
    # An edit that was made already fails because its own result is there. A short text is there by chance.
    if new.strip() and len(new) > _LEAST_NEW and new in known.text and old not in new:
        return _diagnose_finished_edit(evidence, entry, known, change)
    missing = _find_missing_line(old, known)
    number = _find_nearest_line_number(missing, known)
    other = _find_other_file(evidence, path, old, entry)
    # A nearly equal line of this file is likelier than the whole text in another one.
    if other is not None and (number is None or _similarity(missing, known.lines[number - known.first]) < _NEARLY_EQUAL):
        return _diagnose_other_file(evidence, entry, other, change, path)
    if number is None:
        return _diagnose_missing_text(evidence, entry, known, missing, change)
    return _diagnose_different_line(evidence, entry, known, missing, number, change)


def _diagnose_line_ends(
    evidence: Evidence, entry: EntryView, path: str, change: Change, others: list[Change]
) -> Diagnosis | None:
    """Say that the lines of the text stand in the file, but end in another way there."""
    known = evidence.last_content(path, entry.index)
    number = None if known is None else find_place(change.old, known)
    if known is None or number is None or takes_line_breaks(evidence, entry, path):
        return None
    ends = find_line_ends(evidence, path, entry.index)
    if ends is None:
        return None
    name, field = evidence.name(path), change.name.removeprefix("its ")
    blanks = "" if known.find_line_numbers(change.old.strip("\n")) else ", apart from blanks"
    cause = (
        f"{_describe_edit(evidence, entry, path)}: the lines of {change.name} stand there from line {number} on{blanks}, but "
        f"each line of the file ends in CRLF ({code(ends.shown)} in {evidence.source(ends.entry)}), and those of {field} in LF."
    )
    lines = list_single_changes(evidence, others, entry.index)
    shown = ", and ".join(f"{code(old, _LONGEST_SHOWN)} by {code(new, _LONGEST_SHOWN)}" for old, new in lines)
    step = (
        f"Replace one line at a time, without a line break in the old and in the new text{f': {shown}' if shown else ''}. "
        "Lines that you add must end in CRLF too (`\\r\\n`)."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(ends.entry), evidence.quote(entry),
        check=f"`git diff` must show only the lines of {name} that you meant to change.",
        confidence="medium" if known.doubtful else "high",
    )  # fmt: skip


# More than `REWRITES`: these may have changed the file. That is enough if the edit no longer fits.
_MAY_REWRITE = lazy_pattern(
    r"\b(?:ruff|yapf|biome|standard|dprint|shfmt|sqlfluff|pre-commit|fmt|format|generate|codegen|protoc|openapi)\b"
    r"|--fix\b|--write\b|\bsed -\w*i"
)


def _diagnose_rewritten_file(
    evidence: Evidence, entry: EntryView, known: Content, path: str, change: Change
) -> Diagnosis | None:
    """Say that the file was read before something else rewrote it; None if nothing else did."""
    # A write between the read and the edit makes the read outdated.
    between = [
        each for each in evidence.recent
        if known.entry.index < each.index < entry.index and each.status == "ok" and not only_looks(each)
        and (REWRITES.search(command_of(each)) or _MAY_REWRITE.search(command_of(each))
             or (each.agent != entry.agent and any(same_file(path, one) for one in edited_paths(each))))
    ]  # fmt: skip
    if not between:
        return None
    name, source = evidence.name(path), evidence.source(between[-1])
    lines = [line.strip() for line in change.old.split("\n") if line.strip()]
    removed = {line[1:].strip() for each in evidence.recent if each.index > known.entry.index
               for line in evidence.text(each).split("\n") if line.startswith("-")}  # fmt: skip
    gone = next((line for line in lines if line in removed), lines[0])
    cause = (
        f"{_describe_edit(evidence, entry, path)}: {_absence_text(gone, change)} any more. "
        f"You read it{clock(known.entry.ts)}, and {source} came after that and may have rewritten it (quotes, blanks, order)."
    )
    step = f"Read {name} again as it is now, and take the text of the edit from there."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry), evidence.quote(between[-1], command_of(between[-1]) or path),
        check=f"Read {name} after the change: it must show it.", confidence="medium",
    )  # fmt: skip


def _describe_edit(evidence: Evidence, entry: EntryView, path: str) -> str:
    times = evidence.times(entry)
    # Tries with another old text count in the headline, and would make this number puzzling.
    often = f" ({times} times)" if times > 1 and times == len(evidence.equal_failures(entry)) else ""
    what = "Your patch" if command_of(entry) else f"The {tool_phrase(entry)}"
    return f"{what} of {evidence.name(path)} can't work{often}"


def _absence_text(missing: str, change: Change) -> str:
    return f"{change.name} {code(missing)} is not in the file"


def _diagnose_different_line(
    evidence: Evidence, entry: EntryView, known: Content, missing: str, number: int, change: Change
) -> Diagnosis:
    line = known.lines[number - known.first]
    blanks = "".join(line.split()) == "".join(missing.split())
    case = line.casefold() == missing.casefold()
    how = " (only blanks or indentation differ)" if blanks else " (only capitals differ)" if case else ""
    name = evidence.name(known.path)
    cause = (
        f"{_describe_edit(evidence, entry, known.path)}: {_absence_text(missing, change)}. Line {number} is {code(line)}{how}."
    )
    if known.edits:
        cause += f" Your own later edits changed the file after you read it{_describe_read_time(evidence, known)}."
    field = change.name.removeprefix("its ")
    first = f"Read {name} around line {number} again. Then make" if known.doubtful else "Make"
    step = (
        f"{first} the edit with line {number} of {name}, exactly as it stands there{_describe_line(line)}, as {field}, and"
        " keep your new text."
    )
    return _build_diagnosis(
        evidence, entry, known, cause, step,
        f"Read {name} after the edit: line {number} must show the change; then run the check.",
    )  # fmt: skip


def _describe_line(line: str) -> str:
    """Return the line to copy in brackets, for a sentence; "" if it may be an order or is too long."""
    return "" if ORDERS.search(line) or len(line) > _LONGEST_SHOWN else f" ({code(line.strip(), _LONGEST_SHOWN)})"


_LONGEST_SHOWN = 160


def _diagnose_missing_text(
    evidence: Evidence, entry: EntryView, known: Content, missing: str, change: Change
) -> Diagnosis | None:
    # The text may be in lines that are not known.
    if not known.whole or known.doubtful:
        return None
    cause = f"{_describe_edit(evidence, entry, known.path)}: {_absence_text(missing, change)}, and no line of it comes close."
    name = evidence.name(known.path)
    step = f"Search the project for a part of {code(missing.strip(), 60)} to find the file that holds it, and edit that one."
    return _build_diagnosis(
        evidence, entry, known, cause, step, f"If no file holds it, {name} has to get it as a new line.", "medium"
    )


_STEP_REPEATED = (
    "Add the line above or below the place you mean to the text to replace, so that it is unique and occurs only once; use an "
    "option such as `replace_all` only if you mean all of them."
)


def _explain_repeated_text(
    evidence: Evidence, entry: EntryView, path: str, change: Change, repeated: re.Match[str], known: Content | None
) -> Diagnosis:
    """Say that the text stands in the file more than once, as the tool found that was to replace it."""
    first = next((line for line in change.old.split("\n") if line.strip()), change.old)
    often = f"{count} times" if (count := first_group(repeated)) else "more than once"
    cause = f"{_describe_edit(evidence, entry, path)}: the tool found {change.name} {code(first)} {often} in the file."
    unread = known is None or len(known.find_line_numbers(change.old.strip("\n"))) == 0
    read = f"Read {evidence.name(path)} as it is now. " if unread else ""
    return diagnosis(
        KIND, cause, f"{read}{_STEP_REPEATED}", evidence.quote(entry), check="The edit must report that the file was changed."
    )


def _diagnose_repeated_text(
    evidence: Evidence, entry: EntryView, known: Content, places: list[int], change: Change
) -> Diagnosis:
    first = change.old.strip("\n").split("\n")[0]
    numbers = ", ".join(map(str, places[:6]))
    told = first_group(_REPEATED.search(evidence.text(entry)[:4_000]))
    # A line may have it twice, and a part of the file may not have been read.
    others = "" if told in ("", str(len(places))) else ", among others"
    cause = (
        f"{_describe_edit(evidence, entry, known.path)}: {code(first)} stands {told or len(places)} times in the file{others}, "
        f"at lines {numbers}."
    ).replace(", among others, at", ", among others at")
    step = _STEP_REPEATED
    above = [(place, line) for place in places[:_MOST_PLACES] if (line := _quote_line_above(known, place, places))]
    if above:
        step += f" {'; '.join(f'line {place} is below {line}' for place, line in above)}.".replace(" line", " Line", 1)
    return _build_diagnosis(evidence, entry, known, cause, step, "The edit must report one replacement.")


def _quote_line_above(known: Content, place: int, places: list[int]) -> str:
    """Return the nearest line above a position that no other position has above it, as a quote; else the nearest one, or ""."""
    above = known.lines[: place - known.first][-_MOST_ABOVE:]
    lines = [(distance, line) for distance, line in enumerate(reversed(above), 1) if line.strip()]
    others = [known.lines[: other - known.first] for other in places if other != place]
    own = (line for distance, line in lines if not any(line in other[-distance:][:1] for other in others))
    line = next(own, lines[0][1] if lines else "")
    return code(line.strip(), 60) if line and not ORDERS.search(line) else ""


def _diagnose_finished_edit(evidence: Evidence, entry: EntryView, known: Content, change: Change) -> Diagnosis:
    new = change.new.strip("\n")
    number = known.find_line_numbers(new)[0]
    line = next((line for line in new.split("\n") if line.strip()), new)
    cause = (
        f"{_describe_edit(evidence, entry, known.path)}: the change is already there. Line {number} begins with "
        f"{code(line.strip())},"
        " and the old text is gone."
    )
    step = f"Leave {evidence.name(known.path)} as it is and go on with what comes after this edit."
    return _build_diagnosis(evidence, entry, known, cause, step, "Run the check that the edit was for.")


def _diagnose_other_file(evidence: Evidence, entry: EntryView, other: Content, change: Change, path: str) -> Diagnosis:
    first = next((line for line in change.old.split("\n") if line.strip()), change.old)
    number = other.find_line_numbers(change.old.strip("\n"))[0]
    name = evidence.name(other.path)
    cause = (
        f"{_describe_edit(evidence, entry, path)}: {code(first)} is not in {evidence.name(path)}. It stands in {name}, "
        f"line {number}."
    )
    step = f"Make this edit in {name} instead."
    return _build_diagnosis(evidence, entry, other, cause, step, f"Read {name} around line {number} after the edit.")


_PARTLY = lazy_pattern(
    r"(?i:lines? (\d{1,7}) ?(?:-|–|to) ?(\d{1,7}) of (\d{1,7})|truncated|\[\.\.\.|… ?\d+ lines"
    r"|\d+ (?:more )?lines (?:omitted|not shown)|content was cut)"
)
# The format of `grep -n`: `a.py:12:text` for a hit, `12-text` for a line around one
_AT_LINE = lazy_pattern(r"^(?:([^\s:]{1,200}):)?(\d{1,7})[:-](.*)$", re.MULTILINE)


def _diagnose_unseen_part(evidence: Evidence, entry: EntryView, path: str, change: Change) -> Diagnosis | None:
    """Say that the text is in a part of the file that no read has shown: a search has its line, but the reads are cut."""
    first = next((line.strip() for line in change.old.split("\n") if len(line.strip()) >= _LEAST_SEARCHED), "")
    name = path.rpartition("/")[2]
    looks = [each for each in evidence.entries_before(entry.index) if each.status == "ok" and not edited_paths(each)]
    views = [each for each in looks if same_file(path_of(each) or "", path) or name in command_of(each).split(" ")[-1]]
    cuts = [match for each in views for match in _PARTLY.finditer(evidence.text(each)[:600])]
    cut = max(cuts, key=lambda match: match.group(1) is not None, default=None)
    # A read shows the text, so the edit fails for another reason.
    if not first or cut is None or any(first in evidence.text(each) for each in views if not _is_search(each)):
        return None
    for other in looks:
        if name not in call_input(other) and name not in evidence.text(other):
            continue
        for match in _AT_LINE.finditer(evidence.text(other)):
            # Search results of other files may hold the same line.
            if match.group(3).strip() == first and (not match.group(1) or same_file(match.group(1), path)):
                return _explain_unseen_part(evidence, entry, other, path, first, match.group(2), cut)
    return None


def _is_search(entry: EntryView) -> bool:
    return (
        any(words[0] in ("grep", "rg", "ag", "ack") for words in split_command(command_of(entry)))
        or "grep" in entry.action.lower()
    )


def _explain_unseen_part(
    evidence: Evidence, entry: EntryView, other: EntryView, path: str, first: str, number: str, cut: re.Match[str]
) -> Diagnosis:
    shown = f"lines {cut.group(1)} to {cut.group(2)} of {cut.group(3)}" if cut.group(1) else "a part (truncated)"
    name = evidence.name(path)
    cause = (
        f"{_describe_edit(evidence, entry, path)}: you do not know the text that you replace. "
        f"{capital(evidence.source(other))} has "
        f"{code(first)} on line {number} of {name}; your readings show {shown} only."
    )
    step = (
        f"Read {name} from line {number} on (`offset` or `start_line` {number} with a limit, or `sed -n '{number},+40p'`),"
        " and take the text of the edit from there."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(other), evidence.quote(entry), check=f"Line {number} must stand in what you read."
    )


_LEAST_SEARCHED = 8
"""Characters of a line that is searched for in the results of a search."""


def _diagnose_partial_view(evidence: Evidence, entry: EntryView, path: str, change: Change) -> Diagnosis | None:
    """Say which line is nearest in an output that shows the file among other things."""
    name = path.rpartition("/")[2]
    for other in evidence.entries_before(entry.index):
        if not evidence.has_succeeded(other) or (name not in call_input(other) and name not in evidence.text(other)):
            continue
        if "\n@@" in evidence.text(other):
            continue  # a diff shows what it would replace, not what is there
        lines = tuple(line for line in evidence.text(other).split("\n") if line.strip())
        lines = view.lines if (view := read_numbered_lines(lines)) is not None else lines
        shown = Content(path, lines, 1, False, other)
        missing = _find_missing_line(change.old, shown)
        if missing in lines:
            return None
        number = _find_nearest_line_number(missing, shown)
        # All of a few lines may be unlike, because the rest is not shown.
        if number is None or len(lines) < _FEW_LINES:
            continue
        line = lines[number - 1]
        source = evidence.source(other)
        cause = (
            f"{_describe_edit(evidence, entry, path)}: {_absence_text(missing, change)}. {capital(source)} shows "
            f"{code(line)} in its place."
        )
        step = (
            f"Read {evidence.name(path)} again, and make the edit with {code(line)}, exactly as it stands there, and "
            "keep your new value."
        )
        return _build_diagnosis(
            evidence, entry, shown, cause, step, f"Read {evidence.name(path)} after the edit; then run the check."
        )
    return None


def _diagnose_unread_file(evidence: Evidence, entry: EntryView, path: str, change: Change) -> Diagnosis | None:
    if not evidence.recent or evidence.recent[0].index > 0:
        return None  # it may have been read before the entries at hand
    first = next((line for line in change.old.split("\n") if line.strip()), change.old)
    name = evidence.name(path)
    absence = _absence_text(first, change)
    cause = f"{_describe_edit(evidence, entry, path)}: {absence}, and you have not read {name} in this session."
    quotes = [evidence.quote(entry)]
    for commit, other in _list_commits(evidence, entry, path):
        cause += f" {capital(evidence.source(other))} has a commit of it that may have changed that: {code(commit, 110)}."
        quotes.append(evidence.quote(other, commit))
        break
    step = f"Read {name}, and copy the text to replace from what it shows."
    if command_of(entry):
        step = f"Read {name} as it is now and make the change of the patch by hand there; no option of the tool makes it fit."
    return diagnosis(KIND, cause, step, *quotes, check="The edit must report that the file was changed.", confidence="medium")


# A line of `git log --oneline`, also with `--graph` and the names of branches
_COMMIT = lazy_pattern(r"^[\s*|\\/]*[0-9a-f]{7,40} (?:\([^)\n]{1,80}\) )?(\S[^\n]{4,200})$", re.MULTILINE)


def _list_commits(evidence: Evidence, entry: EntryView, path: str) -> Iterator[tuple[str, EntryView]]:
    """Yield the commits of the log whose subject names a file and says more, the newest first."""
    stem = path.rpartition("/")[2].partition(".")[0]
    for other in evidence.entries_before(entry.index):
        if "git" in command_of(other) and " log" in command_of(other):
            # The words of a subject may be a stranger's order.
            for subject in _COMMIT.findall(evidence.text(other)):
                if re.search(rf"\b{re.escape(stem)}\b", subject) and _CHANGES.search(subject) and not ORDERS.search(subject):
                    yield subject, other


_CHANGES = lazy_pattern(
    r"(?i:renam|clearer|move|refactor|rewrit|replac|split|reformat|tidy|clean|restructur|convert|migrat|names?\b)"
)


def _diagnose_missing_reread(evidence: Evidence, entry: EntryView, path: str) -> Diagnosis | None:
    known = evidence.last_content(path, entry.index)
    later = [e for e in evidence.recent if known is not None and known.entry.index < e.index < entry.index]
    name = evidence.name(path)
    line = next((each for each in evidence.text(entry).split("\n") if _UNREAD.search(each)), "")
    # A read right before the edit should have sufficed, so the refusal has another reason.
    if any(call_key(each) == call_key(entry) for each in later) or known is None or later:
        cause = f"The {tool_phrase(entry)} of {name} is refused until you read the file anew: {quote_match(_UNREAD, line)}."
        step = f"Read {name} now, in the very next call, and then make the edit from what it shows."
        return diagnosis(
            KIND, cause, step, evidence.quote(entry), check="The edit must report that the file was changed.",
            confidence="high",
        )  # fmt: skip
    return None


def _find_missing_line(old: str, known: Content) -> str:
    """Return the first line of the text to replace that the file does not have; else its first line."""
    lines = [line for line in old.split("\n")[:200] if line.strip()]
    have = set(known.lines)
    return next((line for line in lines if line not in have), lines[0] if lines else old)


def _find_nearest_line_number(missing: str, known: Content) -> int | None:
    line_text = missing.strip()[:_MOST_LINE]
    best, place = _LEAST_ALIKE, None
    folded = "".join(line_text.split()).casefold()
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(line_text)
    for number, line in enumerate(known.lines[:_MOST_LINES], known.first):
        stripped = line.strip()[:_MOST_LINE]
        if not stripped:
            continue
        # A line that differs only in spaces or capitals is the intended line.
        if "".join(stripped.split()).casefold() == folded:
            return number
        matcher.set_seq1(stripped)
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, place = ratio, number
    return place


def _similarity(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.strip()[:_MOST_LINE], other.strip()[:_MOST_LINE], autojunk=False).ratio()


def _find_other_file(evidence: Evidence, path: str, old: str, entry: EntryView) -> Content | None:
    """Return another file that was read and holds the text."""
    # A short text occurs in many files.
    if len(old.strip()) < _LEAST_OLD:
        return None
    paths: set[str] = set()
    for other in evidence.entries_before(entry.index):
        named = path_of(other)
        if named is None or named in paths or same_file(named, path):
            continue
        paths.add(named)
        known = evidence.last_content(named, entry.index) if len(paths) <= _MOST_FILES else None
        if known is not None and known.find_line_numbers(old):
            return known
    return None


def _describe_read_time(evidence: Evidence, known: Content) -> str:
    words = evidence.source(known.entry)
    return words[words.rfind(" at ") :] if " at " in words else ""


def _build_diagnosis(
    evidence: Evidence, entry: EntryView, known: Content, cause: str, step: str, check: str, confidence: Confidence = "high"
) -> Diagnosis:
    sure = "medium" if known.doubtful else confidence
    shown = evidence.quote(known.entry, known.text[:600])
    return diagnosis(KIND, cause, step, evidence.quote(entry), shown, check=check, confidence=sure)
