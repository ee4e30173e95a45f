"""``access``: the rules that say which agent may read or write what. They can be changed, listed, tried and explained."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from ctxmgr.base.paths import MAX_SETTINGS_BYTES, read_regular
from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, OutputOptions, answer
from ctxmgr.cli.requests import build
from ctxmgr.cli.views.layout import TIME_STEPS, Column, Span, date_span, plural
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import DEFAULT_PRIORITY, AccessLogRequest, AccessRule, RuleChangeResult
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.access import AccessExplanation, LoggedAccess, Replay, ReplayedRead


_HELP = """Set which agent may read or write what. Without a rule an agent has no access; the operator has full access.

Rules apply to whoever asks with --as AGENT. PATTERN is '*', 'self', 'AGENT/*' or 'AGENT/NAME'.

\b
Examples:
  ctxmgr access load default
  ctxmgr access allow parser_developer artifact 'system_architect/*'
  ctxmgr access check parser_developer read artifact system_architect/architecture.yaml && echo yes
  ctxmgr access explain parser_developer read artifact system_architect/architecture.yaml
"""

access_app = typer.Typer(no_args_is_help=True, help=_HELP)

Agent = Annotated[str, typer.Argument(help="The agent, or '*' for any.")]
Asker = Annotated[str, typer.Argument(metavar="AGENT", help="The agent that asks.")]
Type = Annotated[str, typer.Argument(metavar="TYPE", help="Type of the resource: artifact, context or history.")]
Pattern = Annotated[str, typer.Argument(help="'*', 'self', 'AGENT/*' or 'AGENT/NAME'.")]
Priority = Annotated[int, typer.Option("--priority", "-p", help="Priority; the lowest number counts first.")]
Resource = Annotated[str, typer.Argument(help="OWNER/NAME, a context key, or AGENT/SESSION.")]
Permission = Annotated[str, typer.Argument(metavar="PERMISSION", help="read or write.")]


@access_app.command("load")
def load(
    source: Annotated[str, typer.Argument(metavar="default|FILE", help="The template, or a file of rules (TOML or JSON).")],
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Add a set of rules to those in force; 'default' is a team's usual rules and needs.

    Examples:
      ctxmgr access load default
      ctxmgr access load rules.toml --json
    """

    def work(workspace: Workspace) -> Answer:
        done = (
            workspace.project.load_default_rules()
            if source == "default"
            else workspace.project.change_rules(add=_from_file(source))
        )
        return _change_answer(done)

    answer("access load", how, work, store=store, create=True)


def _from_file(source: str) -> list[AccessRule]:
    from ctxmgr.access.rule_changes import parse_rules_file

    # A file of rules may come with a checkout, so devices, pipes and endless files are refused.
    try:
        text = read_regular(source, MAX_SETTINGS_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{source}: not UTF-8", "a file of rules is TOML or JSON") from None
    return parse_rules_file(text, source)


def _change_answer(done: RuleChangeResult) -> Answer:
    return Answer(done.to_json(), lambda out: show_change(out, done))


def _rule(agent: str, kind: str, pattern: str, permission: str, priority: int) -> AccessRule:
    return build(AccessRule, agent=agent, resource_type=kind, pattern=pattern, permission=permission, priority=priority)


@access_app.command("allow")
def allow(
    agent: Agent,
    kind: Type,
    pattern: Pattern,
    write: Annotated[bool, typer.Option("--write", "-w", help="Allow writing too, which includes reading.")] = False,
    priority: Priority = DEFAULT_PRIORITY,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Allow an agent to read, or write, what a pattern names.

    Examples:
      ctxmgr access allow parser_developer artifact 'system_architect/*'
      ctxmgr access allow '*' artifact self --write --priority 1
    """

    def work(workspace: Workspace) -> Answer:
        return _change_answer(
            workspace.project.change_rules(add=[_rule(agent, kind, pattern, "write" if write else "read", priority)])
        )

    answer("access allow", how, work, store=store, create=True)


@access_app.command("deny")
def deny(
    agent: Agent,
    kind: Type,
    pattern: Pattern,
    priority: Priority = DEFAULT_PRIORITY,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Deny an agent what a pattern names; at equal rank a denial wins over every grant.

    Examples:
      ctxmgr access deny parser_developer artifact 'consulting_cpa/*' --priority 1
    """

    def work(workspace: Workspace) -> Answer:
        return _change_answer(workspace.project.change_rules(add=[_rule(agent, kind, pattern, "none", priority)]))

    answer("access deny", how, work, store=store, create=True)


@access_app.command("remove")
def remove(
    agent: Agent,
    kind: Type,
    pattern: Pattern,
    permission: Annotated[str, typer.Argument(metavar="PERMISSION", help="read, write or none.")],
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Remove a rule.

    Examples:
      ctxmgr access remove parser_developer artifact 'consulting_cpa/*' none
    """

    def work(workspace: Workspace) -> Answer:
        # Any priority will do, because agent, type, pattern and permission identify a rule.
        rule = _rule(agent, kind, pattern, permission, DEFAULT_PRIORITY)
        return _change_answer(workspace.project.change_rules(remove=[rule]))

    answer("access remove", how, work, store=store, writes=True)


@access_app.command("list")
def list_(
    agent: Annotated[str | None, typer.Option("--agent", help="Only rules that apply to this agent.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List the rules in force, in order of evaluation.

    Examples:
      ctxmgr access list --agent parser_developer
    """

    def work(workspace: Workspace) -> Answer:
        rules = [rule for rule in workspace.project.rules() if agent is None or rule.agent in ("*", agent)]
        return Answer([rule.to_json() for rule in rules], lambda out: show_rules(out, rules), "ok" if rules else "empty")

    answer("access list", how, work, store=store)


@access_app.command("check")
def check(
    agent: Asker,
    permission: Permission,
    kind: Type,
    resource: Resource,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Check whether an agent may read or write something: exit code 0 yes, 4 no.

    Examples:
      ctxmgr access check parser_developer read artifact system_architect/architecture.yaml
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.project.explain_access(agent, permission, kind, resource)
        # A script looks only at the exit code.
        code = Exit.OK if found.allowed else Exit.DENIED
        return Answer(found.to_json(), lambda out: show_verdict(out, found), code=code)

    answer("access check", how, work, store=store)


@access_app.command("explain")
def explain(
    agent: Asker,
    permission: Permission,
    kind: Type,
    resource: Resource,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Explain which rule decides, which rules lost and why, and which rule would grant it.

    Examples:
      ctxmgr access explain parser_developer read artifact consulting_cpa/tax.yaml
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.project.explain_access(agent, permission, kind, resource)
        # Exit code 0 even for a denial, because the question was why, and it is answered.
        return Answer(found.to_json(), lambda out: show_explanation(out, found))

    answer("access explain", how, work, store=store)


@access_app.command("test")
def try_rules(
    rules: Annotated[str, typer.Argument(metavar="default|FILE", help="The rules to test (TOML or JSON).")],
    replay: Annotated[bool, typer.Option("--replay", help="Apply the rules to past reads.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Test a set of rules without putting it in force; --replay shows which past reads it would have blocked.

    Examples:
      ctxmgr access test stricter.toml --replay
    """

    def work(workspace: Workspace) -> Answer:
        from ctxmgr.access.rule_changes import default_rules

        found = workspace.project.test_rules(default_rules() if rules == "default" else _from_file(rules), replay=replay)
        return Answer(found.to_json(), lambda out: show_replay(out, found, replayed=replay))

    answer("access test", how, work, store=store)


@access_app.command("log")
def log(
    agent: Annotated[str | None, typer.Option("--agent", help="Only accesses of this agent.")] = None,
    denied: Annotated[bool, typer.Option("--denied", help="Only those that were denied, or found nothing.")] = False,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """List what agents (--as) read, wrote and were denied, newest first.

    A denied read is answered like one of something missing, so both are listed as denied. Only the operator sees this log.

    Examples:
      ctxmgr access log --denied
      ctxmgr access log --agent parser_developer --json
    """

    def work(workspace: Workspace) -> Answer:
        found = workspace.project.access_log(build(AccessLogRequest, agent=agent, denied=denied, offset=offset, limit=limit))
        rows = [access.to_json() for access in found.accesses]
        return Answer(rows, lambda out: show_accesses(out, found.accesses), found.status, found.page)

    answer("access log", how, work, store=store)


_ACCESSES = (
    Column("TIME", give=4, least=10, steps=TIME_STEPS), Column("AGENT", give=3, least=8), Column("COMMAND", give=3, least=8),
    Column("ACCESS"), Column("GRANTED", right=True), Column("DENIED", give=2, least=12), Column("REASON", fill=True, least=12),
)  # fmt: skip
_MAX_NAMED = 3  # denied resources that a row names


def show_accesses(printer: Printer, accesses: Sequence[LoggedAccess]) -> None:
    """Show logged accesses, one per row."""
    if not accesses:
        printer.hint("No access of an agent was logged here. Agents ask with --as AGENT")
        return
    printer.table(
        _ACCESSES,
        (
            [
                date_span(access.at, printer.terminal), Span(access.agent, "name"), access.command, access.permission,
                str(access.granted_count), Span(_denied_names(access), "error"), access.failed or "",
            ]
            for access in accesses
        ),
    )  # fmt: skip


def _denied_names(access: LoggedAccess) -> str:
    more = access.denied_count - _MAX_NAMED
    names = ", ".join(resource.path for resource in access.denied[:_MAX_NAMED])
    return f"{names} and {more} more" if more > 0 else names


_RULES = (
    Column("PRIORITY", right=True), Column("AGENT", give=2, least=10), Column("TYPE"), Column("PATTERN", give=3, least=12),
    Column("PERMISSION"),
)  # fmt: skip
_READS = (
    Column("TIME", give=4, least=10, steps=TIME_STEPS), Column("AGENT", give=3, least=8), Column("COMMAND", give=3, least=8),
    Column("TYPE"), Column("RESOURCE", fill=True, least=16),
)  # fmt: skip
_STYLES = {"read": "ok", "write": "open", "none": "error"}


def show_rules(printer: Printer, rules: Sequence[AccessRule]) -> None:
    """Show rules in the order of evaluation."""
    if not rules:
        printer.hint("No access rules: an agent (--as) has no access. A team's usual rules: ctxmgr access load default")
        return
    printer.table(
        _RULES,
        (
            [rule.priority, rule.agent, rule.resource_type, rule.pattern, Span(rule.permission, _STYLES[rule.permission])]
            for rule in rules
        ),
    )


def show_change(printer: Printer, change: RuleChangeResult) -> None:
    """Show the result of a change of the rules."""
    if change.rules:  # a file may hold none
        show_rules(printer, change.rules)
    printer.hint(f"{change.added} added, {change.changed} changed, {change.removed} removed")


def show_verdict(printer: Printer, found: AccessExplanation) -> None:
    """Show the verdict and its reason in one line."""
    symbols = printer.symbols
    sign, word, style = (symbols.healthy, "yes", "ok") if found.allowed else (symbols.error, "no", "error")
    printer.line(Span(f"{sign} {word}" if printer.terminal else word, style), Span(f"  {found.reason}"), hang=4)


def show_explanation(printer: Printer, found: AccessExplanation) -> None:
    """Show the verdict, the deciding rule, the rules that lost, and what would grant the access."""
    show_verdict(printer, found)
    if found.rule is not None:
        printer.heading("The rule that decides")
        show_rules(printer, [found.rule])
    if found.shadowed:
        printer.heading("Rules that lost")
        for lost in found.shadowed:
            rule = lost.rule
            printer.line(
                Span(f"{rule.permission} ", _STYLES[rule.permission]),
                Span(f"{rule.agent} {rule.resource_type} {rule.pattern} (priority {rule.priority})"),
                Span(f"  {lost.reason}", "dim"),
                indent=2, hang=4,
            )  # fmt: skip
    if found.would_grant:
        printer.heading("Any of these would grant it")
        for rule in found.would_grant:
            write = " --write" if rule.permission == "write" else ""
            printer.line(
                Span(
                    f"ctxmgr access allow {quote(rule.agent)} {rule.resource_type} {quote(rule.pattern)}{write}"
                    f" --priority {rule.priority}"
                ),
                indent=2, hang=4,
            )  # fmt: skip


def show_replay(printer: Printer, found: Replay, *, replayed: bool) -> None:
    """Show the past reads that other rules would have decided differently."""
    if not replayed:
        printer.line("The rules can be used. Hold them against past reads with --replay.")
        return
    for title, reads, style in (("Would be blocked", found.blocked, "error"), ("Would be let through", found.opened, "warn")):
        if reads:
            printer.heading(title)
            printer.table(_READS, (_row(printer, read, style) for read in reads))
    changed = len(found.blocked) + len(found.opened)
    printer.hint(f"{plural(found.reads, 'past read')}: {len(found.blocked)} would be blocked, {len(found.opened)} let through"
                 if changed else f"{plural(found.reads, 'past read')}, all answered as before")  # fmt: skip


def _row(printer: Printer, read: ReplayedRead, style: str) -> list[str | Span]:
    return [date_span(read.at, printer.terminal), read.agent, read.command, read.resource.type, Span(read.resource.path, style)]
