"""``schema``: the JSON Schema of the input and the answer of every command."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import TypeAdapter

from ctxmgr.cli import declarations as typer
from ctxmgr.cli import options as o
from ctxmgr.cli.envelope import output_options
from ctxmgr.cli.exits import MEANINGS
from ctxmgr.cli.output import Answer, answer_without_store
from ctxmgr.errors import NotFound
from ctxmgr.types import (
    access,
    analysis,
    artifact,
    context_package,
    finding,
    goal,
    import_report,
    memory,
    operations,
    project_state,
    query,
    setup,
    view,
)
from ctxmgr.types.base import Shape, Text
from ctxmgr.types.query import Envelope
from ctxmgr.types.record_models import MODELS


class RecordCounts(Shape):
    """How many records were new, and how many the store held already."""

    added: int
    known: int


class Range(Shape):
    """A damaged part of a log, in bytes; of a database, a record by its number."""

    kind: Literal["unreadable", "altered", "inserted", "unsummed", "cut"]
    offset: int
    length: int
    reason: Text


class VerifyResult(Shape):
    """How many records were read, which ranges are damaged, what could be checked and what could not be, in words."""

    records: int
    damaged: list[Range]
    checked: list[Text]
    unchecked: list[Text]


class IndexResult(Shape):
    """Whether there was anything to index."""

    indexed: bool


class MigrationResult(Shape):
    """The version of a store's tables, before and now."""

    before: int
    now: int


class GrantResult(Shape):
    """What a role was granted."""

    role: str
    team: str
    writes: bool
    removes: bool


class RevokeResult(Shape):
    """Whose rights were taken."""

    role: str


class TeamMember(Shape):
    """A role of a team, and whether it writes, and archives; a team without members has one row without a role."""

    team: str
    role: str | None
    writes: bool | None
    removes: bool | None


class ShippingProgress(Shape):
    """How far the records of one log or database have been brought to a store; sizes are bytes of a log, else records."""

    source: Text
    target: Text
    done: int
    size: int
    lag: int
    unit: Text
    added: int
    known: int
    changed: int
    refused: int
    refusal: Text | None
    archived: int
    archive: Text | None
    left_out: int
    shipped: Text | None
    error: Text | None
    since: Text | None


Row = type[Shape] | TypeAdapter[Any]
_ROWS: TypeAdapter[Any] = TypeAdapter(view.EntryView | view.EventView)

SHAPES: dict[str, tuple[Row, type[Shape] | None]] = {
    "envelope": (Envelope, None),
    "sessions": (view.SessionView, operations.SessionsRequest),
    "list": (_ROWS, query.ListRequest),
    "trace": (view.EntryView, query.TraceRequest),
    "show": (view.EntryView, query.ShowRequest),
    "search": (query.SearchHit, query.SearchRequest),
    "messages": (view.EventView, query.MessagesRequest),
    "note": (view.NoteView, query.AddNoteRequest),
    "note add": (view.NoteView, query.AddNoteRequest),
    "note list": (view.NoteView, query.ListNotesRequest),
    "note search": (view.NoteView, query.ListNotesRequest),
    "snapshot": (view.SnapshotView, query.CreateSnapshotRequest),
    "snapshot create": (view.SnapshotView, query.CreateSnapshotRequest),
    "snapshot list": (view.SnapshotView, query.ListSnapshotsRequest),
    "snapshot show": (query.ShowSnapshotResponse, query.ShowSnapshotRequest),
    "detect": (finding.SessionVerdict, operations.DetectRequest),
    "stats": (analysis.StatsRow, analysis.StatsRequest),
    "sql": (TypeAdapter(dict[str, Any]), analysis.SqlRequest),
    "config list": (setup.SettingView, None),
    "config get": (setup.SettingView, None),
    "config explain": (setup.SettingView, None),
    "config path": (setup.SettingsPath, None),
    "detect backtest": (analysis.Backtest, None),
    "detect explain": (operations.Explanation, operations.ExplainRequest),
    "artifact": (artifact.ArtifactView, artifact.ListArtifactsRequest),
    "artifact put": (artifact.PutResponse, artifact.PutRequest),
    "artifact get": (artifact.GetResponse, artifact.GetRequest),
    "artifact list": (artifact.ArtifactView, artifact.ListArtifactsRequest),
    "artifact log": (artifact.ArtifactView, artifact.ArtifactLogRequest),
    "artifact diff": (artifact.ArtifactDiff, artifact.DiffRequest),
    "version": (artifact.VersionView, None),
    "version create": (artifact.NewVersion, artifact.CreateVersionRequest),
    "version rollback": (artifact.RollbackResult, artifact.RollbackRequest),
    "version list": (artifact.VersionView, None),
    "version prune": (artifact.PruneResult, artifact.PruneRequest),
    "access": (access.AccessRule, None),
    "access load": (access.RuleChangeResult, None),
    "access allow": (access.RuleChangeResult, access.AccessRule),
    "access deny": (access.RuleChangeResult, access.AccessRule),
    "access remove": (access.RuleChangeResult, access.AccessRule),
    "access list": (access.AccessRule, None),
    "access check": (access.AccessExplanation, None),
    "access explain": (access.AccessExplanation, None),
    "access test": (access.Replay, None),
    "access log": (access.LoggedAccess, access.AccessLogRequest),
    "context set": (project_state.SetContextResponse, project_state.SetContextRequest),
    "context get": (project_state.ContextKey, project_state.GetContextRequest),
    "context log": (project_state.LoggedKeyChange, project_state.ContextLogRequest),
    "context assemble": (context_package.AssembleResponse, context_package.AssembleRequest),
    "context request": (context_package.RequestedItem, context_package.RequestItemsRequest),
    "context why": (context_package.ItemExplanation, context_package.WhyRequest),
    "context need add": (project_state.NeedChangeResult, project_state.ChangeNeedsRequest),
    "context need remove": (project_state.NeedChangeResult, project_state.ChangeNeedsRequest),
    "context need list": (project_state.AgentNeed, project_state.ListNeedsRequest),
    "execution": (project_state.Execution, project_state.ListExecutionsRequest),
    "execution record": (project_state.Execution, project_state.RecordExecutionRequest),
    "execution list": (project_state.Execution, project_state.ListExecutionsRequest),
    "memory": (memory.Episode, memory.RecallRequest),
    "memory retain": (memory.Episode, memory.RetainRequest),
    "memory recall": (memory.Episode, memory.RecallRequest),
    "memory reflect": (memory.Reflection, memory.ReflectRequest),
    "recover": (operations.RecoverResponse, operations.RecoverRequest),
    "prompt": (operations.AgentPrompt, operations.PromptRequest),
    "prompt agent": (operations.AgentPrompt, operations.PromptRequest),
    "request": (operations.RecoverResponse, operations.AgentRequest),
    "goal": (goal.GoalState, None),
    "goal add": (goal.GoalAnswer, goal.AddRequest),
    "goal block": (goal.GoalAnswer, goal.BlockRequest),
    "goal brief": (goal.BriefAnswer, goal.BriefRequest),
    "goal compare": (goal.Comparison, None),
    "goal done": (goal.GoalAnswer, goal.EndRequest),
    "goal drop": (goal.GoalAnswer, goal.DropRequest),
    "goal fail": (goal.GoalAnswer, goal.EndRequest),
    "goal move": (goal.GoalAnswer, goal.ReorderRequest),
    "goal next": (goal.GoalAnswer, goal.NextRequest),
    "goal probe": (goal.ProbeView, goal.Probe),
    "goal probe add": (goal.GoalAnswer, goal.Probe),
    "goal probe check": (goal.ProbeView, None),
    "goal probe list": (goal.ProbeView, None),
    "goal record": (goal.RecordAnswer, goal.RecordRequest),
    "goal recover": (goal.RecoverAnswer, None),
    "goal resume": (goal.ResumeAnswer, goal.ResumeRequest),
    "goal say": (goal.GoalAnswer, goal.MessageRequest),
    "goal split": (goal.GoalAnswer, goal.SplitRequest),
    "goal start": (goal.StartAnswer, goal.StartRequest),
    "goal tree": (goal.GoalState, None),
    "goal unblock": (goal.GoalAnswer, goal.UnblockRequest),
    "doctor": (setup.Check, None),
    "trust": (setup.TrustView, None),
    "install": (setup.InstallationView, None),
    "uninstall": (setup.InstallationView, None),
    "formats": (import_report.FormatView, None),
    "import": (import_report.ImportReport, None),
    "index": (IndexResult, None),
    "record": (RecordCounts, None),
    "ship": (ShippingProgress, None),
    "store init": (MigrationResult, None),
    "store migrate": (MigrationResult, None),
    "store grant": (GrantResult, None),
    "store revoke": (RevokeResult, None),
    "store teams": (TeamMember, None),
    "verify": (VerifyResult, None),
}
"""Command -> (shape of its ``data``, or of one row of it; the request that it builds from its options)."""


def schema(
    command: Annotated[
        list[str] | None, typer.Argument(help="A command, 'envelope', 'record' or 'exits'; else all names are listed.")
    ] = None,
    json_: o.Json = False,
    jq: o.Jq = None,
) -> None:
    """Print the JSON Schema of a command's request and of a row of its answer. The answer is always JSON.

    Examples:
      ctxmgr schema list
      ctxmgr schema note add
      ctxmgr schema record
      ctxmgr schema exits
    """

    def work() -> Answer:
        return Answer(_schema(" ".join(command or ())), lambda out: None)

    answer_without_store("schema", output_options(True, None, None, jq), work)


def _schema(command: str) -> Any:
    if not command:
        return sorted({*SHAPES, "exits"})
    if command == "exits":
        return {str(int(code)): meaning for code, meaning in MEANINGS.items()}
    if command not in SHAPES:
        raise NotFound(f"no schema for {command!r}", f"known: {', '.join(_schema(''))}")
    row, asked = SHAPES[command]
    found: dict[str, Any] = {"request": asked.model_json_schema(by_alias=True) if asked else None, "row": _json_schema(row)}
    if command == "record":
        found["records"] = {kind: model.model_json_schema(by_alias=True) for kind, model in MODELS.items()}
    return found


def _json_schema(row: Row) -> Any:
    if isinstance(row, TypeAdapter):
        return row.json_schema(by_alias=True, mode="serialization")
    found = row.model_json_schema(by_alias=True, mode="serialization")
    if row is operations.RecoverResponse:
        # In the JSON, the candidates are the branches of returnTo, of which exactly one is not null.
        continuation = found["$defs"]["Continuation"]
        for inside in ("candidates", "request"):
            del continuation["properties"][inside]
        continuation["properties"]["returnTo"] = _BRANCHES
        within = ("candidates", "request")
        continuation["required"] = [*(name for name in continuation["required"] if name not in within), "returnTo"]
    return found


_ROUTED = ("type", "reason", "goal")
_BRANCHES: dict[str, Any] = {
    "title": "Returnto",
    "description": "Every agent that may continue; the request for the one that does, null for the others.",
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    # The input of the agent. It is valid against the agent's schema in the routing
                    # table, or has these three fields.
                    "request": {"type": "object", "examples": [dict.fromkeys(_ROUTED, "")]},
                    "context": {"type": "string"},
                },
                "required": ["request", "context"],
                "additionalProperties": False,
            },
            {"type": "null"},
        ]
    },
}  # fmt: skip
