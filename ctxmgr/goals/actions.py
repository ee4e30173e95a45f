"""Decide whether an action is recorded or refused, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ctxmgr.detect.text.fingerprints import canonical
from ctxmgr.errors import InvalidInput
from ctxmgr.goals.changes import why_not
from ctxmgr.goals.reducer import task_of
from ctxmgr.goals.state import Action, OpenAction, State
from ctxmgr.goals.tree import Node
from ctxmgr.goals.truncation import key_of, outcome, plain_line, reduced
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id
from ctxmgr.log.json_value import plain, type_name
from ctxmgr.types.finding import Finding
from ctxmgr.types.goal import ActionRequest, LoopType, RecordAnswer, RecordRequest
from ctxmgr.types.plain_records import build

if TYPE_CHECKING:
    from ctxmgr.goals.loop_guard import LoopGuard

_MAX_ACTION_CHARS = 1_000


class Refusal(NamedTuple):
    """Why an action is not allowed; ``type`` is None where a person blocked the node."""

    type: LoopType | None
    reason: str
    finding: Finding | None
    hint: str


def candidate(state: State, request: ActionRequest, agent: str, ts: str) -> tuple[OpenAction, Node]:
    """Return an action as the state would keep it, with the result that the request has, and the leaf it would belong to."""
    node = state.current() or state.goal
    attempt = node.attempt
    number = (attempt.number if attempt.status == "in_progress" else attempt.number + 1) if attempt else 1
    if not state.tree.can_work(node):
        number = attempt.number if attempt else 0
    args: Any = plain(request.args)
    item = OpenAction(
        id=new_id(), agent=request.agent or agent, action=request.action, key=key_of(request.action, args), args=reduced(args),
        began=ts, node=node.id, attempt=number,
    )  # fmt: skip
    if isinstance(request, RecordRequest) and has_result(request):
        status, output, error = outcome(request.result, request.status)
        item = item.finished(state.count("actions") + 1, status, reduced(output), reduced(error), ts)
    return item, node


def has_result(request: RecordRequest) -> bool:
    """Whether a request says how its action ended."""
    return request.status is not None or request.result is not None or "result" in request.model_fields_set


def refusal(state: State, item: OpenAction, node: Node, guard: LoopGuard) -> Refusal | None:
    """Return why the action is not allowed, None when it is."""
    stopped = _stopped(state, node)
    if stopped is not None:
        return stopped
    block = next((each for each in state.blocked_actions if each.key == item.key and each.node == node.id), None)
    if block is not None and (not isinstance(item, Action) or guard.is_old_news(state, item)):
        hint = f"try something else; a person lifts it with 'ctxmgr goal unblock {block.key}'"
        return Refusal(block.type, f"blocked since: {block.reason}", None, hint)
    verdict = guard.action(state, item)
    if verdict is None:
        return None
    found = verdict.finding
    said = plain_line(item.action, 60)
    if verdict.type == "A":
        reason = f"{said} was done {found.count - 1} times with the same result; once more is a loop"
    else:
        reason = (
            f"the same {found.period} actions came round {found.count} times with the same results; {said} would close the loop"
        )
    return Refusal(verdict.type, reason, found, "try a different approach, or ask with 'ctxmgr goal recover'")


def _stopped(state: State, node: Node) -> Refusal | None:
    """Return why nothing may be done at the node now."""
    blocked = next((each for each in state.tree.path(node) if each.status == "blocked"), None)
    if blocked is None:
        return None
    by_person = any(each.block is not None and each.block.by == "user" for each in state.tree.path(node))
    after = state.tree.first_open(node)
    hint = f"'ctxmgr goal next' goes on with {after.id}" if after else f"'ctxmgr goal unblock {blocked.id}' lifts the block"
    reason = why_not(state, node)
    return Refusal(None if by_person else "C", reason.replace("it is blocked", f"{node.id} is blocked", 1), None, hint)


def refused_event(item: OpenAction, node: Node, no: Refusal) -> dict[str, Any]:
    """Return the data of the event that records a refusal."""
    data: dict[str, Any] = {
        "op": "refused", "node": node.id, "type": no.type, "action": item.action, "args": item.args, "key": item.key,
        "signature": plain_line(f"{item.action}::{canonical(item.args) or ''}", 300), "reason": no.reason,
    }  # fmt: skip
    if isinstance(item, Action):
        data |= {"status": item.status, "output": item.output, "error": item.error}
    if no.finding is not None:
        found = no.finding
        data |= {"kind": found.kind, "count": found.count, "period": found.period, "members": found.members[-40:]}
    return data


def entry(item: OpenAction, request: ActionRequest, session: str) -> Record:
    """Return the entry of an action, with its result where the request has one."""
    args: Any = plain(request.args)
    fields: dict[str, Any] = {}
    if isinstance(item, Action) and isinstance(request, RecordRequest):
        status, output, error = outcome(request.result, request.status)
        fields = {"status": status, "output": output, "error": error}
    return build(
        "entry", session, item.began, id=item.id, agent=item.agent, action=request.action,
        inputType=None if args is None else type_name(args), input=args, task=task_of(item.node, item.attempt), **fields,
    )  # fmt: skip


def result(state: State, request: RecordRequest, session: str, ts: str) -> Record:
    """Return the result of an action that was begun.

    Raises:
        InvalidInput: no such action is under way, or the request names no result.
    """
    if not any(each.id == request.entry for each in state.in_flight):
        raise InvalidInput(
            f"no action {plain_line(request.entry, 60)} is under way", "'ctxmgr goal resume' lists those that are"
        )
    if not has_result(request):
        raise InvalidInput("a result is missing", "e.g. success, error, or what came back")
    status, output, error = outcome(request.result, request.status)
    return build("result", session, ts, entry=request.entry, status=status, output=output, error=error)


def answer(item: OpenAction, node: Node, no: Refusal | None, *, recorded: bool) -> RecordAnswer:
    """Return what the caller is told."""
    attempt = node.attempt.number if node.attempt else None
    if no is None:
        return RecordAnswer(allowed=True, entry=item.id if recorded else None, node=node.id, attempt=attempt)
    return RecordAnswer(
        allowed=False, reason=no.reason, type=no.type, finding=no.finding, node=node.id, attempt=attempt, hint=no.hint
    )


def check_action(request: ActionRequest) -> None:
    """Refuse an action without a name.

    Raises:
        InvalidInput: its name is blank.
    """
    if not request.action.strip() or len(request.action) > _MAX_ACTION_CHARS:
        raise InvalidInput("an action has a name", "e.g. write_file")
