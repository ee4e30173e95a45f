"""Messages: what was said at an entry and on the way to it, page by page."""

from __future__ import annotations

import pytest

from ctxmgr.store import Store
from ctxmgr.types.plain_records import MESSAGE_TYPES
from ctxmgr.types.query import ListRequest, MessagesRequest, ShowRequest
from tests.builders import entry, event, result, write
from tests.frontends import Ask


def _said(ask: Ask, index: int | None = None) -> list[str]:
    request = MessagesRequest(limit=100) if index is None else MessagesRequest(index=index, limit=100)
    return [message["data"] for message in ask(request)["messages"]]


@pytest.mark.requirement("FR-011")
def test_messages_of_an_entry_by_its_id(store: Store, ask: Ask) -> None:
    """The message events of one entry are paged by its id, in the order of the log; other entries' are left out."""
    store.append([
        entry("s", 0), entry("s", 1),
        *(event("s", number, "agent_message_chunk", f"m{number}", entry=f"s-e000{number % 2}") for number in range(10)),
    ])  # fmt: skip

    first = ask(MessagesRequest(entry_id="s-e0001", limit=3))
    second = ask(MessagesRequest(entry_id="s-e0001", limit=3, offset=first["page"]["nextOffset"]))

    assert [message["data"] for message in first["messages"] + second["messages"]] == ["m1", "m3", "m5", "m7", "m9"]
    assert (first["page"]["hasMore"], first["page"]["total"], second["page"]["hasMore"]) == (True, 5, False)
    assert ask(ShowRequest(index=1))["entry"]["events"] == 5


@pytest.mark.requirement("FR-011")
def test_what_was_said_on_the_way_to_an_entry_belongs_to_it(store: Store, ask: Ask) -> None:
    """Words without an entry belong to their agent's next entry, a person's to whoever acts next."""
    store.append([
        event("s", 0, "user_message", "please", agent="user"), event("s", 1, "thought", "hm", agent="coder"),
        entry("s", 0), result("s", 0),
        event("s", 2, "thought", "next", agent="coder"), event("s", 3, "thought", "elsewhere", agent="other"),
        event("s", 4, "message", "by nobody"), event("s", 5, "message", "tied", agent="coder", entry="s-e0000"),
        entry("s", 1), event("s", 6, "thought", "after", agent="coder"),
    ])  # fmt: skip

    assert _said(ask, 0) == ["please", "hm", "tied"]
    assert _said(ask, 1) == ["next", "by nobody"]
    assert _said(ask) == ["please", "hm", "next", "elsewhere", "by nobody", "tied", "after"]


@pytest.mark.requirement("FR-011", "EC-6")
def test_processes_do_not_cut_each_others_words(store: Store, ask: Ask) -> None:
    """The way to an entry goes back to its agent's previous entry in the same process, not in another one."""
    store.append([
        entry("s", 0, process="p"), event("s", 0, "thought", "of p", agent="coder"),
        entry("s", 1, process="q"), entry("s", 2, process="p"),
        event("s", 1, "thought", "later", agent="coder"), entry("s", 3, process=None),
    ])  # fmt: skip

    assert _said(ask, 2) == ["of p"]


def test_only_what_is_said_is_a_message(store: Store, ask: Ask) -> None:
    """Tool updates, usage and heartbeats are events but no messages."""
    types = [*MESSAGE_TYPES, "tool_call", "tool_call_update", "usage", "heartbeat", "plan", "waiting", "custom"]
    store.append([entry("s", 0), *(event("s", number, name, name, entry="s-e0000") for number, name in enumerate(types))])

    assert _said(ask, 0) == list(MESSAGE_TYPES)
    assert len(ask(ListRequest(kind="event", limit=100))["rows"]) == len(types)


def test_a_silent_entry_has_no_messages(store: Store, ask: Ask) -> None:
    """An entry at which nothing was said answers ``empty``."""
    write(store, "s", ["Bash:ls", "Bash:pwd"])

    answer = ask(MessagesRequest(index=1))

    assert (answer["status"], answer["messages"], answer["page"]["total"]) == ("empty", [], 0)


def test_messages_say_where_they_stand(store: Store, ask: Ask) -> None:
    """A message tells the index of the last entry before it, and null when it came first."""
    store.append([event("s", 0, "message", "a"), entry("s", 0), entry("s", 1), event("s", 1, "message", "b")])

    assert [message["after"] for message in ask(MessagesRequest())["messages"]] == [None, 1]
