"""The routing table: how it is read, what it allows, and that a continuation says where its routes come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.config import Config, load_config
from ctxmgr.errors import InvalidInput, RecoveryRefused
from ctxmgr.recover.routes import derive_table, parse_table, read_table
from ctxmgr.store import Store
from ctxmgr.types.operations import AgentRequest, RecoverRequest
from ctxmgr.types.route import CONTEXT_MANAGER, Continuation
from ctxmgr.workspace import Workspace
from tests.recover.runs import call, chain

FLOW = ("planner", "coder", "reviewer", "coder", "reviewer", "deployer", "coder", "reviewer")
TABLE: dict[str, Any] = {
    "planner": {},
    "coder": {"request": "CodeRequest", "next": ["reviewer"]},
    "reviewer": {"role": "review", "next": ["coder", "deployer"]},
    "deployer": {"schema": {"type": "object"}},
}


def proceed(store: Store, table: dict[str, Any] | None, requester: str = "reviewer", **request: Any) -> Continuation:
    """Return the continuation for a PROCEED under a configured table."""
    asked: dict[str, Any] = {"type": "PROCEED", "requester": requester, "reason": "done", "goal": "carry on", **request}
    return Workspace(store, Config(routes=table)).request(AgentRequest(**asked)).continuation


def stuck(store: Store, table: dict[str, Any] | None, **request: Any) -> Continuation:
    """Return the stuck handler's continuation under a configured table."""
    return Workspace(store, Config(routes=table)).recover(RecoverRequest(**request)).continuation


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_file_is_read(tmp_path: Path, suffix: str) -> None:
    """A table in TOML or in JSON gives the same routes, and its schemas are found beside it."""
    (tmp_path / "code.json").write_text('{"type": "object", "required": ["goal"]}', encoding="utf-8")
    path = tmp_path / f"routes{suffix}"
    toml = '[coder]\nrequest = "CodeRequest"\nschema = "code.json"\nnext = ["reviewer"]\n[reviewer]\nrole = "review"\n'
    fields = {
        "coder": {"request": "CodeRequest", "schema": "code.json", "next": ["reviewer"]},
        "reviewer": {"role": "review"},
    }
    path.write_text(toml if suffix == ".toml" else json.dumps(fields), encoding="utf-8")
    table = read_table(path)

    assert table.routing == "table"
    coder, reviewer = table.route("coder"), table.route("reviewer")
    assert (coder.request, coder.schema) == ("CodeRequest", {"type": "object", "required": ["goal"]})
    assert (coder.role, reviewer.role) == ("ordinary", "review")
    assert (table.followers("coder"), table.followers("reviewer")) == (["reviewer"], ["coder"])


@pytest.mark.parametrize("text", ['[recover]\nroutes = "routes.toml"\n', "[recover.routes.coder]\n[recover.routes.reviewer]\n"])
def test_a_configuration_names_or_holds_the_table(store: Store, tmp_path: Path, text: str) -> None:
    """The table is part of the configuration, or a file that it names relative to itself; ``--routes`` comes before both."""
    store.append(chain())
    (tmp_path / "routes.toml").write_text("[coder]\n[reviewer]\n", encoding="utf-8")
    (tmp_path / "other.toml").write_text("[coder]\n[planner]\n", encoding="utf-8")
    (tmp_path / "ctxmgr.toml").write_text(text, encoding="utf-8")
    workspace = Workspace(store, load_config(tmp_path))
    asked = AgentRequest(type="INTROSPECT_AGENT_CONTEXT", requester="coder", reason="lost", goal="go on")
    other = asked.model_copy(update={"routes": str(tmp_path / "other.toml")})

    assert workspace.request(asked).continuation.candidates == ["coder", "reviewer"]
    assert workspace.request(other).continuation.candidates == ["coder", "planner"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "no agents"),
        ([], "no agents"),
        ({"coder": 5}, "must be a table"),
        ({"coder": {"follow": []}}, "unknown setting 'follow'"),
        ({"coder": {"request": 7}}, "request must be the name"),
        ({"coder": {"role": "boss"}}, "unknown role 'boss'"),
        ({"coder": {"role": []}}, "unknown role"),
        ({"coder": {"next": "reviewer"}}, "next must be a list"),
        ({"coder": {"next": [1]}}, "next must be a list"),
        ({"coder": {"next": ["ghost"]}}, "'ghost', which is not in the table"),
        ({"coder": {"next": [CONTEXT_MANAGER]}}, "not in the table"),
        ({CONTEXT_MANAGER: {}}, "can't be routed to"),
        ({" Context-Manager ": {}}, "can't be routed to"),
        ({"  ": {}}, "can't be routed to"),
        ({"coder": {"schema": 3}}, "schema must be a JSON Schema"),
        ({"coder": {"schema": {"type": "nonsense"}}}, "no JSON Schema"),
        ({"coder": {"schema": {"properties": {"goal": {"pattern": "("}}}}}, "no JSON Schema"),
        ({"coder": {"schema": {"$schema": ["x"]}}}, "no JSON Schema"),
        ({"coder": {"schema": {"$schema": 7}}}, "no JSON Schema"),
        ({"coder": {"schema": "gone.json"}}, "gone.json"),
        ({"coder": {"schema": "bad\0name"}}, "schema"),
    ],
)
@pytest.mark.requirement("FR-017")
def test_what_is_wrong_is_named(tmp_path: Path, table: Any, said: str) -> None:
    """Every mistake in a table is refused with the place, what is wrong, and a way out."""
    with pytest.raises(InvalidInput) as caught:
        parse_table(table, tmp_path, "ctxmgr.toml: recover.routes")

    assert said in caught.value.message
    assert caught.value.message.startswith("ctxmgr.toml: recover.routes")
    assert caught.value.hint


def test_a_schema_without_end_is_refused(tmp_path: Path) -> None:
    """A schema that is nested deeper than can be checked is a mistake in the table, not a crash."""
    schema: dict[str, Any] = {}
    for _ in range(600):
        schema = {"not": schema}
    with pytest.raises(InvalidInput):
        parse_table({"coder": {"schema": schema}}, tmp_path, "t")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gone.toml", None),
        ("broken.toml", "[coder"),
        ("broken.json", '{"coder": '),
        ("list.json", "[1]"),
        ("deep.json", "[" * 100_000),
        ("bytes.toml", b"\xff\xfe"),
        ("large.toml", b"#" * 4_000_001),
        ("nul\0.toml", None),
    ],
)
def test_a_file_that_is_no_table(tmp_path: Path, name: str, text: str | bytes | None) -> None:
    """A file that is gone, broken, no table, too large or no file name is refused by its name."""
    path = tmp_path / name
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InvalidInput) as caught:
        read_table(path)

    assert str(path) in caught.value.message


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    """A folder in place of a file is refused as well."""
    with pytest.raises(InvalidInput):
        read_table(tmp_path)


@pytest.mark.requirement("FR-018", "US10-6", "SC-012")
def test_proceeding_goes_to_declared_followers_alone(store: Store) -> None:
    """Under a table the branches of a PROCEED are the declared followers, and naming another is refused."""
    store.append(chain(agents=FLOW))
    found = proceed(store, TABLE, "coder")

    assert (found.routing, found.candidates, found.target) == ("table", ["reviewer"], "reviewer")
    with pytest.raises(InvalidInput, match="routing table does not let"):
        proceed(store, TABLE, "coder", to="deployer")


def test_an_agent_without_followers_in_the_table(store: Store) -> None:
    """Without ``next`` all of the table may follow; with an empty one nobody does, and that is said."""
    store.append(chain(agents=FLOW))
    assert proceed(store, TABLE, "planner").candidates == ["coder", "reviewer", "deployer"]
    with pytest.raises(InvalidInput) as caught:
        proceed(store, {**TABLE, "coder": {"next": []}}, "coder")

    assert "--to" in str(caught.value.hint)


def test_a_follower_of_its_own_is_none(store: Store) -> None:
    """An agent that a table lets follow itself is still not sent its own PROCEED."""
    store.append(chain(agents=FLOW))

    assert proceed(store, {**TABLE, "coder": {"next": ["coder", "reviewer"]}}, "coder").candidates == ["reviewer"]


@pytest.mark.requirement("US9-4", "FR-018")
def test_introspection_goes_back_whatever_the_table(store: Store) -> None:
    """Who may follow whom does not matter to an agent that asks for itself."""
    store.append(chain(agents=FLOW))
    asked = AgentRequest(type="INTROSPECT_AGENT_CONTEXT", requester="coder", reason="lost", goal="go on")
    found = Workspace(store, Config(routes=TABLE)).request(asked).continuation

    assert (found.target, found.routing) == ("coder", "table")
    assert found.candidates == list(TABLE)


@pytest.mark.parametrize("type_", ["PROCEED", "INTROSPECT_AGENT_CONTEXT"])
def test_a_requester_that_the_table_does_not_know(store: Store, type_: str) -> None:
    """An agent that is not in the table can't ask under it, and is told so."""
    store.append(chain(agents=FLOW))
    with pytest.raises(InvalidInput, match="not in the routing table"):
        proceed(store, TABLE, "stranger", type=type_)


@pytest.mark.requirement("US8-5", "SC-012")
def test_a_stuck_agent_that_the_table_does_not_know(store: Store) -> None:
    """A stuck agent outside the table is not continued: another one of the table is, or nobody."""
    store.append(chain("s", ("planner",)))
    store.append([record for n in range(1, 5) for record in call("s", n, "Bash", {"command": "make"}, error="no rule")])
    found = stuck(store, {"planner": {}, "tester": {}}, plan=True)

    assert found.loop is not None
    assert (found.target, found.candidates) == ("planner", ["planner", "tester"])
    with pytest.raises(RecoveryRefused):
        stuck(store, {"tester": {}, "deployer": {}})


@pytest.mark.requirement("FR-018", "US10-7")
def test_return_to_is_narrowed_by_the_table(store: Store) -> None:
    """Of the agents that a request allows, those remain that the table lets follow; none left is refused."""
    store.append(chain(agents=FLOW))
    assert proceed(store, TABLE, "reviewer", return_to=["planner", "deployer", "stranger"]).candidates == ["deployer"]
    with pytest.raises(InvalidInput):
        proceed(store, TABLE, "reviewer", return_to=["planner"])
    with pytest.raises(RecoveryRefused):
        proceed(store, TABLE, "coder", type="INTROSPECT_AGENT_CONTEXT", return_to=["planner"])


@pytest.mark.requirement("US10-4", "US10-6", "FR-020")
@pytest.mark.parametrize("routing", ["table", "history"])
def test_a_review_is_never_sent_straight_back(store: Store, routing: str) -> None:
    """A review's PROCEED skips the agent whose work was reviewed, though it is the one that usually acts next."""
    store.append(chain(agents=FLOW))
    table = {**TABLE, "reviewer": {"role": "review"}} if routing == "table" else None
    found = proceed(store, table)

    assert (found.source, found.routing) == ("reviewMerge", routing)
    assert "coder" not in found.candidates
    assert found.target == "deployer"


@pytest.mark.requirement("US10-6")
@pytest.mark.parametrize("named", [{"to": "coder"}, {"return_to": ["coder"]}, {}])
def test_whose_work_was_reviewed_may_be_named(store: Store, named: dict[str, Any]) -> None:
    """The agent whose work was reviewed continues where it was named: as the target, by the request, or by the table."""
    store.append(chain(agents=FLOW))

    table = None if named else {**TABLE, "reviewer": {"role": "review", "next": ["coder"]}}

    assert proceed(store, table, **named).target == "coder"


def test_a_role_makes_a_review(store: Store) -> None:
    """Who reviews is said by the table, by the name where there is no table, or by the request; nobody else does."""
    store.append(chain(agents=("planner", "checker", "reviewer", "code_merger", "coder", "previewer", "emergency")))
    renamed = {"planner": {}, "checker": {"role": "merge"}, "reviewer": {}, "coder": {}}

    def source(table: dict[str, Any] | None, requester: str) -> str:
        return proceed(store, table, requester, to="planner").source

    assert [source(renamed, name) for name in ("checker", "reviewer")] == ["reviewMerge", "agentRequest"]
    assert [source(None, name) for name in ("reviewer", "code_merger")] == ["reviewMerge", "reviewMerge"]
    assert {source(None, name) for name in ("checker", "previewer", "emergency")} == {"agentRequest"}
    assert proceed(store, None, "checker", to="planner", review=True).source == "reviewMerge"


def test_a_table_read_off_the_history_knows_the_agents() -> None:
    """A derived table lets everybody follow everybody else, knows roles by name alone, and says that it is derived."""
    table = derive_table(["coder", "PRReviewer", "Merge-Bot"])

    assert (table.routing, table.followers("coder")) == ("history", ["PRReviewer", "Merge-Bot"])
    assert [table.route(name).role for name in ("coder", "PRReviewer", "Merge-Bot", "reviewer-2")] == [
        "ordinary",
        "review",
        "merge",
        "review",
    ]


@pytest.mark.requirement("FR-019", "SC-007")
def test_the_context_manager_joins_no_derived_table(store: Store) -> None:
    """A context manager that has acted in the history is no branch of any answer."""
    store.append(chain(agents=(*FLOW, CONTEXT_MANAGER, "Context-Manager")))
    found = proceed(store, None)

    assert not {name.casefold() for name in found.candidates} & {CONTEXT_MANAGER}
