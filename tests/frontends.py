"""The same request through every front end: a tool test asks once and runs through the library and the command line.

Both front ends answer in the shape of the library's response. Left out is what the envelope of the command line has no place
for (``session`` of a page, ``entry`` of a page of messages). A refusal is ``{"error": kind, "message": text}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import typer
from typer import testing
from typer.main import get_command
from typer.testing import CliRunner, Result

from ctxmgr.cli import build_app
from ctxmgr.cli.invocation import set_agent
from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query import requests
from ctxmgr.history.query import requests as annotating
from ctxmgr.store import Store, open_store
from ctxmgr.types import query
from ctxmgr.types.base import Shape

Answer = dict[str, Any]
Ask = Callable[[Shape], Answer]


class _Tool(NamedTuple):
    """One tool: its function, its command, and the response field that is the envelope's data (None: all of it)."""

    function: Callable[[Store, Any], Shape]
    command: tuple[str, ...]
    data: str | None


TOOLS: dict[type[Shape], _Tool] = {
    query.TraceRequest: _Tool(requests.trace, ("trace",), "entries"),
    query.ListRequest: _Tool(requests.list_, ("list",), "rows"),
    query.SearchRequest: _Tool(requests.search, ("search",), "hits"),
    query.ShowRequest: _Tool(requests.show, ("show",), "entry"),
    query.MessagesRequest: _Tool(requests.messages, ("messages",), "messages"),
    query.AddNoteRequest: _Tool(annotating.add_note, ("note", "add"), "note"),
    query.ListNotesRequest: _Tool(annotating.list_notes, ("note", "list"), "notes"),
    query.CreateSnapshotRequest: _Tool(annotating.create_snapshot, ("snapshot", "create"), "snapshot"),
    query.ListSnapshotsRequest: _Tool(annotating.list_snapshots, ("snapshot", "list"), "snapshots"),
    query.ShowSnapshotRequest: _Tool(annotating.show_snapshot, ("snapshot", "show"), None),
}

_OPTIONS = {"max_results": "--max", "content": "-m", "tags": "-t", "links": "--link"}
_POSITIONAL = ("index", "entry_id", "entry_indices", "entry_ids", "snapshot_id", "query")


def through_library(location: str | Path, request: Shape) -> Answer:
    """Answer a request by the tool's function, on a store of its own."""
    tool = TOOLS[type(request)]
    with closing(open_store(str(location))) as store:
        try:
            answer = tool.function(store, request).to_json()
        except CtxmgrError as error:
            return {"error": error.kind, "message": error.message}
    if "page" in answer:
        answer.pop("session")
        answer.pop("entry", None)
    return answer


def through_cli(location: str | Path, request: Shape) -> Answer:
    """Answer a request by the tool's command, from its arguments to the envelope it prints."""
    arguments = argv(request, location)
    code, envelope = run_json(arguments)
    assert (code == 0) == (envelope["error"] is None), (arguments, code, envelope["error"])
    if envelope["error"] is not None:
        return {"error": envelope["error"]["kind"], "message": envelope["error"]["message"]}
    field = TOOLS[type(request)].data
    if field is None:
        return cast("Answer", envelope["data"])
    if envelope["page"] is None:
        return {field: envelope["data"]}
    return {"status": envelope["status"], field: envelope["data"], "page": envelope["page"]}


def invoke(arguments: Sequence[str], given: str | bytes | None = None) -> Result:
    """Run a command in this process, as typer does for tests."""
    set_agent(None)  # who asked last in this process asks no more
    return CliRunner().invoke(_app(arguments[0] if arguments else None), list(arguments), input=given)


@cache
def _app(command: str | None) -> typer.Typer:
    return build_app(command)


# typer makes the whole command anew for every invocation otherwise.
setattr(testing, "_get_command", cache(get_command))  # noqa: B010 -- the name is private


def run_json(arguments: list[str], given: str | None = None) -> tuple[int, Answer]:
    """Run a command that prints JSON, ``given`` on its stdin; return its exit code and envelope. A crash fails."""
    outcome = invoke(arguments, given)
    if outcome.exception is not None and not isinstance(outcome.exception, SystemExit):
        raise AssertionError(f"{arguments} crashed") from outcome.exception
    try:
        return outcome.exit_code, json.loads(outcome.stdout)
    except ValueError:
        raise AssertionError(f"{arguments} printed no JSON: {outcome.stdout!r}, {outcome.stderr!r}") from None


def argv(request: Shape, location: str | Path) -> list[str]:
    """Return the command line of a request: only what the request sets, so that defaults are compared too."""
    command = list(TOOLS[type(request)].command)
    given = {name: getattr(request, name) for name in request.model_fields_set}
    if isinstance(request, query.ListNotesRequest) and request.query is not None:
        command = ["note", "search"]
    return [*command, "--store", str(location), "--json", *_options(given), "--", *_positionals(given)]


def _options(given: dict[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if name in _POSITIONAL or value is None or value is False:
            continue
        option = _OPTIONS.get(name, "--" + name.replace("_", "-"))
        if value is True:
            yield option
            continue
        for item in cast("list[Any]", value) if isinstance(value, list) else [value]:
            yield from (option, str(item))


def _positionals(given: dict[str, Any]) -> Iterator[str]:
    if given.get("index") is not None:
        yield f"@{given['index']}"
    for index in given.get("entry_indices", []):
        yield str(index) if index >= 0 else f"@{index}"
    yield from given.get("entry_ids", [])
    yield from (given[name] for name in ("entry_id", "snapshot_id", "query") if given.get(name) is not None)


FRONT_ENDS: dict[str, Callable[[str | Path, Shape], Answer]] = {"library": through_library, "cli": through_cli}


@pytest.fixture(params=sorted(FRONT_ENDS))
def ask(request: pytest.FixtureRequest, store: Store) -> Ask:
    """Ask the test's history through one front end after the other."""
    front_end = FRONT_ENDS[request.param]
    return lambda asked: front_end(store.location, asked)
