"""``trace``, ``list``, ``search``, ``show``, ``messages``, ``stats``, ``sql`` and ``browse``: read a history."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.address import is_place, locate_log
from ctxmgr.cli.exits import Exit
from ctxmgr.cli.output import Answer, OutputOptions, answer, fail, resolve, resolve_place
from ctxmgr.cli.requests import build
from ctxmgr.cli.views.layout import Cell, Column, Span, amount, compact, duration, plural
from ctxmgr.errors import InvalidInput
from ctxmgr.types.query import Page
from ctxmgr.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxmgr.cli.terminal import Printer
    from ctxmgr.types.analysis import SqlResponse, StatsResponse, StatsRow


def trace(
    action: Annotated[str | None, typer.Argument(metavar="[ACTION]", help="Only this action.")] = None,
    target: o.Target = None,
    session: o.Session = None,
    actions: o.Action = None,
    agent: o.Agent = None,
    input_type: o.InputType = None,
    status: o.Status = None,
    process: o.Process = None,
    since: o.Since = None,
    until: o.Until = None,
    offset: o.Offset = 0,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="Maximum number of rows; else all.")] = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Show everything that happened under an action or agent, in order.

    Examples:
      ctxmgr trace Bash
      ctxmgr trace --agent main --status error --json
      ctxmgr trace Bash run.jsonl
    """


def list_(
    target: o.Target = None,
    session: o.Session = None,
    action: o.Action = None,
    agent: o.Agent = None,
    input_type: o.InputType = None,
    status: o.Status = None,
    process: o.Process = None,
    kind: o.Kind = "entry",
    event_type: o.EventType = None,
    since: o.Since = None,
    until: o.Until = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    newest_first: Annotated[bool, typer.Option("--newest-first", help="Show the newest rows first.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Page through a session, oldest first.

    Examples:
      ctxmgr list --limit 50
      ctxmgr list --newest-first --status error
      ctxmgr list --kind all --since 2h --json
      ctxmgr list --process 01a1ffcb
      ctxmgr list run.jsonl@40
    """


def search(
    query: Annotated[str, typer.Argument(help="Text to find, literally, also inside words.")],
    target: o.Target = None,
    session: o.Session = None,
    all_sessions: o.AllSessions = False,
    max_: Annotated[int, typer.Option("--limit", "--max", "-n", help="Maximum number of hits.")] = 50,
    offset: o.Offset = 0,
    action: o.Action = None,
    agent: o.Agent = None,
    input_type: o.InputType = None,
    status: o.Status = None,
    process: o.Process = None,
    kind: o.Kind = "all",
    event_type: o.EventType = None,
    since: o.Since = None,
    until: o.Until = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Find text in actions, inputs, outputs, errors, notes and messages, regardless of case.

    Examples:
      ctxmgr search Discovery
      ctxmgr search "exit code 1" --all-sessions
      ctxmgr search rm --kind entry --json
      ctxmgr search "exit code 1" run.jsonl
    """


def show(
    address: Annotated[str, typer.Argument(help="SESSION@42, LOG@42, 42, @-1, @last, or an entry id.")],
    session: o.Session = None,
    full: Annotated[bool, typer.Option("--full", help="Show long inputs and outputs in full.")] = False,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Show one entry with all details and its notes, or a recorded continuation by its id.

    Examples:
      ctxmgr show @last
      ctxmgr show 01a1ffcb@42 --json
      ctxmgr show run.jsonl@-1
    """


def messages(
    address: Annotated[
        str | None, typer.Argument(help="SESSION@42, LOG@42, LOG, @-1 or an entry id; else the session.")
    ] = None,
    session: o.Session = None,
    process: o.Process = None,
    offset: o.Offset = 0,
    limit: o.Limit = 20,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Page through the messages at an entry and on the way to it.

    Examples:
      ctxmgr messages @42
      ctxmgr messages --session 01a1ffcb --limit 100
      ctxmgr messages run.jsonl
    """


def browse(target: o.Target = None, session: o.Session = None, store: o.Store = None) -> None:
    """Browse a history: the sessions, the timeline of each with its findings, every entry.

    Nothing is written but your notes. A running session is followed. '?' shows the keys. Needs the tui extra: pip install
    'ctxmgr-cli[tui]'.

    Examples:
      ctxmgr browse
      ctxmgr browse 01a1ffcb
      ctxmgr browse run.jsonl
    """
    how = OutputOptions()
    session, store = resolve_place("browse", how, target, session, store)
    try:
        # Textual is an extra, and only this command may load it.
        from ctxmgr.cli.browse.screens import browse as run
    except ImportError:
        # In a checkout, an index would give another copy of the program.
        checkout = Path(__file__).parents[3] / "pyproject.toml"
        extra = f"pip install -e '{checkout.parent}[tui]'" if checkout.is_file() else "pip install 'ctxmgr-cli[tui]'"
        fail("browse", how, InvalidInput("browse needs the tui extra", extra))
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        fail("browse", how, InvalidInput("browse needs a terminal", "'ctxmgr report -o run.html' makes a page to look at"))
    if (error := run(store, session)) is not None:
        fail("browse", how, error)
    raise typer.Exit(0)


_ROWS = 1_000

Only = Annotated[
    list[str] | None,
    typer.Option("--model", help="Only calls that this model asked for; repeatable."),
]


def sql(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="One SELECT over the views; '-' reads it from stdin.")
    ] = None,
    log: o.Log = None,
    value: Annotated[list[str] | None, typer.Option("--value", help="Value for a '?' of the query; repeatable.")] = None,
    views_: Annotated[bool, typer.Option("--views", help="List the views and their columns instead of asking.")] = False,
    limit: o.Limit = _ROWS,
    seconds: Annotated[float, typer.Option("--time-limit", metavar="SECONDS", help="Time limit for the query.")] = 30.0,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Query a history with SQL: sessions, entries, events, findings, notes, tokens and more. It only reads.

    The views are documented in docs/sql.md. Rows beyond the limit are left out, and a query that takes too long is stopped;
    stderr says so. Exit code 8: the query was stopped.

    Examples:
      ctxmgr sql "SELECT action, count(*) AS calls FROM entries GROUP BY action ORDER BY calls DESC"
      ctxmgr sql "SELECT * FROM usage_by_day" --format csv
      ctxmgr sql "SELECT idx, error FROM entries WHERE status = 'error'" run.jsonl
      ctxmgr sql --views
    """
    # With --views there is no query, so a single argument is the log.
    if views_ and query is not None and log is None:
        query, log = None, query
    store = resolve("sql", how, _one_place, query, log, store)

    def work(workspace: Workspace) -> Answer:
        if views_:
            rows = workspace.sql_views()
            pairs = [(row.view, ", ".join(row.columns)) for row in rows]
            return Answer([row.to_json() for row in rows], lambda out: out.pairs(pairs, indent=0))
        return _sql_answer(workspace, query, value or [], limit, seconds)

    answer("sql", how, work, store=store)


def _sql_answer(workspace: Workspace, query: str | None, values: list[str], limit: int, seconds: float) -> Answer:
    if query is None:
        raise InvalidInput("no query", "e.g. ctxmgr sql 'SELECT * FROM sessions'; 'ctxmgr sql --views' lists the views")
    from ctxmgr.types.analysis import SqlRequest  # only two commands of this module need these shapes

    text = sys.stdin.read() if query == "-" else query
    found = workspace.sql(build(SqlRequest, query=text, values=values, limit=limit, seconds=seconds))
    return Answer(
        rows := [dict(zip(found.columns, row, strict=True)) for row in found.rows],
        lambda out: show_rows(out, found),
        "partial" if found.stopped else "ok" if rows else "empty",
        _page(found, limit),
        warnings=_cut(found),
        code=Exit.PARTIAL if found.stopped else Exit.OK,
        columns=tuple(found.columns),
    )


def _one_place(query: str | None, log: str | None, store: str | None) -> str | None:
    if query is not None and log is None and is_place(query):
        raise InvalidInput(f"{query!r} is a file, not a query", "the query comes first, then the file")
    return locate_log(log, store)


def _page(found: SqlResponse, limit: int) -> Page:
    count = len(found.rows)
    is_cut = found.more or bool(found.stopped)
    return Page(
        # No next offset, because a query has its own LIMIT and OFFSET.
        offset=0, limit=limit, has_more=is_cut, next_offset=None, total=count + is_cut, total_is_exact=not is_cut
    )  # fmt: skip


def _cut(found: SqlResponse) -> list[str]:
    count = len(found.rows)
    if found.stopped:
        return [f"the query was stopped, because {found.stopped}: {count:,} rows are shown; --time-limit gives it longer"]
    return [f"only the first {count:,} rows are shown; --limit shows more"] if found.more else []


def stats(
    target: o.Target = None,
    by: Annotated[str, typer.Option("--by", help="What to group by: action, agent, model, day, session or status.")] = "action",
    session: o.Session = None,
    action: o.Action = None,
    agent: o.Agent = None,
    model: Only = None,
    status: o.Status = None,
    since: o.Since = None,
    until: o.Until = None,
    store: o.Store = None,
    *,
    how: OutputOptions,
) -> None:
    """Add up calls, failures, tokens and time, by action, agent, model, day, session or status.

    Without a session all sessions count. The tokens of a model's answer are divided equally among its calls; those of an
    answer without a call have a row of their own.

    Examples:
      ctxmgr stats
      ctxmgr stats run.jsonl --by model
      ctxmgr stats --by day --since 7d --json
      ctxmgr stats --by agent --status error --format csv
    """
    session, store = resolve_place("stats", how, target, session, store)

    def work(workspace: Workspace) -> Answer:
        from ctxmgr.types.analysis import StatsRequest

        asked = build(
            StatsRequest, by=by, session=session, action=action, agent=agent, model=model, status=status, since=since,
            until=until,
        )  # fmt: skip
        found = workspace.stats(asked)
        return Answer(
            [row.to_json() for row in found.rows],
            lambda out: show_stats(out, found),
            "ok" if found.rows else "empty",
        )

    answer("stats", how, work, store=store)


_MAX_BAR_WIDTH = 24
_TITLES = {"action": "ACTION", "agent": "AGENT", "model": "MODEL", "day": "DAY", "session": "SESSION", "status": "STATUS"}


def show_rows(printer: Printer, found: SqlResponse) -> None:
    """Show the rows of a query, with numbers aligned to the right."""
    if not found.rows:
        printer.hint("The query found no rows.")
        return
    # The last columns shrink first, because the first columns say what the rows are about.
    columns = [
        Column(
            name.upper(), right=_is_numeric(place, found.rows), give=1 + place, least=6, fill=place == len(found.columns) - 1
        )
        for place, name in enumerate(found.columns)
    ]
    printer.table(columns, ([_cell(value) for value in row] for row in found.rows))


def _is_numeric(place: int, rows: Sequence[Sequence[Any]]) -> bool:
    values = [row[place] for row in rows if row[place] is not None]
    return bool(values) and all(isinstance(value, int | float) for value in values)


def _cell(value: Any) -> Cell:
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10_000 else compact(value)


def show_stats(printer: Printer, found: StatsResponse) -> None:
    """Show one row per key and the total; on a terminal, with a bar for the share of calls."""
    if not found.rows:
        printer.hint("No calls to add up.")
        return
    most = max(row.calls for row in found.rows) or 1
    total = found.total
    columns = (
        Column(_TITLES[found.by], fill=True, least=8),
        Column("CALLS", right=True),
        Column("", give=1),
        Column("FAILED", right=True),
        Column("OPEN", right=True, optional=True, give=2),
        Column("TOKENS IN", right=True),
        Column("OUT", right=True),
        Column("TIME", right=True),
    )
    printer.table(columns, [*(_row(printer, row, most) for row in found.rows)])
    if printer.terminal:
        printer.line()
        parts = [f"{plural(total.calls, 'call')}", f"{total.failed:,} failed"]
        if total.input_tokens is not None or total.output_tokens is not None:
            parts.append(f"{amount(total.input_tokens or 0)} tokens in, {amount(total.output_tokens or 0)} out")
        if total.seconds is not None:
            parts.append(f"{duration(total.seconds)} in calls")
        printer.line(Span("total  ", "dim"), ", ".join(parts))


def _row(printer: Printer, row: StatsRow, most: int) -> list[Cell]:
    plain = not printer.terminal
    # A row without a key sums up records without this value, e.g. without a model. If it has no calls, no value is missing.
    key = row.key if row.key is not None else "(no call)" if not row.calls else "(not told)"
    return [
        Span(key, "dim" if row.key is None else "strong", "middle"),
        row.calls if plain else f"{row.calls:,}",
        "" if plain else _bar(printer, row, most),
        Span(str(row.failed) if row.failed else "" if plain else printer.symbols.dash, "error" if row.failed else "dim"),
        Span(str(row.open) if row.open else "", "open"),
        _tokens(row.input_tokens, plain=plain),
        _tokens(row.output_tokens, plain=plain),
        "" if row.seconds is None else str(row.seconds) if plain else duration(row.seconds),
    ]


def _tokens(count: int | None, *, plain: bool) -> str:
    return "" if count is None else str(count) if plain else amount(count)


def _bar(printer: Printer, row: StatsRow, most: int) -> list[Span]:
    """Return a bar for the row's share of the calls. Its failed part has the colour of errors."""
    room = max(4, min(_MAX_BAR_WIDTH, printer.width // 5))
    # At least one cell, because a single failure among thousands of calls must be visible.
    length = max(1, round(room * row.calls / most)) if row.calls else 0
    failed = min(length, max(1, round(length * row.failed / row.calls))) if row.failed else 0
    sign = printer.symbols.bar
    return [Span(sign * (length - failed), "ok"), Span(sign * failed, "error")]
