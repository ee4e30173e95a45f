"""In time and without a trace, whatever happens: deadlines, running loops, late threads."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from ctxmgr.history.query import tools
from ctxmgr.recover.model import client
from ctxmgr.recover.model.client import consult
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.recover.model.dialogue import LONGEST_ANSWER
from ctxmgr.recover.model.exchange import ModelAnswer
from ctxmgr.store import Store
from ctxmgr.types.model_proposal import Proposal
from tests.builders import entry_id
from tests.recover.model.asking import CHOICE, Say, answer, ask, consultation, given_time, written

ROOT = Path(__file__).parents[3]
SHORT = ModelChoice("test:slow", seconds=0.5)


def _fine(_proposal: Proposal) -> list[str]:
    return []


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Hold a thread until the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.cases(1)
@pytest.mark.requirement("SC-004")
@pytest.mark.parametrize("blocking", [False, True])
def test_a_slow_model_is_given_up(stuck: Store, gate: threading.Event, blocking: bool) -> None:
    """An answer or a reason comes back while the model is still thinking, even one that blocks its own thread."""
    asked = threading.Event()

    async def waits(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        asked.set()
        if blocking:
            gate.wait(60)
        await asyncio.Event().wait()
        raise AssertionError("it never answers")

    question = consultation(stuck)
    found = given_time(lambda choice: consult(question, choice, check=_fine, model=FunctionModel(waits)), asked.is_set)

    assert not gate.is_set()
    assert found.proposal is None
    assert found.use.requests == 1


def _blocked(monkeypatch: pytest.MonkeyPatch, gate: threading.Event, ended: threading.Event) -> threading.Event:
    """Make a tool's search wait at the gate, and go on when it opens; return what says that one has begun."""
    search = tools.search
    begun = threading.Event()

    def waits(*args: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return search(*args)  # the rules search as well, before the model is asked
        begun.set()
        gate.wait(60)
        try:
            return search(*args)
        finally:
            ended.set()

    monkeypatch.setattr(tools, "search", waits)
    return begun


def test_a_thread_that_outlives_its_run_leaves_nothing(
    stuck: Store, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    """A tool that is still at work at the deadline is left behind; when it ends nothing of it is seen or written."""
    ended = threading.Event()
    said: list[str] = []
    begun = _blocked(monkeypatch, gate, ended)
    before = written(stuck)

    script: list[Say] = [("search", {"query": "8471"}), answer()]
    found = given_time(lambda choice: ask(stuck, script, choice=choice, progress=said.append)[0], begun.is_set)
    lines = len(said)
    gate.set()

    assert ended.wait(30)
    assert (found.notes, found.seen, written(stuck), len(said)) == ((), frozenset[str](), before, lines)


def test_a_note_before_the_deadline_is_kept(stuck: Store, monkeypatch: pytest.MonkeyPatch, gate: threading.Event) -> None:
    """What was collected in time comes back with the failure, for the log."""
    ended = threading.Event()
    begun = _blocked(monkeypatch, gate, ended)
    note = ("note", {"entries": [entry_id("stuck", 2)], "content": "the poll never changes"})

    found = given_time(lambda choice: ask(stuck, [note, ("search", {"query": "8471"})], choice=choice)[0], begun.is_set)

    assert found.notes[0].content == "the poll never changes"
    gate.set()
    assert ended.wait(30)  # it reads the store, which is closed when the test is over


def test_a_gate_that_hangs_is_left(stuck: Store, gate: threading.Event) -> None:
    """The check of an answer is inside the deadline as well."""

    def check(_proposal: Proposal) -> list[str]:
        gate.wait(60)
        return []

    found, _ = ask(stuck, [answer()], choice=SHORT, check=check)

    assert found.proposal is None
    assert found.use.failure == "no answer within 0.5 s"


def test_it_works_inside_a_running_loop(stuck: Store) -> None:
    """A program that runs a loop of its own may ask as well."""

    async def inside() -> ModelAnswer:
        return ask(stuck, [answer("planner")])[0]

    found = asyncio.run(inside())

    assert found.proposal is not None
    assert found.proposal.target == "planner"


def test_progress_that_fails_does_no_harm(stuck: Store) -> None:
    """A listener that raises is not heard of again, and lines come in the calling thread."""
    threads: set[str] = set()

    def listen(_line: str) -> None:
        threads.add(threading.current_thread().name)
        raise BrokenPipeError

    found, _ = ask(stuck, [answer()], progress=listen)

    assert found.proposal is not None
    assert threads == {threading.current_thread().name}


def test_a_store_that_is_locked_is_told_to_the_model(stuck: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that a driver raises inside a tool is an answer to the model, which goes on."""
    search = tools.search

    def locked(*args: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return search(*args)  # the rules search as well, before the model is asked
        raise OSError("database is locked")

    monkeypatch.setattr(tools, "search", locked)

    found, script = ask(stuck, [("search", {"query": "8471"}), answer()])

    assert "database is locked" in script.told[1]
    assert found.proposal is not None


def test_each_request_gets_the_time_that_is_left(stuck: Store) -> None:
    """No client retries by itself, and none waits longer than the consultation may take."""
    _, script = ask(stuck, [("search", {"query": "8471"}), answer()])

    assert [settings["max_retries"] for settings in script.settings] == [0, 0]
    assert CHOICE.seconds >= script.settings[0]["request_timeout"] > script.settings[1]["request_timeout"] > 0


def test_nothing_is_traced(stuck: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that traces all its agents gets no span of the history."""
    spans: list[str] = []

    class Settings(InstrumentationSettings):
        def __getattribute__(self, name: str) -> Any:
            spans.append(name)
            return super().__getattribute__(name)

    monkeypatch.setattr(Agent, "_instrument_default", Settings())
    spans.clear()

    found, _ = ask(stuck, [answer()])

    assert found.proposal is not None
    assert spans == []


def test_every_failure_fits_a_record(stuck: Store) -> None:
    """How the model took part is plain numbers and one printable line."""
    found, _ = ask(stuck, ["x" * (LONGEST_ANSWER + 1)])

    told = found.use.to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["failure"].isprintable()


def test_a_broken_library_is_a_failure(stuck: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that breaks while it is loaded is told at once, and nothing waits for the time limit."""

    def broken(*_given: Any) -> None:
        raise AttributeError("module 'httpx2' has no attribute 'AsyncClient'")

    monkeypatch.setattr(client, "load_library", broken)
    monkeypatch.setattr(client, "_LOADING", 3.0)
    client.Preparation(CHOICE).wait()

    assert consult(consultation(stuck), CHOICE, check=_fine).use.failure == "the model's library broke off: AttributeError"


def test_the_calling_thread_may_be_interrupted(stuck: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches the caller, and the tools are closed behind it."""
    closed: list[bool] = []
    close = client.Toolkit.close

    def noted(kit: Any) -> Any:
        closed.append(True)
        return close(kit)

    def interrupt(_line: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(client.Toolkit, "close", noted)

    with pytest.raises(KeyboardInterrupt):
        ask(stuck, [answer()], progress=interrupt)
    assert closed == [True]
