"""Write the brief: what an agent needs for its next step, within a limit of characters.

Recorded text appears as plain text on one line. Inactive tasks are only counted, but a recent action names its step.
`goal_source` returns the same state as plain facts, for recovery and context packages. `compare` measures the brief against the
history that an agent would read without it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

from ctxmgr.goals.plan_edits import explain_no_work
from ctxmgr.goals.state import Action, Node, OpenAction, State, outcome_text, plain_line
from ctxmgr.log.codec import Record
from ctxmgr.log.json_value import plain
from ctxmgr.types.finding import Observation
from ctxmgr.types.goal import (
    ActionView,
    AttemptView,
    BlockedAction,
    BriefAnswer,
    Comparison,
    Fact,
    FactKind,
    GoalSource,
    GoalState,
    Moment,
    Size,
    SubtaskView,
)

# The same number that `ctxmgr.types.goal.Fact` counts among the needs of the next step.
RECENT = 3
"""Number of recent actions in a brief: those of the active leaf, and earlier ones of other leaves if it has fewer."""

# The last two forbid what agents often do after an interruption: greet, summarise, plan again.
_WORDS: dict[Moment, str] = {
    "start": "Begin with the step below.",
    "continue": "",
    "resume": (
        "You were interrupted. Go on with the step below: do not start over, and do not introduce yourself or the plan again. "
        "Look at the files before you repeat an action."
    ),
    "compaction": (
        "Your context was shortened. Go on with the step below in the middle of the work: no greeting, no summary, no new plan."
    ),
}
_MARKS = {True: "✓", False: "✗", None: "?"}
# Maximum characters of a description, of a reason or call, and of a reason among several.
_LONG, _SHORT, _BRIEF = 400, 160, 80
_MIN_CHARS = 24  # a line cut to fewer characters says nothing
_MAX_BLOCKED, _MAX_IN_FLIGHT, _MAX_PROBES, _MAX_FAILURES = 5, 3, 20, 3


class _Part(NamedTuple):
    """Lines that belong together. The lowest ``rank`` is kept first; ``name`` is for the list of omissions."""

    rank: int
    name: str
    lines: list[str]


def write_brief(state: State, max_chars: int, moment: Moment | None = None) -> BriefAnswer:
    """Return the brief with at most ``max_chars`` characters, even if that is 0, and a list of the omissions."""
    when = moment or state.moment
    parts = [part for part in _list_parts(state, when) if part.lines]
    hidden = _left_out_counts(state)
    full_text = "\n".join(line for part in parts for line in part.lines)
    tail = f"Not shown: {', '.join(hidden)} ('ctxmgr goal tree')" if hidden else ""
    left_out = [f"{what}: ctxmgr goal tree" for what in hidden]
    if len(full_text) + (len(tail) + 1 if tail else 0) <= max_chars:
        text = f"{full_text}\n{tail}" if tail else full_text
    elif len(full_text) <= max_chars:
        # The complete brief, without the counts of facts elsewhere, which `left_out` has.
        text = full_text
    else:
        text, missing = _choose_parts(parts, max_chars, len(full_text) + len(tail) + 1)
        left_out += [f"{name}: ctxmgr goal brief --max-chars {len(full_text) + len(tail) + 1}" for name in missing]
    return BriefAnswer(text=text, chars=len(text), max_chars=max_chars, moment=when, left_out=left_out)


def _list_parts(state: State, moment: Moment) -> list[_Part]:
    """Return the parts in reading order, which differs from the order of importance (``rank``)."""
    node = state.current()
    goal = state.goal
    parts = [
        _Part(4, "how to go on", [_WORDS.get(moment, "")] if _WORDS.get(moment) else []),
        _Part(0, "the goal", [f"GOAL: {plain_line(goal.text, _LONG)} [{goal.status}, {goal.percent()}%]"]),
    ]
    if node is None:
        return [
            *parts,
            _Part(
                1,
                "the next step",
                [f"NEXT: {plain_line(state.next_step, _LONG) if state.next_step else explain_no_work(state)}"],
            ),
            _Part(3, "actions in flight", _describe_in_flight(state, goal)),
            _Part(8, "the probes", _probes(state)),
        ]
    if node is not goal:
        above = state.tree.parent(node)
        if above is not None and above is not goal:
            line = f"TASK {above.id}: {plain_line(above.text, _LONG)} [{above.status}, {above.percent()}%]"
            parts.append(_Part(3, "the task", [line]))
        level = "TASK" if above is goal else "SUBTASK"
        parts.append(
            _Part(
                1,
                "the active step",
                [f"{level} {node.id}: {plain_line(node.text, _LONG)} [{node.status}]{_describe_attempt(node)}"],
            )
        )
    elif node.attempts:
        parts.append(_Part(5, "the attempt", [f"ATTEMPT:{_describe_attempt(node).removeprefix(', attempt')}"]))
    return [
        *parts,
        _Part(2, "why it is blocked", _block_reason(state, node)),
        _Part(5, "how the last attempt failed", _last_failure(node)),
        _Part(6, "how earlier attempts failed", _earlier_failures(node)),
        _Part(6, "the latest actions", _recent(state, node)),
        _Part(3, "actions in flight", _describe_in_flight(state, node)),
        _Part(2, "blocked actions", _blocked_lines(state, node)),
        _Part(4, "the next step", [f"NEXT: {_describe_next(state, node)}"]),
        _Part(7, "the probes", _probes(state)),
    ]


def _describe_attempt(node: Node) -> str:
    attempt = node.attempt
    if attempt is None:
        return ""
    # A leaf whose attempt failed or was left is tried again, so the brief names the next attempt.
    over = attempt.status != "in_progress" and node.status in ("pending", "failed")
    number = attempt.number + 1 if over else attempt.number
    return f", attempt {number}"


def _block_reason(state: State, node: Node) -> list[str]:
    blocked = [each for each in state.tree.path(node) if each.status == "blocked" and each.block is not None]
    return [f"BLOCKED {each.id}: {plain_line(each.block.reason, _SHORT)}" for each in blocked if each.block][:1]


def _failures(node: Node) -> list[AttemptView]:
    """Return the failed attempts at a leaf, the latest first."""
    return [each for each in reversed(node.attempts) if each.status == "failed"]


def _last_failure(node: Node) -> list[str]:
    ended = _failures(node)
    if not ended:
        return []
    why = plain_line(ended[0].reason, _SHORT) if ended[0].reason else "no reason was given"
    return [f"FAILED BEFORE: attempt {ended[0].number}: {why}"]


def _earlier_failures(node: Node) -> list[str]:
    """Return one line with the failures before the last one, so that none of these ways is tried again."""
    told = [
        f"attempt {each.number}: {plain_line(each.reason, _BRIEF)}"
        for each in _failures(node)[1 : 1 + _MAX_FAILURES]
        if each.reason
    ]
    return [f"AND BEFORE THAT: {'; '.join(told)}"] if told else []


def _recent(state: State, node: Node) -> list[str]:
    lines = [
        f"  - {_other_step(each, node)}{_describe_call(each)} → {outcome_text(each.status, each.output, each.error)}"
        for each in _recent_actions(state, node)
    ]
    return ["RECENT ACTIONS:", *lines] if lines else []


def _recent_actions(state: State, node: Node) -> list[Action]:
    """Return the recent actions, oldest first. They include results of the previous step, from which this step starts."""
    own = [each for each in state.actions if each.node == node.id][-RECENT:]
    others = [each for each in state.actions if each.node != node.id]
    return sorted([*others[max(0, len(others) - RECENT + len(own)) :], *own], key=lambda each: each.n)


def _other_step(item: OpenAction, node: Node) -> str:
    """Return the step's id in brackets if an action belongs to another step, else an empty text."""
    return "" if item.node == node.id else f"[{plain_line(item.node, 20)}] "


def _describe_in_flight(state: State, node: Node) -> list[str]:
    shown = state.in_flight[-_MAX_IN_FLIGHT:]
    unknown = "→ effect unknown, look before you repeat it"
    lines = [f"  - {_other_step(each, node)}{_describe_call(each)} {unknown} [{plain_line(each.id, 60)}]" for each in shown]
    if len(state.in_flight) > len(shown):
        lines.append(f"  - and {len(state.in_flight) - len(shown)} more")
    return ["IN FLIGHT (how it ended: ctxmgr goal record NAME --entry ID --result RESULT):", *lines] if lines else []


def _blocked_lines(state: State, node: Node) -> list[str]:
    own = [each for each in state.blocked_actions if each.node == node.id]
    lines = [f"  - {_describe_call(each)}: {plain_line(each.reason, _SHORT)}" for each in own[-_MAX_BLOCKED:]]
    if len(own) > _MAX_BLOCKED:
        lines.append(f"  - and {len(own) - _MAX_BLOCKED} more")
    return ["BLOCKED ACTIONS (do not repeat):", *lines] if lines else []


def _describe_next(state: State, node: Node) -> str:
    if state.next_step:
        return plain_line(state.next_step, _LONG)
    if any(each.status == "blocked" for each in state.tree.path(node)):
        after = state.tree.first_open(node)
        return "go on with another step: ctxmgr goal next" if after else explain_no_work(state)
    following = next_in_task(state, node)
    if following is not None:
        return plain_line(following.text, _LONG)
    if node is state.goal:
        return "work on the goal; when it is reached: ctxmgr goal done"
    return "finish this step, then: ctxmgr goal done, ctxmgr goal next"


def next_in_task(state: State, node: Node) -> Node | None:
    """Return the next open subtask of the same task, or None. Other tasks do not count."""
    task = state.tree.parent(node)
    if task is None or task is state.goal:
        return None
    place = task.children.index(node)
    return next((each for each in task.children[place + 1 :] if state.tree.can_work(each)), None)


def _probes(state: State) -> list[str]:
    seen = [f"{plain_line(each.name, 60)}:{_MARKS[each.ok]}" for each in state.probe_state[:_MAX_PROBES]]
    return [f"STATE: {' '.join(seen)}"] if seen else []


def _describe_call(item: OpenAction | BlockedAction) -> str:
    from ctxmgr.detect.step import call_text

    return plain_line(call_text(Observation("start", 0, "", "", action=item.action, input=item.args)), _SHORT)


def _left_out_counts(state: State) -> list[str]:
    """Return the numbers of tasks and actions that the brief does not show, each as a phrase."""
    node = state.current()
    path = {each.id for each in state.tree.path(node)} if node else {state.goal.id}
    tasks = sum(each.id not in path for each in state.goal.children)
    earlier = state.count("actions") - (len(_recent_actions(state, node)) if node is not None else 0)
    found = [f"{tasks} other task{'s' * (tasks != 1)}"] if tasks else []
    found += [f"{earlier} earlier action{'s' * (earlier != 1)}"] if earlier else []
    failures = len(_failures(node)[1 + _MAX_FAILURES :]) if node is not None else 0
    return [*found, *([f"{failures} earlier failure{'s' * (failures != 1)}"] if failures else [])]


def _choose_parts(parts: list[_Part], room: int, needed: int) -> tuple[str, list[str]]:
    """Return the text of the parts that fit, chosen by rank, and the names of those that are cut or left out."""
    full, short = f"(more: ctxmgr goal brief --max-chars {needed})", "(more)"
    # The hint how to see more may take a third of the room. If there is less room, the facts need it.
    mark = next((each for each in (full, short) if len(each) <= room // 3), "")
    left = room - (len(mark) + 1 if mark else 0)
    chosen_texts: dict[int, str] = {}
    missing: list[str] = []
    for place in sorted(range(len(parts)), key=lambda place: parts[place].rank):
        text = "\n".join(parts[place].lines)
        space = left - (1 if chosen_texts else 0)
        if len(text) > space:
            missing.append(parts[place].name)
            text = _cut_part(parts[place], space)
        if text:
            left = space - len(text)
            chosen_texts[place] = text
    body = "\n".join(chosen_texts[place] for place in sorted(chosen_texts))
    return (f"{body}\n{mark}" if mark and body else body or mark[:room]), missing


def _cut_part(part: _Part, space: int) -> str:
    """Return the lines of a part that fit. A single line is shortened."""
    lines: list[str] = []
    for line in part.lines:
        if len("\n".join([*lines, line])) > space:
            break
        lines.append(line)
    # The first of several lines is a title, which says nothing alone.
    if len(lines) > 1 or (lines and len(part.lines) == 1):
        return "\n".join(lines)
    if space < _MIN_CHARS or len(part.lines) > 1:
        return ""
    return part.lines[0][: space - 1] + "…"


_MAX_LISTED = 50


def goal_source(state: State) -> GoalSource:
    """Return the current task and subtask, the done, open and blocked leaves, and the next step, with texts as recorded."""
    node, goal = state.current(), state.goal
    path = state.tree.path(node) if node is not None else [goal]
    task = next((each for each in path if each is not goal and "." not in each.id), None)
    leaves = list(goal.leaves())
    following = next_in_task(state, node) if node is not None else None
    blocked = [f"{each.id} {each.text}: {each.block.reason}" for each in goal.walk() if each.block is not None and each.is_leaf]
    blocked += [f"{each.action}: {each.reason}" for each in state.blocked_actions]
    attempt = node.attempt if node is not None else None
    return GoalSource(
        session=state.session, goal=goal.text, status=goal.status, percent=goal.percent(),
        task=f"{task.id} {task.text}" if task else None,
        subtask=f"{node.id} {node.text}" if node is not None and "." in node.id else None,
        attempt=attempt.number if attempt else None,
        done=[f"{each.id} {each.text}" for each in leaves if each.status == "done"][-_MAX_LISTED:],
        open=[f"{each.id} {each.text}" for each in leaves if each.status in ("pending", "in_progress", "failed")][:_MAX_LISTED],
        blocked=blocked[:_MAX_LISTED], next=f"{following.id} {following.text}" if following else None,
        next_step=state.next_step,
        in_flight=[f"{each.action} {plain_line(each.args)}".strip() for each in state.in_flight], probe_state=state.probe_state,
    )  # fmt: skip


LAST_MESSAGES = 10
"""Number of latest messages that an agent's loop without a brief typically keeps."""
NEEDED_ACTIONS = 3

_TEXT_TYPES = frozenset({
    "user_message", "user_message_chunk", "message", "agent_message_chunk", "thought", "agent_thought_chunk", "nudge",
    "interrupt", "error",
})  # fmt: skip
_COMPARED_CHARS = 40
"""Number of characters of a text to compare, because a brief may shorten the rest."""


def messages(records: Iterable[Record]) -> Iterator[str]:
    """Yield a history as the messages that a loop would send, each as a line of JSON. Never raises."""
    for record in records:
        kind = record.get("kind")
        if kind == "entry":
            yield _json_line({"role": "assistant", "call": record.get("action"), "arguments": record.get("input")})
            if record.get("status") is not None:
                yield _result(record)
        elif kind == "result":
            yield _result(record)
        elif kind == "event" and isinstance(type_ := record.get("type"), str) and type_ in _TEXT_TYPES:
            data = record.get("data")
            text = cast("dict[str, object]", data).get("text") if isinstance(data, dict) else data
            yield _json_line({"role": "user" if type_ == "user_message" else "assistant", "content": text})


def _result(record: Record) -> str:
    error = {"error": record["error"]} if record.get("error") is not None else {}
    return _json_line({"role": "tool", "status": record.get("status"), "content": record.get("output"), **error})


def _json_line(value: dict[str, Any]) -> str:
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def compare(
    records: Iterable[Record], state: GoalState, text: str, count: Callable[[str, str], int], counter: str
) -> Comparison:
    """Return how much shorter the brief is (in percent of characters and tokens), and which needed facts it contains.

    Args:
        records: the goal's history, in order.
        state: the current state of the goal.
        text: the brief.
        count: (text, kind) -> tokens; the kind is ``text`` or ``json``.
        counter: name of that token counter.
    """
    number = chars = tokens = 0
    last: deque[tuple[int, int]] = deque(maxlen=LAST_MESSAGES)
    for message in messages(records):
        size = (len(message), count(message, "json"))
        last.append(size)
        number, chars, tokens = number + 1, chars + size[0], tokens + size[1]
    whole = Size(messages=number, chars=chars, tokens=tokens)
    ten = Size(messages=len(last), chars=sum(size[0] for size in last), tokens=sum(size[1] for size in last))
    brief = Size(messages=1, chars=len(text), tokens=count(text, "text"))
    return Comparison(
        brief=brief, last_ten=ten, history=whole, counter=counter, facts=facts(state, text),
        saved_chars=_saved_percent(brief.chars, whole.chars), saved_tokens=_saved_percent(brief.tokens, whole.tokens),
        saved_chars_of_last_ten=_saved_percent(brief.chars, ten.chars),
        saved_tokens_of_last_ten=_saved_percent(brief.tokens, ten.tokens),
    )  # fmt: skip


def _saved_percent(part: int, whole: int) -> float | None:
    return round(100 * (1 - part / whole), 1) if whole else None


def facts(state: GoalState, text: str) -> list[Fact]:
    """Return the facts that the next step needs, each with whether the text contains it."""
    found: list[Fact] = []
    lines = [_normalise(line) for line in text.splitlines()]
    brief = _normalise(text)

    def add(kind: FactKind, text: str, held: bool) -> None:
        found.append(Fact(kind=kind, text=text, held=held))

    task, leaf = _current(state)
    for kind, node in (("task", task), ("subtask", leaf)):
        if node is not None:
            add("task" if kind == "task" else "subtask", node.description, _compared_head(node.description) in brief)
    for action in state.actions[-NEEDED_ACTIONS:]:
        add("action", _action_text(action), any(_names_action(line, action) for line in lines))
    for blocked in state.blocked_actions:
        add("blocked", f"{blocked.action}: {blocked.reason}", any(_normalise(blocked.action) in line for line in lines))
    return found


def _current(state: GoalState) -> tuple[SubtaskView | None, SubtaskView | None]:
    """Return the current task, and its current subtask if it has one."""
    for task in state.goal.tasks:
        if task.id == state.current:
            return task, None
        for part in task.subtasks:
            if part.id == state.current:
                return task, part
    return None, None


def _action_text(action: ActionView) -> str:
    return f"{action.action}: {action.status}" + (f", {action.result}" if action.result else "")


_OUTCOMES = {
    "ok": ("ok", "success"), "error": ("error", "fail"), "denied": ("denied",), "interrupted": ("interrupt",),
    "open": ("open", "unknown", "running", "in flight"),
}  # fmt: skip


def _names_action(line: str, action: ActionView) -> bool:
    """Whether a line names an action and its outcome, by the beginning of the result or by a word for the status."""
    if _compared_head(action.action) not in line:
        return False
    result = _compared_head(action.result or "")
    return bool(result and result in line) or any(word in line for word in _OUTCOMES[action.status])


def _normalise(text: str) -> str:
    return " ".join(text.split()).lower()


def _compared_head(text: str) -> str:
    return _normalise(text)[:_COMPARED_CHARS].rstrip()
