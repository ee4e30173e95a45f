"""Edits have no effect because the running program was loaded, built or installed before them, and not renewed since."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.errors.table import read_table
from ctxmgr.diagnose.evidence import Evidence, call_input
from ctxmgr.diagnose.evidence.calls import call_phrase, command_of, edited_paths
from ctxmgr.diagnose.evidence.manifests import find_build_command
from ctxmgr.diagnose.evidence.texts import code, find_line, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "editsNotUsed"

_TURN = lazy_pattern(r"\b(?:In|Out|Cell In) ?\[\d+\]|^.{0,20}\bline \d+.{0,5}$|\bpid[ =:]*\d+", re.MULTILINE | re.IGNORECASE)
_LEAST_CALLS, _LEAST_EDITS, _LAST_ENTRIES, _MOST_CHECKS = 2, 2, 40, 6
"""Calls with the same answer, edits between them; entries that are compared, last ones that may be checks."""


class _Holder(NamedTuple):
    """Something that keeps what it once took from a file.

    Attributes:
        runs: must match in the call, or in another one since the first edit; it shows that this holds the file.
        edited: matches the files that it keeps.
        shown: must also match in the record, "" for nothing; its group `name` is shown.
        renews: matches a call that takes in the edits; there must be none after the first edit.
        keeps: follows "because"; ``{file}`` is the edited file, ``{name}`` the match of `shown`.
        step: what renews it.
    """

    runs: str
    edited: str
    shown: str
    renews: str
    keeps: str
    step: str


@cache
def _load_holders() -> tuple[_Holder, ...]:
    """Return the holders in the order of the table, which has those with more conditions first."""
    return tuple(_Holder(**row) for row in read_table("holder"))


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what keeps the old state, if a call has the same answer before and after several edits."""
    found = (_diagnose_holder(evidence, *each) for each in unaffected_calls(evidence))
    return next((each for each in found if each is not None), None)


def unaffected_calls(evidence: Evidence) -> Iterator[tuple[EntryView, list[EntryView], list[EntryView]]]:
    """Yield calls with the same answer before and after several edits: the call, the equal ones, and the edits."""
    # A hung call has no answer, so no answer stayed the same.
    if evidence.is_hung:
        return
    last = evidence.recent[-_LAST_ENTRIES:]
    for entry in reversed(last[-_MOST_CHECKS:]):
        # An edit that is refused again and again is no check.
        if entry.status == "open" or edited_paths(entry):
            continue
        outcome = _outcome(evidence, entry)
        same = [each for each in last if _outcome(evidence, each) == outcome and _is_same_call(each, entry)]
        # Edits before the first of the equal answers may be in effect already.
        edits = (
            [each for each in evidence.edits if same[0].index < each.index < same[-1].index]
            if len(same) >= _LEAST_CALLS
            else []
        )
        # All empty answers are equal.
        if len(edits) >= _LEAST_EDITS and outcome.strip():
            yield entry, same, edits


def _outcome(evidence: Evidence, entry: EntryView) -> str:
    return mask_volatile(_TURN.sub("", evidence.text(entry)), ids=True)


def _is_same_call(one: EntryView, other: EntryView) -> bool:
    # A shell command and a call of a tool with the same name differ.
    first, second = command_of(one), command_of(other)
    return one.action == other.action and bool(first) == bool(second) and not edited_paths(one)


def _diagnose_holder(
    evidence: Evidence, entry: EntryView, same: Sequence[EntryView], edits: Sequence[EntryView]
) -> Diagnosis | None:
    path = next(path for each in reversed(edits) for path in edited_paths(each))
    # A call that tells about the statements of the file has read them.
    if path.endswith(".sql") and path.rpartition("/")[2] in evidence.text(entry):
        return None
    first = edits[0].index
    since = [each for each in evidence.recent if each.index > first and each.status != "open"]
    asked = "\n".join([f"{each.action}\n{call_input(each)[:2_000]}" for each in [*since, entry] if not edited_paths(each)])
    for holder in _load_holders():
        # A call has renewed it, so something else keeps the old state.
        if not re.search(holder.runs, asked) or not re.search(holder.edited, path) or re.search(holder.renews, asked):
            continue
        shown = _find_holder_name(evidence, holder, path)
        if shown is None:
            continue
        build, known = find_build_command(evidence, shown[0], entry.index) if "{build}" in holder.step else (None, False)
        # The script that makes it was run, whatever its name.
        if build is not None and re.search(rf"(?:run|make|yarn|pnpm|bun)\b[^\n;&|]* {re.escape(build.split()[-1])}\b", asked):
            continue
        step = holder.step.replace("{build}", code(build, 80) if build else _NO_SCRIPT if known else _USUAL_BUILD)
        return _explain_holder(evidence, entry, same, edits, holder._replace(step=step), path, *shown)
    return None


_USUAL_BUILD = "`npm run build`, or `npx tsc -p .`"
_NO_SCRIPT = "no script of its manifest names it: look for what makes it"


def _find_holder_name(evidence: Evidence, holder: _Holder, path: str) -> tuple[str, EntryView | None] | None:
    """Return the holder's name that the record shows, and where; None if a name is required but not shown."""
    if not holder.shown:
        return "", None
    pattern = re.compile(holder.shown)
    parts = {part.partition(".")[0] for part in path.split("/")}
    for other in evidence.latest:
        for match in pattern.finditer(evidence.text(other)[:20_000]):
            name = match.group("name")
            # Of the installed packages, only that of the edited file counts.
            if plain_name(name) and ("packages/" not in name or name.split("packages/")[-1].split("/")[0] in parts):
                return name, other
    return None


def _explain_holder(
    evidence: Evidence, entry: EntryView, same: Sequence[EntryView], edits: Sequence[EntryView], holder: _Holder, path: str,
    name: str, other: EntryView | None,
) -> Diagnosis:  # fmt: skip
    file = evidence.name(path)
    stem = path.rpartition("/")[2].partition(".")[0]
    slots = {"{file}": code(file, 80), "{stem}": code(stem, 40), "{stem_word}": stem if stem.isidentifier() else "MODULE",
             "{name}": code(name, 90)}  # fmt: skip
    call = call_phrase(entry, 80)
    keeps, step = holder.keeps, holder.step
    for slot, text in slots.items():
        keeps, step = keeps.replace(slot, text), step.replace(slot, text)
    cause = f"{call} answers the same after {len(edits)} edits, {len(same)} times, because {keeps}."
    quotes = [evidence.quote(entry), evidence.quote(edits[-1], path)]
    if other is not None:
        quotes.append(evidence.quote(other, find_line(evidence.text(other), name)))
    return diagnosis(
        KIND, cause, step, *quotes, check="The outcome must change; if it does not, the edits are not the cause.",
        confidence="medium",
    )  # fmt: skip
