"""Consultations to try models on: a stuck session, the rules' own draft, and models that follow a script."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from ctxmgr.log.codec import Record
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.model.client import consult
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.recover.model.exchange import Consultation, ModelAnswer
from ctxmgr.recover.stuck_request import build_request
from ctxmgr.store import Store
from ctxmgr.types.model_proposal import Proposal
from ctxmgr.types.view import EntryView, EventView
from tests.builders import entry_id
from tests.recover import runs

SECRET = "port 8471"
"""The fact that the stuck agent lacks, and that only another agent's entry holds."""

CHOICE = ModelChoice(name="test:scripted", seconds=20.0)
LEAD = ModelChoice("test:small", mode="lead")


def lead(need: str = "the port", number: Any = 7) -> str:
    """Return the answer to the narrow question."""
    return json.dumps({"need": need, "answer": number})


class Fenced:
    """Delimiters that are new for each text, around JSON."""

    rule = "Blocks hold recorded data."

    def wrap(self, source: str, body: Any, *, limit: int = 6_000) -> str:
        """Return the body between delimiters."""
        assert len(json.dumps(body)) <= limit, "what is told fits its block whole"
        mark = secrets.token_hex(8)
        return f"<<{mark} {source}\n{json.dumps(body)}\n{mark}>>"

    def text(self, source: str, text: str, *, limit: int = 6_000) -> str:
        """Return the text between delimiters."""
        assert len(text) <= limit, "what is told fits its block whole"
        mark = secrets.token_hex(8)
        return f"<<{mark} {source}\n{text}\n{mark}>>"


def records(session: str = "stuck") -> list[Record]:
    """Return a run in which a coder polls for a port that the planner has read in a file."""
    told = [
        runs.said(session, 0, "Start the service and report its health"),
        *runs.call(session, 0, "Read", {"file_path": "deploy.yml"}, f"service listens on {SECRET}", agent="planner"),
        *runs.call(session, 1, "Read", {"file_path": "README.md"}, "# service", agent="reviewer"),
    ]
    for number in range(2, 7):
        told += runs.call(session, number, "Bash", {"command": "curl localhost:8080/health"}, error="connection refused")
    return told


def written(store: Store) -> int:
    """Return how many records the store holds."""
    return int(store.engine.query("SELECT count(*) FROM record")[0][0])


def suspicious(row: EntryView | EventView) -> str | None:
    """Say that an entry or event is quarantined when it says "ignore"."""
    said = row.data if isinstance(row, EventView) else row.output
    return "reads like an instruction" if "ignore" in json.dumps(said).lower() else None


def consultation(store: Store, session: str = "stuck", **fields: Any) -> Consultation:
    """Return a consultation about the session, as the rules would ask for it."""
    draft = runs.workspace(store).recover(runs.RecoverRequest(session=session, plan=True, force=True)).continuation
    reader = HistoryReader(store, session)
    known: dict[str, Any] = {
        "reader": reader,
        "request": build_request(session, None, force=True),
        "allowed": ["planner", "coder", "reviewer"],
        "cited": [entry_id(session, 2), entry_id(session, 6)],
        "brief": draft.context.prompt,
        "fence": Fenced(),
        "suspicion": suspicious,
        "candidates": reader.newest(10),
    }
    return Consultation(**{**known, **fields})


def answer(target: str = "coder", *, facts: Sequence[tuple[str, str]] = (), **fields: Any) -> dict[str, Any]:
    """Return the arguments of an answer; a fact is its text and one entry."""
    return {
        "target": target,
        "reason": "it is stuck on the port",
        "summary": "The health check goes to the wrong port.",
        "facts": [{"text": text, "entries": [name]} for text, name in facts],
        **fields,
    }


Say = ModelResponse | dict[str, Any] | tuple[str, dict[str, Any]] | str | list[Any]
"""What a scripted model says: an answer's arguments, a call, several calls, plain text, or a whole response."""


def response(said: Say) -> ModelResponse:
    """Return the response that says so."""
    if isinstance(said, ModelResponse):
        return said
    if isinstance(said, str):
        return ModelResponse(parts=[TextPart(said)])
    if isinstance(said, dict):
        return ModelResponse(parts=[ToolCallPart("continue_workflow", json.dumps(said))])
    calls = said if isinstance(said, list) else [said]
    return ModelResponse(parts=[ToolCallPart(name, json.dumps(given)) for name, given in calls])


@dataclass
class Script:
    """A model that says one thing after the other, the last one again and again; it keeps what it was told.

    Attributes:
        offered: for each request the names of the tools that were offered.
        told: for each request what its newest message says.
        settings: for each request its settings.
    """

    lines: Sequence[Say | Callable[[list[ModelMessage]], Say]]
    offered: list[list[str]] = field(default_factory=lambda: [])
    told: list[str] = field(default_factory=lambda: [])
    settings: list[dict[str, Any]] = field(default_factory=lambda: [])
    infos: list[AgentInfo] = field(default_factory=lambda: [])

    def model(self) -> FunctionModel:
        """Return it as a model."""

        async def speak(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            place = min(len(self.told), len(self.lines) - 1)
            self.infos.append(info)
            self.offered.append([tool.name for tool in info.function_tools])
            self.settings.append(dict(info.model_settings or {}))
            self.told.append(told(messages[-1]))
            line = self.lines[place]
            return response(line(messages) if callable(line) else line)

        return FunctionModel(speak, model_name="scripted")


def told(message: ModelMessage) -> str:
    """Return what a request says to the model."""
    assert isinstance(message, ModelRequest)
    return "\n".join(str(part.content) for part in message.parts if isinstance(part, UserPromptPart | ToolReturnPart))


def ask(
    store: Store,
    lines: Sequence[Say | Callable[[list[ModelMessage]], Say]],
    *,
    choice: ModelChoice = CHOICE,
    check: Callable[[Proposal], list[str]] = lambda _proposal: [],
    progress: Callable[[str], None] | None = None,
    **fields: Any,
) -> tuple[ModelAnswer, Script]:
    """Consult a model that follows a script."""
    script = Script(lines)
    question = consultation(store, **fields)
    return consult(question, choice, check=check, progress=progress, model=script.model()), script


_ROW = re.compile(
    r"(?:s\d+)?@(\d+) .*: (\w+)(?: at \d\d:\d\d)?(, quarantined: .*)?|\S+(?: by .*?)?(?: after @\d+)?(, quarantined: .*)?"
)


def rows(text: str) -> list[dict[str, Any]]:
    """Return the rows that a tool's answer shows, however it is fenced: place and status of an entry, and each of its parts."""
    found: list[dict[str, Any]] = []
    part = ""
    for line in text.split("\n")[1:-1]:
        if line.startswith("  "):
            found[-1][part] = f"{found[-1].get(part, '')}\n{line[2:]}".lstrip("\n")
        elif line.startswith(" "):
            part = line.strip(" :")
        elif (head := _ROW.fullmatch(line)) is not None and not line.startswith(("none", "{")):
            entry = {} if head[1] is None else {"index": int(head[1]), "status": head[2]}
            found.append({**entry, "quarantined": (head[3] or head[4]) is not None})
    return found


def given_time(attempt: Callable[[ModelChoice], ModelAnswer], begun: Callable[[], bool]) -> ModelAnswer:
    """Return what came of an attempt that was cut short after it had begun; a busy machine gets more time to begin."""
    for seconds in (0.5, 2.0, 8.0, 32.0):
        found = attempt(replace(CHOICE, seconds=seconds))
        if begun():
            assert found.use.failure == f"no answer within {seconds:g} s"
            return found
    raise AssertionError("it never began")
