"""One recovery with a real model through the real command line, and what is to be said of it.

Form is what must hold whatever a model answers, and is asserted; whether the model was of any use is counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from bench.llm.histories import History
from bench.llm.server import Server
from ctxmgr.log.codec import Record
from ctxmgr.store import open_store
from ctxmgr.types.route import CONTEXT_MANAGER

Mode = Literal["lead", "tools"]
MODES: tuple[Mode, ...] = ("lead", "tools")

LIMIT_SECONDS = 30.0
"""What a model may take (SC-004). Loading the model's library comes on top; on a busy machine that can take long."""

_WRITTEN = {"note", "snapshot", "continuation"}


@dataclass(slots=True)
class Outcome:
    """How one recovery went.

    Attributes:
        history: the recorded run.
        mode: what the model was asked to do.
        seconds: wall clock of the whole command.
        faults: of form; empty when all is as it must be.
        asked: whether a model was asked at all.
        own: whether the model's own answer counted.
        failure: why it did not, in the command's words.
        added: entries that the continuation cites and the rules' own does not.
        use: the continuation's account of the model.
    """

    history: History
    mode: Mode
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list[str])
    asked: bool = False
    own: bool = False
    failure: str = ""
    added: set[str] = field(default_factory=set[str])
    use: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def right(self) -> bool:
        """Whether the model named the entry that answers the question, or none where none does."""
        if self.history.answer_id is None:
            return not self.added and self.own
        return self.own and self.history.answer_id in self.added


def recover(server: Server, history: History, mode: Mode, store: Path) -> Outcome:
    """Recover the run that a store holds, and look at the answer and at what was written."""
    outcome = Outcome(history, mode)
    alone = _command(history, store, ["--plan"])
    before = _records(store, history.name)
    began = time.monotonic()
    ran = _command(
        history, store, ["--model", f"openai-chat:{server.model}", "--base-url", server.base_url, "--llm-mode", mode]
    )
    outcome.seconds = time.monotonic() - began
    if ran is None:
        outcome.faults.append("it did not end")
        return outcome
    if ran.returncode:
        outcome.faults.append(f"exit code {ran.returncode}: {ran.stdout[-500:]} {ran.stderr[-500:]}")
        return outcome
    found = _continuation(ran)
    outcome.faults += form_faults(found)
    outcome.faults += writing_faults(before, _records(store, history.name))
    outcome.use = found.get("model") or {}
    if (waited := float(outcome.use.get("seconds") or 0)) > LIMIT_SECONDS + 1:
        outcome.faults.append(f"the model was waited for {waited:.1f} s")
    outcome.asked = bool(outcome.use)
    outcome.failure = str(outcome.use.get("failure") or "")
    outcome.own = outcome.asked and not outcome.failure
    outcome.added = _cited(found) - (_cited(_continuation(alone)) if alone else set())
    return outcome


def _command(history: History, store: Path, options: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    command = [sys.executable, "-m", "ctxmgr", "recover", "--session", history.name, "--store", str(store), "--json", *options]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=4 * LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None


def _continuation(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    try:
        found = json.loads(ran.stdout)["data"]["continuation"]
    except (ValueError, KeyError, TypeError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def form_faults(found: dict[str, Any]) -> list[str]:
    """Return what is wrong with a continuation: exactly one branch, and a model that failed is owned up to."""
    branches: dict[str, Any] = found.get("returnTo") or {}
    taken = [agent for agent, branch in branches.items() if branch is not None]
    faults = [] if taken == [found.get("target")] else [f"the branches taken are {taken}, the target is {found.get('target')}"]
    if CONTEXT_MANAGER in branches:
        faults.append("the context manager is among the branches")
    use: dict[str, Any] = found.get("model") or {}
    failure = use.get("failure")
    if found.get("fallback") and not failure:
        faults.append("it is marked as a fallback and gives no reason")
    if failure and not (found.get("fallback") and found.get("by") == "rules"):
        faults.append(f"the model failed ({failure}) and the answer is not marked as a fallback to the rules")
    return faults


def writing_faults(before: list[Record], after: list[Record]) -> list[str]:
    """Return what was written that should not have been: the history stays, notes are signed, one continuation is added."""
    if after[: len(before)] != before:
        return ["records that were there are changed or gone"]
    new = after[len(before) :]
    kinds = [str(record["kind"]) for record in new]
    faults = [f"a record of the kind {kind} was written" for kind in sorted(set(kinds) - _WRITTEN)]
    if kinds.count("continuation") != 1:
        faults.append(f"{kinds.count('continuation')} continuations were recorded")
    notes = [record for record in new if record["kind"] == "note"]
    if any(record.get("author") != CONTEXT_MANAGER or not record.get("tags") for record in notes):
        faults.append("a note is not signed by the context manager, or bears no tag")
    return faults


def _records(store: Path, session: str) -> list[Record]:
    opened = open_store(str(store), readonly=True)
    try:
        return list(opened.sessions.records(opened.sessions.key(session)))
    finally:
        opened.close()


def _cited(found: dict[str, Any]) -> set[str]:
    """Return the entries that a continuation's facts and alternatives rest on."""
    context: dict[str, Any] = found.get("context") or {}
    parts: list[dict[str, Any]] = [*(context.get("facts") or []), *(found.get("alternatives") or [])]
    return {entry for part in parts for entry in cast("list[str]", part.get("entries") or [])}
