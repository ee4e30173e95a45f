"""Detect a change that is made and undone again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake
from ctxmgr.detect.step import BEGIN_PATCH, Step, excerpt
from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.fingerprints import blur, blur_times
from ctxmgr.detect.text.similarity import PATH_KEYS
from ctxmgr.types.finding import FindingKind

# Fields of the edit tools of real clients: text before, text after.
_PAIRS = (
    ("old_string", "new_string"), ("old_str", "new_str"), ("old", "new"), ("old_text", "new_text"), ("oldString", "newString"),
    ("oldText", "newText"), ("search", "replace"), ("find", "replace"), ("search", "replacement"),
)  # fmt: skip
_CONTENT_FIELDS = ("content", "file_text", "contents", "new_content")
_PATCHES = ("input", "patch", "command", "cmd")
_FILE_LINES = ("*** Update File: ", "*** Add File: ", "*** Delete File: ")
_MAX_FILES = 16
_LEFT_AFTER = 8


class _Change(NamedTuple):
    before: int | None
    after: int
    step: Step


class EditRevertDetector(StepDetector):
    """Follows the changes of each file: how many in a row each undid the one before.

    What lies between (tests, reads) does not matter. One change that is taken back is an experiment, and so is a second
    one; the same change made and taken back twice goes nowhere. Contents that are written whole undo nothing where the same
    content is answered anew each time: then a new revision came of it, as of a state that is switched to and fro.
    """

    kind: FindingKind = "editRevert"
    wake = Wake.CHANGE
    watchful = False

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Return a sighting when the file came back to the same two states often enough."""
        change = _change_of(step)
        if change is None:
            return None
        path, before, after = change
        path = path[:500]
        files: dict[str, tuple[_Change, ...]] = self.state or {}
        old = files.get(path, ())
        if before is None and old:
            before = old[-1].after  # a file that is written as a whole held what was last written to it
        new = _Change(before, after, step)
        undoes = bool(old) and (new.before, new.after) == (old[-1].after, old[-1].before)
        if undoes and change[1] is None and len(old) > 1 and _brings_news(step, old[-2].step):
            undoes = False
        run = (*old, new)[-self._settings.window :] if undoes else (new,)
        kept = files.copy()
        kept.pop(path, None)  # put in again as the newest, so that the first one is the one unused for longest
        kept[path] = run
        if len(kept) > _MAX_FILES:
            del kept[next(iter(kept))]
        self.state = kept
        rounds = self._settings.of(step.action).revert_rounds
        if len(run) < 2 * rounds:
            return None
        steps = tuple(edit.step for edit in run[-2 * rounds :])
        return Sighting(self.kind, ("revert", path), 2, steps, rounds, 0.85, leave=_LEFT_AFTER, facts=(("file", path),))

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say how often the file went to and fro."""
        rounds = self._settings.of(step.action).revert_rounds
        change = _change_of(step)
        if change is None:
            return Opinion(self.kind, excerpt(step), 0, rounds, "it changes no file in a way that could be undone")
        files: dict[str, tuple[_Change, ...]] = self.state or {}
        count = len(files.get(change[0], ())) // 2
        return Opinion(
            self.kind, excerpt(step), count, rounds, "seen" if count >= rounds else "it does not undo the change before it"
        )


def _brings_news(step: Step, before: Step) -> bool:
    """Whether a write was answered differently from the one of the same content before it, but for the clock."""
    one, two = (write.first.finish for write in (step, before))
    if one is None or two is None:
        return False
    texts = [fingerprints.plain_text(answer.output) for answer in (one, two)]
    return texts[0] is not None and texts[1] is not None and _without_times(texts[0]) != _without_times(texts[1])


def _without_times(text: str) -> str:
    return blur_times(blur(text))


def _change_of(step: Step) -> tuple[str, int | None, int] | None:
    """Return file, text before and text after (as hashes) of a change that took place; before is None when unknown."""
    start = step.first.start
    if step.failed or len(step.calls) > 1 or not step.traits & Wake.CHANGE:
        return None
    fields = cast("dict[str, Any]", start.input) if isinstance(start.input, dict) else {}
    texts: list[object] = [start.input, *(fields.get(name) for name in _PATCHES)]
    for text in texts:
        if isinstance(text, str) and BEGIN_PATCH in text:
            return _patch_change(text)
    path = next((fields[key] for key in PATH_KEYS if key in fields), None)
    if not isinstance(path, str) or not path:
        return None
    for one, two in _PAIRS:
        if one in fields and two in fields:
            old, new = fields[one], fields[two]
            if isinstance(old, str) and isinstance(new, str):
                return (path, hash(old), hash(new)) if old != new else None
    for key in _CONTENT_FIELDS:
        content = fields.get(key)
        if isinstance(content, str):
            return path, None, hash(content)
    return None


def _patch_change(text: str) -> tuple[str, int | None, int] | None:
    """Return the change of a patch of one file: its lines before and after, those around them in both."""
    path = ""
    before: list[str] = []
    after: list[str] = []
    for line in text[text.index(BEGIN_PATCH) :].split("\n"):
        if line.startswith(_FILE_LINES):
            if path:  # of several files: undoing one of them undoes no change as a whole
                return None
            path = line.partition(": ")[2].strip()
        elif path and line[:1] in ("-", " ", "+"):
            if line[0] != "+":
                before.append(line[1:])
            if line[0] != "-":
                after.append(line[1:])
    return (path, hash(tuple(before)), hash(tuple(after))) if path and before != after else None
