"""The request that the target is sent: what it is made of, and that it is valid against its schema or not sent at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ctxmgr.config import Config
from ctxmgr.errors import InvalidInput
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.routes import Route, check_schema
from ctxmgr.recover.target import build_target_request
from ctxmgr.store import Store, open_store
from ctxmgr.types.operations import AgentRequest
from ctxmgr.types.route import ContextRequest
from ctxmgr.workspace import Workspace
from tests.recover.runs import call, chain

STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "goal": {"type": "string"},
        "context": {"type": "string"},
        "kind": {"const": "code"},
        "retries": {"type": "integer", "default": 2},
        "branch": {"type": "string"},
    },
    "required": ["goal", "context", "kind", "retries"],
    "additionalProperties": False,
}


def answered(store: Store, fields: Mapping[str, Any], **request: Any) -> Any:
    """Return the request that the coder gets, as the continuation holds it, for its own question."""
    asked: dict[str, Any] = {
        "type": "INTROSPECT_AGENT_CONTEXT",
        "requester": "coder",
        "reason": "lost",
        "goal": "go on",
        **request,
    }
    workspace = Workspace(store, Config(routes={"coder": dict(fields)}))
    branches = workspace.request(AgentRequest(**asked)).continuation.to_json()["returnTo"]
    return branches["coder"]["request"]


def made(store: Store, schema: Mapping[str, Any] | None, **fields: Any) -> dict[str, Any] | None:
    """Return the request that is made for the coder with a schema, in a session without earlier requests."""
    asked = ContextRequest(
        session="chain", type="PROCEED", requester="planner", reason="r", source="agentRequest", goal="g", **fields
    )
    route = Route("coder", schema=None if schema is None else check_schema(schema, "t"))
    return build_target_request(HistoryReader(store, "chain"), route, asked, "the context", "the summary")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Open one healthy session for tests that write nothing."""
    opened = open_store(str(tmp_path_factory.mktemp("known") / "history.db"), create=True)
    opened.append(chain())
    yield opened
    opened.close()


@pytest.mark.requirement("US9-4", "AC-4")
def test_a_request_is_filled_in(store: Store) -> None:
    """Without a draft and an earlier request: goal and context, constants, defaults, and nothing that is not allowed."""
    store.append(chain())
    found = answered(store, {"schema": STRICT})

    assert Draft202012Validator(STRICT).is_valid(found)
    assert (found["goal"], found["kind"], found["retries"]) == ("go on", "code", 2)
    assert "go on" in found["context"]
    assert set(found) == {"goal", "context", "kind", "retries"}


@pytest.mark.requirement("US9-4", "AC-4")
def test_an_earlier_request_is_taken_up(store: Store) -> None:
    """The newest earlier request of the type stands but for its context; another type's and an invalid one do not."""
    store.append(chain())
    given_ = {"goal": "write the parser", "context": "old", "kind": "code", "retries": 5, "branch": "b1"}
    store.append(call("chain", 5, "code", given_, "ok", inputType="CodeRequest"))
    store.append(call("chain", 6, "code", {**given_, "retries": "many"}, "ok", inputType="CodeRequest"))
    store.append(call("chain", 7, "code", {**given_, "branch": "b2"}, "ok", inputType="OtherRequest"))
    found = answered(store, {"request": "CodeRequest", "schema": STRICT})

    assert {name: value for name, value in found.items() if name != "context"} == {
        name: value for name, value in given_.items() if name != "context"
    }
    assert found["context"] != "old"
    assert "go on" in found["context"]


def test_a_huge_earlier_request_is_not_taken_up(store: Store) -> None:
    """An earlier request of a size that fits no message is left where it is."""
    store.append(chain())
    store.append(call("chain", 5, "code", {"branch": "x" * 30_000}, "ok", inputType="CodeRequest"))

    assert "branch" not in answered(store, {"request": "CodeRequest", "schema": STRICT})


@pytest.mark.requirement("FR-020", "US10-7")
def test_a_draft_comes_first(store: Store) -> None:
    """What the requester has drafted stands before any earlier request; only what it lacks is filled in."""
    store.append(chain())
    earlier = {"goal": "old", "context": "old", "kind": "code", "retries": 5, "branch": "b1"}
    store.append(call("chain", 5, "code", earlier, "ok", inputType="CodeRequest"))
    drafts = {"coder": {"goal": "mine", "branch": "b9"}, "planner": {"goal": "not for the coder"}}
    found = answered(store, {"request": "CodeRequest", "schema": STRICT}, drafts=drafts)

    assert (found["goal"], found["branch"], found["retries"]) == ("mine", "b9", 2)


@pytest.mark.parametrize("draft", [{"branch": 7}, {"kind": "review"}, {"goal": None}])
def test_a_wrong_draft_is_refused_by_its_field(store: Store, draft: dict[str, Any]) -> None:
    """A draft that can't be made valid is refused with the name of the field and of the agent; nothing is recorded."""
    store.append(chain())
    with pytest.raises(InvalidInput) as caught:
        answered(store, {"schema": STRICT}, drafts={"coder": draft})

    assert next(iter(draft)) in caught.value.message
    assert "coder" in caught.value.message
    assert "--draft" in str(caught.value.hint)
    assert store.annotations.continuations(1) == []


@pytest.mark.parametrize("draft", [5, "text", [1], True])
def test_a_draft_is_an_object(store: Store, draft: Any) -> None:
    """A draft that is no object is refused, not silently left out."""
    store.append(chain())
    with pytest.raises(InvalidInput, match="must be a JSON object"):
        answered(store, {}, drafts={"coder": draft})


@pytest.mark.requirement("US9-4")
def test_nothing_is_invented(store: Store) -> None:
    """Where no form of request is known, and none was drafted, there is the plain request of type, reason and goal."""
    store.append(chain())

    assert answered(store, {}) == {"type": "INTROSPECT_AGENT_CONTEXT", "reason": "lost", "goal": "go on"}
    assert made(store, None) is None


def test_a_required_field_of_which_nothing_is_known(store: Store) -> None:
    """A field that only the requester can know is asked for by its name, not made up."""
    store.append(chain())
    schema = {"type": "object", "properties": {"ticket": {"type": "string"}}, "required": ["ticket"]}
    with pytest.raises(InvalidInput, match="ticket"):
        answered(store, {"schema": schema})

    assert answered(store, {"schema": schema}, drafts={"coder": {"ticket": "T-1"}})["ticket"] == "T-1"


def test_a_summary_where_the_context_is_too_long(store: Store) -> None:
    """A schema that takes a short context alone gets the summary."""
    store.append(chain())
    schema = {"type": "object", "properties": {"context": {"type": "string", "maxLength": 12}}, "required": ["context"]}

    assert made(store, {**schema, "properties": {"context": {"type": "string", "maxLength": 11}}}) == {"context": "the context"}
    with pytest.raises(InvalidInput, match="context"):
        made(store, {**schema, "properties": {"context": {"type": "string", "maxLength": 3}}})


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ({"type": "integer"}, None),
        ({"enum": ["a"]}, None),
        ({"$ref": "#/$defs/text"}, "chain"),
        ({"type": ["string", "null"]}, "chain"),
    ],
)
def test_a_field_that_takes_something_else(store: Store, rule: dict[str, Any], value: str | None) -> None:
    """A field with a known name but of another kind is left alone where the schema does not demand it."""
    store.append(chain())
    found = made(store, {"properties": {"sessionId": rule}, "$defs": {"text": {"type": "string"}}})

    assert found == ({} if value is None else {"sessionId": value})


def test_fields_by_pattern_stay(store: Store) -> None:
    """Fields of a draft that a pattern of the schema allows are not taken for strangers."""
    store.append(chain())
    schema = {"patternProperties": {"^x-": {"type": "string"}}, "additionalProperties": False}

    assert made(store, schema, drafts={"coder": {"x-trace": "1"}}) == {"x-trace": "1"}


@pytest.mark.parametrize(
    "where", ["http://127.0.0.1:1/schema.json", "https://example.com/s", "file:///etc/passwd", "other.json"]
)
def test_no_document_is_fetched(store: Store, tmp_path: Path, where: str) -> None:
    """A reference to another document is an error of the schema; the network and the disk are left alone."""
    store.append(chain())
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InvalidInput, match="can't be applied"):
        made(store, {"properties": {"goal": {"$ref": where}}})


def test_a_reference_in_a_circle(store: Store) -> None:
    """A schema that refers to itself without end is refused, not followed."""
    store.append(chain())
    with pytest.raises(InvalidInput, match="can't be applied"):
        made(store, {"properties": {"goal": {"$ref": "#/properties/goal"}}})


NAMES = ("goal", "context", "reason", "session", "from", "branch", "size")
RULES = st.one_of(
    st.sampled_from(["string", "integer", "object", "boolean"]).map(lambda kind: {"type": kind}),
    st.integers(0, 30).map(lambda most: {"type": "string", "maxLength": most}),
    st.sampled_from([{"const": 3}, {"enum": ["a", None]}, {"default": "d"}, {"type": "string", "default": 4}, {}, True, False]),
)
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(NAMES), RULES, max_size=4)},
    optional={
        "required": st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
        "additionalProperties": st.booleans(),
        "minProperties": st.integers(0, 3),
    },
)
VALUES = st.one_of(st.text(max_size=5), st.integers(), st.none(), st.booleans(), st.just({"a": 1}))


@pytest.mark.requirement("US10-7", "AC-4", "FR-018")
@settings(max_examples=40)
@given(schema=SCHEMAS, draft=st.none() | st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4))
def test_it_is_valid_or_refused(known: Store, schema: dict[str, Any], draft: dict[str, Any] | None) -> None:
    """Whatever the schema and the draft: the request is valid against the schema, or refused by the name of a field."""
    drafts = {} if draft is None else {"coder": draft}
    try:
        found = made(known, schema, drafts=drafts)
    except InvalidInput:
        with pytest.raises(InvalidInput, match="no request that coder takes"):
            made(known, schema, drafts=drafts)
        return
    assert found is not None
    assert Draft202012Validator(schema).is_valid(found)
    kept = {name: value for name, value in (draft or {}).items() if name in found and name != "context"}
    assert kept == {name: found[name] for name in kept}
