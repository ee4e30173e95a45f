"""Executions: entries of the one history, found by agent, task, sprint and status, and only by who may read them."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.project_state import list_executions, record_execution
from ctxmgr.errors import Conflict, Denied, InvalidInput, NotFound
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.store import Store
from ctxmgr.store.project_session import VERSION
from ctxmgr.types.plain_records import build
from ctxmgr.types.project_state import Execution, ListExecutionsRequest, RecordExecutionRequest
from ctxmgr.types.query import ListRequest
from tests.access.conftest import As
from tests.conftest import Allow


def _record(store: Store, guard: AccessGuard, agent: str, status: str, **more: Any) -> Execution:
    request = RecordExecutionRequest.model_validate({"agent": agent, "status": status, **more})
    return record_execution(store, store, guard, request)


def _list(store: Store, guard: AccessGuard, seen: Store | None = None, **more: Any) -> list[Execution]:
    return list_executions(store, seen or store, guard, ListExecutionsRequest.model_validate(more)).executions


def _artifact(store: Store, number: int, agent: str, name: str) -> str:
    row: dict[str, str | int] = {
        "id": f"art_{number:016x}", "agent": agent, "name": name, "type": "yaml", "hash": "0" * 64, "size": 1, "tokens": 1,
        "counter": "estimate",
    }  # fmt: skip
    data = {"op": "put", "version": number, "parent": number - 1 or None, "artifacts": [row]}
    store.append([build("event", "ctxmgr:project", None, id=f"v{number}", type=VERSION, data=data)])
    return str(row["id"])


@pytest.mark.requirement("003-E1")
def test_a_run_is_recorded_with_all_it_was_given_and_made(store: Store, operator: AccessGuard) -> None:
    """A completed run answers with its artifacts, tokens, context version, times and how long it took."""
    arch, csv = _artifact(store, 1, "architect", "a.yaml"), _artifact(store, 2, "parser", "csv.py")

    done = _record(
        store, operator, "parser", "completed", execution_id="exec_001", task="T-1", sprint="S1", context_version=2,
        input_artifacts=["architect/a.yaml"], input_tokens=45_000, output_artifacts=[csv], output_tokens=8_500,
        started_at="2024-03-12T10:00:00Z", completed_at="2024-03-12T10:15:00Z",
    )  # fmt: skip

    assert done.to_json() == {
        "id": "exec_001", "session": "ctxmgr:project", "index": 0, "agent": "parser", "task": "T-1", "sprint": "S1",
        "status": "completed", "contextVersion": 2, "inputArtifacts": [arch], "inputTokens": 45_000,
        "outputArtifacts": [csv], "outputTokens": 8_500, "startedAt": "2024-03-12T10:00:00Z",
        "completedAt": "2024-03-12T10:15:00.000000Z", "durationSeconds": 900.0, "error": None,
    }  # fmt: skip
    assert _list(store, operator) == [done]


@pytest.mark.requirement("003-E1", "003-E2")
def test_a_run_that_started_can_be_ended_once(store: Store, operator: AccessGuard) -> None:
    """A started run is open, ends with its id as completed or failed, and then no more."""
    begun = _record(store, operator, "parser", "started", task="T-1")
    assert (begun.status, begun.completed_at, begun.duration_seconds) == ("started", None, None)
    assert _record(store, operator, "parser", "started", execution_id=begun.id) == begun

    failed = _record(store, operator, "parser", "failed", execution_id=begun.id, error="Parse error at line 45")
    assert (failed.id, failed.status, failed.error, failed.task) == (begun.id, "failed", "Parse error at line 45", "T-1")
    with pytest.raises(Conflict):
        _record(store, operator, "parser", "completed", execution_id=begun.id)
    assert len(_list(store, operator)) == 1


@pytest.mark.requirement("003-E1")
@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_run_ends_when_its_end_is_recorded(store: Store, operator: AccessGuard, status: str) -> None:
    """However it ended, it has an end and a duration; a time that is given counts instead."""
    begun = _record(store, operator, "a", "started", started_at="2024-03-12T10:00:00Z")
    ended = _record(store, operator, "a", status, execution_id=begun.id)
    assert ended.completed_at is not None
    assert (ended.duration_seconds or 0) > 365 * 86_400

    assert _record(store, operator, "a", status).completed_at is not None
    told = _record(
        store, operator, "a", status, started_at="2024-03-12T10:00:00Z", completed_at="2024-03-12T10:00:05Z", error="x"
    )
    assert (told.completed_at, told.duration_seconds) == ("2024-03-12T10:00:05.000000Z", 5.0)


def test_a_failure_that_is_recorded_later_has_the_end_that_is_given(store: Store, operator: AccessGuard) -> None:
    """With a start and no end, nobody knows when it failed."""
    failed = _record(store, operator, "a", "failed", started_at="2024-03-12T10:00:00Z", error="found later")

    assert (failed.completed_at, failed.duration_seconds) == (None, None)


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_the_id_of_no_run_ends_nothing(store: Store, operator: AccessGuard, status: str) -> None:
    """A mistyped id is not found and makes no new run, unless a start is given with the end."""
    begun = _record(store, operator, "a", "started")

    with pytest.raises(NotFound, match="no execution 'nope' has started"):
        _record(store, operator, "a", status, execution_id="nope")

    assert _list(store, operator) == [begun]
    whole = _record(store, operator, "a", status, execution_id="nope", started_at="2024-03-12T10:00:00Z")
    assert (whole.id, whole.status) == ("nope", status)


@pytest.mark.requirement("003-E2")
def test_runs_are_entries_of_the_history(store: Store, operator: AccessGuard) -> None:
    """A run is an entry that the history tools show too, in the session that was named."""
    from ctxmgr.history.query import requests

    _record(store, operator, "parser", "completed", session="workflow-7")

    rows = requests.list_(store, ListRequest(session="workflow-7")).rows
    assert [(row.agent, getattr(row, "action", None), getattr(row, "status", None)) for row in rows] == [
        ("parser", "execution", "ok")
    ]


@pytest.mark.requirement("003-E3")
def test_runs_are_found_by_agent_task_sprint_and_status(store: Store, operator: AccessGuard) -> None:
    """Each filter narrows, the newest come first, and pages fit together."""
    for number in range(6):
        agent, status = ("a", "b")[number % 2], ("started", "completed", "failed")[number % 3]
        told = {"execution_id": f"e{number}", "task": f"t{number // 3}", "sprint": "s", "error": "x"}
        _record(store, operator, agent, "started", **told)
        if status != "started":
            _record(store, operator, agent, status, **told)

    def ids(**filters: Any) -> list[str]:
        return [run.id for run in _list(store, operator, **filters)]

    assert ids() == ["e5", "e4", "e3", "e2", "e1", "e0"]
    assert ids(agent="a") == ["e4", "e2", "e0"]
    assert ids(task="t1", status="completed") == ["e4"]
    assert ids(status="failed") == ["e5", "e2"]
    assert ids(sprint="other") == []
    assert ids(limit=2) + ids(offset=2, limit=4) == ids()


@pytest.mark.parametrize(
    "more",
    [
        {"started_at": "soon"}, {"completed_at": "2024-13-01"},
        {"started_at": "2024-03-12T10:00:00Z", "completed_at": "2024-03-12T09:00:00Z"},
    ],
)  # fmt: skip
def test_times_that_cant_be_are_refused(store: Store, operator: AccessGuard, more: dict[str, str]) -> None:
    """A time that is none, or a run that ends before it starts, records nothing."""
    with pytest.raises(InvalidInput):
        _record(store, operator, "a", "completed", **more)
    assert _list(store, operator) == []


def test_an_artifact_that_is_not_there_is_refused(store: Store, operator: AccessGuard) -> None:
    """Naming an artifact that does not exist records nothing."""
    with pytest.raises(NotFound):
        _record(store, operator, "a", "started", input_artifacts=["nobody/nothing"])
    assert _list(store, operator) == []


@pytest.mark.requirement("003-A5", "R-16")
def test_an_agent_finds_only_the_runs_it_may_read(store: Store, operator: AccessGuard, allow: Allow, asking: As) -> None:
    """Runs of others are not there, in counts neither, and ids of artifacts it may not read are left out."""
    secret = _artifact(store, 1, "cpa", "tax.yaml")
    _record(store, operator, "a", "completed", input_artifacts=[secret])
    _record(store, operator, "b", "completed")
    allow("a", "history", "self")
    guard = asking("a")

    with_rules = FilteredStore(store, "a", guard.rules)
    answer = list_executions(store, with_rules, guard, ListExecutionsRequest())
    assert [(run.agent, run.input_artifacts) for run in answer.executions] == [("a", [])]
    assert answer.page.total == 1


@pytest.mark.requirement("003-A5")
def test_recording_needs_the_right_to_write(store: Store, allow: Allow, asking: As) -> None:
    """An agent records its own runs where a rule lets it, and never those of others."""
    allow("a", "history", "self", "write")
    guard = asking("a")
    seen = FilteredStore(store, "a", guard.rules)

    done = record_execution(store, seen, guard, RecordExecutionRequest(agent="a", status="started"))
    assert done.agent == "a"
    with pytest.raises(Denied):
        record_execution(store, seen, guard, RecordExecutionRequest(agent="b", status="started"))


def test_where_a_run_stands_counts_nothing_hidden(store: Store, operator: AccessGuard, allow: Allow, asking: As) -> None:
    """The index that an agent is told of its new run is the one it sees, not one beyond runs that are hidden from it."""
    record_execution(store, store, operator, RecordExecutionRequest(agent="b", status="completed"))
    allow("a", "history", "self", "write")
    guard = asking("a")

    done = record_execution(
        store, FilteredStore(store, "a", guard.rules), guard, RecordExecutionRequest(agent="a", status="started")
    )

    assert done.index == 0


@pytest.mark.parametrize("agent", ["*", "self", "a\nb", "x" * 256])
def test_a_name_that_no_agent_can_have_is_refused(store: Store, operator: AccessGuard, agent: str) -> None:
    """Runs are recorded of agents that rules can speak of, and of no others."""
    with pytest.raises(InvalidInput):
        record_execution(store, store, operator, RecordExecutionRequest(agent=agent, status="started"))
