"""Detect calls that work but bring nothing: empty answers, ledgers without progress, waiting, and changes made and undone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.detect.interface import Opinion, Sighting, StepDetector, Wake, asks_for_pending, is_patient
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.step import BEGIN_PATCH, Call, ObservedStep, excerpt
from ctxmgr.detect.text import fingerprints
from ctxmgr.detect.text.comparison import COMMAND_KEYS, PATH_KEYS, call_target
from ctxmgr.detect.text.fingerprints import mask_times, mask_volatile
from ctxmgr.detect.text.vocabulary import is_wall
from ctxmgr.log.fast_json import json_object
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import FindingKind, Observation

# A short answer that says "nothing", "none" or "ok", or JSON with only empty, zero or false members.
_BARREN = lazy_pattern(
    r"^\W*(?:(?:no|0|zero|nothing|none|null|empty|not found|ok|done|success\w*|true|false)\b.{0,60})?\W*$",
    re.IGNORECASE | re.DOTALL,
)
_NONE_IN_JSON = lazy_pattern(r"\s*\{(?:\s*\"[^\"]{1,60}\"\s*:\s*(?:0|\[\s*\]|\{\s*\}|null|false|true|\"\")\s*,?)+\s*\}\s*$")

_TELLING_WORD = lazy_pattern(r"\w{4,}")


class _Run(NamedTuple):
    steps: tuple[ObservedStep, ...]
    answer: tuple[int | None, ...]


class StagnationDetector(StepDetector):
    """Counts steps in a row with one action, one answer and different questions.

    Only questions count, because many different changes normally get the same receipt. More questions are needed if the
    answer is "none", which is news about each of them, or if they are about different things.
    """

    kind: FindingKind = "stagnation"
    wake = Wake.ECHO

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the answer has not changed for long enough."""
        self.state = self._run(step, past)
        if self.state is None:
            return None
        run: _Run = self.state
        rounds = self._settings.for_action(step.action).stagnation_rounds
        # Half of the questions must differ. A few repeated ones are a cycle or an alternation.
        if len(run.steps) < rounds or len({asked.query for asked in run.steps[-rounds:]}) < rounds // 2:
            return None
        needed = _round_limit(run.steps, self._settings.for_action(step.action))
        proved = len(run.steps) >= needed
        if not proved and _share_word(run.steps[-rounds:]):
            needed = rounds + rounds // 3  # other words for one question are a suspicion
        if len({asked.query for asked in run.steps[-needed:]}) < max(3, needed // 2):
            return None
        if len(run.steps) < needed:
            return None
        about = f"{step.action} {call_target(step.first.start)}".strip()
        facts = (
            ("about", about),
            ("distinctInputs", len({asked.query for asked in run.steps})),
        )
        return Sighting(
            self.kind, (step.action, run.answer), 1, run.steps[-needed:], needed, 0.75 if proved else 0.5, facts=facts,
            severity="loop" if proved else "warn",
        )  # fmt: skip

    def _run(self, step: ObservedStep, past: Sequence[ObservedStep]) -> _Run | None:
        last = past[-1] if past else None
        settings = self._settings.for_action(step.action)
        if last is None or last.action != step.action or step.failed or last.failed or len(step.calls) > 1:
            return None
        if not _is_asking(step, settings) or step.is_pending or is_patient(last, step, settings):
            return None
        answer = step.results()
        if None in answer:
            return None
        if answer != last.results():
            # One page that is shown for different questions, with another time or id on it, answers none of them.
            if not step.shows_the_same(last):
                return None
            answer = (step.view(),)
        old: _Run | None = self.state
        before = old.steps if old is not None and old.answer == answer else (last,)
        return _Run((*before, step)[-settings.window :], answer)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return for how many questions the answer has been the same."""
        settings = self._settings.for_action(step.action)
        run: _Run | None = self.state
        if run is None:
            why = "it is no question" if not _is_asking(step, settings) else "its answer is not that of the step before"
            return Opinion(self.kind, excerpt(step), 0, settings.stagnation_rounds, why)
        needed = _round_limit(run.steps, settings)
        why = "seen" if len(run.steps) >= needed else f"{needed - len(run.steps)} more wanted"
        return Opinion(self.kind, excerpt(step), len(run.steps), needed, why)


def _is_asking(step: ObservedStep, settings: DetectSettings) -> bool:
    """Whether a step is a question: it reads, or it moves a view and is answered with the new view."""
    meaning = step.meaning(settings.pollers)
    return meaning == "query" or (meaning == "gesture" and step.shows_a_view())


def _round_limit(steps: tuple[ObservedStep, ...], settings: DetectSettings) -> int:
    answer = steps[-1].answer()[:200]
    if _BARREN.match(answer) or _NONE_IN_JSON.match(answer):
        return settings.barren_rounds
    rounds = settings.stagnation_rounds
    # A page that asks to sign in answers no question, so it does not matter how much the questions differ.
    if is_wall(steps[-1].answer()):
        return rounds
    recent = steps[-rounds:]
    about = {call_target(step.first.start) for step in recent}
    if len(about) > 1 or not _share_any_part([step.first.start for step in recent]):
        return rounds * 2
    return rounds + rounds // 3 if about == {""} else rounds


def _share_any_part(starts: Sequence[Observation]) -> bool:
    """Whether the questions share a field, a word or the program that they run."""
    shared: set[tuple[str, str]] | None = None
    for start in starts:
        given = cast("dict[Any, Any]", start.input) if isinstance(start.input, dict) else {"command": start.input}
        parts = {(str(key), str(value)[:200]) for key, value in given.items() if isinstance(value, str | int | float)}
        # A word of one field may be in another one: {"query": "bolt torque"}, then {"text": "torque of the bolt"}.
        parts |= {("word", word) for value in given.values() if isinstance(value, str) for word in _long_words(value)}
        parts |= {("program", value.split()[0]) for key, value in given.items() if key in COMMAND_KEYS and _has_words(value)}
        shared = parts if shared is None else shared & parts
    return bool(shared)


def _share_word(steps: Sequence[ObservedStep]) -> bool:
    """Whether all questions are in words and have a telling word in common."""
    shared: set[str] | None = None
    for step in steps:
        given = step.first.start.input
        values = cast("dict[Any, Any]", given).values() if isinstance(given, dict) else (given,)
        words = {word for value in values if isinstance(value, str) for word in _long_words(value)}
        shared = words if shared is None else shared & words
    return bool(shared)


def _long_words(value: str) -> set[str]:
    """Return the longer words of a question in words. Names and patterns have none."""
    words = value[:2000].lower().split()
    return {long for word in words for long in _TELLING_WORD.findall(word)} if len(words) > 1 else set()


def _has_words(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


# The orchestrators of AutoGen's Magentic-One keep such a ledger: "is progress being made", "are we in a loop".
LEDGERS = frozenset({"ledger", "progress_ledger"})
IGNORED = "ignored_update"
PROGRESS = "progress"
_MAX_IGNORED = 1_000_000  # a recorded count may be any integer


class _ProgressCounts(NamedTuple):
    stalls: tuple[ObservedStep, ...] = ()
    ignored: int = 0
    updates: tuple[ObservedStep, ...] = ()


class NoProgressDetector:
    """Counts ledgers that report a loop or no progress; a ledger that reports progress takes one back.

    It also counts progress updates that were rejected because nothing had changed, until one is accepted.
    """

    kind: FindingKind = "hung"
    wake: int = Wake.NEVER
    hears = LEDGERS | {IGNORED, PROGRESS}
    watchful = False
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: _ProgressCounts | None = None

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Ignore steps: a single step says nothing about progress."""
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting if the run has reported once too often that it does not move."""
        state = self.state or _ProgressCounts()
        keep = self._settings.window
        if event.type == PROGRESS:
            # This takes back rejected updates, but not what a ledger says: that is somebody else's judgement.
            self.state = state._replace(ignored=0, updates=()) if state.stalls else None
            return None
        if event.type == IGNORED:
            updates = (*state.updates, ObservedStep((Call.from_event(event, IGNORED),)))[-keep:]
            self.state = state = state._replace(
                ignored=min(state.ignored + _read_count(event.data), _MAX_IGNORED), updates=updates
            )
            if state.ignored < self._settings.ignored_updates:
                return None
            facts = (("ignoredUpdates", state.ignored),)
            return Sighting(self.kind, IGNORED, 1, updates, len(updates), 0.7, severity="hung", facts=facts)
        stalled = _reports_stall(event.data)
        if stalled is None:
            return None
        stalls = (*state.stalls, ObservedStep((Call.from_event(event, "stalled"),)))[-keep:] if stalled else state.stalls[:-1]
        self.state = state._replace(stalls=stalls)
        needed = self._settings.stalled_ledgers
        if not stalled or len(stalls) < needed:
            return None
        return Sighting(self.kind, "ledger", 1, stalls[-needed:], needed, 0.8, severity="hung")

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how many reports said that there is no progress."""
        count = len(self.state.stalls) if self.state else 0
        return Opinion(
            self.kind, "", count, self._settings.stalled_ledgers, "it rests on progress reports, not on single steps",
            "progress reports",
        )  # fmt: skip

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        self.state = None


def _read_count(data: object) -> int:
    count = json_object(data).get("count")
    return min(max(count, 1), _MAX_IGNORED) if isinstance(count, int) and not isinstance(count, bool) else 1


def _reports_stall(data: object) -> bool | None:
    """Return whether a ledger says that the run stalls; None if it says nothing about it."""
    if not isinstance(data, dict):
        return None
    fields = cast("dict[str, object]", data)
    if isinstance(fields.get("input"), dict):
        fields = {**fields, **cast("dict[str, object]", fields["input"])}
    progress, loop = _answer(fields.get("is_progress_being_made")), _answer(fields.get("is_in_loop"))
    if progress is None and loop is None:
        return None
    return progress is False or loop is True


def _answer(value: object) -> bool | None:
    if isinstance(value, dict):
        # Magentic-One asks for a reason with each answer: {"reason": "...", "answer": false}.
        value = cast("dict[str, object]", value).get("answer")
    return value if isinstance(value, bool) else None


class BusyDetector(StepDetector):
    """Keeps the old steps within the window: those with a question asked before and the same answer as before.

    It only warns: successful runs have long grinds too, so the share of news alone proves nothing. An answer that differs
    from the last one to the same question is news. Polls and waits do not count as work.
    """

    kind: FindingKind = "hung"
    wake = Wake.REPEATED
    watchful = False

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if nearly all of the last steps were old."""
        window = self._settings.busy_window
        old: tuple[ObservedStep, ...] = self.state or ()
        expired = 0  # number of old steps that have left the window
        while expired < len(old) and old[expired].number <= step.number - window:
            expired += 1
        old = old[expired:] if expired else old
        if not self._is_stale(step, past):
            self.state = old or None
            return None
        self.state = stale = (*old, step)
        if len(stale) < self._stale_limit():
            return None
        facts = (("window", window), ("newSteps", window - len(stale)))
        return Sighting(
            self.kind, "busy", 1, stale[-self._stale_limit() :], self._stale_limit(), 0.5, severity="warn", leave=8, facts=facts
        )

    def _stale_limit(self) -> int:
        window = self._settings.busy_window
        return max(1, round(window * (1 - self._settings.busy_novelty)))

    def _is_stale(self, step: ObservedStep, past: Sequence[ObservedStep]) -> bool:
        before = next((earlier for earlier in reversed(past) if earlier.query == step.query), None)
        if before is None or not step.same(before):
            return False
        return not asks_for_pending(step, self._settings) and not is_patient(before, step, self._settings)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how many of the last steps were old."""
        count = len(self.state or ())
        why = "seen" if count >= self._stale_limit() else f"of the last {self._settings.busy_window} steps the others were new"
        return Opinion(self.kind, excerpt(step), count, self._stale_limit(), why, "novelty")


_SLEEP = lazy_pattern(r"\bsleep\s+([0-9]{1,7}(?:\.[0-9]{1,3})?)\s*([smh]?)\b", re.IGNORECASE)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Slept(NamedTuple):
    steps: tuple[ObservedStep, ...]
    seconds: float


class SleepBudgetDetector(StepDetector):
    """Adds up pauses in a row. A look at anything between them ends the row, since the pauses were for that look.

    The default budget is that of another tool (Stella: 120 s of sleep in one turn).
    """

    kind: FindingKind = "hung"
    wake = Wake.SLEEP

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the agent has slept too often and too long without looking."""
        if step.failed or step.meaning(self._settings.pollers) != "sleep":
            self.state = None
            return None
        old: _Slept = self.state or _Slept((), 0.0)
        self.state = slept = _Slept((*old.steps, step)[-self._settings.window :], old.seconds + _seconds(step))
        rounds = self._settings.sleep_rounds
        if len(slept.steps) < rounds or slept.seconds < self._settings.sleep_seconds:
            return None
        facts = (("sleptSeconds", round(slept.seconds, 3)),)
        return Sighting(self.kind, "sleep", 1, slept.steps, len(slept.steps), 0.7, severity="hung", leave=1, facts=facts)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often and how long the agent slept without looking."""
        rounds = self._settings.sleep_rounds
        slept: _Slept | None = self.state
        if slept is None:
            return Opinion(self.kind, excerpt(step), 0, rounds, "it is no pause", "pauses")
        enough = len(slept.steps) >= rounds and slept.seconds >= self._settings.sleep_seconds
        why = "seen" if enough else f"{slept.seconds:.0f} of {self._settings.sleep_seconds:.0f} s slept"
        return Opinion(self.kind, excerpt(step), len(slept.steps), rounds, why, "pauses")


def _seconds(step: ObservedStep) -> float:
    """Return the duration of a pause by the clock, else the duration that it asked for."""
    if step.started is not None and step.ended is not None and step.ended > step.started:
        return step.ended - step.started
    given = step.first.start.input
    fields = json_object(given)
    for key in ("seconds", "duration", "secs", "delay"):
        value = fields.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e7:
            return float(value)
    text = next(
        (str(fields[key])[:400] for key in ("command", "cmd", "script") if key in fields),
        str(given)[:400] if isinstance(given, str) else "",
    )
    return sum(float(amount) * _UNITS[unit.lower()] for amount, unit in _SLEEP.findall(text))


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
    step: ObservedStep


class EditRevertDetector(StepDetector):
    """Follows the changes of each file, and counts those in a row that undo the one before.

    Steps in between (tests, reads) do not matter. One or two reverted changes are an experiment; the same change made and
    reverted twice leads nowhere. A file written as a whole undoes nothing if the same content gets a new answer each time:
    then each write made a new revision, as when a state is switched to and fro.
    """

    kind: FindingKind = "editRevert"
    wake = Wake.CHANGE
    watchful = False

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Return a sighting if the file came back to the same two states often enough."""
        change = _read_change(step)
        if change is None:
            return None
        path, before, after = change
        path = path[:500]
        files: dict[str, tuple[_Change, ...]] = self.state or {}
        old = files.get(path, ())
        if before is None and old:
            before = old[-1].after  # before a complete write, the file holds what the last change left
        new = _Change(before, after, step)
        undoes = bool(old) and (new.before, new.after) == (old[-1].after, old[-1].before)
        if undoes and change[1] is None and len(old) > 1 and _brings_news(step, old[-2].step):
            undoes = False
        run = (*old, new)[-self._settings.window :] if undoes else (new,)
        changes = files.copy()
        changes.pop(path, None)  # inserted again as the newest, so that the first one is the least recently used
        changes[path] = run
        if len(changes) > _MAX_FILES:
            del changes[next(iter(changes))]
        self.state = changes
        rounds = self._settings.for_action(step.action).revert_rounds
        if len(run) < 2 * rounds:
            return None
        steps = tuple(edit.step for edit in run[-2 * rounds :])
        return Sighting(self.kind, ("revert", path), 2, steps, rounds, 0.85, leave=_LEFT_AFTER, facts=(("file", path),))

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return how often the file went to and fro."""
        rounds = self._settings.for_action(step.action).revert_rounds
        change = _read_change(step)
        if change is None:
            return Opinion(self.kind, excerpt(step), 0, rounds, "it changes no file in a way that could be undone")
        files: dict[str, tuple[_Change, ...]] = self.state or {}
        count = len(files.get(change[0], ())) // 2
        return Opinion(
            self.kind, excerpt(step), count, rounds, "seen" if count >= rounds else "it does not undo the change before it"
        )


def _brings_news(step: ObservedStep, before: ObservedStep) -> bool:
    """Whether a write got another answer, apart from times, than the earlier write of the same content."""
    one, two = (write.first.finish for write in (step, before))
    if one is None or two is None:
        return False
    texts = [fingerprints.plain_text(answer.output) for answer in (one, two)]
    return texts[0] is not None and texts[1] is not None and _mask_clock(texts[0]) != _mask_clock(texts[1])


def _mask_clock(text: str) -> str:
    return mask_times(mask_volatile(text))


def _read_change(step: ObservedStep) -> tuple[str, int | None, int] | None:
    """Return file, text before and text after (as hashes) of a successful change. Before is None if unknown."""
    start = step.first.start
    if step.failed or len(step.calls) > 1 or not step.traits & Wake.CHANGE:
        return None
    fields = json_object(start.input)
    texts: list[object] = [start.input, *(fields.get(name) for name in _PATCHES)]
    for text in texts:
        if isinstance(text, str) and BEGIN_PATCH in text:
            return _patch_change(text)
    path = next((fields[key] for key in PATH_KEYS if key in fields), None)
    return _field_change(path, fields) if isinstance(path, str) and path else None


def _field_change(path: str, fields: Mapping[str, Any]) -> tuple[str, int | None, int] | None:
    """Return the change that an editing tool is asked for: of a text within the file, or of the whole file."""
    for before, after in _PAIRS:
        old, new = fields.get(before), fields.get(after)
        if isinstance(old, str) and isinstance(new, str):
            # An edit that changes nothing would undo itself each time.
            return (path, hash(old), hash(new)) if old != new else None
    content = next((fields[key] for key in _CONTENT_FIELDS if isinstance(fields.get(key), str)), None)
    return None if content is None else (path, None, hash(content))


def _patch_change(text: str) -> tuple[str, int | None, int] | None:
    """Return the change of a patch of one file: its lines before and after, each with the context lines."""
    path = ""
    before: list[str] = []
    after: list[str] = []
    for line in text[text.index(BEGIN_PATCH) :].split("\n"):
        if line.startswith(_FILE_LINES):
            if path:  # undoing one of several files does not undo the change as a whole
                return None
            path = line.partition(": ")[2].strip()
        elif path and line[:1] in ("-", " ", "+"):
            if line[0] != "+":
                before.append(line[1:])
            if line[0] != "-":
                after.append(line[1:])
    return (path, hash(tuple(before)), hash(tuple(after))) if path and before != after else None
