"""Queries by process: two workflows with one session id are told apart, whatever tool asks."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.store import Store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListRequest, MessagesRequest, SearchRequest, TraceRequest
from tests.builders import at, entry, event, result
from tests.frontends import Ask


@pytest.fixture
def two(store: Store) -> Store:
    """Hold one session that two processes executed at the same time."""
    for number in range(4):
        process = "run-a" if number % 2 == 0 else "run-b"
        store.append([
            entry("s", number, "Build", f"word {number}", process=process),
            result("s", number, f"done {number}"),
            event("s", 10 + number, "message", {"text": f"word from {process}"}, entry=f"s-e{number:04}"),
            event("s", 20 + number, "message", {"text": f"word alone in {process}"}, process=process, agent="coder"),
        ])  # fmt: skip
    store.append([event("s", 30, "message", {"text": "word of nobody"})])
    return store


@pytest.mark.requirement("FR-013", "FR-026", "EC-6")
def test_every_query_can_be_narrowed_to_a_process(two: Store, ask: Ask) -> None:
    """Trace, list, search and messages show what one process did and said, and nothing of the other one."""
    mine: Any = {"session": "s", "process": ["run-b"]}

    assert [row["index"] for row in ask(TraceRequest(**mine))["entries"]] == [1, 3]
    listed = ask(ListRequest(**mine, kind="all"))
    assert [row["id"] for row in listed["rows"]] == ["s-e0001", "s-v0011", "s-v0021", "s-e0003", "s-v0013", "s-v0023"]
    assert listed["page"]["total"] == 6
    hits = ask(SearchRequest(**mine, query="word"))["hits"]
    assert [hit["row"]["id"] for hit in hits] == [row["id"] for row in listed["rows"]]
    said = ask(MessagesRequest(**mine))
    assert [row["id"] for row in said["messages"]] == ["s-v0011", "s-v0021", "s-v0013", "s-v0023"]
    assert said["page"]["total"] == 4


@pytest.mark.requirement("FR-013", "EC-6")
def test_a_process_is_named_by_its_id_or_its_beginning(two: Store, ask: Ask) -> None:
    """A whole id means that process alone; the beginning of ids means all of these; an unknown one means none."""
    two.append([entry("s", 4, "Build", process="run-a2")])

    def indexes(*processes: str) -> list[int]:
        return [row["index"] for row in ask(ListRequest(session="s", process=list(processes)))["rows"]]

    assert indexes("run-a") == [0, 2]
    assert indexes("run-b", "run-a2") == [1, 3, 4]
    assert indexes("run-") == [0, 1, 2, 3, 4]
    assert indexes("nobody") == []
    assert indexes("") == []


@pytest.mark.requirement("FR-013")
def test_a_process_names_its_session(two: Store, ask: Ask) -> None:
    """Without a session the one that the process executed is meant, though another one is the latest."""
    two.append([build("session", "later", at(99), process="other"), entry("later", 0, ts=at(100), process="other")])

    assert [row["session"] for row in ask(ListRequest(process=["run-b"]))["rows"]] == ["s", "s"]
    assert [row["session"] for row in ask(ListRequest())["rows"]] == ["later"]
    assert ask(SearchRequest(process=["run-a"], query="done 2"))["hits"][0]["row"]["session"] == "s"
    assert len(ask(MessagesRequest(process=["run-a"]))["messages"]) == 4


@pytest.mark.requirement("EC-6")
def test_a_process_of_several_sessions_is_asked_back(two: Store, ask: Ask) -> None:
    """A process that executed several sessions names none of them, unless the latest is one of these."""
    for session in ("t", "u", "v"):
        two.append([entry(session, 0, ts=at(200), process="p" if session != "v" else "q")])

    assert ask(ListRequest(process=["p"]))["error"] == "invalid"
    assert [row["session"] for row in ask(ListRequest(process=["p"], session="t"))["rows"]] == ["t"]
