"""A step: one call or one parallel batch with its results and lazy fingerprints. Also writes the sentence about a loop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.detect.text import comparison, fingerprints, vocabulary
from ctxmgr.detect.text.fingerprints import one_line
from ctxmgr.detect.text.vocabulary import ActionClass
from ctxmgr.log.fast_json import json_object, text_or_empty
from ctxmgr.types.finding import Observation

_SLACK = 4
"""Maximum difference in length, in characters, of two answers for which a closer comparison is worth its cost."""
_MIN_VIEW = 40
"""Characters from which an answer shows something. A shorter one only acknowledges."""
_VOLATILE_KEYS = fingerprints.NOISE_KEYS | fingerprints.CLOCK_KEYS | fingerprints.CURSOR_KEYS
_RECEIPT_NOISE = fingerprints.NOISE_KEYS | fingerprints.RECEIPT_KEYS
_SPAN, _CHANGE, _TASK, _SLEEP = 8, 16, 32, 64  # the flags of `interface.Wake`, which imports this module
_SPAN_KEYS = frozenset({
    "offset", "limit", "start", "end", "start_line", "end_line", "startLine", "endLine", "line_start", "line_end", "view_range",
    "line_range", "range", "lines", "from", "to",
})  # fmt: skip
_CHANGE_KEYS = frozenset({
    "old_string", "old_str", "old", "old_text", "oldString", "oldText", "search", "find", "content", "file_text", "contents",
    "new_content", "text", "edits",
})  # fmt: skip
TASK_KEYS = frozenset({"subtask", "subtask_id", "subtaskId", "subtask_name", "subtaskName", "description", "title"})
"""Fields that name the work handed over."""
_TRAIT_KEYS = _SPAN_KEYS | _CHANGE_KEYS | TASK_KEYS
BEGIN_PATCH = "*** Begin Patch"
"""First line of a patch in Codex's format, in any field of the input."""
_VERB_KEYS = frozenset({"action", "operation", "command", "cmd", "script"})


@dataclass(slots=True)
class Call:
    """One entry and its result. ``finish`` is None in a log without results."""

    start: Observation
    finish: Observation | None
    query: int
    traits: int = 0
    _class: ActionClass | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def from_observations(cls, start: Observation, finish: Observation | None) -> Call:
        """Return the call with the fingerprint of its question, which consists of the action and the canonical input."""
        call_input: object = start.input
        traits = 0 if start.task is None else _TASK
        texts = None
        if isinstance(call_input, dict):
            fields = cast("dict[Any, Any]", call_input)
            texts = fingerprints.list_texts(fields)
            if not _TRAIT_KEYS.isdisjoint(fields):
                traits |= _field_traits(fields, start.action)
        text = fingerprints.canonical(cast("object", call_input)) if texts is None else "\n".join(texts)
        if text is None:
            # What can't be compared equals nothing, because a loop is claimed only on evidence.
            return cls(start, finish, hash((start.action, start.id, start.seq)), traits & _TASK)
        # Without its first letter, one search finds both "sleep" and "Start-Sleep".
        if "leep" in text or "leep" in start.action:
            traits |= _SLEEP
        if "sed -n" in text:
            traits |= _SPAN
        if BEGIN_PATCH in text:
            traits |= _CHANGE
        return cls(start, finish, hash((start.action, text if texts is None else texts)), traits)

    @classmethod
    def from_event(cls, event: Observation, what: Hashable) -> Call:
        """Return an event as a call without a result, with its words as the fingerprint."""
        return cls(event, None, hash(("said", event.type, what)))

    def result(self) -> int | None:
        """Return a hash of status and blurred output; None if the output can't be compared."""
        finish = self.finish
        if finish is None:
            return 0  # all calls of a log without results have the same answer
        # Ids are news in the result of a read, but noise in an error or in the receipt of a change.
        receipt = self.failed or self.meaning() == "mutation"
        output = finish.output
        if output is None and finish.error is not None:
            output = finish.error
        text = output
        if not isinstance(text, str):
            text = fingerprints.plain_text(text, drop=_RECEIPT_NOISE if receipt else fingerprints.NOISE_KEYS)
        if text is None:
            return None
        masked = fingerprints.mask_volatile(text, ids=receipt)
        # A duration was blurred. For a benchmark, it is the answer, so keep it.
        if "~" in masked and vocabulary.measures(self._verb_and_command()[1], self.start.action):
            return hash((finish.status, text))
        return hash((finish.status, masked))

    @property
    def failed(self) -> bool:
        """Whether the call ended in an error, by its status or by the exit code that it reports."""
        return self.finish is not None and has_failed(self.finish)

    def error(self) -> str:
        """Return the error text of the failed call."""
        finish = self.finish
        return "" if finish is None else fingerprints.error_text(finish.error, finish.output)

    def tries_again(self, failed: Call) -> bool:
        """Whether the call tries with other arguments what a failed one tried (see `comparison.tries_again`)."""
        commands = self._verb_and_command()[1], failed._verb_and_command()[1]
        return comparison.tries_again(self.start, failed.start, *commands)

    def identity(self) -> object:
        """Return the identity of the result before a compaction replaced it by a stub, if the log keeps one."""
        finish = self.finish
        if finish is None or not finish.meta or not isinstance(finish.meta, dict):
            return None
        value = cast("dict[str, Any]", finish.meta).get("output_identity")
        return value if isinstance(value, str | int) else None

    def answered_alike(self, other: Call) -> bool:
        """Whether both results are exactly the same text. This check saves their normalisation."""
        mine, theirs = self.finish, other.finish
        if mine is None or theirs is None or mine.status != theirs.status:
            return False
        output = mine.output
        return isinstance(output, str) and isinstance(theirs.output, str) and output == theirs.output

    def meaning(self, pollers: frozenset[str] = frozenset()) -> ActionClass:
        """Return what the call does to the world."""
        start = self.start
        if pollers and start.action in pollers:
            return "poll"
        if self._class is None:
            self._class = self._classify()
        return self._class

    def changes(self, pollers: frozenset[str] = frozenset()) -> bool:
        """Whether the call may have changed something, as `meaning` says. Faster, since most calls need no classification."""
        known = self._class
        if known is not None or pollers:
            return self.meaning(pollers) in ("mutation", "other")
        given = self.start.input
        if type(given) is dict:
            command = cast("dict[str, Any]", given).get("command")
            if type(command) is str and vocabulary.surely_changes(command):
                return True
        return self.meaning() in ("mutation", "other")

    def _classify(self) -> ActionClass:
        verb, command = self._verb_and_command()
        meaning = vocabulary.classify(self.start.action, verb, command)
        return "sleep" if meaning in ("poll", "other") and vocabulary.pauses(self.start) else meaning

    def _verb_and_command(self) -> tuple[str, str]:
        """Return the verb and the command in the input; both empty if only the action's name says what the call does."""
        start = self.start
        if isinstance(start.input, dict):
            fields = cast("dict[str, Any]", start.input)
            if _VERB_KEYS.isdisjoint(fields):
                return "", ""
            return text_or_empty(fields.get("action")) or text_or_empty(fields.get("operation")), _command(fields)
        if isinstance(start.input, str) and vocabulary.is_shell(start.action):
            return "", start.input
        return "", ""


def _field_traits(fields: Mapping[Any, Any], action: str) -> int:
    """Return the traits that the names of a call's fields tell of."""
    traits = 0
    if not _SPAN_KEYS.isdisjoint(fields):
        traits |= _SPAN
    if not _CHANGE_KEYS.isdisjoint(fields):
        traits |= _CHANGE
    if not TASK_KEYS.isdisjoint(fields) and vocabulary.delegates(action):
        traits |= _TASK
    return traits


class ObservedStep:
    """One call or one parallel batch. It is compared by questions and answers, without regard to the order of the calls.

    Attributes:
        number: position among the steps of its agent and process.
        query: fingerprint of its questions.
        started, ended: seconds since 1970; None without usable times.
        failed: every call of it failed.
        world: number of changes that other agents of the session had made by then.
        foreseen: for a call without a result, its agent had the answer to the previous call, and nothing since makes the
            same question a new one.
    """

    __slots__ = (
        "_meaning", "_result", "_transient", "_view", "_waiting", "calls", "ended", "failed", "foreseen", "number", "query",
        "started", "traits", "world",
    )  # fmt: skip

    def __init__(self, calls: Sequence[Call], number: int = 0, world: int = 0) -> None:
        self.calls = calls
        self.number = number
        self.world = world
        self.foreseen = False
        if len(calls) == 1:
            call = calls[0]
            self.query = call.query
            self.traits = call.traits
            self.started = call.start.at
            self.ended = self.started if call.finish is None else call.finish.at
            self.failed = call.failed
        else:
            self.query = hash(tuple(sorted(call.query for call in calls)))
            # Traits distinguish single calls. For a batch, they would not say which call is meant.
            self.traits = 0
            starts = [call.start.at for call in calls if call.start.at is not None]
            ends = [call.finish.at for call in calls if call.finish is not None and call.finish.at is not None]
            self.started = min(starts, default=None)
            self.ended = max(ends, default=None)
            self.failed = all(call.failed for call in calls)
        self._result: tuple[int | None, ...] | None = None
        self._meaning: ActionClass | None = None
        self._waiting: bool | None = None
        self._transient: bool | None = None
        self._view: int | None = None

    @property
    def first(self) -> Call:
        """The first call of the step."""
        return self.calls[0]

    @property
    def action(self) -> str:
        """Name of the action; of a batch, of its first call."""
        return self.calls[0].start.action

    def results(self) -> tuple[int | None, ...]:
        """Return the hashes of the results in an order that does not depend on that of the calls; None can't be compared."""
        if self._result is None:
            if len(self.calls) == 1:
                self._result = (self.calls[0].result(),)
            else:
                pairs = [(call.query, call.result()) for call in self.calls]
                # Results order the calls with equal questions. A result that can't be compared is None, which has no order.
                self._result = tuple(result for _, result in sorted(pairs, key=lambda pair: (pair[0], pair[1] or 0)))
        return self._result

    def same(self, other: ObservedStep) -> bool:
        """Whether both steps have the same questions and the same answers."""
        if self.query != other.query:
            return False
        if len(self.calls) == 1 and len(other.calls) == 1:
            mine, theirs = self.calls[0], other.calls[0]
            # A compaction may have replaced one of the outputs by a stub. Then their earlier identities decide.
            if mine.finish is not None and mine.finish.meta:
                mark, their_mark = mine.identity(), theirs.identity()
                if mark is not None and their_mark is not None:
                    return mark == their_mark
            if mine.answered_alike(theirs):
                return True
        results = self._result or self.results()
        return results == (other._result or other.results()) and None not in results  # None can't be compared

    def echoes(self, other: ObservedStep) -> bool:
        """Whether the answers are exactly the same, or so similar that a comparison of them is worth its cost."""
        mine, theirs = self.calls[0].finish, other.calls[0].finish
        if mine is None or theirs is None or len(self.calls) != 1 or len(other.calls) != 1:
            return False
        one, two = mine.output, theirs.output
        if not isinstance(one, str):
            return not isinstance(two, str) and (self.results() == other.results() or self._shows_alike(one, two, other))
        if not isinstance(two, str):
            return False
        if one == two:
            return True
        return (
            # Four characters are a tenth of 40. In a shorter answer, they may be all the news.
            -_SLACK <= len(one) - len(two) <= _SLACK < len(one) // 8
            and one[:8] == two[:8]
            and (self.results() == other.results() or self.view() == other.view())
        )

    def _shows_alike(self, one: object, two: object, other: ObservedStep) -> bool:
        fields = isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys()
        return fields and self.view() == other.view()

    def view(self) -> int:
        """Return a hash that is equal for answers with the same page, whatever times, ids and gauges it shows."""
        if self._view is None:
            finish = self.calls[0].finish
            output: object = None if finish is None else finish.output
            fields = cast("dict[str, Any]", output) if isinstance(output, dict) else None
            text = self.answer() if fields is None else fingerprints.plain_text(fields, drop=_VOLATILE_KEYS)
            self._view = hash(fingerprints.mask_ticks(fingerprints.mask_volatile(text or "", ids=True)))
        return self._view

    def shows_a_view(self) -> bool:
        """Whether the answer is more than an acknowledgement."""
        return len(self.answer()) >= _MIN_VIEW

    def shows_the_same(self, other: ObservedStep) -> bool:
        """Whether both answers show the same view."""
        return self.shows_a_view() and not other.failed and self.view() == other.view()

    def meaning(self, pollers: frozenset[str] = frozenset()) -> ActionClass:
        """Return what the step does to the world; for a batch, what its most far-reaching call does."""
        if self._meaning is None:
            meanings = {call.meaning(pollers) for call in self.calls}
            # The most far-reaching first.
            order: tuple[ActionClass, ...] = ("mutation", "other", "gesture", "query", "poll", "paced", "sleep")
            self._meaning = next(meaning for meaning in order if meaning in meanings)
        return self._meaning

    def changes(self, pollers: frozenset[str] = frozenset()) -> bool:
        """Whether any call of the step may have changed something, as `meaning` says."""
        if self._meaning is not None:
            return self._meaning in ("mutation", "other")
        for call in self.calls:  # noqa: SIM110 - a generator costs more than most calls
            if call.changes(pollers):
                return True
        return False

    @property
    def is_pending(self) -> bool:
        """Whether the answer says that something is still under way."""
        if self._waiting is None:
            self._waiting = not self.failed and vocabulary.is_waiting(self.answer())
        return self._waiting

    @property
    def falls_short(self) -> bool:
        """Whether the step failed, or its answer says in words that something does not work."""
        return self.failed or vocabulary.says_failure(self.answer())

    @property
    def is_refused(self) -> bool:
        """Whether the step falls short, or its answer says in words that what was given is not accepted."""
        return self.falls_short or vocabulary.says_refusal(self.answer())

    @property
    def transient(self) -> bool:
        """Whether the step failed through trouble of the infrastructure, which waiting may cure."""
        if self._transient is None:
            self._transient = self.failed and vocabulary.is_transient(self.first.error())
        return self._transient

    def answer(self) -> str:
        """Return the answer as text, for excerpts and to see whether something is still under way."""
        call = self.calls[0]
        if call.finish is None:
            return ""
        if call.failed:
            return call.error()
        return fingerprints.plain_text(call.finish.output) or ""


Step = ObservedStep
"""The name until 0.2: `ctxmgr.recorder.Step` is another class. It goes with the version after the next."""


def call_text(start: Observation) -> str:
    """Return a call in a few words for a sentence: its action and the most telling part of its input."""
    action = fingerprints.one_line(start.action, 40)
    fields = json_object(start.input)
    for key in ("command", "cmd", "file_path", "path", "filePath", "pattern", "query", "url", "q"):
        if isinstance(fields.get(key), str | list):
            value = fields[key]
            text = value if isinstance(value, str) else " ".join(str(part) for part in cast("list[Any]", value)[:20])
            return f'{action} "{fingerprints.one_line(text)}"'
    if start.input in (None, "", {}, []):
        return action
    call_input = cast("object", start.input)
    if isinstance(call_input, str):
        return f'{action} "{fingerprints.one_line(call_input)}"'
    return f"{action} {fingerprints.one_line(fingerprints.canonical(call_input) or '(input)')}"


def excerpt(step: ObservedStep) -> str:
    """Return the question and the answer of a step in a few words for `detect --explain`."""
    what = call_text(step.first.start) + (f" and {len(step.calls) - 1} more at once" if len(step.calls) > 1 else "")
    if step.first.finish is None:
        return f"{what}, no result"
    return f"{what}, {'error' if step.failed else 'result'}: {fingerprints.one_line(step.answer()) or '(empty)'}"


def _command(fields: dict[str, Any]) -> str:
    for key in ("command", "cmd", "script"):
        value = fields.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            words = [part for part in cast("list[object]", value) if isinstance(part, str)]
            if len(words) >= 3 and words[1] in ("-c", "-lc", "-ic"):
                return words[2]  # ["bash", "-lc", "the command"]
            return " ".join(words)
    return ""


def has_failed(finish: Observation) -> bool:
    """Whether a result is an error, by its status, by the exit code that it reports, or by its beginning."""
    if finish.status in ("error", "denied"):
        return True
    output: object = finish.output
    if type(output) is str:
        # Many tools return errors as ordinary text with the status "ok".
        if output[:6] in _ERROR_STARTS and len(output) <= _MAX_ERROR:
            return True
    elif isinstance(output, dict) and _says_failed(cast("dict[str, object]", output)):
        return True
    return finish.meta is not None and reported_exit_code(finish.meta) not in (None, 0)


_ERROR_STARTS = frozenset({"Error:", "ERROR:", "error:"})
_MAX_ERROR = 500
"""Longest answer, in characters, that counts as an error as a whole. A longer one may begin like an error by chance."""
_FAILED_STATUSES = frozenset({"error", "failed", "failure", "blocked", "denied", "rejected"})


def _says_failed(output: dict[str, object]) -> bool:
    """Whether a result without an error status says itself that it is an error (a veto, a failed command)."""
    if reported_exit_code(output) not in (None, 0) or output.get("is_error") is True or output.get("isError") is True:
        return True
    status = output.get("status")
    return isinstance(status, str) and status in _FAILED_STATUSES


def reported_exit_code(holder: object) -> int | None:
    """Return the exit code in an object that a client makes of a command's result, or None."""
    if not isinstance(holder, dict):
        return None
    fields = cast("dict[str, object]", holder)
    for key in ("exit_code", "exitCode", "returncode"):
        value = fields.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def agent_phrase(agent: str | None) -> str:
    """Return the name of the agent as used in a sentence."""
    return one_line(agent, 40) if agent else "the agent"


def loop_reason(
    kind: str,
    agent: str | None,
    round_: Sequence[ObservedStep],
    rounds: int,
    inputs: int,
    facts: Mapping[str, Any] | None = None,
) -> str:
    """Return the sentence for a loop.

    Args:
        kind: kind of the finding.
        agent: the agent in the loop.
        round_: the steps of one round.
        rounds: how often the round was seen.
        inputs: number of different calls, for kinds with varying inputs.
        facts: further evidence of the kind.
    """
    step = round_[-1]
    if step.first.start.kind == "event" and kind == "errorRepetition":
        message = _Case("", step, rounds, facts or {}).fact("said")
        return f"{agent_phrase(agent)} got the same error from its provider {rounds} times ({message})"
    describe_kind = _DESCRIBERS.get(kind)
    if describe_kind is not None:
        return describe_kind(_Case(agent_phrase(agent), step, rounds, facts or {}))
    if kind == "errorRepetition" and inputs > 1:
        return f"{agent_phrase(agent)} got the same error {rounds} times from {inputs} different calls{_quote_answer(step)}"
    what = " then ".join(_describe_step(member) for member in round_[:4])
    if len(round_) > 4:
        what += f" and {len(round_) - 4} more steps"
    if len(round_) > 1:
        return f"{agent_phrase(agent)} went round {rounds} times through {what}, with the same results each time"
    if step.first.finish is None:
        return f"{agent_phrase(agent)} called {what} {rounds} times; the log holds no results to tell whether anything changed"
    noun = "error" if step.failed else "result"
    return f"{agent_phrase(agent)} ran {what} {rounds} times and got the same {noun} each time{_quote_answer(step)}"


class _Case(NamedTuple):
    """The parts of a sentence about a loop."""

    name: str
    step: ObservedStep
    rounds: int
    facts: Mapping[str, Any]

    @property
    def call(self) -> str:
        """Return the last step in a few words."""
        return _describe_step(self.step)

    def fact(self, name: str) -> str:
        """Return a fact as one printable line."""
        value = self.facts.get(name, "")
        return one_line(", ".join(str(each) for each in cast("list[object]", value)) if isinstance(value, list) else str(value))


def _describe_near_duplicate(case: _Case) -> str:
    if "linesRead" in case.facts:
        return f"{case.name} read lines of {case.fact('about')} {case.rounds} times in a row that it had all read before"
    what = f"{case.name} asked {case.rounds} times for nearly the same, last {case.call}"
    return f"{what}, and got the same result{_quote_answer(case.step)}"


def _describe_monologue(case: _Case) -> str:
    if case.facts.get("empty"):
        return f"{case.name} gave {case.rounds} empty answers in a row without doing anything"
    return f"{case.name} said the same {case.rounds} times without doing anything ({case.fact('said')})"


def _describe_chant(case: _Case) -> str:
    if "characters" in case.facts:
        return (
            f"{case.name} wrote {case.facts['characters']} characters in {case.facts['seconds']:.0f} s without doing anything"
        )
    return f"{case.name} repeats one phrase over and over in its own text ({case.fact('said')})"


def _describe_context_loop(case: _Case) -> str:
    if case.step.first.start.type == "compaction":
        return f"the context of {case.name} was compacted {case.rounds} times without new work between"
    return f"{case.name} was told {case.rounds} times that the context is full"


def _describe_climb(case: _Case) -> str:
    climbed = ", and the failure has climbed to the task above it" if case.facts.get("level") == "task" else ""
    return f"{case.rounds} attempts of {case.fact('task') or 'a subtask'} failed{climbed}"


def _describe_no_progress(case: _Case) -> str:
    if "sleptSeconds" in case.facts:
        slept = f"{case.facts['sleptSeconds']:.0f} s in all"
        return f"{case.name} slept {case.rounds} times in a row, {slept}, without looking at anything"
    if "ignoredUpdates" in case.facts:
        return f"{case.facts['ignoredUpdates']} progress updates were rejected because nothing had changed"
    if "window" in case.facts:
        new = f"{case.facts['newSteps']} of its last {case.facts['window']} steps were new"
        return f"{case.name} is busy but makes no progress: {new}"
    return f"{case.rounds} progress reports said that there is no progress or a loop"


_DESCRIBERS: dict[str, Callable[[_Case], str]] = {
    "interleaved": lambda case: (
        f"{case.name} came back to {case.call} {case.rounds} times and got the same "
        f"{'error' if case.step.failed else 'result'}, whatever it did in between{_quote_answer(case.step)}"
    ),
    "stagnation": lambda case: (
        f"{case.name} asked {case.rounds} questions of {one_line(case.step.action, 40)} and got one and the same answer"
        f"{_quote_answer(case.step)}"
    ),
    "nearDuplicate": _describe_near_duplicate,
    "trivialChange": lambda case: (
        f"{case.name} ran {case.call} {case.rounds} times and only trifles in its "
        f"{'error' if case.step.failed else 'result'} changed{_quote_answer(case.step)}"
    ),
    "unknownTool": lambda case: f"{case.name} called tools that do not exist {case.rounds} times ({case.fact('tools')})",
    "denied": lambda case: (
        f"{case.name} asked {case.rounds} times for what it was refused, last {case.call}{_quote_answer(case.step)}"
    ),
    "monologue": _describe_monologue,
    "chanting": _describe_chant,
    "contextLoop": _describe_context_loop,
    "escalatingFailure": _describe_climb,
    "editRevert": lambda case: f"{case.name} made and undid the same change of {case.fact('file')} {case.rounds} times",
    "recoveryLoop": lambda case: (
        f"a loop came back {case.fact('cameBack')} times after it was answered: recovering this way does not help"
    ),
    "pingPong": lambda case: (
        f"{case.fact('agents')} looked for news of each other {case.rounds} times, and none came"
        if "waits" in case.facts
        else f"{case.fact('agents')} gave each other the same words {case.rounds} times"
    ),
    "hung": _describe_no_progress,
}


def _describe_step(step: ObservedStep) -> str:
    if len(step.calls) == 1:
        return call_text(step.first.start)
    return f"{len(step.calls)} calls at once ({', '.join(call_text(call.start) for call in step.calls[:3])})"


def _quote_answer(step: ObservedStep) -> str:
    text = one_line(step.answer())
    return f" ({text})" if text else ""


def duration(seconds: float) -> str:
    """Return a duration for people: seconds up to two minutes, then minutes, hours and days."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172_800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86_400:.1f} days"
