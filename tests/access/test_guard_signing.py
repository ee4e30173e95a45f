"""Who signs what is written: an agent as itself, through every door; the operator as anybody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Denied
from ctxmgr.log import codec
from ctxmgr.mcp_server.tools import Tools
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS
from ctxmgr.types.artifact import CreateVersionRequest, NewArtifact, PutRequest, RollbackRequest
from ctxmgr.types.memory import ReflectRequest, RetainRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.project_state import KeyUpdate, SetContextRequest
from ctxmgr.types.query import AddNoteRequest
from ctxmgr.workspace import Workspace
from tests.builders import at, steps, write
from tests.conftest import Allow
from tests.frontends import run_json

Write = Callable[[Workspace, str | None], str | None]
"""Write something with this author, and return who signed it."""


def _note(workspace: Workspace, author: str | None) -> str | None:
    return workspace.add_note(AddNoteRequest(entry_indices=[0], content="x", author=author)).note.author


def _episode(workspace: Workspace, author: str | None) -> str | None:
    return workspace.retain(RetainRequest(text="the VPN is needed", author=author)).episode.author


def _reflection(workspace: Workspace, author: str | None) -> str | None:
    workspace.retain(RetainRequest(text="the VPN is needed"))
    kept = workspace.reflect(ReflectRequest(query="VPN", keep=True, author=author)).reflection.kept
    key = workspace.store.sessions.key("s")
    assert key is not None
    assert kept is not None
    note = workspace.store.annotations.note(key, kept)
    return None if note is None else note.author


def _value(workspace: Workspace, author: str | None) -> str | None:
    update = KeyUpdate(key="phase", value="one")
    workspace.project.set_context(SetContextRequest(updates=[update], author=author, create=True))
    return workspace.source.shared.context_keys()[-1].updated_by


def _version(workspace: Workspace, author: str | None) -> str | None:
    number = workspace.artifacts.create_version(CreateVersionRequest(description="x", author=author)).version
    return next(row.author for row in workspace.source.artifacts.versions() if row.number == number)


def _rollback(workspace: Workspace, author: str | None) -> str | None:
    _version(workspace, None)
    workspace.artifacts.rollback(RollbackRequest(version=1, reason="x", author=author))
    return workspace.source.shared.events("project_version")[-1]["data"]["by"]


def _record(workspace: Workspace, author: str | None) -> str | None:
    record = build("note", "s", at(9), id=f"n-{author}", entries=["s-e0000"], content="x", author=author)
    workspace.store.append([record])
    return record.get("author")


WRITES: dict[str, Write] = {
    "note": _note, "episode": _episode, "reflection": _reflection, "value": _value, "version": _version,
    "rollback": _rollback, "record": _record,
}  # fmt: skip


@pytest.fixture
def place(store: Store, store_path: Path, allow: Allow) -> str:
    """Return a store with an entry and an artifact of ``dev``, who may write everything."""
    write(store, "s", ["Bash:ls"], agent="dev")
    for kind in ("history", "context", "artifact"):
        allow("dev", kind, "*", "write")
    with Workspace.open(str(store_path)) as workspace:
        workspace.artifacts.put(PutRequest(agent="dev", artifacts=[NewArtifact(name="a.txt", content="a")]))
    return str(store_path)


@pytest.mark.requirement("003-A14")
@pytest.mark.parametrize("what", sorted(WRITES))
def test_an_agent_can_not_sign_as_another(place: str, what: str) -> None:
    """Whatever is written, another author is denied, nothing is written, and the denial is logged."""
    with Workspace.open(place, agent="dev") as workspace:
        with pytest.raises(Denied, match="dev may not sign as cpa"):
            WRITES[what](workspace, "cpa")
        assert workspace.source.shared.events(ACCESS)[-1]["data"]["failed"] == "dev may not sign as cpa"
        assert not any(record.get("author") == "cpa" for record in workspace.source.sessions.records(None))


@pytest.mark.parametrize("what", sorted(set(WRITES) - {"record"}))
def test_the_author_is_who_asks(place: str, what: str) -> None:
    """An agent signs as itself, named or not; it may write wherever the rules let it write its own history."""
    for author in (None, "dev"):
        with Workspace.open(place, agent="dev") as workspace:
            assert WRITES[what](workspace, author) == "dev"


@pytest.mark.parametrize("what", sorted(WRITES))
def test_the_operator_signs_as_anybody(place: str, what: str) -> None:
    """Whose store it is may write down what others said."""
    with Workspace.open(place) as workspace:
        assert WRITES[what](workspace, "cpa") == "cpa"


_LINE = codec.encode(build("note", "s", at(9), id="n", entries=["s-e0000"], content="x", author="cpa")).decode()


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["note", "add", "0", "-m", "x", "--author", "cpa"], None),
        (["memory", "retain", "x", "--author", "cpa"], None),
        (["context", "set", "phase", "one", "--create", "--by", "cpa"], None),
        (["version", "create", "x", "--by", "cpa"], None),
        (["record"], _LINE),
    ],
)
def test_the_commands_deny_another_author(place: str, words: list[str], given: str | None) -> None:
    """The exit code is 4, and the message names both."""
    code, answer = run_json([*words, "--as", "dev", "--store", place, "--json"], given)

    assert (code, answer["error"]["message"]) == (4, "dev may not sign as cpa")


def test_the_commands_sign_as_who_asks(place: str) -> None:
    """A note and an episode without an author are the agent's own, with and without an entry."""
    signed: list[Any] = []
    for words in (["note", "add", "0", "-m", "x"], ["memory", "retain", "y"], ["memory", "retain", "z", "--entry", "0"]):
        code, answer = run_json([*words, "--as", "dev", "--store", place, "--json"])
        signed.append((code, answer["data"]["author"]))

    assert signed == [(0, "dev")] * 3


def test_an_agent_signs_as_itself_over_mcp(place: str) -> None:
    """The tools of the server answer as the command line does."""
    tools = Tools(store=place, agent="dev")

    with pytest.raises(Denied, match="dev may not sign as cpa"):
        tools.note_add([0], "x", author="cpa")
    assert [tools.note_add([0], "x").author, tools.memory_retain("y").author] == ["dev", "dev"]


def test_an_imported_log_brings_no_note_in_anothers_name(place: str, tmp_path: Path) -> None:
    """A log that an agent brings along is what it writes, whoever signed in it."""
    log = tmp_path / "other.jsonl"
    records = [
        *steps("t", ["Bash:ls"], agent="dev"),
        build("note", "t", at(9), id="n", entries=["t-e0000"], content="x", author="cpa"),
    ]
    log.write_text("".join(codec.encode(record).decode() + "\n" for record in records))

    with Workspace.open(place, agent="dev") as workspace, pytest.raises(Denied, match="dev may not sign as cpa"):
        workspace.import_logs([log])

    with Workspace.open(place) as workspace:
        assert workspace.store.sessions.key("t") is None
