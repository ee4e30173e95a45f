"""For failures without a known cause: what differs between the last step that brought something new and the repeated ones."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence

from ctxmgr.detect.step import duration
from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.errors.lines import reasons, telling_line
from ctxmgr.diagnose.errors.table import known_error
from ctxmgr.diagnose.evidence import CHECKS, Evidence, call_input, call_key, clock, may_change, start_clause
from ctxmgr.diagnose.evidence.calls import (
    SILENT,
    command_of,
    edited_paths,
    fields_of,
    flat_text,
    only_looks,
    path_of,
    same_file,
    subject,
    tool_phrase,
)
from ctxmgr.diagnose.evidence.durations import describe_stop, end_of_wait, find_stop, is_wait_field, wait_of
from ctxmgr.diagnose.evidence.files import FOREIGN
from ctxmgr.diagnose.evidence.pages import find_unread_pages
from ctxmgr.diagnose.evidence.texts import capital, code, how_often, join_names, join_texts, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.next_looks import find_look_before_change, find_way_out, is_flaky, next_look, process_look
from ctxmgr.diagnose.related.arguments import describe_unread_page
from ctxmgr.diagnose.related.related_lines import find_names
from ctxmgr.diagnose.related.related_records import LOOK_AGAIN, CauseExplanation, gather_explanation
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "unknown"

_POINTER = lazy_pattern(
    r"File \"([^\"\n]{1,300})\", line (\d{1,6})|(?<![\w/.~@-])((?:/"
    r"|\.{1,2}/)?(?:[\w.@+-]{1,60}/){0,12}[\w@+-][\w.@+-]{0,80}\.[A-Za-z]\w{0,5})(?::(\d{1,6}))?(?![\w/])"
)
_ABSENT = lazy_pattern(
    r"(?i)no such file|not found|(?:does not|doesn't|do not) exist|ENOENT"
    r"|(?:cannot|can't|could not|unable to) (?:open|find|access|read)|missing|nicht gefunden|introuvable|no existe|no encontrad"
)
_FRAME = lazy_pattern(r"\s*File \"")
_CALLED = lazy_pattern(r"(?<![\w.])([A-Za-z_]\w{1,60})\(")
_CHECKING = lazy_pattern(r"(?i)assert|expect|test|self$|raises$|approx$|mock|patch")
_PLAIN = lazy_pattern(r"[\w@+=~%./:,'\" &|-]+")
_PASSED = lazy_pattern(r"(?i)\b(?:pass(?:ed|es)?|ok|okay|success\w*|clean|no (?:issues|errors|problems)|0 (?:errors|failed))\b")
_EMPTY = lazy_pattern(r"(?i)^\W*$|(?<![\w.])0(?![\w.])|\b(?:no|not|none|nothing|empty|fail\w*|error|unable)\b|n't\b")
"""An answer that reads like a failure, so that a reader asks why."""
_LEAST_REPEATS, _MOST_CHANGES, _MOST_REASON, _MOST_RECENT, _MOST_TRIED = 2, 8, 200, 8, 3
_VERBOSE = tuple(
    (lazy_pattern(rf"\b{program}\b(?!.*{given})"), option)
    for program, given, option in (
        ("pytest", r"\s-v", "-x -vv"),
        ("unittest", r"\s-v", "-v"),
        ("curl", r"\s-\w*v", "-v"),
        ("npm", "loglevel", "--loglevel verbose"),
        ("cargo", r"\s-v", "-v"),
        ("go test", r"\s-v", "-v"),
    )
)
"""Options that make a program more verbose, for commands without such an option."""


def contrast(evidence: Evidence) -> Diagnosis | None:
    """Return what differs, and the most informative next look; None if nothing is repeated."""
    with evidence.days_named():
        found = explain_contrast(evidence)
        return None if found is None else found.diagnosis


def explain_contrast(evidence: Evidence) -> CauseExplanation | None:
    """Return the result of `contrast` in parts."""
    if not evidence.loop:
        return None
    # For a stall, describe the call that does not return, whatever failed before.
    if evidence.is_hung:
        # Of several open calls, the sentence about the stall names the oldest.
        return _explain_silence(evidence, (evidence.open_calls or evidence.loop)[-1])
    if evidence.finding is None and evidence.recent[-1].status == "open":
        return _explain_silence(evidence, evidence.recent[-1])
    # Prefer failures: repeated successes may be looks beside them.
    steps = evidence.failing_calls or evidence.repeated_calls or (evidence.loop[-1:] if evidence.finding is not None else [])
    unsteady = _diagnose_flaky_call(evidence) if steps or evidence.finding is not None else None
    steps = steps or _list_unchanged_looks(evidence)
    step = next(iter(steps), None)
    # A flaky call has no cause in the record at all.
    if unsteady is not None or step is None:
        found = unsteady or _diagnose_unread_page(evidence)
        return None if found is None else CauseExplanation(found)
    worked = _find_last_success(evidence, step) if evidence.has_failed(step) else None
    # An error seen once may pass. Still, the meaning of its words says more than an unknown cause.
    known = None
    if worked is None and len(evidence.failing_calls) == 1:
        known = known_error("knownError", evidence, late=False, once=True)
    found = known or (
        _diagnose_changes_since(evidence, step, worked) if worked is not None else _diagnose_never_worked(evidence, step)
    )
    return gather_explanation(evidence, found, steps)


def _diagnose_flaky_call(evidence: Evidence) -> Diagnosis | None:
    """Say that a call sometimes works and sometimes fails, and how to find the difference."""
    for step in evidence.rounds + evidence.failing_calls:
        if is_flaky(evidence, step):
            same = [each for each in evidence.tail if call_key(each) == call_key(step)]
            bad = [each for each in same if evidence.has_failed(each)]
            good = next(each for each in reversed(same) if not evidence.has_failed(each))
            unchanged = " with nothing else changed" if evidence.is_unchanged(same[0], same[-1]) else ""
            cause = (
                f"Not known why: {_describe_call(evidence, step)} failed {len(bad)} of {len(same)} times{unchanged}, and the "
                "record does not say what differs."
            )
            look = (
                "Repeat the part that fails alone, ten times or more, with the output of each run in a file and "
                "a fixed seed and order; then compare a run that"
                " fails with one that works, line by line with their times."
            )
            return diagnosis(
                KIND, cause, look, evidence.quote(bad[-1], telling_line(evidence, bad[-1])), evidence.quote(good),
                check="Change nothing before both runs differ in a line that you can name.", confidence="low",
            )  # fmt: skip
    return None


def _diagnose_unread_page(evidence: Evidence) -> Diagnosis | None:
    """Say that the newest list was not read to its end, in a run that shows no trouble."""
    page = next(find_unread_pages(evidence, evidence.recent[-1].index + 1), None) if evidence.finding is None else None
    if page is None:
        return None
    cause, look, _ = describe_unread_page(evidence, *page)
    return diagnosis(KIND, cause, look, evidence.quote(page[0]), confidence="low")


def _list_unchanged_looks(evidence: Evidence) -> list[EntryView]:
    """Return a repeated look with unchanged answers, the newest one: repeated despite a change in between, or three times.

    A check that passes is left out, because its answer is meant to stay the same.
    """
    for step in reversed(evidence.recent[-_MOST_RECENT:]):
        if step.status != "ok" or (may_change(step) and not command_of(step)) or CHECKS.search(command_of(step)):
            continue
        # Only the newest call counts: an earlier row of equal answers may have ended.
        if step is not evidence.equal_calls(step)[-1] or _PASSED.search(evidence.text(step)) or evidence.has_failed(step):
            continue
        same = _same_answers(evidence, step)
        if len(same) > _LEAST_REPEATS or (len(same) == _LEAST_REPEATS and _changes_between(evidence, same)):
            return [step]
    return []


def _same_answers(evidence: Evidence, step: EntryView) -> list[EntryView]:
    """Return the same calls with the same answer, oldest first. An empty answer equals no other."""
    said = mask_volatile(evidence.text(step))
    return [each for each in evidence.equal_calls(step) if said and mask_volatile(evidence.text(each)) == said]


def _changes_between(evidence: Evidence, same: Sequence[EntryView]) -> list[EntryView]:
    """Return the changes between the first and the last of the same calls."""
    if not same:
        return []
    return [each for each in evidence.changes(same[0].index, same[-1].index) if call_key(each) != call_key(same[0])]


def _explain_silence(evidence: Evidence, step: EntryView) -> CauseExplanation:
    """Say which call has not returned and what other records say of it, or that nothing is in progress."""
    if step.status != "open":
        cause = f"Nothing is recorded after {evidence.source(step)}, which ended {step.status}; no call is open."
        look = "Go on with the next part of the task: nothing has to be waited for."
        return CauseExplanation(diagnosis(KIND, cause, look, evidence.quote(step), confidence="low"))
    end = end_of_wait(evidence, step)
    if end is not None and not end[1]:
        return _explain_own_wait(evidence, step, end[0])
    cause = f"Not known why: {_describe_call(evidence, step)}{start_clause(step)} has not returned"
    cause += "" if end is None else f", although it was told to wait only until{clock(end[0]).removeprefix(' at')}"
    look, check = _choose_look_at_silence(evidence, step)
    quotes = [evidence.quote_call(step)]
    last = evidence.last_progress
    if last is not None:
        quotes.append(evidence.quote(last))
    silence = diagnosis(KIND, f"{cause}.", look, *quotes, check=check, confidence="low")
    found = gather_explanation(evidence, silence, [step])
    if found.related_lines:
        return found
    cause += ", and the record does not say what it waits for."
    if last is not None:
        cause += f" The last step that brought something new was {evidence.source(last)}."
    return CauseExplanation(silence.model_copy(update={"cause": cause}))


def _explain_own_wait(evidence: Evidence, step: EntryView, end: str) -> CauseExplanation:
    """Say that an open call waits as long as it was told, and what decides whether that helps."""
    until = clock(end).removeprefix(" at")
    given = {name: value for name, value in fields_of(step).items() if not is_wait_field(name)}
    awaited = "" if command_of(step) or not given else f", for {code(flat_text(given), 90)}"
    cause = (
        f"{capital(_describe_call(evidence, step))}{start_clause(step)} waits as it was told, for"
        f" {duration(wait_of(step) or 0)}, until{until}{awaited}. That it has not returned before is no fault."
    )
    look = (
        "Find what should bring about what it waits for, and see that this was really begun: asked, sent, started, by whom. If"
        " it was not, or waits for you, do that now: the wait alone brings nothing. Then look once at the state itself."
    )
    found = diagnosis(KIND, cause, look, evidence.quote_call(step), confidence="low")
    return gather_explanation(evidence, found, [step])


def _choose_look_at_silence(evidence: Evidence, step: EntryView) -> tuple[str, str]:
    """Return how to find out what an open call does, and how to check that it is over."""
    if made := edited_paths(step):
        names = join_names(map(evidence.name, made))
        return (
            f"Find out whether it took effect before you do anything again: read {names}; if you make the call again, set a"
            " time limit.",
            "The change must be there once.",
        )
    if only_looks(step):
        return (
            "Make the call again with a time limit: it changes nothing. If it does not return then either, go on without it.",
            "It must return within the limit.",
        )
    look = "Find out whether it took effect before you do anything again; if you make the call again, set a time limit."
    if command_of(step):
        look = process_look(command_of(step))
        look += " Find out whether it took effect before you run it again, and set a time limit then."
    return look, "Look for what it was to produce: a file, a commit, a row."


def _find_last_success(evidence: Evidence, step: EntryView) -> EntryView | None:
    """Return the last success of the same call before the loop, if its answer was different."""
    now = mask_volatile(evidence.text(step))
    for other in evidence.entries_before(min(evidence.onset, step.index)):
        if call_key(other) == call_key(step) and evidence.has_succeeded(other):
            # With the same output, the difference can't be told.
            return other if mask_volatile(evidence.text(other)) != now else None
    return None


def _diagnose_changes_since(evidence: Evidence, step: EntryView, worked: EntryView) -> Diagnosis:
    between = evidence.changes(worked.index, step.index)
    perhaps = evidence.possible_changes(worked, step)
    cause = f"{_describe_unknown_cause(evidence, step)}. It worked{clock(worked.ts)}"
    quotes = [evidence.quote(worked), evidence.quote(step, telling_line(evidence, step))]
    if between:
        first = between[0]
        cause += f"; the first change after that was {evidence.source(first)}, and {len(between)} were made in all."
        quotes.append(evidence.quote_call(first))
        look = f"Look at what {evidence.source(first)} changed, undo it in a copy, and see whether the call works then."
    elif perhaps:
        source = evidence.source(perhaps[0])
        cause += f"; the first call after that which may have changed something was {source}."
        quotes.append(evidence.quote_call(perhaps[0]))
        look = f"Look at what {source} changed, if anything, and see whether the call works without it."
    else:
        cause += ", and no change is recorded since."
        look = "Look at what it depends on outside of this record: a server, a file that somebody else writes, the time."
    return diagnosis(KIND, cause, look, *quotes, check="Run the call once after that, not before.", confidence="low")


def _diagnose_never_worked(evidence: Evidence, step: EntryView) -> Diagnosis:
    telling = telling_line(evidence, step)
    cause = f"{_describe_unknown_cause(evidence, step)}."
    quotes = [evidence.quote(step, telling or None)]
    last = evidence.last_progress
    # It brought something new. Its output is quoted here, but not counted as a record about the failure.
    if last is not None and not may_change(last):
        quotes.append(evidence.quote(last))
    if not evidence.has_failed(step) and (outdated := find_look_before_change(evidence, step)) is not None:
        quotes.insert(1, evidence.quote(outdated))
    return diagnosis(KIND, cause, _choose_look(evidence, step), *quotes, confidence="low")


_LOOK_AT_STOPPED = (
    "Start it once in the background with its output in a file, `COMMAND > out.log 2>&1 < /dev/null &`, and look at that file"
    " twice: while it grows, wait, or set a longer limit; where it stands still, see which part it stands in, and run that part"
    " alone."
)


_REACHES = lazy_pattern(r"\b(?:curl|wget|ssh|scp|rsync|nc|ping|telnet|git (?:clone|fetch|pull|push))\b")
"""Commands of which the other side may not answer, so that more time helps nothing."""


def _choose_look(evidence: Evidence, step: EntryView) -> str:
    """Return the most informative look, or what helps against this kind of failure."""
    command = command_of(step)
    if command and not _REACHES.search(command) and find_stop(evidence, step) is not None:
        return _LOOK_AT_STOPPED
    error_text = " ".join(reasons(evidence, [step], _MOST_REASON))
    # The output of a failing test names files. One that nobody has read says more than another run of the test.
    tested = _find_unread_file(evidence, step) if CHECKS.search(command_of(step)) else None
    if tested is None and (found := next_look(evidence, step, error_text)):
        return found
    pointer = tested or _find_unread_file(evidence, step)
    if pointer is not None:
        path, line = pointer
        where = f" around line {line}" if line else ""
        read = f"Read {code(evidence.name(path), 100)}{where}"
        checked = _find_tested_function(evidence, step, path) if tested else None
        if checked is not None:
            return f"{read}, and the code of {code(checked, 60)} that fails there; you have read neither."
        return f"{read}: the output names it, and you have not looked at it."
    return (
        find_way_out(error_text, general=True, shell=bool(command_of(step)))
        or _find_outdated_lookup(evidence, step)
        or _choose_other_look(step)
    )


def _find_outdated_lookup(evidence: Evidence, step: EntryView) -> str | None:
    """Return a look-up about the same things, made before the last changes and not repeated since.

    Its result may have changed.
    """
    before = [
        entry for entry in evidence.recent
        if entry.index < step.index and entry.agent == step.agent and evidence.has_succeeded(entry)
    ]  # fmt: skip
    names = find_names(call_input(step))
    changes = [entry for entry in before if _may_have_changed(entry)][-_MOST_CHANGES:]
    # After a single change, the last look is still fresh.
    if len(changes) < _LEAST_REPEATS:
        return None
    since = {call_key(entry) for entry in evidence.recent if entry.index > changes[0].index} | {
        call_key(e) for e in evidence.loop
    }
    for entry in reversed(before):
        if (
            entry.index < changes[0].index
            and not _may_have_changed(entry)
            # Thinking and talking look at nothing.
            and entry.action not in SILENT
            and call_key(entry) not in since
            and any(name in f"{call_input(entry)}\n{evidence.text(entry)}" for name in names)
        ):
            source = evidence.source(entry).removeprefix("your ")
            return f"{LOOK_AGAIN}: {source}."
    return None


def _may_have_changed(entry: EntryView) -> bool:
    command = command_of(entry)
    kind = vocabulary.classify(entry.action, "", command)
    return may_change(entry) or (kind == "other" and not command)


def _choose_other_look(step: EntryView) -> str:
    command = command_of(step)
    option = next((option for pattern, option in _VERBOSE if pattern.search(command)), None) if command else None
    if option is not None and len(command) < 160:
        return (
            f"Run it once so that it tells more: add {code(option, 40)}, and look for the first line that is not in the old"
            " output."
        )
    if step.status == "open":
        return "Find out whether it took effect before you do anything again, and set a time limit if you do."
    if not command and not only_looks(step):
        return (
            "Compare each argument with what the record shows of it. If all are right, do not vary them at random: tell the"
            " user what the answer says, and ask how to go on."
        )
    return (
        "Change one thing on which it depends, the one you are least sure of, and run it once; if the outcome is the same, ask"
        " the user."
    )


def _find_unread_file(evidence: Evidence, step: EntryView) -> tuple[str, str | None] | None:
    """Return the last file that the output names and no call of the session has looked at."""
    known = [path for entry in evidence.recent if (path := path_of(entry))]
    shown = "\n".join(command_of(entry) for entry in evidence.recent if entry.status == "ok")
    # The call's own input was looked at already, except by a check, which runs a file without showing it.
    asked = "" if CHECKS.search(command_of(step)) else call_input(step)
    found: tuple[str, str | None] | None = None
    said = evidence.text(step)[-8_000:]
    for match in _POINTER.finditer(said):
        one, first, two, second = (group or "" for group in match.groups())
        path = one or two
        # What an error misses is not there to be read. The number of a line shows that it is.
        line = said[said.rfind("\n", 0, match.start()) + 1 : match.end()] + said[match.end() :].partition("\n")[0]
        if not first and not second and _ABSENT.search(line):
            continue
        name = path.rpartition("/")[2]
        # A path in a library, a compiled file, or a bare word, is no place to look at.
        if (
            not plain_name(path)
            or any(part in path for part in FOREIGN)
            or _COMPILED.search(name)
            or (not one and "/" not in path and not second)
        ):
            continue
        if not any(same_file(path, each) for each in known) and name not in shown and path not in asked:
            found = path, first or second or None
    return found


_COMPILED = lazy_pattern(r"\.(?:o|a|so|obj|lib|dll|dylib|class|jar|pyc|exe|wasm|rlib)$")


def _find_tested_function(evidence: Evidence, step: EntryView, path: str) -> str | None:
    """Return the function that a failing test calls in the line of its traceback; None if its code was seen."""
    lines = evidence.text(step)[-8_000:].split("\n")
    shown = next((lines[place + 1] for place, line in enumerate(lines[:-1]) if path in line and _FRAME.match(line)), "")
    # Assertions and built-ins are not under test.
    names = [name for name in _CALLED.findall(shown) if not _CHECKING.match(name) and not hasattr(builtins, name)]
    if not names:
        return None
    defined = re.compile(rf"\b(?:def|function|func|fn|sub|class)\s+{re.escape(names[0])}\b")
    return None if any(defined.search(evidence.text(entry)) for entry in evidence.recent) else names[0]


def _describe_unknown_cause(evidence: Evidence, step: EntryView) -> str:
    """Return that the cause is not known, and whether anything was changed between the calls."""
    call = _describe_call(evidence, step)
    if (stop := find_stop(evidence, step)) is not None:
        times = how_often(evidence.times(step))
        return f"{capital(call)} {describe_stop(stop)}{times}; whether it hangs or only takes long, the record does not say"
    if evidence.finding is None and not evidence.has_failed(step):
        same = _same_answers(evidence, step)
        if changed := _changes_between(evidence, same):
            changes = f"{len(changed)} changes" if len(changed) > 1 else "change"
            return f"{capital(call)} answers the same as before your last {changes}: what was changed may not be what it uses"
        if len(same) > _LEAST_REPEATS:
            return f"{capital(call)} answered the same {len(same)} times"
    same = _same_answers(evidence, step)
    edits = [each for each in evidence.edits if same and same[0].index < each.index < same[-1].index]
    files = list(dict.fromkeys(evidence.name(path) for each in edits for path in edited_paths(each)))
    if len(edits) >= _LEAST_REPEATS and evidence.has_failed(step) and len(files) <= _LEAST_REPEATS:
        return f"Not known why {call} fails the same way after {len(edits)} changes of {join_names(files)}"
    failed = evidence.has_failed(step)
    answered = not failed and only_looks(step) and _EMPTY.search(evidence.text(step)[:_MOST_REASON]) is None
    ends = f"{capital(call)} answers" if answered else f"Not known why {call} {'fails' if failed else 'answers'}"
    ends += "" if failed else " the same"
    if changed := _changes_between(evidence, same):
        return f"{ends} each time, also after {_list_changes(evidence, changed)}"
    repeated = [each for each in evidence.equal_calls(step) if evidence.finding is None or each.index >= evidence.onset]
    if len(repeated) < _LEAST_REPEATS and failed:
        return ends
    # Of a person, and of a call that may have changed something, nobody can tell that they did not.
    varied = {call_key(each) for each in evidence.recent if each.action == step.action and not command_of(each)}
    if len(repeated) < _LEAST_REPEATS or len(varied) > 1 or not evidence.is_unchanged(repeated[0], repeated[-1]):
        return f"{ends} the same way each time" if failed else f"{ends} each time"
    return f"{ends}: nothing was changed between its runs" if failed else f"{ends} each time: nothing was changed in between"


def _list_changes(evidence: Evidence, changed: Sequence[EntryView]) -> str:
    """Return the latest changes in words, and how many others there are."""
    names = [subject(each, evidence.name) for each in changed]
    names = list(dict.fromkeys(code(name.removesuffix(" call"), 60) if name.endswith(" call") else name for name in names))
    others = len(names) - _MOST_TRIED
    return join_texts([*names[-_MOST_TRIED - (others == 1) :], *([f"{others} other changes"] if others > 1 else [])])


def _describe_call(evidence: Evidence, step: EntryView) -> str:
    command, path = command_of(step), path_of(step)
    if _PLAIN.fullmatch(command):
        return code(command, 56)
    # A search for another pattern in the same folder is another call.
    if path:
        return f"the {subject(step, evidence.name)}"
    # With other arguments the same tool may have worked.
    works = evidence.has_failed(step) and any(
        each.action == step.action and evidence.has_succeeded(each) for each in evidence.recent
    )
    return f"{'this' if works else 'the'} {tool_phrase(step)} call"
