"""Store what identifies an action in bounded space: its key, arguments and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ctxmgr.detect.text.fingerprints import MAX_TEXT, blur, canonical, one_line
from ctxmgr.goals.state import Action, Node, OpenAction, Owner, State
from ctxmgr.log.codec import fingerprint
from ctxmgr.log.json_value import describe, plain
from ctxmgr.types.goal import ActionView, GoalState, GoalView, LoopType, OwnerView, ResultStatus, SubtaskView, TaskView

MAX_WHOLE_CHARS = 1_200
"""Longest canonical JSON, in characters, of arguments or a result that are kept unchanged."""

_MAX_TEXT_CHARS, _HEAD = 500, 320  # of a text, and of the beginning that is kept of a longer one
_SUCCESS_WORDS = frozenset({"success", "ok", "succeeded", "done", "passed", "pass"})
_ERROR_WORDS = frozenset({"error", "failure", "failed", "fail"})
_OTHER_WORDS: dict[str, ResultStatus] = {"denied": "denied", "interrupted": "interrupted"}


def key_of(action: str, args: object) -> str:
    """Return the key of a call: equal for the same action and arguments, whatever the order of their keys."""
    return fingerprint([action, canonical(args)])


def reduced(value: object) -> Any:
    """Return the value; a long one as its beginning and a fingerprint of all of it, so that equal values stay equal."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _text(value)
    full = canonical(value)
    if full is not None and len(full) <= MAX_WHOLE_CHARS:
        return value
    # Short members of a long call, such as a path beside a file's content, are what tells it from others.
    if isinstance(value, dict) and len(cast("dict[Any, Any]", value)) <= 16:
        fields = {str(name)[:100]: _member(item) for name, item in cast("dict[Any, object]", value).items()}
        if len(canonical(fields) or "") <= 2 * MAX_WHOLE_CHARS:
            return fields
    return {"tooLarge": len(full or ""), "fingerprint": fingerprint(cast("object", value)), "head": (full or "")[:_HEAD]}


def _member(item: object) -> Any:
    return _text(item) if isinstance(item, str) else reduced(item)


def _text(text: str) -> str:
    if len(text) <= _MAX_TEXT_CHARS:
        return text
    full = blur(text) if len(text) <= MAX_TEXT else text  # longer blurred texts can't be compared across processes
    return f"{text[:_HEAD]}… [{len(text)} characters, {fingerprint(full)}]"


def is_shortened(text: str) -> bool:
    """Whether a text was cut by `reduced`."""
    return len(text) > _HEAD and text[_HEAD : _HEAD + 3] == "… ["


def outcome(result: object, status: ResultStatus | None = None) -> tuple[ResultStatus, Any, dict[str, Any] | None]:
    """Return the result that a caller gave as (status, output, error) of a record.

    ``success``, ``error`` and ``error: MESSAGE`` name the status; exceptions and objects with an ``error`` are errors;
    anything else is an output. An explicit ``status`` takes precedence.
    """
    if isinstance(result, BaseException):
        return status or "error", None, {"type": type(result).__name__, "message": describe(result)}
    value: Any = plain(result)
    if isinstance(value, str):
        word, colon, rest = value.partition(":")
        keyword = word.strip().lower() if len(word) < 20 else ""
        if keyword in _ERROR_WORDS and (colon or not rest):
            message = rest.strip()
            return status or "error", None, {"message": message} if message else None
        if not colon and keyword in _OTHER_WORDS:
            return status or _OTHER_WORDS[keyword], None, None
        if not colon and keyword in _SUCCESS_WORDS:
            return status or "ok", None, None
        return status or "ok", value, None
    given = cast("object", value)
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        if error := fields.get("error"):
            body = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": plain_line(error)}
            return (
                status or "error",
                fields,
                {name: plain_line(body[name]) for name in ("type", "message") if name in body},
            )
    return status or "ok", cast("Any", given), None


def outcome_text(status: str, output: object, error: object, width: int = 120) -> str:
    """Return an outcome as one line: ``success``, ``error: MESSAGE``, or the output."""
    message = cast("dict[str, object]", error).get("message") if isinstance(error, dict) else None
    if status == "ok":
        return plain_line(output, width) if output not in (None, "", {}, []) else "success"
    detail = plain_line(message if message is not None else output, width) if (message or output) else ""
    return f"{status}: {detail}" if detail else status


def plain_line(value: object, width: int = 200) -> str:
    """Return any recorded value as one printable line of at most ``width`` characters."""
    if width <= 0 or value is None:
        return ""
    text = value if isinstance(value, str) else canonical(value) or type(value).__name__
    return one_line(text, width)


SHOWN_ACTIONS = 10
"""Number of latest actions of the current leaf that a state shows."""


def state_view(state: State, generation: int, records: int, total: str, warnings: Sequence[str]) -> GoalState:
    """Return the public view of a goal's state."""
    node = state.current()
    after = state.tree.first_open(node) if node is not None else None
    own = [each for each in state.actions if node is not None and each.node == node.id][-SHOWN_ACTIONS:]
    counts: dict[LoopType, int] = {"A": state.count("A"), "B": state.count("B"), "C": state.count("C")}
    return GoalState(
        goal=goal_view(state), current=node.id if node else None, active=node is not None and node.id == state.active,
        next=after.id if after else None, next_step=state.next_step, actions=[action_view(each) for each in own],
        in_flight=[action_view(each) for each in state.in_flight], blocked_actions=state.blocked_actions, loop_counts=counts,
        probes=state.probes, probe_state=state.probe_state, actions_total=state.count("begun"),
        refused_total=state.count("refused"), owner=owner_view(state.epoch, state.owner), generation=generation,
        records=records, sum=total, warnings=list(warnings),
    )  # fmt: skip


def goal_view(state: State) -> GoalView:
    """Return the public view of the whole tree."""
    goal = state.goal
    tasks = [
        TaskView(**_common(task), subtasks=[SubtaskView(**_common(each)) for each in task.children]) for task in goal.children
    ]
    return GoalView(**_common(goal), session=state.session, tasks=tasks)


def action_view(item: OpenAction) -> ActionView:
    """Return the public view of an action; one without a result has status ``open``."""
    done = item if isinstance(item, Action) else None
    return ActionView(
        id=item.id, action=item.action, args=item.args, status=done.status if done else "open",
        result=outcome_text(done.status, done.output, done.error) if done else None,
        ts=(done.ts if done else None) or item.began, node=item.node, attempt=item.attempt,
    )  # fmt: skip


def owner_view(epoch: int, owner: Owner | None) -> OwnerView:
    """Return the public view of an owner; fields of a wrong type become null."""
    if owner is None:
        return OwnerView(epoch=epoch)

    def text(value: object) -> str | None:
        return value if isinstance(value, str) else None

    pid = owner.pid if isinstance(owner.pid, int) else None
    return OwnerView(epoch=epoch, owner=text(owner.owner), pid=pid, host=text(owner.host), since=owner.ts)


def _common(node: Node) -> dict[str, Any]:
    return {
        "id": node.id, "description": node.text, "status": node.status, "percent": node.percent(), "reason": node.reason,
        "attempts": node.attempts, "block": node.block,
    }  # fmt: skip
