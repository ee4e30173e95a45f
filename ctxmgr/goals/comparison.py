"""Compare the brief with the history that an agent would read without it.

Separate from `brief`, which agents request at every step.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from ctxmgr.log.codec import Record
from ctxmgr.log.json_value import plain
from ctxmgr.types.goal import ActionView, Comparison, Fact, FactKind, GoalState, Size, SubtaskView

LAST = 10
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
    last: deque[tuple[int, int]] = deque(maxlen=LAST)
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
