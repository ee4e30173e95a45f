"""Models of goals: the goal, then one request and one response per command, then plans and comparisons.

A node of the tree is the goal, a task or a subtask. A node without children is a *leaf*. Attempts and actions belong to
leaves, so a goal can be worked on before it has tasks. Ids never change, not even when tasks are reordered: ``goal``, ``t2``
(the second task ever added), ``t2.1`` (its first subtask). The models are frozen; `ctxmgr.goals` has what a program edits.

The state file also holds `Block`, `AttemptView`, `BlockedAction`, `LoopRecord`, `Probe` and `ProbeResult`. The rest of it is
defined in `ctxmgr.goals.state`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ctxmgr.types.base import Field, Json, Shape, Text
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import Continuation

GOAL_ID = "goal"
"""The id of the root of the tree."""

NodeStatus = Literal["pending", "in_progress", "done", "failed", "blocked", "split", "dropped"]
AttemptStatus = Literal["in_progress", "done", "failed", "left"]
ResultStatus = Literal["ok", "error", "denied", "interrupted"]
# The letters of spec 004: A is a repetition, B an alternation, C failures that climb from attempts to tasks.
LoopType = Literal["A", "B", "C"]
BlockedBy = Literal["loop", "attempts", "escalation", "user"]
Moment = Literal["start", "continue", "resume", "compaction"]
ActionStatus = Literal["ok", "error", "denied", "interrupted", "open"]
ProbeKind = Literal["fileExists", "fileContains", "command"]

LEAF_TRANSITIONS: dict[NodeStatus, frozenset[NodeStatus]] = {
    "pending": frozenset({"in_progress", "done", "failed", "blocked", "split", "dropped"}),
    "in_progress": frozenset({"pending", "done", "failed", "blocked", "split", "dropped"}),
    "failed": frozenset({"in_progress", "done", "blocked", "split", "dropped"}),
    # A blocked leaf must be unblocked before it can be worked on; the guard would be no use else.
    "blocked": frozenset({"pending", "failed", "split", "dropped"}),
    "done": frozenset(),
    "split": frozenset(),
    "dropped": frozenset(),
}
"""Which status may follow which, of a leaf. What is done opens again only where something is added below it."""


class Block(Shape):
    """Why a node can't be worked on: ``by`` the guard (``loop``, ``attempts``), a child (``escalation``) or a ``user``."""

    by: BlockedBy
    reason: Text
    since: Text | None = None


class BlockedAction(Shape):
    """An action that is refused while it is asked within ``node``: the same name and canonical arguments.

    ``key`` is what `UnblockRequest` may name it by; ``times`` how often it was refused; ``args`` may be shortened.
    """

    key: Text
    action: Text
    args: Json
    type: LoopType
    node: Text
    reason: Text
    times: int
    since: Text | None = None


class ActionView(Shape):
    """One action: an entry of the history. ``result`` is its outcome in a few words, null while it is open."""

    id: Text
    action: Text
    args: Json
    status: ActionStatus
    result: Text | None
    ts: Text | None
    node: Text
    attempt: int


class AttemptView(Shape):
    """One try at a leaf: ``first`` and ``last`` are the ids of its actions, ``reason`` why it ended as it did."""

    number: int
    status: AttemptStatus
    actions: int
    first: Text | None = None
    last: Text | None = None
    reason: Text | None = None


class SubtaskView(Shape):
    """A subtask; ``percent`` is 100 when it is done, else 0. ``attempts`` holds the latest ones, oldest first."""

    id: str
    description: Text
    status: NodeStatus
    percent: int
    attempts: list[AttemptView] = []
    block: Block | None = None
    reason: Text | None = None


class TaskView(SubtaskView):
    """A task; ``percent`` is the share of its leaves that are done (split and dropped ones do not count)."""

    subtasks: list[SubtaskView] = []


class GoalView(SubtaskView):
    """A goal and its whole tree; ``percent`` is the share of all leaves that are done."""

    session: Text
    tasks: list[TaskView] = []


class LoopRecord(Shape):
    """One refused or escalated loop, as ``loops.json`` lists them."""

    timestamp: Text | None
    type: LoopType
    action_signature: Text
    attempt_count: int
    node: Text
    kind: Text
    reason: Text


class OwnerView(Shape):
    """Who may work on the goal: the epoch grows with every owner; the rest is null when nobody holds it."""

    # By it an owner that was stopped and comes back learns that another one has taken over: what it writes does not count.
    epoch: int
    owner: Text | None = None
    pid: int | None = None
    host: Text | None = None
    since: Text | None = None


class Probe(Shape):
    """A named check of the files on disk, without a shell.

    ``fileExists``: ``path`` exists. ``fileContains``: the file ``path`` holds ``text``. ``command``: the program
    ``argv`` ends with exit code ``code``; run only where commands are allowed.
    """

    name: Annotated[Text, Field(min_length=1, max_length=100)]
    kind: ProbeKind
    path: Text | None = None
    text: Text | None = None
    # A list and no line for a shell: a plan is a text of others, and may hold anything.
    argv: list[Text] = []
    code: int = 0


class ProbeResult(Shape):
    """What a probe saw; ``ok`` is null when it could not be asked (a command that is not allowed, no permission)."""

    name: Text
    kind: ProbeKind
    ok: bool | None
    detail: Text | None = None


class ProbeView(Probe):
    """A probe and what it last saw: ``ok`` is null where it was not asked yet, or could not see."""

    ok: bool | None = None
    detail: Text | None = None


class GoalState(Shape):
    """All that is known of a goal now.

    Attributes:
        current: id of the leaf that actions belong to: the active one, else the first that can be worked on, else null.
        active: whether somebody has begun it.
        next: the leaf that follows, and ``next_step`` what a continuation or a person said to do.
        actions: the latest ones of the current leaf, oldest first.
        in_flight: actions that were begun and have no result: their effect is unknown.
        loop_counts: how often each type of loop was refused.
        probes: definitions, and ``probe_state`` what they last saw.
        generation, records, sum: of ``state.json``, and the history it includes.
        warnings: what was found damaged and what was done about it.
    """

    goal: GoalView
    current: str | None
    active: bool
    next: str | None
    next_step: Text | None
    actions: list[ActionView]
    # A process that died between an action and its result leaves open which of the two it reached.
    in_flight: list[ActionView]
    blocked_actions: list[BlockedAction]
    loop_counts: dict[LoopType, int]
    probes: list[Probe]
    probe_state: list[ProbeResult]
    actions_total: int
    refused_total: int
    owner: OwnerView
    # The history is synced before the state that names it, so a recovery folds in what lies behind these records (ruling 19).
    generation: int
    records: int
    sum: str
    warnings: list[Text] = []


class GoalSource(Shape):
    """The goal as a source for recovery and context packages: plain facts, no history."""

    session: Text
    goal: Text
    status: NodeStatus
    percent: int
    task: Text | None
    subtask: Text | None
    attempt: int | None
    done: list[Text]
    open: list[Text]
    blocked: list[Text]
    next: Text | None
    next_step: Text | None
    in_flight: list[Text]
    probe_state: list[ProbeResult]
    extra: dict[str, Any] = {}


# Read at the start of every step of an agent, so it must cost little of its window: about 500 tokens.
DEFAULT_CHARS = 2000
MaxChars = Annotated[int, Field(ge=0, le=1_000_000)]
Description = Annotated[Text, Field(min_length=1, max_length=4000)]


class SubtaskDraft(Shape):
    """A subtask to be added; ``done`` when it was done before the goal knew of it."""

    description: Description
    done: bool = False


class TaskDraft(SubtaskDraft):
    """A task to be added, with its subtasks; where it has any, whether it is done follows from theirs alone."""

    subtasks: list[SubtaskDraft] = []


class StartRequest(Shape):
    """Begin a goal, or go on with the one that is there when it says the same (``goal`` null: with whatever is there).

    ``replace`` gives an unfinished goal up for this one; else another goal is a conflict.
    """

    goal: Description | None
    tasks: list[TaskDraft] = []
    probes: list[Probe] = []
    # Two goals in one folder would share one history, so the other one is given up in so many words or refused.
    replace: bool = False


class AddRequest(Shape):
    """Add tasks, or with ``parent`` subtasks of that task, at place ``at`` (null: at the end)."""

    # The state is one file that is read and written whole at every step.
    tasks: Annotated[list[TaskDraft], Field(min_length=1, max_length=1000)]
    parent: str | None = None
    at: Annotated[int, Field(ge=0)] | None = None


class SplitRequest(Shape):
    """Replace a task or subtask by several, which stand at its place; what was done below it stays done."""

    id: str
    into: Annotated[list[TaskDraft], Field(min_length=1, max_length=1000)]
    reason: Text | None = None


class ReorderRequest(Shape):
    """Put the children of ``parent`` (null: the tasks) into this order; those not named keep theirs and come last."""

    order: Annotated[list[str], Field(min_length=1)]
    parent: str | None = None


class DropRequest(Shape):
    """Give a task or subtask up without doing it."""

    id: str
    reason: Text | None = None


class ActionRequest(Shape):
    """Ask whether an action may be done, or begin it (an entry without a result)."""

    action: Annotated[Text, Field(min_length=1, max_length=1000)]
    args: Json = None
    agent: Text | None = None


class RecordRequest(ActionRequest):
    """An action with its result.

    ``result``: ``success`` and ``error`` (also ``error: what it said``) say how it ended; any other text or JSON value is
    what came back. ``status`` says it outright. ``entry``: of an action begun before.
    """

    result: Json = None
    status: ResultStatus | None = None
    entry: Text | None = None


class NextRequest(Shape):
    """Go to the next leaf that can be worked on, or to the one named."""

    to: str | None = None


class EndRequest(Shape):
    """End the attempt at the current leaf (or the one named) as done or failed."""

    id: str | None = None
    reason: Text | None = None


class BlockRequest(Shape):
    """Block a node by hand; only `UnblockRequest` lifts that."""

    id: str
    reason: Annotated[Text, Field(min_length=1)]


class UnblockRequest(Shape):
    """Lift the block of a node (its id) or of an action (its key or name); without either every block."""

    target: Text | None = None
    reason: Text | None = None


class MessageRequest(Shape):
    """A human message: it lifts what the guard blocked and starts the detection of loops anew (ruling 8)."""

    text: Annotated[Text, Field(min_length=1)]


class BriefRequest(Shape):
    """The compact text for an agent; ``moment`` null: what the history says (start, resume, after a compaction)."""

    max_chars: MaxChars = DEFAULT_CHARS
    moment: Moment | None = None


class ResumeRequest(Shape):
    """Go on after a crash or a hand-over: take the goal over, and check ``probes`` against the disk.

    ``take_over`` also from an owner that is alive; it is then refused from its next write on.
    """

    # Not by default: an owner that is only slow would lose what it is about to write.
    take_over: bool = False


class GoalAnswer(Shape):
    """The goal after a change, what was changed (ids) and what is worth saying about it."""

    state: GoalState
    changed: list[str] = []
    message: Text | None = None


class RecordAnswer(Shape):
    """Whether an action was allowed, and if not why: true in a condition when it was.

    Attributes:
        entry: id of the recorded entry, null when it was only asked about or refused.
        type: of the loop: A repetition, B alternation, C escalating failures; null when allowed.
        finding: what the detection engine saw.
        in_flight: ids of equal calls that were begun and have no result; ``hint`` tells of them.
    """

    allowed: bool
    reason: Text | None = None
    type: LoopType | None = None
    finding: Finding | None = None
    entry: Text | None = None
    node: Text | None = None
    attempt: int | None = None
    hint: Text | None = None
    in_flight: list[Text] = []

    # So that a guard in an agent's loop reads as it is meant: ``if not goals.record_action(...)``.
    def __bool__(self) -> bool:
        """Whether the action was allowed."""
        return self.allowed


class BriefAnswer(Shape):
    """The brief; ``left_out`` says what it does not hold because of ``max_chars``, with the command that shows it."""

    text: Text
    chars: int
    max_chars: int
    moment: Moment
    left_out: list[Text]


class Claim(Shape):
    """Something about the goal: ``verified`` by a probe on disk, or only ``assumed`` from the history."""

    text: Text
    basis: Literal["verified", "refuted", "assumed"]
    probe: Text | None = None


class ResumeAnswer(Shape):
    """Where we are after a crash.

    Attributes:
        claims: what was verified against the files on disk, and what is only assumed.
        in_flight: actions whose effect is unknown.
        replayed: records of the history beyond what ``state.json`` had.
        took_over: whether an earlier owner was superseded; ``previous`` is that one.
        rebuilt: files that were set aside and made anew, by name.
    """

    state: GoalState
    claims: list[Claim]
    in_flight: list[ActionView]
    replayed: int
    took_over: bool
    previous: OwnerView | None
    rebuilt: list[Text]
    brief: Text


FactKind = Literal["task", "subtask", "action", "blocked"]


class Size(Shape):
    """The size of one text, or of several together."""

    messages: int
    chars: int
    tokens: int


class Fact(Shape):
    """Something that the next step needs, and whether the brief holds it.

    The facts are the current task, the active subtask, the last three actions with their results, and blocked actions.
    """

    kind: FactKind
    text: Text
    held: bool


class Comparison(Shape):
    """The brief against the whole history and against its last ten messages.

    ``saved...`` are per cent of what would be read without the brief, negative where the brief is longer, null where there
    is nothing to read. ``counter`` names what counted the tokens.
    """

    brief: Size
    last_ten: Size
    history: Size
    saved_chars: float | None
    saved_tokens: float | None
    saved_chars_of_last_ten: float | None
    saved_tokens_of_last_ten: float | None
    facts: list[Fact]
    counter: Text


class PlannedStep(Shape):
    """A proposed subtask."""

    title: Text
    done: bool = False


class PlannedTask(PlannedStep):
    """A proposed task; ``done`` where all of it is."""

    subtasks: list[PlannedStep] = []


class GoalPlan(Shape):
    """A proposed split; saved as JSON it can be edited and given to ``goal start --from``.

    ``by`` says who split it. ``model`` is the one that was asked, ``failure`` why its answer does not count. ``notes`` tell
    what was left out or folded together.
    """

    goal: Text
    tasks: list[PlannedTask]
    by: Literal["rules", "model"]
    model: Text | None = None
    failure: Text | None = None
    notes: list[Text] = []


class StartAnswer(Shape):
    """Whether the goal was started; ``plan`` is what was proposed, ``state`` the goal where it was started."""

    started: bool
    plan: GoalPlan | None
    state: GoalState | None
    changed: list[str] = []
    message: Text | None = None


class RecoverAnswer(Shape):
    """The continuation that recovery gave for a goal, and the goal with it applied (null: it was only shown)."""

    continuation: Continuation
    state: GoalState | None

    def to_json(self) -> dict[str, Any]:
        """Return the wire form, of the continuation too."""
        state = None if self.state is None else self.state.to_json()
        return {"continuation": self.continuation.to_json(), "state": state}
