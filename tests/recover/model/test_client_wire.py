"""Over real HTTP, against a stub server of the test: what is sent, and what becomes of every fault."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any

import pytest

from ctxmgr.recover.model.client import consult
from ctxmgr.recover.model.config import ModelChoice
from ctxmgr.recover.model.exchange import ModelAnswer
from ctxmgr.store import Store
from tests.builders import entry_id
from tests.recover.model.asking import answer, consultation, given_time
from tests.recover.model.stub_server import FAULTS, Line, StubServer, serving

PORT = ("the service listens on port 8471", "@0")
SCRIPT: list[Line] = [("search", {"query": "8471"}), answer(facts=[PORT])]


def _ask(store: Store, url: str, *, said: list[str] | None = None, **fields: Any) -> ModelAnswer:
    choice = replace(ModelChoice("stub", base_url=url, seconds=20.0), **fields)
    return consult(consultation(store), choice, check=lambda _proposal: [], progress=None if said is None else said.append)


def test_the_whole_loop_over_http(stuck: Store) -> None:
    """A server is asked, its tool calls answered, and its answer taken; the numbers are those that it reports."""
    with serving(SCRIPT) as stub:
        found = _ask(stuck, stub.url)

    assert found.use.failure is None
    assert found.proposal is not None
    assert found.proposal.facts[0].entries == [entry_id("stuck", 0)]
    assert (found.use.requests, found.use.input_tokens, found.use.output_tokens) == (2, 200, 20)
    assert "8471" in str(stub.requests[1]["messages"][-1])


def test_the_limits_of_the_answer_are_sent(stuck: Store) -> None:
    """Lengths stand in the schema that a server gets, in both modes: a small model writes on until told to stop."""
    with serving([answer()]) as stub:
        _ask(stuck, stub.url)
    with serving(['{"need": "x", "answer": 0}']) as narrow:
        _ask(stuck, narrow.url, mode="lead")

    tool = next(item for item in stub.requests[0]["tools"] if item["function"]["name"] == "continue_workflow")["function"]
    assert tool["parameters"]["properties"]["summary"]["maxLength"] == 1_200
    assert not tool.get("strict")
    schema = narrow.requests[0]["response_format"]["json_schema"]
    assert list(schema["schema"]["properties"]) == ["need", "answer"]
    assert schema["schema"]["properties"]["need"]["maxLength"] == 300
    assert not schema.get("strict")
    assert "tools" not in narrow.requests[0]


def test_no_foreign_key_is_sent(stuck: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server named by its address never gets a key that lies in the environment; its own it gets."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-secret")
    with serving([answer()]) as stub:
        _ask(stuck, stub.url)
        _ask(stuck, stub.url, api_key="own-key")

    assert "secret" not in str(stub.headers[0])
    assert stub.headers[1]["authorization"] == "Bearer own-key"


def test_a_server_of_this_machine_is_asked_without_a_proxy(stuck: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the environment does not get to see what is meant for this machine."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving([answer()]) as stub:
        assert _ask(stuck, stub.url).use.failure is None


WORDS = {
    "limited": "no more requests", "broken": "HTTP 500", "unauthorised": "key", "unknown-model": "does not know",
    "redirect": "307", "packed": "packed", "endless": "more than", "cut-off": "", "closes": "reached",
}  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("mode", ["tools", "lead"])
@pytest.mark.parametrize("fault", sorted(set(FAULTS) - {"silent", "uncounted", "no-temperature"}))
def test_a_fault_is_a_failure(stuck: Store, fault: str, mode: str) -> None:
    """Whatever the server does, the consultation ends with a reason in one printable line and no answer."""
    with serving([answer()] if mode == "tools" else ["7"], fault) as stub:
        found = _ask(stuck, stub.url, mode=mode)

    assert (found.proposal, found.lead) == (None, None)
    assert found.use.failure is not None
    assert found.use.failure.isprintable()
    assert len(found.use.failure) < 400
    assert WORDS.get(fault, "") in found.use.failure
    assert len(stub.requests) <= 3


def test_the_temperature_is_0_where_the_server_takes_one(stuck: Store) -> None:
    """Each request names temperature 0; a server that refuses it is asked once more, and from then on without one."""
    twice, refusing = [SCRIPT[0], *SCRIPT], "no-temperature"  # the request that is refused takes the first line
    with serving(SCRIPT) as takes, serving(SCRIPT[:1], refusing) as narrow, serving(twice, refusing) as refuses:
        _ask(stuck, takes.url)
        found = _ask(stuck, refuses.url)
        _ask(stuck, narrow.url, mode="lead")

    assert {each.get("temperature") for each in takes.requests} == {0.0}
    assert [each.get("temperature") for each in refuses.requests] == [0.0, *[None] * (len(refuses.requests) - 1)]
    assert (found.proposal is not None, found.use.requests) == (True, len(refuses.requests))
    assert [each.get("temperature") for each in narrow.requests][:2] == [0.0, None]


def test_a_server_that_asks_to_wait_is_not_waited_for(stuck: Store) -> None:
    """A wish for half a minute is no reason to sleep through the budget: one request, and the reason."""
    with serving(SCRIPT, "limited") as stub:
        found = _ask(stuck, stub.url)

    assert len(stub.requests) == 1
    assert found.use.failure is not None
    assert "429" in found.use.failure


def test_a_silent_server_is_given_up(stuck: Store) -> None:
    """A server that never answers is left while it is still silent."""
    with serving(SCRIPT, "silent") as stub:
        found = given_time(lambda choice: _ask(stuck, stub.url, seconds=choice.seconds), stub.asked.is_set)
        assert not stub.released.is_set()

    assert found.use.requests == 1


def test_a_dead_port_is_a_failure(stuck: Store) -> None:
    """Where nobody listens the reason says so, after one try."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = _ask(stuck, f"http://127.0.0.1:{taken.getsockname()[1]}/v1")

    assert found.use.failure is not None
    assert "can't be reached" in found.use.failure
    assert found.use.requests == 1


def test_a_server_that_does_not_count_is_limited_too(stuck: Store) -> None:
    """Without usage numbers an answer counts, and the limit on tokens holds by estimate, without a warning."""
    with serving(SCRIPT, "uncounted") as stub:
        assert _ask(stuck, stub.url).proposal is not None
    with serving([("search", {"query": "8471"})], "uncounted") as stub:
        found = _ask(stuck, stub.url, max_tokens=1_500)

    assert found.use.failure is not None
    assert "tokens" in found.use.failure
    assert found.use.input_tokens == 0


@pytest.mark.requirement("SC-004")
def test_something_is_said_before_anything_is_sent(stuck: Store) -> None:
    """The first line of progress comes before the first request goes out."""
    said: list[tuple[str, int]] = []
    with serving(SCRIPT) as stub:
        choice = ModelChoice("stub", base_url=stub.url)
        consult(
            consultation(stuck),
            choice,
            check=lambda _proposal: [],
            progress=lambda line: said.append((line, len(stub.requests))),
        )

    assert said[0][1] == 0
    assert said[0][0].startswith("consulting stub")


@pytest.mark.cases(1)
@pytest.mark.parametrize("first", ["half \ud83d", ("search", {"query": "half \ud83d"}), ("half \ud83d", {})])
def test_half_a_character_does_no_harm(stuck: Store, first: Line) -> None:
    """What can't be encoded, in text, arguments or a name, is mended before it is sent back; the next answer counts."""
    with serving([first, answer()]) as stub:
        found = _ask(stuck, stub.url)

    assert found.use.failure is None
    assert len(stub.requests) == 2
    assert len(found.transcript) > 100


def _leads(stub: StubServer, stuck: Store) -> ModelAnswer:
    return _ask(stuck, stub.url, mode="lead")


def test_the_narrow_question_over_http(stuck: Store) -> None:
    """One request, one number, one entry."""
    with serving(['{"need": "the port", "answer": 7}']) as stub:
        found = _leads(stub, stuck)

    assert found.lead is not None
    assert found.lead.entry == entry_id("stuck", 0)
    assert len(stub.requests) == 1
