"""The evidence that failure classes judge: a session's recent entries, what was said, the finding, and lookups in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.evidence import contents
from ctxmgr.diagnose.evidence.calls import (
    CHECKS,
    call_input,
    call_key,
    command_of,
    edited_paths,
    is_readable,
    may_change,
    program_name,
    same_file,
    short_path,
    split_command,
    subject,
)
from ctxmgr.diagnose.evidence.messages import Message
from ctxmgr.diagnose.evidence.outcomes import reports_failure
from ctxmgr.diagnose.evidence.texts import (
    blanks_for_underscores,
    clean,
    clip_ends,
    clock,
    excerpt,
    plain_name,
    strip_wrapper,
    text_of,
)
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Finding, Quote
from ctxmgr.types.view import EntryView

MOST_ENTRIES = 2_000
"""Entries that are looked at, the newest: what helps now was mostly recorded lately, and time stays bounded."""

_MOST_MESSAGES = 600
_TAIL = 12
_NEAR = 3
_ALIKE = 4
_LAST, _OFTEN, _LATE = 30, 2, 8
_SAME_ERROR = 400
_MOST_LOOP = 60
_MOST_TEXT = 20_000

_VALUES = lazy_pattern(r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"")
_FEW_LETTERS = 12
_PAUSE = lazy_pattern(r"\bsleep \d+\w?\s*(?:;|&&|$)\s*|\d?>\s?/dev/null")
# kubectl shows how old a thing is (`3d4h`), which grows though nothing happens
_AGE = lazy_pattern(r"\b(?:\d{1,4}[dhms]){1,4}\b")
_BARE = lazy_pattern(r"^(?:curl: \(22\)|HTTP/\d|Exit code \d)")


@dataclass(frozen=True)
class Evidence:
    """One session's record, as far as it bears on why the last calls fail.

    Attributes:
        entries: oldest first, with whole inputs and outputs; of more than `MOST_ENTRIES` the newest are looked at.
        finding: the loop or stall, or None: then the failures at the end are the trouble.
        messages: oldest first.
        related: entries of related sessions, oldest first; they are quoted as such.
        home: the folder that the session names as its own, or "".
    """

    entries: Sequence[EntryView]
    finding: Finding | None = None
    messages: Sequence[Message] = ()
    related: Sequence[EntryView] = ()
    home: str = ""
    # By session and index: related entries come from other sessions
    _texts: dict[tuple[str, int], str] = field(default_factory=lambda: dict[tuple[str, int], str](), repr=False)
    _failed: dict[tuple[str, int], bool] = field(default_factory=lambda: dict[tuple[str, int], bool](), repr=False)

    @cached_property
    def recent(self) -> Sequence[EntryView]:
        """The entries that are looked at, oldest first."""
        return self.entries[-MOST_ENTRIES:]

    @cached_property
    def agent(self) -> str | None:
        """The agent that is stuck: the finding's, else that of the last entry."""
        # Of several agents the finding names the one that is stuck
        if self.finding is not None and self.finding.scope.agent is not None:
            return self.finding.scope.agent
        return self.recent[-1].agent if self.recent else None

    @cached_property
    def loop(self) -> list[EntryView]:
        """The entries of the loop or stall, oldest first; without a finding, the last ones of the session."""
        if self.finding is None:
            return list(self.recent[-_TAIL:])
        members = set(self.finding.members[-_MOST_LOOP:])
        return [entry for entry in self.recent if entry.id in members]

    @cached_property
    def rounds(self) -> list[EntryView]:
        """The distinct calls of the loop, the latest of each, newest first."""
        latest: dict[str, EntryView] = {}
        for entry in reversed(self.loop):
            latest.setdefault(call_key(entry), entry)
        return list(latest.values())

    @cached_property
    def failing_calls(self) -> list[EntryView]:
        """The distinct failing calls of the trouble that did not work later, newest first.

        These are the loop's, and those that fail again and again beside it up to the end of the session. Without a finding
        there is trouble only where the session ends in a failure, or in one that was met before. What failed once comes after
        what fails again, and only where it is of the same program: a look-up beside the trouble may fail for its own reasons.
        """
        loop = self._list_unresolved_failures(self.loop)
        often = {call_key(each) for each, times, _ in loop if times >= _OFTEN}
        found = {
            call_key(each): each
            for each, times, since in loop
            # Without a finding an old failure, met once, was given up and is no trouble
            if self.finding is not None or since == 0 or (times > 1 and since < _NEAR)
        }
        for each, times, since in self._list_unresolved_failures(self.tail):
            # What fails beside the loop may be the reason for it
            if times >= _OFTEN and since < _LATE:
                found.setdefault(call_key(each), each)
                often.add(call_key(each))
        ordered = list(found.values()) if self.finding is not None else sorted(found.values(), key=lambda each: -each.index)
        repeated = [each for each in ordered if call_key(each) in often]
        own = {program_name(each) for each in repeated}
        # A look-up beside the trouble that failed once may fail for its own reasons
        once = [each for each in ordered if call_key(each) not in often and (not own or program_name(each) in own)]
        return [*repeated, *once]

    def _list_unresolved_failures(self, entries: Sequence[EntryView]) -> list[tuple[EntryView, int, int]]:
        """Return the failing calls that did not work later, newest first: how often each or its error, how many entries ago."""
        worked: set[str] = set()
        done: set[tuple[str, ...]] = set()
        found: dict[str, EntryView] = {}
        times: dict[str, int] = {}
        errors: dict[str, int] = {}
        for entry in reversed(entries):
            key = call_key(entry)
            if self.has_failed(entry):
                times[key] = times.get(key, 0) + 1
                error = self._error(entry)
                errors[error] = errors.get(error, 0) + 1
                # Without a finding a later success of the same program and words has mended the failure
                mine = () if self.finding is not None else _command_words(entry)
                if key not in worked and not (mine and any(words[: len(mine)] == mine for words in done)):
                    found.setdefault(key, entry)
            elif entry.status == "ok":
                worked.add(key)
                done.add(_command_words(entry))
        return [
            (each, max(times[key], errors[self._error(each)]), entries[-1].index - each.index) for key, each in found.items()
        ]

    def _error(self, entry: EntryView) -> str:
        """Return what is equal for failures that say the same, however the call was worded.

        Values in quotes differ with the call; what says next to nothing is the same only for the same call.
        """
        said = _VALUES.sub("''", self.text(entry)[-_SAME_ERROR:])
        # A text without letters says nothing; only the same call may be taken for the same error
        own = call_key(entry) if sum(map(str.isalpha, said)) < _FEW_LETTERS else ""
        return f"{entry.agent}\n{own}\n{mask_volatile(said, ids=True)}"

    @cached_property
    def repeated_calls(self) -> list[EntryView]:
        """The calls that are answered the same again and again up to the end, without a failure; the newest first.

        The loop's, where there is a finding; else one call, or forms of one program, answered alike at least four times. Half
        of the calls at least have been made before: one call to each of many places is no repetition.
        """
        # An edit that is answered the same is work
        looks = [entry for entry in reversed(self.tail) if entry.status == "ok" and not edited_paths(entry)]
        if self.finding is not None:
            members = {entry.id for entry in self.loop}
            looks = [entry for entry in looks if entry.id in members]
        alike: dict[tuple[str, str], list[EntryView]] = {}
        for entry in looks:
            same = alike.setdefault((program_name(entry), mask_volatile(_AGE.sub("0s", self.text(entry)))), [])
            # An empty answer is equal to every other empty one
            if self.text(entry).strip() and (not same or _is_same_form(same[0], entry)):
                same.append(entry)
        last = self.recent[-1].index if self.recent else 0
        often = [
            each
            for each in alike.values()
            if len(each) >= _ALIKE
            and last - each[0].index < _NEAR
            # Many calls with one answer, such as "ok", are no repetition
            and 2 * len({_key_without_pauses(one) for one in each}) <= len(each) + 1
        ]
        calls: list[EntryView] = max(often, key=len) if often else []
        return list({call_key(entry): entry for entry in calls}.values())

    @cached_property
    def tail(self) -> list[EntryView]:
        """The newest entries, and those of the loop, oldest first."""
        last = self.recent[-_LAST:]
        known = {entry.id for entry in last}
        return [*(entry for entry in self.loop if entry.id not in known), *last]

    @cached_property
    def open_calls(self) -> list[EntryView]:
        """The calls of the trouble that have no result, newest first."""
        return [entry for entry in reversed(self.loop) if entry.status == "open"]

    @cached_property
    def onset(self) -> int:
        """Index of the first entry of the loop; the number of entries when there is none."""
        indexes = [entry.index for entry in self.loop] if self.finding is not None else []
        return min(indexes, default=self.recent[-1].index + 1 if self.recent else 0)

    @cached_property
    def user_texts(self) -> list[Message]:
        """What people said, oldest first."""
        return [message for message in self.messages[-_MOST_MESSAGES:] if message.by == "user"]

    @cached_property
    def last_progress(self) -> EntryView | None:
        """The last entry before the trouble that ended ok."""
        if self.finding is not None and self.finding.last_progress is not None:
            progress_id = self.finding.last_progress
            return next((entry for entry in reversed(self.recent) if entry.id == progress_id), None)
        return next((entry for entry in self.entries_before(self.onset) if entry.status == "ok"), None)

    @cached_property
    def folder(self) -> str:
        """The folder in which the agent works: its latest entries' own, else the session's; "" where neither tells."""
        for entry in reversed(self.recent[-50:]):
            meta = cast("dict[str, Any]", entry.meta) if isinstance(entry.meta, dict) else {}
            if isinstance(folder := meta.get("cwd"), str) and folder.startswith("/"):
                return folder.rstrip("/")
        return self.home.rstrip("/") if self.home.startswith("/") else ""

    def relative_path(self, path: str) -> str:
        """Return a path relative to the agent's folder where it lies in it."""
        within = self.folder and path.startswith(f"{self.folder}/")
        return (path[len(self.folder) + 1 :] if within else path).removeprefix("./").rstrip("/")

    def same_place(self, one: str, other: str) -> bool:
        """Whether two paths are one place, as far as the agent's folder tells; a longer relative path is another one."""
        first, second = self.relative_path(one), self.relative_path(other)
        # Without the folder a longer path may end in the same place
        if first.startswith("/") == second.startswith("/") or self.folder:
            return first == second
        return same_file(first, second)

    def name(self, path: str) -> str:
        """Return a path as words: relative to the agent's folder where it lies in it."""
        return short_path(self.relative_path(path) or path) if is_readable(path) else "the file"

    def text(self, entry: EntryView) -> str:
        """Return what an entry's result says, clean and bounded: its error message and its output."""
        key = entry.session, entry.index
        known = self._texts.get(key)
        if known is None:
            known = self._texts[key] = strip_wrapper(self._raw_text(entry)).strip("\n")
        return known

    def _raw_text(self, entry: EntryView) -> str:
        message = text_of(entry.error)
        output = text_of(entry.output)
        # Some clients put the error into the output, too
        both = output if message in output else message if output and output in message else f"{message}\n{output}"
        return clean(clip_ends(both, _MOST_TEXT // 2)).strip("\n")

    def line(self, entry: EntryView, pattern: re.Pattern[str]) -> str:
        """Return the line of an entry's result that a pattern is found in; one that only names a code is the last choice."""
        lines = [
            line.strip()
            for line in self.text(entry).split("\n")
            if pattern.search(line) or pattern.search(blanks_for_underscores(line))
        ]
        return next((line for line in lines if not _BARE.search(line)), lines[0] if lines else "")

    def has_failed(self, entry: EntryView) -> bool:
        """Whether a call failed, whatever its tool called that."""
        key = entry.session, entry.index
        known = self._failed.get(key)
        if known is None:
            known = self._failed[key] = reports_failure(entry, self._raw_text(entry))
        return known

    @cached_property
    def _calls_by_key(self) -> dict[str, list[EntryView]]:
        found: dict[str, list[EntryView]] = {}
        for entry in self.recent:
            found.setdefault(call_key(entry), []).append(entry)
        return found

    @cached_property
    def edits(self) -> list[EntryView]:
        """The successful calls that edit files, oldest first."""
        return [entry for entry in self.recent if entry.status == "ok" and edited_paths(entry)]

    def equal_calls(self, entry: EntryView) -> list[EntryView]:
        """Return the entries that made the very same call, oldest first."""
        return self._calls_by_key.get(call_key(entry), [])

    def refusals(self) -> Iterator[EntryView]:
        """Yield the failing calls whose message is about the call: what a test prints may be about anything."""
        return (entry for entry in self.failing_calls if not CHECKS.search(command_of(entry)))

    def entries_before(self, index: int) -> Iterator[EntryView]:
        """Yield the entries before an index, newest first."""
        return (entry for entry in reversed(self.recent) if entry.index < index)

    def times(self, entry: EntryView) -> int:
        """Return how often the very same call stands in the loop."""
        key = call_key(entry)
        return sum(call_key(other) == key for other in self.loop)

    def was_tried(self, command: str) -> bool:
        """Whether a command was run already, alone or within a longer one."""
        return any(command in command_of(entry) for entry in self.recent)

    def changes(self, since: int, until: int | None = None) -> list[EntryView]:
        """Return the successful entries behind ``since`` and before ``until`` that may have changed something."""
        last = self.recent[-1].index + 1 if self.recent and until is None else until or 0
        return [e for e in self.recent if since < e.index < last and e.status == "ok" and may_change(e)]

    def last_content(self, path: str, before: int | None = None) -> contents.Content | None:
        """Return the last content seen of a file, own later edits replayed, or None."""
        entries = [e for e in self.recent if before is None or e.index < before]
        return contents.find_last_content(entries, path, self.text)

    def is_known_to_agent(self, text: str) -> bool:
        """Whether a person said a text or a call was given it: then it does not rest on recorded output alone."""
        return self.was_said_by_user(text) or any(text in call_input(entry) for entry in self.recent)

    def was_said_by_user(self, text: str) -> bool:
        """Whether a person said a text."""
        return bool(text) and any(text in message.text for message in self.user_texts)

    def is_own(self, entry: EntryView) -> bool:
        """Whether a call of this session was made by the agent that is stuck."""
        return self.agent is None or entry.agent == self.agent

    def maker(self, entry: EntryView) -> str:
        """Return who made a call of this session, for a sentence: "you", or the name of another agent."""
        return "you" if self.is_own(entry) else clean(entry.agent)[:40] if plain_name(entry.agent) else "another agent"

    def source(self, entry: EntryView) -> str:
        """Return where a text is from, in words: "your Read of app.py at 12:03"."""
        # Agents of two sessions mostly have the same name
        foreign = bool(self.recent) and entry.session != self.recent[-1].session
        whose = "another session's" if foreign else "your" if self.is_own(entry) else f"{clean(entry.agent)[:60]}'s"
        return clean(f"{whose} {subject(entry, self.name)}{clock(entry.ts)}").replace("\n", " ")

    def quote(self, entry: EntryView, text: str | None = None) -> Quote:
        """Return a text of an entry as a quote; without one, its result."""
        said = self.text(entry) if text is None else text
        return Quote(entry=entry.id, source=self.source(entry), text=excerpt(said))

    def quote_message(self, message: Message, text: str | None = None) -> Quote:
        """Return a message, or a part of one, as a quote."""
        who = "the user" if message.by == "user" else clean(message.who)[:60]
        who = "the summary of the compaction" if message.kind == "compaction" else who
        return Quote(entry=None, source=f"{who}{clock(message.at)}", text=excerpt(message.text if text is None else text))


def _key_without_pauses(entry: EntryView) -> str:
    """Return what is equal for calls that ask the same after pauses of any length."""
    command = command_of(entry)
    return _PAUSE.sub("", command) if command else call_key(entry)


def _command_words(entry: EntryView) -> tuple[str, ...]:
    """Return the words of a command but its options: "terraform plan -out p" does what "terraform plan" was to do."""
    parts = split_command(command_of(entry))
    words = [word for word in parts[-1] if not word.startswith("-")] if parts else []
    return tuple(words) if len(words) > 1 else ()


def _is_same_form(one: EntryView, other: EntryView) -> bool:
    """Whether two calls are forms of one: most of their words are the same."""
    first, second = set(call_input(one).split()), set(call_input(other).split())
    return len(first & second) * 2 >= len(first | second)
