"""User stories 7, 8 and 11 as they are lived: a workflow publishes, is stopped where it goes round, and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

import ctxmgr
from ctxmgr import ActionFinished, ActionStarted, BlackboardHistory, DegenerateLoopError, EventBus, RecoveryStuckHandler
from ctxmgr.types.operations import SessionsRequest
from ctxmgr.types.query import ListRequest, MessagesRequest, SearchRequest
from ctxmgr.workspace import Workspace


class NodeStreamDeltaEvent:
    """What an agent platform might publish: a class of its own, read by the name it has."""

    def __init__(self, text: str) -> None:
        self.agent, self.text = "coder", text

    def model_dump(self) -> dict[str, str]:
        return {"text": self.text}


class NodeThoughtDeltaEvent(NodeStreamDeltaEvent):
    pass


class ToolCallEvent(NodeStreamDeltaEvent):
    pass


@pytest.mark.requirement("US7-1", "US7-4", "FR-014", "FR-016")
def test_subscribed_while_the_workflow_runs(store_path: Path) -> None:
    """From its initialisation to the workflow's completion the history hears the bus, and not a moment longer."""
    bus = EventBus()
    board = BlackboardHistory(bus, store_path, session="run")
    bus.publish(NodeStreamDeltaEvent("hello"))
    board.end()
    bus.publish(NodeStreamDeltaEvent("anyone there?"))

    assert (board.published, board.lost) == (1, 0)
    with Workspace.open(str(store_path)) as workspace:
        [session] = workspace.sessions(SessionsRequest()).sessions
        assert (session.meta or {})["capture"] == {"published": 1, "captured": 1, "lost": 0}
        assert [row.id for row in workspace.list(ListRequest(kind="event")).rows]
        assert workspace.list(ListRequest(kind="event")).page.total == 1


@pytest.mark.requirement("US7-2", "FR-015")
def test_deltas_thoughts_and_tool_calls_are_captured(store_path: Path) -> None:
    """Stream deltas, thoughts and tool calls are paged by the message tool under the names they are stored by."""
    bus = EventBus()
    with BlackboardHistory(bus, store_path, session="run") as board:
        for kind in (NodeStreamDeltaEvent, NodeThoughtDeltaEvent, ToolCallEvent):
            bus.publish(kind(f"this is a {kind.__name__}"))
    with Workspace.open(str(store_path)) as workspace:
        rows = workspace.list(ListRequest(kind="event", session="run")).rows
        said = workspace.messages(MessagesRequest(session="run")).messages

    assert [(row.type, row.agent) for row in rows if row.kind == "event"] == [
        ("agent_message_chunk", "coder"), ("agent_thought_chunk", "coder"), ("tool_call", "coder"),
    ]  # fmt: skip
    assert [event.data for event in said][:2] == [
        {"text": "this is a NodeStreamDeltaEvent"}, {"text": "this is a NodeThoughtDeltaEvent"},
    ]  # fmt: skip
    assert board.lost == 0


@pytest.mark.requirement("US7-3", "SC-011", "R-21")
def test_fifty_types_of_events_can_be_queried(store_path: Path) -> None:
    """Events of fifty different types are all stored and each is found by its type and by its content."""
    bus = EventBus()
    with BlackboardHistory(bus, store_path, session="run") as board:
        for number in range(50):
            bus.publish({"type": f"Kind{number:02}Event", "data": {"text": f"needle-{number:02}"}})
    with Workspace.open(str(store_path)) as workspace:
        listed = workspace.list(ListRequest(kind="event", limit=100)).rows
        for number in range(50):
            (by_type,) = workspace.list(ListRequest(kind="event", event_type=[f"Kind{number:02}Event"])).rows
            (hit,) = workspace.search(SearchRequest(query=f"needle-{number:02}")).hits
            assert by_type.id == hit.row.id

    assert [row.type for row in listed if row.kind == "event"] == [f"Kind{number:02}Event" for number in range(50)]
    assert (board.captured, board.lost) == (50, 0)


@pytest.mark.requirement("US7-5")
def test_events_are_found_beside_actions(store_path: Path) -> None:
    """A search returns what was said beside what was done, in the order of the run."""
    bus = EventBus()
    with BlackboardHistory(bus, store_path, session="run") as board:
        bus.publish(NodeStreamDeltaEvent("I look at the parser"))
        with board.action("coder", "Read", input="parser.py") as step:
            step.output = "def parse(): ..."
        bus.publish(NodeThoughtDeltaEvent("the parser is fine"))
    with Workspace.open(str(store_path)) as workspace:
        hits = workspace.search(SearchRequest(query="parser", session="run")).hits

    assert sorted(hit.row.kind for hit in hits) == ["entry", "event", "event"]


@pytest.mark.requirement("US8-1", "US8-2", "FR-002", "FR-004", "AC-3-live")
def test_a_looping_workflow_is_stopped_and_goes_on(store_path: Path) -> None:
    """A workflow that publishes its actions is stopped in the third round; the handler's continuation names one agent."""
    bus = EventBus()
    with BlackboardHistory(bus, store_path, session="run") as board:
        rounds = 0

        def act(action: str, given: str, output: str) -> None:
            bus.publish(ActionStarted("call", action, given, agent="coder"))
            bus.publish(ActionFinished("call", output=output))

        act("Read", "task.md", "make the tests pass")
        given = None
        try:
            while rounds < 10:
                rounds += 1
                act("Edit", "parser.py", "done")
                act("Test", "tests", "1 failed")
        except DegenerateLoopError as loop:
            given = RecoveryStuckHandler().handle(loop, board)

    assert rounds == 3
    assert given is not None
    assert given.loop is not None
    assert (given.target, given.loop.period, given.loop.count) == ("coder", 2, 3)
    assert [branch for branch, body in given.to_json()["returnTo"].items() if body is not None] == ["coder"]


def test_the_public_names_are_there() -> None:
    """Every public name of the package can be had, and asking for another one is an AttributeError."""
    assert all(getattr(ctxmgr, name) is not None for name in ctxmgr.__all__)
    with pytest.raises(AttributeError):
        _ = getattr(ctxmgr, "NoSuch" + "Name")
