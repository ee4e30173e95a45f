"""Answer every request about a goal, for the library, the command line and tools. Start reading here.

Each change is decided on the state, written to the history, synced, and only then folded in. An illegal change writes nothing;
a refused action writes only the refusal.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ctxmgr.detect.text.fingerprints import canonical
from ctxmgr.errors import Conflict, InvalidInput
from ctxmgr.goals.brief import goal_source, write_brief
from ctxmgr.goals.changes import ENDED, entry_task, find_node, why_not
from ctxmgr.goals.plan_edits import FOLDER, PlanEdits, explain_no_work, join_lines, probes_data, tasks_data
from ctxmgr.goals.state import Action, Node, OpenAction, State, call_key, is_shortened, outcome, owner_view, plain_line, shorten
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id
from ctxmgr.log.journal import read
from ctxmgr.log.json_value import plain, type_name
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Finding
from ctxmgr.types.goal import (
    ActionRequest,
    BriefAnswer,
    BriefRequest,
    Claim,
    EndRequest,
    GoalAnswer,
    GoalSource,
    LoopType,
    NextRequest,
    ProbeResult,
    RecordAnswer,
    RecordRequest,
    ResumeAnswer,
    ResumeRequest,
    StartRequest,
)
from ctxmgr.types.plain_records import build

if TYPE_CHECKING:
    from ctxmgr.detect.settings import DetectSettings
    from ctxmgr.goals.loop_guard import LoopGuard


# Names of path arguments in the file tools of clients, e.g. file_path in Claude Code, filePath in opencode.
_PATH_ARGUMENTS = ("path", "file_path", "filePath", "file", "filename", "notebook_path")
_REMOVES_FILES = lazy_pattern(r"(?i)delete|remove|unlink|\brm\b|move|rename|trash|clean")
_MAX_PATHS, _MAX_DONE = 20, 20


def collect_claims(state: State, root: str, results: Sequence[ProbeResult]) -> list[Claim]:
    """Return claims about the state of the work, each verified, refuted or only assumed.

    Probes come first, then files that recent actions name (only their existence below ``root`` is checked), then work that is
    recorded as done.
    """
    claims = [_probe_claim(each) for each in results]
    claims += [_path_claim(root, path, action) for path, action in _list_paths(state).items()]
    node = state.current()
    task = state.tree.parent(node) if node is not None else None
    if task is not None:
        done = [each for each in task.children if each.status == "done"][-_MAX_DONE:]
        claims += [
            Claim(text=f"{each.id} is done: {plain_line(each.text)}", basis="assumed") for each in done
        ]  # fmt: skip
    if node is not None and (attempt := node.attempt) is not None and attempt.actions:
        # What is in flight has no recorded effect.
        open_ = sum(each.node == node.id and each.attempt == attempt.number for each in state.in_flight)
        if (count := attempt.actions - open_) > 0:
            text = (
                f"{count} action{'s' * (count != 1)} of attempt {attempt.number} at {node.id} had the effect that was recorded"
            )
            claims.append(Claim(text=text, basis="assumed"))
    return claims


def _probe_claim(result: ProbeResult) -> Claim:
    detail = f": {plain_line(result.detail)}" if result.detail else ""
    basis = "assumed" if result.ok is None else "verified" if result.ok else "refuted"
    return Claim(text=f"{plain_line(result.name, 60)}{detail}", basis=basis, probe=result.name)


def _list_paths(state: State) -> dict[str, str]:
    """Return path -> the last action that named it, for the paths of the latest successful actions."""
    found: dict[str, str] = {}
    for item in state.actions:
        if item.status == "ok" and (path := _find_path(item)):
            # Move it to the end, because only the latest paths are kept.
            found.pop(path, None)
            found[path] = item.action
    return dict(list(found.items())[-_MAX_PATHS:])


def _find_path(item: Action) -> str | None:
    # A deleted file is supposed to be missing.
    if not isinstance(item.args, dict) or _REMOVES_FILES.search(item.action):
        return None
    fields = cast("dict[str, Any]", item.args)
    path = next((fields[key] for key in _PATH_ARGUMENTS if isinstance(fields.get(key), str)), None)
    # A URL is no file, and a shortened path is another path.
    if not path or "\0" in path or "://" in path or is_shortened(path):
        return None
    return path


def _path_claim(root: str, path: str, action: str) -> Claim:
    shown, by = plain_line(path, 200), plain_line(action, 60)
    try:
        # Only `stat`, because the name comes from recorded text and may be any device or pipe.
        os.stat(os.path.join(root, path))
    except (FileNotFoundError, NotADirectoryError):
        return Claim(text=f"{shown} is not there, though {by} of it succeeded", basis="refuted")
    except (OSError, ValueError):
        return Claim(text=f"{shown} can't be looked at ({by} of it succeeded)", basis="assumed")
    return Claim(text=f"{shown} is there ({by})", basis="verified")


class Goals(PlanEdits):
    """A goal in a folder.

    Args:
        folder: folder of the goal's files; `start` creates it with mode 0700.
        agent: the acting agent if a request names none.
        hold: whether this process owns the goal from its first change until `close`; otherwise each call is separate, as with
            commands.
        settings: thresholds of loop detection.
        durability: when a change returns; by default when it is on the disk (level ``os``).
        mask: whether to mask secrets of known shapes.
        timeout: seconds to wait for another process's change.
        root: folder to which recorded paths and probes are relative; by default the parent of ``folder``.
        commands: whether probes may run commands, or the fingerprints of those that may (`ctxmgr.goals.probes.fingerprint`).

    Raises (all methods):
        NotFound: there is no goal here, or no task with that id.
        InvalidInput: the change is illegal in the current state; nothing was written.
        Busy: another process holds the goal. Superseded: another took it over; nothing was written.
        StorageFailed: the system refuses.
    """

    @classmethod
    def open(
        cls, project: str | os.PathLike[str] = ".", *, create: bool = False, hold: bool = False,
        commands: bool | Collection[str] = False, agent: str = "agent", settings: DetectSettings | None = None,
    ) -> Goals:  # fmt: skip
        """Return the goal of a project, in its folder ``.agent_context``.

        Raises:
            NotFound: there is no goal, and ``create`` is false.
        """
        folder = os.path.join(os.fspath(project), FOLDER)
        goals = cls(folder, agent=agent, hold=hold, commands=commands, settings=settings)
        if not create:
            goals.state()
        return goals

    def __enter__(self) -> Goals:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the goal, so that another process may hold it."""
        self._repository.release()

    def start(self, request: StartRequest) -> GoalAnswer:
        """Begin a goal, or continue the existing one.

        Raises:
            Conflict: there is another, unfinished goal. NotFound: the request names no goal, and there is none.
            Damaged: the history is gone, but a state file knows an unfinished goal.
        """
        if request.goal is None:
            # Before `change` creates the folder: without a named goal, no folder must be left behind.
            self._require_goal(self._repository.look())
        with self._repository.change(work=True, anew=True, create=True) as change:
            state = change.state
            if self._repository.lost and not request.replace:
                raise self._repository.missing_goal()
            if state.exists and not request.replace and self._is_same_goal(state, request):
                change.write([])
                return self._answer([], "the goal goes on")
            text = request.goal or ""
            session = new_id()
            data = self._require_legal("create", {"text": text, "nodes": tasks_data(request.tasks, 0)})
            records = [
                build("session", session, self._repository.clock(), process=new_id(), workflow="goal", meta={"goal": text}),
                self._repository.event(data, session=session),
            ]
            if request.probes:
                records.append(self._repository.event(probes_data(request.probes), session=session))
            change.write(records)
        return self._answer(["goal"])

    def check(self, request: ActionRequest) -> RecordAnswer:
        """Return whether an action would be allowed. Writes nothing."""
        check_action(request)
        state = self._require_goal(self._repository.look())
        item, node = build_action(state, request, self.agent, self._repository.clock())
        return build_answer(item, node, find_refusal(state, item, node, self._guard), equal_calls(state, item), recorded=False)

    def begin(self, request: ActionRequest) -> RecordAnswer:
        """Record the beginning of an action, unless it is refused. Its effect is unknown until its result is recorded."""
        return self._record_action(ActionRequest(action=request.action, args=request.args, agent=request.agent))

    def record(self, request: RecordRequest) -> RecordAnswer:
        """Record an action with its result, or the result of an earlier begun action, unless it is refused.

        A request without a result begins the action, as `begin` does.
        """
        if request.entry is None:
            return self._record_action(request)
        with self._repository.change(work=True) as change:
            state = self._require_goal(change.state)
            item = find_in_flight(state, request.entry)
            name = item.id if item is not None else self._find_begun(request.entry)
            # Actions are frequent, so a process that holds the goal does not save its state at each of them.
            change.write([result_record(name, request, state.session, self._repository.clock())], save=False)
        node, attempt = (item.node, item.attempt) if item else (None, None)
        return RecordAnswer(allowed=True, entry=name, node=node, attempt=attempt)

    def _find_begun(self, name: str) -> str:
        """Return the name of an action that the history holds without a result, though the state does not list it.

        Raises:
            InvalidInput: there is no such action, or it has its result.
        """
        ended: bool | None = None
        for record in self.records():
            if record.get("kind") == "entry" and record.get("id") == name:
                ended = record.get("status") is not None
            elif record.get("kind") == "result" and record.get("entry") == name:
                ended = True
        if ended is not False:
            what = (
                f"action {plain_line(name, 60)} has its result already"
                if ended
                else f"no action {plain_line(name, 60)} was begun"
            )
            raise InvalidInput(what, "'ctxmgr goal resume' lists the ids of those in flight")
        return name

    def _record_action(self, request: ActionRequest) -> RecordAnswer:
        check_action(request)
        with self._repository.change(work=True) as change:
            state = self._require_goal(change.state)
            item, node = build_action(state, request, self.agent, self._repository.clock())
            refusal = find_refusal(state, item, node, self._guard)
            equal = equal_calls(state, item)  # before it is one of them itself
            if refusal is not None:
                change.write([self._repository.event(refusal_event(item, node, refusal), name=item.id)])
            else:
                change.write([entry_record(item, request, state.session)], save=False)
        return build_answer(item, node, refusal, equal, recorded=True)  # the attempt may have begun with this action

    def next(self, request: NextRequest) -> GoalAnswer:
        """Make the next leaf that can be worked on the active one, or the named leaf.

        Raises:
            InvalidInput: the active leaf is still in progress, and no other one is named.
            NotFound: there is no goal, or no leaf of that name.
        """
        with self._repository.change(work=True) as change:
            state = self._require_goal(change.state)
            active = state.tree.get(state.active)
            if request.to is not None:
                node: Node | None = find_node(state, request.to)
            elif active is not None and state.tree.can_work(active):
                node = active
            else:
                node = state.tree.first_open(active)
            if node is None:
                return self._answer([], explain_no_work(state))
            if node is active and node.status == "in_progress" and request.to is not None:
                return self._answer([], f"{node.id} is the one in progress")
            if node is active and node.status == "in_progress":
                raise InvalidInput(f"{node.id!r} is still in progress", "say 'goal done' or 'goal fail' first")
            # Work that was blocked meanwhile is left like that of a leaf from which somebody is sent elsewhere.
            stopped = active is not None and active.status == "in_progress" and not state.tree.can_work(active)
            data = {"op": "enter", "id": node.id, "leave": request.to is not None or stopped}
            change.write([self._repository.event(self._require_legal("enter", data))])
        return self._answer([node.id])

    def done(self, request: EndRequest) -> GoalAnswer:
        """End the attempt at the current leaf as done. A named leaf need not be begun, and may be done already.

        Raises:
            InvalidInput: no leaf is named and no attempt is under way, or the leaf can't be worked on.
        """
        return self._end_attempt(request, success=True)

    def fail(self, request: EndRequest) -> GoalAnswer:
        """End the attempt at the current leaf as failed. After too many failures, the leaf is blocked.

        Raises:
            InvalidInput: no attempt at the leaf is under way, or it can't be worked on.
        """
        return self._end_attempt(request, success=False)

    def _end_attempt(self, request: EndRequest, *, success: bool) -> GoalAnswer:
        with self._repository.change(work=True) as change:
            state = self._require_goal(change.state)
            node = state.current() if request.id is None else find_node(state, request.id)
            if node is None:
                raise InvalidInput(explain_no_work(state))
            if success and request.id is not None and node.status == "done":
                return self._answer([], f"{node.id} is done already")
            attempt = node.attempt
            open_ = attempt is not None and attempt.status == "in_progress"
            number = attempt.number + (not open_) if attempt else 1
            data: dict[str, Any] = {
                "subtask": node.id,
                "success": success,
                "attempt": number,
                "reason": join_lines(request.reason),
            }
            message = None
            self._require_legal("end", data)
            # A call that is made again, by a retry or a second process, must not end what follows. A name says what is meant.
            if not (success and request.id is not None):
                require_begun(state, node, success=success)
            if not success and (finding := self._guard.failure(state, node.id)) is not None:
                message = data["blocked"] = f"{finding.count} failed attempts; try a different approach"
                data["finding"] = finding.id
            change.write([self._repository.event({key: value for key, value in data.items() if value is not None}, ENDED)])
            message = f"{node.id} is blocked: {message}" if message else None
        return self._answer([node.id], message)

    def brief(self, request: BriefRequest | None = None) -> BriefAnswer:
        """Return what an agent needs to know now, in at most ``max_chars`` characters. Writes nothing."""
        wanted = request or BriefRequest()
        return write_brief(self._require_goal(self._repository.look()), wanted.max_chars, wanted.moment)

    def resume(self, request: ResumeRequest | None = None) -> ResumeAnswer:
        """Continue the goal where it was left, and return that position. A second call writes nothing.

        The probes are run and their results recorded.
        """
        wanted = request or ResumeRequest()
        # Before the lock: a probe's command may take seconds, and other processes must not wait for it.
        results = self._run_probes()
        with self._repository.change(work=True, anew=True, take_over=wanted.take_over) as change:
            state = self._require_goal(change.state)
            records = self._probe_event(state, results) if results else []
            took_over, rebuilt = change.takes and change.previous is not None, list(self._repository.damaged)
            previous, replayed = change.previous, self._repository.replayed
            change.write(records)
        self._repository.replayed = 0
        view = self._view(state)
        return ResumeAnswer(
            state=view, claims=collect_claims(state, self.root, results), in_flight=view.in_flight, replayed=replayed,
            took_over=took_over,
            previous=owner_view(state.epoch - 1, previous) if took_over and previous else None, rebuilt=rebuilt,
            brief=write_brief(state, BriefRequest().max_chars, "resume").text,
        )  # fmt: skip

    def source(self) -> GoalSource:
        """Return the facts about the goal for recovery and context packages. Writes nothing."""
        return goal_source(self._require_goal(self._repository.look()))

    def records(self) -> Iterator[Record]:
        """Yield the records of the goal's session, oldest first."""
        session = self._require_goal(self._repository.look()).session
        for line in read(self._repository.path):
            if line.record.get("session") == session:
                yield line.record

    def _is_same_goal(self, state: State, request: StartRequest) -> bool:
        same = request.goal is None or request.goal.strip() == state.goal.text.strip()
        if same or state.goal.status == "done":
            return same
        raise Conflict(
            f"another goal is under way here: {state.goal.text[:200]!r}",
            "go on with it, or give it up for this one with 'ctxmgr goal start --replace'",
        )


_MAX_ACTION_CHARS = 1_000


def require_begun(state: State, node: Node, *, success: bool) -> None:
    """Check that an attempt at a leaf is under way. A goal without tasks is under way from its start.

    Raises:
        InvalidInput: none is, with what ended last.
    """
    last = node.attempt
    if (node is state.goal and last is None) or (state.active == node.id and last is not None and last.status == "in_progress"):
        return
    begin = f"'ctxmgr goal next {node.id}' begins it" if state.current() is not node else "'ctxmgr goal next' begins it"
    if last is not None and last.status == "failed":
        raise InvalidInput(
            f"attempt {last.number} at {node.id} failed already, and attempt {last.number + 1} is not begun", begin
        )
    ended = state.outcomes[-1] if state.outcomes else None
    before = f"; {ended.node} is {'done' if ended.success else 'failed'} already" if ended else ""
    by_name = f"; 'ctxmgr goal done {node.id}' says that it is done as it is" if success else ""
    raise InvalidInput(f"{node.id} is not begun{before}", f"{begin}{by_name}")


class Refusal(NamedTuple):
    """Why an action is not allowed. ``type`` is None if a person blocked the node."""

    type: LoopType | None
    reason: str
    finding: Finding | None
    hint: str


def build_action(state: State, request: ActionRequest, agent: str, ts: str) -> tuple[OpenAction, Node]:
    """Return an action in its stored form, with the request's result if any, and the leaf that it would belong to."""
    node = state.current() or state.goal
    attempt = node.attempt
    number = (attempt.number if attempt.status == "in_progress" else attempt.number + 1) if attempt else 1
    if not state.tree.can_work(node):
        number = attempt.number if attempt else 0
    args: Any = plain(request.args)
    item = OpenAction(
        id=new_id(), agent=request.agent or agent, action=request.action, key=call_key(request.action, args),
        args=shorten(args),
        began=ts, node=node.id, attempt=number,
    )  # fmt: skip
    if isinstance(request, RecordRequest) and has_result(request):
        status, output, error = outcome(request.result, request.status)
        item = item.finish(state.count("actions") + 1, status, shorten(output), shorten(error), ts)
    return item, node


def has_result(request: RecordRequest) -> bool:
    """Whether a request has a result. An explicit ``result: null`` is one."""
    return request.status is not None or request.result is not None or "result" in request.model_fields_set


def find_refusal(state: State, item: OpenAction, node: Node, guard: LoopGuard) -> Refusal | None:
    """Return the refusal of an action, or None if the action is allowed."""
    blocked = _refuse_blocked(state, node)
    if blocked is not None:
        return blocked
    block = next((each for each in state.blocked_actions if each.key == item.key and each.node == node.id), None)
    # A blocked action with a new result is no longer a loop, because the world has changed.
    if block is not None and (not isinstance(item, Action) or guard.is_old_news(state, item)):
        hint = f"try something else; a person lifts it with 'ctxmgr goal unblock {block.key}'"
        return Refusal(block.type, f"blocked since: {block.reason}", None, hint)
    verdict = guard.action(state, item)
    if verdict is None:
        return None
    loop = verdict.finding
    name = plain_line(item.action, 60)
    if verdict.type == "A":
        reason = f"{name} was done {loop.count - 1} times with the same result; once more is a loop"
    else:
        reason = (
            f"the same {loop.period} actions came round {loop.count} times with the same results; {name} would close the loop"
        )
    return Refusal(verdict.type, reason, loop, "try a different approach, or ask with 'ctxmgr goal recover'")


def _refuse_blocked(state: State, node: Node) -> Refusal | None:
    """Return the refusal of every action at a blocked node, or None if the node is not blocked."""
    blocked = next((each for each in state.tree.path(node) if each.status == "blocked"), None)
    if blocked is None:
        return None
    by_person = any(each.block is not None and each.block.by == "user" for each in state.tree.path(node))
    after = state.tree.first_open(node)
    hint = f"'ctxmgr goal next' goes on with {after.id}" if after else f"'ctxmgr goal unblock {blocked.id}' lifts the block"
    reason = why_not(state, node)
    return Refusal(None if by_person else "C", reason.replace("it is blocked", f"{node.id} is blocked", 1), None, hint)


def refusal_event(item: OpenAction, node: Node, refusal: Refusal) -> dict[str, Any]:
    """Return the event data of a refusal: {op, node, type, action, args, key, signature, reason}.

    Of an action that was made it has {status, output, error} too, of a loop {kind, count, period, members}.
    """
    data: dict[str, Any] = {
        "op": "refused", "node": node.id, "type": refusal.type, "action": item.action, "args": item.args, "key": item.key,
        "signature": plain_line(f"{item.action}::{canonical(item.args) or ''}", 300), "reason": refusal.reason,
    }  # fmt: skip
    if isinstance(item, Action):
        data |= {"status": item.status, "output": item.output, "error": item.error}
    if refusal.finding is not None:
        loop = refusal.finding
        data |= {"kind": loop.kind, "count": loop.count, "period": loop.period, "members": loop.members[-40:]}
    return data


def entry_record(item: OpenAction, request: ActionRequest, session: str) -> Record:
    """Return the entry record of an action, with its result if the request has one."""
    args: Any = plain(request.args)
    fields: dict[str, Any] = {}
    if isinstance(item, Action) and isinstance(request, RecordRequest):
        status, output, error = outcome(request.result, request.status)
        fields = {"status": status, "output": output, "error": error}
    return build(
        "entry", session, item.began, id=item.id, agent=item.agent, action=request.action,
        inputType=None if args is None else type_name(args), input=args, task=entry_task(item.node, item.attempt), **fields,
    )  # fmt: skip


def result_record(name: str, request: RecordRequest, session: str, ts: str) -> Record:
    """Return the result record of the action with this id.

    Raises:
        InvalidInput: the request has no result.
    """
    if not has_result(request):
        raise InvalidInput("a result is missing", "e.g. success, error, or what came back")
    status, output, error = outcome(request.result, request.status)
    return build("result", session, ts, entry=name, status=status, output=output, error=error)


def find_in_flight(state: State, name: str) -> OpenAction | None:
    """Return the action in flight with this id, or with the only id that begins so.

    Raises:
        InvalidInput: several ids begin so.
    """
    found = [each for each in state.in_flight if each.id == name] or [
        each for each in state.in_flight if name and each.id.startswith(name)
    ]
    if len(found) > 1:
        raise InvalidInput(
            f"{len(found)} actions in flight have an id that begins with {plain_line(name, 60)}", "give more of it"
        )
    return found[0] if found else None


def equal_calls(state: State, item: OpenAction) -> list[OpenAction]:
    """Return the actions in flight with the same call as this one."""
    return [each for each in state.in_flight if each.key == item.key]


def build_answer(
    item: OpenAction, node: Node, refusal: Refusal | None, equal: Sequence[OpenAction], *, recorded: bool
) -> RecordAnswer:
    """Return the answer to the caller. ``equal`` has what `equal_calls` returned before the action was recorded."""
    attempt = node.attempt.number if node.attempt else None
    if refusal is None:
        return RecordAnswer(
            allowed=True, entry=item.id if recorded else None, node=node.id, attempt=attempt,
            hint=_equal_call_hint(equal[-1]) if equal else None, in_flight=[each.id for each in equal],
        )  # fmt: skip
    return RecordAnswer(
        allowed=False,
        reason=refusal.reason,
        type=refusal.type,
        finding=refusal.finding,
        node=node.id,
        attempt=attempt,
        hint=refusal.hint,
    )


def _equal_call_hint(item: OpenAction) -> str:
    began = f", begun {plain_line(item.began, 40)}" if item.began else ""
    by = f" by {plain_line(item.agent, 60)}" if item.agent else ""
    return (
        f"the same call is in flight already{began}{by}, its effect is unknown: look before you repeat it; "
        f"its result is recorded with --entry {plain_line(item.id, 60)}"
    )


def check_action(request: ActionRequest) -> None:
    """Check that an action has a name of at most 1,000 characters.

    Raises:
        InvalidInput: the name is blank or too long.
    """
    if not request.action.strip():
        raise InvalidInput("an action has a name", "e.g. write_file")
    if len(request.action) > _MAX_ACTION_CHARS:
        raise InvalidInput(
            f"the name of an action has {len(request.action):,} characters; it may have {_MAX_ACTION_CHARS:,}",
            "name the tool, e.g. write_file, and put what it was given into its arguments",
        )
