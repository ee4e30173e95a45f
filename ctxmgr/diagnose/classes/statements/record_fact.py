"""The recorded content of a file or a list explains the error: a pointer instead of a file, a page instead of an archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from ctxmgr.diagnose.errors.table import Fact, fact_rows, fill_slots, named_groups, same_answer
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import (
    call_key,
    call_phrase,
    command_of,
    edited_paths,
    list_changes,
    may_change,
    path_of,
    split_command,
)
from ctxmgr.diagnose.evidence.texts import capital, contains_word, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "recordFact"

_MOST_TEXT, _LEAST_NAME, _MOST_CALLS = 8_000, 4, 6
"""Characters of a result that are read, characters of a name that is rare, and failing calls that are looked at."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return the fact that explains why a call fails."""
    return find_fact(evidence, late=False)


def find_fact(evidence: Evidence, *, late: bool) -> Diagnosis | None:
    """Return the fact that explains why a call fails, among the facts that are tried early or late."""
    for entry in evidence.failing_calls[:_MOST_CALLS]:
        for fact in fact_rows():
            error = _match_error(evidence, fact, entry) if fact.late == late and fact.fails else None
            if (found := _diagnose_fact(evidence, fact, error, entry) if error is not None else None) is not None:
                return found
    return None if evidence.failing_calls or late else _find_success_fact(evidence)


def _find_success_fact(evidence: Evidence) -> Diagnosis | None:
    """Return the fact that explains why a successful call says the same again and again."""
    for fact in fact_rows():
        same = same_answer(evidence, partial(_match_error, evidence, fact)) if fact.ok else None
        if same is not None:
            start = f"{call_phrase(same.entry, 80)} says the same {same.times} times"
            if (found := _diagnose_fact(evidence, fact, same.match, same.entry, start)) is not None:
                return found
    return None


def _match_error(evidence: Evidence, fact: Fact, entry: EntryView) -> re.Match[str] | None:
    """Return the place where a call says what a fact explains."""
    if fact.given and not re.search(fact.given, call_input(entry)):
        return None
    return fact.error.search(evidence.text(entry)[-_MOST_TEXT:])


def _diagnose_fact(evidence: Evidence, fact: Fact, error: re.Match[str], entry: EntryView, start: str = "") -> Diagnosis | None:
    """Return the diagnosis of a fact about a call, if another call shows that the fact holds."""
    named = f"{call_input(entry)}\n{evidence.text(entry)[-_MOST_TEXT:]}"
    asked = re.search(fact.given, call_input(entry)) if fact.given else None
    if fact.undone and re.search(fact.undone, call_key(entry)):
        return None
    names = {**(named_groups(asked) if asked else {}), **named_groups(error)}
    for other in evidence.latest:
        if other.id == entry.id or not evidence.has_succeeded(other):
            continue
        # A fact that was undone does not hold any more, whatever showed it before.
        if fact.undone and re.search(fact.undone, call_key(other)):
            return None
        shown = _find_proof(evidence, fact, names, entry, other, named)
        if shown is not None:
            return _explain_fact(evidence, entry, fact, other, *shown, start)
    return None


def _find_proof(
    evidence: Evidence, fact: Fact, names: dict[str, str], entry: EntryView, other: EntryView, named: str
) -> tuple[dict[str, str], str] | None:
    """Return the slots of a fact and the line that shows it, if a call shows it for a name in the failing call."""
    file = next((each for each in _list_subjects(other) if _contains_name(each, named)), "")
    if not _may_show(fact, entry, other, file):
        return None
    pattern = fact.pattern(names)
    made = "\n".join(change.new for change in list_changes(other)) or (call_input(other) if edited_paths(other) else "")
    text = f"{evidence.text(other)[:_MOST_TEXT]}\n{made[:_MOST_TEXT]}"
    for match in pattern.finditer(text):
        groups = {**names, **named_groups(match)}
        if not _is_about_subject(evidence, fact, groups, other, text, named):
            continue
        if fact.about == "source":
            place = groups.get("place") or _find_subject(other, r"\.(?:c|cc|cpp|cxx)$")
            if not place or place.rpartition("/")[2] in named:
                continue
            groups["place"] = place
        groups.setdefault("place", _find_subject(other, r"conftest\.py\Z"))
        groups = {"file": file, **{key: value for key, value in groups.items() if value}}
        return groups, text[text.rfind("\n", 0, match.start()) + 1 :].split("\n")[0]
    return None


def _may_show(fact: Fact, entry: EntryView, other: EntryView, file: str) -> bool:
    """Whether a call is one that can show a fact; ``file`` is the file of it that the failing call names, or ""."""
    command = command_of(other)
    if fact.call and not re.search(fact.call, command):
        return False
    if fact.about == "file":
        return bool(file) and (not fact.files or re.search(fact.files, file) is not None)
    return fact.about != "command" or any(_contains_name(each, command) for each in _list_subjects(entry))


def _is_about_subject(evidence: Evidence, fact: Fact, groups: dict[str, str], other: EntryView, text: str, named: str) -> bool:
    """Whether what a match names is what the fact is about, and its second part is shown where it has one."""
    name = groups.get("name", "")
    if fact.about == "name" and not _contains_name(name, named):
        return False
    if fact.about == "edited" and not _was_changed(evidence, name):
        return False
    return not fact.also or _has_second_part(evidence, fact, groups, other, text)


def _find_subject(entry: EntryView, ending: str) -> str:
    return next((each for each in _list_subjects(entry) if re.search(ending, each)), "")


def _has_second_part(evidence: Evidence, fact: Fact, names: dict[str, str], other: EntryView, text: str) -> bool:
    """Whether another file shows the second part of a fact, in the same answer or in another one."""
    pattern = fact.pattern(names, also=True)
    return len(pattern.findall(text)) > 1 or any(
        each.status == "ok"
        and set(_list_subjects(each)).isdisjoint(_list_subjects(other))
        and pattern.search(evidence.text(each)[:_MOST_TEXT])
        for each in evidence.latest
    )


def _was_changed(evidence: Evidence, path: str) -> bool:
    """Whether a call that changes something names that file."""
    return any(may_change(each) and _contains_name(path, call_input(each)) for each in evidence.latest)


def _list_subjects(entry: EntryView) -> Iterator[str]:
    """Yield the files that a call is about."""
    path = path_of(entry)
    if path:
        yield path
    yield from edited_paths(entry)
    for words in split_command(command_of(entry)):
        for word in words[1:]:
            if not word.startswith("-") and re.search(r"\w\.\w{1,8}$|^[\w./-]+/[\w-]+$", word):
                yield word.rstrip(",;:)'\"")


def _contains_name(path: str, text: str) -> bool:
    name = path.rstrip("/").rpartition("/")[2]
    return len(name) >= _LEAST_NAME and name in text and contains_word(name, text)


def _explain_fact(
    evidence: Evidence, entry: EntryView, fact: Fact, other: EntryView, slots: dict[str, str], line: str, start: str
) -> Diagnosis | None:
    shown = {key: evidence.relative_path(value) if key in ("file", "place") else value for key, value in slots.items()}
    means, step = fill_slots(fact.means, shown), fill_slots(fact.step, shown)
    if (
        means is None
        or step is None
        or not all(plain_name(value) for key, value in shown.items() if key in ("file", "place") and value)
    ):
        return None
    start = start or f"{evidence.describe_failure(entry, 80)}"
    source = evidence.source(other)
    cause = f"{start}, because {means}. {capital(source)} shows it."
    return diagnosis(
        KIND, cause, step, evidence.quote(other, line), evidence.quote(entry), check="The error must be gone or be another.",
        confidence="medium",
    )  # fmt: skip
