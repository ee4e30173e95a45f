"""``recover``, ``request`` and ``prompt``: the continuation that gets a run going again, and requests by agents."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.base.paths import MAX_SETTINGS_BYTES, read_regular
from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.envelope import say_warnings, session_choice
from ctxmgr.cli.output import Answer, OutputOptions, answer, resolve_place, say
from ctxmgr.cli.recovery_cache import RecoveryCache
from ctxmgr.cli.requests import apply_to_goal, build, goal_source, moment
from ctxmgr.cli.views.layout import Span, amount, brief, command, plural, session_command, short_ids
from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.history.open_history import NOTHING_RECORDED
from ctxmgr.history.query.address import session_key
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.operations import AgentRequest, ModelRequest, PromptRequest, RecoverRequest, RecoverResponse
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.operations import PlanView
    from ctxmgr.types.route import Continuation, Pattern


Draft = Annotated[
    list[str] | None,
    typer.Option("--draft", metavar="AGENT=JSON", help="Draft of the request for an agent, or AGENT=@FILE; repeatable."),
]
# Short words for people. The values are part of the public contract of requests.
_TYPES = {"introspect": "INTROSPECT_AGENT_CONTEXT", "proceed": "PROCEED"}


def continuation_answer(
    workspace: Workspace, found: RecoverResponse, *, prompt: bool = False, store: str | None = None
) -> Answer:
    """Return a continuation as JSON and as a page. ``prompt`` shows the text for the agent instead of the page.

    ``store`` is the store that the user named, for the command that prints the text.
    """
    continuation = found.continuation
    cited = [
        *(entry for fact in continuation.context.facts for entry in fact.entries),
        *(entry for step in continuation.do_not_repeat for entry in step.entries),
        *(entry for item in continuation.alternatives for entry in item.entries),
        *(entry for pattern in (continuation.loop, continuation.stall) if pattern for entry in pattern.members),
    ]
    # One query for all entries: the page cites them by index, but a continuation holds only ids.
    indexes = workspace.indexes(continuation.session, cited)

    def draw(out: Printer) -> None:
        if prompt:
            out.block(continuation.prompt)
            return
        # For another agent's log nothing is recorded, so the page must not cite notes or a snapshot.
        lost = any(line.startswith(NOTHING_RECORDED.partition(":")[0]) for line in workspace.warnings)
        shown = continuation.model_copy(update={"snapshot": None, "notes": []}) if lost else continuation
        show_continuation(out, shown, indexes, found.plan, store)

    return Answer(found.to_json(), draw, warnings=_warnings(found))


def _warnings(found: RecoverResponse) -> list[str]:
    continuation = found.continuation
    lines: list[str] = []
    if continuation.routing == "history" and len(continuation.candidates) > 1:
        lines.append("no routing table: who may continue is read off the history ('routes' under [recover], or --routes)")
    if continuation.fallback and continuation.model is not None:
        lines.append(f"the model had no answer that counts, so the rules answered: {continuation.model.failure}")
    if continuation.quarantined:
        lines.append(f"{len(continuation.quarantined)} entries read like instructions to an agent: their texts are withheld")
    return lines


def recover(
    target: o.Target = None,
    session: o.Session = None,
    to: Annotated[str | None, typer.Option("--to", metavar="AGENT", help="The agent that should continue.")] = None,
    finding: Annotated[str | None, typer.Option("--finding", metavar="ID", help="Finding to answer; else the worst.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Give a continuation though nothing is wrong.")] = False,
    plan: o.Plan = False,
    prompt: o.Prompt = False,
    last: Annotated[bool, typer.Option("--last", help="Print the session's last continuation again.")] = False,
    diff: o.Diff = None,
    only_session: o.OnlySession = False,
    routes: o.Routes = None,
    goal: o.GoalDir = None,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    llm_mode: o.LlmMode = None,
    no_llm: o.NoLlm = False,
    timeout: o.Timeout = None,
    model_tokens: o.ModelTokens = None,
    max_tool_calls: o.MaxToolCalls = None,
    transcript: o.Transcript = None,
    now: o.Now = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Get a stuck session going again: find what is wrong with it and return exactly one continuation request.

    For people, scripts and hooks. An agent with a question of its own uses 'ctxmgr request', and a plan started with 'ctxmgr
    goal' uses 'ctxmgr goal recover'.

    The same session and options give the same answer until somebody goes on; only then it counts as another attempt. With
    --goal-dir the continuation says where that goal stands and is applied to it: blocks of its guard are lifted. For another
    agent's log nothing is recorded: import the log to have attempts counted.

    Exit codes: 0 one continuation, 3 no history, 20 a person is needed, 21 nothing is wrong, 22 refused.

    Examples:
      ctxmgr recover 01a1ffcb
      ctxmgr recover run.jsonl --plan --prompt
      ctxmgr recover 01a1ffcb --goal-dir .
      ctxmgr recover --session 01a1ffcb --model qwen3 --base-url http://127.0.0.1:11434/v1
    """
    session, store = resolve_place("recover", how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        _require_alone(last, to, finding, force, plan, routes, model, goal, diff, only_session)
        asked = build(
            ModelRequest, name=model, base_url=base_url, mode=llm_mode, off=no_llm, seconds=timeout, max_tokens=model_tokens,
            max_tool_calls=max_tool_calls, transcript=transcript)  # fmt: skip
        request = build(
            RecoverRequest, session=session, to=to, finding=finding, force=force, plan=plan, now=moment(now, time.time()),
            diff=diff, routes=routes, goal=goal_source(goal), last=last, only_session=only_session, model=asked)  # fmt: skip
        done, found = _recover(workspace, request, partial(continuation_answer, store=store), prompt=prompt)
        done.warnings += apply_to_goal(goal, found.continuation) if goal is not None and found.stored and not plan else []
        return done

    answer("recover", how, work, store=store, writes=not (plan or last), lenient=True, scratch=True)


def _recover(
    workspace: Workspace, request: RecoverRequest, show: Callable[..., Answer], *, prompt: bool
) -> tuple[Answer, RecoverResponse]:
    """Return what the command prints, and the response. It is said which session was taken if none was named."""
    cache = RecoveryCache(workspace, request)
    key = None if request.session else session_key(workspace.store, None)
    choice = [] if key is None else session_choice(workspace.store, request.session, workspace.store.sessions.name(key))
    try:
        found = workspace.recover(request, say)
    except CtxmgrError:
        say_warnings(choice)
        raise
    done = cache.keep(found, show, prompt=prompt)
    done.warnings[:0] = choice
    return done, found


def _require_alone(last: bool, *others: object) -> None:
    """Refuse ``--last`` together with options that ask for something else.

    Raises:
        InvalidInput: both are given.
    """
    if last and any(value is not None and value is not False for value in others):
        raise InvalidInput(
            "--last prints what was recorded and takes no option that asks for something else",
            "leave out --last, or the other option",
        )


def request(
    target: o.Target = None,
    *,
    type_: Annotated[str, typer.Option("--type", help="introspect (back to the requester) or proceed (on to another).")],
    requester: Annotated[str, typer.Option("--from", metavar="AGENT", help="The agent that asks.")],
    reason: Annotated[str, typer.Option("--reason", help="Why context is needed.")],
    goal: Annotated[str, typer.Option("--goal", help="What the context is needed for.")],
    to: Annotated[str | None, typer.Option("--to", metavar="AGENT", help="The downstream agent, for proceed.")] = None,
    return_to: Annotated[
        list[str] | None,
        typer.Option("--return-to", metavar="AGENT", help="Agent that may get the answer; repeatable."),
    ] = None,
    context: Annotated[str | None, typer.Option("--context", help="Additional context.")] = None,
    review: Annotated[bool, typer.Option("--review", help="State that the requester is a review or merge agent.")] = False,
    draft: Draft = None,
    plan: o.Plan = False,
    prompt: o.Prompt = False,
    diff: o.Diff = None,
    only_session: o.OnlySession = False,
    routes: o.Routes = None,
    model: o.Model = None,
    base_url: o.BaseUrl = None,
    llm_mode: o.LlmMode = None,
    no_llm: o.NoLlm = False,
    timeout: o.Timeout = None,
    model_tokens: o.ModelTokens = None,
    max_tool_calls: o.MaxToolCalls = None,
    transcript: o.Transcript = None,
    session: o.Session = None,
    store: o.Store = None,
    how: OutputOptions,
) -> None:
    """Let an agent ask for context, also when nothing is wrong; the answer has the form of 'ctxmgr recover'.

    introspect answers the agent that asks, proceed hands over to another one. A question does not count as an attempt to end a
    loop. For artifacts and shared values use 'ctxmgr context request'.

    Examples:
      ctxmgr request --type introspect --from coder --reason "lost the plan" --goal "finish the parser"
      ctxmgr request --type proceed --review --from reviewer --to merger --reason "review done" --goal "merge"
    """
    session, store = resolve_place("request", how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        asked_of = build(
            ModelRequest, name=model, base_url=base_url, mode=llm_mode, off=no_llm, seconds=timeout, max_tokens=model_tokens,
            max_tool_calls=max_tool_calls, transcript=transcript,
        )  # fmt: skip
        asked = build(
            AgentRequest, session=session, type=_type(type_), requester=requester, to=to, return_to=return_to or [],
            reason=reason, goal=goal, additional_context=context, review=review, plan=plan, drafts=_drafts(draft or []),
            diff=diff, routes=routes, only_session=only_session, model=asked_of,
        )  # fmt: skip
        return continuation_answer(workspace, workspace.request(asked, say), prompt=prompt, store=store)

    answer("request", how, work, store=store, writes=not plan, lenient=True, scratch=True)


def _type(text: str) -> str:
    # The names of the contract work too, for agents that know only those.
    wanted = _TYPES.get(text.lower(), text.upper())
    if wanted not in _TYPES.values():
        raise InvalidInput(f"--type {text!r} is unknown", "introspect or proceed")
    return wanted


def _drafts(given: list[str]) -> dict[str, Any]:
    """Return the drafted request of each agent.

    Raises:
        InvalidInput: a value is not of the form AGENT=JSON, or not JSON.
    """
    drafts: dict[str, Any] = {}
    for text in given:
        agent, equals, body = text.partition("=")
        if not equals or not agent.strip():
            raise InvalidInput(f"--draft {text[:80]!r} is not of the form AGENT=JSON", 'e.g. --draft \'coder={"goal": "..."}\'')
        try:
            drafts[agent] = json.loads(read_regular(body[1:], MAX_SETTINGS_BYTES) if body.startswith("@") else body)
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidInput(f"--draft for {agent[:80]!r} can't be read: {error}", "JSON, or @FILE with JSON in it") from None
    return drafts


_CITED = 6
"""Maximum number of entries cited after a statement on a terminal."""

_QUOTE_LINES, _BLOCK_LINES = 2, 6
"""Maximum number of lines of a quote on a terminal, and of a quoted text with line ends."""

# Hex digits in lower case, as in logs, because quotes are parts of log records.
_LITERAL = lazy_pattern(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-f]{4}))*"')
"""A string as JSON writes it."""

_SOURCES = {"agentRequest": "an agent asked", "stuckHandler": "the run is stuck", "reviewMerge": "a review completed"}


def show_continuation(
    printer: Printer,
    continuation: Continuation,
    indexes: Mapping[str, int] | None = None,
    plan: PlanView | None = None,
    store: str | None = None,
) -> None:
    """Show what is wrong, why and what to do next; then the evidence; then where the answer is recorded.

    ``indexes`` maps the ids of cited entries to their places in the session; other entries are cited by id. On a terminal a
    quote takes at most two lines, because the cited entry holds the rest.
    """
    cite = _Citations(printer, continuation, indexes or {})
    _answer(printer, continuation)
    _recipient(printer, continuation, store)
    _text(printer, "Task", continuation.goal)
    # A diagnosis already says this at the top of the page.
    if continuation.diagnosis is None:
        _text(printer, "Where things stand", continuation.context.summary)
    _facts(printer, continuation, cite)
    _repeats(printer, continuation, cite)
    _alternatives(printer, continuation, cite)
    if continuation.context.unanswered:
        printer.heading("Not in this history")
        for text in continuation.context.unanswered:
            printer.line(f"{printer.symbols.arrow} {text}", indent=2, hang=2, most=_QUOTE_LINES)
    for section in continuation.context.sections:
        _text(printer, section.title, section.text)
    if continuation.context.held:
        printer.heading("Held already")
        for held in continuation.context.held:
            printer.line(f"{held.hash}{cite(held.entries)}", Span(f"  given in {held.given}", "dim"), indent=2, hang=2)
    _record(printer, continuation, cite)
    if plan is not None:
        _plan(printer, plan)


def _answer(printer: Printer, continuation: Continuation) -> None:
    """Show the beginning of the page: what is wrong, why, and what to do next."""
    found = continuation.diagnosis
    pattern = continuation.loop or continuation.stall
    if pattern is not None:
        printer.line(Span(f"{printer.symbols.error} ", "error"), pattern.reason)
    elif found is not None and continuation.source == "stuckHandler":
        printer.line(Span(f"{printer.symbols.error} ", "error"), continuation.reason)
    if found is not None:
        printer.line()
        printer.line(Span("Cause      ", "strong"), found.cause, indent=2, hang=11)
        printer.line(Span("Next step  ", "strong"), found.next_step, indent=2, hang=11)
        if found.check:
            printer.line(Span("Then check ", "strong"), found.check, indent=2, hang=11)
    if pattern is not None or found is not None:
        printer.line()


def _recipient(printer: Printer, continuation: Continuation, store: str | None) -> None:
    """Show who continues, why, and where the text for that agent is."""
    printer.rule("continue with ", Span(continuation.target, "strong"), Span(f"  {continuation.request_type}", "dim"))
    printer.line(continuation.target_reason)
    context = continuation.context
    size = f"{amount(context.token_count)} tokens by {context.counter}"
    since = f", only what is new since {context.diff_of}" if context.diff_of else ""
    again = "" if continuation.snapshot is None else " --last"
    text = session_command("recover", continuation.session, store)
    printer.line("Its text: ", Span(f"{text}{again} --prompt", "name"), f"  ({size}{since})")
    printer.line(Span("For a program: --json; 'data.continuation.returnTo' holds exactly one request.", "dim"))


def _alternatives(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    if not continuation.alternatives:
        return
    printer.heading("Try instead")
    for option in continuation.alternatives:
        why = f"  ({option.basis})" if option.basis else ""
        printer.line(f"{printer.symbols.arrow} {option.text}", Span(f"{why}{cite(option.entries)}", "dim"), indent=2, hang=2)


def _record(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    """Show how the answer was made and where it is recorded."""
    by = "the model" if continuation.by == "model" else "the rules"
    if continuation.fallback:
        by += " (the model had no answer that counts)"
    others = [name for name in continuation.candidates if name != continuation.target]
    pattern = continuation.loop or continuation.stall
    shown = command("snapshot", "show", continuation.snapshot) if continuation.snapshot else None
    notes = plural(len(continuation.notes), "note") if continuation.notes else None
    kept = f"{notes}: {' '.join(continuation.notes)}" if notes else None
    routed = "the routing table" if continuation.routing == "table" else "what the history shows"
    printer.heading("About this answer")
    printer.pairs([
        ("session", continuation.session), ("asked by", _SOURCES.get(continuation.source, continuation.source)),
        ("reason", continuation.reason),
        ("finding", None if pattern is None else _pattern(printer, pattern, loop=pattern is continuation.loop)),
        ("started at", pattern and pattern.start and cite.name(pattern.start)),
        ("last progress", pattern and pattern.last_progress and cite.name(pattern.last_progress)),
        ("not sent to", ", ".join(others)), ("routed by", routed if others else None),
        ("written by", by), ("model", _model(continuation)), ("attempt", _attempt(continuation)),
        ("kept as", continuation.id if shown or kept else "not recorded"), ("evidence", shown), ("notes", kept),
    ])  # fmt: skip


def _attempt(continuation: Continuation) -> str | None:
    """Return the number of the attempt as text. A question is no attempt, so it gives None."""
    told_again = "told again: nobody went on since it was recorded" if continuation.told_again else None
    if continuation.source != "stuckHandler" or not (continuation.loop or continuation.stall):
        return told_again
    return f"{continuation.attempts}, {told_again}" if told_again else str(continuation.attempts)


def _model(continuation: Continuation) -> str | None:
    """Return which model was asked, in which mode, and at what cost."""
    use = continuation.model
    if use is None:
        return None
    took = f"{plural(use.requests, 'request')}, {plural(use.tool_calls, 'tool call')}, {use.seconds:.1f} s"
    tokens = f", {amount(use.input_tokens + use.output_tokens)} tokens" if use.input_tokens or use.output_tokens else ""
    return f"{use.name} ({use.mode}; {took}{tokens})" + (f": {use.failure}" if use.failure else "")


def _plan(printer: Printer, plan: PlanView) -> None:
    printer.heading("What a recovery would do")
    only = " (fixed by the request)" if plan.fixed else ""
    printer.pairs([
        ("candidates", ", ".join(plan.candidates) + only),
        ("model", plan.model or "none: nothing leaves this machine"),
        ("would be sent", plan.sends),
        ("first prompt", f"{amount(plan.prompt_tokens)} tokens, estimated" if plan.prompt else None),
    ], indent=2)  # fmt: skip
    if plan.prompt:
        printer.block(plan.prompt, indent=2)


class _Citations:
    """Formats the ids of cited entries: complete in a pipe, shortened to unique prefixes on a terminal."""

    def __init__(self, printer: Printer, continuation: Continuation, indexes: Mapping[str, int]) -> None:
        self._indexes = indexes
        cited = [*continuation.context.facts, *continuation.do_not_repeat, *continuation.alternatives]
        ids = [name for each in cited for name in each.entries]
        for pattern in (continuation.loop, continuation.stall):
            ids += [] if pattern is None else [*pattern.members, pattern.start or "", pattern.last_progress or ""]
        self._names = short_ids(ids) if printer.terminal else {}
        self._most = _CITED if printer.terminal else None
        self._ellipsis = printer.symbols.ellipsis

    def name(self, entry: str) -> str:
        return f"@{self._indexes[entry]}" if entry in self._indexes else self._names.get(entry, entry)

    def __call__(self, entries: Sequence[str]) -> str:
        if not entries:
            return ""
        shown = [self.name(entry) for entry in entries[: self._most]]
        more = f" {self._ellipsis} {len(entries):,} in all" if len(shown) < len(entries) else ""
        return f"  [{' '.join(shown)}{more}]"


def _text(printer: Printer, title: str, text: str) -> None:
    if text.strip():
        printer.heading(title)
        printer.block(text.strip("\n"), indent=2)


def _pattern(printer: Printer, pattern: Pattern, *, loop: bool) -> str:
    rounds = f" of {pattern.period} steps" if pattern.period > 1 else ""
    return f"{pattern.kind}{rounds}" + (f" {printer.symbols.times}{pattern.count:,}" if loop else "")


def _facts(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    if not continuation.context.facts:
        return
    printer.heading("What is known")
    wide = max(len(fact.label) for fact in continuation.context.facts)
    task = json.dumps(continuation.goal, ensure_ascii=False)
    for fact in continuation.context.facts:
        if fact.text.endswith(f": {task}"):  # the task stands above, under its own heading
            continue
        label = Span(fact.label.ljust(wide) + "  ", fact.label)
        places = [cite.name(entry) for entry in fact.entries]
        cited = "" if len(places) == 1 and f"({places[0]}," in fact.text else cite(fact.entries)
        printer.line(label, fact.text, Span(cited, "dim"), indent=2, hang=wide + 2)
        if fact.quote is not None:
            _quote(printer, fact.quote, wide + 4)


def _quote(printer: Printer, quote: str, indent: int) -> None:
    """Show a quote. If it holds a text of several lines, show that text unfolded below the rest of the quote."""
    shown = max(_LITERAL.findall(quote), key=len, default="")
    # A quote is a piece of JSON. The longest string in it is what a person wants to read with its line ends.
    text = json.loads(shown) if shown else ""
    if "\n" not in text:
        printer.line(Span(quote, "dim"), indent=indent, hang=2, most=_QUOTE_LINES)
        return
    head, _, tail = quote.partition(shown)
    printer.line(
        Span(head.rstrip(f" {printer.symbols.ellipsis}…").rstrip("->: ") + ":", "dim"), indent=indent, hang=2, most=_QUOTE_LINES
    )
    left = printer.block(text.strip("\n"), indent=indent + 2, style="dim", most=_BLOCK_LINES)
    if left or tail.strip():
        printer.line(Span(printer.symbols.ellipsis, "dim"), indent=indent + 2)


def _repeats(printer: Printer, continuation: Continuation, cite: _Citations) -> None:
    if not continuation.do_not_repeat:
        return
    printer.heading("Do not repeat before something has changed")
    for each in continuation.do_not_repeat:
        asked = brief(each.input).strip()
        times = f"  {printer.symbols.times}{each.times:,}"
        printer.line(
            Span(f"{printer.symbols.error} ", "error"), Span(each.action, "name"), f"  {asked}", Span(times, "strong"),
            Span(cite(each.entries), "dim"), indent=2, hang=2,
        )  # fmt: skip
        if each.outcome:
            _quote(printer, f"{printer.symbols.arrow} {each.outcome}", 4)


_HELP = """Texts for the prompts of agents.

\b
Examples:
  ctxmgr prompt agent --for coder >> AGENTS.md
"""

prompt_app = typer.Typer(no_args_is_help=True, help=_HELP)


@prompt_app.command("agent")
def agent(
    reader: Annotated[
        str | None, typer.Option("--for", metavar="NAME", help="The agent that reads the text; else any.")
    ] = None,
    routes: o.Routes = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Print what an agent should know to ask the context manager: when, how, and what comes back.

    It names the agents of the routing table, else those of the latest session.

    Examples:
      ctxmgr prompt agent
      ctxmgr prompt agent --for reviewer --routes routes.toml --json
    """

    def work(workspace: Workspace) -> Answer:
        made = workspace.agent_prompt(build(PromptRequest, agent=reader, routes=routes))
        return Answer(made.to_json(), lambda out: out.block(made.prompt.rstrip("\n")))

    answer("prompt agent", how, work, store=store)
