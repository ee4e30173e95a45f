"""Options that several commands share, declared once."""

from __future__ import annotations

from typing import Annotated, Any

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import invocation
from ctxmgr.errors import InvalidInput

# The spellings are in `invocation`, which the fast path reads without loading these declarations.
_JSON, _FORMAT, _FIELDS, _JQ, _RAW = (each.words for each in invocation.OUTPUT.values())

Store = Annotated[
    str | None, typer.Option("--store", metavar="PATH", help="A store or any log; else CTXMGR_STORE, else the nearest .ctxmgr.")
]
Session = Annotated[
    str | None, typer.Option("--session", "-s", metavar="ID", help="Session id or prefix, or a log; else the latest session.")
]
Target = Annotated[
    str | None,
    typer.Argument(metavar="[SESSION|LOG]", help="A session, or any log that ctxmgr can read; else the latest session."),
]
Log = Annotated[str | None, typer.Argument(metavar="[LOG]", help="Any log that ctxmgr can read, in place of the store.")]
AllSessions = Annotated[bool, typer.Option("--all-sessions", help="All sessions of the store.")]
Action = Annotated[list[str] | None, typer.Option("--action", help="Only this action; repeatable.")]
Agent = Annotated[list[str] | None, typer.Option("--agent", help="Only this agent; repeatable.")]
InputType = Annotated[list[str] | None, typer.Option("--input-type", help="Only this input type; repeatable.")]
Process = Annotated[
    list[str] | None,
    typer.Option("--process", metavar="ID", help="Only this process (id or prefix) of the session; repeatable."),
]
Status = Annotated[
    list[str] | None, typer.Option("--status", help="Only this status: ok, error, denied, interrupted or open; repeatable.")
]
Kind = Annotated[str, typer.Option("--kind", help="Kind of rows: entry, event or all.")]
EventType = Annotated[list[str] | None, typer.Option("--event-type", help="Only events of this type; repeatable.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="From this time on: 2h, 7d, yesterday, RFC 3339 (UTC without a zone)."),
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before this time.")]
Offset = Annotated[int, typer.Option("--offset", help="Number of rows to skip.")]
Limit = Annotated[int, typer.Option("--limit", "-n", help="Maximum number of rows.")]
Json = Annotated[bool, typer.Option(*_JSON, help="Print one JSON envelope.")]
Format = Annotated[str | None, typer.Option(*_FORMAT, metavar="FORMAT", help="table, json, ndjson, md, csv or tsv.")]
Fields = Annotated[str | None, typer.Option(*_FIELDS, metavar="A,B", help="Show only these fields of each row.")]
Jq = Annotated[str | None, typer.Option(*_JQ, metavar="EXPR", help="Filter the JSON envelope with a jq program.")]
Raw = Annotated[bool, typer.Option(*_RAW, help="Print strings that --jq finds without quotes.")]
# ``strict`` makes the import fail if one of the two lists lacks an option.
OUTPUT: dict[str, Any] = dict(zip(invocation.OUTPUT, (Json, Format, Fields, Jq, Raw), strict=True))
"""Parameter -> declaration of the options that control how the answer is shown."""
Now = Annotated[str | None, typer.Option("--now", metavar="TIME", help="Time at which stalls are judged; 'now' for the clock.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A detection setting for this run, e.g. repeat_rounds=4; repeatable."),
]
Plan = Annotated[bool, typer.Option("--plan", help="Show the continuation without recording anything.")]
Prompt = Annotated[bool, typer.Option("--prompt", help="Print only the text for the agent that continues.")]
Diff = Annotated[
    bool | None,
    typer.Option(
        "--diff/--fresh", help="Leave out what the agent was given before, or include everything.", show_default=False
    ),
]
OnlySession = Annotated[bool, typer.Option("--only-session", help="Read only this session, not related sessions or memory.")]
TrustProject = Annotated[
    bool, typer.Option("--trust-project", help="Accept access rules, artifacts and context that the records set.")
]
Routes = Annotated[
    str | None, typer.Option("--routes", metavar="FILE", help="A routing table (TOML or JSON); else the configured one.")
]
GoalDir = Annotated[
    str | None, typer.Option("--goal-dir", metavar="DIR", help="Include the goal ('ctxmgr goal') of this project.")
]
Model = Annotated[str | None, typer.Option("--model", metavar="PROVIDER:NAME", help="Model to ask as well; else CTXMGR_MODEL.")]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Server of the model, where it has OpenAI's API.")
]
LlmMode = Annotated[
    str | None,
    typer.Option("--llm-mode", metavar="MODE", help="tools: the model reads the history; lead: it answers one question."),
]
NoLlm = Annotated[bool, typer.Option("--no-llm", help="Ask no model, whatever is configured.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="Time limit for the model; 30 by default.")]
ModelTokens = Annotated[int | None, typer.Option("--model-tokens", help="Token limit for the model, input and output.")]
MaxToolCalls = Annotated[int | None, typer.Option("--max-tool-calls", help="Limit on the model's tool calls.")]
Transcript = Annotated[
    str | None, typer.Option("--transcript", metavar="FILE", help="Save the conversation with the model here.")
]


def require_interval(seconds: float) -> None:
    """Refuse a waiting time (``--every``) that is not a positive, finite number.

    Raises:
        InvalidInput: the number is not above 0, or is NaN or infinite.
    """
    # The parser accepts NaN and infinity as floats. A sleep of either would fail or never end.
    if not 0 < seconds < float("inf"):
        raise InvalidInput(f"--every {seconds:g} is no time", "seconds above 0")
