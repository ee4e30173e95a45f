"""One request in, one continuation out: which ways lead in, what is told of them, and what the log alone tells."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.errors import InvalidInput, NotFound, NotStuck
from ctxmgr.history.query import requests
from ctxmgr.recover import service
from ctxmgr.recover.routes import parse_table
from ctxmgr.store import Store, open_store
from ctxmgr.types.operations import RecoverRequest
from ctxmgr.types.query import ListNotesRequest, ShowSnapshotRequest
from ctxmgr.types.route import Continuation
from tests.builders import entry_id
from tests.cli.console import run
from tests.recover import runs
from tests.recover.model_answers import answered, answers
from tests.recover.runs import ask, call, chain, looped, workspace


def restored(record: dict[str, Any]) -> Continuation:
    """Return the continuation that a stored record holds."""
    fields = {name: value for name, value in record.items() if name not in ("v", "kind", "ts", "sum")}
    branches = cast("dict[str, Any]", fields.pop("returnTo"))
    target = fields["target"]
    plain = {"type": fields["requestType"], "reason": fields["reason"], "goal": fields["goal"]}
    asked = branches[target]["request"]
    context = {**fields.pop("context"), "prompt": branches[target]["context"]}
    context["facts"] = [{k: v for k, v in fact.items() if k != "hash"} for fact in context["facts"]]
    context["sections"] = [{k: v for k, v in each.items() if k != "hash"} for each in context["sections"]]
    empty: dict[str, Any] = {"loop": None, "stall": None, "snapshot": None}
    return Continuation.model_validate({
        **empty, **fields, "context": context, "candidates": list(branches), "request": None if asked == plain else asked,
    })  # fmt: skip


@pytest.fixture(params=["stuck", "asked", "model", "diff", "table"])
def given_(request: pytest.FixtureRequest, store: Store) -> Iterator[Continuation]:
    """Give one continuation of each kind."""
    store.append(looped() if request.param == "stuck" else chain())
    if request.param == "stuck":
        yield runs.recover(store)
    elif request.param == "model":
        yield answered(store, answers(facts=[{"text": "part 0 is done", "entries": [entry_id("chain", 0)]}]))
    elif request.param == "diff":
        ask(store)
        yield ask(store, diff=True)
    elif request.param == "table":
        table = parse_table({"planner": {"schema": {"properties": {"goal": {}}}}, "reviewer": {}}, Path(), "t")
        yield answered(store, None, table=table)
    else:
        yield ask(store)


@pytest.mark.requirement("AC-2", "AC-4", "US12-4")
def test_the_log_alone_tells_a_recovery(store: Store, given_: Continuation, tmp_path: Path) -> None:
    """The stored record gives the printed answer back exactly, with its notes and its snapshot, also in an exported log."""
    log = tmp_path / "exported.jsonl"
    store.close()
    for location in (store.location, _exported(store.location, log)):
        opened = open_store(location)
        record = opened.annotations.continuations(1)[-1]
        made = restored(record)
        kept = workspace(opened).list_notes(ListNotesRequest(session=made.session, tags=["recovery"])).notes
        assert made.snapshot is not None
        bundle = requests.show_snapshot(opened, ShowSnapshotRequest(session=made.session, snapshot_id=made.snapshot))
        opened.close()

        assert made.to_json() == given_.to_json()
        assert made.notes
        assert set(made.notes) <= {note.id for note in kept}
        assert bundle.intact
        assert bundle.snapshot.summary == made.context.summary


def _exported(location: str, log: Path) -> str:
    ran = run("export", "--all-sessions", "--store", location, "-o", str(log))
    assert ran.code == 0, ran.err
    return str(log)


@pytest.mark.requirement("FR-017")
def test_a_run_that_ends_in_failures_is_answered(store: Store) -> None:
    """A run that detection does not call healthy is answered too, though no loop was found in it (ruling 28)."""
    store.append(
        call("s", 1, "Bash", "./deploy.sh", error="bash: ./deploy.sh: cannot execute: required file not found")
        + call("s", 2, "Bash", "bash deploy.sh", error="deploy.sh: line 2: $'\\r': command not found")
        + call("s", 3, "Bash", "sh deploy.sh", error="deploy.sh: 2: set: Illegal option -")
    )

    made = runs.recover(store)

    assert made.reason == "no loop was found, but 3 failures in a row"
    assert made.loop is None
    assert made.stall is None
    assert made.context.prompt is not None
    assert "The latest calls failed" in made.context.prompt
    assert runs.recover(store).id == made.id


@pytest.mark.requirement("FR-017")
def test_no_other_way_in(store: Store) -> None:
    """Nothing is answered for a healthy run that nobody asked about, nor for a finding or a file that is not there."""
    store.append(chain())
    with pytest.raises(NotStuck):
        runs.recover(store)
    with pytest.raises(NotFound):
        runs.recover(store, finding="no-such-finding")
    with pytest.raises(InvalidInput):
        runs.recover(store, force=True, routes="gone.toml")

    assert store.annotations.continuations(1) == []


@pytest.mark.requirement("US9-1", "US9-4", "FR-017")
@pytest.mark.parametrize(
    ("requester", "review", "source"),
    [("coder", False, "agentRequest"), ("coder", True, "reviewMerge"), ("reviewer", True, "reviewMerge")],
)
def test_the_way_in_is_told(store: Store, requester: str, review: bool, source: str) -> None:
    """The answer says through which of the ways in it was asked for; the agent that asks gets it."""
    store.append(chain())
    found = ask(store, requester=requester, review=review)

    assert (found.source, found.target, found.attempts) == (source, requester, 1)


@pytest.mark.parametrize(("less", "left"), [(0, False), (1, True)])
def test_a_long_log_is_indexed_before_it_is_searched_a_dozen_times(
    store: Store, monkeypatch: pytest.MonkeyPatch, less: int, left: bool
) -> None:
    """From so many records on that no search has an index of, a recovery makes it; a short log is read."""
    store.append(looped())
    monkeypatch.setattr(service, "_UNINDEXED", store.count_unindexed() + less)
    opened = workspace(store)
    assert opened.recover(RecoverRequest(plan=True)).continuation.loop is not None
    assert (opened.store.count_unindexed() > 0) is left
