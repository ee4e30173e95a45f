"""The field names of the tool contracts are taken as aliases of ours, by every request that has such a field."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ctxmgr.history.query.requests import list_, search, trace
from ctxmgr.history.query.tools import PlainRequest
from ctxmgr.store import Store, open_store
from ctxmgr.types import query
from ctxmgr.types.query import (
    AddNoteRequest,
    CreateSnapshotRequest,
    ListRequest,
    MessagesRequest,
    Request,
    SearchRequest,
    ShowRequest,
    TraceRequest,
)
from tests.builders import at, write


@pytest.mark.requirement("C-names", "C-trace", "C-list")
@pytest.mark.parametrize(
    ("contract", "ours"),
    [
        ({"actionNameFilter": "Bash", "agentNameFilter": "coder"}, {"action": ["Bash"], "agent": ["coder"]}),
        ({"action_name_filter": "Bash"}, {"action": ["Bash"]}),
        ({"actionNameFilter": ["Bash", "Read"]}, {"action": ["Bash", "Read"]}),
        ({"actionNameFilter": None, "startTime": None}, {}),
        (
            {"startTime": at(0), "endTime": at(9), "offset": 2, "limit": 3},
            {"since": at(0), "until": at(9), "offset": 2, "limit": 3},
        ),
        ({"start_time": at(0)}, {"since": at(0)}),
    ],
)
def test_the_filters_of_the_contracts_are_ours(contract: dict[str, Any], ours: dict[str, Any]) -> None:
    """A request in the contract's names is the one in ours, whichever request of filters it is."""
    for request in (TraceRequest, ListRequest):
        assert request.model_validate(contract) == request.model_validate(ours)


@pytest.mark.requirement("C-names", "C-search", "C-show", "C-note", "C-snapshot")
def test_the_other_requests_of_the_contracts_are_ours() -> None:
    """The contracts' requests for search, an item, a note and a snapshot are taken word for word."""
    assert SearchRequest.model_validate({"query": "x", "maxResults": 5}).max_results == 5
    assert ShowRequest.model_validate({"index": 4}).index == 4
    assert ShowRequest.model_validate({"entryId": "e"}).entry_id == "e"
    note = AddNoteRequest.model_validate({"entryIndices": [3, 4], "content": "c", "tags": ["t"]})
    assert (note.entry_indices, note.tags) == ([3, 4], ["t"])
    mixed = AddNoteRequest.model_validate({"entries": [3, "abc"], "content": "c"})
    assert (mixed.entry_indices, mixed.entry_ids) == ([3], ["abc"])
    bundle = CreateSnapshotRequest.model_validate({"entries": [1], "summary": "s", "reasoning": "r"})
    assert (bundle.entry_indices, bundle.entry_ids) == ([1], [])


@pytest.mark.requirement("C-names")
@pytest.mark.parametrize(
    "given",
    [
        {"actionNameFilter": "a", "action": ["b"]},
        {"startTime": at(0), "since": at(0)},
        {"actionNameFilter": 7},
        {"entries": [1]},
        {"nosuch": 1},
    ],
)
def test_what_no_contract_names_is_refused(given: dict[str, Any]) -> None:
    """A field given twice, one of a wrong type, and one that the request does not have are refused."""
    with pytest.raises(ValidationError):
        TraceRequest.model_validate(given)


@pytest.mark.requirement("C-names", "C-list", "C-search")
def test_answers_have_the_entries_of_the_contracts() -> None:
    """A list and a search give their entries under the contract's name too, without events."""
    store: Store = open_store(":memory:", create=True)
    write(store, "s", ["> word", "Bash:word", "Read:word"])

    assert [entry.index for entry in list_(store, ListRequest(kind="all")).entries] == [0, 1]
    assert [entry.index for entry in search(store, SearchRequest(query="word")).entries] == [0, 1]
    assert [entry.index for entry in trace(store, TraceRequest.model_validate({"actionNameFilter": "Read"})).entries] == [1]
    store.close()


@pytest.mark.parametrize(
    "request_", [TraceRequest, ListRequest, SearchRequest, ShowRequest, MessagesRequest, AddNoteRequest, CreateSnapshotRequest]
)
def test_a_request_that_is_not_checked_leaves_out_the_same(request_: type[Request]) -> None:
    """What is not given to a plain request is as in the checked one, where it has a default; no list is an empty one."""
    plain = {name: value for name, value in vars(PlainRequest).items() if name in request_.model_fields}
    defaults = {name: request_.model_fields[name].new_default() for name in plain}

    assert {name: value or None for name, value in plain.items()} == {name: value or None for name, value in defaults.items()}


def test_a_plain_request_has_the_fields_of_the_checked_ones() -> None:
    """Any of their names is taken, and no other one, so a misspelled field is no field that narrows nothing."""
    models = [each for each in vars(query).values() if isinstance(each, type) and issubclass(each, Request)]
    names = {name for model in models for name in model.model_fields} - {"snapshot_id"}

    assert vars(PlainRequest(**dict.fromkeys(names))).keys() == names
    with pytest.raises(TypeError, match="no request has the field agnet"):
        PlainRequest(kind="entry", agnet="coder")
