"""User story 11: a run that stands still is diagnosed, and resumed by one continuation."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.cli.exits import Exit
from ctxmgr.errors import HungError, NotStuck
from ctxmgr.store import Store, open_store
from ctxmgr.types.finding import Finding
from ctxmgr.types.operations import DetectRequest
from tests.builders import at, entry_id
from tests.frontends import run_json
from tests.recover.runs import call, hung, recover, went_on, workspace


@pytest.mark.requirement("US11-2", "FR-003")
def test_the_point_is_identified(store: Store) -> None:
    """The stall names the call at which progress stopped and the last one before it that brought something."""
    store.append(hung())
    found = recover(store)

    assert found.stall is not None
    assert (found.stall.start, found.stall.last_progress) == (entry_id("hung", 2), entry_id("hung", 1))
    assert found.stall.members == [entry_id("hung", 2)]
    assert found.loop is None


@pytest.mark.requirement("US11-2")
@pytest.mark.parametrize(("now", "hangs"), [(at(100), False), (at(900), True)])
def test_a_stall_has_to_last(store: Store, now: str, hangs: bool) -> None:
    """A call within its limit is no stall, whose recovery is refused; beyond it the error carries the finding."""
    store.append(hung())
    if hangs:
        with pytest.raises(HungError) as caught:
            workspace(store).require_progress(DetectRequest(now=now))
        assert isinstance(caught.value.finding, Finding)
        assert recover(store, now=now).stall is not None
    else:
        workspace(store).require_progress(DetectRequest(now=now))
        with pytest.raises(NotStuck):
            recover(store, now=now)


@pytest.mark.requirement("US11-3", "SC-006")
def test_the_diagnosis(store: Store) -> None:
    """The context holds the last successful action, the open call, what was said, and what is not known."""
    store.append(hung())
    found = recover(store)

    assert "The last step that worked is @1" in found.context.summary
    assert "npm run dev" in found.context.summary
    assert "Whether the open call took effect is not recorded." in found.context.summary
    assert "I will start the server now." in found.context.prompt
    assert found.goal == "Start the server and check /health"


@pytest.mark.requirement("US11-3")
def test_state_before_a_silence(store: Store) -> None:
    """A silence with nothing in flight is told from its last action, with how it ended."""
    store.append(
        [*call("s", 0, "Edit", {"file_path": "a.py"}, "ok"), *call("s", 1, "Bash", {"command": "make"}, error="no rule")]
    )
    found = recover(store, now=at(3_600))

    assert found.stall is not None
    assert 'since @1, Bash "make" by coder, which ended error' in found.context.summary
    assert "The last step that worked is @0" in found.context.summary


@pytest.mark.requirement("US11-4", "FR-018", "SC-012")
def test_one_request_resumes(store_path: Path) -> None:
    """The command answers a stall with one continuation, marked as the stuck handler's."""
    store = open_store(str(store_path), create=True)
    store.append(hung())
    store.close()
    assert run_json(["detect", "--store", str(store_path), "--json"])[0] == Exit.HUNG
    code, envelope = run_json(["recover", "--store", str(store_path), "--json"])
    continuation = envelope["data"]["continuation"]

    assert code == Exit.OK
    assert continuation["source"] == "stuckHandler"
    assert [name for name, branch in continuation["returnTo"].items() if branch] == ["coder"]
    assert continuation["loop"] is None
    assert continuation["stall"]["kind"] == "hung"


@pytest.mark.requirement("US11-4", "R-11")
def test_a_stall_has_a_cap_too(store_path: Path) -> None:
    """A stall that two continuations did not end needs a person."""
    store = open_store(str(store_path), create=True)
    store.append(hung())
    codes: list[int] = []
    for _ in range(3):
        codes.append(run_json(["recover", "--store", str(store_path), "--json"])[0])
        went_on(store)
    store.close()

    assert codes == [Exit.OK, Exit.OK, Exit.NEEDS_HUMAN]


def test_several_open_calls(store: Store) -> None:
    """Of calls that were issued together and never returned each is named."""
    store.append(call("s", 0, "Read", {"path": "a"}, "text"))
    for number in (1, 2):
        store.append(call("s", number, "Bash", {"command": f"sleep {number}"}, open_=True, step="r1"))
    found = recover(store)

    assert [step.input for step in found.do_not_repeat] == [{"command": "sleep 1"}, {"command": "sleep 2"}]
    assert "Whether the 2 open calls took effect is not recorded." in found.context.summary
