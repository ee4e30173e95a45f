"""``schema`` and ``demo``: what the answers look like, and what the product does."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from ctxmgr.cli.exits import MEANINGS
from ctxmgr.cli.output import Answer, answer_alone, shown
from ctxmgr.errors import NotFound
from ctxmgr.types import desk, finding, importing, query, route, view
from ctxmgr.types.envelope import Envelope
from ctxmgr.types.record import MODELS

SHAPES: dict[str, type[BaseModel]] = {
    "envelope": Envelope,
    "sessions": view.SessionView,
    "list": view.EntryView,
    "trace": view.EntryView,
    "show": view.EntryView,
    "search": query.SearchHit,
    "messages": view.EventView,
    "note": view.NoteView,
    "snapshot": view.SnapshotView,
    "detect": finding.SessionVerdict,
    "recover": route.Continuation,
    "request": route.Continuation,
    "import": importing.ImportReport,
}
REQUESTS: dict[str, type[BaseModel]] = {
    "list": query.ListRequest,
    "trace": query.TraceRequest,
    "show": query.ShowRequest,
    "search": query.SearchRequest,
    "messages": query.MessagesRequest,
    "note": query.AddNoteRequest,
    "snapshot": query.CreateSnapshotRequest,
    "sessions": desk.SessionsRequest,
    "detect": desk.DetectRequest,
    "recover": desk.RecoverRequest,
    "request": desk.AgentRequest,
}


def schema(
    command: Annotated[str | None, typer.Argument(help="A command, 'envelope', 'record' or 'exits'; else their names.")] = None,
) -> None:
    """Print the JSON Schema of a command's request and of a row of its answer.

    Examples:
      ctxmgr schema list
      ctxmgr schema record
      ctxmgr schema exits
    """

    def work() -> Answer:
        return Answer(_schema(command), lambda out: None)

    answer_alone("schema", lambda: shown(True, None, None, None), work)


def _schema(command: str | None) -> Any:
    if command is None:
        return sorted({*SHAPES, *REQUESTS, "record", "exits"})
    if command == "exits":
        return {str(int(code)): meaning for code, meaning in MEANINGS.items()}
    if command == "record":
        return {kind: model.model_json_schema(by_alias=True) for kind, model in MODELS.items()}
    if command not in SHAPES:
        raise NotFound(f"no schema for {command!r}", f"known: {', '.join(_schema(None))}")
    asked = REQUESTS.get(command)
    return {
        "request": asked.model_json_schema(by_alias=True) if asked else None,
        "row": SHAPES[command].model_json_schema(by_alias=True, mode="serialization"),
    }


_RUN = "projects/-home-dev-invoice-tool/7e999fd2-d31f-46eb-9632-55e969fb3852.jsonl"
STEPS: tuple[tuple[str, Sequence[str]], ...] = (
    ("Read the log that a coding agent left on disk", ("import", "{log}")),
    ("Which runs are there, and which of them is stuck?", ("sessions",)),
    ("Where does it go in circles, and since when?", ("detect", "--exit-zero")),
    ("What were its last steps?", ("list", "--newest-first", "--limit", "6")),
    ("One continuation request that gets it going again", ("recover",)),
)


def demo() -> None:
    """Run the main job on a recorded run of a real coding agent that went in circles.

    Works on a copy in a temporary folder, which is removed at the end.

    Examples:
      ctxmgr demo
    """
    from ctxmgr.cli import build_app

    folder = Path(tempfile.mkdtemp(prefix="ctxmgr-demo-"))
    log = folder / Path(_RUN).name
    try:
        log.write_bytes(_recorded_run().read_bytes())
        for title, command in STEPS:
            sys.stdout.write(f"\n# {title}\n$ ctxmgr {' '.join(command).format(log=log.name)}\n")
            sys.stdout.flush()
            arguments = [part.format(log=log) for part in command]
            code = build_app(command[0])([*arguments, "--store", str(folder / "history.db")], standalone_mode=False)
            if code:
                raise typer.Exit(int(code))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _recorded_run() -> Path:
    """Return the recorded run: inside the installed package, or among the fixtures of a checkout."""
    packaged = Path(__file__).with_name("demo_run.jsonl")
    return packaged if packaged.exists() else Path(__file__).parents[2] / "fixtures" / "demo" / "claude-code" / _RUN
