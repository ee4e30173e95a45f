"""Draw a goal: its tree, and the answers of its commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.cli.views.layout import UNICODE, Column, Span, brief, end_to_keep, plural, short_ids, wrap_spans
from ctxmgr.types.goal import SubtaskView

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.goal import (
        ActionView,
        Block,
        BlockedAction,
        Claim,
        Comparison,
        GoalAnswer,
        GoalPlan,
        GoalState,
        GoalView,
        Probe,
        ProbeView,
        RecordAnswer,
        RecoverAnswer,
        ResumeAnswer,
        Size,
        TaskView,
    )


# Width of a task's bar in cells, and maximum width of the tree. In a wider tree, bars would be too far from their texts.
_BAR, _MAX_WIDTH = 10, 100
# Below this width in cells, a task shows a percentage instead of a bar.
_NARROW = 50
_STYLES = {"done": "ok", "in_progress": "open", "blocked": "hung", "failed": "error"}
# Steps shown before and after the current one. A tree of up to `_SMALL` steps is shown whole.
_NEAR, _AFTER, _SMALL = 2, 4, 30
# Steps with these statuses do not count for progress, because somebody decided against doing them.
_OVER = ("split", "dropped")
_WITH_REASON = ("failed", *_OVER)
_Node = TypeVar("_Node", bound=SubtaskView)


@dataclass(frozen=True, slots=True)
class _Branches:
    """The characters that join children to their parent."""

    one: str = "├─ "
    last: str = "└─ "
    down: str = "│  "
    none: str = "   "


_DRAWN, _TYPED = _Branches(), _Branches("|- ", "`- ", "|  ")


def leaves(goal: GoalView) -> list[SubtaskView]:
    """Return the steps that count for progress: subtasks, and tasks without subtasks, except those split or dropped."""
    found = [node for task in goal.tasks for node in (task.subtasks or [task])]
    return [node for node in found if node.status not in _OVER]


def show_tree(printer: Printer, state: GoalState, *, complete: bool = False) -> None:
    """Draw the tree. A long one is folded around the relevant steps unless ``complete`` is set."""
    # A program gets every step in its own row, with nothing folded.
    if not printer.terminal:
        _rows(printer, state)
        return
    _head(printer, state)
    small = 1 + sum(1 + len(task.subtasks) for task in state.goal.tasks) <= _SMALL
    drawing = _TreeView(printer, state, complete or small)
    if state.goal.tasks:
        printer.line()
        drawing.tasks()
    elif state.active:
        drawing.attempts(state.goal, "  ")
    _show_current(printer, state)


def _head(printer: Printer, state: GoalState) -> None:
    goal = state.goal
    printer.line(mark(printer, goal, False), " ", Span(goal.description, "strong"), hang=2)
    steps = leaves(goal)
    done = sum(step.status == "done" for step in steps)
    parts = [f"{done:,} of {plural(len(steps), 'step')} done"] if steps else []
    parts += [plural(state.actions_total, "action")] if state.actions_total else []
    parts += [f"{state.refused_total:,} refused"] if state.refused_total else []
    width = max(min(printer.width, _MAX_WIDTH) // 3, 8)
    drawn, rest = bar(printer, goal.percent, width), Span(f" {printer.symbols.unknown} ".join(parts), "dim")
    if printer.cells(rest.text) + width + 12 <= printer.width:
        printer.line(*drawn, *([Span("  "), rest] if rest.text else []), indent=2)
    else:
        printer.line(*drawn, indent=2)
        printer.line(rest, indent=2)
    if goal.block is not None and goal.block.by != "escalation":
        printer.line(Span(f"blocked: {goal.block.reason}", "hung"), indent=2, hang=2)


def bar(printer: Printer, percent: int, width: int) -> list[Span]:
    """Return a bar of ``width`` cells and the percentage after it. The bar is full only at 100."""
    # Rounded down, because a full bar means that all is done.
    filled = max(0, min(width, percent * width // 100))
    symbols = printer.symbols
    return [
        Span(symbols.bar * filled, "ok"), Span(symbols.thin * (width - filled), "dim"), Span(f" {percent:3d} %"),
    ]  # fmt: skip


def mark(printer: Printer, node: SubtaskView, current: bool) -> Span:
    """Return the sign for a step's status. ``current`` is set for the current step and for its task."""
    symbols = printer.symbols
    sign = {
        "done": symbols.healthy, "in_progress": symbols.tip, "blocked": symbols.denied, "failed": symbols.error,
        "split": symbols.dots, "dropped": symbols.dash,
    }.get(node.status, symbols.open)  # fmt: skip
    if current and node.status in ("pending", "in_progress"):
        return Span(symbols.tip, "open")
    return Span(sign, _STYLES.get(node.status, "dim"))


class _TreeView:
    """Draws the tasks of a tree."""

    def __init__(self, printer: Printer, state: GoalState, complete: bool) -> None:
        self._out, self._state, self._complete = printer, state, complete
        self._branches = _DRAWN if printer.symbols is UNICODE else _TYPED
        self._width = min(printer.width, _MAX_WIDTH)

    def tasks(self) -> None:
        """Draw every task with its subtasks."""
        for task in self._relevant_nodes(self._state.goal.tasks):
            if isinstance(task, str):
                self._out.line(Span(f"{self._out.symbols.dots} {task}", "dim"))
                continue
            self._task(task)

    def _task(self, task: TaskView) -> None:
        here = self._holds_current(task)
        shown = list(self._relevant_nodes(task.subtasks)) if self._complete or here or _is_news(task) else []
        self._draw_title(task, here=here, folded=bool(task.subtasks) and not shown)
        down = self._branches.down if shown else self._branches.none
        self.attempts(task, down, drawn=any(not isinstance(part, str) and part.block is not None for part in shown))
        for place, part in enumerate(shown):
            last = place + 1 == len(shown)
            lead, below = (self._branches.last, self._branches.none) if last else (self._branches.one, self._branches.down)
            if isinstance(part, str):
                self._out.line(Span(f"{lead}{self._out.symbols.dots} {part}", "dim"))
                continue
            current = part.id == self._state.current
            style = "strong" if current else _text_style(part)
            self._out.line(
                Span(lead, "dim"), mark(self._out, part, current), Span(f" {part.id}  ", "dim"), Span(part.description, style),
                Span(_tries(part, current), "dim"), hang=len(lead) + 2 + len(part.id) + 2,
            )  # fmt: skip
            self.attempts(part, below + "  ")

    def _draw_title(self, task: TaskView, *, here: bool, folded: bool) -> None:
        """Draw the line of a task, with its bar at the right if there is room."""
        out = self._out
        current = task.id == self._state.current
        lead = [mark(out, task, here), Span(f" {task.id}  ", "dim")]
        indent = 4 + len(task.id)
        text = [Span(out.safe(task.description), "strong" if here else _text_style(task)), Span(_tries(task, current), "dim")]
        if folded:
            steps = [part for part in task.subtasks if part.status not in _OVER]
            text.append(Span(f"  {plural(len(steps), 'step')}", "dim"))
        if out.width < _NARROW or task.status in _OVER:
            out.line(*lead, Span("" if task.status in _OVER else f"{task.percent} %  "), *text, hang=indent)
            return
        room = self._width - indent - _BAR - 9
        for number, row in enumerate(wrap_spans(text, room, room)):
            used = sum(out.cells(span.text) for span in row)
            behind = [Span(" " * (room - used + 2)), *bar(out, task.percent, _BAR)] if number == 0 else []
            out.line(*(lead if number == 0 else [Span(" " * indent)]), *row, *behind)

    def attempts(self, node: SubtaskView, below: str, *, drawn: bool = False) -> None:
        """Draw why a node is blocked, and why its attempts failed.

        ``below`` continues the branches at the left. ``drawn`` says that the blocked step below, from which the block
        escalated, is drawn itself.
        """
        remarks: list[Span] = []
        own = node.id != self._state.goal.id  # the block of the goal stands below its bar already
        if own and node.block is not None and not (node.block.by == "escalation" and drawn):
            remarks.append(Span(f"blocked: {node.block.reason}", "hung"))
        elif node.reason and node.status in _WITH_REASON:
            remarks.append(Span(f"{node.status}: {node.reason}", _STYLES.get(node.status, "dim")))
        remarks += [Span(text, "error") for text in _failures(node)]
        if node.id == self._state.current and self._state.next_step:
            remarks.append(Span(f"next: {self._state.next_step}", "open"))
        out = self._out
        for span in remarks:
            room = max(out.width - len(below), 16)
            for number, row in enumerate(wrap_spans([Span(out.safe(span.text), span.style)], room, room - 2)):
                out.line(Span(below + ("  " if number else ""), "dim"), *row)

    def _holds_current(self, task: TaskView) -> bool:
        current = self._state.current
        return current is not None and (task.id == current or any(part.id == current for part in task.subtasks))

    def _relevant_nodes(self, nodes: Sequence[_Node]) -> Iterator[_Node | str]:
        """Yield the relevant nodes; runs of done or pending nodes between them become one line with their counts."""
        if self._complete:
            yield from nodes
            return
        inside = next((place for place, node in enumerate(nodes) if self._is_current(node)), None)
        skipped: list[_Node] = []
        for place, node in enumerate(nodes):
            near = inside is not None and inside - _NEAR <= place <= inside + _AFTER
            # Before any step begins there is no current step. Then show the first ones.
            if near or _is_news(node) or len(nodes) <= _NEAR + _AFTER or (inside is None and place < _AFTER):
                yield from _count_skipped_nodes(skipped)
                skipped = []
                yield node
            else:
                skipped.append(node)
        yield from _count_skipped_nodes(skipped)

    def _is_current(self, node: SubtaskView) -> bool:
        current = self._state.current
        return node.id == current or (current is not None and current.startswith(f"{node.id}."))


def _failures(node: SubtaskView) -> list[str]:
    """Return why the latest attempts failed, except what is said as the reason of the node."""
    # The history tells why a step failed before it was done. Here that would look like trouble.
    if node.status == "done":
        return []
    return [
        f"attempt {attempt.number} failed: {attempt.reason}"
        for attempt in node.attempts[-3:]
        if attempt.status == "failed" and attempt.reason and (node.status not in _WITH_REASON or attempt.reason != node.reason)
    ]


def _count_skipped_nodes(skipped: Sequence[_Node]) -> Iterator[_Node | str]:
    # A line for one skipped step would take as much room as the step.
    if len(skipped) == 1:
        yield skipped[0]
    elif skipped:
        done = sum(node.status == "done" for node in skipped)
        rest = len(skipped) - done
        yield ", ".join([f"{done:,} done"] * bool(done) + [f"{rest:,} more"] * bool(rest)) + " (--all)"


def _is_news(node: SubtaskView) -> bool:
    return node.status in ("failed", "blocked", "in_progress")


def _text_style(node: SubtaskView) -> str:
    return "dim" if node.status in ("done", *_OVER) else ""


def _tries(node: SubtaskView, current: bool) -> str:
    """Return which attempt at a step this is, or an empty text where the number says nothing."""
    if not node.attempts or node.status == "done":
        return ""
    last = node.attempts[-1]
    # A first attempt is shown only for the current step.
    if last.number < 2 and not current:
        return ""
    return f"  attempt {last.number}" + (f", {plural(last.actions, 'action')}" if last.actions else "")


def _show_current(printer: Printer, state: GoalState) -> None:
    """Show actions in flight, blocked actions and results of probes."""
    if state.in_flight:
        printer.heading("In flight: effect unknown")
        show_in_flight(printer, state.in_flight)
    if state.blocked_actions:
        printer.heading("Blocked actions")
        show_blocked_actions(printer, state.blocked_actions)
    if state.probe_state:
        printer.line()
        printer.line(Span("probes  ", "dim"), *probe_line(printer, state))


def probe_line(printer: Printer, state: GoalState) -> list[Span]:
    """Return the state of the probes in one line."""
    spans: list[Span] = []
    for result in state.probe_state:
        sign, style = verdict(printer, result.ok)
        spans += [Span("  " if spans else ""), Span(f"{result.name}:"), Span(sign, style)]
    return spans


def verdict(printer: Printer, ok: bool | None) -> tuple[str, str]:
    """Return the sign and the style for the result of a probe."""
    symbols = printer.symbols
    return ("?", "unknown") if ok is None else (symbols.healthy, "ok") if ok else (symbols.error, "error")


def show_in_flight(printer: Printer, actions: Sequence[ActionView]) -> None:
    """Show actions in flight, one per line, and what records their results."""
    names = short_ids(action.id for action in actions)
    for action in actions:
        asked, name = brief(action.args).strip(), f"  [{names[action.id] if printer.terminal else action.id}]"
        room = max(printer.width - len(action.action) - len(name) - 8, 20)
        printer.line(
            Span(printer.symbols.open, "open"), f" {printer.fit(action.action, 30)}  ",
            printer.fit(asked, room, end_to_keep(asked)), Span(name, "dim"), indent=2, hang=4,
        )  # fmt: skip
    printer.line(Span("how one ended: ctxmgr goal record NAME --entry ID --result RESULT", "dim"), indent=2, hang=2)


def show_blocked_actions(printer: Printer, blocked: Sequence[BlockedAction]) -> None:
    """Show blocked actions with their reasons and what unblocks them."""
    for action in blocked:
        asked = brief(action.args).strip()
        room = max(printer.width - len(action.action) - 20, 20)
        times = f"  {printer.symbols.times}{action.times}" if action.times > 1 else ""
        printer.line(
            Span(f"{printer.symbols.denied} ", "hung"), f"{printer.fit(action.action, 30)}  ",
            printer.fit(asked, room, end_to_keep(asked)), Span(times, "dim"), Span(f"  [{action.key}]", "dim"),
            indent=2, hang=4,
        )  # fmt: skip
        printer.line(Span(action.reason, "dim"), indent=4)


def _rows(printer: Printer, state: GoalState) -> None:
    """Write one row per step."""
    goal = state.goal
    columns = [
        Column("id"), Column("status"), Column("percent", right=True), Column("current"), Column("description", fill=True),
        Column("reason"),
    ]  # fmt: skip
    nodes: list[SubtaskView] = [goal]
    for task in goal.tasks:
        nodes += [task, *task.subtasks]
    printer.table(
        columns,
        (
            (
                node.id,
                node.status,
                node.percent,
                "*" if node.id == state.current else "",
                node.description,
                node.block.reason if node.block is not None else node.reason or "",
            )
            for node in nodes
        ),
    )
    for node in nodes:
        for text in _failures(node):
            printer.line(f"{node.id}: {text}")
    for action in state.in_flight:
        printer.line(f"in flight: {action.action} {brief(action.args)} [{action.id}]")
    for blocked in state.blocked_actions:
        printer.line(f"blocked action: {blocked.action} {brief(blocked.args)} [{blocked.key}] {blocked.reason}")
    if state.probe_state:
        printer.line("probes: ", *probe_line(printer, state))


# Maximum number of changed steps to name. The tree shows all of them.
_CHANGED = 5
_TYPES = {"A": "repetition", "B": "alternation", "C": "failed attempts"}


def show_plan(printer: Printer, plan: GoalPlan) -> None:
    """Show a plan that is not accepted yet."""
    printer.line(Span(plan.goal, "strong"))
    for task in plan.tasks:
        _show_plan(printer, task.title, task.done, 2)
        for part in task.subtasks:
            _show_plan(printer, part.title, part.done, 6)
    subtasks = sum(len(task.subtasks) for task in plan.tasks)
    by = f"the model {plan.model}" if plan.by == "model" else "rules"
    printer.line(Span(f"{plural(len(plan.tasks), 'task')}, {plural(subtasks, 'subtask')}; split by {by}", "dim"))


def _show_plan(printer: Printer, title: str, done: bool, indent: int) -> None:
    symbols = printer.symbols
    sign = Span(f"{symbols.healthy} ", "ok") if done else Span(f"{symbols.open} ", "dim")
    printer.line(sign, Span(title, "dim" if done else ""), indent=indent, hang=2)


def show_change(printer: Printer, found: GoalAnswer) -> None:
    """Show what a command changed, then the current step and the progress."""
    state = found.state
    nodes = {node.id: node for task in state.goal.tasks for node in (task, *task.subtasks)}
    for name in found.changed[:_CHANGED]:
        node = nodes.get(name)
        # The current step is shown in any case, by `show_position`.
        if node is not None and not (name == state.current and node.status in ("pending", "in_progress")):
            status = Span(f"  {node.status}" + (f": {node.reason}" if node.reason and node.status != "blocked" else ""), "dim")
            printer.line(mark(printer, node, False), Span(f" {node.id}  ", "dim"), node.description, status, hang=2)
    if found.message:
        printer.line(found.message)
    show_position(printer, state)


def show_position(printer: Printer, state: GoalState) -> None:
    """Show the current step and the progress, in two lines."""
    steps = leaves(state.goal)
    done = sum(step.status == "done" for step in steps)
    where, block = _current(state)
    if block is not None:
        printer.line(Span(f"{printer.symbols.denied} ", "hung"), *where, hang=2)
        printer.line(Span(f"blocked: {block.reason}", "hung"), indent=2, hang=2)
        if state.next is not None:
            printer.line(Span(f"'ctxmgr goal next' goes on with {state.next}", "dim"), indent=2, hang=2)
    elif where:
        printer.line(Span(f"{printer.symbols.tip} ", "open"), *where, hang=2)
    elif state.goal.status == "done":
        printer.line(Span(f"{printer.symbols.healthy} ", "ok"), "the goal is reached")
    else:
        why = state.goal.block.reason if state.goal.block is not None else "no step can be worked on"
        printer.line(Span(f"{printer.symbols.denied} {why}", "hung"), hang=2)
    if state.next_step and where and block is None:
        printer.line(Span(f"next: {state.next_step}", "dim"), indent=2, hang=2)
    if steps:
        printer.line(
            *bar(printer, state.goal.percent, 20), Span(f"  {done:,} of {plural(len(steps), 'step')} done", "dim"), indent=2
        )


def _current(state: GoalState) -> tuple[list[Span], Block | None]:
    """Return the current step with the title of its task before it, and the block that stops it."""
    if state.current == state.goal.id:
        return [Span(state.goal.description, "strong")], state.goal.block
    for task in state.goal.tasks:
        for node in (task, *task.subtasks):
            if node.id == state.current:
                above = [] if node is task else [Span(f"{task.description}: ")]
                tries = node.attempts[-1].number if node.attempts else 0
                failed = " failed" if node.status == "failed" else ""
                behind = [Span(f"  attempt {tries}{failed}", "dim")] if tries > 1 or failed else []
                waiting = [] if state.active or node.block is not None else [Span("  not begun", "dim")]
                line = [Span(f"{node.id}  ", "dim"), *above, Span(node.description, "strong"), *behind, *waiting]
                return line, node.block or task.block
    return [], None


def show_record(printer: Printer, action: str, found: RecordAnswer, *, begun: bool = False) -> None:
    """Show whether an action is allowed. If not, show the reason and a hint. One that is ``begun`` is to be ended by its id."""
    symbols = printer.symbols
    if found.allowed:
        word = "begun" if begun else "recorded" if found.entry else "allowed"
        where = f"  {found.node}" + (f", attempt {found.attempt}" if found.attempt else "") if found.node else ""
        printer.line(Span(f"{symbols.healthy} ", "ok"), f"{word}: {action}", Span(where, "dim"), hang=2)
        if begun:
            printer.line(Span(f"{symbols.arrow} its result: --entry {found.entry} --result RESULT", "dim"), indent=2, hang=2)
        return
    kind = _TYPES.get(found.type or "", "")
    printer.line(Span(f"{symbols.denied} refused: {action}", "loop"), Span(f"  {kind}" if kind else "", "dim"), hang=2)
    if found.reason:
        printer.line(found.reason, indent=2, hang=2)
    if found.hint:
        printer.line(Span(f"{symbols.arrow} {found.hint}", "dim"), indent=2, hang=2)


def show_resume(printer: Printer, found: ResumeAnswer) -> None:
    """Show the current step, the confirmed and the refuted claims, and the actions in flight."""
    state, symbols = found.state, printer.symbols
    printer.rule("resumed ", Span(state.goal.description, "strong"))
    show_position(printer, state)
    if found.took_over:
        before = found.previous.owner if found.previous is not None and found.previous.owner else "the earlier owner"
        printer.line(Span(f"taken over from {before}; what it still writes is refused", "dim"), indent=2, hang=2)
    if found.replayed:
        printer.line(Span(f"{plural(found.replayed, 'record')} read from the history beyond the saved state", "dim"), indent=2)
    for name in found.rebuilt:
        printer.line(Span(f"{name} was damaged: it is set aside, and made anew from the history", "warn"), indent=2, hang=2)
    if found.in_flight:
        printer.heading("In flight: effect unknown, look before you do it again")
        show_in_flight(printer, found.in_flight)
    # Claims that the disk refutes come first, because acting on them does harm.
    for basis, title in (
        ("refuted", "Not so on disk"),
        ("verified", "Seen on disk"),
        ("assumed", "Only assumed from the history"),
    ):
        claims = [claim for claim in found.claims if claim.basis == basis]
        if claims:
            printer.heading(title)
            for claim in claims:
                _claim(printer, claim)
    if state.blocked_actions:
        printer.line()
        printer.line(
            Span(f"{symbols.denied} {plural(len(state.blocked_actions), 'blocked action')}: see 'ctxmgr goal tree'", "hung")
        )


def _claim(printer: Printer, claim: Claim) -> None:
    symbols = printer.symbols
    sign, style = {
        "verified": (symbols.healthy, "ok"), "refuted": (symbols.error, "error"), "assumed": (symbols.unknown, "dim"),
    }[claim.basis]  # fmt: skip
    printer.line(Span(f"{sign} ", style), claim.text, indent=2, hang=2)


def show_recovery(printer: Printer, found: RecoverAnswer) -> None:
    """Show what is wrong, what not to repeat, what to try instead, and the position in the goal."""
    continuation, symbols = found.continuation, printer.symbols
    pattern = continuation.loop or continuation.stall
    printer.line(Span(f"{symbols.error} {continuation.reason}", "loop" if pattern else ""), hang=2)
    if pattern is not None:
        printer.line(pattern.reason, indent=2)
    if continuation.do_not_repeat:
        printer.heading("Do not repeat before something has changed")
        for each in continuation.do_not_repeat:
            times = Span(f"  {symbols.times}{each.times:,}", "dim")
            printer.line(
                Span(f"{symbols.denied} ", "hung"), f"{each.action}  {brief(each.input).strip()}", times, indent=2, hang=2
            )
            if each.outcome:
                printer.line(Span(f"{symbols.arrow} {each.outcome}", "dim"), indent=4, hang=2)
    if continuation.alternatives:
        printer.heading("Try instead")
        for option in continuation.alternatives:
            printer.line(f"{symbols.arrow} {option.text}", indent=2, hang=2)
    # Without a state the continuation was only a plan (``--plan``), and the goal has not changed.
    if found.state is None:
        printer.line()
        printer.line(Span("shown only: the goal is as it was", "dim"))
        return
    printer.heading("The goal")
    show_position(printer, found.state)


def show_probes(printer: Printer, probes: Sequence[ProbeView]) -> None:
    """Show what probes look for and their latest results."""

    def row(probe: ProbeView) -> list[str | Span]:
        sign, style = verdict(printer, probe.ok)
        return [Span(sign, style), probe.name, _probe_text(probe), Span(probe.detail or "not asked yet", "dim")]

    columns = [
        Column(""), Column("probe", give=1), Column("looks for", give=2, least=16, fill=True), Column("saw", give=3, least=10),
    ]  # fmt: skip
    if probes:
        printer.table(columns, map(row, probes))
    else:
        printer.hint("no probes yet: 'ctxmgr goal probe add NAME --exists PATH'")


def _probe_text(probe: Probe) -> str:
    if probe.kind == "command":
        return " ".join(probe.argv) + (f"  (exit code {probe.code})" if probe.code else "")
    return f"{probe.path} exists" if probe.kind == "fileExists" else f"{probe.path} contains {probe.text!r}"


def show_comparison(printer: Printer, found: Comparison) -> None:
    """Show the sizes side by side, and whether the brief holds what the next step needs."""

    def row(name: str, size: Size, chars: float | None, tokens: float | None) -> list[str]:
        saved = "" if chars is None or tokens is None else f"{chars:.1f} % of characters, {tokens:.1f} % of tokens"
        return [name, f"{size.messages:,}", f"{size.chars:,}", f"{size.tokens:,}", saved]

    columns = [
        Column(""), Column("messages", right=True), Column("characters", right=True), Column("tokens", right=True),
        Column("the brief saves", give=1, least=10),
    ]  # fmt: skip
    printer.table(
        columns,
        [
            row("brief", found.brief, None, None),
            row("last ten messages", found.last_ten, found.saved_chars_of_last_ten, found.saved_tokens_of_last_ten),
            row("whole history", found.history, found.saved_chars, found.saved_tokens),
        ],
    )
    printer.line(Span(f"tokens counted by: {found.counter}", "dim"))
    if not found.facts:
        return
    held = sum(fact.held for fact in found.facts)
    printer.line(
        f"{held} of {plural(len(found.facts), 'fact')} that the next step needs {'is' if held == 1 else 'are'} in the brief"
    )
    for fact in found.facts:
        if not fact.held:
            printer.line(Span(f"{printer.symbols.error} ", "error"), f"missing: {fact.kind}: {fact.text}", indent=2, hang=2)
