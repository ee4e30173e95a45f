"""Short histories of runs that are stuck, each in one of the ways in which runs get stuck."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from ctxmgr.config import Config
from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from ctxmgr.types.operations import AgentRequest, RecoverRequest
from ctxmgr.types.route import Continuation
from ctxmgr.workspace import Workspace
from tests.builders import entry, entry_id, event, result

TRACEBACK = (
    'Traceback (most recent call last):\n  File "tests/test_parser.py", line 14, in test_empty\n'
    '    assert parse("") == []\n  File "src/parser.py", line 33, in parse\nIndexError: list index out of range'
)
EDIT = {"file_path": "src/parser.py", "old_string": "tokens[0]", "new_string": "tokens[0] if tokens else None"}
_NUMBERS = count(900)
TASK = "Make the tests pass; do not change the public interface."


def workspace(store: Store, **config: Any) -> Workspace:
    """Return a workspace over an opened store, with these settings."""
    return Workspace(store, Config(**config))


def recover(store: Store, **request: Any) -> Continuation:
    """Return the stuck handler's continuation."""
    return workspace(store).recover(RecoverRequest(**request)).continuation


def went_on(store: Store, session: str | None = None) -> None:
    """Record that an agent did something since: what was answered before does not answer any more."""
    key = store.sessions.latest() if session is None else store.sessions.key(session)
    assert key is not None, "the session has records"
    store.append([event(str(store.sessions.name(key)), next(_NUMBERS), "usage", {})])


def again(store: Store, **request: Any) -> Continuation:
    """Return the stuck handler's continuation after the agent went on."""
    went_on(store, request.get("session"))
    return recover(store, **request)


def ask(store: Store, **request: Any) -> Continuation:
    """Return the continuation for an agent's request; what it does not say is filled in."""
    known: dict[str, Any] = {
        "type": "INTROSPECT_AGENT_CONTEXT",
        "requester": "coder",
        "reason": "lost the plan",
        "goal": "go on",
    }
    return workspace(store).request(AgentRequest(**{**known, **request})).continuation


def call(
    session: str,
    number: int,
    action: str,
    given: Any = None,
    output: Any = None,
    *,
    error: str | None = None,
    agent: str = "coder",
    open_: bool = False,
    **fields: Any,
) -> list[Record]:
    """Return the records of one action: with its output, failed with an error, or left open."""  # fmt: skip
    begun = entry(session, number, action, given, agent=agent, **fields)
    if open_:
        return [begun]
    if error is not None:
        return [begun, result(session, number, status="error", error={"type": "Error", "message": error})]
    return [begun, result(session, number, output)]


def said(
    session: str, number: int, text: str, *, after: float = -1, type_: str = "user_message", agent: str = "user"
) -> Record:
    """Return a message."""
    return event(session, number, type_, {"text": text}, after=after, agent=agent)


def cycle(session: str = "cycle", rounds: int = 4, start: int = 5, *, turn: int = 0) -> list[Record]:
    """Return rounds of edit, test and undo; ``turn`` rotates where the round begins."""
    steps: list[tuple[str, Any, str | None]] = [
        ("Edit", EDIT, None),
        ("Bash", {"command": "pytest -q tests"}, TRACEBACK),
        ("Bash", {"command": "git checkout src/parser.py"}, None),
    ]
    records: list[Record] = []
    for place in range(3 * rounds):
        action, given, error = steps[(place + turn) % 3]
        records += call(session, start + place, action, given, "done", error=error)
    return records


def looped(session: str = "cycle", rounds: int = 4) -> list[Record]:
    """Return a task, five steps that got somewhere, and a cycle of three steps."""
    return [
        said(session, 0, TASK),
        *call(session, 0, "Read", {"file_path": "README.md"}, "# parser"),
        *call(session, 1, "Grep", {"pattern": "def parse"}, "src/parser.py:30:def parse(text)"),
        *call(session, 2, "TodoWrite", {"todos": [{"content": "fix the parser"}]}, "ok"),
        *call(session, 3, "Read", {"file_path": "src/parser.py"}, "def parse(text): ..."),
        *call(session, 4, "Bash", {"command": "pip install -e ."}, "Successfully installed"),
        *cycle(session, rounds),
    ]


def hung(session: str = "hung") -> list[Record]:
    """Return two steps that worked and a call that never returned."""
    return [
        said(session, 0, "Start the server and check /health"),
        *call(session, 0, "Read", {"file_path": "package.json"}, '{"scripts": {"dev": "vite"}}'),
        *call(session, 1, "Bash", {"command": "npm install"}, "added 312 packages"),
        said(session, 1, "I will start the server now.", after=1, type_="agent_message_chunk", agent="coder"),
        *call(session, 2, "Bash", {"command": "npm run dev"}, open_=True),
    ]


def varied(session: str = "varied", count: int = 5) -> list[Record]:
    """Return one error that comes back whatever form the call takes."""
    denied = "An error occurred (AccessDenied) when calling the PutObject operation: see docs/deploy.md"
    records = call(session, 0, "Bash", {"command": "ls out"}, "out.pdf")
    for number in range(1, count + 1):
        records += call(session, number, "Bash", {"command": f"aws s3 cp out.pdf s3://reports/{number}/"}, error=denied)
    return records


def ping_pong(session: str = "pong", rounds: int = 4) -> list[Record]:
    """Return a planner's step, then a writer and a reviewer who answer each other the same way again and again."""
    records = call(session, 0, "git_log", {"since": "v1.2"}, "a1 fix", agent="planner")
    for number in range(1, 2 * rounds, 2):
        records += call(session, number, "draft", {"file": "NOTES.md"}, "saved", agent="writer")
        records += call(session, number + 1, "review", {"file": "NOTES.md"}, "rejected: mention config", agent="reviewer")
    return records


def launched(session: str = "sub", *, above: bool = False) -> list[Record]:
    """Return a sub-agent that searches in vain for the agent that launched it; ``above``: which was launched too."""
    records = call(session, 0, "Read", {"file_path": "app.py"}, "from auth import login", agent="main")
    start, parent = 1, None
    if above:
        records += [entry(session, 1, "Task", {"prompt": "find the cookie"}, agent="main")]
        start, parent = 2, entry_id(session, 1)
    records += [
        entry(session, start, "Task", {"prompt": "grep for set_cookie"}, agent="lead" if above else "main", parent=parent)
    ]
    for number in range(start + 1, start + 5):
        records += call(
            session, number, "Grep", {"pattern": "set_cookie"}, "No matches", agent="scout", parent=entry_id(session, start)
        )
    return records


def chain(
    session: str = "chain", agents: Sequence[str] = ("planner", "coder", "reviewer", "coder", "reviewer")
) -> list[Record]:
    """Return one successful step of each of the agents, in order."""
    records = [said(session, 0, "Ship the parser")]
    for number, agent in enumerate(agents):
        records += call(session, number, f"{agent}_step", {"part": number}, f"part {number} done", agent=agent)
    return records
