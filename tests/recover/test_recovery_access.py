"""What a recovery by the operator writes down tells no agent what it may not read."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from ctxmgr.config import Config
from ctxmgr.log.codec import Record
from ctxmgr.recover.service import Service
from ctxmgr.store import open_store
from ctxmgr.types.operations import AgentRequest, RecoverRequest
from ctxmgr.types.plain_records import build
from tests.builders import at
from tests.history.seen_world import ME, answers, rules, seen_of, written

_SECRET = "xyzzy"


def _call(number: int, agent: str, action: str, given: dict[str, str], output: str, status: str = "ok") -> list[Record]:
    return [
        build("entry", "s", at(number), id=f"e{number}", agent=agent, action=action, input=given),
        build("result", "s", at(number), entry=f"e{number}", status=status, output=output),
    ]


def _said(agent: str | None, text: str) -> list[Record]:
    kind = "user_message" if agent is None else "message"
    return [build("event", "s", at(5), id="said", type=kind, agent=agent, data={"text": text})]


_ERROR = "no such file: tokens.h"
_LOOP = [
    record for number in range(20, 26) for record in _call(number, ME, "Read", {"path": "tokens.h"}, _ERROR, status="error")
]
_MOVED = {"command": f"mv tokens.h {_SECRET}/tokens.h"}
STORIES: dict[str, list[Record]] = {
    "the task": _said(None, f"Please fix tokens.h, it is in {_SECRET}"),
    "what a person forbade": [*_said(None, f"Never read tokens.h, read {_SECRET}/tokens.h"), *_call(6, ME, "Bash", {}, "ok")],
    "a message": _said("hidden", f"tokens.h is in {_SECRET} now"),
    "a change": _call(5, "hidden", "Bash", _MOVED, f"{_SECRET}/tokens.h"),
    "what worked": _call(5, "hidden", "Read", {"path": "tokens.h"}, _SECRET),
}


@pytest.mark.cases(1)
@pytest.mark.requirement("R-16")
@pytest.mark.parametrize("case", sorted(STORIES))
def test_what_a_recovery_writes_down_is_seen_by_who_sees_what_it_rests_on(store_path: Path, case: str) -> None:
    """Neither its snapshot nor its notes nor the continuation tell the looping agent what others said and did."""
    written(store_path, [*STORIES[case], *_LOOP])
    with closing(open_store(str(store_path))) as whole:
        asked = RecoverRequest(session="s", to=ME, force=True)
        given = Service(whole, Config(), {}).answer_finding(whole.sessions.key("s") or 0, asked).continuation
        assert _SECRET in json.dumps(given.to_json())
    with seen_of(store_path, rules(("self", "write"))) as seen:
        assert _SECRET not in json.dumps(answers(seen))
        assert list(seen.sessions.records(None, ("note",)))
    with seen_of(store_path, rules(("*", "read"))) as seen:
        kinds = [record["kind"] for record in seen.sessions.records(None)]
        assert (kinds.count("snapshot"), kinds.count("continuation")) == (1, 1)


def test_an_agent_that_recovers_itself_sees_all_that_this_wrote_down(store_path: Path) -> None:
    """What rests on its own records and on those that it may read is its own to see."""
    written(store_path, [*STORIES["a message"], *_LOOP])
    with seen_of(store_path, rules(("self", "write"), ("hidden/*", "read"))) as seen:
        asked = RecoverRequest(session="s", to=ME, force=True)
        given = Service(seen, Config(), {}).answer_finding(seen.sessions.key("s") or 0, asked).continuation
        assert _SECRET in json.dumps(given.to_json())
        kinds = [record["kind"] for record in seen.sessions.records(None)]
        assert (kinds.count("snapshot"), kinds.count("continuation")) == (1, 1)


@pytest.mark.requirement("R-16")
def test_why_an_agent_asks_is_seen_by_who_may_read_it(store_path: Path) -> None:
    """The reason of a request stands in notes and a snapshot at another agent's entries, which does not see them."""
    written(
        store_path, [*_call(1, "hidden", "Read", {}, "ok"), *_call(6, ME, "Read", {}, "ok"), *_call(7, ME, "Edit", {}, "ok")]
    )
    with closing(open_store(str(store_path))) as whole:
        asked = AgentRequest(
            session="s", requester="hidden", type="INTROSPECT_AGENT_CONTEXT", reason=f"the key is {_SECRET}", goal="go on"
        )
        given = Service(whole, Config(), {}).answer_request(whole.sessions.key("s") or 0, asked).continuation
        assert given.notes
    with seen_of(store_path, rules(("self", "write"))) as seen:
        assert _SECRET not in json.dumps(answers(seen))
    with seen_of(store_path, rules(("self", "write"), ("hidden/*", "read"))) as seen:
        kinds = [record["kind"] for record in seen.sessions.records(None)]
        assert (kinds.count("snapshot"), kinds.count("continuation")) == (1, 1)
        assert any("Asked because" in str(record["content"]) for record in seen.sessions.records(None, ("note",)))
