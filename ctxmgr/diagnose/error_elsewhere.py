"""The error points at another file than the one that is changed again and again."""

from __future__ import annotations

import re

from ctxmgr.diagnose.calls import changes_of, patched_paths, path_of, same_file, written
from ctxmgr.diagnose.evidence import Evidence, clock
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code, plain_name
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "errorElsewhere"

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
_FOREIGN = (
    "site-packages/",
    "dist-packages/",
    "node_modules/",
    "/usr/lib/",
    "/usr/local/lib/",
    "lib/python3",
    "/rustc/",
    "<frozen",
    "internal/",
)
_LEAST = 2
_FEW = 48


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return where the error lies, when every change of the loop was made elsewhere."""
    changed = _changed(evidence)
    if sum(len(entries) for entries in changed.values()) < _LEAST:
        return None
    for entry in evidence.failing:
        if _edits(entry):
            continue
        edited_before = [each for entries in changed.values() for each in entries if each.index < entry.index]
        if len(edited_before) < _LEAST:
            continue
        found = _judged(evidence, entry, changed)
        if found is not None:
            return found
    return None


def _edits(entry: EntryView) -> list[str]:
    own = path_of(entry)
    return [own] if own and (changes_of(entry) or written(entry) is not None) else patched_paths(entry)


def _changed(evidence: Evidence) -> dict[str, list[EntryView]]:
    """Return the files that were changed with success within the loop, with the calls that did it."""
    found: dict[str, list[EntryView]] = {}
    start, end = (evidence.loop[0].index, evidence.loop[-1].index) if evidence.loop else (0, -1)
    for entry in evidence.recent:
        if start <= entry.index <= end and entry.status == "ok":
            for path in _edits(entry):
                found.setdefault(path, []).append(entry)
    return found


def _judged(evidence: Evidence, entry: EntryView, changed: dict[str, list[EntryView]]) -> Diagnosis | None:
    said = evidence.text(entry)
    frames = [(one or two or three, a or b or c) for one, a, two, b, three, c in _FRAME.findall(said)]
    frames = [(path, line) for path, line in frames if not any(part in path for part in _FOREIGN)]
    causes = [one or other for one, other in _CAUSE.findall(said)]
    if not frames or not causes or "AssertionError" in causes[-1]:
        return None  # an assertion stands in the test; where the fault lies it does not say
    path, line = frames[-1] if 'File "' in said else frames[0]
    named = any(same_file(each, frame) or each.rpartition("/")[2] in said for each in changed for frame, _ in frames)
    if any(same_file(path, each) for each in changed) or (named and not _fails_on_import(said)):
        return None  # a changed file takes part: the fault may be what it passes on
    if not plain_name(path) or any(
        part in path.rpartition("/")[2] for part in ("test_", "_test.", ".test.", ".spec.", "conftest")
    ):
        return None
    edits = [each for entries in changed.values() for each in entries]
    files = ", ".join(code(evidence.name(each), 60) for each in list(changed)[:2])
    name = evidence.name(path)
    cause = (
        f"The error is in {code(name, 80)}, line {line}: {_short(causes[-1].strip())}. Your {len(edits)} changes"
        f" since{clock(edits[0].ts) or ' then'} were all made in {files}."
    )
    cause = cause.replace("since at", "since")
    step = f"Read {code(name, 80)} around line {line} and correct the cause there."
    return diagnosis(
        KIND, cause, step, evidence.quote(entry, said[-500:]), evidence.quote(edits[-1], "\n".join(changed)),
        check="Run the same check again: the error must move or change.",
    )  # fmt: skip


def _fails_on_import(said: str) -> bool:
    """Whether the last frame of a traceback is the body of a module: whoever imports it can't be at fault."""
    frames = re.findall(r"File \"[^\"\n]{1,300}\", line \d{1,6}, in (\S{1,80})", said)
    return bool(frames) and frames[-1] == "<module>" and len(frames) > 1


def _short(error: str) -> str:
    """Return an error as a quote: its kind, and its words where they are few."""
    return code(error if len(error) <= _FEW else error.partition(":")[0], _FEW)
