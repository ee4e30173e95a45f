"""The evidence that failure classes judge: a session's recent entries, messages and finding, with look-ups in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from itertools import islice
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.detect.text.fingerprints import mask_volatile
from ctxmgr.diagnose.evidence import files
from ctxmgr.diagnose.evidence.calls import (
    CHECKS,
    call_input,
    call_key,
    call_phrase,
    command_of,
    edited_paths,
    input_text,
    is_readable,
    last_command,
    may_change,
    only_looks,
    program_name,
    reports_failure,
    runs_in_background,
    same_file,
    short_path,
    subject,
)
from ctxmgr.diagnose.evidence.log_readings import LogReading, find_log_reading
from ctxmgr.diagnose.evidence.messages import BY_USER, STREAMED, Message
from ctxmgr.diagnose.evidence.texts import (
    agent_name,
    blanks_for_underscores,
    clean,
    clip_ends,
    clock,
    days_named,
    excerpt,
    how_often,
    plain_name,
    read_escapes,
    strip_wrapper,
    text_of,
)
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Finding, Quote
from ctxmgr.types.view import EntryView

MOST_ENTRIES = 2_000
"""Number of newest entries that are read. What helps now was mostly recorded recently, and the limit bounds the time."""
MOST_LATEST, MOST_CURRENT = 200, 60
"""Number of newest entries in which a class searches for what explains a failure, and of those that still show how things are.

A note, a name or a log stays true for long. A listing of a folder, a setting of a shell or the state of a job does not: in long
sessions of several tasks, an older one explains the failure wrongly.
"""

_MOST_MESSAGES = 600
_LOOP_ENTRIES, _MOST_LOOP, _TAIL_ENTRIES = 12, 60, 30
"""Newest entries that are read as the loop without a finding, members of a finding that are read, and entries of `tail`."""
_MOST_SINCE, _MOST_SINCE_BESIDE, _LEAST_FAILURES, _LEAST_ALIKE = 3, 8, 2, 4
"""Entries since a present trouble, and since one beside the loop; failures, and equal answers, that are a repetition."""
_MOST_COMPARED, _MOST_ERROR = 400, 4_000
"""Last characters by which two errors are compared, and those in which their quoted values are left out before."""
_MOST_TEXT = 20_000

_VALUES = lazy_pattern(r"`[^`]{1,1000}`|'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"")
_FEW_LETTERS = 12
_PAUSE = lazy_pattern(r"\bsleep \d+\w?\s*(?:;|&&|$)\s*|\d?>\s?/dev/null")
# kubectl shows the age of a thing (`3d4h`), which grows although nothing happens.
_AGE = lazy_pattern(r"\b(?:\d{1,4}[dhms]){1,4}\b")
_BARE = lazy_pattern(r"^(?:curl: \(22\)|HTTP/\d|Exit code \d)")


@dataclass(frozen=True)
class Evidence:
    """The part of a session's record that matters for its last failures.

    Attributes:
        entries: oldest first, with whole inputs and outputs; only the newest `MOST_ENTRIES` are read.
        finding: the loop or stall, or None: then the failures at the end are the trouble.
        messages: oldest first.
        related: entries of related sessions, oldest first; quotes of them name the other session.
        home: the folder that the session names as its own, or "".
    """

    entries: Sequence[EntryView]
    finding: Finding | None = None
    messages: Sequence[Message] = ()
    related: Sequence[EntryView] = ()
    home: str = ""
    # By session and index, because related entries come from other sessions.
    _texts: dict[tuple[str, int], str] = field(default_factory=lambda: dict[tuple[str, int], str](), repr=False)
    _logs: dict[tuple[str, int], LogReading | None] = field(
        default_factory=lambda: dict[tuple[str, int], LogReading | None](), repr=False
    )
    _failed: dict[tuple[str, int], bool] = field(default_factory=lambda: dict[tuple[str, int], bool](), repr=False)

    def days_named(self) -> AbstractContextManager[None]:
        """Let times told within the block have their day where it is in doubt: see `texts.days_named`."""
        return days_named(entry.ts for entry in self.recent)

    @cached_property
    def recent(self) -> Sequence[EntryView]:
        """The entries that are read, oldest first."""
        return self.entries[-MOST_ENTRIES:]

    @cached_property
    def agent(self) -> str | None:
        """The stuck agent: that of the finding, else that of the last entry."""
        # If there are several agents, the finding names the stuck one.
        if self.finding is not None and self.finding.scope.agent is not None:
            return self.finding.scope.agent
        return self.recent[-1].agent if self.recent else None

    @cached_property
    def loop(self) -> list[EntryView]:
        """The entries of the loop or stall, oldest first; without a finding, the last ones of the session."""
        if self.finding is None:
            return list(self.recent[-_LOOP_ENTRIES:])
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

        These are the failing calls of the loop, and calls beside it that fail repeatedly up to the end of the session.
        Without a finding, a call counts only if it failed last, or repeatedly and recently. Calls that failed once come after
        repeated failures, and only if they run the same program: a look-up beside the trouble may fail for its own reasons.
        """
        loop = self._list_unresolved_failures(self.loop)
        often = {call_key(each) for each, times, _ in loop if times >= _LEAST_FAILURES}
        found = {
            call_key(each): each
            for each, times, since in loop
            # Without a finding, a single old failure was given up, and is no trouble.
            if self.finding is not None or since == 0 or (times > 1 and since < _MOST_SINCE)
        }
        for each, times, since in self._list_unresolved_failures(self.tail):
            # A failure beside the loop may be the reason for the loop.
            if times >= _LEAST_FAILURES and since < _MOST_SINCE_BESIDE:
                found.setdefault(call_key(each), each)
                often.add(call_key(each))
        ordered = list(found.values()) if self.finding is not None else sorted(found.values(), key=lambda each: -each.index)
        repeated = [each for each in ordered if call_key(each) in often]
        own = {program_name(each) for each in repeated}
        # A look-up beside the trouble that failed once may have its own reasons.
        once = [each for each in ordered if call_key(each) not in often and (not own or program_name(each) in own)]
        return [*repeated, *once]

    def _list_unresolved_failures(self, entries: Sequence[EntryView]) -> list[tuple[EntryView, int, int]]:
        """Return (call, how often it or its error occurred, entries since then) of failing calls that did not work later."""
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
                # Without a finding, a later success of the same program with the same words has fixed the failure.
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
        """Return a key that is equal for failures with the same message, whatever the form of the call.

        Quoted values are ignored, since they differ with the call. An almost empty message is equal only for equal calls.
        """
        said = _VALUES.sub("''", self._own_text(entry)[-_MOST_ERROR:])[-_MOST_COMPARED:]
        # A text without letters says nothing, so only equal calls may have the same error.
        own = call_key(entry) if sum(map(str.isalpha, said)) < _FEW_LETTERS else ""
        return f"{entry.agent}\n{own}\n{mask_volatile(said, ids=True)}"

    @cached_property
    def repeated_calls(self) -> list[EntryView]:
        """The successful calls with the same answer again and again up to the end, newest first.

        With a finding, they are calls of the loop. Otherwise they are one call, or forms of one program, with the same answer
        at least four times. At least half of the calls must be repetitions, since one call to each of many places is none.
        """
        # An edit with the same answer is work.
        looks = [entry for entry in reversed(self.tail) if entry.status == "ok" and not edited_paths(entry)]
        if self.finding is not None:
            members = {entry.id for entry in self.loop}
            looks = [entry for entry in looks if entry.id in members]
        alike: dict[tuple[str, str], list[EntryView]] = {}
        for entry in looks:
            same = alike.setdefault((program_name(entry), mask_volatile(_AGE.sub("0s", self.text(entry)))), [])
            # All empty answers are equal.
            if self.text(entry).strip() and (not same or _is_same_form(same[0], entry)):
                same.append(entry)
        last = self.recent[-1].index if self.recent else 0
        often = [
            each
            for each in alike.values()
            if len(each) >= _LEAST_ALIKE
            and last - each[0].index < _MOST_SINCE
            # Many calls with one answer, such as "ok", are no repetition.
            and 2 * len({_key_without_pauses(one) for one in each}) <= len(each) + 1
        ]
        calls: list[EntryView] = max(often, key=len) if often else []
        return list({call_key(entry): entry for entry in calls}.values())

    @cached_property
    def tail(self) -> list[EntryView]:
        """The newest entries, and those of the loop, oldest first."""
        last = self.recent[-_TAIL_ENTRIES:]
        known = {entry.id for entry in last}
        return [*(entry for entry in self.loop if entry.id not in known), *last]

    @cached_property
    def open_calls(self) -> list[EntryView]:
        """The calls of the trouble without a result, newest first."""
        return [entry for entry in reversed(self.loop) if entry.status == "open"]

    @property
    def is_hung(self) -> bool:
        """Whether the finding is a call that does not return."""
        return self.finding is not None and self.finding.severity == "hung"

    @property
    def hanging_calls(self) -> list[EntryView]:
        """The open calls, newest first. An open call beside a loop is usually just in progress, and is not among them."""
        return self.open_calls if self.finding is None or self.is_hung else []

    @cached_property
    def onset(self) -> int:
        """Index of the first entry of the loop; the number of entries if there is none."""
        indexes = [entry.index for entry in self.loop] if self.finding is not None else []
        return min(indexes, default=self.recent[-1].index + 1 if self.recent else 0)

    @cached_property
    def user_texts(self) -> list[Message]:
        """The messages of people, oldest first. A simulated user whose own calls fail is told nothing in its own words."""
        said = (message for message in self.messages[-_MOST_MESSAGES:] if message.by == "user")
        return [message for message in said if self.agent is None or message.who != self.agent]

    @cached_property
    def last_progress(self) -> EntryView | None:
        """The last entry before the trouble that ended ok."""
        if self.finding is not None and self.finding.last_progress is not None:
            progress_id = self.finding.last_progress
            return next((entry for entry in reversed(self.recent) if entry.id == progress_id), None)
        return next((entry for entry in self.entries_before(self.onset) if entry.status == "ok"), None)

    @cached_property
    def folder(self) -> str:
        """The folder in which the agent works: from its latest entries, else from the session; "" if neither names one."""
        for entry in reversed(self.recent[-50:]):
            meta = cast("dict[str, Any]", entry.meta) if isinstance(entry.meta, dict) else {}
            if isinstance(folder := meta.get("cwd"), str) and folder.startswith("/"):
                return folder.rstrip("/")
        return self.home.rstrip("/") if self.home.startswith("/") else ""

    def relative_path(self, path: str) -> str:
        """Return a path relative to the agent's folder, if it lies in it."""
        within = self.folder and path.startswith(f"{self.folder}/")
        return (path[len(self.folder) + 1 :] if within else path).removeprefix("./").rstrip("/")

    def same_place(self, one: str, other: str) -> bool:
        """Whether two paths are one place, as far as the agent's folder shows. A longer relative path is another place."""
        first, second = self.relative_path(one), self.relative_path(other)
        # Without the folder, a longer path may end in the same place.
        if first.startswith("/") == second.startswith("/") or self.folder:
            return first == second
        return same_file(first, second)

    def name(self, path: str) -> str:
        """Return a path in words: relative to the agent's folder, if it lies in it."""
        return short_path(self.relative_path(path) or path) if is_readable(path) else "the file"

    def text(self, entry: EntryView) -> str:
        """Return the text of an entry's result, clean and bounded: its error message and its output.

        If that of a failure says no reason, the lines of a log that was read about it follow: see `log_of`.
        """
        key = entry.session, entry.index
        known = self._texts.get(key)
        if known is None:
            log = self.log_of(entry)
            own = self._own_text(entry)
            known = self._texts[key] = own if log is None else f"{own}\n{log.text}".strip("\n")
        return known

    def _own_text(self, entry: EntryView) -> str:
        return strip_wrapper(self._raw_text(entry)).strip("\n")

    def log_of(self, entry: EntryView) -> LogReading | None:
        """Return what a log that was read later says about a call that failed without a reason, or None."""
        key = entry.session, entry.index
        if key not in self._logs:
            found = None
            if self.recent and entry.session == self.recent[-1].session and self.has_failed(entry):
                same = (each.index for each in self.equal_calls(entry) if each.index > entry.index)
                until = next(same, self.recent[-1].index + 1)
                later = (each for each in reversed(self.recent) if entry.index < each.index < until)
                found = find_log_reading(entry, self._own_text(entry), later, self._own_text)
            self._logs[key] = found
        return self._logs[key]

    def name_speaker(self, entry: EntryView) -> str:
        """Return what says why a call failed, as the beginning of a sentence: the call, or a log that was read about it."""
        log = self.log_of(entry)
        return "It" if log is None else f"Its log, which {self.source(log.entry)} read,"

    def output_so_far(self, entry: EntryView) -> str:
        """Return what an open call has printed according to the events behind it."""
        printed = (each for each in self.messages if each.by == "program" and each.kind in STREAMED)
        return clean("".join(each.text for each in printed if each.after == entry.index))

    def _raw_text(self, entry: EntryView) -> str:
        message = text_of(entry.error)
        output = text_of(entry.output)
        # Some clients put the error into the output as well.
        both = output if message in output else message if output and output in message else f"{message}\n{output}"
        return read_escapes(clean(clip_ends(both, _MOST_TEXT // 2))).strip("\n")

    def line(self, entry: EntryView, pattern: re.Pattern[str]) -> str:
        """Return the line of an entry's result with a match of a pattern. A line with only an error code is the last choice."""
        lines = [
            line.strip()
            for line in self.text(entry).split("\n")
            if pattern.search(line) or pattern.search(blanks_for_underscores(line))
        ]
        return next((line for line in lines if not _BARE.search(line)), lines[0] if lines else "")

    def has_failed(self, entry: EntryView) -> bool:
        """Whether a call failed, whatever its status says."""
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

    def has_succeeded(self, entry: EntryView) -> bool:
        """Whether a call ended ok, and its text reports no failure."""
        return entry.status == "ok" and not self.has_failed(entry)

    def describe_failure(self, entry: EntryView, room: int) -> str:
        """Return which call fails, with ``room`` characters of its command, and how often, as the beginning of a sentence."""
        return f"{call_phrase(entry, room)} fails{how_often(self.count_failures(entry))}"

    def count_failures(self, entry: EntryView) -> int:
        """Return how often the very same call failed with the same error in the record, at least as often as in the loop."""
        alike = {each.index for each in self.equal_failures(entry)}
        return max(self.times(entry), sum(each.index in alike for each in self.equal_calls(entry)))

    def equal_calls(self, entry: EntryView) -> list[EntryView]:
        """Return the entries with the very same call, oldest first."""
        return self._calls_by_key.get(call_key(entry), [])

    def equal_failures(self, entry: EntryView) -> list[EntryView]:
        """Return the calls of a failed call's agent and tool that ended with the same error, whatever their input."""
        said = mask_volatile(self._own_text(entry), ids=True)
        same = (
            each for each in self.recent if each.action == entry.action and each.agent == entry.agent and self.has_failed(each)
        )
        return [each for each in same if mask_volatile(self._own_text(each), ids=True) == said] if said else []

    def refusals(self) -> Iterator[EntryView]:
        """Yield the failing calls whose message is about the call itself. A test's output may be about anything."""
        return (entry for entry in self.failing_calls if not CHECKS.search(command_of(entry)))

    @cached_property
    def latest(self) -> list[EntryView]:
        """The newest `MOST_LATEST` entries, newest first."""
        return list(reversed(self.recent[-MOST_LATEST:]))

    def latest_before(self, index: int, most: int = MOST_LATEST) -> list[EntryView]:
        """Return the newest entries before an index, newest first."""
        return list(islice(self.entries_before(index), most))

    def is_past(self, entry: EntryView, most: int = _MOST_SINCE) -> bool:
        """Whether more than ``most`` entries follow a call, so that it is no trouble any more."""
        return self.recent[-1].index - entry.index > most

    def background_calls(self, before: int) -> list[EntryView]:
        """Return the calls before an index that left something running, newest first."""
        return [each for each in self.latest_before(before) if runs_in_background(command_of(each))]

    def entries_before(self, index: int) -> Iterator[EntryView]:
        """Yield the entries before an index, newest first."""
        return (entry for entry in reversed(self.recent) if entry.index < index)

    def times(self, entry: EntryView) -> int:
        """Return how often the very same call occurs in the loop; in a row of several calls, at most once in each round."""
        key = call_key(entry)
        found = sum(call_key(other) == key for other in self.loop)
        if self.finding is None and found > 1 and self.has_failed(entry):
            # Without a finding, the loop may have begun before the calls that are read as it.
            said = mask_volatile(self._own_text(entry))
            same = self.equal_calls(entry)
            found = sum(self.has_failed(other) and mask_volatile(self._own_text(other)) == said for other in same)
        return min(found, self.finding.count) if self.finding is not None and self.finding.period > 1 else found

    def was_tried(self, command: str) -> bool:
        """Whether a command was run before, alone or within a longer one, perhaps with more options."""
        words = set(command.split())
        return any(command in (ran := command_of(entry)) or (ran and words <= set(ran.split())) for entry in self.recent)

    def changes(self, since: int, until: int | None = None) -> list[EntryView]:
        """Return the successful entries between ``since`` and ``until`` (both excluded) that may have changed something."""
        last = self.recent[-1].index + 1 if self.recent and until is None else until or 0
        return [e for e in self.recent if since < e.index < last and e.status == "ok" and may_change(e)]

    def possible_changes(self, since: EntryView, until: EntryView) -> list[EntryView]:
        """Return the other calls between two calls that may have changed something, because nothing says that they only look.

        A call that failed may have done a part of its work; a refused one, or a refused edit, has not.
        """
        own = call_key(since), call_key(until)
        return [
            each for each in self.recent
            if since.index < each.index < until.index and call_key(each) not in own and not only_looks(each)
            and not (each.status == "denied" or (self.has_failed(each) and edited_paths(each)))
        ]  # fmt: skip

    def is_unchanged(self, since: EntryView, until: EntryView) -> bool:
        """Whether the record shows that nothing was changed between two calls: no call may have, and no person spoke."""
        spoke = any(each.after is not None and since.index <= each.after < until.index for each in self.user_texts)
        return not spoke and not self.possible_changes(since, until)

    def last_content(self, path: str, before: int | None = None) -> files.Content | None:
        """Return the last known content of a file with the later edits applied, or None."""
        entries = [e for e in self.recent if before is None or e.index < before]
        return files.find_last_content(entries, path, self.text)

    def is_known_to_agent(self, text: str) -> bool:
        """Whether a text comes from a person or from the input of a call, and so not from recorded output alone."""
        return self.was_said_by_user(text) or any(text in call_input(entry) for entry in self.recent)

    def was_said_by_user(self, text: str) -> bool:
        """Whether a person said a text."""
        return bool(text) and any(text in message.text for message in self.user_texts)

    def is_own(self, entry: EntryView) -> bool:
        """Whether the stuck agent made a call of this session."""
        return self.agent is None or entry.agent == self.agent

    def maker(self, entry: EntryView) -> str:
        """Return the agent of a call in this session, for a sentence: "you", or the name of another agent."""
        return "you" if self.is_own(entry) else agent_name(entry.agent) if plain_name(entry.agent) else "another agent"

    def source(self, entry: EntryView) -> str:
        """Return where a text comes from, in words: "your Read of app.py at 12:03"."""
        # The agents of two sessions mostly have the same name.
        foreign = bool(self.recent) and entry.session != self.recent[-1].session
        whose = "another session's" if foreign else "your" if self.is_own(entry) else f"{agent_name(entry.agent, 60)}'s"
        return clean(f"{whose} {subject(entry, self.name)}{clock(entry.ts)}").replace("\n", " ")

    def quote(self, entry: EntryView, text: str | None = None) -> Quote:
        """Return a text of an entry as a quote; by default its result. Lines of a log are quoted from the call that read it."""
        log = self.log_of(entry)
        if log is not None and (text is None or all(line in log.text for line in text.split("\n"))):
            entry, text = log.entry, text or log.text
        said = self.text(entry) if text is None else text
        return Quote(entry=entry.id, source=self.source(entry), text=excerpt(said))

    def quote_call(self, entry: EntryView) -> Quote:
        """Return a call as a quote: its command, the lines of an edit, else its arguments; several ones with their names."""
        return self.quote(entry, command_of(entry) or (call_input(entry) if edited_paths(entry) else input_text(entry)))

    def quote_message(self, message: Message, text: str | None = None) -> Quote:
        """Return a message, or a part of one, as a quote."""
        who = BY_USER if message.by == "user" else agent_name(message.who, 60)
        who = "the summary of the compaction" if message.kind == "compaction" else who
        return Quote(entry=None, source=f"{who}{clock(message.at)}", text=excerpt(message.text if text is None else text))


def _key_without_pauses(entry: EntryView) -> str:
    """Return a key that is equal for the same call after pauses of any length."""
    command = command_of(entry)
    return _PAUSE.sub("", command) if command else call_key(entry)


def _command_words(entry: EntryView) -> tuple[str, ...]:
    """Return the words of a command without its options: "terraform plan -out p" replaces a failed "terraform plan"."""
    words = [word for word in last_command(command_of(entry)) if not word.startswith("-")]
    return tuple(words) if len(words) > 1 else ()


def _is_same_form(one: EntryView, other: EntryView) -> bool:
    """Whether two calls are forms of one call, with most of their words equal."""
    first, second = set(call_input(one).split()), set(call_input(other).split())
    return len(first & second) * 2 >= len(first | second)
